/* random_program.c: see random_program.h. */
#include "tests/reports/random_program.h"
#include <check.h>
#include <stdio.h>
#include <string.h>
#include "tests/reports/synth.h"

enum { ADDRESSES = 60, SITES = 40, NODES = 6, STREAMS = 5 };
enum { ALLOC_NODE = 10, FREE_NODE = 11, CHILD_NODE = 4 };

static uint8_t kinds_of_memory(uint64_t n)
{
  static const uint8_t kinds[] = {WEIR_MEM_DEVICE,  WEIR_MEM_DEVICE,   WEIR_MEM_DEVICE,
                                  WEIR_MEM_MANAGED, WEIR_MEM_PINNED,   WEIR_MEM_ARRAY,
                                  WEIR_MEM_UNKNOWN, WEIR_MEM_PHYSICAL, WEIR_MEM_IMPORTED};
  return kinds[n % sizeof kinds];
}

/* A thread's own number of a site's stack, which is recorded before it is first used, and sometimes
 * again. */
static uint32_t stack_for(random_program *p, int thread)
{
  uint32_t id = (uint32_t)synth_below(SITES);
  uint64_t frames[6];
  if (!id) return 0;
  if (id > p->stacks[thread] || !synth_below(200)) {
    if (id > p->stacks[thread]) id = ++p->stacks[thread];
    for (unsigned i = 0; i < 6; i++)
      frames[i] = 0x400000 + (id * 7 + i) % 90 * 16;
    ck_assert(synth_stack(thread, id, frames, 1 + id % 6));
  }
  return id;
}

static trace_event begin_call(random_program *p, int thread, uint8_t kind, const char *api)
{
  const uint32_t context = (uint32_t)synth_below(4);
  return (trace_event){.kind = kind,
                       .api = synth_api(api),
                       .stack = stack_for(p, thread) | context << 24,
                       .status = synth_below(25) ? 0 : 2,
                       .flags = (uint8_t)((synth_below(40) ? 0 : WEIR_EVF_CAPTURE) |
                                          (synth_below(9) ? 0 : WEIR_EVF_IMPLICIT_SYNC) |
                                          (synth_below(9) ? 0 : WEIR_EVF_CACHED)),
                       .device = (uint8_t)synth_below(3),
                       .src_device = WEIR_DEVICE_NONE};
}

static void put_call(random_program *p, int thread, uint64_t ns, trace_event e)
{
  ck_assert(synth_event(thread, p->at, ns, e));
  p->events++;
}

static void random_memory(random_program *p, int thread)
{
  const bool begins = synth_below(2);
  const uint64_t slot = synth_below(ADDRESSES);
  trace_event e = begin_call(p, thread, begins ? WEIR_EV_ALLOC : WEIR_EV_FREE,
                             begins ? "cuMemAlloc_v2" : "cuMemFree_v2");
  e.mem = kinds_of_memory(slot);
  e.a = synth_below(50) ? 0x10000 + slot * 0x100 : 0;
  e.bytes = begins ? 1 + synth_below(100000) : 0;
  if (e.mem == WEIR_MEM_PINNED) e.device = WEIR_DEVICE_NONE;
  put_call(p, thread, synth_below(8) ? synth_below(6) : synth_below(300), e);
}

static void random_registration(random_program *p, int thread)
{
  trace_event e = begin_call(p, thread, WEIR_EV_HOSTREG, "cuMemHostRegister_v2");
  e.mem = WEIR_MEM_PINNED;
  e.a = 0x7f0000000000 + synth_below(8) * 4096;
  e.bytes = synth_below(2) ? 4096 : 0;
  put_call(p, thread, synth_below(6), e);
}

static void random_reset(random_program *p, int thread)
{
  trace_event e = begin_call(p, thread, WEIR_EV_RESET, "cuDevicePrimaryCtxReset_v2");
  if (synth_below(3)) return;
  e.bytes = synth_below(2);
  e.a = e.bytes ? 0xc0 + (e.stack >> 24) : synth_below(3);
  put_call(p, thread, synth_below(6), e);
}

static void random_other(random_program *p, int thread)
{
  static const struct {
    const char *api;
    uint8_t kind;
  } calls[] = {{"cuMemcpyHtoD_v2", WEIR_EV_COPY},   {"cuMemsetD8Async", WEIR_EV_MEMSET},
               {"cuLaunchKernel", WEIR_EV_LAUNCH},  {"cuStreamSynchronize", WEIR_EV_SYNC},
               {"cuEventRecord", WEIR_EV_CALL},     {"cuStreamCreate", WEIR_EV_STREAM},
               {"cuCtxSetCurrent", WEIR_EV_CONTEXT}};
  const size_t n = (size_t)synth_below(sizeof calls / sizeof *calls);
  trace_event e = begin_call(p, thread, calls[n].kind, calls[n].api);
  e.bytes = synth_below(1000);
  e.a = 0x500 + synth_below(9);
  if (e.kind == WEIR_EV_COPY) e.detail = (uint8_t)synth_below(3);
  if (e.kind == WEIR_EV_LAUNCH) e.detail = (uint8_t)synth_below(200), e.mem = 77;
  if (e.kind == WEIR_EV_STREAM) e.a = synth_below(2), e.stream = 0x5000 + synth_below(STREAMS);
  put_call(p, thread, synth_below(40), e);
}

/* ---- its ranges, modules and graphs ---------------------------------------------------------- */

static void random_range(random_program *p, int thread)
{
  struct {
    range_name name;
    char text[8];
  } named = {.name = {.text_bytes = 5}};
  trace_event e = {.kind = WEIR_EV_RANGE, .stream = synth_below(2)};
  const uint64_t n = synth_below(5);
  e.range_fact = (uint8_t)(n + 1);
  e.a = 1 + synth_below(p->names[thread] + 1u);
  if (n == 0 && e.a > p->names[thread]) {
    e.a = ++p->names[thread];
    (void)snprintf(named.text, sizeof named.text, "r%04u", (unsigned)(e.a % 1000));
    ck_assert(synth_extended(thread, WEIR_EV_RANGE_NAME, e.a, 0, &named, sizeof named.name + 5));
  }
  if (n == 0) e.bytes = ++p->depth[thread];
  if (n == 1) e.bytes = p->depth[thread] ? p->depth[thread] - synth_below(2) : 0;
  if (n == 1 && !e.bytes) return;
  if (n == 1) p->depth[thread] = e.bytes - 1;
  if (n == 2) e.bytes = 1000 + ++p->started;
  if (n == 3) e.bytes = 1000 + p->started - synth_below(3);
  ck_assert(synth_event(thread, p->at, 0, e));
}

static void random_module(random_program *p, int thread)
{
  const uint64_t base = 0x400000 + synth_below(3) * 0x1000;
  if (p->plain) return;
  if (synth_below(2)) {
    char path[32];
    (void)snprintf(path, sizeof path, "/lib/plugin%u", (unsigned)(p->modules++ % 5));
    ck_assert(synth_module(thread, base, base, base + 0x1000, path, "\1\2\3", 3));
    return;
  }
  const module_info info = {.base = base};
  ck_assert(synth_extended(thread, WEIR_EV_MODULE, 0, 0, &info, sizeof info));
  /* addresses mean something else now: the program records its stacks again */
  memset(p->stacks, 0, sizeof p->stacks);
}

static graph_node_info random_node(uint64_t first, uint64_t node)
{
  static const uint8_t types[] = {ALLOC_NODE, ALLOC_NODE, FREE_NODE, CHILD_NODE, 0, 1};
  return (graph_node_info){.node = node,
                           .parent = synth_below(3) ? 0 : first + synth_below(NODES),
                           .a = 0x10000 + synth_below(ADDRESSES) * 0x100,
                           .bytes = 1 + synth_below(5000),
                           .type = types[synth_below(6)],
                           .mem = WEIR_MEM_DEVICE,
                           .device = (uint8_t)synth_below(3),
                           .src_device = WEIR_DEVICE_NONE,
                           .conditional = !synth_below(6)};
}

/* A change, in one record or two, whose second may be lost; or a launch. */
static void random_graph(random_program *p, int thread)
{
  graph_node_info nodes[NODES];
  const uint64_t exec = 1 + synth_below(RANDOM_EXECS);
  const size_t count = 1 + (size_t)synth_below(NODES), part = (size_t)synth_below(count + 1);
  if (synth_below(2)) {
    trace_event e = begin_call(p, thread, WEIR_EV_CALL, "cuGraphLaunch");
    e.a = exec;
    put_call(p, thread, 1, e);
    return;
  }
  const uint64_t fresh = p->nodes;
  p->nodes += NODES;
  for (size_t i = 0; i < count; i++)
    nodes[i] = random_node(fresh, fresh + i);
  trace_event head = {.start = OPENED + p->at,
                      .a = exec,
                      .b = p->first[exec] + synth_below(NODES),
                      .graph_fact = (uint8_t)(1 + synth_below(5)),
                      .mem = 1};
  if (head.graph_fact < WEIR_GRAPH_SET && part < count) head.mem = 0;
  if (head.graph_fact < WEIR_GRAPH_SET) p->first[exec] = fresh;
  const size_t first = head.graph_fact > WEIR_GRAPH_SET ? 0 : head.mem ? count : part;
  ck_assert(spool_writer_extended(synth_thread(thread), WEIR_EV_GRAPH, &head, nodes,
                                  first * sizeof *nodes));
  if (head.mem || !synth_below(6)) return;
  head.graph_fact = WEIR_GRAPH_MORE;
  head.b = part;
  head.mem = 1;
  ck_assert(spool_writer_extended(synth_thread(thread), WEIR_EV_GRAPH, &head, nodes + part,
                                  (count - part) * sizeof *nodes));
}

void random_step(random_program *p)
{
  const int thread = (int)synth_below(RANDOM_THREADS);
  const uint64_t n = synth_below(100);
  p->at += 4 + synth_below(30);
  if (n < 50)
    random_memory(p, thread);
  else if (n < 56)
    random_registration(p, thread);
  else if (n < 57)
    random_reset(p, thread);
  else if (n < 85)
    random_other(p, thread);
  else if (n < 93)
    random_range(p, thread);
  else if (n < 99)
    random_graph(p, thread);
  else
    random_module(p, thread);
}

random_program *new_program(int seed)
{
  static random_program p;
  p = (random_program){.at = 100, .nodes = 1};
  synth_seed(UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(seed + 1));
  return &p;
}
