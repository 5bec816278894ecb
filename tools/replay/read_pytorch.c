/* read_pytorch.c: a snapshot of PyTorch's memory, as JSON or as the pickle that PyTorch itself
 * dumps.
 *
 * Source of the format: PyTorch's documentation, "Understanding CUDA Memory Usage" (Snapshot API
 * Reference): an object with `segments` and `device_traces`, the latter a list for each device of
 * entries {action, addr, size, stream, time_us, frames ...}, oldest first. A block is free for the
 * program at free_requested; free_completed and segment_* are the allocator's own doings; oom is a
 * request that failed, with device_free where others have addr.
 *
 * The record is of bounded length and begins when the program asked for it, so blocks may be older:
 * their frees are in it, or they are in `segments`, which is the state at the end.
 *
 * JSON and pickle are read through one kind of node. A pickle can name one list in many places, so
 * what it makes may be far larger than it is: the entries that are looked at are counted, and there
 * are no more than the file has bytes. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "core/io/pickle.h"
#include "tools/replay/read.h"

/* ---- nodes ----------------------------------------------------------------------------------- */

typedef struct node { /* one of both, or neither: there is none */
  const json_t *json;
  const pickle_value *pickle;
} node;

static bool is_pickle_text(const pickle_value *v, const char *text)
{
  return v->kind == PICKLE_TEXT && v->count == strlen(text) && !memcmp(v->text, text, v->count);
}

/* The value of a key; where a dict has it twice, the last, as Python has. */
static node entry_member(node n, const char *key)
{
  if (!n.pickle) return (node){.json = json_object_get(n.json, key)};
  if (n.pickle->kind == PICKLE_DICT)
    for (size_t i = n.pickle->count; i >= 2; i -= 2)
      if (is_pickle_text(n.pickle->item[i - 2], key))
        return (node){.pickle = n.pickle->item[i - 1]};
  return (node){NULL, NULL};
}

static bool is_list(node n)
{
  return n.pickle ? n.pickle->kind == PICKLE_LIST : json_is_array(n.json);
}

static size_t array_length(node n)
{
  if (!is_list(n)) return 0;
  return n.pickle ? n.pickle->count : json_array_size(n.json);
}

static node item_at(node n, size_t i)
{
  if (n.pickle) return (node){.pickle = n.pickle->item[i]};
  return (node){.json = json_array_get(n.json, i)};
}

static bool is_json_text(node n, const char *text)
{
  if (n.pickle) return is_pickle_text(n.pickle, text);
  const char *there = json_string_value(n.json);
  return there && !strcmp(there, text);
}

static bool has_text(node n)
{
  return n.pickle ? n.pickle->kind == PICKLE_TEXT : json_is_string(n.json);
}

static bool is_json_number(node n)
{
  return n.pickle ? n.pickle->kind == PICKLE_INT : json_is_integer(n.json);
}

/* 0: it has none. */
static uint64_t entry_number(node entry, const char *key)
{
  node n = entry_member(entry, key);
  if (!is_json_number(n)) return 0;
  return (uint64_t)(n.pickle ? n.pickle->i : json_integer_value(n.json));
}

/* ---- a snapshot ------------------------------------------------------------------------------ */

typedef struct snapshot {
  rp_ops *ops;
  const char *path;
  uint64_t left; /* entries that may be looked at */
} snapshot;

static weir_status count_entry(snapshot *s)
{
  return s->left-- ? WEIR_OK
                   : weir_fail(WEIR_ECORRUPT, "%s: more entries than it has bytes", s->path);
}

static weir_status take_history_entry(snapshot *s, node entry, uint16_t heap)
{
  node action = entry_member(entry, "action");
  if (!has_text(action)) return weir_fail(WEIR_ECORRUPT, "%s: an entry without action", s->path);
  bool alloc = is_json_text(action, "alloc"), oom = is_json_text(action, "oom");
  if (!alloc && !oom && !is_json_text(action, "free_requested")) return WEIR_OK;
  const char *place = oom ? "device_free" : "addr";
  if (!is_json_number(entry_member(entry, "size")) ||
      (!oom && !is_json_number(entry_member(entry, place))))
    return weir_fail(WEIR_ECORRUPT, "%s: an entry '%s' without addr or size", s->path,
                     alloc ? "alloc"
                     : oom ? "oom"
                           : "free_requested");
  rp_op op = {.time = entry_number(entry, "time_us") * 1000,
              .address = entry_number(entry, place),
              .bytes = entry_number(entry, "size"),
              .stream = entry_number(entry, "stream"),
              .heap = heap};
  return oom     ? rp_ops_request(s->ops, op)
         : alloc ? rp_ops_alloc(s->ops, op)
                 : rp_ops_free(s->ops, op);
}

/* The blocks of a segment that the program holds. Snapshots before 2.1 give blocks no address: they
 * follow each other. */
static weir_status take_segment(snapshot *s, node segment)
{
  node blocks = entry_member(segment, "blocks");
  uint64_t address = entry_number(segment, "address");
  rp_op op = {.stream = entry_number(segment, "stream")};
  weir_status st = WEIR_OK;
  if (!array_length(blocks)) return WEIR_OK;
  st = rp_ops_heap(s->ops, entry_number(segment, "device"), &op.heap);
  for (size_t i = 0; !st && i < array_length(blocks); i++) {
    node block = item_at(blocks, i);
    uint64_t asked = entry_number(block, "requested_size"), size = entry_number(block, "size");
    if (is_json_number(entry_member(block, "address"))) address = entry_number(block, "address");
    op.address = address;
    op.bytes = asked ? asked : size;
    st = count_entry(s);
    if (!st && is_json_text(entry_member(block, "state"), "active_allocated"))
      st = rp_ops_hold(s->ops, op);
    address += size;
  }
  return st;
}

/* ---- devices side by side -------------------------------------------------------------------- */

enum { DEVICES_MOST = 128 }; /* as PyTorch */

typedef struct device_trace {
  node entries;
  size_t at; /* the next one */
  uint16_t heap;
} device_trace;

static weir_status open_traces(snapshot *s, node traces, device_trace *trace, size_t *count)
{
  weir_status st = WEIR_OK;
  for (size_t device = 0; !st && device < array_length(traces); device++) {
    node entries = item_at(traces, device);
    st = count_entry(s);
    if (st || !array_length(entries)) continue;
    if (*count == DEVICES_MOST)
      return weir_fail(WEIR_ECORRUPT, "%s: entries of more than %d devices", s->path, DEVICES_MOST);
    trace[*count] = (device_trace){.entries = entries};
    st = rp_ops_heap(s->ops, device, &trace[(*count)++].heap);
  }
  return st;
}

/* Of the trace's next entry; one without a time follows what has one. */
static uint64_t next_time(const device_trace *t)
{
  node entry = item_at(t->entries, t->at);
  return is_json_number(entry_member(entry, "time_us")) ? entry_number(entry, "time_us")
                                                        : UINT64_MAX;
}

/* The entries of all devices by their times: what is held at a moment is held on all of them. */
static weir_status take_traces(snapshot *s, node traces)
{
  device_trace trace[DEVICES_MOST];
  size_t count = 0;
  weir_status st = open_traces(s, traces, trace, &count);
  while (!st && count) {
    size_t first = 0;
    for (size_t i = 1; i < count; i++)
      if (next_time(&trace[i]) < next_time(&trace[first])) first = i;
    device_trace *t = &trace[first];
    st = count_entry(s);
    if (!st) st = take_history_entry(s, item_at(t->entries, t->at++), t->heap);
    if (t->at < array_length(t->entries)) continue;
    count--;
    memmove(t, t + 1, (count - first) * sizeof *t);
  }
  return st;
}

static weir_status take_snapshot(snapshot *s, node root)
{
  node traces = entry_member(root, "device_traces"), segments = entry_member(root, "segments");
  if (!is_list(traces))
    return weir_fail(WEIR_ECORRUPT, "%s is no snapshot of PyTorch's: it has no device_traces",
                     s->path);
  weir_status st = take_traces(s, traces);
  for (size_t i = 0; !st && i < array_length(segments); i++) {
    st = count_entry(s);
    if (!st) st = take_segment(s, item_at(segments, i));
  }
  return st;
}

/* ---- its files ------------------------------------------------------------------------------- */

static uint64_t file_bytes(FILE *in)
{
  struct stat info;
  return fstat(fileno(in), &info) || info.st_size < 0 ? 0 : (uint64_t)info.st_size;
}

weir_status rp_read_pytorch(rp_ops *ops, FILE *in, const char *path)
{
  json_error_t error;
  snapshot s = {ops, path, file_bytes(in)};
  json_t *root = json_loadf(in, JSON_ALLOW_NUL, &error);
  if (!root) return weir_fail(WEIR_ECORRUPT, "%s: line %d: %.200s", path, error.line, error.text);
  weir_status st = take_snapshot(&s, (node){.json = root});
  json_decref(root);
  return st;
}

/* A snapshot is numbers, text, lists and dicts: nothing in it is made by a call. */
static weir_status refuse_global(void *path, const char *module, const char *name,
                                 pickle_value *out)
{
  (void)out;
  return weir_fail(WEIR_ENOTSUP, "%s: the pickle names %.100s.%.100s, which no snapshot needs",
                   (const char *)path, module, name);
}

static weir_status refuse_call(void *path, const pickle_value *call, const pickle_value *args,
                               pickle_value *made, pickle_value **out)
{
  (void)call, (void)args, (void)made, (void)out;
  return weir_fail(WEIR_ENOTSUP, "%s: the pickle calls something", (const char *)path);
}

static weir_status refuse_reference(void *path, const pickle_value *id, pickle_value *out)
{
  (void)id, (void)out;
  return weir_fail(WEIR_ENOTSUP, "%s: the pickle refers to another file", (const char *)path);
}

static void end_none(void *path, pickle_value *v)
{
  (void)path, (void)v;
}

weir_status rp_read_pytorch_pickle(rp_ops *ops, FILE *in, const char *path)
{
  enum { VALUES_MOST = 1 << 25 }; /* of 32 bytes: some three million operations */
  pickle p = {.stack = NULL};
  pickle_value *root;
  const pickle_calls calls = {refuse_global,           refuse_call, refuse_reference, end_none,
                              (void *)(uintptr_t)path, path,        VALUES_MOST};
  uint64_t bytes = file_bytes(in);
  char *text = malloc(bytes + 1);
  if (!text) return weir_fail(WEIR_ENOMEM, "reading %s: out of host memory", path);
  snapshot s = {ops, path, bytes};
  weir_status st = WEIR_OK;
  if (fread(text, 1, bytes, in) != bytes)
    st = weir_fail_errno(WEIR_EIO, ferror(in) ? errno : EIO, "reading %s", path);
  if (!st) st = pickle_read(&p, &calls, text, bytes, &root);
  if (!st) st = take_snapshot(&s, (node){.pickle = root});
  pickle_free(&p);
  free(text);
  return st;
}
