/* fit.c: see fit.h.
 *
 * What a policy needs is not what it reserves when there is plenty: it gives cached memory back
 * when a device is full. So the list is replayed on devices of several sizes, each replay ending
 * where an allocation fails. The largest piece at a failure is found in the same way, by asking:
 * whatever a policy can do for a request (join, move, give back) it does then, and no model has
 * to define what a piece is. */
#include "tools/replay/fit.h"

#include <inttypes.h>

#define PART 256u /* of the answer: how close to it the search ends */
#define STEP (2 * RP_MIB)

/* ---- trying ---------------------------------------------------------------------------------- */

/* Among the record's allocations and requests, from 1; of a block from before, 0. */
static uint64_t op_number(const rp_ops *ops, size_t op)
{
  uint64_t number = 0;
  for (size_t i = ops->held_count; i <= op; i++)
    number += ops->op[i].kind != RP_FREE;
  return number;
}

/* The first failure on a device of `capacity`; fits: there is none. */
static weir_status try_capacity(rp_fit *out, const rp_ops *ops, uint64_t capacity,
                                const rp_options *options)
{
  rp_options o = *options;
  rp_failure f;
  o.capacity = capacity;
  weir_status st = rp_replay_to_failure(&f, ops, out->policy, &o);
  out->fits = !st && f.op == ops->count;
  if (st || out->fits) return st;
  out->op = f.op;
  out->number = op_number(ops, f.op);
  out->request = ops->op[f.op].kind == RP_REQUEST;
  out->at_ns = ops->op[f.op].time;
  out->bytes = ops->op[f.op].bytes;
  out->live = f.live;
  out->largest = f.largest;
  return st;
}

static uint64_t close_enough(uint64_t bytes)
{
  return bytes / PART > STEP ? bytes / PART : STEP;
}

/* The smallest size above `low`, where it does not fit, up to `high`, where it does. */
static weir_status search_needs(rp_fit *out, const rp_ops *ops, const rp_options *options,
                                uint64_t low, uint64_t high)
{
  weir_status st = WEIR_OK;
  while (!st && high - low > close_enough(high)) {
    rp_fit t = {.policy = out->policy};
    uint64_t middle = low + (high - low) / 2 / STEP * STEP;
    if (middle == low) break;
    st = try_capacity(&t, ops, middle, options);
    *(t.fits ? &high : &low) = middle;
  }
  out->needs = high;
  return st;
}

weir_status rp_fit_try(rp_fit *out, const rp_ops *ops, const rp_policy *policy,
                       const rp_options *options)
{
  uint64_t low = 0, high = options->capacity;
  *out = (rp_fit){.policy = policy, .capacity = high, .needs = high};
  weir_status st = try_capacity(out, ops, high, options);
  if (st || out->fits) return st;
  rp_fit larger = {.policy = policy};
  while (!st && !larger.fits) {
    if (high >= RP_UNLIMITED) return weir_fail(WEIR_EOOM, "no device is large enough");
    low = high;
    high = high < RP_UNLIMITED / 2 ? rp_round(2 * high, STEP) : RP_UNLIMITED;
    st = try_capacity(&larger, ops, high, options);
  }
  return st ? st : search_needs(out, ops, options, low, high);
}

/* ---- printing -------------------------------------------------------------------------------- */

static const rp_frame *innermost_frame(const rp_ops *ops, const rp_op *op)
{
  if (!op->stack || op->stack >= ops->stack_count) return NULL;
  const rp_stack *stack = &ops->stack[op->stack];
  return stack->at < stack->count ? &ops->frame[stack->first + stack->at] : NULL;
}

static void show_fitting(FILE *out, const rp_fit *fits, size_t count)
{
  char text[32];
  const char *between = "";
  for (size_t i = 0; i < count; i++) {
    if (!fits[i].fits) continue;
    if (!*between) (void)fprintf(out, "Fits on %s with ", rp_bytes_text(text, fits[i].capacity));
    (void)fprintf(out, "%s%s", between, fits[i].policy->name);
    between = ", ";
  }
  if (*between) (void)fputs(".\n", out);
}

static void show_failing(FILE *out, const rp_ops *ops, const rp_fit *f)
{
  char capacity[32], needs[32], asked[32], unused[32], largest[32];
  const rp_frame *at = innermost_frame(ops, &ops->op[f->op]);
  (void)fprintf(out, "With %s it needs %s, and does not fit on %s: ", f->policy->name,
                rp_bytes_text(needs, f->needs), rp_bytes_text(capacity, f->capacity));
  if (f->number)
    (void)fprintf(out, "allocation %" PRIu64, f->number);
  else
    (void)fputs("a block from before the record began", out);
  if (f->at_ns) (void)fprintf(out, " (%.3f s after the first)", (double)f->at_ns / 1e9);
  if (f->request) (void)fputs(", which failed when it was recorded, too,", out);
  if (at && at->name) (void)fprintf(out, " in %s", at->name);
  if (at && at->file) (void)fprintf(out, " %s:%d", at->file, at->line);
  (void)fprintf(out, " asked for %s; of %s that were free the largest piece was %s.\n",
                rp_bytes_text(asked, f->bytes),
                rp_bytes_text(unused, f->capacity > f->live ? f->capacity - f->live : 0),
                rp_bytes_text(largest, f->largest));
}

weir_status rp_fit_show_text(FILE *out, const rp_ops *ops, const rp_fit *fits, size_t count)
{
  show_fitting(out, fits, count);
  for (size_t i = 0; i < count; i++)
    if (!fits[i].fits) show_failing(out, ops, &fits[i]);
  return fflush(out) || ferror(out) ? weir_fail(WEIR_EIO, "cannot write the result") : WEIR_OK;
}
