/* calls.c: what the benchmark runs with and without Weir. Prints one number, the median.
 *
 *   calls query BURSTS CALLS DEPTH PAUSE_US   ns a cuEventQuery, called from DEPTH frames down
 *   calls work BURSTS CALLS PAUSE_US          ns a cuMemsetD8Async of no bytes in a stream: to the
 *                                             hooks work like a launch, to a device nothing
 *   calls launch BURSTS CALLS PAUSE_US        ns a cuLaunchKernel of a kernel that does
 *                                             nothing: the least of the bursts
 *   calls range BURSTS RANGES PAUSE_US        ns a range of NVTX, pushed and popped
 *   calls program CALLS GAP_NS                seconds for CALLS queries with GAP_NS of work after
 *                                             each
 *   calls copying CALLS GAP_NS [KINDS]        the same, each tenth call a copy of 64 bytes; copies,
 *                                             all: the program is a client of CUPTI's that wants
 *                                             as much as Weir's, and throws it away
 *   calls dlsym BURSTS CALLS                  ns a dlsym of names that are not CUDA's
 *   calls alloc|free BURSTS PAUSE_US          ns a cuMemAlloc, or cuMemFree, of 64 KiB
 *   calls pair BURSTS PAUSE_US BYTES          ns a cuMemAlloc of so many bytes with its cuMemFree
 *                                             take more than two cuEventQuery
 *   calls copy COPIES BYTES [alike]           GB/s of pageable copies to the device, of other bytes
 *                                             each time, or all of the same
 *   calls peer COPIES BYTES                   GB/s of a copy to a second device
 *   calls forks COUNT AT_ONCE                 ms a child that is forked, calls cuEventQuery four
 *                                             times and exits; COUNT of them, AT_ONCE living
 *   calls count FILE                          queries for ever; FILE holds the number of those done
 *   calls rt-...                              what calls the runtime: runtime_calls.c
 *
 * Bursts are short enough for a thread's ring, and the pause lets the collector drain it: what is
 * measured is the cost of a call, not of a collector that is slower. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "cuda/sim/twin.h"
#include "tools/bench/cupti_client.h"
#include "tools/bench/runtime_calls.h"
#include "tools/bench/timing.h"
#if defined(__has_include) && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else /* the library is built without ranges then too */
static int nvtxRangePushA(const char *text)
{
  return text == NULL;
}

static int nvtxRangePop(void)
{
  return 0;
}
#endif

typedef int (*query_fn)(void *);
static query_fn query;
static void *event;

static void *find_symbol(void *library, const char *name)
{
  void *p = dlsym(library, name);
  if (p) return p;
  (void)fprintf(stderr, "calls: %s\n", dlerror());
  exit(1);
}

static void set_up_device(void)
{
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context;
  if (!cuda) {
    (void)fprintf(stderr, "calls: %s\n", dlerror());
    exit(1);
  }
  int (*init)(unsigned) = (int (*)(unsigned))find_symbol(cuda, "cuInit");
  int (*retain)(void **, int) =
      (int (*)(void **, int))find_symbol(cuda, "cuDevicePrimaryCtxRetain");
  int (*current)(void *) = (int (*)(void *))find_symbol(cuda, "cuCtxSetCurrent");
  int (*create)(void **, unsigned) = (int (*)(void **, unsigned))find_symbol(cuda, "cuEventCreate");
  query = (query_fn)find_symbol(cuda, "cuEventQuery");
  if (init(0) || retain(&context, 0) || current(context) || create(&event, 0)) exit(1);
}

static void print_median(double *values, int count)
{
  printf("%.6f\n", median_of(values, (size_t)count));
}

/* ---- query ----------------------------------------------------------------------------------- */

static int query_burst(int calls)
{
  int errors = 0;
  for (int i = 0; i < calls; i++)
    errors += query(event) != 0;
  return errors;
}

__attribute__((noinline, noclone)) static int burst_at_depth(int depth, int calls)
{
  int errors = depth > 0 ? burst_at_depth(depth - 1, calls) : query_burst(calls);
  __asm__ volatile("" : "+r"(errors)); /* no tail call: each level is a frame */
  return errors;
}

static int run_query(int bursts, int calls, int depth, int pause_us)
{
  double *ns = calloc((size_t)bursts, sizeof *ns);
  struct timespec pause = {0, pause_us * 1000L};
  int errors = burst_at_depth(depth, calls); /* first use: ring, stack, caches */
  for (int i = 0; ns && i < bursts; i++) {
    (void)nanosleep(&pause, NULL);
    double begin = now_ns();
    errors += burst_at_depth(depth, calls);
    ns[i] = (now_ns() - begin) / calls;
  }
  if (ns) print_median(ns, bursts);
  free(ns);
  return errors != 0;
}

static int run_work(int bursts, int calls, int pause_us)
{
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *stream = NULL;
  int (*create)(void **, unsigned) =
      (int (*)(void **, unsigned))find_symbol(cuda, "cuStreamCreate");
  int (*set)(uint64_t, unsigned char, size_t, void *) =
      (int (*)(uint64_t, unsigned char, size_t, void *))find_symbol(cuda, "cuMemsetD8Async");
  double *ns = calloc((size_t)bursts, sizeof *ns);
  struct timespec pause = {0, pause_us * 1000L};
  int errors = create(&stream, 0);
  for (int i = -2; ns && i < bursts; i++) {
    (void)nanosleep(&pause, NULL);
    double begin = now_ns();
    for (int k = 0; k < calls; k++)
      errors += set(0, 0, 0, stream) != 0;
    if (i >= 0) ns[i] = (now_ns() - begin) / calls;
  }
  if (ns) print_median(ns, bursts);
  free(ns);
  return errors != 0;
}

/* ---- launch ---------------------------------------------------------------------------------- */

static void do_nothing(void *const *arguments, const struct weir_twin_thread *t)
{
  (void)arguments, (void)t;
}

static const uint32_t nothing_sizes[] = {8, 8, 8, 8, 4, 4, 8, 4};
__attribute__((visibility("default"))) const struct weir_twin weir_twin_bench_nothing = {
    2, 8, nothing_sizes, do_nothing, "bench_nothing", NULL, 0};
static const char nothing_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                                  ".visible .entry bench_nothing()\n{\n  ret;\n}\n";

typedef int (*launch_fn)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, void *, void **, void **);

/* The last parameter but one is another number each time. */
static double launch_burst(launch_fn launch, void *function, uint64_t blocks[3], int calls)
{
  uint64_t none = 0, step = 0;
  uint32_t n = 1;
  void *args[] = {&blocks[0], &blocks[1], &blocks[2], &none, &n, &n, &step, &n};
  double begin = now_ns();
  for (; step < (uint64_t)calls; step++)
    if (launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL)) exit(1);
  return (now_ns() - begin) / calls;
}

static int run_launch(int bursts, int calls, int pause_us)
{
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *module = NULL, *function = NULL;
  int (*load)(void **, const void *) =
      (int (*)(void **, const void *))find_symbol(cuda, "cuModuleLoadData");
  int (*find)(void **, void *, const char *) =
      (int (*)(void **, void *, const char *))find_symbol(cuda, "cuModuleGetFunction");
  int (*alloc)(uint64_t *, size_t) =
      (int (*)(uint64_t *, size_t))find_symbol(cuda, "cuMemAlloc_v2");
  int (*wait)(void) = (int (*)(void))find_symbol(cuda, "cuCtxSynchronize");
  launch_fn launch = (launch_fn)find_symbol(cuda, "cuLaunchKernel");
  double least = 1e9;
  struct timespec pause = {0, pause_us * 1000L};
  uint64_t blocks[3] = {0};
  int errors = load(&module, nothing_ptx) || find(&function, module, "bench_nothing");
  for (int i = 0; i < 3; i++)
    errors += alloc(&blocks[i], 1 << 20);
  for (int i = 0; !errors && i < bursts; i++) {
    errors += wait();
    (void)nanosleep(&pause, NULL);
    double took = launch_burst(launch, function, blocks, calls);
    if (took < least) least = took;
  }
  printf("%.6f\n", least);
  return errors != 0;
}

static int run_range(int bursts, int ranges, int pause_us)
{
  double *ns = calloc((size_t)bursts, sizeof *ns);
  struct timespec pause = {0, pause_us * 1000L};
  for (int i = -2; ns && i < bursts; i++) {
    (void)nanosleep(&pause, NULL);
    double begin = now_ns();
    for (int k = 0; k < ranges; k++) {
      nvtxRangePushA("forward pass of a layer");
      nvtxRangePop();
    }
    if (i >= 0) ns[i] = (now_ns() - begin) / ranges;
  }
  if (ns) print_median(ns, bursts);
  free(ns);
  return ns == NULL;
}

/* ---- program --------------------------------------------------------------------------------- */

static uint64_t spin_rounds(uint64_t x, long rounds)
{
  for (long i = 0; i < rounds; i++)
    x = x * UINT64_C(6364136223846793005) + 1;
  return x;
}

/* Rounds of spin_rounds() that take `ns`; asked once, so that both runs do the same work:
 * printed as an argument of the second. */
static long rounds_for(double ns)
{
  long rounds = 1000000;
  double best = 1e18;
  volatile uint64_t sink = 1;
  for (int i = 0; i < 20; i++) {
    double begin = now_ns();
    sink = spin_rounds(sink, rounds);
    double took = now_ns() - begin;
    if (took < best) best = took;
  }
  return (long)((double)rounds * ns / best);
}

static int (*mem_alloc)(uint64_t *, size_t), (*mem_free)(uint64_t);
static int (*copy_to)(uint64_t, const void *, size_t);
static uint64_t copied; /* on the device */

static void find_free_memory(void)
{
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
  mem_alloc = (int (*)(uint64_t *, size_t))find_symbol(cuda, "cuMemAlloc_v2");
  mem_free = (int (*)(uint64_t))find_symbol(cuda, "cuMemFree_v2");
  copy_to = (int (*)(uint64_t, const void *, size_t))find_symbol(cuda, "cuMemcpyHtoD_v2");
}

static int query_once(void)
{
  return query(event);
}

/* Each tenth call is a copy. */
static int copy_or_query(void)
{
  static const char from[64];
  static int calls;
  return ++calls % 10 ? query(event) : copy_to(copied, from, sizeof from);
}

/* In slices, whose median is multiplied up: what else the machine does in between hits few of them.
 */
static int time_program(int (*call)(void), long calls, long rounds)
{
  enum { SLICE = 1000 };
  int slices = (int)(calls / SLICE), errors = 0;
  double *ns = calloc((size_t)slices, sizeof *ns);
  volatile uint64_t sink = 1;
  for (int i = 0; ns && i < slices; i++) {
    double begin = now_ns();
    for (int k = 0; k < SLICE; k++) {
      errors += call() != 0;
      sink = spin_rounds(sink, rounds);
    }
    ns[i] = (now_ns() - begin) * slices / 1e9;
  }
  if (ns) print_median(ns, slices);
  free(ns);
  return errors != 0;
}

/* The same, with copies. */
static int run_copying(long calls, long rounds, const char *kinds)
{
  find_free_memory();
  if (kinds && !cupti_client_start(!strcmp(kinds, "all"))) return 1;
  return mem_alloc(&copied, 64) != 0 || time_program(copy_or_query, calls, rounds);
}

/* ---- dlsym ----------------------------------------------------------------------------------- */

static int run_dlsym(int bursts, int calls)
{
  static const char *const names[] = {"qsort", "printf", "cuserid", "getpid"};
  void *libc = dlopen("libc.so.6", RTLD_NOW);
  double *ns = calloc((size_t)bursts, sizeof *ns);
  int found = 0;
  for (int i = 0; ns && libc && i < bursts; i++) {
    double begin = now_ns();
    for (int k = 0; k < calls; k++)
      found += dlsym(libc, names[k & 3]) != NULL;
    ns[i] = (now_ns() - begin) / calls;
  }
  if (ns) print_median(ns, bursts);
  free(ns);
  return found != bursts * calls;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* ns an allocation, or a free, of 64 KiB: bursts of ROUNDS times BLOCKS of each. */
static int run_memory(bool frees, int bursts, int pause_us)
{
  enum { BLOCKS = 64, ROUNDS = 16, BYTES = 64 << 10 };
  uint64_t at[BLOCKS];
  double *ns = calloc((size_t)bursts, sizeof *ns);
  struct timespec pause = {0, pause_us * 1000L};
  int errors = 0;
  find_free_memory();
  for (int i = -2; ns && i < bursts; i++) {
    double took = 0;
    (void)nanosleep(&pause, NULL);
    for (int r = 0; r < ROUNDS; r++) {
      double begin = now_ns();
      for (int k = 0; k < BLOCKS; k++)
        errors += mem_alloc(&at[k], BYTES) != 0;
      double middle = now_ns();
      for (int k = 0; k < BLOCKS; k++)
        errors += mem_free(at[k]) != 0;
      took += frees ? now_ns() - middle : middle - begin;
    }
    if (i >= 0) ns[i] = took / (ROUNDS * BLOCKS);
  }
  if (ns) print_median(ns, bursts);
  free(ns);
  return errors != 0;
}

static double time_queries(int calls, int *errors)
{
  double begin = now_ns();
  *errors += query_burst(calls);
  return now_ns() - begin;
}

static double time_pairs(int pairs, size_t bytes, int *errors)
{
  uint64_t at = 0;
  double begin = now_ns();
  for (int k = 0; k < pairs; k++)
    *errors += mem_alloc(&at, bytes) != 0 || mem_free(at) != 0;
  return now_ns() - begin;
}

/* ns an allocation and its free take more than two queries. The bursts take turns and have as many
 * calls: what a pause does to clocks and caches is in both, and so is the event of a call. */
static int run_pair(int bursts, int pause_us, size_t bytes)
{
  enum { PAIRS = 500 };
  double *ns = calloc((size_t)bursts, sizeof *ns);
  struct timespec pause = {0, pause_us * 1000L};
  int errors = 0;
  find_free_memory();
  for (int i = -2; ns && i < bursts; i++) {
    (void)nanosleep(&pause, NULL);
    double queries = time_queries(2 * PAIRS, &errors);
    (void)nanosleep(&pause, NULL);
    double pairs = time_pairs(PAIRS, bytes, &errors);
    if (i >= 0) ns[i] = (pairs - queries) / PAIRS;
  }
  if (ns) print_median(ns, bursts);
  free(ns);
  return errors != 0;
}

/* GB/s of copies of pageable memory to the device, by their mean: a part of them may take longer. */
static int time_alike_copies(int copies, size_t bytes)
{
  uint64_t at = 0;
  char *host = malloc(bytes);
  find_free_memory();
  int errors = !host || mem_alloc(&at, bytes) != 0;
  for (size_t i = 0; !errors && i < bytes; i++)
    host[i] = (char)(i * 7);
  double begin = now_ns();
  for (int i = 0; !errors && i < copies; i++)
    errors += copy_to(at, host, bytes) != 0;
  printf("%.6g\n", (double)bytes * copies / (now_ns() - begin));
  free(host);
  return errors != 0;
}

/* GB/s of a copy of pageable memory to the device. */
static int time_copies(int copies, size_t bytes)
{
  uint64_t at = 0;
  char *host = malloc(bytes);
  double *rate = calloc((size_t)copies, sizeof *rate);
  find_free_memory();
  int errors = !host || mem_alloc(&at, bytes) != 0;
  for (int i = -2; !errors && rate && i < copies; i++) {
    memset(host, 1, bytes);
    memcpy(host, &i, bytes < sizeof i ? bytes : sizeof i); /* no copy carries what another does */
    double begin = now_ns();
    errors += copy_to(at, host, bytes) != 0;
    if (i >= 0) rate[i] = (double)bytes / (now_ns() - begin);
  }
  if (rate) print_median(rate, copies);
  free(rate);
  free(host);
  return errors != 0;
}

/* GB/s of a copy from the first device to the second, in a stream of its own. */
static int run_peer(int copies, size_t bytes)
{
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context[2], *stream = NULL;
  int (*retain)(void **, int) =
      (int (*)(void **, int))find_symbol(cuda, "cuDevicePrimaryCtxRetain");
  int (*current)(void *) = (int (*)(void *))find_symbol(cuda, "cuCtxSetCurrent");
  int (*create)(void **, unsigned) =
      (int (*)(void **, unsigned))find_symbol(cuda, "cuStreamCreate");
  int (*finish)(void *) = (int (*)(void *))find_symbol(cuda, "cuStreamSynchronize");
  int (*copy)(uint64_t, void *, uint64_t, void *, size_t, void *) =
      (int (*)(uint64_t, void *, uint64_t, void *, size_t, void *))find_symbol(cuda,
                                                                               "cuMemcpyPeerAsync");
  double *rate = calloc((size_t)copies, sizeof *rate);
  uint64_t at[2] = {0, 0};
  int errors = 0;
  find_free_memory();
  for (int i = 1; i >= 0; i--)
    errors += retain(&context[i], i) || current(context[i]) || mem_alloc(&at[i], bytes);
  errors += create(&stream, 1 /* that waits for no other */);
  for (int i = -2; !errors && rate && i < copies; i++) {
    double begin = now_ns();
    errors += copy(at[1], context[1], at[0], context[0], bytes, stream) || finish(stream);
    if (i >= 0) rate[i] = (double)bytes / (now_ns() - begin);
  }
  if (rate) print_median(rate, copies);
  free(rate);
  return errors != 0;
}

/* ---- forks ----------------------------------------------------------------------------------- */

/* A driver answers a forked child of who has used it with an error, and quickly: what is measured
 * is the life of the process. */
static bool fork_caller(void)
{
  enum { CALLS = 4 };
  pid_t pid = fork();
  if (pid == 0) {
    for (int i = 0; i < CALLS; i++)
      (void)query(event);
    _exit(0);
  }
  return pid > 0;
}

static int time_forks(int count, int at_once)
{
  int begun = 0, ended = 0, status, errors = 0;
  double begin = now_ns();
  while (!errors && ended < count) {
    if (begun < count && begun - ended < at_once) {
      errors += !fork_caller();
      begun++;
    } else {
      errors += wait(&status) < 0 || status != 0;
      ended++;
    }
  }
  printf("%.6f\n", (now_ns() - begin) / 1e6 / count);
  return errors != 0;
}

/* ---- count ----------------------------------------------------------------------------------- */

static int run_count(const char *path)
{
  int fd = open(path, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, 4096) < 0) return 1;
  volatile uint64_t *done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (done == MAP_FAILED) return 1;
  for (;;) {
    if (query(event)) return 1;
    *done = *done + 1; /* only after the call has returned is it committed */
  }
}

static long number_argument(const char *text)
{
  return strtol(text, NULL, 10);
}

int main(int argc, char **argv)
{
  const char *mode = argc > 1 ? argv[1] : "";
  if (!strcmp(mode, "dlsym") && argc == 4)
    return run_dlsym((int)number_argument(argv[2]), (int)number_argument(argv[3]));
  if (!strcmp(mode, "rounds") && argc == 3)
    return printf("%ld\n", rounds_for((double)number_argument(argv[2]))) < 0;
  int status;
  if (runtime_calls_run(argc - 1, argv + 1, &status)) return status;
  set_up_device();
  if (!strcmp(mode, "query") && argc == 6)
    return run_query((int)number_argument(argv[2]), (int)number_argument(argv[3]),
                     (int)number_argument(argv[4]), (int)number_argument(argv[5]));
  if (!strcmp(mode, "work") && argc == 5)
    return run_work((int)number_argument(argv[2]), (int)number_argument(argv[3]),
                    (int)number_argument(argv[4]));
  if (!strcmp(mode, "launch") && argc == 5)
    return run_launch((int)number_argument(argv[2]), (int)number_argument(argv[3]),
                      (int)number_argument(argv[4]));
  if (!strcmp(mode, "program") && argc == 4)
    return time_program(query_once, number_argument(argv[2]), number_argument(argv[3]));
  if (!strcmp(mode, "copying") && (argc == 4 || argc == 5))
    return run_copying(number_argument(argv[2]), number_argument(argv[3]), argv[4]);
  if (!strcmp(mode, "range") && argc == 5)
    return run_range((int)number_argument(argv[2]), (int)number_argument(argv[3]),
                     (int)number_argument(argv[4]));
  if (!strcmp(mode, "alloc") && argc == 4)
    return run_memory(false, (int)number_argument(argv[2]), (int)number_argument(argv[3]));
  if (!strcmp(mode, "free") && argc == 4)
    return run_memory(true, (int)number_argument(argv[2]), (int)number_argument(argv[3]));
  if (!strcmp(mode, "pair") && argc == 5)
    return run_pair((int)number_argument(argv[2]), (int)number_argument(argv[3]),
                    (size_t)number_argument(argv[4]));
  if (!strcmp(mode, "copy") && argc == 5 && !strcmp(argv[4], "alike"))
    return time_alike_copies((int)number_argument(argv[2]), (size_t)number_argument(argv[3]));
  if (!strcmp(mode, "copy") && argc == 4)
    return time_copies((int)number_argument(argv[2]), (size_t)number_argument(argv[3]));
  if (!strcmp(mode, "peer") && argc == 4)
    return run_peer((int)number_argument(argv[2]), (size_t)number_argument(argv[3]));
  if (!strcmp(mode, "forks") && argc == 4)
    return time_forks((int)number_argument(argv[2]), (int)number_argument(argv[3]));
  if (!strcmp(mode, "count") && argc == 3) return run_count(argv[2]);
  (void)fprintf(stderr, "calls: wrong arguments\n");
  return 2;
}
