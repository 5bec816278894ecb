/* perfetto.c: see formats.h. Every packet is of one sequence; names, frames and stacks are
 * interned: they are written with the first packet that has them, and a number stands for them
 * from then on. What is kept in memory is these numbers alone. */
#include "reports/export/formats.h"
#include <inttypes.h>
#include <stdlib.h>
#include "reports/export/proto.h"
#include "reports/export/timeline.h"

/* Field numbers of Perfetto's messages, and their values. */
enum {
  TRACE_PACKET = 1,
  PACKET_TIMESTAMP = 8,
  PACKET_SEQUENCE = 10,
  PACKET_EVENT = 11,
  PACKET_INTERNED = 12,
  PACKET_SEQUENCE_FLAGS = 13,
  PACKET_TRACK = 60,
  FLAG_STATE_CLEARED = 1,
  FLAG_NEEDS_STATE = 2,
  TRACK_UUID = 1,
  TRACK_NAME = 2,
  TRACK_PROCESS = 3,
  TRACK_THREAD = 4,
  TRACK_PARENT = 5,
  TRACK_COUNTER = 8,
  PROCESS_PID = 1,
  PROCESS_NAME = 6,
  THREAD_PID = 1,
  THREAD_TID = 2,
  THREAD_NAME = 5,
  COUNTER_UNIT = 3,
  UNIT_SIZE_BYTES = 3,
  EVENT_CATEGORY = 3,
  EVENT_ANNOTATION = 4,
  EVENT_TYPE = 9,
  EVENT_NAME = 10,
  EVENT_TRACK = 11,
  EVENT_COUNTER_VALUE = 30,
  EVENT_FLOW = 47,
  EVENT_CALLSTACK = 56,
  TYPE_BEGIN = 1,
  TYPE_END = 2,
  TYPE_COUNTER = 4,
  ANNOTATION_NAME = 1,
  ANNOTATION_INT = 4,
  ANNOTATION_STRING = 6,
  INTERNED_CATEGORY = 1,
  INTERNED_NAME = 2,
  INTERNED_ANNOTATION = 3,
  INTERNED_FUNCTION = 5,
  INTERNED_FRAME = 6,
  INTERNED_CALLSTACK = 7,
  INTERNED_MAPPING_PATH = 17,
  INTERNED_SOURCE_PATH = 18,
  INTERNED_MAPPING = 19,
  IID = 1,
  STRING_TEXT = 2,
  FRAME_FUNCTION = 2,
  FRAME_MAPPING = 3,
  FRAME_OFFSET = 4,
  FRAME_FILE = 5,
  FRAME_LINE = 6,
  MAPPING_PATH = 7,
  CALLSTACK_FRAME = 2
};

enum { ANNOTATE_BYTES = 1, ANNOTATE_STATUS, ANNOTATE_KERNEL, ANNOTATE_COUNT };

enum { INTERNED_KINDS = INTERNED_MAPPING + 1 };

typedef struct perfetto {
  FILE *out;
  export_input input;
  hash_map numbers[INTERNED_KINDS]; /* by the field that they are interned in: key -> iid */
  bool begun;                       /* a packet is written */
  proto interned, event, track;     /* of the packet in the making */
  proto packet, part, whole;        /* short-lived */
} perfetto;

/* ---- packets --------------------------------------------------------------------------------- */

/* Writes a packet of what is in the making: an event at `at`, or a track. */
static weir_status put_packet(perfetto *x, int64_t at)
{
  proto *p = &x->packet;
  proto_clear(p);
  proto_clear(&x->whole);
  if (x->event.count) proto_number(p, PACKET_TIMESTAMP, (uint64_t)at);
  proto_number(p, PACKET_SEQUENCE, 1);
  proto_number(p, PACKET_SEQUENCE_FLAGS,
               x->begun ? FLAG_NEEDS_STATE : FLAG_STATE_CLEARED | FLAG_NEEDS_STATE);
  if (x->interned.count || x->interned.failed) proto_message(p, PACKET_INTERNED, &x->interned);
  if (x->event.count || x->event.failed) proto_message(p, PACKET_EVENT, &x->event);
  if (x->track.count || x->track.failed) proto_message(p, PACKET_TRACK, &x->track);
  proto_message(&x->whole, TRACE_PACKET, p);
  x->begun = true;
  bool failed = x->whole.failed;
  proto_clear(&x->interned);
  proto_clear(&x->event);
  proto_clear(&x->track);
  if (failed) return export_out_of_memory();
  (void)fwrite(x->whole.bytes, 1, x->whole.count, x->out);
  return export_written(x->out);
}

/* ---- what is interned ------------------------------------------------------------------------ */

static weir_status iid_of(perfetto *x, unsigned field, uint64_t key, uint64_t *iid, bool *added)
{
  *iid = export_number(&x->numbers[field], key, added);
  return *iid ? WEIR_OK : export_out_of_memory();
}

/* The number of a text among those of `field`. */
static weir_status intern_text(perfetto *x, unsigned field, const char *text, uint64_t *iid)
{
  bool added;
  weir_status st = iid_of(x, field, export_text_key(1, text), iid, &added);
  if (st || !added) return st;
  proto_clear(&x->part);
  proto_number(&x->part, IID, *iid);
  proto_text(&x->part, STRING_TEXT, text);
  proto_message(&x->interned, field, &x->part);
  return WEIR_OK;
}

static weir_status intern_mapping(perfetto *x, const char *path, uint64_t *iid)
{
  bool added;
  uint64_t text;
  weir_status st = intern_text(x, INTERNED_MAPPING_PATH, path, &text);
  if (!st) st = iid_of(x, INTERNED_MAPPING, text, iid, &added);
  if (st || !added) return st;
  proto_clear(&x->part);
  proto_number(&x->part, IID, *iid);
  proto_number(&x->part, MAPPING_PATH, text);
  proto_message(&x->interned, INTERNED_MAPPING, &x->part);
  return WEIR_OK;
}

static weir_status intern_new_frame(perfetto *x, const wr_frame *f, uint64_t iid)
{
  uint64_t function = 0, mapping = 0, file = 0;
  char *name = export_frame_name(f);
  weir_status st =
      name ? intern_text(x, INTERNED_FUNCTION, name, &function) : export_out_of_memory();
  free(name);
  if (!st) st = intern_mapping(x, f->module, &mapping);
  if (!st && f->file) st = intern_text(x, INTERNED_SOURCE_PATH, f->file, &file);
  proto_clear(&x->part);
  proto_number(&x->part, IID, iid);
  proto_number(&x->part, FRAME_FUNCTION, function);
  proto_number(&x->part, FRAME_MAPPING, mapping);
  proto_number(&x->part, FRAME_OFFSET, f->offset);
  if (file) proto_number(&x->part, FRAME_FILE, file);
  if (file && f->line > 0) proto_number(&x->part, FRAME_LINE, (uint64_t)f->line);
  proto_message(&x->interned, INTERNED_FRAME, &x->part);
  return st;
}

/* The number of a stack; its frames are outermost first. */
static weir_status intern_stack(perfetto *x, int64_t stack, uint64_t *iid)
{
  bool added;
  const wr_frame *frames;
  size_t count;
  weir_status st = iid_of(x, INTERNED_CALLSTACK, (uint64_t)stack, iid, &added);
  if (st || !added) return st;
  st = export_frames(&x->input, stack, &frames, &count);
  proto_clear(&x->packet);
  proto_number(&x->packet, IID, *iid);
  for (size_t i = count; !st && i-- > 0;) {
    uint64_t frame;
    st = iid_of(x, INTERNED_FRAME, export_frame_key(&frames[i]), &frame, &added);
    if (!st && added) st = intern_new_frame(x, &frames[i], frame);
    proto_number(&x->packet, CALLSTACK_FRAME, frame);
  }
  proto_message(&x->interned, INTERNED_CALLSTACK, &x->packet);
  return st;
}

/* ---- tracks ---------------------------------------------------------------------------------- */

/* A device's counter of live memory is a track next to those of its streams. */
static uint64_t counter_of(uint64_t device_track)
{
  return device_track ^ UINT64_C(1) << 63;
}

static weir_status put_process(perfetto *x, const timeline_item *item)
{
  proto_number(&x->part, PROCESS_PID, (uint64_t)item->pid);
  proto_text(&x->part, PROCESS_NAME, item->name);
  proto_number(&x->track, TRACK_UUID, item->track);
  proto_message(&x->track, TRACK_PROCESS, &x->part);
  return put_packet(x, 0);
}

static weir_status put_thread(perfetto *x, const timeline_item *item)
{
  proto_number(&x->part, THREAD_PID, (uint64_t)item->pid);
  proto_number(&x->part, THREAD_TID, (uint64_t)item->tid);
  proto_text(&x->part, THREAD_NAME, item->name);
  proto_number(&x->track, TRACK_UUID, item->track);
  proto_number(&x->track, TRACK_PARENT, item->group);
  proto_message(&x->track, TRACK_THREAD, &x->part);
  return put_packet(x, 0);
}

static weir_status put_device(perfetto *x, const timeline_item *item)
{
  char name[48] = "Device not known";
  if (item->device >= 0) (void)snprintf(name, sizeof name, "Device %" PRId64, item->device);
  proto_number(&x->track, TRACK_UUID, item->track);
  proto_text(&x->track, TRACK_NAME, name);
  weir_status st = put_packet(x, 0);
  proto_number(&x->part, COUNTER_UNIT, UNIT_SIZE_BYTES);
  proto_number(&x->track, TRACK_UUID, counter_of(item->track));
  proto_number(&x->track, TRACK_PARENT, item->track);
  proto_text(&x->track, TRACK_NAME, "Live memory");
  proto_message(&x->track, TRACK_COUNTER, &x->part);
  return st ? st : put_packet(x, 0);
}

static weir_status put_lane(perfetto *x, const timeline_item *item)
{
  char name[80];
  if (item->kind == TIMELINE_RANGES)
    (void)snprintf(name, sizeof name, "Ranges of thread %" PRId64, item->tid);
  else
    (void)snprintf(name, sizeof name, "Stream %" PRId64 " (context %" PRId64 ")", item->stream,
                   item->context);
  proto_number(&x->track, TRACK_UUID, item->track);
  proto_number(&x->track, TRACK_PARENT, item->group);
  proto_text(&x->track, TRACK_NAME, name);
  return put_packet(x, 0);
}

/* ---- what is on them ------------------------------------------------------------------------- */

static void annotate_number(perfetto *x, uint64_t name, int64_t number)
{
  proto_clear(&x->part);
  proto_number(&x->part, ANNOTATION_NAME, name);
  proto_number(&x->part, ANNOTATION_INT, (uint64_t)number);
  proto_message(&x->event, EVENT_ANNOTATION, &x->part);
}

static void annotate(perfetto *x, const timeline_item *item)
{
  if (item->sized) annotate_number(x, ANNOTATE_BYTES, item->bytes);
  if (item->status) annotate_number(x, ANNOTATE_STATUS, item->status);
  if (!item->kernel) return;
  proto_clear(&x->part);
  proto_number(&x->part, ANNOTATION_NAME, ANNOTATE_KERNEL);
  proto_text(&x->part, ANNOTATION_STRING, item->kernel);
  proto_message(&x->event, EVENT_ANNOTATION, &x->part);
}

/* Begin and end, one after the other: nothing that is on the track lies between. */
static weir_status put_slice(perfetto *x, const timeline_item *item)
{
  uint64_t name = 0, category = 0, stack = 0;
  weir_status st = intern_text(x, INTERNED_NAME, item->name ? item->name : "?", &name);
  if (!st) st = intern_text(x, INTERNED_CATEGORY, item->category ? item->category : "?", &category);
  if (!st && item->stack) st = intern_stack(x, item->stack, &stack);
  if (st) return st;
  proto_number(&x->event, EVENT_TYPE, TYPE_BEGIN);
  proto_number(&x->event, EVENT_TRACK, item->track);
  proto_number(&x->event, EVENT_NAME, name);
  proto_number(&x->event, EVENT_CATEGORY, category);
  if (stack) proto_number(&x->event, EVENT_CALLSTACK, stack);
  bool flows = item->kind == TIMELINE_WORK ? item->call != 0 : item->works;
  if (flows) proto_fixed64(&x->event, EVENT_FLOW, (uint64_t)item->call);
  annotate(x, item);
  st = put_packet(x, item->start);
  proto_number(&x->event, EVENT_TYPE, TYPE_END);
  proto_number(&x->event, EVENT_TRACK, item->track);
  return st ? st : put_packet(x, item->end);
}

static weir_status put_live(perfetto *x, const timeline_item *item)
{
  proto_number(&x->event, EVENT_TYPE, TYPE_COUNTER);
  proto_number(&x->event, EVENT_TRACK, counter_of(item->track));
  proto_number(&x->event, EVENT_COUNTER_VALUE, (uint64_t)item->bytes);
  return put_packet(x, item->start);
}

static weir_status put_item(void *context, const timeline_item *item)
{
  perfetto *x = context;
  proto_clear(&x->part);
  switch (item->kind) {
  case TIMELINE_PROCESS:
    return put_process(x, item);
  case TIMELINE_THREAD:
    return put_thread(x, item);
  case TIMELINE_DEVICE:
    return put_device(x, item);
  case TIMELINE_STREAM:
  case TIMELINE_RANGES:
    return put_lane(x, item);
  case TIMELINE_LIVE:
    return put_live(x, item);
  default:
    return put_slice(x, item);
  }
}

/* The first packet: names of annotations. */
static weir_status put_first(perfetto *x)
{
  static const char *const names[ANNOTATE_COUNT] = {
      [ANNOTATE_BYTES] = "bytes", [ANNOTATE_STATUS] = "status", [ANNOTATE_KERNEL] = "kernel"};
  weir_status st = WEIR_OK;
  for (uint64_t i = 1, iid; i < ANNOTATE_COUNT && !st; i++)
    st = intern_text(x, INTERNED_ANNOTATION, names[i], &iid);
  return st ? st : put_packet(x, 0);
}

weir_status perfetto_export(FILE *out, const char *trace)
{
  perfetto x = {.out = out};
  weir_status st = export_input_open(&x.input, trace);
  if (!st) st = put_first(&x);
  if (!st) st = timeline_walk(&x.input.in.db, put_item, &x);
  export_input_close(&x.input);
  for (int i = 0; i < INTERNED_KINDS; i++)
    hash_map_free(&x.numbers[i]);
  proto *const parts[] = {&x.interned, &x.event, &x.track, &x.packet, &x.part, &x.whole};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    proto_free(parts[i]);
  return st;
}
