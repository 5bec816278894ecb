/* peers.c: Weir's models, and Weir, beside the real allocators of others.
 *
 *   peers memory POLICY PEER.so TRACE [SETTINGS]
 *       a row: peak reserved by the model and by the peer. SETTINGS: PYTORCH_ALLOC_CONF
 *   peers time PEER.so...
 *       a table: host time of each, and its ratio to the first
 *
 * A peer is a shared object (peer.h). memory: the list of operations goes through the model of
 * tools/replay and through the peer; exit status 1 where the two differ by more than 1 %. A peer
 * must see what the model assumes: the same capacity, and that the device has done its work by the
 * next allocation after a free which waits for it (policy.h), so the device is waited for there.
 * Beside the peer's own figure stands what the device gave, by cudaMemGetInfo().
 *
 * time: rounds in turns, every peer once a round; the median over the rounds, and the median of the
 * ratios within a round, which other load on the machine moves less. */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cuda_runtime_api.h>
#include "tests/peers/peer.h"
#include "tools/replay/read.h"
#include "tools/replay/replay.h"
#include "tools/bench/timing.h"

#define LIMIT 0.01 /* of the model's peak */

static void die_with(const char *what, const char *why)
{
  (void)fprintf(stderr, "peers: %s: %s\n", what, why);
  exit(2);
}

static void check_cuda(const char *what, cudaError_t status)
{
  if (status) die_with(what, cudaGetErrorString(status));
}

static const peer *load_peer(const char *path)
{
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) die_with("cannot load", dlerror());
  peer_get get;
  *(void **)&get = dlsym(library, "weir_peer");
  if (!get) die_with(path, "is no peer");
  const peer *p = get();
  if (p->open()) die_with(p->name, "did not begin");
  return p;
}

static void *new_stream(void)
{
  cudaStream_t stream;
  check_cuda("a stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

/* ---- memory ---------------------------------------------------------------------------------- */

typedef struct held {
  void *address; /* NULL: not held */
  void *stream;  /* it was allocated for */
} held;

typedef struct run {
  const peer *peer;
  hash_map streams; /* recorded handle -> our stream; 0 is the default stream in both */
  held *blocks;     /* by number */
  bool awaited;     /* a free since the last wait for the device that waits for an event */
  uint64_t failed;
  size_t least_free; /* bytes of the device, the least so far */
} run;

static void *stream_of(run *r, uint64_t handle)
{
  if (!handle) return NULL;
  bool added;
  uint64_t *place = hash_map_place(&r->streams, handle, &added);
  if (!place) die_with("a stream", "out of memory");
  if (added) *place = (uint64_t)(uintptr_t)new_stream();
  return (void *)(uintptr_t)*place;
}

/* Bytes; *capacity (may be NULL) are all there are. */
static size_t device_free(size_t *capacity)
{
  size_t unused, all;
  check_cuda("the device", cudaMemGetInfo(&unused, &all));
  if (capacity) *capacity = all;
  return unused;
}

static void run_op(run *r, const rp_op *op)
{
  if (op->kind == RP_REQUEST) return; /* the record's device refused it */
  held *b = &r->blocks[op->block];
  void *stream = stream_of(r, op->stream);
  if (op->kind == RP_FREE) {
    if (!b->address) return;
    r->peer->free(b->address, op->bytes, b->stream, stream);
    if (b->stream != stream) r->awaited = true;
    *b = (held){0};
    return;
  }
  if (r->awaited) check_cuda("waiting for the device", cudaDeviceSynchronize());
  r->awaited = false;
  *b = (held){r->peer->alloc(op->bytes, stream), stream};
  if (!b->address) r->failed++;
  size_t unused = device_free(NULL);
  if (unused < r->least_free) r->least_free = unused;
}

static void run_list(run *r, const rp_ops *ops)
{
  if (ops->heaps > 1) die_with("the list", "has several devices");
  r->blocks = calloc((size_t)ops->blocks + 1, sizeof *r->blocks);
  if (!r->blocks) die_with("the list", "out of memory");
  for (size_t i = 0; i < ops->count; i++)
    run_op(r, &ops->op[i]);
  free(r->blocks);
  hash_map_free(&r->streams);
}

static const char *base_name(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* The value of `key` in PyTorch's settings; 0: it is not there. */
static double read_setting(const char *settings, const char *key)
{
  const char *at = strstr(settings, key);
  return at ? strtod(at + strlen(key) + 1, NULL) : 0;
}

/* What of PyTorch's settings a model has to be told. */
static rp_options options_of(const char *settings, size_t capacity)
{
  double fraction = read_setting(settings, "per_process_memory_fraction");
  return (rp_options){.capacity = fraction > 0 ? (uint64_t)(fraction * (double)capacity) : capacity,
                      .max_split_size =
                          (uint64_t)read_setting(settings, "max_split_size_mb") * RP_MIB,
                      .gc_threshold = read_setting(settings, "garbage_collection_threshold")};
}

static int memory(const char *policy, const char *library, const char *path, const char *settings)
{
  static rp_result model;
  rp_ops ops = {0};
  size_t capacity;
  const rp_policy *known = rp_policy_find(policy);
  if (!known) die_with(policy, "is no policy of weir replay");
  if (rp_read(&ops, path)) die_with(path, weir_error_message());
  (void)device_free(&capacity);
  rp_options options = options_of(settings, capacity);
  if (rp_replay(&model, &ops, known, &options)) die_with(policy, weir_error_message());
  if (setenv("PYTORCH_ALLOC_CONF", settings, 1)) die_with("the settings", "cannot be set");
  run r = {.peer = load_peer(library)};
  size_t before = r.least_free = device_free(NULL);
  run_list(&r, &ops);
  double real = (double)r.peer->peak(), modelled = (double)model.peak_reserved;
  double difference = real > 0 ? (modelled - real) / real : 1;
  bool differs = difference > LIMIT || difference < -LIMIT || model.failed != r.failed;
  printf("%-19s %-12.*s %12.1f %12.1f %12.1f %9.2f %%%s\n", policy,
         (int)strcspn(base_name(path), "."), base_name(path), modelled / RP_MIB, real / RP_MIB,
         (double)(before - r.least_free) / RP_MIB, 100 * difference, differs ? "  DIFFERS" : "");
  if (model.failed != r.failed)
    printf("  failed allocations: model %" PRIu64 ", peer %" PRIu64 "\n", model.failed, r.failed);
  rp_ops_clear(&ops);
  (void)fflush(stdout);
  return differs;
}

/* ---- time ------------------------------------------------------------------------------------ */

enum { PEERS_MAX = 8, ROUNDS = 300, PAIRS = 256, LIVE = 100000, RANDOM_PAIRS = 32 };

typedef struct subject {
  const peer *peer;
  uint64_t seed;        /* of the random sizes */
  struct block *blocks; /* [LIVE] */
  double ns[ROUNDS];    /* a pair */
} subject;

typedef struct block {
  void *address;
  uint64_t bytes;
} block;

static double median(const double *values)
{
  double sorted[ROUNDS];
  memcpy(sorted, values, sizeof sorted);
  return median_of(sorted, ROUNDS);
}

static void *alloc_or_die(const peer *p, uint64_t bytes, void *stream)
{
  void *block = p->alloc(bytes, stream);
  if (!block) die_with(p->name, "out of memory");
  return block;
}

/* malloc and free of one size, on `stream`. */
static double time_pairs(const peer *p, void *stream)
{
  double begin = now_ns();
  for (int i = 0; i < PAIRS; i++)
    p->free(alloc_or_die(p, 1024, stream), 1024, stream, stream);
  return (now_ns() - begin) / PAIRS;
}

static double one_thread(subject *s)
{
  return time_pairs(s->peer, NULL);
}

static uint64_t some_bytes(uint64_t *seed)
{
  *seed ^= *seed << 13;
  *seed ^= *seed >> 7;
  *seed ^= *seed << 17;
  return 16 + (*seed >> 8) % (UINT64_C(512) << (*seed % 8));
}

/* One of LIVE blocks goes, another comes, 16 B to 64 KiB. */
static double random_sizes(subject *s)
{
  if (!s->blocks) {
    s->blocks = calloc(LIVE, sizeof *s->blocks);
    if (!s->blocks) die_with(s->peer->name, "out of host memory");
    s->seed = UINT64_C(88172645463325252);
    for (int i = 0; i < LIVE; i++) {
      uint64_t bytes = some_bytes(&s->seed);
      s->blocks[i] = (block){alloc_or_die(s->peer, bytes, NULL), bytes};
    }
  }
  double begin = now_ns();
  for (int i = 0; i < RANDOM_PAIRS; i++) {
    block *b = &s->blocks[some_bytes(&s->seed) * 0x9e3779b97f4a7c15 % LIVE];
    s->peer->free(b->address, b->bytes, NULL, NULL);
    b->bytes = some_bytes(&s->seed);
    b->address = alloc_or_die(s->peer, b->bytes, NULL);
  }
  return (now_ns() - begin) / RANDOM_PAIRS;
}

/* A second thread does the same on a stream of its own, as long as the first. */
typedef struct second {
  pthread_t thread;
  pthread_barrier_t turn; /* both stand here before a round, and after it */
  const peer *peer;       /* NULL: the end */
  void *stream[2];
  double ns; /* a pair of the second's */
} second;

static second other;

static void *second_main(void *unused)
{
  check_cuda("the device", cudaSetDevice(0));
  for (;;) {
    pthread_barrier_wait(&other.turn);
    if (!other.peer) return unused;
    other.ns = time_pairs(other.peer, other.stream[1]);
    pthread_barrier_wait(&other.turn);
  }
}

static double two_threads(subject *s)
{
  other.peer = s->peer;
  pthread_barrier_wait(&other.turn);
  double ns = time_pairs(s->peer, other.stream[0]);
  pthread_barrier_wait(&other.turn);
  return (ns + other.ns) / 2;
}

static const struct workload {
  const char *name;
  double (*round)(subject *);
} workloads[] = {
    {"malloc + free, hit", one_thread},
    {"100 k live, random sizes", random_sizes},
    {"two threads, hit", two_threads},
};

static void print_rows(const char *workload, const subject *subjects, int count)
{
  for (int i = 0; i < count; i++) {
    double ratio[ROUNDS];
    for (int r = 0; r < ROUNDS; r++)
      ratio[r] = subjects[i].ns[r] / subjects[0].ns[r];
    printf("%-25s %-10s %12.1f %9.2f\n", workload, subjects[i].peer->name, median(subjects[i].ns),
           median(ratio));
  }
  (void)fflush(stdout);
}

static int measure_times(int count, char **libraries)
{
  static subject subjects[PEERS_MAX];
  if (count > PEERS_MAX) die_with("time", "too many peers");
  for (int i = 0; i < count; i++)
    subjects[i].peer = load_peer(libraries[i]);
  (void)pthread_barrier_init(&other.turn, NULL, 2);
  for (int i = 0; i < 2; i++)
    other.stream[i] = new_stream();
  if (pthread_create(&other.thread, NULL, second_main, NULL)) die_with("a thread", "cannot begin");
  printf("%-25s %-10s %12s %9s\n", "host time", "allocator", "ns a pair", "ratio");
  for (size_t w = 0; w < sizeof workloads / sizeof *workloads; w++) {
    for (int r = -ROUNDS / 10; r < ROUNDS; r++)
      for (int i = 0; i < count; i++) {
        double ns = workloads[w].round(&subjects[i]);
        if (r >= 0) subjects[i].ns[r] = ns;
      }
    print_rows(workloads[w].name, subjects, count);
  }
  other.peer = NULL;
  pthread_barrier_wait(&other.turn);
  pthread_join(other.thread, NULL);
  for (int i = 0; i < count; i++)
    free(subjects[i].blocks);
  return 0;
}

int main(int argc, char **argv)
{
  if ((argc == 5 || argc == 6) && !strcmp(argv[1], "memory"))
    return memory(argv[2], argv[3], argv[4], argc == 6 ? argv[5] : "");
  if (argc > 2 && !strcmp(argv[1], "time")) return measure_times(argc - 2, argv + 2);
  (void)fprintf(stderr,
                "usage: peers memory POLICY PEER.so TRACE [SETTINGS] | peers time PEER.so...\n");
  return 2;
}
