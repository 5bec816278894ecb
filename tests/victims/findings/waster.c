/* waster.c: a program that commits one waste, or its twin, which looks like it and commits none.
 *
 *   waster ID [twin]      ID: of the rule that finds it
 *   waster ID unfixed|fixed TIMES
 *                         so many rounds of a waste, or of the same work without it; prints the ns
 *                         that they take
 *   waster innocent NAME  what is no waste
 *   WASTER_THREADS=N      in the environment: N threads each commit the waste
 *   waster list           prints the ids, and options of weir run behind those that need them
 */
#include <pthread.h>
#include "tests/victims/findings/waster.h"

static const waster *const tables[] = {
    block_wasters,  content_wasters, copy_wasters, device_wasters, habit_wasters,
    kernel_wasters, launch_wasters,  link_wasters, memory_wasters, pool_wasters,
    step_wasters,   upload_wasters,  wait_wasters};

char *device_memory(size_t bytes)
{
  char *p;
  CHECK(cudaMalloc((void **)&p, bytes));
  return p;
}

char *pinned_memory(size_t bytes)
{
  char *p;
  CHECK(cudaMallocHost((void **)&p, bytes));
  memset(p, 0, bytes);
  return p;
}

/* A name of a function, with '-' for '_'. */
static int is_named(const char *id, const char *function)
{
  while (*id && (*id == *function || (*id == '-' && *function == '_')))
    id++, function++;
  return !*id && !*function;
}

/* false: there is no such one. */
static int run_repair(const char *id, int fixed, int times)
{
  for (const repair *r = repairs; r->name; r++)
    if (is_named(id, r->name)) {
      r->work(fixed, times);
      return 1;
    }
  return 0;
}

static int run_innocent(const char *name)
{
  for (const innocent *i = innocents; i->name; i++)
    if (!strcmp(name, i->name)) {
      i->run();
      return 1;
    }
  return 0;
}

enum { MOST_THREADS = 8 };

static void *run_in_thread(void *work)
{
  (*(void (**)(void))work)();
  return NULL;
}

static void run_in_threads(void (*work)(void), int count)
{
  pthread_t threads[MOST_THREADS];
  for (int i = 0; i < count && i < MOST_THREADS; i++)
    if (pthread_create(&threads[i], NULL, run_in_thread, (void *)&work)) exit(1);
  for (int i = 0; i < count && i < MOST_THREADS; i++)
    (void)pthread_join(threads[i], NULL);
}

/* Visible, for by_python.py. */
__attribute__((visibility("default"))) int main(int argc, char **argv)
{
  const char *id = argc > 1 ? argv[1] : "";
  if (argc > 2 && !strcmp(id, "innocent")) return !run_innocent(argv[2]);
  if (argc > 3) return !run_repair(id, !strcmp(argv[2], "fixed"), atoi(argv[3]));
  for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
    for (const waster *w = tables[t]; w->id; w++) {
      if (!strcmp(id, "list"))
        printf("%s%s%s\n", w->id, w->options ? " " : "", w->options ? w->options : "");
      if (strcmp(id, w->id) != 0) continue;
      const char *threads = getenv("WASTER_THREADS");
      void (*work)(void) = argc > 2 && !strcmp(argv[2], "twin") ? w->twin : w->waste;
      if (threads)
        run_in_threads(work, atoi(threads));
      else
        work();
      return 0;
    }
  return strcmp(id, "list") != 0;
}
