/* replay.c: see replay.h. One instance of the policy for each heap; what the heaps hold is added
 * up. */
#include "tools/replay/replay.h"
#include <stdlib.h>
#include "core/base/clock.h"

typedef struct run {
  const rp_ops *ops;
  const rp_policy *policy;
  rp_result *out;
  void **heap;             /* [ops->heaps], NULL until it is opened */
  rp_driver *driver;       /* the same */
  void **block;            /* [ops->blocks], NULL: not live */
  uint64_t live, reserved; /* bytes now, all heaps */
  size_t column;           /* of the last operation */
  rp_column held;          /* after it */
} run;

double rp_ratio(const rp_result *r)
{
  return r->peak_live ? (double)r->peak_reserved / (double)r->peak_live : 0;
}

/* The column of operation i: by time where there is any, else by number. */
static size_t column_of(const rp_ops *ops, size_t i)
{
  uint64_t end = ops->op[ops->count - 1].time;
  double part = end ? (double)ops->op[i].time / (double)end : (double)i / (double)ops->count;
  size_t n = (size_t)(part * RP_COLUMNS);
  return n < RP_COLUMNS ? n : RP_COLUMNS - 1;
}

static void note_column(run *r, size_t i)
{
  size_t column = column_of(r->ops, i);
  while (r->column < column) /* what is held goes on where nothing happens */
    r->out->column[++r->column] = r->held;
  r->held = (rp_column){r->live, r->reserved};
  rp_column *c = &r->out->column[column];
  if (r->live > c->live) c->live = r->live;
  if (r->reserved > c->reserved) c->reserved = r->reserved;
  if (r->live > r->out->peak_live) r->out->peak_live = r->live;
  if (r->reserved > r->out->peak_reserved) r->out->peak_reserved = r->reserved;
}

/* What failed when it was recorded: had for a moment, or not at all. */
static weir_status run_request(run *r, const rp_op *op)
{
  uint64_t address, before = r->driver[op->heap].reserved;
  void *heap = r->heap[op->heap], *block = NULL;
  if (!r->out->requests_tried) return WEIR_OK;
  weir_status st = r->policy->alloc(heap, op, &block, &address);
  r->reserved += r->driver[op->heap].reserved - before;
  if (st == WEIR_EOOM) r->out->failed++;
  if (st) return st == WEIR_EOOM ? WEIR_OK : st;
  r->live += op->bytes;
  note_column(r, (size_t)(op - r->ops->op));
  before = r->driver[op->heap].reserved;
  st = r->policy->free(heap, op, block);
  r->live -= op->bytes;
  r->reserved += r->driver[op->heap].reserved - before;
  r->out->operations += 2;
  return st;
}

static weir_status replay_op(run *r, const rp_op *op)
{
  uint64_t address, before = r->driver[op->heap].reserved;
  void *heap = r->heap[op->heap];
  weir_status st;
  if (op->kind == RP_REQUEST) return run_request(r, op);
  if (op->kind == RP_FREE) {
    if (!r->block[op->block]) return WEIR_OK; /* its allocation failed */
    st = r->policy->free(heap, op, r->block[op->block]);
    r->live -= op->bytes;
  } else {
    st = r->policy->alloc(heap, op, &r->block[op->block], &address);
    if (!st) r->live += op->bytes;
  }
  r->reserved += r->driver[op->heap].reserved - before;
  if (st == WEIR_EOOM) {
    r->block[op->block] = NULL;
    r->out->failed++;
    return WEIR_OK;
  }
  r->out->operations++;
  return st;
}

static weir_status run_operations(run *r)
{
  weir_status st = WEIR_OK;
  uint64_t begin = clock_monotonic_ns();
  for (size_t i = 0; !st && i < r->ops->count; i++) {
    st = replay_op(r, &r->ops->op[i]);
    note_column(r, i);
  }
  uint64_t took = clock_monotonic_ns() - begin;
  if (r->out->operations) r->out->ns_per_op = (double)took / (double)r->out->operations;
  return st;
}

static weir_status open_heaps(run *r, const rp_options *options)
{
  weir_status st = WEIR_OK;
  for (uint32_t i = 0; !st && i < r->ops->heaps; i++) {
    r->driver[i].capacity = options->capacity ? options->capacity : RP_UNLIMITED;
    st = r->policy->open(&r->heap[i], &r->driver[i], options);
    r->reserved += r->driver[i].reserved;
  }
  return st;
}

static void close_heaps(run *r)
{
  for (uint32_t i = 0; i < r->ops->heaps; i++) {
    if (!r->heap[i]) continue;
    r->out->segment_calls += r->driver[i].segment_calls;
    r->out->syncs += r->driver[i].syncs;
    r->out->stream_waits += r->driver[i].stream_waits;
    r->out->events += r->driver[i].events;
    r->policy->close(r->heap[i]); /* what that costs is the program's end, not the list's */
  }
}

static weir_status make_heaps(run *r, const rp_options *options)
{
  r->heap = calloc((size_t)r->ops->heaps + 1, sizeof *r->heap);
  r->driver = calloc((size_t)r->ops->heaps + 1, sizeof *r->driver);
  r->block = calloc((size_t)r->ops->blocks + 1, sizeof *r->block);
  r->out->ops = r->ops;
  r->out->requests_tried = options->capacity && options->capacity < RP_UNLIMITED;
  if (!r->heap || !r->driver || !r->block)
    return weir_fail(WEIR_ENOMEM, "replaying: out of host memory");
  return open_heaps(r, options);
}

static void end_replay(run *r)
{
  if (r->heap && r->driver) close_heaps(r);
  free(r->heap);
  free(r->driver);
  free(r->block);
}

weir_status rp_replay(rp_result *out, const rp_ops *ops, const rp_policy *policy,
                      const rp_options *options)
{
  run r = {.ops = ops, .policy = policy, .out = out};
  *out = (rp_result){.policy = policy};
  weir_status st = make_heaps(&r, options);
  if (!st) st = run_operations(&r);
  end_replay(&r);
  return st;
}

/* ---- to the first failure -------------------------------------------------------------------- */

/* Bytes that are held of a heap's blocks before operation `end`. */
static uint64_t live_before(const rp_ops *ops, size_t end, uint16_t heap)
{
  uint64_t live = 0;
  for (size_t i = 0; i < end; i++) {
    const rp_op *op = &ops->op[i];
    if (op->heap == heap && op->kind != RP_REQUEST)
      live += op->kind == RP_FREE ? 0 - op->bytes : op->bytes;
  }
  return live;
}

/* The most that `op` could have had, by halves; what is had is freed at once. */
static weir_status ask_largest(run *r, const rp_op *op, uint64_t *largest)
{
  uint64_t low = 0, high = op->bytes, address;
  weir_status st = WEIR_OK;
  while (high - low > 1 && (!st || st == WEIR_EOOM)) {
    rp_op asked = *op;
    void *block;
    asked.bytes = low + (high - low) / 2;
    st = r->policy->alloc(r->heap[op->heap], &asked, &block, &address);
    if (!st) st = r->policy->free(r->heap[op->heap], &asked, block);
    *(st ? &high : &low) = asked.bytes;
  }
  *largest = low;
  return st == WEIR_EOOM ? WEIR_OK : st;
}

weir_status rp_replay_to_failure(rp_failure *out, const rp_ops *ops, const rp_policy *policy,
                                 const rp_options *options)
{
  rp_result result = {.policy = policy};
  run r = {.ops = ops, .policy = policy, .out = &result};
  *out = (rp_failure){0};
  weir_status st = make_heaps(&r, options);
  while (!st && out->op < ops->count && !result.failed) {
    st = replay_op(&r, &ops->op[out->op]);
    if (!st && !result.failed) out->op++;
  }
  if (!st && result.failed) {
    const rp_op *op = &ops->op[out->op];
    out->live = live_before(ops, out->op, op->heap);
    st = ask_largest(&r, op, &out->largest);
  }
  end_replay(&r);
  return st;
}
