/* random.h: the seeded random caller, its state and its two halves.
 *
 * random_ops.c and random_table.c are compiled twice, once for the legacy default stream and
 * once with CUDA_API_PER_THREAD_DEFAULT_STREAM, so that one process calls both families of
 * exported names. Every operation makes calls whose outcome is known beforehand and tallies them
 * by hand. */
#ifndef WEIR_TESTS_RANDOM_H
#define WEIR_TESTS_RANDOM_H

#include <cuda.h>
#include <cudaProfiler.h>
#include <cuda_runtime_api.h>
#include "tests/e2e/tally.h"

enum { BUFFERS = 3, DEVICES = 2, STREAMS = 3, EVENTS = 3, ARRAY_W = 64, ARRAY_H = 32, ARRAY_D = 4 };
#define BUFFER_BYTES ((size_t)192 << 10)

typedef struct caller {
  uint64_t rng;                 /* splitmix64 state */
  tally *sums;                  /* this thread's own */
  int devices;                  /* 1 or 2 in use */
  int device;                   /* the one this thread is on */
  CUcontext context[DEVICES];   /* primary contexts */
  char *dev[DEVICES][BUFFERS];  /* BUFFER_BYTES each */
  char *pinned[BUFFERS];        /* cudaHostAlloc */
  char *pageable[BUFFERS];      /* malloc, page aligned */
  char *managed;                /* cudaMallocManaged */
  cudaStream_t stream[STREAMS]; /* of `device`; [0] blocking, [1] non-blocking, [2] priority */
  cudaEvent_t event[EVENTS];    /* recorded at least once */
  cudaArray_t array, array3;    /* ARRAY_W x ARRAY_H (x ARRAY_D) floats on `device` */
  CUmodule module;
  CUfunction function;
  const char *failed; /* first call whose status was not the expected one */
  int failed_status;
  const char *failed_in; /* the operation it was made by */
} caller;

typedef void (*operation)(caller *c);

/* The operations of one half; `n` how many. */
extern const operation legacy_operations[];
extern const unsigned legacy_operation_count;
extern const operation ptds_operations[];
extern const unsigned ptds_operation_count;

/* Those of random_table.c. */
extern const operation legacy_table_operations[];
extern const unsigned legacy_table_operation_count;
extern const operation ptds_table_operations[];
extern const unsigned ptds_table_operation_count;

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define HALF(name) ptds_##name
#else
#define HALF(name) legacy_##name
#endif

/* Set-up and end of a caller's resources, tallied like everything else (legacy half). */
void caller_open(caller *c);
void caller_close(caller *c);

/* kernels.cu */
extern const void *victim_kernel(void);             /* host stub of touch(float *, int) */
int victim_launch(cudaStream_t s, float *p, int n); /* by <<<...>>>; a cudaError_t */
extern const void *victim_symbol(void); /* host shadow of a 4096-byte __device__ array */
extern const char victim_ptx[];

static inline uint32_t caller_random_below(caller *c, uint32_t below)
{
  uint64_t z = (c->rng += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return (uint32_t)((z ^ z >> 31) % below);
}

#define TALLY_NAME_(x) #x
#define TALLY_NAME(x)  TALLY_NAME_(x)

/* Calls a CUDA function, tallies it under its exported name, and remembers an unexpected status. */
#define EXPECT(want, fn, ...) expect(c, __func__, TALLY_NAME(fn), (int)(want), (int)fn(__VA_ARGS__))
#define CALL(fn, ...)         EXPECT(0, fn, __VA_ARGS__)

static inline int expect(caller *c, const char *in, const char *name, int want, int got)
{
  if (want != got && !c->failed) c->failed = name, c->failed_status = got, c->failed_in = in;
  tally_call(c->sums, name, got);
  return got;
}

#endif
