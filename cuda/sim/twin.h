/* twin.h: how the software device runs a kernel.
 *
 * The software device cannot run a GPU's machine code. It runs the kernel's *host twin*: the same
 * body compiled by the host compiler. For a kernel whose symbol is NAME it looks for an exported
 * object `weir_twin_NAME` (of type struct weir_twin) in the program and its libraries; a kernel
 * without one is skipped, which is reported once.
 *
 * run() is called once per CUDA thread, in order of block then thread (x fastest), on the stream's
 * worker; threads of a block do not run at once, so a twin cannot wait for its neighbours. One with
 * WEIR_TWIN_BLOCK is called once per block, with thread_index 0, and goes through the threads
 * itself: phase by phase, so that a phase finds what all threads did in the one before.
 * Launch arguments were copied when the kernel was launched, by argument_sizes.
 *
 * Words: twin: the host version of a kernel.
 */
#ifndef WEIR_SIM_TWIN_H
#define WEIR_SIM_TWIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_TWIN_VERSION 2u /* 1, which ends before `flags`, is taken too */
#define WEIR_TWIN_PREFIX  "weir_twin_"

enum { WEIR_TWIN_BLOCK = 1 }; /* flags: one call of run() is a whole block */

/* Where in the grid one call of run() is. */
struct weir_twin_thread {
  uint32_t grid[3];         /* gridDim, blocks */
  uint32_t block[3];        /* blockDim, threads */
  uint32_t block_index[3];  /* blockIdx */
  uint32_t thread_index[3]; /* threadIdx */
  size_t shared_bytes;      /* dynamic shared memory asked for at the launch */
  void *shared;             /* that memory, zeroed at the block's first thread; NULL when 0 bytes */
};

struct weir_twin {
  uint32_t version;               /* WEIR_TWIN_VERSION */
  uint32_t argument_count;        /* kernel parameters */
  const uint32_t *argument_sizes; /* bytes of each; may be NULL when argument_count is 0 */
  void (*run)(void *const *arguments, const struct weir_twin_thread *t);
  const char *name;                    /* the kernel's symbol, static */
  const uint32_t *argument_alignments; /* bytes; NULL: each the largest power of two <= 16 dividing
                                          its size. Only read for CU_LAUNCH_PARAM_BUFFER_POINTER */
  uint32_t flags;
};

/* What a CUgraphConditionalHandle is the address of, on the software device. */
enum { WEIR_CONDITION_MAGIC = 0x77c0011 };

struct weir_condition {
  uint32_t magic; /* WEIR_CONDITION_MAGIC; else the handle is none */
  uint32_t value; /* of the condition */
  uint32_t sets;  /* how often it was set */
};

/* cudaGraphSetConditional(), for a twin. */
static inline void weir_condition_set(unsigned long long handle, uint32_t value)
{
  struct weir_condition *c = (struct weir_condition *)(uintptr_t)handle;
  __atomic_store_n(&c->value, value, __ATOMIC_RELAXED);
  __atomic_fetch_add(&c->sets, 1, __ATOMIC_RELAXED);
}

#ifdef __cplusplus
}
#endif
#endif
