/* innocents.c: programs without waste, as people write them, in one executable.
 *
 *   innocents NAME [THREADS]   runs one, in so many threads side by side
 *   innocents list             prints their names */
#include "tests/innocents/innocents.h"
#include <pthread.h>

enum { MOST_THREADS = 8 };

static const program *const tables[] = {samples, solvers, servers, applications, loners};
static _Atomic unsigned seed;
static volatile float seen;

float *device_floats(size_t bytes)
{
  void *p;
  CHECK(cudaMalloc(&p, bytes));
  return p;
}

void fill(float *p, size_t bytes)
{
  unsigned x = ++seed;
  for (size_t i = 0; i < bytes / sizeof(float); i++)
    p[i] = (float)((x = x * 1664525U + 1013904223U) >> 8) / (1 << 24);
}

void look(const float *p, size_t bytes)
{
  float all = 0;
  for (size_t i = 0; i < bytes / sizeof(float); i++)
    all += p[i];
  seen = all;
}

float *pinned_floats(size_t bytes)
{
  void *p;
  CHECK(cudaMallocHost(&p, bytes));
  fill(p, bytes);
  return p;
}

float *host_floats(size_t bytes)
{
  float *p = malloc(bytes);
  if (!p) exit(1);
  fill(p, bytes);
  return p;
}

cudaStream_t new_stream(void)
{
  cudaStream_t s;
  CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  return s;
}

cudaEvent_t new_event(void)
{
  cudaEvent_t e;
  CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  return e;
}

static void *run_program(void *p)
{
  ((const program *)p)->run();
  return NULL;
}

static void run_in_threads(const program *p, int count)
{
  pthread_t threads[MOST_THREADS];
  if (count > MOST_THREADS) exit(2);
  for (int i = 0; i < count; i++)
    if (pthread_create(&threads[i], NULL, run_program, (void *)p)) exit(1);
  for (int i = 0; i < count; i++)
    (void)pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
  const char *name = argc > 1 ? argv[1] : "";
  for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
    for (const program *p = tables[t]; p->name; p++) {
      if (!strcmp(name, "list")) puts(p->name);
      if (strcmp(name, p->name) != 0) continue;
      if (argc > 2 && tables[t] != loners)
        run_in_threads(p, atoi(argv[2]));
      else
        p->run();
      return 0;
    }
  return strcmp(name, "list") != 0;
}
