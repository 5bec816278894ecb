/* weir.c: Weir's own allocator (libweir.so) as a peer of the others. */
#include <stdio.h>
#include "core/weir.h"
#include "tests/peers/peer.h"

static const weir_device cuda0 = WEIR_CUDA_INIT(0);

static int peer_open(void)
{
  void *block;
  if (!weir_malloc(&block, 1, cuda0, NULL) && !weir_free(block)) return 0;
  (void)fprintf(stderr, "weir: %s\n", weir_error_message());
  return -1;
}

/* The stream as Weir sees it. A program keeps it beside its own; here each thread keeps its last.
 */
static weir_stream *stream_of(void *native)
{
  static _Thread_local void *last;
  static _Thread_local weir_stream *stream;
  if (!native || native == last) return native ? stream : NULL;
  if (weir_stream_from_native(&stream, cuda0, native)) return NULL;
  last = native;
  return stream;
}

static void *peer_malloc(uint64_t bytes, void *stream)
{
  void *out;
  return weir_malloc(&out, bytes, cuda0, stream_of(stream)) ? NULL : out;
}

static void peer_free(void *block, uint64_t bytes, void *stream, void *used)
{
  (void)bytes;
  if (used != stream) (void)weir_record_stream(block, stream_of(used));
  (void)weir_free(block);
}

static uint64_t peer_peak(void)
{
  int64_t bytes = 0;
  (void)weir_memory_stat(&bytes, cuda0, "reserved_bytes.all.peak");
  return (uint64_t)bytes;
}

static const peer self = {"weir", peer_open, peer_malloc, peer_free, peer_peak};

PEER_EXPORT weir_peer(void)
{
  return &self;
}
