/* export.c: see export.h.
 *
 * A snapshot is written once, by core/base/dump.h, which makes JSON or a pickle of it. Structure:
 * PyTorch's documentation, "Understanding CUDA Memory Usage" (Snapshot API Reference).
 */
#include "tools/replay/export.h"
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include "core/base/dump.h"

static weir_status written(FILE *out)
{
  return fflush(out) || ferror(out) ? weir_fail(WEIR_EIO, "cannot write the export") : WEIR_OK;
}

static void no_frames(weir_dump *d)
{
  weir_dump_key(d, "frames");
  weir_dump_begin(d, '[');
  weir_dump_end(d, ']');
}

/* ---- PyTorch's snapshot ---------------------------------------------------------------------- */

static void put_segment(weir_dump *d, const rp_op *op)
{
  weir_dump_begin(d, '{');
  weir_dump_key_unsigned(d, "device", op->heap);
  weir_dump_key_unsigned(d, "address", op->address);
  weir_dump_key_unsigned(d, "total_size", op->bytes);
  weir_dump_key_unsigned(d, "allocated_size", op->bytes);
  weir_dump_key_unsigned(d, "active_size", op->bytes);
  weir_dump_key_unsigned(d, "requested_size", op->bytes);
  weir_dump_key_unsigned(d, "stream", op->stream);
  weir_dump_key_text(d, "segment_type", op->bytes > 1048576 ? "large" : "small");
  weir_dump_key_bool(d, "is_expandable", false);
  no_frames(d);
  weir_dump_key(d, "blocks");
  weir_dump_begin(d, '[');
  weir_dump_begin(d, '{');
  weir_dump_key_unsigned(d, "address", op->address);
  weir_dump_key_unsigned(d, "size", op->bytes);
  weir_dump_key_unsigned(d, "requested_size", op->bytes);
  weir_dump_key_text(d, "state", "active_allocated");
  no_frames(d);
  weir_dump_end(d, '}');
  weir_dump_end(d, ']');
  weir_dump_end(d, '}');
}

static void put_entry(weir_dump *d, const rp_op *op, const char *action)
{
  weir_dump_begin(d, '{');
  weir_dump_key_text(d, "action", action);
  weir_dump_key_unsigned(d, "addr", op->address);
  weir_dump_key_unsigned(d, "size", op->bytes);
  weir_dump_key_unsigned(d, "stream", op->stream);
  weir_dump_key_unsigned(d, "time_us", op->time / 1000);
  no_frames(d);
  weir_dump_end(d, '}');
}

static void put_traces(weir_dump *d, const rp_ops *ops)
{
  weir_dump_begin(d, '[');
  for (uint32_t heap = 0; heap < ops->heaps; heap++) {
    weir_dump_begin(d, '[');
    for (size_t i = 0; i < ops->count; i++) {
      const rp_op *op = &ops->op[i];
      if (op->heap != heap) continue;
      put_entry(d, op, op->kind == RP_ALLOC ? "alloc" : "free_requested");
      if (op->kind == RP_FREE) put_entry(d, op, "free_completed");
    }
    weir_dump_end(d, ']');
  }
  weir_dump_end(d, ']');
}

static weir_status put_snapshot(weir_dump *d, const rp_ops *ops)
{
  bool *freed = calloc((size_t)ops->blocks + 1, sizeof *freed);
  if (!freed) return weir_fail(WEIR_ENOMEM, "exporting: out of host memory");
  for (size_t i = 0; i < ops->count; i++)
    if (ops->op[i].kind == RP_FREE) freed[ops->op[i].block] = true;
  weir_dump_begin(d, '{');
  weir_dump_key(d, "segments");
  weir_dump_begin(d, '[');
  for (size_t i = 0; i < ops->count; i++)
    if (!freed[ops->op[i].block]) put_segment(d, &ops->op[i]);
  weir_dump_end(d, ']');
  weir_dump_key(d, "device_traces");
  put_traces(d, ops);
  weir_dump_end(d, '}');
  free(freed);
  return WEIR_OK;
}

static weir_status write_snapshot(FILE *out, const rp_ops *ops, bool pickle)
{
  weir_dump d;
  weir_dump_start(&d, out, pickle);
  weir_status status = put_snapshot(&d, ops);
  weir_dump_finish(&d);
  return status ? status : written(out);
}

static weir_status write_json(FILE *out, const rp_ops *ops)
{
  return write_snapshot(out, ops, false);
}

static weir_status write_pickle(FILE *out, const rp_ops *ops)
{
  return write_snapshot(out, ops, true);
}

/* ---- RMM's log ------------------------------------------------------------------------------- */

static weir_status write_rmm(FILE *out, const rp_ops *ops)
{
  if (ops->heaps > 1)
    return weir_fail(WEIR_ENOTSUP, "RMM's log knows one device, and this is of %u", ops->heaps);
  (void)fputs("Thread,Time,Action,Pointer,Size,Stream\n", out);
  for (size_t i = 0; i < ops->count; i++) {
    const rp_op *op = &ops->op[i];
    uint64_t us = op->time / 1000, s = us / 1000000;
    (void)fprintf(out,
                  "%" PRIu32 ",%02u:%02u:%02u.%06u,%s,0x%" PRIx64 ",%" PRIu64 ",0x%" PRIx64 "\n",
                  op->thread, (unsigned)(s / 3600 % 24), (unsigned)(s / 60 % 60),
                  (unsigned)(s % 60), (unsigned)(us % 1000000),
                  op->kind == RP_ALLOC ? "allocate" : "free", op->address, op->bytes, op->stream);
  }
  return written(out);
}

const rp_format rp_formats[] = {
    {"rmm-csv", "RMM's log", write_rmm},
    {"pytorch-snapshot", "PyTorch's snapshot as JSON", write_json},
    {"pytorch-pickle", "the same as a pickle", write_pickle},
    {NULL, NULL, NULL},
};
