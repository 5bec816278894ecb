/* local_clock.c: the kernel's clocks, for the library alone (hidden).
 *
 * Programs run with libraries that stand in for clock_gettime() and show another time
 * (libfaketime). That is the program's business: a trace is placed next to those of other processes
 * and read by the collector's clock. So the library asks the vDSO itself, or, where there is none,
 * the kernel. */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "interpose/elf/elf.h"

typedef int clock_function(clockid_t, struct timespec *);

static int ask_kernel(clockid_t clock, struct timespec *out)
{
  return (int)syscall(SYS_clock_gettime, clock, out) ? -1 : 0;
}

static clock_function *find_vdso_clock(void)
{
  uintptr_t start = (uintptr_t)getauxval(AT_SYSINFO_EHDR), base = 0;
  const ElfW(Ehdr) *e = (const ElfW(Ehdr) *)start;
  const ElfW(Dyn) *dynamic = NULL;
  elf_object o;

  if (!e) return ask_kernel;
  const ElfW(Phdr) *p = (const ElfW(Phdr) *)(start + e->e_phoff);
  for (int i = e->e_phnum; i-- > 0;) { /* the first to be mapped counts */
    if (p[i].p_type == PT_LOAD) base = start + p[i].p_offset - p[i].p_vaddr;
    if (p[i].p_type == PT_DYNAMIC) dynamic = (const ElfW(Dyn) *)(start + p[i].p_offset);
  }
  if (!elf_object_read(&o, base, dynamic)) return ask_kernel;
  void *found = elf_object_symbol(&o, "__vdso_clock_gettime", NULL, WEIR_FIT_DEFAULT);
  if (!found) found = elf_object_symbol(&o, "__kernel_clock_gettime", NULL, WEIR_FIT_DEFAULT);
  return found ? (clock_function *)(uintptr_t)found : ask_kernel;
}

__attribute__((visibility("hidden"))) int clock_gettime(clockid_t clock, struct timespec *out)
{
  static clock_function *_Atomic known;
  clock_function *f = atomic_load_explicit(&known, memory_order_relaxed);

  if (__builtin_expect(!f, 0))
    atomic_store_explicit(&known, f = find_vdso_clock(), memory_order_relaxed);
  int error = f(clock, out);
  if (error >= 0) return error;
  if (f != ask_kernel) errno = -error; /* the vDSO returns it as the kernel does */
  return -1;
}
