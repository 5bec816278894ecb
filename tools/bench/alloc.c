/* alloc.c: what the device allocator costs, on a scripted device whose memory nobody touches.
 *
 *   alloc hit|p99|pinned|guard|remote|random PERMILLE|churn LIVE|victims LIVE  [mimalloc|ratio]
 *
 * Prints one number, ns. hit: malloc + free of 1 KiB, one thread, the median of bursts of 64. p99:
 * the same, the 99th percentile of bursts of 16. pinned: as hit, of pinned host memory. guard: as
 * hit, a guard of a stream, within it the question which is current, and back. remote: a
 * free on another thread than the malloc's. random: free and malloc of random sizes with 100 k
 * live, a rank of bursts of 64. churn: with LIVE blocks that nobody touches, free and malloc at
 * random among WORKING more; victims: at random among all LIVE. Both of 16 sizes.
 *
 * mimalloc: the same through mi_malloc, found with dlopen. ratio: ours / mimalloc's, bursts in
 * turn, so that both meet the machine in the same state. A burst in which the kernel gave the
 * processor to another process shows nothing about an allocator: it is measured again. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/weir.h"
#include "tests/memory/fake.h"
#include "tools/bench/timing.h"

typedef struct library {
  void *(*get)(size_t bytes);
  void (*put)(void *block);
} library;

static fake device;
static const weir_device cuda0 = WEIR_CUDA_INIT(0);

static double value_at_rank(double *values, size_t count, double share)
{
  qsort(values, count, sizeof *values, ascending_doubles);
  return values[(size_t)((double)(count - 1) * share)];
}

static void fail_with(const char *why)
{
  (void)fprintf(stderr, "alloc: %s\n", why);
  exit(1);
}

static void *ours_get(size_t bytes)
{
  void *out;
  if (weir_malloc(&out, bytes, cuda0, NULL)) fail_with(weir_error_message());
  return out;
}

static void ours_put(void *block)
{
  if (weir_free(block)) fail_with(weir_error_message());
}

static const library ours = {ours_get, ours_put};

static library mimalloc(void)
{
  library m = {NULL, NULL};
  void *lib = dlopen("libmimalloc.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!lib) lib = dlopen("libmimalloc.so", RTLD_NOW | RTLD_LOCAL);
  if (lib) {
    *(void **)&m.get = dlsym(lib, "mi_malloc");
    *(void **)&m.put = dlsym(lib, "mi_free");
  }
  if (!m.get || !m.put) fail_with("no libmimalloc.so.2 (Debian: libmimalloc2.0)");
  return m;
}

static unsigned long long draw_random(unsigned long long *s)
{
  *s ^= *s << 13;
  *s ^= *s >> 7;
  return *s ^= *s << 17;
}

/* ---- bursts ---------------------------------------------------------------------------------- */

enum { BURSTS = 20000, BURST = 64, WARM = 2000, WORKING = 1000 };

/* A burst of `count` operations on `state`. */
typedef void burst(const library *l, void *state, int count);

/* ns an operation of each of BURSTS bursts; of two libraries in turn where there are two. */
static void time_bursts(double *const each[2], const library *const lib[2], burst *const run[2],
                        void *const state[2], int count)
{
  for (int i = -WARM; i < BURSTS; i++)
    for (int k = 0; k < 2 && lib[k]; k++) {
      double ns;
      long before;
      do {
        before = interruptions();
        double begin = now_ns();
        run[k](lib[k], state[k], count);
        ns = now_ns() - begin;
      } while (interruptions() != before);
      if (i >= 0) each[k][i] = ns / count;
    }
}

/* The rank of one library's bursts, or the quotient of two libraries' ranks. */
static double measure_bursts(const library *const lib[2], burst *const run[2], void *const state[2],
                             int count, double share)
{
  static double a[BURSTS], b[BURSTS];
  double *const each[2] = {a, b};
  time_bursts(each, lib, run, state, count);
  double ns = value_at_rank(a, BURSTS, share);
  return lib[1] ? ns / value_at_rank(b, BURSTS, share) : ns;
}

static void run_pairs(const library *l, void *unused, int count)
{
  (void)unused;
  for (int k = 0; k < count; k++)
    l->put(l->get(1024));
}

/* The pair as a program writes it, where the compiler sees whom it calls. */
static void our_pairs(const library *l, void *unused, int count)
{
  (void)l;
  (void)unused;
  for (int k = 0; k < count; k++)
    ours_put(ours_get(1024));
}

/* The same of pinned host memory. */
static void pinned_pairs(const library *l, void *unused, int count)
{
  (void)l;
  (void)unused;
  for (int k = 0; k < count; k++) {
    void *out;
    if (weir_pinned_malloc(&out, 1024) || weir_pinned_free(out)) fail_with(weir_error_message());
  }
}

static weir_stream *side;

/* A program that changes its stream for a moment. */
static void guard_pairs(const library *l, void *unused, int count)
{
  (void)l;
  (void)unused;
  weir_stream *now;
  for (int k = 0; k < count; k++)
    WEIR_WITH_STREAM(side)
  if (weir_current_stream(&now, cuda0) || now != side) exit(1);
}

/* ---- remote ---------------------------------------------------------------------------------- */

enum { BATCH = 512, ROUNDS = 400 };

static void *batch[BATCH];
static pthread_barrier_t turn;

static void *producer(void *unused)
{
  for (int r = 0; r < ROUNDS; r++) {
    for (int i = 0; i < BATCH; i++)
      batch[i] = ours_get(1024);
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
  }
  return unused;
}

static double remote_frees(void)
{
  static double each[ROUNDS];
  pthread_t thread;
  pthread_barrier_init(&turn, NULL, 2);
  ours_put(ours_get(1024));
  if (pthread_create(&thread, NULL, producer, NULL)) exit(1);
  for (int r = 0; r < ROUNDS; r++) {
    pthread_barrier_wait(&turn);
    double begin = now_ns();
    for (int i = 0; i < BATCH; i++)
      ours_put(batch[i]);
    each[r] = (now_ns() - begin) / BATCH;
    pthread_barrier_wait(&turn);
  }
  pthread_join(thread, NULL);
  return value_at_rank(each, ROUNDS, 0.5);
}

/* ---- many live ------------------------------------------------------------------------------- */

typedef struct crowd {
  size_t live;    /* blocks to choose among */
  size_t resting; /* further blocks that nobody touches */
  int sizes;      /* how many there are, 0: any */
  unsigned long long seed;
  void **at; /* live + resting */
} crowd;

static size_t draw_size(unsigned long long *s, int sizes)
{
  unsigned long long x = draw_random(s);
  if (sizes) return 1024 * (1 + x % (unsigned)sizes);
  return 16 + (x >> 8) % (512u << (x % 8));
}

/* Blocks come in the order they would be used in: the working ones are spread among the others. */
static void fill_crowd(const library *l, crowd *c)
{
  size_t all = c->live + c->resting, every = all / c->live, k = 0, rest = c->live;
  c->at = calloc(all, sizeof *c->at);
  if (!c->at) exit(1);
  for (size_t i = 0; i < all; i++) {
    bool working = k < c->live && i % every == 0;
    if (!working && rest == all) working = true;
    c->at[working ? k++ : rest++] = l->get(draw_size(&c->seed, c->sizes));
  }
}

static void free_crowd(const library *l, crowd *c)
{
  for (size_t i = 0; i < c->live + c->resting; i++)
    l->put(c->at[i]);
  free(c->at);
}

static void replace_blocks(const library *l, void *state, int count)
{
  crowd *c = state;
  for (int k = 0; k < count; k++) {
    void **p = &c->at[draw_random(&c->seed) % c->live];
    l->put(*p);
    *p = l->get(draw_size(&c->seed, c->sizes));
  }
}

static double measure_crowd(const library *const lib[2], crowd like, double share)
{
  crowd each[2] = {like, like};
  void *const state[2] = {&each[0], &each[1]};
  for (int k = 0; k < 2 && lib[k]; k++) {
    fill_crowd(lib[k], &each[k]);
    for (size_t done = 0; done < like.live; done += BURST) /* until it is as mixed as it gets */
      replace_blocks(lib[k], &each[k], 4 * BURST);
  }
  burst *const run[2] = {replace_blocks, replace_blocks};
  double value = measure_bursts(lib, run, state, BURST, share);
  for (int k = 0; k < 2 && lib[k]; k++)
    free_crowd(lib[k], &each[k]);
  return value;
}

static double measure_library(int argc, char **argv)
{
  const char *what = argc > 1 ? argv[1] : "", *last = argv[argc - 1];
  bool ratio = !strcmp(last, "ratio"), theirs = ratio || !strcmp(last, "mimalloc");
  const library mi = theirs ? mimalloc() : ours;
  const library *const lib[2] = {ratio ? &ours : &mi, ratio ? &mi : NULL};
  void *const none[2] = {NULL, NULL};
  crowd c = {.seed = 88172645463325252ull, .live = 100000};
  double number = argc > 2 ? strtod(argv[2], NULL) : 0;
  burst *const run[2] = {ratio || !theirs ? our_pairs : run_pairs, run_pairs};
  if (!strcmp(what, "hit")) return measure_bursts(lib, run, none, BURST, 0.5);
  if (!strcmp(what, "p99")) return measure_bursts(lib, run, none, 16, 0.99);
  if (!strcmp(what, "pinned"))
    return measure_bursts((const library *const[2]){&ours, NULL},
                          (burst *const[2]){pinned_pairs, NULL}, none, BURST, 0.5);
  if (!strcmp(what, "guard") && !weir_stream_new(&side, cuda0, 0))
    return measure_bursts((const library *const[2]){&ours, NULL},
                          (burst *const[2]){guard_pairs, NULL}, none, BURST, 0.5);
  if (!strcmp(what, "remote")) return remote_frees();
  if (!strcmp(what, "random") && number > 0) return measure_crowd(lib, c, number / 1000);
  c.live = number > 0 ? (size_t)number : 0;
  c.sizes = 16;
  if (!strcmp(what, "victims") && c.live) return measure_crowd(lib, c, 0.5);
  c.resting = c.live;
  c.live = WORKING;
  if (!strcmp(what, "churn") && c.resting) return measure_crowd(lib, c, 0.5);
  (void)fprintf(stderr,
                "usage: alloc hit|p99|pinned|guard|remote|random PERMILLE|churn LIVE|victims LIVE "
                "[mimalloc|ratio]\n");
  exit(2);
}

int main(int argc, char **argv)
{
  fake_init(&device, 1ull << 36, 2 << 20);
  if (weir_memory_attach(&device.backend, NULL)) fail_with(weir_error_message());
  double ns = measure_library(argc, argv);
  printf("%.2f\n", ns);
  return ns < 0 || weir_memory_detach(cuda0) != WEIR_OK;
}
