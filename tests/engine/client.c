/* client.c: a program on libweir that counts for itself what it allocates: `client SEED THREADS
 * STEPS`, or `client torch`. It prints its tally as JSON: calls and bytes by kind of memory, what
 * it left allocated, and, where one thread ran, the most that was live. */
#include <cuda.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/weir.h"

enum { HELD = 40, KINDS = 2, MOST = 16 }; /* device, pinned */

typedef struct tally {
  uint64_t allocs, frees, bytes, live, peak, left;
} tally;

typedef struct runner {
  uint64_t state;
  unsigned steps, kept; /* kept: blocks never freed */
  tally t[KINDS];
  void *block[HELD];
  uint64_t bytes[HELD];
  int kind[HELD];
} runner;

static const weir_device gpu = WEIR_CUDA_INIT(0);

static void check_weir_call(weir_status st, const char *what)
{
  if (!st) return;
  (void)fprintf(stderr, "%s: %s\n", what, weir_error_message());
  exit(1);
}

static uint64_t next_random_word(runner *r)
{
  uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  return z ^ z >> 31;
}

static void allocate_client_block(runner *r, int i, weir_stream *side)
{
  uint64_t x = next_random_word(r), bytes = 1 + (x >> 8) % (x & 1 ? 5000 : 3 << 20);
  int kind = (x >> 3 & 3) == 0;
  if (kind)
    check_weir_call(weir_pinned_malloc(&r->block[i], bytes), "weir_pinned_malloc");
  else
    check_weir_call(weir_malloc(&r->block[i], bytes, gpu, x >> 5 & 1 ? side : NULL), "weir_malloc");
  tally *t = &r->t[kind];
  r->kind[i] = kind;
  r->bytes[i] = bytes;
  t->allocs++;
  t->bytes += bytes;
  t->live += bytes;
  if (t->live > t->peak) t->peak = t->live;
}

static void free_client_block(runner *r, int i)
{
  tally *t = &r->t[r->kind[i]];
  check_weir_call(r->kind[i] ? weir_pinned_free(r->block[i]) : weir_free(r->block[i]), "free");
  r->block[i] = NULL;
  t->frees++;
  t->live -= r->bytes[i];
}

static void *run_client_thread(void *argument)
{
  runner *r = argument;
  weir_stream *side;
  check_weir_call(weir_stream_create(&side, gpu), "weir_stream_create");
  for (unsigned i = 0; i < r->steps; i++) {
    int at = (int)(next_random_word(r) % HELD);
    if (r->block[at])
      free_client_block(r, at);
    else
      allocate_client_block(r, at, side);
  }
  for (int i = 0; i < HELD; i++)
    if (r->block[i] && next_random_word(r) % 8) free_client_block(r, i);
  return NULL;
}

static void print_tallies(const runner *r, unsigned threads)
{
  static const char *const names[] = {"device", "pinned"};
  for (int k = 0; k < KINDS; k++) {
    tally all = {0};
    for (unsigned i = 0; i < threads; i++) {
      const tally *t = &r[i].t[k];
      all.allocs += t->allocs, all.frees += t->frees, all.bytes += t->bytes, all.live += t->live;
      all.peak += t->peak;
    }
    printf("%s %llu %llu %llu %llu %llu\n", names[k], (unsigned long long)all.allocs,
           (unsigned long long)all.bytes, (unsigned long long)all.frees,
           (unsigned long long)all.live, (unsigned long long)(threads == 1 ? all.peak : 0));
  }
}

/* What PyTorch does with its pluggable allocator. */
static int torch(void)
{
  CUstream s;
  CUdevice device;
  CUcontext context;
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
      cuCtxSetCurrent(context) || cuStreamCreate(&s, CU_STREAM_NON_BLOCKING))
    return 1;
  void *a = weir_torch_malloc(3 << 20, 0, NULL), *b = weir_torch_malloc(1000, 0, s);
  if (!a || !b || a == b || weir_torch_malloc(0, 0, s)) return 2;
  unsigned char in[1000], out[1000] = {0};
  for (unsigned i = 0; i < sizeof in; i++)
    in[i] = (unsigned char)(i * 7);
  if (cuMemcpyHtoD((CUdeviceptr)b, in, sizeof in) ||
      cuMemcpyDtoD((CUdeviceptr)a, (CUdeviceptr)b, sizeof in) ||
      cuMemcpyDtoH(out, (CUdeviceptr)a, sizeof out) || memcmp(in, out, sizeof in) != 0)
    return 3;
  weir_torch_free(b, 1000, 0, s); /* the same stream has it next, another has not */
  void *c = weir_torch_malloc(1000, 0, s), *d = weir_torch_malloc(1000, 0, NULL);
  if (c != b || d == b) return 4;
  weir_torch_record_stream(c, NULL);
  weir_torch_free(c, 1000, 0, s);
  weir_torch_free(d, 1000, 0, NULL);
  weir_torch_free(a, 3 << 20, 0, NULL);
  weir_torch_free(NULL, 0, 0, NULL);
  if (weir_torch_malloc(-1, 0, NULL) || !strstr(weir_error_message(), "-1 bytes")) return 5;
  if (weir_torch_malloc(1, 99, NULL) || !strstr(weir_error_message(), "cuda:99")) return 6;
  if (weir_torch_malloc(1, 0, CU_STREAM_PER_THREAD) ||
      !strstr(weir_error_message(), "per-thread default stream"))
    return 7;
  if (weir_torch_malloc((ssize_t)1 << 50, 0, s) || !strstr(weir_error_message(), "out of memory"))
    return 8;
  int64_t live;
  if (weir_memory_stat(&live, gpu, "allocated_bytes.all.current") || live) return 9;
  return cuStreamDestroy(s) ? 10 : 0;
}

int main(int argc, char **argv)
{
  static runner r[MOST];
  pthread_t t[MOST];
  if (argc == 2 && !strcmp(argv[1], "torch")) return torch();
  if (argc < 4) return 2;
  unsigned threads = (unsigned)atoi(argv[2]);
  if (!threads || threads > MOST) return 2;
  for (unsigned i = 0; i < threads; i++) {
    r[i].state = strtoull(argv[1], NULL, 10) * 1000 + i;
    r[i].steps = (unsigned)atoi(argv[3]);
    (void)pthread_create(&t[i], NULL, run_client_thread, &r[i]);
  }
  for (unsigned i = 0; i < threads; i++)
    (void)pthread_join(t[i], NULL);
  print_tallies(r, threads);
  return 0;
}
