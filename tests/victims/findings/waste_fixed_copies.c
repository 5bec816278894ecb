/* waste_fixed_copies.c: as waste_fixed.c: of copies. */
#include "tests/victims/findings/fixed.h"

/* Ends a part whose memory was a host buffer and one of a device. */
static void end_copies(char *host, int pinned, float *p)
{
  end_part();
  CHECK(cudaFree(p));
  if (pinned)
    CHECK(cudaFreeHost(host));
  else
    free(host);
}

static char *pinned_bytes(size_t bytes, int uniform)
{
  char *p = pinned_memory(bytes);
  for (size_t i = 0; i < bytes; i++)
    p[i] = uniform ? 7 : (char)(i * 2654435761u >> 13);
  return p;
}

void duplicate_pinned(int fixed, int times)
{
  char *host = pinned_bytes(BYTES, 0);
  float *p = used_memory(BYTES), *result = used_memory(4096);
  begin_part();
  for (int i = 0; i < times; i++) {
    if (!fixed || i == 0) CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice));
    launch(NULL, result, 64);
  }
  end_copies(host, 1, p);
}

void constant_pinned(int fixed, int times)
{
  char *host = pinned_bytes(BYTES, 1);
  float *p = used_memory(BYTES);
  begin_part();
  for (int i = 0; i < times; i++) {
    if (fixed)
      CHECK(cudaMemsetAsync(p, 7, BYTES, NULL));
    else
      CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice));
    launch(NULL, p, 64);
  }
  end_copies(host, 1, p);
}

void pageable_back(int fixed, int times)
{
  char *host = fixed ? pinned_memory(BYTES) : pageable_memory(BYTES, 0);
  float *p = used_memory(BYTES);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpyAsync(host, p, BYTES, cudaMemcpyDeviceToHost, NULL)); /* nothing is before it */
  begin_part();
  for (int i = 0; i < times; i++) {
    launch(NULL, p, 64);
    CHECK(cudaMemcpyAsync(host, p, BYTES, cudaMemcpyDeviceToHost, NULL));
    CHECK(cudaStreamSynchronize(NULL));
    host[i]++;
  }
  end_copies(host, fixed, p);
}

void tiny_results(int fixed, int times)
{
  size_t all = (size_t)times * PIECE;
  char *host = pinned_memory(all);
  float *p = used_memory(all);
  begin_part();
  for (int i = 0; i < times && !fixed; i++) {
    size_t at = (size_t)(i * (i + 1) / 2 % times) * PIECE; /* no step twice: no matrix */
    CHECK(cudaMemcpy(host + at, (char *)p + at, PIECE, cudaMemcpyDeviceToHost));
  }
  if (fixed) CHECK(cudaMemcpy(host, p, all, cudaMemcpyDeviceToHost));
  end_copies(host, 1, p);
}

/* Of another size each time, so that no cache would serve them. */
void unused_transfer(int fixed, int times)
{
  char *host = pageable_memory(BYTES, 0);
  begin_part();
  for (int i = 0; i < times; i++) {
    char *p = device_memory(BYTES + (size_t)i * 4096);
    if (!fixed) CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice));
    CHECK(cudaFree(p));
  }
  end_part();
  free(host);
}

void dead_write(int fixed, int times)
{
  char *host = pageable_memory(BYTES, 0);
  float *p = used_memory(BYTES);
  begin_part();
  for (int i = 0; i < times; i++) {
    if (!fixed) CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice));
    host[i]++;
    CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice));
    launch(NULL, p, 64);
  }
  end_copies(host, 0, p);
}

void redundant_read_back(int fixed, int times)
{
  char *host = pageable_memory(BYTES, 0), *again = pageable_memory(BYTES, 0);
  float *p = used_memory(BYTES);
  begin_part();
  for (int i = 0; i < times; i++) {
    launch(NULL, p, 64);
    CHECK(cudaMemcpy(host, p, BYTES, cudaMemcpyDeviceToHost));
    if (!fixed) CHECK(cudaMemcpy(again, p, BYTES, cudaMemcpyDeviceToHost));
  }
  end_copies(host, 0, p);
  free(again);
}

/* The host looks at what it brings on, so that the first copy stays. */
void through_the_host(int fixed, int times)
{
  char *host = pageable_memory(BYTES, 0);
  float *p = used_memory(BYTES), *to = used_memory(BYTES);
  begin_part();
  for (int i = 0; i < times; i++) {
    launch(NULL, p, 64);
    CHECK(cudaMemcpy(host, p, BYTES, cudaMemcpyDeviceToHost));
    if (fixed)
      CHECK(cudaMemcpyAsync(to, p, BYTES, cudaMemcpyDeviceToDevice, NULL));
    else
      CHECK(cudaMemcpy(to, host, BYTES, cudaMemcpyHostToDevice));
    launch(NULL, to, 64);
  }
  end_copies(host, 0, p);
  CHECK(cudaFree(to));
}

/* A filter: each block of samples comes behind the last samples of the one before. The host looks at none of them. */
void tail_through_the_host(int fixed, int times)
{
  enum { TAIL = 63 };
  float *in = (float *)(void *)pinned_memory(PIECE * sizeof(float));
  char *tail = pinned_memory(TAIL * sizeof(float));
  float *x = used_memory((TAIL + PIECE) * sizeof(float)), *out = used_memory(4096);
  begin_part();
  for (int i = 0; i < times; i++) {
    for (int k = 0; k < PIECE; k++)
      in[k] = (float)(i + k);
    if (!fixed) CHECK(cudaMemcpyAsync(x, tail, TAIL * sizeof(float), cudaMemcpyHostToDevice, NULL));
    CHECK(cudaMemcpyAsync(x + TAIL, in, PIECE * sizeof(float), cudaMemcpyHostToDevice, NULL));
    launch(NULL, out, 64);
    if (fixed)
      CHECK(cudaMemcpyAsync(x, x + PIECE, TAIL * sizeof(float), cudaMemcpyDeviceToDevice, NULL));
    CHECK(cudaStreamSynchronize(NULL));
    if (!fixed) CHECK(cudaMemcpy(tail, x + PIECE, TAIL * sizeof(float), cudaMemcpyDeviceToHost));
  }
  end_part();
  CHECK(cudaFree(x));
  CHECK(cudaFree(out));
  CHECK(cudaFreeHost(in));
  CHECK(cudaFreeHost(tail));
}

static float *memory_of(int device)
{
  CHECK(cudaSetDevice(device));
  float *p = used_memory(BYTES);
  CHECK(cudaDeviceSynchronize());
  return p;
}

void peer_bounce(int fixed, int times)
{
  char *host = pageable_memory(BYTES, 0);
  float *to = memory_of(1), *p = memory_of(0);
  if (fixed) CHECK(cudaDeviceEnablePeerAccess(1, 0));
  begin_part();
  for (int i = 0; i < times; i++) {
    launch(NULL, p + (size_t)64 * i, 64);
    if (fixed) {
      CHECK(cudaMemcpyPeer(to, 1, p, 0, BYTES));
      continue;
    }
    CHECK(cudaMemcpy(host, p, BYTES, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(to, host, BYTES, cudaMemcpyHostToDevice));
  }
  end_copies(host, 0, p);
  CHECK(cudaFree(to));
}

void staged_peer(int fixed, int times)
{
  enum { MUCH = 8 << 20 };
  CHECK(cudaSetDevice(1));
  char *to = device_memory(MUCH);
  CHECK(cudaSetDevice(0));
  float *p = used_memory(MUCH);
  if (fixed) CHECK(cudaDeviceEnablePeerAccess(1, 0));
  begin_part();
  for (int i = 0; i < times; i++) {
    launch(NULL, p, 64);
    CHECK(cudaMemcpyPeerAsync(to, 1, p, 0, MUCH, NULL));
    CHECK(cudaStreamSynchronize(NULL));
  }
  end_part();
  CHECK(cudaFree(to));
  CHECK(cudaFree(p));
}

/* One half of the memory goes up and the other down. */
void serialised_copies(int fixed, int times)
{
  char *host = pinned_memory((size_t)2 * BYTES);
  float *p = used_memory((size_t)2 * BYTES);
  cudaStream_t s, other;
  CHECK(cudaStreamCreate(&s));
  CHECK(cudaStreamCreate(&other));
  begin_part();
  for (int i = 0; i < times; i++) {
    CHECK(cudaMemcpyAsync(p, host, BYTES, cudaMemcpyHostToDevice, s));
    CHECK(cudaMemcpyAsync(host + BYTES, (char *)p + BYTES, BYTES, cudaMemcpyDeviceToHost,
                          fixed ? other : s));
    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaStreamSynchronize(other));
  }
  end_copies(host, 1, p);
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaStreamDestroy(other));
}

/* The host has floats as well. */
void needless_double(int fixed, int times)
{
  char *host = pageable_memory((size_t)4 * BYTES, 0), *p = device_memory((size_t)4 * BYTES);
  float *slim = (float *)(void *)device_memory((size_t)2 * BYTES), sum;
  begin_part();
  for (int i = 0; i < times; i++) {
    host[i]++;
    if (fixed) {
      CHECK(cudaMemcpy(slim, host, (size_t)2 * BYTES, cudaMemcpyHostToDevice));
    } else {
      CHECK(cudaMemcpy(p, host, (size_t)4 * BYTES, cudaMemcpyHostToDevice));
      CHECK((cudaError_t)victim_narrow_launch(NULL, (double *)(void *)p, slim, 64));
    }
    launch(NULL, slim, 64);
    CHECK(cudaMemcpy(&sum, slim, 4, cudaMemcpyDeviceToHost));
  }
  end_part();
  CHECK(cudaFree(slim));
  CHECK(cudaFree(p));
  free(host);
}

/* Six members of a structure, one by one, or as one block. */
void small_copies_in_a_step(int fixed, int times)
{
  enum { MEMBER = 2048, ALL = 26 * MEMBER };
  char *host = pinned_bytes(ALL, 0), *p = device_memory(ALL);
  begin_part();
  for (int i = 0; i < times; i++) {
    for (int k = 0; k < (fixed ? 1 : 6); k++) {
      size_t at = (size_t)(k * (k + 5) / 2) * MEMBER, bytes = fixed ? (size_t)6 * MEMBER : MEMBER;
      CHECK(cudaMemcpyAsync(p + at, host + at, bytes, cudaMemcpyHostToDevice, NULL));
    }
    launch(NULL, (float *)(void *)p, 64);
    if (i % 16 == 15) CHECK(cudaDeviceSynchronize());
  }
  CHECK(cudaDeviceSynchronize());
  end_copies(host, 1, (float *)(void *)p);
}
