/* seed_spool.c: writes the fuzzer's first inputs into the folder it is given: real records of every
 * kind, in chunks of every state. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/trace/spool.h"
#include "tests/core/fuzz_spool.h"

typedef struct input {
  uint8_t bytes[1 << 16];
  size_t size;
} input;

static void append_input_bytes(input *in, const void *bytes, size_t count)
{
  memcpy(in->bytes + in->size, bytes, count);
  in->size += count;
}

/* The n-th: they lie one behind the other, each larger than the last; `overlap`: all in one place.
 */
static void add_entry(input *in, uint32_t n, uint32_t state, bool overlap)
{
  chunk_entry entry = {.tid = 1001 + n % 2, .thread = 1 + n % 2, .sequence = n};
  atomic_store(&entry.state, 1u << WEIR_CHUNK_STATE_BITS | state);
  entry.units = 1u << n;
  entry.place = WEIR_SPOOL_HEADER / WEIR_SPOOL_UNIT + (overlap ? 0 : entry.units - 1);
  append_input_bytes(in, &entry, sizeof entry);
}

static void add_record(input *in, uint8_t kind, uint16_t extra, uint64_t bytes, const void *payload)
{
  trace_event e = {.kind = kind, .api = 3, .start = 1000, .status = extra, .a = 7, .bytes = bytes};
  if (kind >= WEIR_EV_STACK) e.duration_lo = event_payload_check(payload, extra);
  append_input_bytes(in, &e, sizeof e);
  append_input_bytes(in, payload, extra * (size_t)64);
}

/* What a program says by NVTX: a name, and ranges of it that begin and end, in and out of order. */
static void add_ranges(input *in)
{
  static const uint8_t facts[] = {WEIR_RANGE_PUSH, WEIR_RANGE_PUSH,  WEIR_RANGE_POP,
                                  WEIR_RANGE_MARK, WEIR_RANGE_START, WEIR_RANGE_END,
                                  WEIR_RANGE_POP};
  _Alignas(8) uint8_t payload[64] = {0};
  const range_name name = {.category = 3, .color = 0xff00ff00, .domain_bytes = 6, .text_bytes = 9};
  memcpy(payload, &name, sizeof name);
  static const char texts[15] = "domaina range";
  memcpy(payload + sizeof name, texts, sizeof texts);
  add_record(in, WEIR_EV_RANGE_NAME, 1, sizeof name + sizeof texts, payload);
  for (unsigned i = 0; i < sizeof facts; i++) {
    const trace_event e = {
        .kind = WEIR_EV_RANGE, .range_fact = facts[i], .start = 1000 + i, .a = 7, .bytes = i / 2};
    append_input_bytes(in, &e, sizeof e);
  }
}

/* One record of each kind, and an end mark. */
static void add_records(input *in)
{
  static _Alignas(8) uint8_t payload[128] = "a name that is as long as such names are";
  _Alignas(8) uint8_t module[128] = {0}, tensor[128] = {0}, node[64] = {0}, frame[64] = {0},
                      counts[64] = {0};
  const tensor_info named = {.fact = WEIR_TENSOR_NAMED, .name_bytes = 6, .module_bytes = 5};
  const graph_node_info copy = {.node = 9, .bytes = 4096, .type = 1, .copy = WEIR_COPY_HTOD};
  const asked_info asked = {
      .from = 0x2010, .calls = 64, .ticks = 90, .typical = 9, .timed = 9, .api = 1};
  module_info info = {0x1000, 0x2000, 0x3000, 20, 30};
  memcpy(module, &info, sizeof info);
  memcpy(tensor, &named, sizeof named);
  memcpy(node, &copy, sizeof copy);
  memcpy(counts, &asked, sizeof asked);
  for (unsigned kind = WEIR_EV_ALLOC; kind <= WEIR_EV_RANGE; kind++)
    add_record(in, (uint8_t)kind, 0, 4096, payload);
  add_record(in, WEIR_EV_STACK, 2, 16, payload);
  add_record(in, WEIR_EV_MODULE, 2, sizeof info + 50, module);
  add_record(in, WEIR_EV_NAME, 1, 40, payload);
  add_record(in, WEIR_EV_NOTE, 2, 100, payload);
  add_record(in, WEIR_EV_THREAD, 1, 8, payload);
  add_record(in, WEIR_EV_CORRELATION, 0, 0, payload);
  add_record(in, WEIR_EV_DEVICE_WORK, 2, 128, payload);
  add_record(in, WEIR_EV_DEVICE_FACT, 1, 8, payload);
  add_record(in, WEIR_EV_TENSOR, 2, sizeof named + 11, tensor);
  add_record(in, WEIR_EV_GRAPH, 1, sizeof copy, node);
  add_record(in, WEIR_EV_COPY_HASH, 1, sizeof(copy_hash_info), payload);
  add_record(in, WEIR_EV_ASKED, 1, sizeof(asked_info), counts);
  add_record(in, WEIR_EV_PYTHON_FRAME, 1, 60, frame);
  add_ranges(in);
  add_record(in, WEIR_EV_NONE, 0, 0, payload);
}

static int save(const input *in, const char *folder, int number)
{
  char path[4096];
  (void)snprintf(path, sizeof path, "%s/seed-%d", folder, number);
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(in->bytes, 1, in->size, f) != in->size) return 1;
  return fclose(f);
}

int main(int argc, char **argv)
{
  static input in;
  if (argc != 2) return 2;
  for (int i = 0; i < 32; i++) {
    fuzz_head head = {
        .flags = (uint8_t)(FUZZ_COMMIT | (i & 2) | (i & 4)), .entries = 3, .cut = (uint8_t)i};
    in.size = 0;
    head.per_chunk = i & 1 ? 24 : 7;
    head.first = i & 8 ? WEIR_SPOOL_UNIT / 64 - 20 : 0;
    if (i & 16) head.patches = 2;
    append_input_bytes(&in, &head, sizeof head);
    for (uint32_t k = 0; k < 3; k++)
      add_entry(&in, k, (k + (uint32_t)i) % 5, i % 11 == 10);
    uint16_t patches[4] = {(uint16_t)(i * 16), 0xffff, 8, 1};
    if (i & 16) append_input_bytes(&in, patches, sizeof patches);
    for (int k = 0; k < 3; k++)
      add_records(&in);
    if (save(&in, argv[1], i)) return 1;
  }
  return 0;
}
