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
  const char *options; /* that weir run needs, or NULL */
} waster;

typedef struct innocent { /* no waste of any rule */
  const char *name;
  void (*run)(void);
} innocent;

typedef struct repair {
  const char *name;                   /* of the waste: of its function */
  void (*work)(int fixed, int times); /* wastes so, unless it is fixed */
} repair;

/* kernels.cu */
int victim_launch(cudaStream_t stream, float *p, int n);
int victim_narrow_launch(cudaStream_t stream, const double *from, float *p,
                         int n);                                                  /* makes floats */
int victim_halve_launch(cudaStream_t stream, const float *from, float *p, int n); /* adds pairs */
int victim_fetch_launch(cudaStream_t stream, cudaTextureObject_t from, float *p, int n);
int victim_follow_launch(cudaStream_t stream, float *const *table, int n);
int victim_gate_launch(cudaStream_t stream, volatile int *flags);
const void *victim_kernel(void);       /* what victim_launch() launches */
const void *victim_halve_kernel(void); /* what victim_halve_launch() does */

static inline void launch(cudaStream_t stream, float *p, int n)
{
  CHECK((cudaError_t)victim_launch(stream, p, n));
}

char *device_memory(size_t bytes);
char *pinned_memory(size_t bytes); /* zeros */

/* How fast copies are from now on; only the software device can be so. */
void set_link(const char *list);

/* innocent_streams.c */
void order_of_a_pipeline(void);
void order_of_two_buffers(void);
void order_of_a_cache(void);
void order_of_a_ring(void);
void order_of_a_join(void);
void order_of_a_host_function(void);
void order_of_a_table(void);
void order_of_a_pool(void);
void order_now_and_then(void);
void chunks_in_streams(void);

extern const waster block_wasters[], content_wasters[], copy_wasters[], device_wasters[],
    habit_wasters[], kernel_wasters[], launch_wasters[], link_wasters[], memory_wasters[],
    pool_wasters[], step_wasters[], upload_wasters[], wait_wasters[];
extern const innocent innocents[];
extern const repair repairs[];

#endif
