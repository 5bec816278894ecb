/* read_pytorch.c: a snapshot of PyTorch's memory, as JSON.
 *
 * Source of the format: PyTorch's documentation, "Understanding CUDA Memory Usage" (Snapshot API
 * Reference): an object with `segments` and `device_traces`, the latter a list for each device of
 * entries {action, addr, size, stream, time_us, frames ...}, oldest first. A block is free for the
 * program at free_requested; free_completed and segment_* are the allocator's own doings. */
#include <jansson.h>
#include <string.h>
#include "tools/replay/read.h"

static uint64_t number(const json_t *entry, const char *key)
{
  return (uint64_t)json_integer_value(json_object_get(entry, key));
}

static weir_status take_entry(rp_ops *ops, const json_t *entry, uint16_t heap, const char *path)
{
  const char *action = json_string_value(json_object_get(entry, "action"));
  if (!action) return weir_fail(WEIR_ECORRUPT, "%s: an entry without action", path);
  bool alloc = !strcmp(action, "alloc");
  if (!alloc && strcmp(action, "free_requested") != 0) return WEIR_OK;
  if (!json_is_integer(json_object_get(entry, "addr")) ||
      !json_is_integer(json_object_get(entry, "size")))
    return weir_fail(WEIR_ECORRUPT, "%s: an entry '%s' without addr or size", path, action);
  rp_op op = {.time = number(entry, "time_us") * 1000,
              .address = number(entry, "addr"),
              .bytes = number(entry, "size"),
              .stream = number(entry, "stream"),
              .heap = heap};
  return alloc ? rp_ops_alloc(ops, op) : rp_ops_free(ops, op);
}

weir_status rp_read_pytorch(rp_ops *ops, FILE *in, const char *path)
{
  json_error_t error;
  json_t *root = json_loadf(in, JSON_ALLOW_NUL, &error);
  if (!root) return weir_fail(WEIR_ECORRUPT, "%s: line %d: %.200s", path, error.line, error.text);
  const json_t *traces = json_object_get(root, "device_traces"), *entries, *entry;
  weir_status s = WEIR_OK;
  size_t device, i;
  if (!json_is_array(traces))
    s = weir_fail(WEIR_ECORRUPT, "%s is JSON and no snapshot of PyTorch's: it has no device_traces",
                  path);
  json_array_foreach(traces, device, entries)
  {
    uint16_t heap = 0;
    if (!s && json_array_size(entries)) s = rp_ops_heap(ops, device, &heap);
    json_array_foreach(entries, i, entry) if (!s) s = take_entry(ops, entry, heap, path);
  }
  json_decref(root);
  return s;
}
