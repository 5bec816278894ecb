/* memory.c: Weir's caching allocator from C: cc memory.c $(pkg-config --cflags --libs weir) */
#include <stdio.h>
#include <weir.h>
#include "usage.h"

static int failed(const char *what)
{
  (void)fprintf(stderr, "%s: %s\n", what, weir_error_message());
  return 1;
}

int main(int argc, char **argv)
{
  static const char *const options[] = {NULL};
  int usage = answer_usage(argc, argv, "memory", "", options);
  if (usage != GO_ON) return usage;
  weir_device gpu = WEIR_CUDA_AT(0);
  weir_stream *side;
  void *weights, *batch, *huge;
  int64_t live, cached;
  if (!weir_cuda_is_available() || weir_stream_create(&side, gpu)) return failed("no CUDA");
  if (weir_malloc(&weights, 48 << 20, gpu, NULL)) return failed("weights"); /* default stream */
  if (weir_malloc(&batch, 16 << 20, gpu, side)) return failed("batch");
  /* Kernels would run here, launched on weir_stream_native() of each stream. */
  if (weir_record_stream(weights, side)) return failed("record_stream"); /* side reads them, too */
  if (weir_malloc(&huge, (size_t)1 << 50, gpu, NULL) != WEIR_EOOM) return failed("a petabyte");
  printf("as it should be: %.19s\n", weir_error_message());
  if (weir_free(batch) || weir_free(weights)) return failed("free"); /* waits for nothing */
  if (weir_memory_stat(&live, gpu, "allocated_bytes.all.current")) return failed("live");
  if (weir_memory_stat(&cached, gpu, "reserved_bytes.all.current")) return failed("cached");
  printf("%lld MiB live, %lld MiB cached\n", (long long)live >> 20, (long long)cached >> 20);
  return weir_memory_detach(gpu) ? failed("detach") : 0;
}
