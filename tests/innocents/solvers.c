/* solvers.c: programs that calculate for long: iterations, devices side by side, training. */
#include "tests/innocents/innocents.h"

/* Two arrays by turns; how far it has come is looked at each tenth time. */
static void jacobi(void)
{
  float *a = device_floats(FLOATS), *b = device_floats(FLOATS), *left = device_floats(4), host,
        *first = host_floats(FLOATS);
  CHECK(cudaMemcpy(a, first, FLOATS, cudaMemcpyHostToDevice));
  for (int i = 1; i <= 2 * STEPS; i++) {
    step(NULL, a, b);
    float *t = a;
    a = b, b = t;
    if (i % 10) continue;
    sum(NULL, a, left);
    CHECK(cudaMemcpy(&host, left, 4, cudaMemcpyDeviceToHost));
    look(&host, 4);
  }
  CHECK(cudaMemcpy(first, a, FLOATS, cudaMemcpyDeviceToHost));
  look(first, FLOATS);
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(left));
  free(first);
}

/* Conjugate gradients: the host divides two scalars in each iteration, and stops by one. */
static void sparse_solver(void)
{
  float *values = host_floats(FLOATS), *a[7], *dots = device_floats(8), *host = pinned_floats(8);
  cudaStream_t s = new_stream();
  for (int k = 0; k < 7; k++)
    a[k] = device_floats(FLOATS);
  for (int k = 0; k < 4; k++) {
    CHECK(cudaMemcpy(a[k], values, FLOATS, cudaMemcpyHostToDevice));
    fill(values, FLOATS);
  }
  CHECK(cudaMemsetAsync(a[4], 0, FLOATS, s));
  for (int i = 0; i < STEPS; i++) {
    step(s, a[0], a[4]);
    sum(s, a[4], dots);
    CHECK(cudaMemcpyAsync(host, dots, 4, cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamSynchronize(s));
    look(host, 4);
    add(s, a[1], a[4], a[5]);
    add(s, a[5], a[2], a[6]);
    sum(s, a[6], dots + 1);
    CHECK(cudaMemcpyAsync(host + 1, dots + 1, 4, cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamSynchronize(s));
    look(host + 1, 4);
    add(s, a[3], a[6], a[0]);
  }
  CHECK(cudaMemcpyAsync(values, a[0], FLOATS, cudaMemcpyDeviceToHost, s));
  CHECK(cudaStreamSynchronize(s));
  look(values, FLOATS);
  CHECK(cudaStreamDestroy(s));
  for (int k = 0; k < 7; k++)
    CHECK(cudaFree(a[k]));
  CHECK(cudaFree(dots));
  CHECK(cudaFreeHost(host));
  free(values);
}

/* States of random numbers live on the device alone; a mean is read each round. */
static void monte_carlo(void)
{
  float *states = device_floats(FLOATS), *paths = device_floats(FLOATS), *mean = device_floats(4),
        host;
  CHECK(cudaMemset(states, 1, FLOATS));
  for (int i = 0; i < STEPS; i++) {
    step(NULL, states, paths);
    add(NULL, states, paths, states);
    sum(NULL, paths, mean);
    CHECK(cudaMemcpy(&host, mean, 4, cudaMemcpyDeviceToHost));
    look(&host, 4);
  }
  CHECK(cudaFree(states));
  CHECK(cudaFree(paths));
  CHECK(cudaFree(mean));
}

/* Keys by passes between two buffers, temporary memory asked for once. */
static void sort_batches(void)
{
  float *host[2] = {pinned_floats(FLOATS), pinned_floats(FLOATS)}, *keys = device_floats(FLOATS),
        *other = device_floats(FLOATS), *space = device_floats(FLOATS / 4);
  cudaStream_t s = new_stream();
  cudaEvent_t up = new_event();
  for (int i = 0; i < STEPS / 2; i++) {
    CHECK(cudaMemcpyAsync(keys, host[0], FLOATS, cudaMemcpyHostToDevice, s));
    CHECK(cudaEventRecord(up, s));
    for (int pass = 0; pass < 4; pass++) {
      CHECK(cudaMemsetAsync(space, 0, FLOATS / 4, s));
      CHECK((cudaError_t)innocent_launch_step(s, keys, space, ELEMENTS / 4));
      add(s, keys, keys, other);
      float *t = keys;
      keys = other, other = t;
    }
    CHECK(cudaMemcpyAsync(host[1], keys, FLOATS, cudaMemcpyDeviceToHost, s));
    CHECK(cudaEventSynchronize(up));
    fill(host[0], FLOATS);
    CHECK(cudaStreamSynchronize(s));
    look(host[1], FLOATS);
  }
  CHECK(cudaEventDestroy(up));
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(keys));
  CHECK(cudaFree(other));
  CHECK(cudaFree(space));
  CHECK(cudaFreeHost(host[0]));
  CHECK(cudaFreeHost(host[1]));
}

/* Counters are cleared, added to, and read, each frame. */
static void histogram(void)
{
  float *frame = device_floats(FLOATS), *bins = device_floats(1024), *host = pinned_floats(1024),
        *from = pinned_floats(FLOATS);
  cudaStream_t s = new_stream();
  for (int i = 0; i < STEPS; i++) {
    fill(from, FLOATS);
    CHECK(cudaMemcpyAsync(frame, from, FLOATS, cudaMemcpyHostToDevice, s));
    CHECK(cudaMemsetAsync(bins, 0, 1024, s));
    CHECK((cudaError_t)innocent_launch_step(s, frame, bins, 256));
    CHECK(cudaMemcpyAsync(host, bins, 1024, cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamSynchronize(s));
    look(host, 1024);
  }
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(frame));
  CHECK(cudaFree(bins));
  CHECK(cudaFreeHost(host));
  CHECK(cudaFreeHost(from));
}

static int device_count(void)
{
  int n = 0;
  CHECK(cudaGetDeviceCount(&n));
  return n < 2 ? n : 2;
}

static void enable_peers(int devices)
{
  for (int d = 0; d < devices; d++) {
    CHECK(cudaSetDevice(d));
    for (int o = 0; o < devices; o++) {
      cudaError_t e = o == d ? cudaSuccess : cudaDeviceEnablePeerAccess(o, 0);
      if (e != cudaErrorPeerAccessAlreadyEnabled) CHECK(e);
    }
  }
  (void)cudaGetLastError();
  CHECK(cudaSetDevice(0));
}

/* A plate in two halves: edges go to the other device, ordered by events. */
static void halo_exchange(void)
{
  enum { EDGE = 1024 };
  int devices = device_count();
  float *a[2], *b[2], *result = host_floats(FLOATS);
  cudaStream_t s[2];
  cudaEvent_t sent[2];
  enable_peers(devices);
  for (int d = 0; d < devices; d++) {
    CHECK(cudaSetDevice(d));
    a[d] = device_floats(FLOATS), b[d] = device_floats(FLOATS);
    s[d] = new_stream(), sent[d] = new_event();
    CHECK(cudaMemcpy(a[d], result, FLOATS, cudaMemcpyHostToDevice));
    fill(result, FLOATS);
  }
  for (int i = 0; i < STEPS; i++) {
    for (int d = 0; d < devices; d++) {
      CHECK(cudaSetDevice(d));
      step(s[d], a[d], b[d]);
      int o = devices - 1 - d;
      CHECK(cudaMemcpyPeerAsync(a[o] + (d ? ELEMENTS - EDGE / 4 : 0), o, b[d], d, EDGE, s[d]));
      CHECK(cudaEventRecord(sent[d], s[d]));
    }
    for (int d = 0; d < devices; d++) {
      float *t = a[d];
      CHECK(cudaSetDevice(d));
      CHECK(cudaStreamWaitEvent(s[d], sent[devices - 1 - d], 0));
      a[d] = b[d], b[d] = t;
    }
  }
  for (int d = 0; d < devices; d++) {
    CHECK(cudaSetDevice(d));
    CHECK(cudaStreamSynchronize(s[d]));
    CHECK(cudaMemcpy(result, a[d], FLOATS, cudaMemcpyDeviceToHost));
    look(result, FLOATS);
    CHECK(cudaFree(a[d]));
    CHECK(cudaFree(b[d]));
    CHECK(cudaEventDestroy(sent[d]));
    CHECK(cudaStreamDestroy(s[d]));
  }
  free(result);
}

/* Edges go to another machine by way of the host, and others come from there. */
static void exchange_edges(float *plate)
{
  enum { EDGE = 4096, INNER = ELEMENTS - EDGE / 4 };
  float *a = device_floats(FLOATS), *b = device_floats(FLOATS), *out = pinned_floats(EDGE),
        *in = pinned_floats(EDGE), *theirs[2] = {device_floats(EDGE), device_floats(EDGE)};
  cudaStream_t s = new_stream(), edges = new_stream();
  cudaEvent_t edge = new_event(), inner = new_event();
  CHECK(cudaMemset(theirs[1], 0, EDGE));
  CHECK(cudaMemcpy(a, plate, FLOATS, cudaMemcpyHostToDevice));
  CHECK(cudaEventRecord(inner, s));
  for (int i = 0; i < STEPS; i++) {
    float *last = a + ELEMENTS - EDGE / 4;
    CHECK(cudaStreamWaitEvent(edges, inner, 0));
    CHECK((cudaError_t)innocent_launch_step(edges, a, b, EDGE / 4));
    CHECK(cudaMemcpyAsync(out, b, EDGE, cudaMemcpyDeviceToHost, edges));
    CHECK((cudaError_t)innocent_launch_add(s, last, theirs[(i + 1) % 2], last, EDGE / 4));
    CHECK((cudaError_t)innocent_launch_step(s, a + EDGE / 4, b + EDGE / 4, INNER));
    CHECK(cudaEventRecord(inner, s));
    CHECK(cudaStreamSynchronize(edges));
    for (int k = 0; k < EDGE / 4; k++)
      in[k] = out[EDGE / 4 - 1 - k] * 0.5F;
    CHECK(cudaMemcpyAsync(theirs[i % 2], in, EDGE, cudaMemcpyHostToDevice, edges));
    CHECK(cudaEventRecord(edge, edges));
    CHECK(cudaStreamWaitEvent(s, edge, 0));
    float *t = a;
    a = b, b = t;
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(plate, a, FLOATS, cudaMemcpyDeviceToHost));
  look(plate, FLOATS);
  CHECK(cudaEventDestroy(edge));
  CHECK(cudaEventDestroy(inner));
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaStreamDestroy(edges));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(theirs[0]));
  CHECK(cudaFree(theirs[1]));
  CHECK(cudaFreeHost(out));
  CHECK(cudaFreeHost(in));
}

static void halo_by_network(void)
{
  float *plate = host_floats(FLOATS);
  exchange_edges(plate);
  free(plate);
}

/* What comes in at the edge is nothing at first, and a wave later. */
static void late_wave(void)
{
  enum { EDGE = 4096 };
  float *in = pinned_floats(EDGE), *edge = device_floats(EDGE), *a = device_floats(FLOATS),
        *b = device_floats(FLOATS), *left = pinned_floats(EDGE);
  cudaStream_t s = new_stream();
  CHECK(cudaMemsetAsync(a, 0, FLOATS, s));
  for (int i = 0; i < STEPS; i++) {
    if (i < STEPS / 3)
      memset(in, 0, EDGE);
    else
      fill(in, EDGE);
    CHECK(cudaMemcpyAsync(edge, in, EDGE, cudaMemcpyHostToDevice, s));
    CHECK((cudaError_t)innocent_launch_add(s, a, edge, a, EDGE / 4));
    step(s, a, b);
    CHECK(cudaMemcpyAsync(left, b + ELEMENTS - EDGE / 4, EDGE, cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamSynchronize(s));
    look(left, EDGE);
    float *t = a;
    a = b, b = t;
  }
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(edge));
  CHECK(cudaFreeHost(in));
  CHECK(cudaFreeHost(left));
}

/* Layers forward and back, batches from two pinned buffers, the loss now and then, all weights to
 * the host at each fourth of the run. */
enum { LAYERS = 6 };

typedef struct model {
  float *weight[LAYERS], *slope[LAYERS], *momentum[LAYERS], *value[LAYERS + 1], *loss;
} model;

static void make_model(model *m)
{
  float *first = host_floats(FLOATS);
  for (int k = 0; k < LAYERS; k++) {
    m->weight[k] = device_floats(FLOATS), m->slope[k] = device_floats(FLOATS);
    m->momentum[k] = device_floats(FLOATS), m->value[k] = device_floats(FLOATS);
    CHECK(cudaMemcpy(m->weight[k], first, FLOATS, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(m->momentum[k], 0, FLOATS));
    fill(first, FLOATS);
  }
  m->value[LAYERS] = device_floats(FLOATS), m->loss = device_floats(4);
  free(first);
}

static void train_step(const model *m, cudaStream_t s)
{
  for (int k = 0; k < LAYERS; k++)
    add(s, m->value[k], m->weight[k], m->value[k + 1]);
  sum(s, m->value[LAYERS], m->loss);
  for (int k = LAYERS - 1; k >= 0; k--)
    add(s, m->value[k], m->value[k + 1], m->slope[k]);
  for (int k = 0; k < LAYERS; k++) {
    add(s, m->slope[k], m->momentum[k], m->momentum[k]);
    add(s, m->weight[k], m->momentum[k], m->weight[k]);
  }
}

static void free_model(model *m)
{
  for (int k = 0; k < LAYERS; k++) {
    CHECK(cudaFree(m->weight[k]));
    CHECK(cudaFree(m->slope[k]));
    CHECK(cudaFree(m->momentum[k]));
    CHECK(cudaFree(m->value[k]));
  }
  CHECK(cudaFree(m->value[LAYERS]));
  CHECK(cudaFree(m->loss));
}

static void save_model(const model *m, float *host, cudaStream_t s)
{
  for (size_t k = 0; k < LAYERS; k++)
    CHECK(cudaMemcpyAsync(host + k * ELEMENTS, m->weight[k], FLOATS, cudaMemcpyDeviceToHost, s));
  CHECK(cudaStreamSynchronize(s));
  look(host, (size_t)LAYERS * FLOATS);
}

static void training(void)
{
  model m;
  float *batch[2] = {pinned_floats(FLOATS), pinned_floats(FLOATS)},
        *saved = pinned_floats((size_t)LAYERS * FLOATS), *loss = pinned_floats(4);
  cudaEvent_t read[2] = {new_event(), new_event()};
  cudaStream_t s = new_stream();
  make_model(&m);
  for (int i = 1; i <= STEPS; i++) {
    int k = i % 2;
    CHECK(cudaEventSynchronize(read[k]));
    fill(batch[k], FLOATS);
    CHECK(cudaMemcpyAsync(m.value[0], batch[k], FLOATS, cudaMemcpyHostToDevice, s));
    CHECK(cudaEventRecord(read[k], s));
    train_step(&m, s);
    if (i % 10 == 0) {
      CHECK(cudaMemcpyAsync(loss, m.loss, 4, cudaMemcpyDeviceToHost, s));
      CHECK(cudaStreamSynchronize(s));
      look(loss, 4);
    }
    if (i % (STEPS / 4) == 0) save_model(&m, saved, s);
  }
  CHECK(cudaStreamDestroy(s));
  for (int k = 0; k < 2; k++) {
    CHECK(cudaEventDestroy(read[k]));
    CHECK(cudaFreeHost(batch[k]));
  }
  free_model(&m);
  CHECK(cudaFreeHost(saved));
  CHECK(cudaFreeHost(loss));
}

/* Two devices with the same model, slopes exchanged by peer copies. */
static void data_parallel(void)
{
  int devices = device_count();
  model m[2];
  float *theirs[2], *batch[2];
  cudaStream_t s[2];
  cudaEvent_t ready[2], taken[2];
  enable_peers(devices);
  for (int d = 0; d < devices; d++) {
    CHECK(cudaSetDevice(d));
    make_model(&m[d]);
    theirs[d] = device_floats(FLOATS), batch[d] = pinned_floats(FLOATS);
    s[d] = new_stream(), ready[d] = new_event(), taken[d] = new_event();
  }
  for (int i = 0; i < STEPS / 2; i++) {
    for (int d = 0; d < devices; d++) {
      CHECK(cudaSetDevice(d));
      CHECK(cudaEventSynchronize(taken[d]));
      fill(batch[d], FLOATS);
      CHECK(cudaMemcpyAsync(m[d].value[0], batch[d], FLOATS, cudaMemcpyHostToDevice, s[d]));
      CHECK(cudaEventRecord(taken[d], s[d]));
      train_step(&m[d], s[d]);
      CHECK(cudaEventRecord(ready[d], s[d]));
    }
    for (int d = 0; d < devices; d++) {
      int o = devices - 1 - d;
      CHECK(cudaSetDevice(d));
      CHECK(cudaStreamWaitEvent(s[d], ready[o], 0));
      CHECK(cudaMemcpyPeerAsync(theirs[d], d, m[o].slope[0], o, FLOATS, s[d]));
      add(s[d], m[d].slope[0], theirs[d], m[d].momentum[0]);
      CHECK(cudaEventRecord(ready[d], s[d]));
    }
    for (int d = 0; d < devices; d++)
      CHECK(cudaStreamWaitEvent(s[d], ready[devices - 1 - d], 0));
  }
  for (int d = 0; d < devices; d++) {
    CHECK(cudaSetDevice(d));
    CHECK(cudaStreamSynchronize(s[d]));
    free_model(&m[d]);
    CHECK(cudaFree(theirs[d]));
    CHECK(cudaFreeHost(batch[d]));
    CHECK(cudaEventDestroy(ready[d]));
    CHECK(cudaEventDestroy(taken[d]));
    CHECK(cudaStreamDestroy(s[d]));
  }
}

/* All threads of a kernel meet: launched as such, once each ten steps. */
static void cooperative_steps(void)
{
  float *a = device_floats(FLOATS), *b = device_floats(FLOATS), *left = device_floats(4), host;
  int n = ELEMENTS;
  CHECK(cudaMemset(a, 0, FLOATS));
  for (int i = 0; i < STEPS; i++) {
    void *args[] = {&a, &b, &n};
    CHECK(cudaLaunchCooperativeKernel(innocent_step_kernel(), (dim3){4, 1, 1}, (dim3){64, 1, 1},
                                      args, 0, NULL));
    sum(NULL, b, left);
    CHECK(cudaMemcpy(&host, left, 4, cudaMemcpyDeviceToHost));
    look(&host, 4);
    float *t = a;
    a = b, b = t;
  }
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(left));
}

/* Assemble, factorise, solve: each phase with memory of its own, freed before the next takes some. */
static void phases(void)
{
  float *host = host_floats(3 * FLOATS), *kept = device_floats(FLOATS);
  CHECK(cudaMemcpy(kept, host, FLOATS, cudaMemcpyHostToDevice));
  for (size_t phase = 1; phase <= 3; phase++) {
    float *p = device_floats(phase * FLOATS), *q = device_floats(phase * FLOATS);
    fill(host, phase * FLOATS);
    CHECK(cudaMemcpy(p, host, phase * FLOATS, cudaMemcpyHostToDevice));
    for (int i = 0; i < 6; i++) {
      add(NULL, p, kept, q);
      add(NULL, q, kept, p);
    }
    CHECK(cudaMemcpy(host, p, phase * FLOATS, cudaMemcpyDeviceToHost));
    look(host, phase * FLOATS);
    CHECK(cudaFree(p));
    CHECK(cudaFree(q));
  }
  CHECK(cudaFree(kept));
  free(host);
}

/* Kernels so long that the host is far in front of the device: how many launches costs nothing. */
static void long_kernels(void)
{
  float *a = device_floats((size_t)32 * FLOATS), *b = device_floats((size_t)32 * FLOATS), first;
  CHECK(cudaMemset(a, 0, (size_t)32 * FLOATS));
  for (int i = 0; i < STEPS; i++) {
    CHECK((cudaError_t)innocent_launch_step(NULL, a, b, 32 * ELEMENTS));
    float *t = a;
    a = b, b = t;
  }
  CHECK(cudaMemcpy(&first, a, 4, cudaMemcpyDeviceToHost));
  look(&first, 4);
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
}

const program solvers[] = {{"jacobi", jacobi},
                           {"sparse-solver", sparse_solver},
                           {"monte-carlo", monte_carlo},
                           {"sort-batches", sort_batches},
                           {"histogram", histogram},
                           {"halo-exchange", halo_exchange},
                           {"halo-by-network", halo_by_network},
                           {"late-wave", late_wave},
                           {"training", training},
                           {"data-parallel", data_parallel},
                           {"cooperative-steps", cooperative_steps},
                           {"phases", phases},
                           {"long-kernels", long_kernels},
                           {NULL, NULL}};
