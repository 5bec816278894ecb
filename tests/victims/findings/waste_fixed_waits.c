/* waste_fixed_waits.c: as waste_fixed.c: of waits that keep a host and its devices from working at one time. What takes
 * time does so without a processor: the host sleeps, and the devices copy by a slow link. */
#include <unistd.h>
#include "tests/victims/findings/fixed.h"

enum { PART = 1 << 20 };

/* The host has as much to do before each step as the device in it. */
void wait_each_step(int fixed, int times)
{
  char *p = device_memory((size_t)2 * PART);
  begin_part();
  for (int i = 0; i < times; i++) {
    (void)usleep(800);
    launch(NULL, (float *)(void *)p, 64);
    CHECK(cudaMemcpyAsync(p + PART, p, PART, cudaMemcpyDeviceToDevice, NULL));
    if (!fixed) CHECK(cudaDeviceSynchronize());
  }
  end_part();
  CHECK(cudaFree(p));
}

/* The host goes on between what it queues and the wait for it, for longer than that takes. */
void wait_between(int fixed, int times)
{
  char *p = device_memory((size_t)2 * PART), *host = pinned_memory(PART);
  begin_part();
  for (int i = 0; i < times; i++) {
    CHECK(cudaMemcpyAsync(p + PART, p, PART, cudaMemcpyDeviceToDevice, NULL));
    if (!fixed) CHECK(cudaStreamSynchronize(NULL));
    launch(NULL, (float *)(void *)p, 64);
    (void)usleep(1500);
    CHECK(cudaMemcpy(host, p, 4096, cudaMemcpyDeviceToHost));
  }
  end_part();
  CHECK(cudaFreeHost(host));
  CHECK(cudaFree(p));
}

/* The host works on each result for about as long as the device on the next one. */
void host_and_device_in_turn(int fixed, int times)
{
  char *p = device_memory((size_t)2 * PART), *host = pinned_memory(PART);
  cudaEvent_t done[2];
  for (int k = 0; k < 2; k++)
    CHECK(cudaEventCreateWithFlags(&done[k], cudaEventDisableTiming));
  begin_part();
  for (int i = 0; i <= times; i++) {
    if (i < times) {
      CHECK(cudaMemcpyAsync(p + PART, p, PART, cudaMemcpyDeviceToDevice, NULL));
      CHECK(cudaMemcpyAsync(host + i % 2 * 4096, p, 4096, cudaMemcpyDeviceToHost, NULL));
      CHECK(cudaEventRecord(done[i % 2], NULL));
    }
    if (fixed && !i) continue;
    if (!fixed && i == times) break;
    CHECK(cudaEventSynchronize(done[(i - fixed) % 2]));
    (void)usleep(800);
  }
  end_part();
  for (int k = 0; k < 2; k++)
    CHECK(cudaEventDestroy(done[k]));
  CHECK(cudaFreeHost(host));
  CHECK(cudaFree(p));
}

/* Two devices have half of each step, one after the other; then the host works on both results. */
void streams_in_turn(int fixed, int times)
{
  char *p[2], *host = pinned_memory(PART);
  for (int k = 0; k < 2; k++) {
    CHECK(cudaSetDevice(k));
    p[k] = device_memory((size_t)2 * PART);
  }
  begin_part();
  for (int i = 0; i < times; i++) {
    for (int k = 0; k < 2; k++) {
      CHECK(cudaSetDevice(k));
      CHECK(cudaMemcpyAsync(p[k] + PART, p[k], PART, cudaMemcpyDeviceToDevice, NULL));
      CHECK(cudaMemcpyAsync(host + k * 4096, p[k], 4096, cudaMemcpyDeviceToHost, NULL));
      if (!fixed) CHECK(cudaDeviceSynchronize());
    }
    for (int k = 0; fixed && k < 2; k++) {
      CHECK(cudaSetDevice(k));
      CHECK(cudaDeviceSynchronize());
    }
    (void)usleep(300);
  }
  end_part();
  for (int k = 0; k < 2; k++)
    CHECK(cudaFree(p[k]));
  CHECK(cudaFreeHost(host));
}

/* The host asks after each pause whether the device is done, and looks at what comes back. */
void polled_with_pauses(int fixed, int times)
{
  char *p = device_memory((size_t)6 * PART), *host = pinned_memory(PART);
  cudaEvent_t done;
  CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  begin_part();
  for (int i = 0; i < times; i++) {
    size_t bytes = PART + (size_t)(i * 7919 % 64) * (PART / 32); /* 1 to 3 ms */
    CHECK(cudaMemcpyAsync(p + 3 * PART, p, bytes, cudaMemcpyDeviceToDevice, NULL));
    CHECK(cudaMemcpyAsync(host, p + 3 * PART, 4096, cudaMemcpyDeviceToHost, NULL));
    CHECK(cudaEventRecord(done, NULL));
    while (!fixed && cudaEventQuery(done) == cudaErrorNotReady)
      (void)usleep(2000);
    CHECK(cudaEventSynchronize(done));
    host[0]++;
  }
  end_part();
  CHECK(cudaEventDestroy(done));
  CHECK(cudaFreeHost(host));
  CHECK(cudaFree(p));
}

/* The second device is given its work when the first has done its own. */
void devices_in_turn(int fixed, int times)
{
  char *p[2];
  for (int d = 0; d < 2; d++) {
    CHECK(cudaSetDevice(d));
    p[d] = device_memory((size_t)2 * PART);
  }
  begin_part();
  for (int i = 0; i < times; i++) {
    for (int d = 0; d < 2; d++) {
      CHECK(cudaSetDevice(d));
      CHECK(cudaMemcpyAsync(p[d] + PART, p[d], PART, cudaMemcpyDeviceToDevice, NULL));
      if (!fixed) CHECK(cudaDeviceSynchronize());
    }
  }
  CHECK(cudaSetDevice(0));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaSetDevice(1));
  end_part();
  for (int d = 0; d < 2; d++)
    CHECK(cudaFree(p[d]));
}

/* A copy to the device and one back, in two streams, of which the second waits for the first. */
void serialised_by_events(int fixed, int times)
{
  char *from = pinned_memory(PART), *to = pinned_memory(PART), *p = device_memory(PART),
       *q = device_memory(PART);
  cudaStream_t up, back;
  cudaEvent_t done;
  CHECK(cudaStreamCreateWithFlags(&up, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&back, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  begin_part();
  for (int i = 0; i < times; i++) {
    CHECK(cudaMemcpyAsync(p, from, PART, cudaMemcpyHostToDevice, up));
    launch(up, (float *)(void *)p, 64);
    CHECK(cudaEventRecord(done, up));
    if (!fixed) CHECK(cudaStreamWaitEvent(back, done, 0));
    launch(back, (float *)(void *)q, 64);
    CHECK(cudaMemcpyAsync(to, q, PART, cudaMemcpyDeviceToHost, back));
    CHECK(cudaDeviceSynchronize());
  }
  end_part();
  CHECK(cudaEventDestroy(done));
  CHECK(cudaStreamDestroy(up));
  CHECK(cudaStreamDestroy(back));
  CHECK(cudaFree(p));
  CHECK(cudaFree(q));
  CHECK(cudaFreeHost(from));
  CHECK(cudaFreeHost(to));
}

/* What comes to the device is copied there in the default stream, and goes back: each round has one of two buffers. */
void default_between(int fixed, int times)
{
  char *from = pinned_memory(PART), *to = pinned_memory(PART), *in[2], *out[2];
  cudaStream_t up, middle, back;
  cudaEvent_t came[2], copied[2], went[2];
  unsigned flags = fixed ? cudaStreamNonBlocking : cudaStreamDefault;
  CHECK(cudaStreamCreateWithFlags(&up, flags));
  CHECK(cudaStreamCreateWithFlags(&back, flags));
  CHECK(cudaStreamCreateWithFlags(&middle, cudaStreamNonBlocking));
  for (int k = 0; k < 2; k++) {
    in[k] = device_memory(PART), out[k] = device_memory(PART);
    CHECK(cudaEventCreateWithFlags(&came[k], cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&copied[k], cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&went[k], cudaEventDisableTiming));
  }
  begin_part();
  for (int i = 0; i < times; i++) {
    int k = i % 2;
    if (fixed) CHECK(cudaStreamWaitEvent(up, copied[k], 0));
    CHECK(cudaMemcpyAsync(in[k], from, PART, cudaMemcpyHostToDevice, up));
    if (fixed) CHECK(cudaEventRecord(came[k], up));
    if (fixed) CHECK(cudaStreamWaitEvent(middle, came[k], 0));
    if (fixed) CHECK(cudaStreamWaitEvent(middle, went[k], 0));
    CHECK(cudaMemcpyAsync(out[k], in[k], PART, cudaMemcpyDeviceToDevice, fixed ? middle : NULL));
    if (fixed) CHECK(cudaEventRecord(copied[k], middle));
    if (fixed) CHECK(cudaStreamWaitEvent(back, copied[k], 0));
    CHECK(cudaMemcpyAsync(to, out[k], PART, cudaMemcpyDeviceToHost, back));
    if (fixed) CHECK(cudaEventRecord(went[k], back));
  }
  end_part();
  for (int k = 0; k < 2; k++) {
    CHECK(cudaEventDestroy(came[k]));
    CHECK(cudaEventDestroy(copied[k]));
    CHECK(cudaEventDestroy(went[k]));
    CHECK(cudaFree(in[k]));
    CHECK(cudaFree(out[k]));
  }
  CHECK(cudaStreamDestroy(up));
  CHECK(cudaStreamDestroy(middle));
  CHECK(cudaStreamDestroy(back));
  CHECK(cudaFreeHost(from));
  CHECK(cudaFreeHost(to));
}

/* Chunks go to the device, are worked on, and come back, one after the other, or three at a time. */
void chunks_in_turn(int fixed, int times)
{
  enum { STREAMS = 3 };
  char *from = pinned_memory((size_t)times * PART), *to = pinned_memory((size_t)times * PART),
       *p[STREAMS];
  cudaStream_t s[STREAMS];
  for (int k = 0; k < STREAMS; k++) {
    p[k] = device_memory((size_t)2 * PART);
    CHECK(cudaStreamCreateWithFlags(&s[k], cudaStreamNonBlocking));
  }
  begin_part();
  for (int i = 0; i < times; i++) {
    size_t at = (size_t)i * PART;
    int k = fixed ? i % STREAMS : 0;
    cudaStream_t own = fixed ? s[k] : NULL;
    if (fixed)
      CHECK(cudaMemcpyAsync(p[k], from + at, PART, cudaMemcpyHostToDevice, own));
    else
      CHECK(cudaMemcpy(p[k], from + at, PART, cudaMemcpyHostToDevice));
    launch(own, (float *)(void *)p[k], 64);
    CHECK(cudaMemcpyAsync(p[k] + PART, p[k], PART, cudaMemcpyDeviceToDevice, own));
    if (fixed)
      CHECK(cudaMemcpyAsync(to + at, p[k] + PART, PART, cudaMemcpyDeviceToHost, own));
    else
      CHECK(cudaMemcpy(to + at, p[k] + PART, PART, cudaMemcpyDeviceToHost));
  }
  end_part();
  for (int k = 0; k < STREAMS; k++) {
    CHECK(cudaStreamDestroy(s[k]));
    CHECK(cudaFree(p[k]));
  }
  CHECK(cudaFreeHost(from));
  CHECK(cudaFreeHost(to));
}

/* A chunk is uploaded and worked on. */
static void work_on_chunk(char *p, const char *from, cudaStream_t s)
{
  CHECK(cudaMemcpyAsync(p, from, PART, cudaMemcpyHostToDevice, s));
  launch(s, (float *)(void *)p, 64);
  CHECK(cudaMemcpyAsync(p + PART, p, PART, cudaMemcpyDeviceToDevice, s));
}

/* The same of pageable memory: the next chunk is uploaded before the results of the last are fetched. */
void chunks_of_pageable(int fixed, int times)
{
  char *from = pageable_memory((size_t)times * PART, 0),
       *to = pageable_memory((size_t)times * PART, 0), *p[2];
  cudaStream_t s[2];
  for (int k = 0; k < 2; k++) {
    p[k] = device_memory((size_t)2 * PART);
    CHECK(cudaStreamCreateWithFlags(&s[k], cudaStreamNonBlocking));
  }
  begin_part();
  for (int i = 0; i < times; i++) {
    int k = fixed ? i % 2 : 0;
    if (!fixed || !i) work_on_chunk(p[k], from + (size_t)i * PART, s[k]);
    if (fixed && i + 1 < times) work_on_chunk(p[1 - k], from + (size_t)(i + 1) * PART, s[1 - k]);
    CHECK(cudaMemcpyAsync(to + (size_t)i * PART, p[k] + PART, PART, cudaMemcpyDeviceToHost, s[k]));
  }
  end_part();
  for (int k = 0; k < 2; k++) {
    CHECK(cudaStreamDestroy(s[k]));
    CHECK(cudaFree(p[k]));
  }
  free(from);
  free(to);
}
