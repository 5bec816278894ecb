/* waster.h: what the wastes share. A line that a finding must name says WASTE in a comment. */
#ifndef WEIR_TESTS_WASTER_H
#define WEIR_TESTS_WASTER_H

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))

static inline void require_success(cudaError_t e, const char *what)
{
  if (e == cudaSuccess) return;
  (void)fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
  exit(1);
}

#define CHECK(call) require_success(call, #call)

typedef struct waster {
  const char *id;      /* of the rule */
  void (*waste)(void); /* commits it */
  void (*twin)(void);  /* looks like it, and does not */
} waster;

/* kernels.cu */
int victim_launch(cudaStream_t stream, float *p, int n);

static inline void launch(cudaStream_t stream, float *p, int n)
{
  CHECK((cudaError_t)victim_launch(stream, p, n));
}

extern const waster content_wasters[], copy_wasters[], wait_wasters[], memory_wasters[];

#endif
