/* trap.h: what the files of trap programs share. */
#ifndef WEIR_TESTS_REROUTE_TRAP_H
#define WEIR_TESTS_REROUTE_TRAP_H

#include <cuda_runtime_api.h>
#include <stdio.h>

int trap_launch_fill(cudaStream_t s, unsigned *p, unsigned n, unsigned value, unsigned turns);
int trap_launch_count(cudaStream_t s, const unsigned *p, unsigned n, unsigned value, unsigned *sum);

enum { MIB = 1 << 20, SLOW = 20000000 };

#define PRINT(call) printf("%s: %d\n", #call, (int)(call))

typedef struct trap {
  const char *name;
  void (*run)(void);
} trap;

/* Elements of p that are not `value`, seen on the host after a wait for the stream. */
unsigned trap_wrong(const unsigned *p, unsigned n, unsigned value, cudaStream_t s);

/* trap_shared.c: memory that others know of; trap_bounds.c: memory that the program does not have;
 * trap_fixes.c: objects and answers that are kept. Each ended by one without a name. */
extern const trap trap_shared[], trap_bounds[], trap_fixes[];

/* The other process of a trap with two; its end. */
int trap_other(void);

#endif
