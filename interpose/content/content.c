/* content.c: what copies carry, as hashes (--hash).
 *
 * The host's end of a copy is hashed when the program can no longer change it unseen. That is
 * right after the call for the source of every copy to a device (a page-locked one may still be
 * written by work under way: then it is not hashed) and for the destination of a copy that the
 * call has waited for. The destination of a copy that goes on after the call is hashed at the wait
 * that shows its end (pending.h). Every copy between host and device that succeeded has a record:
 * its hash, or why there is none. The time that this takes is in the record, and in no event: a
 * call's own ends before it.
 *
 * With --hash=auto only some copies are hashed (sample.h), and the others have no record.
 *
 * Not seen are kernels that write page-locked memory while a copy from it is under way, and host
 * threads that do. */
#include "interpose/content/content.h"

#include <stdlib.h>
#include <string.h>
#include "core/base/clock.h"
#include "core/trace/api.h"
#include "interpose/content/pending.h"
#include "interpose/content/sample.h"
#include "interpose/process/settings.h"
#include "interpose/process/part.h"
#include "interpose/record/context.h"
#include "interpose/record/copy_args.h"

enum { DEFAULT_MEBIBYTES = 64, LEAST_BYTES = 64 };

static uint64_t most_bytes; /* of a copy that is hashed */
static uint8_t
    writers[WEIR_SPOOL_MAX_APIS / 8]; /* functions after which streams write host memory */

/* ---- records --------------------------------------------------------------------------------- */

void content_write(thread_state *t, uint64_t number, uint64_t start, hash_outcome outcome,
                   const copy_hash_info *info, bool uniform)
{
  const trace_event head = {.start = clock_ticks() - info->ticks,
                            .device = WEIR_DEVICE_NONE,
                            .src_device = WEIR_DEVICE_NONE,
                            .hash_outcome = (uint8_t)outcome,
                            .mem = uniform,
                            .a = number,
                            .b = start};
  (void)spool_writer_extended(&t->writer, WEIR_EV_COPY_HASH, &head, info, sizeof *info);
}

void content_hash(thread_state *t, uint64_t number, uint64_t start, const content_region *region,
                  uint64_t dst, uint64_t src, unsigned site)
{
  uint64_t from = clock_ticks();
  content_digest d = {0};
  bool good = content_digest_of(region, &d);
  const copy_hash_info info = {.hash = {d.hash[0], d.hash[1]},
                               .bytes = good ? region->width * region->height : 0,
                               .ticks = clock_ticks() - from,
                               .dst = dst,
                               .src = src};
  content_write(t, number, start, good ? WEIR_HASH_HASHED : WEIR_HASH_UNREADABLE, &info, d.uniform);
  if (good) sample_hashed(site, info.bytes, &d);
}

/* ---- copies ---------------------------------------------------------------------------------- */

typedef struct host_end {
  content_region region;
  bool pinned; /* page-locked: the copy may go on after the call */
} host_end;

/* What the address is by the driver's word: the map does not know all. 0: CUDA does not know it. */
static CUmemorytype driver_memory_type(uint64_t at)
{
  PFN_cuPointerGetAttribute_v4000 ask = WEIR_HELPER(cuPointerGetAttribute);
  CUmemorytype type = 0;
  if (!ask) return CU_MEMORYTYPE_DEVICE;
  return ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) == CUDA_SUCCESS ? type : 0;
}

static host_end host_end_of(const event_fields *e, const copy_args *a)
{
  bool to_device = event_get_copy_kind(e) == WEIR_COPY_HTOD;
  uint64_t at = to_device ? a->src + a->src_offset : a->dst + a->dst_offset;
  uint64_t pitch = to_device ? a->src_pitch : a->dst_pitch;
  host_end h = {.region = {at, a->width, a->height, pitch}};
  if (pitch < a->width) h.region.pitch = a->width;
  if (a->height == 1) h.region.pitch = a->width;
  unsigned mem = to_device ? e->mem >> 4 : e->mem & 15;
  h.pinned = e->flags & WEIR_EVF_ASYNC && (mem == WEIR_MEM_PINNED || driver_memory_type(at) != 0);
  return h;
}

static void explain(const hook_call *c, const event_fields *e, hash_outcome why)
{
  const copy_hash_info info = {.dst = e->a, .src = e->b};
  content_write(c->thread, 0, c->start, why, &info, false);
}

static void hash_copy(const hook_call *c, const event_fields *e, const copy_args *a)
{
  host_end h = host_end_of(e, a);
  unsigned site = sample_site(c, e);
  bool taken = sample_takes(site, e->bytes);
  if (event_get_copy_kind(e) == WEIR_COPY_DTOH && h.pinned) {
    pending_copy(c, e, &h.region, site, taken);
  } else if (!taken) {
    return;
  } else if (event_get_copy_kind(e) == WEIR_COPY_HTOD && h.pinned && pending_may_write(&h.region)) {
    explain(c, e, WEIR_HASH_UNORDERED);
  } else {
    content_hash(c->thread, 0, c->start, &h.region, e->a, e->b, site);
  }
}

static void watch_copy(const hook_call *c, const event_fields *e, const copy_args *a)
{
  if (c->status || !e->bytes || e->flags & WEIR_EVF_CAPTURE) return;
  if (e->flags & WEIR_EVF_IMPLICIT_SYNC) pending_waited(c, e);
  if (event_get_copy_kind(e) == WEIR_COPY_DTOH || event_get_copy_kind(e) == WEIR_COPY_HTOH) {
    uint64_t rows = a->height * a->depth, pitch = a->dst_pitch > a->width ? a->dst_pitch : a->width;
    pending_drop_region(c->thread, e->a + a->dst_offset, rows * pitch, WEIR_HASH_OVERWRITTEN);
  }
  if (event_get_copy_kind(e) != WEIR_COPY_DTOH && event_get_copy_kind(e) != WEIR_COPY_HTOD) return;
  if (e->bytes > most_bytes)
    explain(c, e, WEIR_HASH_TOO_LONG);
  else if (a->dimensions > 2 || a->elements)
    explain(c, e, WEIR_HASH_SHAPE);
  else
    hash_copy(c, e, a);
}

/* ---- everything else ------------------------------------------------------------------------- */

static void watch_wait(const hook_call *c, const event_fields *e)
{
  sync_type type = event_get_sync_type(e);
  if (type == WEIR_SYNC_STREAM_WAIT)
    pending_linked(true);
  else if (type >= WEIR_SYNC_EVENT && type <= WEIR_SYNC_QUERY)
    pending_waited(c, e);
}

/* A write to the host's memory by other means, and the end of memory, streams, devices. */
static void watch_other(const hook_call *c, const event_fields *e)
{
  switch (e->kind) {
  case WEIR_EV_MEMSET:
    pending_drop_region(c->thread, e->a, e->bytes, WEIR_HASH_OVERWRITTEN);
    break;
  case WEIR_EV_FREE:
    pending_drop_region(c->thread, e->a, e->bytes ? e->bytes : 1, WEIR_HASH_GONE);
    break;
  case WEIR_EV_EVENT:
    if (e->stream) pending_recorded(e);
    break;
  case WEIR_EV_STREAM:
    if (!e->a) pending_drop_stream(c->thread, e->stream);
    break;
  case WEIR_EV_RESET:
    pending_drop_all(c->thread);
    break;
  default:
    if (writers[c->api / 8] >> c->api % 8 & 1) pending_writer(c, e);
  }
}

static void watch_event(const hook_call *c, const event_fields *e, const copy_args *copy)
{
  if (c->status) return;
  if (e->kind == WEIR_EV_COPY)
    watch_copy(c, e, copy);
  else if (e->kind == WEIR_EV_SYNC)
    watch_wait(c, e);
  else
    watch_other(c, e);
  if (e->stream == WEIR_STREAM_LEGACY && e->kind != WEIR_EV_SYNC) pending_linked(false);
}

/* ---- the part -------------------------------------------------------------------------------- */

/* What streams do by these is not known here, and may be a write to any memory of the host. */
static void mark_writers(void)
{
  static const char *const names[] = {"LaunchHostFunc", "StreamAddCallback", "GraphLaunch",
                                      "StreamWriteValue", "StreamBatchMemOp"};
  for (uint32_t i = 1; i < api_total && i < WEIR_SPOOL_MAX_APIS; i++) {
    const api_info *info = api_row(i);
    const char *name = info && info->name ? info->name : "";
    name += !strncmp(name, "cuda", 4) ? 4 : !strncmp(name, "cu", 2) ? 2 : 0;
    for (unsigned n = 0; n < sizeof names / sizeof *names; n++)
      if (!strncmp(name, names[n], strlen(names[n]))) writers[i / 8] |= (uint8_t)(1u << i % 8);
  }
}

static void start_hashing(void)
{
  const char *text = getenv("WEIR_HASH");
  bool on = false;
  if (!text) return;
  most_bytes = (uint64_t)DEFAULT_MEBIBYTES << 20;
  if (!strcmp(text, "auto")) {
    sample_start();
    on = true;
  } else if (option_bool(&on, "WEIR_HASH", text) != WEIR_OK) {
    weir_status st = option_size(&most_bytes, "WEIR_HASH", text, LEAST_BYTES);
    process_bad_option("WEIR_HASH", st);
    on = st == WEIR_OK;
  }
  if (!on) return;
  mark_writers();
  atomic_store_explicit(&event_watched_by, watch_event, memory_order_release);
}

static const process_part part = {.start = start_hashing, .forked = pending_forked};
PROCESS_PART(part);
