/* export.c: see export.h.
 *
 * A snapshot is written once, into a sink that makes JSON or a pickle of it. The pickle is of
 * protocol 2 and holds dicts, lists, strings, integers and booleans only: Python's reader and
 * memory_viz's know every opcode used. Structure: PyTorch's documentation, "Understanding CUDA
 * Memory Usage" (Snapshot API Reference).
 */
#include "tools/replay/export.h"
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static weir_status written(FILE *out)
{
  return fflush(out) || ferror(out) ? weir_fail(WEIR_EIO, "cannot write the export") : WEIR_OK;
}

/* ---- sinks ----------------------------------------------------------------------------------- */

typedef struct sink {
  FILE *out;
  bool pickle;
  bool comma; /* JSON: something stands before, in the innermost dict or list */
} sink;

static void put_little(FILE *out, uint64_t n, int bytes)
{
  for (; bytes-- > 0; n >>= 8)
    (void)fputc((int)(n & 0xff), out);
}

static void separate(sink *s)
{
  if (!s->pickle && s->comma) (void)fputs(", ", s->out);
  s->comma = true;
}

static void begin(sink *s, char bracket)
{
  separate(s);
  if (s->pickle) (void)fputs(bracket == '{' ? "}(" : "](", s->out);
  if (!s->pickle) (void)fputc(bracket, s->out);
  s->comma = false;
}

static void end(sink *s, char bracket)
{
  (void)fputc(s->pickle ? bracket == '}' ? 'u' : 'e' : bracket, s->out);
  s->comma = true;
}

/* Of our own words: nothing in it needs an escape. */
static void put_text(sink *s, const char *text)
{
  separate(s);
  if (s->pickle) {
    (void)fputc('X', s->out);
    put_little(s->out, strlen(text), 4);
    (void)fputs(text, s->out);
  } else {
    (void)fprintf(s->out, "\"%s\"", text);
  }
}

/* Numbers are Python's: non-negative. LONG1 is little-endian two's complement, so eight bytes whose
 * top bit is set need a ninth. */
static void put_number(sink *s, uint64_t n)
{
  separate(s);
  if (!s->pickle) {
    (void)fprintf(s->out, "%" PRIu64, n);
  } else if (n <= INT32_MAX) {
    (void)fputc('J', s->out);
    put_little(s->out, n, 4);
  } else {
    int bytes = n >> 63 ? 9 : 8;
    (void)fputc('\x8a', s->out);
    (void)fputc(bytes, s->out);
    put_little(s->out, n, 8);
    if (bytes == 9) (void)fputc(0, s->out);
  }
}

static void key(sink *s, const char *name)
{
  put_text(s, name);
  if (!s->pickle) (void)fputs(": ", s->out);
  s->comma = false;
}

static void number(sink *s, const char *name, uint64_t n)
{
  key(s, name);
  put_number(s, n);
}

static void text(sink *s, const char *name, const char *value)
{
  key(s, name);
  put_text(s, value);
}

static void no_frames(sink *s)
{
  key(s, "frames");
  begin(s, '[');
  end(s, ']');
}

static void boolean(sink *s, const char *name, bool value)
{
  key(s, name);
  separate(s);
  if (s->pickle)
    (void)fputc(value ? '\x88' : '\x89', s->out);
  else
    (void)fputs(value ? "true" : "false", s->out);
}

/* ---- PyTorch's snapshot ---------------------------------------------------------------------- */

static void put_segment(sink *s, const rp_op *op)
{
  begin(s, '{');
  number(s, "device", op->heap);
  number(s, "address", op->address);
  number(s, "total_size", op->bytes);
  number(s, "allocated_size", op->bytes);
  number(s, "active_size", op->bytes);
  number(s, "requested_size", op->bytes);
  number(s, "stream", op->stream);
  text(s, "segment_type", op->bytes > 1048576 ? "large" : "small");
  boolean(s, "is_expandable", false);
  no_frames(s);
  key(s, "blocks");
  begin(s, '[');
  begin(s, '{');
  number(s, "address", op->address);
  number(s, "size", op->bytes);
  number(s, "requested_size", op->bytes);
  text(s, "state", "active_allocated");
  no_frames(s);
  end(s, '}');
  end(s, ']');
  end(s, '}');
}

static void put_entry(sink *s, const rp_op *op, const char *action)
{
  begin(s, '{');
  text(s, "action", action);
  number(s, "addr", op->address);
  number(s, "size", op->bytes);
  number(s, "stream", op->stream);
  number(s, "time_us", op->time / 1000);
  no_frames(s);
  end(s, '}');
}

static void put_traces(sink *s, const rp_ops *ops)
{
  begin(s, '[');
  for (uint32_t heap = 0; heap < ops->heaps; heap++) {
    begin(s, '[');
    for (size_t i = 0; i < ops->count; i++) {
      const rp_op *op = &ops->op[i];
      if (op->heap != heap) continue;
      put_entry(s, op, op->kind == RP_ALLOC ? "alloc" : "free_requested");
      if (op->kind == RP_FREE) put_entry(s, op, "free_completed");
    }
    end(s, ']');
  }
  end(s, ']');
}

static weir_status put_snapshot(sink *s, const rp_ops *ops)
{
  bool *freed = calloc((size_t)ops->blocks + 1, sizeof *freed);
  if (!freed) return weir_fail(WEIR_ENOMEM, "exporting: out of host memory");
  for (size_t i = 0; i < ops->count; i++)
    if (ops->op[i].kind == RP_FREE) freed[ops->op[i].block] = true;
  begin(s, '{');
  key(s, "segments");
  begin(s, '[');
  for (size_t i = 0; i < ops->count; i++)
    if (!freed[ops->op[i].block]) put_segment(s, &ops->op[i]);
  end(s, ']');
  key(s, "device_traces");
  put_traces(s, ops);
  end(s, '}');
  free(freed);
  return WEIR_OK;
}

static weir_status write_json(FILE *out, const rp_ops *ops)
{
  sink s = {.out = out};
  weir_status status = put_snapshot(&s, ops);
  (void)fputc('\n', out);
  return status ? status : written(out);
}

static weir_status write_pickle(FILE *out, const rp_ops *ops)
{
  sink s = {.out = out, .pickle = true};
  (void)fputs("\x80\x02", out);
  weir_status status = put_snapshot(&s, ops);
  (void)fputc('.', out);
  return status ? status : written(out);
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
