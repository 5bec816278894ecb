/* overlap.c: copies beside calculation, for somebody else to time (cupti_activity.c, overlap.py).
 *
 *   overlap pinned|pageable [SIDE [MIB]]     products of SIDE x SIDE (2048), copies of MIB (32)
 *
 * Three streams: products in one, copies to the device in another, copies from it in a third, all
 * non_blocking, given in turn. Prints what the host's clock says of each alone and of all at once,
 * ms; where copies overlap with calculation the last is about the longest of the others, else their
 * sum. Without a device it says so and ends with 3. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/weir.h"

enum { ROUNDS = 24, NO_GPU = 3, PRODUCTS = 1, TO = 2, FROM = 4 };

static const weir_device gpu = WEIR_CUDA_INIT(0), cpu = {.type = WEIR_DEVICE_CPU};
static weir_tensor *a, *b, *host_in, *host_out, *in, *out;
static weir_stream *streams[3];

static void check_overlap_call(weir_status st, const char *what)
{
  if (!st) return;
  (void)fprintf(stderr, "overlap: %s: %s\n", what, weir_error_message());
  exit(1);
}
#define MUST(call) check_overlap_call((call), #call)

static double now_ms(void)
{
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void product(void)
{
  weir_tensor *c;
  MUST(weir_matmul(&c, a, b));
  weir_tensor_release(c);
}

static double time_concurrent_work(int what)
{
  MUST(weir_synchronize(gpu));
  double begin = now_ms();
  for (int i = 0; i < ROUNDS; i++) {
    if (what & PRODUCTS) WEIR_WITH_STREAM(streams[0]) product();
    if (what & TO) WEIR_WITH_STREAM(streams[1]) MUST(weir_copy_(in, host_in, true));
    if (what & FROM) WEIR_WITH_STREAM(streams[2]) MUST(weir_copy_(host_out, out, true));
  }
  MUST(weir_synchronize(gpu));
  return now_ms() - begin;
}

static void set_up(int pinned, int64_t side, int64_t bytes)
{
  weir_options far = {.device = gpu}, home = {.device = cpu, .pin_memory = pinned};
  for (int i = 0; i < 3; i++)
    MUST(weir_stream_new(&streams[i], gpu, 0));
  MUST(weir_randn(&a, weir_shape(side, side), &far));
  MUST(weir_randn(&b, weir_shape(side, side), &far));
  MUST(weir_zeros(&host_in, weir_shape(bytes / 4), &home));
  MUST(weir_zeros(&host_out, weir_shape(bytes / 4), &home));
  MUST(weir_zeros(&in, weir_shape(bytes / 4), &far));
  MUST(weir_zeros(&out, weir_shape(bytes / 4), &far));
}

int main(int argc, char **argv)
{
  static const struct part {
    const char *name;
    int what;
  } parts[] = {{"products", PRODUCTS}, {"to-device", TO}, {"from-device", FROM}, {"all", 7}};
  int64_t side = argc > 2 ? strtoll(argv[2], NULL, 10) : 2048;
  int64_t bytes = (argc > 3 ? strtoll(argv[3], NULL, 10) : 32) << 20;
  if (argc < 2) return 2;
  if (!weir_cuda_is_available()) {
    (void)fprintf(stderr, "overlap: no GPU: %s\n", weir_error_message());
    return NO_GPU;
  }
  set_up(!strcmp(argv[1], "pinned"), side, bytes);
  (void)time_concurrent_work(7);
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    printf("%s %.3f ms\n", parts[i].name, time_concurrent_work(parts[i].what));
  return 0;
}
