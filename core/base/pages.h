/* pages.h: whole pages from the kernel, for tables that live where malloc may not be called or that
 * grow in place. They read as zero, cost memory when they are first written, and go back by
 * munmap(). */
#ifndef WEIR_BASE_PAGES_H
#define WEIR_BASE_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

static inline void *pages_mmap(uint64_t bytes, int protection)
{
  void *at = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? NULL : at;
}

/* `bytes` of memory; NULL: there is none. */
static inline void *pages_alloc(uint64_t bytes)
{
  return pages_mmap(bytes, PROT_READ | PROT_WRITE);
}

/* `bytes` of address space, to be opened with mprotect() piece by piece; NULL: there is none. */
static inline void *pages_reserve(uint64_t bytes)
{
  return pages_mmap(bytes, PROT_NONE);
}

#endif
