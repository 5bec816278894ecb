/* waste_content.c: wastes that only the content of copies tells of. */
#include <sys/wait.h>
#include <unistd.h>
#include "tests/victims/findings/waster.h"

enum { BYTES = 1 << 20, TIMES = 12, BORDER = 8192 };

static void *device_bytes(void)
{
  void *p;
  CHECK(cudaMalloc(&p, BYTES));
  launch(NULL, p, 1);
  return p;
}

static unsigned char *host_bytes(unsigned seed)
{
  unsigned char *p = malloc(BYTES);
  for (int i = 0; p && i < BYTES; i++)
    p[i] = (unsigned char)((seed = seed * 1664525 + 1013904223) >> 24);
  return p;
}

/* Changes another element of `p` each time. */
static void work_on(void *p, int time)
{
  launch(NULL, p, time + 1);
}

static void upload_each_time(int change)
{
  unsigned char *host = host_bytes(1);
  void *p = device_bytes(), *result = device_bytes();
  for (int i = 0; i < TIMES; i++) {
    host[i] = (unsigned char)(host[i] + change);
    CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice)); /* WASTE duplicate-transfer */
    work_on(result, i);
  }
  CHECK(cudaFree(p));
  CHECK(cudaFree(result));
  free(host);
}

static void duplicate_transfer(void)
{
  upload_each_time(0);
}

static void duplicate_transfer_twin(void)
{
  upload_each_time(1);
}

static void round_trip(void)
{
  unsigned char *host = host_bytes(2);
  void *p = device_bytes();
  for (int i = 0; i < TIMES; i++) {
    work_on(p, i);
    CHECK(cudaMemcpy(host, p, BYTES, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice)); /* WASTE round-trip */
  }
  CHECK(cudaFree(p));
  free(host);
}

/* The device's memory serves for something else meanwhile; or the host has changed the bytes. */
static void round_trip_twin(void)
{
  unsigned char *host = host_bytes(2);
  void *p = device_bytes();
  for (int i = 0; i < TIMES; i++) {
    work_on(p, i);
    CHECK(cudaMemcpy(host, p, BYTES, cudaMemcpyDeviceToHost));
    if (i % 2) {
      CHECK(cudaMemset(p, i, BYTES));
      work_on(p, i);
    }
    if (i % 2 == 0) host[BYTES - 1 - i]++;
    CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice));
  }
  work_on(p, 0);
  CHECK(cudaFree(p));
  free(host);
}

static void read_twice(int between)
{
  unsigned char *host = host_bytes(3);
  void *p = device_bytes();
  for (int i = 0; i < TIMES; i++) {
    work_on(p, 2 * i);
    CHECK(cudaMemcpy(host, p, BYTES, cudaMemcpyDeviceToHost));
    if (between) work_on(p, 2 * i + 1);
    CHECK(cudaMemcpy(host, p, BYTES, cudaMemcpyDeviceToHost)); /* WASTE redundant-read-back */
  }
  CHECK(cudaFree(p));
  free(host);
}

static void redundant_read_back(void)
{
  read_twice(0);
}

static void redundant_read_back_twin(void)
{
  read_twice(1);
}

/* Kernels are handed what is read back in each step: they change it, or leave it as it was. */
static void read_in_each_step(int change)
{
  unsigned char *host = host_bytes(5);
  void *p = device_bytes();
  CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice));
  for (int i = 0; i < TIMES; i++) {
    work_on(p, change ? i : 0);
    CHECK(cudaMemcpy(host, p, BYTES, cudaMemcpyDeviceToHost)); /* WASTE unchanged-read-back */
  }
  CHECK(cudaFree(p));
  free(host);
}

static void unchanged_read_back(void)
{
  read_in_each_step(0);
}

static void unchanged_read_back_twin(void)
{
  read_in_each_step(1);
}

/* What one device has made, and a border that is still zeros. */
static void bounce(int change)
{
  unsigned char *host = host_bytes(4), border[BORDER];
  CHECK(cudaSetDevice(1));
  char *to = device_bytes();
  CHECK(cudaSetDevice(0));
  char *from = device_bytes(), *zeros = device_memory(BORDER);
  CHECK(cudaMemset(zeros, 0, BORDER));
  for (int i = 0; i < TIMES; i++) {
    CHECK(cudaSetDevice(0));
    work_on(from, i);
    CHECK(cudaMemcpy(border, zeros, BORDER, cudaMemcpyDeviceToHost));
    border[i] = (unsigned char)(border[i] + change * (i + 1));
    CHECK(cudaMemcpy(host, from, BYTES, cudaMemcpyDeviceToHost));
    host[BYTES - 1] = (unsigned char)(host[BYTES - 1] + change);
    CHECK(cudaSetDevice(1));
    CHECK(cudaMemcpy(to, host, BYTES, cudaMemcpyHostToDevice));    /* WASTE peer-bounce */
    CHECK(cudaMemcpy(to, border, BORDER, cudaMemcpyHostToDevice)); /* WASTE peer-bounce */
  }
  work_on(to, 0);
  CHECK(cudaFree(zeros));
  CHECK(cudaFree(from));
  CHECK(cudaFree(to));
  free(host);
}

static void peer_bounce(void)
{
  bounce(0);
}

static void peer_bounce_twin(void)
{
  bounce(1);
}

static void upload_constant(int odd)
{
  unsigned char *host = malloc(BYTES);
  void *p = device_bytes();
  memset(host, 7, BYTES);
  host[BYTES / 3] = (unsigned char)(7 + odd);
  CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice)); /* WASTE constant-payload */
  work_on(p, 1);
  CHECK(cudaFree(p));
  free(host);
}

static void constant_payload(void)
{
  upload_constant(0);
}

static void constant_payload_twin(void)
{
  upload_constant(1);
}

/* Two processes, each with a number. */
static void upload_by_ranks(unsigned seed, unsigned step)
{
  pid_t child = fork();
  unsigned char *host = host_bytes(seed + (child ? step : 0));
  void *p = device_bytes();
  CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice)); /* WASTE same-bytes-on-many-ranks */
  work_on(p, 1);
  CHECK(cudaFree(p));
  free(host);
  if (child == 0) exit(0);
  if (child < 0 || waitpid(child, NULL, 0) != child) exit(1);
}

static void same_bytes_on_many_ranks(void)
{
  upload_by_ranks(5, 0);
}

static void same_bytes_on_many_ranks_twin(void)
{
  upload_by_ranks(5, 1);
}

const waster content_wasters[] = {
    {"duplicate-transfer", duplicate_transfer, duplicate_transfer_twin, "--hash=on"},
    {"round-trip", round_trip, round_trip_twin, "--hash=on"},
    {"unchanged-read-back", unchanged_read_back, unchanged_read_back_twin, "--hash=on"},
    {"redundant-read-back", redundant_read_back, redundant_read_back_twin, "--hash=on"},
    {"peer-bounce", peer_bounce, peer_bounce_twin, "--hash=on"},
    {"constant-payload", constant_payload, constant_payload_twin, "--hash=on"},
    {"same-bytes-on-many-ranks", same_bytes_on_many_ranks, same_bytes_on_many_ranks_twin,
     "--hash=on"},
    {NULL, NULL, NULL, NULL},
};
