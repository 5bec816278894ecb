/* cpu/cpu.c: the host as a device: memory, copies, and streams that are always done.
 *
 * Its one stream is NULL and everything is complete when the call returns, so an event has nothing
 * to remember. Memory is the C library's, aligned for vectors and cache lines. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/backend/cpu/cpu.h"
#include "core/backend/philox.h"
#include "core/backend/threads.h"
#include "core/base/host_memory.h"

enum { ALIGNMENT = 512, COPY_GRAIN = 1 << 20 /* bytes a thread copies at a time */ };

/* ---- memory ---------------------------------------------------------------------------------- */

static weir_status cpu_mem_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
  (void)self;
  host_room room;
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  host_room_read(&room);
  uint64_t total = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
  if (room.cgroup_limit < total) total = room.cgroup_limit;
  uint64_t left = room.available;
  if (room.cgroup_limit != UINT64_MAX && room.cgroup_limit - room.cgroup_used < left)
    left = room.cgroup_limit - room.cgroup_used;
  *total_bytes = total;
  *free_bytes = left < total ? left : total;
  return WEIR_OK;
}

static weir_status cpu_segment_alloc(void *self, uint64_t bytes, uint64_t *address)
{
  void *at = NULL;
  (void)self;
  int error = bytes > PTRDIFF_MAX ? ENOMEM : posix_memalign(&at, ALIGNMENT, bytes ? bytes : 1);
  if (error)
    return weir_fail_errno(WEIR_ENOMEM, error,
                           "DefaultCPUAllocator: can't allocate memory: you tried to allocate %llu "
                           "bytes. Error code %d",
                           (unsigned long long)bytes, error);
  *address = (uint64_t)(uintptr_t)at;
  return WEIR_OK;
}

static weir_status cpu_segment_free(void *self, uint64_t address, uint64_t bytes)
{
  (void)self, (void)bytes;
  free((void *)(uintptr_t)address);
  return WEIR_OK;
}

/* ---- streams and events: nothing is ever pending --------------------------------------------- */

static weir_status cpu_event_create(void *self, void **event)
{
  static char one;
  (void)self;
  *event = &one;
  return WEIR_OK;
}

static weir_status event_only(void *self, void *event)
{
  (void)self, (void)event;
  return WEIR_OK;
}

static weir_status cpu_event_record(void *self, void *event, void *stream)
{
  (void)self, (void)event, (void)stream;
  return WEIR_OK;
}

static weir_status is_complete(void *self, void *event_or_stream, bool *complete)
{
  (void)self, (void)event_or_stream;
  *complete = true;
  return WEIR_OK;
}

/* ---- copies ---------------------------------------------------------------------------------- */

typedef struct bytes {
  char *to;
  const char *from;
} bytes;

static void copy_part(void *arg, int64_t from, int64_t to)
{
  const bytes *b = arg;
  memcpy(b->to + from, b->from + from, (size_t)(to - from));
}

void cpu_copy_bytes(void *to, const void *from, uint64_t count)
{
  bytes b = {to, from};
  if (to != from) parallel_for((int64_t)count, COPY_GRAIN, copy_part, &b);
}

static weir_status backend_copy(void *self, void *stream, enum weir_copy_way way, void *to,
                                const void *from, uint64_t count)
{
  (void)self, (void)stream, (void)way;
  cpu_copy_bytes(to, from, count);
  return WEIR_OK;
}

static weir_status cpu_copy_peer(void *self, void *stream, void *to, const weir_backend *source,
                                 const void *from, uint64_t count)
{
  (void)source;
  return backend_copy(self, stream, WEIR_COPY_WITHIN, to, from, count);
}

static weir_status copy_to_host(void *self, void *to, uint64_t from, uint64_t count)
{
  return backend_copy(self, NULL, WEIR_COPY_WITHIN, to, (const void *)(uintptr_t)from, count);
}

static weir_status copy_to_device(void *self, uint64_t to, const void *from, uint64_t count)
{
  return backend_copy(self, NULL, WEIR_COPY_WITHIN, (void *)(uintptr_t)to, from, count);
}

/* ---- random numbers -------------------------------------------------------------------------- */

static void random_part(void *arg, int64_t from, int64_t to)
{
  const weir_random *r = arg;
  const cpu_level *level = cpu_level_in_use();
  size_t size = cpu_dtype_bytes(r->dtype);
  double block[CPU_BLOCK];
  for (int64_t n; from < to; from += n) {
    n = to - from < CPU_BLOCK ? to - from : CPU_BLOCK;
    level->random(block, r, from, n);
    level->cast[r->dtype][WEIR_FLOAT64]((char *)r->out + (size_t)from * size, block, n);
  }
}

/* philox_place() of n elements at a time, at most CPU_BLOCK, from `from` on: round by round, so
 * that compilers make vectors of it. */
static void philox_places(int64_t *out, philox_block b, int64_t count, int bits, int64_t from,
                          int64_t n)
{
  uint32_t left[CPU_BLOCK], right[CPU_BLOCK], high, low;
  philox_masks(bits, &high, &low);
  for (int64_t i = 0; i < n; i++) {
    left[i] = (uint32_t)((from + i) >> bits / 2);
    right[i] = (uint32_t)(from + i) & low;
  }
  for (int round = 0; round < philox_rounds(bits); round += 2) {
    uint32_t one = philox_key(b, round, 0), two = philox_key(b, round, 1);
    for (int64_t i = 0; i < n; i++)
      left[i] ^= philox_mix(right[i], one) & high;
    for (int64_t i = 0; i < n; i++)
      right[i] ^= philox_mix(left[i], two) & low;
  }
  for (int64_t i = 0; i < n; i++) {
    out[i] = philox_turned(b, (int64_t)((uint64_t)left[i] << bits / 2 | right[i]));
    if (out[i] >= count) out[i] = philox_place(b, count, bits, out[i]);
  }
}

static void permutation_part(void *arg, int64_t from, int64_t to)
{
  const weir_random *r = arg;
  philox_block b = philox(r->seed, r->offset);
  int64_t block[CPU_BLOCK], count = (int64_t)r->a;
  for (int64_t n; from < to; from += n) {
    n = to - from < CPU_BLOCK ? to - from : CPU_BLOCK;
    philox_places(block, b, count, (int)r->b, from, n);
    cpu_level_in_use()->cast[r->dtype][WEIR_INT64](
        (char *)r->out + (size_t)from * cpu_dtype_bytes(r->dtype), block, n);
  }
}

weir_status cpu_random(void *self, void *stream, const weir_random *r)
{
  (void)self, (void)stream;
  weir_random mine = *r;
  bool places = r->kind == WEIR_RANDOM_PERMUTATION;
  parallel_for(r->count, CPU_GRAIN, places ? permutation_part : random_part, &mine);
  return WEIR_OK;
}

static const weir_compute compute = {.map = cpu_map,
                                     .reduce = cpu_reduce,
                                     .scan = cpu_scan,
                                     .sort_rows = cpu_sort_rows,
                                     .search = cpu_search,
                                     .random = cpu_random,
                                     .gemm = cpu_gemm,
                                     .im2col = cpu_im2col,
                                     .factor = cpu_factor,
                                     .factor_narrow = cpu_factor_narrow,
                                     .conv = cpu_conv,
                                     .softmax = cpu_softmax,
                                     .norm = cpu_norm,
                                     .index = cpu_index,
                                     .places = cpu_places,
                                     .pool = cpu_pool,
                                     .resample = cpu_resample,
                                     .update = cpu_update};

const weir_backend weir_cpu_backend = {.name = "cpu",
                                       .source = {.mem_info = cpu_mem_info,
                                                  .segment_alloc = cpu_segment_alloc,
                                                  .segment_free = cpu_segment_free},
                                       .event_create = cpu_event_create,
                                       .event_destroy = event_only,
                                       .event_record = cpu_event_record,
                                       .event_query = is_complete,
                                       .event_wait = cpu_event_record,
                                       .event_sync = event_only,
                                       .copy_to_host = copy_to_host,
                                       .copy_to_device = copy_to_device,
                                       .copy = backend_copy,
                                       .copy_done = backend_copy,
                                       .copy_peer = cpu_copy_peer,
                                       .stream_sync = event_only,
                                       .stream_query = is_complete,
                                       .compute = &compute};
