/* probe.c: a program that uses CUDA through libweir.so and says what it found; run by test_open.
 *
 *   probe WHAT...    each prints a line: "STATUS NUMBER" and, after a failure, the sentence
 *
 * available, count, properties, uuids, init, peers, malloc, second (malloc on cuda:1), detach;
 * race: 16 threads make the first use at once; fork: the parent uses CUDA, then its child tries
 * everything, with threads of the parent in the middle of slow paths meanwhile (AddressSanitizer's
 * allocator stays locked in a child forked then: its build has no such threads); child: the first
 * use is in a child. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/base/compiler.h"
#include "core/weir.h"

enum { THREADS = 16, BYTES = 3 << 20, CHILDREN = 40, BUSY = WEIR_ASAN ? 0 : 2 };

static const weir_device cuda0 = WEIR_CUDA_INIT(0), cuda1 = WEIR_CUDA_INIT(1);

static void print_outcome(weir_status st, long long number)
{
  printf("%d %lld %s\n", (int)st, number, st ? weir_error_message() : "");
  (void)fflush(stdout);
}

static void malloc_on(weir_device device)
{
  void *out = NULL;
  weir_status st = weir_malloc(&out, BYTES, device, NULL);
  print_outcome(st ? st : weir_free(out), BYTES);
}

static void *first_use(void *go)
{
  void *out;
  pthread_barrier_wait(go);
  return weir_malloc(&out, BYTES, cuda0, NULL) || weir_free(out) ? go : NULL;
}

static void race_first_use(void)
{
  pthread_barrier_t go;
  pthread_t ids[THREADS];
  int failed = 0;
  pthread_barrier_init(&go, NULL, THREADS);
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&ids[i], NULL, first_use, &go)) _exit(1);
  for (int i = 0; i < THREADS; i++) {
    void *bad;
    pthread_join(ids[i], &bad);
    failed += bad != NULL;
  }
  print_outcome(WEIR_OK, failed);
}

/* ---- fork ------------------------------------------------------------------------------------ */

static _Atomic bool enough;

static void *keep_allocator_busy(void *unused)
{
  char *text;
  void *out;
  while (!atomic_load(&enough)) {
    if (!weir_malloc(&out, BYTES, cuda0, NULL)) (void)weir_free(out);
    (void)weir_memory_empty_cache(cuda0);
    if (!weir_memory_summary(&text, cuda0, false)) free(text);
  }
  return unused;
}

static bool refused(weir_status st)
{
  return st == WEIR_ECUDA &&
         strstr(weir_error_message(), "Cannot re-initialize CUDA in forked subprocess");
}

/* How many of the calls were not refused as they should be. */
static int count_calls_let_through(void *small, void *large, weir_stream *stream,
                                   weir_graph_pool *graph)
{
  void *out;
  weir_stream *stream_of_child;
  int n, bad = 0;
  char *text;
  weir_memory_stats stats;
  weir_graph_pool_stats of_graph;
  weir_cuda_device_properties p;
  bool yes;
  weir_event *event;
  bad += weir_cuda_is_available();
  bad += !refused(weir_cuda_init()) || weir_cuda_is_initialized();
  bad += !refused(weir_can_access_peer(&yes, cuda0, cuda1));
  bad += !refused(weir_default_stream(&stream_of_child, cuda0));
  bad += !refused(weir_stream_new(&stream_of_child, cuda0, 0));
  bad += !refused(weir_stream_wait_stream(stream, NULL));
  bad += !refused(weir_stream_query(&yes, stream)) || !refused(weir_stream_synchronize(NULL));
  bad += !refused(weir_synchronize(cuda0));
  bad += weir_event_new(&event, NULL) != WEIR_OK || !refused(weir_event_record(event, stream));
  bad += !refused(weir_event_query(&yes, event)) || !refused(weir_event_wait(event, NULL));
  weir_event_release(event);
  bad += !refused(weir_cuda_device_count(&n)) || n != 0;
  bad += !refused(weir_cuda_get_device_properties(&p, 0));
  bad += !refused(weir_malloc(&out, 1000, cuda0, NULL));
  bad += !refused(weir_malloc(&out, BYTES, cuda0, stream));
  bad += !refused(weir_malloc(&out, BYTES, cuda1, NULL));
  bad += !refused(weir_free(small));
  bad += !refused(weir_free(large));
  bad += !refused(weir_record_stream(large, stream));
  bad += !refused(weir_stream_waited(stream, stream));
  bad += !refused(weir_stream_from_native(&stream, cuda0, NULL));
  bad += !refused(weir_memory_empty_cache(cuda0));
  bad += !refused(weir_memory_get_stats(&stats, cuda0));
  bad += !refused(weir_memory_summary(&text, cuda0, false));
  bad += !refused(weir_graph_pool_begin(graph, stream));
  bad += !refused(weir_graph_pool_end(graph, stream));
  bad += !refused(weir_graph_pool_get_stats(&of_graph, graph));
  bad += !refused(weir_graph_pool_release(graph));
  bad += weir_pinned_malloc(&out, 1000) == WEIR_OK;
  bad += !refused(weir_memory_detach(cuda0));
  bad += weir_memory_set_tag("child") != WEIR_OK;
  return bad;
}

static void *fork_from_thread(void *unused)
{
  void *small, *large;
  weir_stream *stream;
  weir_graph_pool *graph;
  if (weir_graph_pool_create(&graph, cuda0) || weir_malloc(&small, 1000, cuda0, NULL) ||
      weir_malloc(&large, BYTES, cuda0, NULL) || weir_stream_from_native(&stream, cuda0, NULL))
    _exit(1);
  pid_t pid = fork();
  if (!pid) {
    int bad = count_calls_let_through(small, large, stream, graph);
    if (bad) _exit(bad);
    pthread_exit(NULL); /* its destructors run too; the last thread's end is exit(0) */
  }
  int status = -1;
  (void)waitpid(pid, &status, 0);
  if (weir_free(small) || weir_free(large) || weir_graph_pool_release(graph)) status = -1;
  return status ? &enough : unused;
}

static void fork_while_busy(void)
{
  pthread_t ids[2], forker;
  int failed = 0;
  malloc_on(cuda0);
  for (int i = 0; i < BUSY; i++)
    if (pthread_create(&ids[i], NULL, keep_allocator_busy, NULL)) _exit(1);
  for (int i = 0; i < CHILDREN; i++) {
    void *bad;
    if (pthread_create(&forker, NULL, fork_from_thread, NULL)) _exit(1);
    pthread_join(forker, &bad);
    failed += bad != NULL;
  }
  atomic_store(&enough, true);
  for (int i = 0; i < BUSY; i++)
    pthread_join(ids[i], NULL);
  print_outcome(WEIR_OK, failed);
}

static void use_in_child(void)
{
  int status = -1;
  (void)fflush(stdout);
  pid_t pid = fork();
  if (!pid) {
    malloc_on(cuda0);
    _exit(0);
  }
  (void)waitpid(pid, &status, 0);
  print_outcome(WEIR_OK, status);
}

static void properties(void)
{
  weir_cuda_device_properties p;
  weir_status st = weir_cuda_get_device_properties(&p, 0);
  print_outcome(st, st ? 0 : (long long)p.total_memory);
  if (!st)
    printf("%s, capability %d.%d, %d multiprocessors, warps of %d, uuid %02x%02x\n", p.name,
           p.major, p.minor, p.multi_processor_count, p.warp_size, p.uuid[0], p.uuid[15]);
  print_outcome(weir_cuda_get_device_properties(&p, 99), 99);
  print_outcome(weir_cuda_get_device_properties(&p, -1), -1);
}

/* What opening CUDA by name does: nothing before it, nothing twice. */
static void init_cuda_twice(void)
{
  printf("%d ", weir_cuda_is_initialized());
  weir_status first = weir_cuda_init(), again = weir_cuda_init();
  printf("%d %d %d\n", (int)first, (int)again, weir_cuda_is_initialized());
}

/* Who reaches whose memory, a line a device. */
static void peers(void)
{
  int n = 0;
  (void)weir_cuda_device_count(&n);
  for (int i = 0; i < n; i++) {
    for (int k = 0; k < n; k++) {
      bool yes;
      weir_device a = WEIR_CUDA_AT(i), b = WEIR_CUDA_AT(k);
      printf("%d", weir_can_access_peer(&yes, a, b) ? -1 : yes);
    }
    printf("\n");
  }
  bool yes = true;
  weir_status none = weir_can_access_peer(&yes, cuda0, WEIR_CUDA_AT(99));
  print_outcome(none, yes);
}

/* The number of devices, then their UUIDs as nvidia-smi prints them. */
static void uuids(void)
{
  int n = -1;
  (void)weir_cuda_device_count(&n);
  printf("%d devices\n", n);
  for (int i = 0; i < n; i++) {
    weir_cuda_device_properties p;
    if (weir_cuda_get_device_properties(&p, i)) return;
    for (int k = 0; k < 16; k++)
      printf("%s%02x", k == 4 || k == 6 || k == 8 || k == 10 ? "-" : "", p.uuid[k]);
    printf("\n");
  }
}

int main(int argc, char **argv)
{
  for (int i = 1; i < argc; i++) {
    const char *what = argv[i];
    int n = -1;
    if (!strcmp(what, "available")) {
      bool there = weir_cuda_is_available();
      printf("%d %s\n", there, there ? "" : weir_error_message());
    }
    if (!strcmp(what, "count")) {
      weir_status st = weir_cuda_device_count(&n);
      print_outcome(st, n);
    }
    if (!strcmp(what, "properties")) properties();
    if (!strcmp(what, "uuids")) uuids();
    if (!strcmp(what, "init")) init_cuda_twice();
    if (!strcmp(what, "peers")) peers();
    if (!strcmp(what, "malloc")) malloc_on(cuda0);
    if (!strcmp(what, "second")) malloc_on(cuda1);
    if (!strcmp(what, "detach")) print_outcome(weir_memory_detach(cuda0), 0);
    if (!strcmp(what, "race")) race_first_use();
    if (!strcmp(what, "fork")) fork_while_busy();
    if (!strcmp(what, "child")) use_in_child();
  }
  return 0;
}
