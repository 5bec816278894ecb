/* thread.c: what every call needs of its thread: the record with its counters, the fork rule; and
 * the clock, and one place to speak from. */
#include "cuda/sim/internal.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

__thread struct sim_thread *sim_self __attribute__((tls_model("initial-exec")));
_Atomic uint32_t sim_gate = SIM_GATE_UNINITIALISED;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_thread *threads;          /* all that live */
static uint64_t thread_numbers;             /* given so far; threads_lock */
static uint64_t ended_calls[SIM_API_COUNT]; /* of threads that have ended; threads_lock */
/* Of a forked child: records of the parent's other threads, where a leak checker finds them. */
static struct sim_thread *volatile not_forked[2];
static bool counts_are_ours = true; /* false in a forked child whose file has no %p */

uint64_t sim_now_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void sim_print_once(_Atomic bool *reported, const char *format, ...)
{
  if (reported && atomic_exchange(reported, true)) return;
  char line[512];
  va_list list;
  va_start(list, format);
  int n = vsnprintf(line, sizeof line - 1, format, list);
  va_end(list);
  if (n < 0) return;
  if (n > (int)sizeof line - 2) n = (int)sizeof line - 2;
  line[n] = '\n';
  ssize_t written = write(STDERR_FILENO, line, (size_t)n + 1);
  (void)written;
}

bool sim_print_and_note(const char *text)
{
  sim_print_once(NULL, "%s", text);
  void (*note)(const char *) = NULL;
  *(void **)&note = dlsym(RTLD_DEFAULT, "weir_note");
  if (note) note(text);
  return note != NULL;
}

/* ---- threads --------------------------------------------------------------------------------- */

static void thread_end(void *record)
{
  struct sim_thread *t = record;
  sim_self = t; /* glibc may have run other destructors that called us */
  if (t->leave && !(atomic_load(&sim_gate) & SIM_GATE_FORKED)) t->leave(t);
  pthread_mutex_lock(&threads_lock);
  for (unsigned i = 0; i < SIM_API_COUNT; i++)
    ended_calls[i] += atomic_load_explicit(&t->calls[i], memory_order_relaxed);
  *t->link = t->next;
  if (t->next) t->next->link = t->link;
  pthread_mutex_unlock(&threads_lock);
  sim_self = NULL;
  free(t->stack);
  free(t->streams);
  free(t);
}

/* The list of threads is whole in both processes. */
static void fork_begins(void)
{
  pthread_mutex_lock(&threads_lock);
}

static void fork_parent(void)
{
  pthread_mutex_unlock(&threads_lock);
}

/* The child of a process that had initialised may not use CUDA (CUDA C++ Programming Guide,
 * "Fork"): the gate answers so, and no lock that another thread may have held is touched again. */
static void fork_child_of_device(void)
{
  pthread_mutex_unlock(&threads_lock);
  not_forked[0] = threads;
  not_forked[1] = sim_self ? sim_self->next : NULL;
  threads = sim_self;
  if (sim_self) {
    sim_self->next = NULL;
    sim_self->link = &threads;
    for (unsigned i = 0; i < SIM_API_COUNT; i++)
      atomic_store_explicit(&sim_self->calls[i], 0, memory_order_relaxed);
  }
  memset(ended_calls, 0, sizeof ended_calls);
  atomic_store(&sim_watched_kinds, 0);
  const char *file = getenv("WEIR_SIM_COUNTS");
  counts_are_ours = file && strstr(file, "%p");
  if (!(atomic_load(&sim_gate) & SIM_GATE_UNINITIALISED))
    atomic_fetch_or(&sim_gate, SIM_GATE_FORKED);
}

static void init_threads(void)
{
  pthread_key_create(&thread_key, thread_end);
  pthread_atfork(fork_begins, fork_parent, fork_child_of_device);
}

struct sim_thread *sim_thread_start(void)
{
  pthread_once(&once, init_threads);
  struct sim_thread *t = calloc(1, sizeof *t);
  if (!t) return NULL;
  pthread_mutex_lock(&threads_lock);
  t->number = ++thread_numbers;
  t->next = threads;
  t->link = &threads;
  if (threads) threads->link = &t->next;
  threads = t;
  pthread_mutex_unlock(&threads_lock);
  sim_self = t;
  pthread_setspecific(thread_key, t);
  return t;
}

/* ---- counters -------------------------------------------------------------------------------- */

static uint64_t calls_of(unsigned api)
{
  uint64_t n = ended_calls[api];
  for (struct sim_thread *t = threads; t; t = t->next)
    n += atomic_load_explicit(&t->calls[api], memory_order_relaxed);
  return n;
}

__attribute__((visibility("default"))) uint64_t weir_sim_count(const char *function)
{
  for (unsigned i = 0; i < SIM_API_COUNT; i++) {
    if (strcmp(sim_api_names[i], function) != 0) continue;
    pthread_mutex_lock(&threads_lock);
    uint64_t n = calls_of(i);
    pthread_mutex_unlock(&threads_lock);
    return n;
  }
  return 0;
}

static void counts_path(char *path, size_t room, const char *pattern)
{
  const char *p = strstr(pattern, "%p");
  if (p)
    (void)snprintf(path, room, "%.*s%ld%s", (int)(p - pattern), pattern, (long)getpid(), p + 2);
  else
    (void)snprintf(path, room, "%s", pattern);
}

/* Runs at exit; workers may still be running, so it takes nothing they hold. */
__attribute__((destructor)) static void write_counts(void)
{
  const char *pattern = getenv("WEIR_SIM_COUNTS");
  if (!pattern || !*pattern || !counts_are_ours) return;
  char path[4096];
  counts_path(path, sizeof path, pattern);
  FILE *f = fopen(path, "we");
  if (!f) return;
  pthread_mutex_lock(&threads_lock);
  for (unsigned i = 0; i < SIM_API_COUNT; i++) {
    uint64_t n = calls_of(i);
    if (n) (void)fprintf(f, "%s %llu\n", sim_api_names[i], (unsigned long long)n);
  }
  pthread_mutex_unlock(&threads_lock);
  if (fclose(f)) sim_print_once(NULL, "weir sim: cannot write the counts to %s", path);
}
