/* weir.c: Weir's own allocator (libweir.so) as a peer of the others. */
#include <stdio.h>
#include "core/weir.h"
#include "tests/memory/fake.h"
#include "tools/peers/peer.h"

enum { STREAMS = 64 };

static fake device;
static const weir_device cuda0 = {WEIR_DEVICE_CUDA, 0};

static int begin(const char *policy)
{
  (void)policy;
  fake_init(&device, UINT64_C(1) << 36, 2 << 20);
  if (!weir_memory_attach(&device.backend, NULL)) return 0;
  (void)fprintf(stderr, "weir: %s\n", weir_error_message());
  return -1;
}

/* The stream as Weir sees it: looked up once a thread. */
static weir_stream *stream_of(void *native)
{
  static _Thread_local void *last;
  static _Thread_local weir_stream *stream;
  if (!native) return NULL;
  if (last == native) return stream;
  static int next;
  if (weir_stream_from_native(&stream, cuda0, fake_handle(&device, ++next % STREAMS))) return NULL;
  last = native;
  return stream;
}

static void *take(uint64_t bytes, void *stream)
{
  void *out;
  return weir_malloc(&out, bytes, cuda0, stream_of(stream)) ? NULL : out;
}

static void give(void *block, uint64_t bytes, void *stream, void *used)
{
  (void)bytes;
  if (used != stream) (void)weir_record_stream(block, stream_of(used));
  (void)weir_free(block);
}

static uint64_t peak(void)
{
  int64_t bytes = 0;
  (void)weir_memory_stat(&bytes, cuda0, "reserved_bytes.all.peak");
  return (uint64_t)bytes;
}

static uint64_t calls(void)
{
  int64_t count = 0;
  (void)weir_memory_stat(&count, cuda0, "num_device_alloc");
  return (uint64_t)count;
}

static const peer self = {"weir", begin, take, give, peak, calls};

PEER_EXPORT weir_peer(void)
{
  return &self;
}
