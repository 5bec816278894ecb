/* differ.c: a random program whose every result is defined: `differ SEED THREADS STEPS`. It prints
 * a hash of all bytes read back and of all return codes, a line a thread; rerouted or not, they
 * must be the same. Each thread has its own numbers, buffers and streams.
 *
 * With a second device there are buffers there as well, which copies from and to the first one's
 * reach: in its streams, or in an order with all work of both devices.
 *
 * A buffer is filled before it is read, and work on it in another stream waits for the last one by
 * an event. Frees come at any moment: with work under way, in any order, while others still run. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int trap_launch_fill(cudaStream_t s, unsigned *p, unsigned n, unsigned value, unsigned turns);

enum { BUFFERS = 24, FAR = 4, STREAMS = 3, MIB = 1 << 20 };

typedef struct buffer {
  unsigned *p; /* NULL: none */
  unsigned n;  /* elements */
  int stream;  /* of the last work */
} buffer;

typedef struct runner {
  uint64_t state, hash;
  unsigned steps;
  cudaStream_t streams[STREAMS];
  cudaEvent_t event;
  buffer b[BUFFERS];
  buffer far[FAR];         /* on the second device; `stream` is one of the first's */
  unsigned *host, *pinned; /* MIB elements */
} runner;

static uint64_t next_random_word(runner *r)
{
  uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static void mix_result(runner *r, uint64_t value)
{
  r->hash = (r->hash ^ value) * UINT64_C(0x100000001b3);
}

#define DO(call) mix_result(r, (uint64_t)(int)(call))

static unsigned size_of(runner *r)
{
  uint64_t x = next_random_word(r);
  switch (x & 3) {
  case 0:
    return 1 + (unsigned)(x >> 8) % 256;
  case 1:
    return 1 + (unsigned)(x >> 8) % 20000;
  case 2:
    return MIB / 4 << ((x >> 8) & 1);
  default:
    return 1 + (unsigned)(x >> 8) % MIB;
  }
}

/* The stream goes on after the buffer's last work. */
static cudaStream_t on(runner *r, buffer *b, int stream)
{
  if (b->stream != stream) {
    DO(cudaEventRecord(r->event, r->streams[b->stream]));
    DO(cudaStreamWaitEvent(r->streams[stream], r->event, 0));
    b->stream = stream;
  }
  return r->streams[stream];
}

static void allocate_buffer(runner *r, buffer *b)
{
  unsigned n = size_of(r), value = (unsigned)next_random_word(r);
  int stream = (int)(next_random_word(r) % STREAMS);
  void *p = NULL;
  if (next_random_word(r) & 1) {
    DO(cudaMalloc(&p, n * sizeof *b->p));
  } else {
    CUdeviceptr d = 0;
    DO(cuMemAlloc(&d, n * sizeof *b->p));
    p = (void *)d;
  }
  *b = (buffer){p, p ? n : 0, stream};
  if (p)
    DO(trap_launch_fill(r->streams[stream], b->p, n, value,
                        (unsigned)next_random_word(r) % 200000));
}

static void free_buffer(runner *r, buffer *b)
{
  if (next_random_word(r) & 1)
    DO(cudaFree(b->p));
  else
    DO(cuMemFree((CUdeviceptr)b->p));
  b->p = NULL;
}

/* As rows of a matrix, whose pitch on the host is a little more; the rest is a row of its own. */
static cudaError_t copy_rows(runner *r, buffer *b, unsigned *host, bool to_device, cudaStream_t s)
{
  unsigned width = 1 + (unsigned)next_random_word(r) % b->n, rows = b->n / width;
  size_t bytes = width * sizeof *host;
  if (rows * (width + 3) > MIB) return cudaSuccess;
  if (to_device)
    return cudaMemcpy2DAsync(b->p, bytes, host, bytes + 3 * sizeof *host, bytes, rows,
                             cudaMemcpyHostToDevice, s);
  memset(host, 0, rows * (bytes + 3 * sizeof *host));
  cudaError_t e = cudaMemcpy2DAsync(host, bytes + 3 * sizeof *host, b->p, bytes, bytes, rows,
                                    cudaMemcpyDeviceToHost, s);
  DO(cudaStreamSynchronize(s));
  for (unsigned i = 0; i < rows * (width + 3); i++)
    mix_result(r, host[i]);
  return e;
}

static void new_pinned(runner *r)
{
  DO(cudaFreeHost(r->pinned));
  DO(cudaMallocHost((void **)&r->pinned, MIB * sizeof *r->pinned));
}

static void read_back(runner *r, buffer *b)
{
  unsigned *to = next_random_word(r) & 1 ? r->host : r->pinned;
  cudaStream_t s = on(r, b, (int)(next_random_word(r) % STREAMS));
  if (next_random_word(r) % 4 == 0) DO(copy_rows(r, b, to, false, s));
  if (to == r->pinned && next_random_word(r) % 4 == 0) { /* freed while the copy may be under way */
    DO(cudaMemcpyAsync(to, b->p, b->n * sizeof *to, cudaMemcpyDeviceToHost, s));
    new_pinned(r);
    to = r->pinned;
  }
  DO(cudaMemcpyAsync(to, b->p, b->n * sizeof *to, cudaMemcpyDeviceToHost, s));
  DO(cudaStreamSynchronize(s));
  for (unsigned i = 0; i < b->n; i++)
    mix_result(r, to[i]);
}

static void fill_host(unsigned *host, unsigned n, unsigned first)
{
  for (unsigned i = 0; i < n; i++)
    host[i] = first + i;
}

/* From page-locked memory, which is freed while the copy may be under way: who gets it next, in
 * whichever thread, must not be able to change what arrives. */
static void write_pinned(runner *r, buffer *b, unsigned first)
{
  cudaStream_t s = on(r, b, (int)(next_random_word(r) % STREAMS));
  fill_host(r->pinned, b->n, first);
  DO(cudaMemcpyAsync(b->p, r->pinned, b->n * sizeof *b->p, cudaMemcpyHostToDevice, s));
  new_pinned(r);
  fill_host(r->pinned, 4096, ~first);
}

static void write_pageable(runner *r, buffer *b, unsigned first)
{
  on(r, b, 0);
  DO(cudaStreamSynchronize(r->streams[0]));
  fill_host(r->host, b->n, first);
  if (next_random_word(r) & 1) {
    DO(copy_rows(r, b, r->host, true, r->streams[0]));
    DO(cudaStreamSynchronize(r->streams[0])); /* the host's memory is written again soon */
    return;
  }
  DO(cudaMemcpy(b->p, r->host, b->n * sizeof *b->p, cudaMemcpyHostToDevice));
  /* A small one may still be on its way in the default stream, which ours do not wait for. */
  DO(cudaEventRecord(r->event, cudaStreamLegacy));
  DO(cudaStreamWaitEvent(r->streams[0], r->event, 0));
}

static void write_to(runner *r, buffer *b)
{
  unsigned first = (unsigned)next_random_word(r);
  switch (next_random_word(r) % 4) {
  case 0:
    DO(cudaMemsetAsync(b->p, (int)first, b->n * sizeof *b->p,
                       on(r, b, (int)(next_random_word(r) % STREAMS))));
    break;
  case 1:
    write_pinned(r, b, first);
    break;
  default:
    write_pageable(r, b, first);
  }
}

static void copy_buffer(runner *r, buffer *a, buffer *b)
{
  unsigned n = a->n < b->n ? a->n : b->n;
  int stream = (int)(next_random_word(r) % STREAMS);
  cudaStream_t s = on(r, a, stream);
  (void)on(r, b, stream);
  DO(cudaMemcpyAsync(a->p, b->p, n * sizeof *a->p, cudaMemcpyDeviceToDevice, s));
}

/* ---- the second device ----------------------------------------------------------------------- */

static int device_count;

static void far_make(runner *r, buffer *f)
{
  void *p = NULL;
  unsigned n = size_of(r);
  DO(cudaSetDevice(1));
  DO(cudaMalloc(&p, n * sizeof *f->p));
  *f = (buffer){p, p ? n : 0, 0};
  if (p) DO(cudaMemset(p, (int)next_random_word(r), n * sizeof *f->p));
  DO(cudaDeviceSynchronize());
  DO(cudaSetDevice(0));
}

static void far_read(runner *r, buffer *f)
{
  DO(cudaStreamSynchronize(r->streams[f->stream]));
  DO(cudaSetDevice(1));
  DO(cudaMemcpy(r->host, f->p, f->n * sizeof *f->p, cudaMemcpyDeviceToHost));
  DO(cudaSetDevice(0));
  for (unsigned i = 0; i < f->n; i++)
    mix_result(r, r->host[i]);
}

static void far_drop(runner *r, buffer *f)
{
  DO(cudaStreamSynchronize(r->streams[f->stream]));
  DO(cudaFree(f->p));
  f->p = NULL;
}

/* Serialized with all work of both devices, in whichever stream. */
static void peer_at_once(runner *r, buffer *a, int to, buffer *b, int from, size_t bytes)
{
  CUcontext context[2];
  if (next_random_word(r) & 1) {
    DO(cudaMemcpyPeer(a->p, to, b->p, from, bytes));
    return;
  }
  for (int i = 0; i < 2; i++) {
    DO(cuDevicePrimaryCtxRetain(&context[i], i));
    DO(cuDevicePrimaryCtxRelease(i));
  }
  DO(cuMemcpyPeer((CUdeviceptr)a->p, context[to], (CUdeviceptr)b->p, context[from], bytes));
}

/* In a default stream, which the buffers' streams do not wait for. */
static void peer_by_default(runner *r, buffer *a, buffer *b, size_t bytes)
{
  cudaStream_t s = next_random_word(r) & 1 ? cudaStreamLegacy : cudaStreamPerThread;
  DO(cudaStreamSynchronize(r->streams[a->stream]));
  DO(cudaStreamSynchronize(r->streams[b->stream]));
  if (s == cudaStreamLegacy && next_random_word(r) & 1)
    DO(cudaMemcpy(a->p, b->p, bytes, cudaMemcpyDefault));
  else
    DO(cudaMemcpyAsync(a->p, b->p, bytes, cudaMemcpyDeviceToDevice, s));
  DO(cudaStreamSynchronize(s));
}

static void peer_in_stream(runner *r, buffer *a, int to, buffer *b, int from, size_t bytes)
{
  int stream = (int)(next_random_word(r) % STREAMS);
  cudaStream_t s = on(r, a, stream);
  (void)on(r, b, stream);
  if (next_random_word(r) & 1)
    DO(cudaMemcpyPeerAsync(a->p, to, b->p, from, bytes, s));
  else
    DO(cudaMemcpyAsync(a->p, b->p, bytes, cudaMemcpyDefault, s));
}

static void far_copy(runner *r, buffer *near, buffer *f)
{
  int to = (int)(next_random_word(r) & 1);
  buffer *a = to ? f : near, *b = to ? near : f;
  size_t bytes = (a->n < b->n ? a->n : b->n) * sizeof *a->p;
  switch (next_random_word(r) % 4) {
  case 0:
    peer_at_once(r, a, to, b, !to, bytes);
    break;
  case 1:
    peer_by_default(r, a, b, bytes);
    break;
  default:
    peer_in_stream(r, a, to, b, !to, bytes);
  }
}

static void far_step(runner *r, buffer *near)
{
  uint64_t x = next_random_word(r);
  buffer *f = &r->far[x % FAR];
  if (!f->p)
    far_make(r, f);
  else if ((x >> 8) % 8 == 0)
    far_drop(r, f);
  else if ((x >> 8) % 8 == 1)
    far_read(r, f);
  else
    far_copy(r, near, f);
}

static void step_differ_thread(runner *r)
{
  uint64_t x = next_random_word(r);
  buffer *b = &r->b[x % BUFFERS], *other = &r->b[(x >> 8) % BUFFERS];
  if (!b->p) {
    allocate_buffer(r, b);
    return;
  }
  switch (x >> 16 & 15) {
  case 0:
  case 1:
  case 2:
  case 3:
    free_buffer(r, b);
    break;
  case 4:
  case 5:
    read_back(r, b);
    break;
  case 6:
  case 7:
    write_to(r, b);
    break;
  case 8:
  case 9:
    if (other != b && other->p) copy_buffer(r, b, other);
    break;
  case 10:
    DO(cudaDeviceSynchronize());
    break;
  case 11:
    DO(cudaStreamDestroy(r->streams[b->stream]));
    DO(cudaStreamCreateWithFlags(&r->streams[b->stream], cudaStreamNonBlocking));
    DO(cudaDeviceSynchronize());
    break;
  case 12:
  case 13:
    if (device_count > 1) far_step(r, b);
    break;
  default:
    DO(trap_launch_fill(on(r, b, (int)(next_random_word(r) % STREAMS)), b->p, b->n,
                        (unsigned)next_random_word(r), (unsigned)next_random_word(r) % 400000));
  }
}

static void *run_differ_thread(void *argument)
{
  runner *r = argument;
  r->host = malloc(MIB * sizeof *r->host);
  DO(cudaMallocHost((void **)&r->pinned, MIB * sizeof *r->pinned));
  for (int i = 0; i < STREAMS; i++)
    DO(cudaStreamCreateWithFlags(&r->streams[i], cudaStreamNonBlocking));
  DO(cudaEventCreateWithFlags(&r->event, cudaEventDisableTiming));
  for (unsigned i = 0; i < r->steps; i++)
    step_differ_thread(r);
  for (int i = 0; i < BUFFERS; i++)
    if (r->b[i].p) {
      read_back(r, &r->b[i]);
      free_buffer(r, &r->b[i]);
    }
  for (int i = 0; i < FAR; i++)
    if (r->far[i].p) {
      far_read(r, &r->far[i]);
      far_drop(r, &r->far[i]);
    }
  DO(cudaFreeHost(r->pinned));
  free(r->host);
  return NULL;
}

int main(int argc, char **argv)
{
  enum { MOST = 16 };
  static runner r[MOST];
  pthread_t t[MOST];
  if (argc < 4) return 2;
  unsigned threads = (unsigned)atoi(argv[2]);
  if (cudaGetDeviceCount(&device_count)) return 2;
  if (!threads || threads > MOST) return 2;
  for (unsigned i = 0; i < threads; i++) {
    r[i].state = strtoull(argv[1], NULL, 10) * 1000 + i;
    r[i].steps = (unsigned)atoi(argv[3]);
    (void)pthread_create(&t[i], NULL, run_differ_thread, &r[i]);
  }
  for (unsigned i = 0; i < threads; i++) {
    (void)pthread_join(t[i], NULL);
    printf("%016llx\n", (unsigned long long)r[i].hash);
  }
  return 0;
}
