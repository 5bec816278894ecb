/* export.c: see export.h.
 *
 * A snapshot is written once, by core/base/dump.h, which makes JSON or a pickle of it. Structure:
 * PyTorch's documentation, "Understanding CUDA Memory Usage" (Snapshot API Reference). */
#include "tools/replay/export.h"
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include "core/base/dump.h"

static weir_status check_written(FILE *out)
{
  return fflush(out) || ferror(out) ? weir_fail(WEIR_EIO, "cannot write the export") : WEIR_OK;
}

/* A snapshot in the making. */
typedef struct snapshot {
  dump_writer d;
  const rp_ops *ops;
  uint32_t *written; /* by stack: the id to put it again by, 0: not yet, or it cannot be */
} snapshot;

static void dump_frame(dump_writer *d, const rp_frame *f)
{
  dump_begin(d, '{');
  dump_key_text(d, "name", f->name);
  dump_key_text(d, "filename", f->file);
  dump_key_unsigned(d, "line", (uint64_t)f->line);
  dump_end(d, '}');
}

static void dump_frames(snapshot *s, const rp_op *op)
{
  dump_writer *d = &s->d;
  dump_key(d, "frames");
  if (s->written && s->written[op->stack]) {
    dump_recall(d, s->written[op->stack]);
    return;
  }
  const rp_ops *ops = s->ops;
  rp_stack stack = op->stack ? ops->stack[op->stack] : (rp_stack){0, 0, 0};
  dump_begin(d, '[');
  for (size_t i = 0; i < stack.count; i++)
    dump_frame(d, &ops->frame[stack.first + i]);
  dump_end(d, ']');
  if (s->written && stack.count) s->written[op->stack] = dump_remember(d);
}

/* ---- PyTorch's snapshot ---------------------------------------------------------------------- */

static void put_snapshot_segment(snapshot *s, const rp_op *op)
{
  dump_writer *d = &s->d;
  dump_begin(d, '{');
  dump_key_unsigned(d, "device", op->heap);
  dump_key_unsigned(d, "address", op->address);
  dump_key_unsigned(d, "total_size", op->bytes);
  dump_key_unsigned(d, "allocated_size", op->bytes);
  dump_key_unsigned(d, "active_size", op->bytes);
  dump_key_unsigned(d, "requested_size", op->bytes);
  dump_key_unsigned(d, "stream", op->stream);
  dump_key_text(d, "segment_type", op->bytes > 1048576 ? "large" : "small");
  dump_key_bool(d, "is_expandable", false);
  dump_frames(s, op);
  dump_key(d, "blocks");
  dump_begin(d, '[');
  dump_begin(d, '{');
  dump_key_unsigned(d, "address", op->address);
  dump_key_unsigned(d, "size", op->bytes);
  dump_key_unsigned(d, "requested_size", op->bytes);
  dump_key_text(d, "state", "active_allocated");
  dump_frames(s, op);
  dump_end(d, '}');
  dump_end(d, ']');
  dump_end(d, '}');
}

static void put_entry(snapshot *s, const rp_op *op, const char *action)
{
  dump_writer *d = &s->d;
  dump_begin(d, '{');
  dump_key_text(d, "action", action);
  dump_key_unsigned(d, "addr", op->address);
  dump_key_unsigned(d, "size", op->bytes);
  dump_key_unsigned(d, "stream", op->stream);
  dump_key_unsigned(d, "time_us", op->time / 1000);
  dump_frames(s, op);
  dump_end(d, '}');
}

static void put_request(snapshot *s, const rp_op *op)
{
  dump_writer *d = &s->d;
  dump_begin(d, '{');
  dump_key_text(d, "action", "oom");
  dump_key_unsigned(d, "device_free", op->address);
  dump_key_unsigned(d, "size", op->bytes);
  dump_key_unsigned(d, "stream", op->stream);
  dump_key_unsigned(d, "time_us", op->time / 1000);
  dump_frames(s, op);
  dump_end(d, '}');
}

static void put_traces(snapshot *s)
{
  const rp_ops *ops = s->ops;
  dump_begin(&s->d, '[');
  for (uint32_t heap = 0; heap < ops->heaps; heap++) {
    dump_begin(&s->d, '[');
    for (size_t i = 0; i < ops->count; i++) {
      const rp_op *op = &ops->op[i];
      if (op->heap != heap) continue;
      if (op->kind == RP_REQUEST)
        put_request(s, op);
      else
        put_entry(s, op, op->kind == RP_ALLOC ? "alloc" : "free_requested");
      if (op->kind == RP_FREE) put_entry(s, op, "free_completed");
    }
    dump_end(&s->d, ']');
  }
  dump_end(&s->d, ']');
}

static void put_snapshot(snapshot *s, const bool *freed)
{
  const rp_ops *ops = s->ops;
  dump_begin(&s->d, '{');
  dump_key(&s->d, "segments");
  dump_begin(&s->d, '[');
  for (size_t i = 0; i < ops->count; i++)
    if (ops->op[i].kind == RP_ALLOC && !freed[ops->op[i].block])
      put_snapshot_segment(s, &ops->op[i]);
  dump_end(&s->d, ']');
  dump_key(&s->d, "device_traces");
  put_traces(s);
  dump_end(&s->d, '}');
}

static weir_status write_snapshot(FILE *out, const rp_ops *ops, bool pickle)
{
  bool *freed = calloc((size_t)ops->blocks + 1, sizeof *freed);
  if (!freed) return weir_fail(WEIR_ENOMEM, "exporting: out of host memory");
  snapshot s = {.ops = ops, .written = calloc(ops->stack_count + 1, sizeof(uint32_t))};
  for (size_t i = 0; i < ops->count; i++)
    if (ops->op[i].kind == RP_FREE) freed[ops->op[i].block] = true;
  dump_start(&s.d, out, pickle);
  put_snapshot(&s, freed);
  dump_finish(&s.d);
  free(s.written);
  free(freed);
  return check_written(out);
}

static weir_status write_json(FILE *out, const rp_ops *ops, uint16_t heap)
{
  (void)heap;
  return write_snapshot(out, ops, false);
}

static weir_status write_pickle(FILE *out, const rp_ops *ops, uint16_t heap)
{
  (void)heap;
  return write_snapshot(out, ops, true);
}

/* ---- RMM's log ------------------------------------------------------------------------------- */

static weir_status write_rmm(FILE *out, const rp_ops *ops, uint16_t heap)
{
  static const char *const actions[] = {
      [RP_ALLOC] = "allocate", [RP_FREE] = "free", [RP_REQUEST] = "allocate failure"};
  (void)fputs("Thread,Time,Action,Pointer,Size,Stream\n", out);
  for (size_t i = 0; i < ops->count; i++) {
    const rp_op *op = &ops->op[i];
    uint64_t us = op->time / 1000, s = us / 1000000;
    if (op->heap != heap) continue;
    (void)fprintf(out,
                  "%" PRIu32 ",%02u:%02u:%02u.%06u,%s,0x%" PRIx64 ",%" PRIu64 ",0x%" PRIx64 "\n",
                  op->thread, (unsigned)(s / 3600 % 24), (unsigned)(s / 60 % 60),
                  (unsigned)(s % 60), (unsigned)(us % 1000000), actions[op->kind],
                  op->kind == RP_REQUEST ? 0 : op->address, op->bytes, op->stream);
  }
  return check_written(out);
}

const rp_format rp_formats[] = {
    {"rmm-csv", "RMM's log", write_rmm, true},
    {"pytorch-snapshot", "PyTorch's snapshot as JSON", write_json, false},
    {"pytorch-pickle", "the same as a pickle", write_pickle, false},
    {NULL, NULL, NULL, false},
};
