/* bench.h: a row of `make bench`: one target of DESIGN section 8, measured.
 *
 * Every row compares within one run: the same work with and without Weir, in children that take
 * turns, and gives the median. Nothing here fails because a machine is slow: a row is met or not
 * met. */
#ifndef WEIR_TOOLS_BENCH_H
#define WEIR_TOOLS_BENCH_H

#include <stdbool.h>
#include <stddef.h>

typedef struct measured {
  double value;   /* in the row's unit */
  double without; /* the same work without Weir, 0: no such thing */
  double with;    /* and under Weir */
  bool failed;    /* could not be measured; `note` says why */
  bool absent;    /* this machine has not got what is measured; `note` says what */
  char note[200]; /* how it was measured, in a few words */
} measured;

typedef struct row {
  const char *name; /* for ROWS=... */
  const char *what; /* for the table */
  const char *unit;
  double target;
  bool at_least; /* target is a lower bound */
  void (*measure)(measured *m);
} row;

extern const row bench_rows[];

/* build/, absolute: where weir, the preload library and the software device are. */
extern const char *bench_build;
/* A folder for what rows write; removed at the end. */
extern const char *bench_scratch;

/* rows_calls.c */
void measure_call(measured *m);
void measure_call_sustained(measured *m);
void measure_call_stack(measured *m);
void measure_pair_4k(measured *m);
void measure_pair_1m(measured *m);
void measure_pair_64m(measured *m);
void measure_pair_1g(measured *m);
void measure_program(measured *m);
void measure_reroute_alloc(measured *m);
void measure_reroute_free(measured *m);
void measure_reroute_free_strict(measured *m);
void measure_launch_track(measured *m);
void measure_staging(measured *m);
void measure_staging_peer(measured *m);
void measure_forks(measured *m);
void measure_forks_64(measured *m);
void measure_dlsym(measured *m);
/* rows_trace.c */
void measure_sigkill(measured *m);
void measure_import(measured *m);
void measure_report_time(measured *m);
void measure_report_memory(measured *m);

/* rows_memory.c */
void measure_alloc_hit(measured *m);
void measure_stream_guard(measured *m);
void measure_alloc_ratio(measured *m);
void measure_alloc_p99(measured *m);
void measure_alloc_pinned(measured *m);
void measure_alloc_remote(measured *m);
void measure_alloc_random(measured *m);
void measure_alloc_random_tail(measured *m);
void measure_alloc_random_ratio(measured *m);
void measure_alloc_flat(measured *m);
void measure_alloc_victims(measured *m);

/* rows_tensor.c */
void measure_tensor_add(measured *m);
void measure_tensor_view(measured *m);
void measure_tensor_copy(measured *m);
void measure_tensor_stream(measured *m);
void measure_tensor_blas(measured *m);
void measure_tensor_builtin(measured *m);
void measure_tensor_first(measured *m);
void measure_tensor_size(measured *m);

/* rows_gpu.c */
void measure_gpu_hit(measured *m);
void measure_gpu_async(measured *m);
void measure_gpu_malloc(measured *m);
void measure_gpu_pinned(measured *m);
void measure_gpu_dispatch(measured *m);
void measure_gpu_add(measured *m);
void measure_gpu_sum(measured *m);
void measure_gpu_gemm(measured *m);
void measure_gpu_gemv(measured *m);

/* helpers (bench.c) */
double bench_median(double *values, size_t count);
double bench_now(void); /* seconds, CLOCK_MONOTONIC */
/* Runs a program to its end; NULL ends the arguments. Its one number on stdout goes to *number when
 * not NULL; *seconds and *kib (peak resident) may be NULL. False when it failed. */
bool bench_run(double *number, double *seconds, long *kib, const char *const *argv);
/* Processor seconds (user and system) of the last program that bench_run() ran to its end. */
extern double bench_cpu_seconds;
/* sprintf into one of a few static buffers. */
const char *bench_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
