/* servers.c: programs that answer: requests, frames, words, several threads and processes. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/innocents/innocents.h"

enum { WORKERS = 4, WEIGHTS = 4 };

typedef struct worker {
  float *const *weight; /* shared, read only */
  int requests;
} worker;

/* Each request: up, a few kernels, down, a wait, the answer; all memory is the thread's from start to end. */
static void *answer_requests(void *arg)
{
  const worker *w = arg;
  float *in = pinned_floats(FLOATS), *out = pinned_floats(FLOATS), *a = device_floats(FLOATS),
        *b = device_floats(FLOATS);
  cudaStream_t s = new_stream();
  for (int i = 0; i < w->requests; i++) {
    fill(in, FLOATS);
    CHECK(cudaMemcpyAsync(a, in, FLOATS, cudaMemcpyHostToDevice, s));
    for (int k = 0; k < WEIGHTS; k++)
      add(s, k % 2 ? b : a, w->weight[k], k % 2 ? a : b);
    CHECK(cudaMemcpyAsync(out, a, FLOATS, cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamSynchronize(s));
    look(out, FLOATS);
  }
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFreeHost(in));
  CHECK(cudaFreeHost(out));
  return NULL;
}

static void inference_server(void)
{
  float *weight[WEIGHTS], *host = host_floats(FLOATS);
  pthread_t threads[WORKERS];
  worker w[WORKERS];
  for (int k = 0; k < WEIGHTS; k++) {
    weight[k] = device_floats(FLOATS);
    CHECK(cudaMemcpy(weight[k], host, FLOATS, cudaMemcpyHostToDevice));
    fill(host, FLOATS);
  }
  for (int i = 0; i < WORKERS; i++) {
    w[i] = (worker){weight, STEPS / 2 + i};
    if (pthread_create(&threads[i], NULL, answer_requests, &w[i])) exit(1);
  }
  for (int i = 0; i < WORKERS; i++)
    (void)pthread_join(threads[i], NULL);
  for (int k = 0; k < WEIGHTS; k++)
    CHECK(cudaFree(weight[k]));
  free(host);
}

/* A ring of frames: the oldest is shown when the newest has been queued. */
static void video_pipeline(void)
{
  enum { RING = 3 };
  float *in[RING], *out[RING], *a[RING], *b[RING];
  cudaStream_t s[RING];
  cudaEvent_t done[RING];
  for (int k = 0; k < RING; k++) {
    in[k] = pinned_floats(FLOATS), out[k] = pinned_floats(FLOATS);
    a[k] = device_floats(FLOATS), b[k] = device_floats(FLOATS);
    s[k] = new_stream(), done[k] = new_event();
  }
  for (int i = 0; i < STEPS + RING; i++) {
    int k = i % RING;
    if (i >= RING) {
      CHECK(cudaEventSynchronize(done[k]));
      look(out[k], FLOATS);
    }
    if (i >= STEPS) continue;
    fill(in[k], FLOATS);
    CHECK(cudaMemcpyAsync(a[k], in[k], FLOATS, cudaMemcpyHostToDevice, s[k]));
    step(s[k], a[k], b[k]);
    step(s[k], b[k], a[k]);
    CHECK(cudaMemcpyAsync(out[k], a[k], FLOATS, cudaMemcpyDeviceToHost, s[k]));
    CHECK(cudaEventRecord(done[k], s[k]));
  }
  for (int k = 0; k < RING; k++) {
    CHECK(cudaEventDestroy(done[k]));
    CHECK(cudaStreamDestroy(s[k]));
    CHECK(cudaFree(a[k]));
    CHECK(cudaFree(b[k]));
    CHECK(cudaFreeHost(in[k]));
    CHECK(cudaFreeHost(out[k]));
  }
}

/* A decoder, frames of which go from one stream to another: upload, work, download. */
static void three_streams(void)
{
  enum { RING = 3 };
  float *in[RING], *out[RING], *a[RING], *b[RING];
  cudaStream_t up = new_stream(), work = new_stream(), down = new_stream();
  cudaEvent_t came[RING], made[RING], gone[RING];
  for (int k = 0; k < RING; k++) {
    in[k] = pinned_floats(FLOATS), out[k] = pinned_floats(FLOATS);
    a[k] = device_floats(FLOATS), b[k] = device_floats(FLOATS);
    came[k] = new_event(), made[k] = new_event(), gone[k] = new_event();
  }
  for (int i = 0; i < STEPS; i++) {
    int k = i % RING;
    CHECK(cudaEventSynchronize(gone[k]));
    if (i >= RING) look(out[k], FLOATS);
    fill(in[k], FLOATS);
    CHECK(cudaMemcpyAsync(a[k], in[k], FLOATS, cudaMemcpyHostToDevice, up));
    CHECK(cudaEventRecord(came[k], up));
    CHECK(cudaStreamWaitEvent(work, came[k], 0));
    step(work, a[k], b[k]);
    CHECK(cudaEventRecord(made[k], work));
    CHECK(cudaStreamWaitEvent(down, made[k], 0));
    CHECK(cudaMemcpyAsync(out[k], b[k], FLOATS, cudaMemcpyDeviceToHost, down));
    CHECK(cudaEventRecord(gone[k], down));
  }
  CHECK(cudaDeviceSynchronize());
  for (int k = 0; k < RING; k++) {
    look(out[k], FLOATS);
    CHECK(cudaEventDestroy(came[k]));
    CHECK(cudaEventDestroy(made[k]));
    CHECK(cudaEventDestroy(gone[k]));
    CHECK(cudaFree(a[k]));
    CHECK(cudaFree(b[k]));
    CHECK(cudaFreeHost(in[k]));
    CHECK(cudaFreeHost(out[k]));
  }
  CHECK(cudaStreamDestroy(up));
  CHECK(cudaStreamDestroy(work));
  CHECK(cudaStreamDestroy(down));
}

/* A language model's words one after the other: a few bytes up, layers, one number down. */
static void decoding(void)
{
  float *cache = device_floats((size_t)STEPS * 1024), *x = device_floats(FLOATS),
        *y = device_floats(FLOATS), *word = pinned_floats(64), *next = device_floats(64);
  cudaStream_t s = new_stream();
  CHECK(cudaMemsetAsync(x, 0, FLOATS, s));
  for (int i = 0; i < STEPS; i++) {
    CHECK(cudaMemcpyAsync(next, word, 64, cudaMemcpyHostToDevice, s));
    for (int layer = 0; layer < 3; layer++) {
      step(s, x, y);
      CHECK((cudaError_t)innocent_launch_step(s, y, cache + (size_t)i * 256, 256));
      add(s, x, y, x);
    }
    sum(s, x, next);
    CHECK(cudaMemcpyAsync(word, next, 64, cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamSynchronize(s));
    look(word, 64);
    word[1] += 1;
  }
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(cache));
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));
  CHECK(cudaFree(next));
  CHECK(cudaFreeHost(word));
}

/* The host does work of its own until the device has done its own. */
static void polling(void)
{
  float *in = pinned_floats(FLOATS), *a = device_floats(FLOATS), *b = device_floats(FLOATS),
        *other = host_floats(FLOATS);
  cudaEvent_t done = new_event();
  for (int i = 0; i < STEPS; i++) {
    CHECK(cudaMemcpyAsync(a, in, FLOATS, cudaMemcpyHostToDevice, NULL));
    step(NULL, a, b);
    CHECK(cudaMemcpyAsync(in, b, FLOATS, cudaMemcpyDeviceToHost, NULL));
    CHECK(cudaEventRecord(done, NULL));
    while (cudaEventQuery(done) == cudaErrorNotReady)
      fill(other, FLOATS);
    (void)cudaGetLastError();
    look(in, FLOATS);
    fill(in, FLOATS);
  }
  CHECK(cudaEventDestroy(done));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFreeHost(in));
  free(other);
}

/* One thread makes batches, another uses them: two slots between. */
typedef struct slots {
  float *host[2];
  int full[2], end;
  pthread_mutex_t lock;
  pthread_cond_t changed;
} slots;

static void *make_batches(void *arg)
{
  slots *q = arg;
  for (int i = 0; i < STEPS; i++) {
    (void)pthread_mutex_lock(&q->lock);
    while (q->full[i % 2])
      (void)pthread_cond_wait(&q->changed, &q->lock);
    (void)pthread_mutex_unlock(&q->lock);
    fill(q->host[i % 2], FLOATS);
    (void)pthread_mutex_lock(&q->lock);
    q->full[i % 2] = 1;
    (void)pthread_cond_broadcast(&q->changed);
    (void)pthread_mutex_unlock(&q->lock);
  }
  return NULL;
}

static void loader_thread(void)
{
  slots q = {.host = {pinned_floats(FLOATS), pinned_floats(FLOATS)},
             .lock = PTHREAD_MUTEX_INITIALIZER,
             .changed = PTHREAD_COND_INITIALIZER};
  float *a = device_floats(FLOATS), *b = device_floats(FLOATS), *total = device_floats(4), last;
  cudaStream_t s = new_stream();
  cudaEvent_t read = new_event();
  pthread_t maker;
  if (pthread_create(&maker, NULL, make_batches, &q)) exit(1);
  for (int i = 0; i < STEPS; i++) {
    (void)pthread_mutex_lock(&q.lock);
    while (!q.full[i % 2])
      (void)pthread_cond_wait(&q.changed, &q.lock);
    (void)pthread_mutex_unlock(&q.lock);
    CHECK(cudaMemcpyAsync(a, q.host[i % 2], FLOATS, cudaMemcpyHostToDevice, s));
    CHECK(cudaEventRecord(read, s));
    step(s, a, b);
    sum(s, b, total);
    CHECK(cudaEventSynchronize(read));
    (void)pthread_mutex_lock(&q.lock);
    q.full[i % 2] = 0;
    (void)pthread_cond_broadcast(&q.changed);
    (void)pthread_mutex_unlock(&q.lock);
  }
  (void)pthread_join(maker, NULL);
  CHECK(cudaMemcpyAsync(&last, total, 4, cudaMemcpyDeviceToHost, s));
  CHECK(cudaStreamSynchronize(s));
  look(&last, 4);
  CHECK(cudaEventDestroy(read));
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(total));
  CHECK(cudaFreeHost(q.host[0]));
  CHECK(cudaFreeHost(q.host[1]));
}

/* Another process reads what each step has made, from memory that it opened once. */
static void watch_parent(int from, int to)
{
  cudaIpcMemHandle_t handle;
  void *p;
  char c;
  float *host = pinned_floats(FLOATS);
  if (read(from, &handle, sizeof handle) != sizeof handle) exit(1);
  CHECK(cudaIpcOpenMemHandle(&p, handle, cudaIpcMemLazyEnablePeerAccess));
  while (read(from, &c, 1) == 1 && !c) {
    CHECK(cudaMemcpy(host, p, FLOATS, cudaMemcpyDeviceToHost));
    look(host, FLOATS);
    if (write(to, &c, 1) != 1) exit(1);
  }
  CHECK(cudaIpcCloseMemHandle(p));
  CHECK(cudaFreeHost(host));
  exit(0);
}

static void shared_frames(void)
{
  int there[2], back[2], status = 1;
  char c = 0;
  cudaIpcMemHandle_t handle;
  if (pipe(there) || pipe(back)) exit(1);
  pid_t child = fork();
  if (!child) watch_parent(there[0], back[1]);
  float *in = device_floats(FLOATS), *out = device_floats(FLOATS);
  CHECK(cudaMemset(in, 0, FLOATS));
  CHECK(cudaIpcGetMemHandle(&handle, out));
  if (write(there[1], &handle, sizeof handle) != sizeof handle) exit(1);
  for (int i = 0; i < STEPS; i++) {
    step(NULL, in, out);
    CHECK(cudaStreamSynchronize(NULL));
    if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1) exit(1);
  }
  c = 1; /* the end: another thread's child may hold the pipe open */
  if (write(there[1], &c, 1) != 1) exit(1);
  if (child < 0 || waitpid(child, &status, 0) != child || status) exit(1);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}

/* Requests of very different sizes, all in memory for the largest. */
static void sizes_that_vary(void)
{
  float *host = pinned_floats(FLOATS), *a = device_floats(FLOATS), *b = device_floats(FLOATS);
  cudaStream_t s = new_stream();
  for (int i = 0; i < STEPS; i++) {
    int n = 64 + i * 97 % (ELEMENTS - 64);
    fill(host, (size_t)n * 4);
    CHECK(cudaMemcpyAsync(a, host, (size_t)n * 4, cudaMemcpyHostToDevice, s));
    CHECK((cudaError_t)innocent_launch_step(s, a, b, n));
    CHECK(cudaMemcpyAsync(host, b, (size_t)n * 4, cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamSynchronize(s));
    look(host, (size_t)n * 4);
  }
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFreeHost(host));
}

/* Sessions come and go: each has memory of its own size for as long as it lives. */
static void sessions(void)
{
  enum { LIVE = 3 };
  float *live[LIVE] = {NULL}, *host = pinned_floats(FLOATS);
  size_t bytes[LIVE] = {0};
  cudaStream_t s = new_stream();
  for (int i = 0; i < 12; i++) {
    int k = i % LIVE;
    if (live[k]) CHECK(cudaFree(live[k]));
    bytes[k] = FLOATS - (size_t)i * 4096;
    live[k] = device_floats(bytes[k]);
    fill(host, bytes[k]);
    CHECK(cudaMemcpyAsync(live[k], host, bytes[k], cudaMemcpyHostToDevice, s));
    for (int turn = 0; turn < 5; turn++) {
      for (int j = 0; j < LIVE; j++)
        if (live[j])
          CHECK(
              (cudaError_t)innocent_launch_add(s, live[j], live[j], live[j], (int)(bytes[j] / 4)));
      CHECK(cudaMemcpyAsync(host, live[turn % (k + 1)], 4096, cudaMemcpyDeviceToHost, s));
      CHECK(cudaStreamSynchronize(s));
      look(host, 4096);
    }
  }
  for (int k = 0; k < LIVE; k++)
    CHECK(cudaFree(live[k]));
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFreeHost(host));
}

/* Parameters of each step, in one small copy, of a ring of which one slot is free. */
static void parameters(void)
{
  enum { RING = 8, BYTES = 256 };
  float *ring = pinned_floats((size_t)RING * BYTES), *now = device_floats(BYTES),
        *a = device_floats(FLOATS), *b = device_floats(FLOATS);
  cudaEvent_t used[RING];
  cudaStream_t s = new_stream();
  for (int k = 0; k < RING; k++)
    used[k] = new_event();
  CHECK(cudaMemsetAsync(a, 0, FLOATS, s));
  for (int i = 0; i < 2 * STEPS; i++) {
    float *slot = ring + (size_t)(i % RING) * BYTES / 4;
    CHECK(cudaEventSynchronize(used[i % RING]));
    fill(slot, BYTES);
    CHECK(cudaMemcpyAsync(now, slot, BYTES, cudaMemcpyHostToDevice, s));
    CHECK(cudaEventRecord(used[i % RING], s));
    CHECK((cudaError_t)innocent_launch_add(s, a, now, b, BYTES / 4));
    step(s, b, a);
  }
  CHECK(cudaStreamSynchronize(s));
  CHECK(cudaMemcpy(ring, a, BYTES, cudaMemcpyDeviceToHost));
  look(ring, BYTES);
  for (int k = 0; k < RING; k++)
    CHECK(cudaEventDestroy(used[k]));
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(now));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFreeHost(ring));
}

const program servers[] = {{"inference-server", inference_server},
                           {"video-pipeline", video_pipeline},
                           {"three-streams", three_streams},
                           {"decoding", decoding},
                           {"polling", polling},
                           {"loader-thread", loader_thread},
                           {"sizes-that-vary", sizes_that_vary},
                           {"sessions", sessions},
                           {"parameters", parameters},
                           {NULL, NULL}};

/* It forks, and has not called CUDA before. */
const program loners[] = {{"shared-frames", shared_frames}, {NULL, NULL}};
