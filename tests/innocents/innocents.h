/* innocents.h: what programs without waste share. */
#ifndef WEIR_TESTS_INNOCENTS_H
#define WEIR_TESTS_INNOCENTS_H

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS = 1 << 14, FLOATS = ELEMENTS * 4, STEPS = 60 }; /* FLOATS: their bytes */

static inline void require_success(cudaError_t e, const char *what)
{
  if (e == cudaSuccess) return;
  (void)fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
  exit(1);
}

#define CHECK(call) require_success(call, #call)

typedef struct program {
  const char *name;
  void (*run)(void);
} program;

extern const program samples[], solvers[], servers[], applications[]; /* each ends by a NULL */
extern const program loners[]; /* those of which a process can run one alone */

float *device_floats(size_t bytes);
float *pinned_floats(size_t bytes);
float *host_floats(size_t bytes);        /* pageable; other values at each call */
void fill(float *p, size_t bytes);       /* other values at each call */
void look(const float *p, size_t bytes); /* reads all */
cudaStream_t new_stream(void);
cudaEvent_t new_event(void);

int innocent_launch_add(cudaStream_t s, const float *a, const float *b, float *c, int n);
int innocent_launch_step(cudaStream_t s, const float *in, float *out, int n);
int innocent_launch_sum(cudaStream_t s, const float *in, float *out, int n);
const void *innocent_step_kernel(void);
extern const char innocent_ptx[];

static inline void add(cudaStream_t s, const float *a, const float *b, float *c)
{
  CHECK((cudaError_t)innocent_launch_add(s, a, b, c, ELEMENTS));
}

static inline void step(cudaStream_t s, const float *in, float *out)
{
  CHECK((cudaError_t)innocent_launch_step(s, in, out, ELEMENTS));
}

static inline void sum(cudaStream_t s, const float *in, float *out)
{
  CHECK((cudaError_t)innocent_launch_sum(s, in, out, ELEMENTS));
}

#endif
