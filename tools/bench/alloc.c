/* alloc.c: what the device allocator costs, on a scripted device whose memory nobody touches.
 *
 *   alloc hit|mimalloc|p99|remote|random|flat [ARG]
 *
 * Prints one number, ns. hit: malloc + free of one size of a few at a time, one thread. mimalloc:
 * the same through mi_malloc, found with dlopen. p99: the same, the 99th percentile of bursts
 * of 16. remote: a free on another thread than the malloc's. random: free and malloc of random
 * sizes with 100 k live (p50 of bursts of 64; `random 999` their p99.9). flat N: the same with N
 * live blocks of one of 16 sizes.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/weir.h"
#include "tests/memory/fake.h"

static fake device;
static const weir_device cuda0 = {WEIR_DEVICE_CUDA, 0};
static void *(*mi_malloc)(size_t);
static void (*mi_free)(void *);

static double now_ns(void)
{
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double rank(double *values, size_t count, double share)
{
  qsort(values, count, sizeof *values, by_value);
  return values[(size_t)((double)(count - 1) * share)];
}

static inline void *get(size_t bytes)
{
  void *out;
  if (weir_malloc(&out, bytes, cuda0, NULL)) {
    (void)fprintf(stderr, "alloc: %s\n", weir_error_message());
    exit(1);
  }
  return out;
}

static unsigned long long next(unsigned long long *s)
{
  *s ^= *s << 13;
  *s ^= *s >> 7;
  return *s ^= *s << 17;
}

/* ---- hit --------------------------------------------------------------------------------------
 */

enum { BURSTS = 20000, BURST = 64 };

static double hit(int burst, double share)
{
  static double each[BURSTS];
  for (int i = 0; i < BURSTS; i++) {
    double begin = now_ns();
    for (int k = 0; k < burst; k++)
      (void)weir_free(get(1024));
    each[i] = (now_ns() - begin) / burst;
  }
  return rank(each, BURSTS, share);
}

static double hit_mimalloc(void)
{
  static double each[BURSTS];
  void *lib = dlopen("libmimalloc.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!lib) lib = dlopen("libmimalloc.so", RTLD_NOW | RTLD_LOCAL);
  if (!lib) return -1;
  *(void **)&mi_malloc = dlsym(lib, "mi_malloc");
  *(void **)&mi_free = dlsym(lib, "mi_free");
  for (int i = 0; i < BURSTS; i++) {
    double begin = now_ns();
    for (int k = 0; k < BURST; k++)
      mi_free(mi_malloc(1024));
    each[i] = (now_ns() - begin) / BURST;
  }
  return rank(each, BURSTS, 0.5);
}

/* ---- remote -----------------------------------------------------------------------------------
 */

enum { BATCH = 512, ROUNDS = 400 };

static void *batch[BATCH];
static pthread_barrier_t turn;

static void *producer(void *unused)
{
  for (int r = 0; r < ROUNDS; r++) {
    for (int i = 0; i < BATCH; i++)
      batch[i] = get(1024);
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
  }
  return unused;
}

static double remote(void)
{
  static double each[ROUNDS];
  pthread_t thread;
  pthread_barrier_init(&turn, NULL, 2);
  (void)weir_free(get(1024));
  if (pthread_create(&thread, NULL, producer, NULL)) exit(1);
  for (int r = 0; r < ROUNDS; r++) {
    pthread_barrier_wait(&turn);
    double begin = now_ns();
    for (int i = 0; i < BATCH; i++)
      (void)weir_free(batch[i]);
    each[r] = (now_ns() - begin) / BATCH;
    pthread_barrier_wait(&turn);
  }
  pthread_join(thread, NULL);
  return rank(each, ROUNDS, 0.5);
}

/* ---- many live --------------------------------------------------------------------------------
 */

static size_t some_bytes(unsigned long long *s, int sizes)
{
  unsigned long long x = next(s);
  if (sizes) return 1024 * (1 + x % (unsigned)sizes);
  return 16 + (x >> 8) % (512u << (x % 8));
}

static double many(size_t live, int sizes, double share)
{
  static double each[BURSTS];
  unsigned long long seed = 88172645463325252ull;
  void **at = calloc(live, sizeof *at);
  if (!at) exit(1);
  for (size_t i = 0; i < live; i++)
    at[i] = get(some_bytes(&seed, sizes));
  for (int i = -BURSTS / 2; i < BURSTS; i++) {
    double begin = now_ns();
    for (int k = 0; k < BURST; k++) {
      void **p = &at[next(&seed) % live];
      (void)weir_free(*p);
      *p = get(some_bytes(&seed, sizes));
    }
    if (i >= 0) each[i] = (now_ns() - begin) / BURST;
  }
  for (size_t i = 0; i < live; i++)
    (void)weir_free(at[i]);
  free(at);
  return rank(each, BURSTS, share);
}

static double measure(const char *what, const char *argument)
{
  if (!strcmp(what, "hit")) return hit(BURST, 0.5);
  if (!strcmp(what, "mimalloc")) return hit_mimalloc();
  if (!strcmp(what, "p99")) return hit(16, 0.99);
  if (!strcmp(what, "remote")) return remote();
  if (!strcmp(what, "random"))
    return many(100000, 0, argument ? strtod(argument, NULL) / 1000 : 0.5);
  if (!strcmp(what, "flat") && argument) return many(strtoul(argument, NULL, 10), 16, 0.5);
  (void)fprintf(stderr, "usage: alloc hit|mimalloc|p99|remote|random [PERMILLE]|flat LIVE\n");
  exit(2);
}

int main(int argc, char **argv)
{
  fake_init(&device, 1ull << 36, 2 << 20);
  if (weir_memory_attach(&device.backend, NULL)) {
    (void)fprintf(stderr, "alloc: %s\n", weir_error_message());
    return 1;
  }
  double ns = measure(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : NULL);
  printf("%.2f\n", ns);
  return ns < 0 || weir_memory_detach(cuda0) != WEIR_OK;
}
