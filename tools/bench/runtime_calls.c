/* runtime_calls.c: modes of `calls` that call the CUDA runtime, whose calls are wrapped and call
 * wrapped functions of the driver. Times are processor time of the calling thread: what other
 * programs do on the machine meanwhile, the collector among them, is in none of them.
 *
 *   calls rt-query ROUNDS CALLS              ns a cudaEventQuery, ROUNDS times CALLS without a
 *                                            pause: the median of the rounds
 *   calls rt-asked ROUNDS CALLS              the same of a cudaGetDevice
 *   calls rt-pair BURSTS PAUSE_US BYTES      ns a cudaMalloc of so many bytes with its cudaFree:
 *                                            the least of the bursts
 *   calls rt-pair-over BURSTS PAUSE_US BYTES the same, less two cudaEventQuery in bursts as long
 *   calls rt-forks COUNT                     ms a child that is forked, calls cudaEventQuery four
 *                                            times and exits; one at a time */
#include "tools/bench/runtime_calls.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/timing.h"

static int (*event_query)(void *), (*device_get)(void *), (*device_malloc)(void **, size_t),
    (*device_free)(void *);
static void *event; /* complete: nothing was recorded in it */

static double thread_ns(void)
{
  struct timespec t;
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *find_symbol(void *library, const char *name)
{
  void *p = library ? dlsym(library, name) : NULL;
  if (!p) (void)fprintf(stderr, "calls: %s\n", dlerror());
  return p;
}

/* A runtime of any version that Weir knows; a context, an event. */
static bool set_up_runtime(void)
{
  static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};
  void *library = NULL;
  for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
    library = dlopen(names[i], RTLD_NOW);
  int (*create)(void **) = (int (*)(void **))find_symbol(library, "cudaEventCreate");
  event_query = (int (*)(void *))find_symbol(library, "cudaEventQuery");
  device_get = (int (*)(void *))find_symbol(library, "cudaGetDevice");
  device_malloc = (int (*)(void **, size_t))find_symbol(library, "cudaMalloc");
  device_free = (int (*)(void *))find_symbol(library, "cudaFree");
  return create && event_query && device_get && device_malloc && device_free &&
         !device_free(NULL) && !create(&event);
}

static double query_ns(int (*ask)(void *), void *of, int calls, int *errors)
{
  double begin = thread_ns();
  for (int i = 0; i < calls; i++)
    *errors += ask(of) != 0;
  return (thread_ns() - begin) / calls;
}

static double pair_ns(int pairs, size_t bytes, int *errors)
{
  void *at = NULL;
  double begin = thread_ns();
  for (int i = 0; i < pairs; i++)
    *errors += device_malloc(&at, bytes) != 0 || device_free(at) != 0;
  return (thread_ns() - begin) / pairs;
}

static int run_query(int (*ask)(void *), void *of, int rounds, int calls)
{
  double *ns = calloc((size_t)rounds, sizeof *ns);
  int errors = ns == NULL;
  for (int i = -1; ns && i < rounds; i++) {
    double took = query_ns(ask, of, calls, &errors);
    if (i >= 0) ns[i] = took;
  }
  if (!errors) printf("%.6f\n", median_of(ns, (size_t)rounds));
  free(ns);
  return errors != 0;
}

/* Bursts are short enough for a thread's ring, and the pauses let the collector drain it. */
static int run_pairs(int bursts, int pause_us, size_t bytes, bool over)
{
  enum { PAIRS = 500 };
  const struct timespec pause = {0, pause_us * 1000L};
  double pair = 1e18, query = 1e18;
  int errors = 0;
  for (int i = -2; i < bursts; i++) {
    (void)nanosleep(&pause, NULL);
    double took = pair_ns(PAIRS, bytes, &errors);
    if (i >= 0 && took < pair) pair = took;
    if (!over) continue;
    (void)nanosleep(&pause, NULL);
    took = query_ns(event_query, event, 2 * PAIRS, &errors);
    if (i >= 0 && took < query) query = took;
  }
  if (!errors) printf("%.6f\n", over ? pair - 2 * query : pair);
  return errors != 0;
}

/* A driver answers a forked child of who has used it with an error, and quickly: what is measured
 * is the life of the process. */
static int time_runtime_forks(int count)
{
  enum { CALLS = 4 };
  int errors = 0, status = 0;
  double begin = now_ns();
  for (int i = 0; i < count && !errors; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      for (int k = 0; k < CALLS; k++)
        (void)event_query(event);
      _exit(0);
    }
    errors += pid < 0 || wait(&status) != pid || status != 0;
  }
  printf("%.6f\n", (now_ns() - begin) / 1e6 / count);
  return errors;
}

bool runtime_calls_run(int count, char **words, int *status)
{
  long number[3] = {0};
  int device;
  if (count < 2 || count > 4 || strncmp(words[0], "rt-", 3) != 0) return false;
  for (int i = 1; i < count; i++)
    number[i - 1] = strtol(words[i], NULL, 10);
  const char *mode = words[0] + 3;
  bool over = !strcmp(mode, "pair-over");
  *status = 1;
  if (!set_up_runtime()) return true;
  if (!strcmp(mode, "query") && count == 3)
    *status = run_query(event_query, event, (int)number[0], (int)number[1]);
  else if (!strcmp(mode, "asked") && count == 3)
    *status = run_query(device_get, &device, (int)number[0], (int)number[1]);
  else if ((over || !strcmp(mode, "pair")) && count == 4)
    *status = run_pairs((int)number[0], (int)number[1], (size_t)number[2], over);
  else if (!strcmp(mode, "forks") && count == 2)
    *status = time_runtime_forks((int)number[0]);
  else
    return false;
  return true;
}
