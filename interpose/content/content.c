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
 * With --hash=auto, the default, only some copies are hashed (sample.h), and most others are not
 * even looked at (record/copy_sites.h): they have no record.
 *
 * Memory that would be slow to read, or whose reading the program would notice, is not hashed:
 * write-combined, and managed memory.
 *
 * Once calls are left out of the trace (process/recording.h) the process hashes no more.
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
#include "interpose/content/spans.h"
#include "interpose/process/settings.h"
#include "interpose/process/part.h"
#include "interpose/process/recording.h"
#include "interpose/record/context.h"
#include "interpose/record/captures.h"
#include "interpose/record/copy_sites.h"

enum { LEAST_BYTES = 64 };

static uint64_t most_bytes; /* of a copy that is hashed */
/* Functions after which streams write memory of the host. */
static uint8_t writers[WEIR_SPOOL_MAX_APIS / 8];

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

void content_hash(thread_state *t, const content_copy *copy, const content_region *region)
{
  uint64_t from = clock_ticks();
  content_digest d = {0};
  copy_hash_info info = {.dst = copy->dst, .src = copy->src};
  content_spans spans = {.bytes = 0};
  spans_verdict v = {.rest = 0}, whole = {.rest = 0};
  sample_print print = copy->print ? sample_print_copy(copy, region, &info, &v) : SAMPLE_IS_PAID;
  if (print != SAMPLE_IS_PAID) {
    info.ticks = clock_ticks() - from;
    content_write(t, copy->number, copy->start,
                  print == SAMPLE_IS_ALIKE ? WEIR_HASH_ALIKE : WEIR_HASH_LEFT, &info, false);
    sample_rest(copy->site, v.rest);
    return;
  }
  bool good = content_digest_of(region, &d, copy->upload ? &spans : NULL);
  info.hash[0] = d.hash[0], info.hash[1] = d.hash[1];
  info.bytes = good ? region->width * region->height : 0;
  if (good && copy->upload) whole = spans_compare(copy->site, copy->dst, &spans, &info);
  info.ticks = clock_ticks() - from;
  content_write(t, copy->number, copy->start, good ? WEIR_HASH_HASHED : WEIR_HASH_UNREADABLE, &info,
                d.uniform);
  if (good) sample_hashed(copy, region, &d, &whole);
  sample_rest(copy->site, copy->print ? v.rest : whole.rest);
}

/* ---- copies ---------------------------------------------------------------------------------- */

typedef struct host_end {
  content_region region;
  bool pinned; /* page-locked: the copy may go on after the call */
  bool slow;   /* to read, or it would be moved by that */
} host_end;

/* What the address is by the driver's word: the map does not know all. */
static unsigned driver_memory_kind(uint64_t at)
{
  PFN_cuPointerGetAttribute_v4000 ask = WEIR_HELPER(cuPointerGetAttribute);
  CUmemorytype type = 0;
  if (!ask) return WEIR_MEM_UNKNOWN;
  if (ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) != CUDA_SUCCESS || !type)
    return WEIR_MEM_PAGEABLE; /* CUDA does not know it */
  return type == CU_MEMORYTYPE_HOST ? WEIR_MEM_PINNED : WEIR_MEM_DEVICE;
}

/* Whether reading the memory would take long, or move it. Else `mapped` is whether the driver has
 * mapped it for the program, which it has not where the program's own memory was registered. */
static bool is_slow_memory(uint64_t at, unsigned mem, bool *mapped)
{
  PFN_cuMemHostGetFlags_v2030 ask = WEIR_HELPER(cuMemHostGetFlags);
  unsigned flags = 0;
  if (mem != WEIR_MEM_PINNED || !ask || !capture_step_begin()) return true;
  *mapped = ask(&flags, (void *)(uintptr_t)at) == CUDA_SUCCESS;
  capture_step_end();
  return *mapped && flags & CU_MEMHOSTALLOC_WRITECOMBINED;
}

static host_end host_end_of(const event_fields *e, const copy_args *a)
{
  bool to_device = event_get_copy_kind(e) == WEIR_COPY_HTOD;
  uint64_t at = to_device ? a->src + a->src_offset : a->dst + a->dst_offset;
  uint64_t pitch = to_device ? a->src_pitch : a->dst_pitch;
  host_end h = {.region = {.at = at, .width = a->width, .height = a->height, .pitch = pitch}};
  if (pitch < a->width) h.region.pitch = a->width;
  if (a->height == 1) h.region.pitch = a->width;
  unsigned mem = to_device ? e->mem >> 4 : e->mem & 15;
  if (mem == WEIR_MEM_PAGEABLE) mem = driver_memory_kind(at);
  h.pinned = e->flags & WEIR_EVF_ASYNC && mem != WEIR_MEM_PAGEABLE;
  h.slow = mem != WEIR_MEM_PAGEABLE && is_slow_memory(at, mem, &h.region.mapped);
  return h;
}

static void explain(const hook_call *c, const event_fields *e, hash_outcome why)
{
  const copy_hash_info info = {.dst = e->a, .src = e->b};
  content_write(c->thread, 0, c->start, why, &info, false);
}

/* Bytes of the host from the copy's destination on that it may write. */
static uint64_t written_span(const event_fields *e, const copy_args *a)
{
  uint64_t pitch = a->dst_pitch > a->width ? a->dst_pitch : a->width;
  uint64_t rows = a->dst_rows > a->height ? a->dst_rows : a->height;
  uint64_t span = a->dst_offset + rows * a->depth * pitch;
  return span > e->bytes ? span : e->bytes;
}

/* Returns whether the copy needs no more attention: it does not write memory of the host later, or
 * it is known when it has. */
static bool hash_copy(const hook_call *c, const event_fields *e, const copy_args *a, unsigned site,
                      bool print)
{
  host_end h = host_end_of(e, a);
  bool back = event_get_copy_kind(e) == WEIR_COPY_DTOH;
  if (h.slow) {
    explain(c, e, WEIR_HASH_SLOW_MEMORY);
    return !back;
  }
  if (back && h.pinned) return pending_copy(c, e, &h.region, site, print);
  if (h.pinned && pending_may_write(&h.region)) {
    explain(c, e, WEIR_HASH_UNORDERED);
  } else {
    const content_copy copy = {0, c->start, e->a, e->b, site, !back, print};
    content_hash(c->thread, &copy, &h.region);
  }
  return true;
}

static bool can_be_hashed(const event_fields *e, const copy_args *a, hash_outcome *why)
{
  bool fits = e->bytes <= most_bytes || sample_is_on();
  *why = fits ? WEIR_HASH_SHAPE : WEIR_HASH_TOO_LONG;
  return fits && a->dimensions < 3 && !a->elements;
}

/* Work that is under way may end with it, or be overwritten by it. */
static void watch_pending(const hook_call *c, const event_fields *e, const copy_args *a)
{
  if (e->flags & WEIR_EVF_IMPLICIT_SYNC) pending_waited(c, e);
  if (event_get_copy_kind(e) == WEIR_COPY_DTOH || event_get_copy_kind(e) == WEIR_COPY_HTOH)
    pending_drop_region(c->thread, e->a, written_span(e, a), WEIR_HASH_OVERWRITTEN);
  if (e->stream == WEIR_STREAM_LEGACY) pending_linked(false);
}

static void watch_copy(const hook_call *c, const event_fields *e, const copy_args *a, unsigned site)
{
  bool ended = false;
  hash_outcome why = WEIR_HASH_SHAPE;
  if (atomic_load_explicit(&recording_left_out, memory_order_relaxed)) return;
  if (c->status || !e->bytes || e->flags & WEIR_EVF_CAPTURE) return;
  watch_pending(c, e, a);
  if (copy_crosses(e) && can_be_hashed(e, a, &why)) {
    sample_choice choice = sample_choose(site, e->bytes, c->end);
    if (choice != SAMPLE_LEAVE) ended = hash_copy(c, e, a, site, choice == SAMPLE_PRINT);
  } else if (copy_crosses(e)) {
    sample_give_up(site);
    if (!sample_is_on()) explain(c, e, why);
  }
  if (!ended && copy_writes_later(e)) copy_goes_unseen(site, e->a, written_span(e, a));
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

static void watch_event(const hook_call *c, const event_fields *e)
{
  if (c->status || atomic_load_explicit(&recording_left_out, memory_order_relaxed)) return;
  if (e->kind == WEIR_EV_SYNC)
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
      if (!strncmp(name, names[n], strlen(names[n]))) {
        writers[i / 8] |= (uint8_t)(1u << i % 8);
        event_watch_api((uint16_t)i);
      }
  }
}

/* What WEIR_HASH has; false: nothing is hashed. */
static bool read_option(const char *text)
{
  bool on = false;
  if (!text || !strcmp(text, "auto")) {
    sample_start();
    return true;
  }
  if (option_bool(&on, "WEIR_HASH", text) == WEIR_OK) return on;
  weir_status st = option_size(&most_bytes, "WEIR_HASH", text, LEAST_BYTES);
  process_bad_option("WEIR_HASH", st);
  return st == WEIR_OK;
}

static void start_hashing(void)
{
  most_bytes = CONTENT_WHOLE_MOST;
  if (process_unrecorded || !read_option(getenv("WEIR_HASH"))) return;
  mark_writers();
  event_watched_by = watch_event;
  copies_watched_by = watch_copy;
}

static void forget_parent(void)
{
  pending_forked();
  content_reading_forked();
  spans_forked();
}

/* What writes memory is not seen any more: nothing is hashed from here on. */
static void end_hashing(void)
{
  pending_drop_all(&thread_self);
}

static const process_part part = {
    .start = start_hashing, .forked = forget_parent, .leaves_out = end_hashing};
PROCESS_PART(part);
