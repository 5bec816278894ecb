/* engine_order.c: rows 13 to 23, 28, 29, 31 and 35: the order of work, memory, and what CUDA there
 * is. A stream is held by a gate (engine.h) where something must not have happened yet. */
#include "tests/gpu/engine.h"

#include <sys/wait.h>
#include <unistd.h>

enum { N = 1 << 20 }; /* elements: 4 MiB of float32 */

static weir_stream *side_stream(void)
{
  weir_stream *s;
  MUST(weir_stream_new(&s, CUDA, 0));
  return s;
}

/* What is made once is made before a stream is held, for the driver may wait for all streams then:
 * kernels' code, and memory for `count` elements three times in the stream's order. */
static void warm(weir_stream *stream, int64_t count)
{
  WEIR_WITH_STREAM(stream)
  {
    weir_tensor *a = full_of(1, count), *b, *c;
    MUST(weir_add(&b, a, a));
    MUST(weir_add_(b, a));
    MUST(weir_sum(&c, b));
    weir_tensor_release(a);
    weir_tensor_release(b);
    weir_tensor_release(c);
  }
  MUST(weir_synchronize(CUDA));
}

/* A tensor over addresses that are reserved and hold no memory: who touches it fails, late. */
static weir_tensor *untouchable(void)
{
  int (*reserve)(uint64_t *, size_t, size_t, uint64_t, unsigned long long);
  uint64_t space = 0;
  weir_tensor *t = NULL;
  *(void **)&reserve = driver("cuMemAddressReserve");
  enter_context();
  HOLDS(reserve(&space, 2 << 20, 0, 0, 0) == 0);
  MUST(weir_tensor_over(&t, (void *)(uintptr_t)space, weir_shape(64), NULL, AS(WEIR_FLOAT32, CUDA),
                        NULL, NULL));
  return t;
}

/* In a child, since the error ends CUDA in its process; 0: as it should be. */
static int fails_late(int blocking)
{
  pid_t child = fork();
  if (!child) {
    weir_tensor *good = full_of(1, 64), *bad, *out = NULL;
    weir_set_launch_blocking(blocking);
    MUST(weir_add(&out, good, good));
    MUST(weir_synchronize(CUDA));
    bad = untouchable();
    weir_status at_once = weir_mul(&out, good, bad);
    if (blocking) {
      HOLDS(at_once == WEIR_ECUDA);
      HOLDS(strncmp(weir_error_message(), "mul: ", 5) == 0);
    } else {
      if (at_once) note("the launch itself said so; ");
      HOLDS(weir_synchronize(CUDA) == WEIR_ECUDA);
      HOLDS(strstr(weir_error_message(), "mul") != NULL);
    }
    _exit(0);
  }
  int status = 1;
  (void)waitpid(child, &status, 0);
  return status;
}

void row_asynchrony(void)
{
  if (fails_late(0) || fails_late(1)) fail_row(__FILE__, __LINE__, "of a late error");
  weir_stream *side = side_stream();
  weir_tensor *a = NULL, *b = NULL;
  warm(side, N);
  WEIR_WITH_STREAM(side)
  {
    a = full_of(1, N);
    MUST(weir_stream_synchronize(side));
    close_gate(side);
    MUST(weir_add(&b, a, a)); /* returns at once */
    HOLDS(!done(side));
  }
  open_gate();
  MUST(weir_stream_synchronize(side));
  HOLDS(first(b) == 2);
  weir_set_launch_blocking(true);
  WEIR_WITH_STREAM(side) MUST(weir_add(&a, b, b));
  HOLDS(done(side));
}

void row_streams(void)
{
  weir_stream *plain, *side = side_stream(), *high, *current, *outer, *own;
  weir_device d;
  int priority, least, greatest;
  void *native;
  MUST(weir_default_stream(&plain, CUDA));
  MUST(weir_stream_priority_range(&least, &greatest, CUDA));
  HOLDS(least == 0 && greatest < 0);
  MUST(weir_stream_new(&high, CUDA, -1));
  MUST(weir_stream_priority(&priority, high));
  HOLDS(priority == -1);
  REFUSED(WEIR_EINVAL, "Expected cuda stream priority to be less than or equal to 0, got 1",
          weir_stream_new(&high, CUDA, 1));
  WEIR_WITH_STREAM(side)
  {
    MUST(weir_current_stream(&current, CUDA));
    MUST(weir_current_device(&d));
    HOLDS(current == side && weir_device_index(d) == 0);
  }
  MUST(weir_current_stream(&current, CUDA));
  HOLDS(current == plain);
  warm(side, N);
  close_gate(side);
  HOLDS(!done(side) && done(plain));
  MUST(weir_stream_wait_stream(plain, side));
  HOLDS(!done(plain));
  open_gate();
  MUST(weir_stream_synchronize(plain));
  HOLDS(done(side));
  MUST(weir_stream_create(&own, CUDA));
  MUST(weir_stream_native(&native, own));
  MUST(weir_stream_from_native(&outer, CUDA, native));
  WEIR_WITH_STREAM(outer) HOLDS(first(full_of(3, 9)) == 3);
}

void row_events(void)
{
  weir_event *start, *end, *plain;
  weir_event_options timed = {.enable_timing = true};
  weir_stream *side = side_stream();
  double ms = 0;
  bool reached = true;
  warm(side, N);
  MUST(weir_event_new(&start, &timed));
  MUST(weir_event_new(&end, &timed));
  MUST(weir_event_new(&plain, NULL));
  MUST(weir_event_record(plain, side));
  REFUSED(WEIR_EINVAL, "Both events must be created with timing enabled",
          weir_event_elapsed_time(&ms, start, plain));
  REFUSED(WEIR_EINVAL, "Both events must be recorded before calculating elapsed time.",
          weir_event_elapsed_time(&ms, start, end));
  WEIR_WITH_STREAM(side)
  {
    weir_tensor *a = full_of(1, N), *b;
    MUST(weir_event_record(start, NULL));
    close_gate(side);
    MUST(weir_add(&b, a, a));
    MUST(weir_event_record(end, NULL));
    MUST(weir_event_query(&reached, end));
    HOLDS(!reached);
    REFUSED(WEIR_EINVAL, "Both events must be completed before calculating elapsed time.",
            weir_event_elapsed_time(&ms, start, end));
  }
  open_gate();
  MUST(weir_event_synchronize(end));
  MUST(weir_event_elapsed_time(&ms, start, end));
  HOLDS(ms > 0);
}

/* The notes' example: one stream fills, another sums; what the other saw. */
static double sum_seen(int cured)
{
  weir_stream *maker = side_stream(), *reader = side_stream();
  weir_tensor *a = NULL, *sum = NULL;
  warm(reader, N);
  a = full_of(1, N);
  MUST(weir_synchronize(CUDA));
  close_gate(maker);
  WEIR_WITH_STREAM(maker) MUST(weir_fill_(a, weir_float(2)));
  WEIR_WITH_STREAM(reader)
  {
    if (cured) MUST(weir_stream_wait_stream(reader, maker));
    MUST(weir_sum(&sum, a));
    if (!cured) MUST(weir_stream_synchronize(reader));
    if (cured) HOLDS(!done(reader));
  }
  open_gate();
  MUST(weir_synchronize(CUDA));
  return first(sum) / N;
}

void row_race(void)
{
  HOLDS(sum_seen(0) == 1);
  HOLDS(sum_seen(1) == 2);
}

void row_caching(void)
{
  weir_stream *side = side_stream();
  weir_tensor *a = NULL, *b = NULL;
  uint64_t before, after, total;
  weir_memory_stats stats;
  warm(side, 8 << 20);
  WEIR_WITH_STREAM(side)
  {
    a = full_of(1, 8 << 20);
    void *at = weir_tensor_data(a);
    MUST(weir_stream_synchronize(side));
    close_gate(side);
    MUST(weir_add_(a, a));
    weir_tensor_release(a);
    MUST(weir_empty(&b, weir_shape(8 << 20), AS(WEIR_FLOAT32, CUDA)));
    HOLDS(weir_tensor_data(b) == at && !done(side)); /* the same stream: at once */
  }
  open_gate();
  MUST(weir_synchronize(CUDA));
  MUST(weir_mem_get_info(&before, &total, CUDA));
  weir_tensor_release(b);
  MUST(weir_mem_get_info(&after, &total, CUDA));
  HOLDS(after <= before + (16 << 20)); /* kept, others see it used */
  MUST(weir_memory_get_stats(&stats, CUDA));
  HOLDS(stats.reserved_bytes >= 32 << 20);
  REFUSED(WEIR_EOOM, "CUDA out of memory. Tried to allocate ",
          weir_empty(&a, weir_shape((int64_t)(total / 2)), AS(WEIR_FLOAT32, CUDA)));
  HOLDS(strstr(weir_error_message(), "GPU 0 has a total capacity of ") != NULL);
}

void row_statistics(void)
{
  uint64_t before = weir_memory_allocated(CUDA), free_bytes, total;
  weir_tensor *a = full_of(1, N);
  char *table;
  HOLDS(weir_memory_allocated(CUDA) == before + ((uint64_t)N << 2));
  HOLDS(weir_memory_reserved(CUDA) >= weir_memory_allocated(CUDA));
  weir_tensor_release(a);
  HOLDS(weir_memory_allocated(CUDA) == before);
  HOLDS(weir_max_memory_allocated(CUDA) >= before + ((uint64_t)N << 2));
  MUST(weir_memory_reset_peak(CUDA));
  HOLDS(weir_max_memory_allocated(CUDA) == before);
  MUST(weir_mem_get_info(&free_bytes, &total, CUDA));
  HOLDS(free_bytes > 0 && free_bytes <= total);
  MUST(weir_memory_summary(&table, CUDA, false));
  HOLDS(strstr(table, "Allocated memory") != NULL);
  REFUSED(WEIR_EINVAL, "Invalid fraction value: 2.0", weir_memory_set_fraction(CUDA, 2.0));
}

void row_empty_cache(void)
{
  weir_tensor *kept = full_of(5, N), *freed = full_of(1, 64 << 20);
  weir_tensor_release(freed);
  MUST(weir_synchronize(CUDA));
  uint64_t before = weir_memory_reserved(CUDA);
  MUST(weir_memory_empty_cache(CUDA));
  HOLDS(weir_memory_reserved(CUDA) + (255 << 20) <= before);
  HOLDS(first(kept) == 5);
}

void row_record_stream(void)
{
  weir_stream *side = side_stream();
  weir_tensor *a = NULL, *b = NULL, *c = NULL;
  warm(NULL, 8 << 20);
  a = full_of(1, 8 << 20);
  void *at = weir_tensor_data(a);
  MUST(weir_synchronize(CUDA));
  close_gate(side);
  MUST(weir_tensor_record_stream(a, side));
  weir_tensor_release(a);
  MUST(weir_empty(&b, weir_shape(8 << 20), AS(WEIR_FLOAT32, CUDA)));
  HOLDS(weir_tensor_data(b) != at);
  open_gate();
  MUST(weir_synchronize(CUDA));
  for (int i = 0; i < 8; i++) { /* its work is done: it comes back */
    MUST(weir_empty(&c, weir_shape(8 << 20), AS(WEIR_FLOAT32, CUDA)));
    if (weir_tensor_data(c) == at) return;
  }
  fail_row(__FILE__, __LINE__, "the block never came back");
}

void row_history(void)
{
  char *json, path[] = "/tmp/weir-snapshot-XXXXXX";
  MUST(weir_zeros(&(weir_tensor *){NULL}, weir_shape(4), ON(CUDA)));
  MUST(weir_memory_record_history(CUDA, WEIR_HISTORY_ALL, WEIR_CONTEXT_ALL, 0));
  weir_tensor *a = full_of(1, N);
  MUST(weir_memory_snapshot(&json, CUDA));
  HOLDS(strstr(json, "\"device_traces\"") && strstr(json, "\"segments\""));
  HOLDS(strstr(json, "\"frames\"") != NULL);
  int fd = mkstemp(path);
  HOLDS(fd >= 0);
  MUST(weir_memory_dump_snapshot(path));
  HOLDS(lseek(fd, 0, SEEK_END) >= 0 && access(path, R_OK) == 0);
  (void)close(fd);
  (void)unlink(path);
  weir_tensor_release(a);
}

void row_pinning(void)
{
  weir_tensor *a = numbers(WEIR_FLOAT32, weir_shape(1000), 1), *p, *again;
  MUST(weir_pin_memory(&p, a));
  HOLDS(weir_tensor_is_pinned(p) && !weir_tensor_is_pinned(a) && !weir_tensor_is_cuda(p));
  MUST(weir_pin_memory(&again, p));
  HOLDS(again == p);
  alike("pinned", a, there(p), 0, 0);
  REFUSED(WEIR_EINVAL, "cannot pin 'weir.cuda.FloatTensor' only dense CPU tensors can be pinned",
          weir_pin_memory(&again, there(a)));
}

void row_non_blocking(void)
{
  weir_stream *side = side_stream();
  weir_tensor *a = numbers(WEIR_FLOAT32, weir_shape(N), 1),
              *b = numbers(WEIR_FLOAT32, weir_shape(N), 2);
  weir_tensor *p = NULL, *q = NULL, *x = NULL, *next = NULL;
  bool pinned = true;
  MUST(weir_pin_memory(&p, a));
  MUST(weir_pin_memory(&next, b)); /* its memory is at hand again */
  weir_tensor_release(next);
  warm(side, N);
  MUST(weir_empty(&q, weir_shape(N), &(weir_options){.device = CPU, .pin_memory = true}));
  MUST(weir_fill_(q, weir_float(-77)));
  WEIR_WITH_STREAM(side)
  {
    MUST(weir_empty(&x, weir_shape(N), AS(WEIR_FLOAT32, CUDA)));
    close_gate(side);
    MUST(weir_copy_(x, p, true)); /* both return while the stream is held */
    MUST(weir_copy_(q, x, true));
    HOLDS(!done(side) && first(q) == -77);
    void *at = weir_tensor_data(p);
    weir_tensor_release(p); /* not reused before the copy is done */
    MUST(weir_pin_memory(&next, b));
    HOLDS(weir_tensor_data(next) != at);
  }
  open_gate();
  MUST(weir_stream_synchronize(side));
  alike("pinned, to the device and back", a, q, 0, 0);
  MUST(weir_is_pinned(&pinned, weir_tensor_data(a)));
  HOLDS(!pinned);
  WEIR_WITH_STREAM(side) MUST(weir_copy_(x, a, true)); /* pageable: complete, or read already */
  MUST(weir_fill_(a, weir_float(0)));
  HOLDS(first(x) != 0);
}

/* ---- what CUDA there is ---------------------------------------------------------------------- */

/* Devices that a process sees with these variable's values. */
static int seen_with(const char *visible)
{
  int ends[2], n = -1;
  HOLDS(!pipe(ends));
  pid_t child = fork();
  if (!child) {
    if (visible) (void)setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    (void)weir_cuda_device_count(&n);
    (void)!write(ends[1], &n, sizeof n);
    _exit(0);
  }
  (void)close(ends[1]);
  HOLDS(read(ends[0], &n, sizeof n) == sizeof n);
  (void)close(ends[0]);
  (void)waitpid(child, NULL, 0);
  return n;
}

/* Device 0's identity, as CUDA_VISIBLE_DEVICES takes it. */
static void identity(char *out)
{
  int ends[2];
  weir_cuda_device_properties p;
  HOLDS(!pipe(ends));
  pid_t child = fork();
  if (!child) {
    if (weir_cuda_get_device_properties(&p, 0)) _exit(1);
    (void)!write(ends[1], p.uuid, sizeof p.uuid);
    _exit(0);
  }
  (void)close(ends[1]);
  HOLDS(read(ends[0], p.uuid, sizeof p.uuid) == sizeof p.uuid);
  (void)close(ends[0]);
  (void)waitpid(child, NULL, 0);
  out += sprintf(out, "GPU-");
  for (size_t i = 0; i < sizeof p.uuid; i++)
    out += sprintf(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", p.uuid[i]);
}

void row_visibility(void)
{
  char name[64];
  int all = seen_with(NULL);
  HOLDS(all > 0);
  HOLDS(seen_with("") == 0);
  HOLDS(seen_with("0,99") == 1);
  HOLDS(seen_with("-1,0") == 0);
  identity(name);
  HOLDS(seen_with(name) == 1);
  if (all == 1) name[12] = 0; /* a prefix will do where it names one device */
  HOLDS(seen_with(name) == 1);
  note("%d device%s, %s", all, all == 1 ? "" : "s", name);
}

void row_availability(void)
{
  int status = 1;
  HOLDS(!weir_cuda_is_initialized());
  HOLDS(weir_cuda_is_available() && device_count() > 0);
  MUST(weir_cuda_init());
  HOLDS(weir_cuda_is_initialized());
  HOLDS(first(full_of(1, 4)) == 1);
  pid_t child = fork();
  if (!child) {
    weir_tensor *t = NULL;
    weir_status st = weir_zeros(&t, weir_shape(1), ON(CUDA));
    _exit(!(st == WEIR_ECUDA &&
            strstr(weir_error_message(), "Cannot re-initialize CUDA in forked subprocess")));
  }
  (void)waitpid(child, &status, 0);
  HOLDS(status == 0);
}

/* ---- graphs, hooks --------------------------------------------------------------------------- */

/* Replays draw what the calls would. */
static void draws_in_a_graph(weir_stream *side)
{
  weir_graph *g;
  weir_tensor *x = full_of(0, N);
  float drawn[3];
  weir_manual_seed(3);
  for (int i = 0; i < 3; i++) {
    MUST(weir_normal_(x, 0, 1, NULL));
    drawn[i] = first(x);
  }
  weir_manual_seed(3);
  MUST(weir_graph_new(&g));
  MUST(weir_stream_wait_stream(side, NULL));
  WEIR_WITH_STREAM(side)
  {
    MUST(weir_graph_capture_begin(g, NULL, WEIR_CAPTURE_GLOBAL));
    MUST(weir_normal_(x, 0, 1, NULL));
    MUST(weir_graph_capture_end(g));
  }
  for (int i = 0; i < 3; i++) {
    MUST(weir_graph_replay(g));
    HOLDS(first(x) == drawn[i]);
  }
  weir_graph_release(g);
}

void row_graphs(void)
{
  weir_graph *g;
  weir_stream *side = side_stream();
  weir_tensor *x = full_of(1, N), *y = NULL, *twice = NULL;
  MUST(weir_graph_new(&g));
  REFUSED(WEIR_EINVAL, "CUDA graphs must be captured on a non-default stream",
          weir_graph_capture_begin(g, NULL, WEIR_CAPTURE_GLOBAL));
  warm(NULL, N);
  MUST(weir_add_scalar(&twice, x, weir_float(1)));
  MUST(weir_stream_wait_stream(side, NULL));
  WEIR_WITH_STREAM(side)
  {
    MUST(weir_graph_capture_begin(g, NULL, WEIR_CAPTURE_GLOBAL));
    MUST(weir_mul_scalar(&twice, x, weir_float(2)));
    MUST(weir_add_scalar(&y, twice, weir_float(1)));
    MUST(weir_graph_capture_end(g));
  }
  for (int i = 0; i < 5; i++) {
    MUST(weir_fill_(x, weir_float(i)));
    MUST(weir_graph_replay(g));
    HOLDS(first(y) == 2 * i + 1);
  }
  weir_graph_release(g);
  HOLDS(first(y) == 9); /* its pool lives as long as the tensor */
  draws_in_a_graph(side);
}

static void count_memory_action(void *user, const weir_memory_event *event)
{
  int *seen = user;
  if (event->action >= WEIR_MEMORY_ALLOC && event->action <= WEIR_MEMORY_SEGMENT_UNMAP)
    seen[event->action]++;
}

void row_hooks(void)
{
  int seen[5] = {0};
  MUST(weir_memory_set_callback(count_memory_action, seen));
  void *p = weir_torch_malloc(1 << 20, 0, NULL), *again;
  HOLDS(p);
  weir_torch_record_stream(p, NULL);
  weir_torch_free(p, 1 << 20, 0, NULL);
  again = weir_torch_malloc(1 << 20, 0, NULL);
  HOLDS(again == p);
  weir_torch_free(again, 1 << 20, 0, NULL);
  HOLDS(!weir_torch_malloc(0, 0, NULL));
  MUST(weir_memory_set_callback(NULL, NULL));
  HOLDS(seen[WEIR_MEMORY_ALLOC] == 2 && seen[WEIR_MEMORY_FREE] == 2 &&
        seen[WEIR_MEMORY_SEGMENT_MAP]);
}
