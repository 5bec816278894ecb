/* batch.c: making one batch: its items, their collation, pinning, and the copy to a device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/require.h"
#include "core/nn/loader.h"
#include "core/weir/ops.h"

void weir_batch_drop(weir_batch *batch)
{
  if (!batch) return;
  for (int i = 0; i < batch->count && i < WEIR_BATCH_TENSORS; i++)
    weir_tensor_release(batch->tensor[i]);
  memset(batch, 0, sizeof *batch);
}

/* Keeps a failure and its sentence for weir_loader_next(). */
static void fail(loader_slot *s, weir_status st)
{
  const char *text = weir_error_message();
  s->st = st;
  (void)snprintf(s->text, sizeof s->text, "%s", *text ? text : weir_status_string(st));
}

/* ---- items ----------------------------------------------------------------------------------- */

static weir_status check_batch(const weir_batch *b, const char *what, int64_t number)
{
  bool whole = b->count > 0 && b->count <= WEIR_BATCH_TENSORS;
  for (int i = 0; whole && i < b->count; i++)
    whole = b->tensor[i];
  if (whole) return WEIR_OK;
  return fail_invalid("%s %lld of the dataset is no 1 to %d tensors: it has %d", what,
                      (long long)number, WEIR_BATCH_TENSORS, b->count);
}

/* The items of the batch, items[0..got-1]. */
static weir_status get_items(const weir_loader *l, const loader_slot *s, weir_batch *items,
                             int64_t *got)
{
  weir_status st = WEIR_OK;
  for (int64_t i = 0; !st && i < s->count; i++) {
    weir_batch item = {0};
    st = l->set.get(&item, l->set.user, s->index[i]);
    if (!st) st = check_batch(&item, "item", s->index[i]);
    items[i] = item;
    *got = i + 1;
  }
  return st;
}

/* torch's default_collate(): tensor k of all items, stacked. */
static weir_status stack_items(weir_batch *out, const weir_batch *items, int64_t count)
{
  const weir_tensor **column = calloc((size_t)count, sizeof(weir_tensor *));
  if (!column) return fail_memory("a batch of %lld", (long long)count);
  weir_status st = WEIR_OK;
  for (int64_t i = 1; !st && i < count; i++)
    if (items[i].count != items[0].count)
      st = fail_invalid("each element in list of batch should be of equal size");
  for (int k = 0; !st && k < items[0].count; k++) {
    for (int64_t i = 0; i < count; i++)
      column[i] = items[i].tensor[k];
    st = weir_stack(&out->tensor[k], column, (int)count, 0);
    if (!st) out->count = k + 1;
  }
  free(column);
  return st;
}

void loader_load(const weir_loader *l, loader_slot *s)
{
  int64_t got = 0;
  weir_batch *items = calloc((size_t)s->count, sizeof *items);
  (void)weir_fail(WEIR_OK, "%s", ""); /* a callback that fails may state nothing */
  if (!items) {
    fail(s, fail_memory("%lld items", (long long)s->count));
    return;
  }
  weir_status st = get_items(l, s, items, &got);
  if (!st)
    st = l->options.collate
             ? l->options.collate(&s->batch, items, s->count, l->options.collate_user)
             : stack_items(&s->batch, items, s->count);
  if (!st) st = check_batch(&s->batch, "a collated batch with item", s->index[0]);
  for (int64_t i = 0; i < got; i++)
    weir_batch_drop(&items[i]);
  free(items);
  if (!st) return;
  fail(s, st);
  weir_batch_drop(&s->batch);
}

/* ---- staging --------------------------------------------------------------------------------- */

/* The tensor is another from now on. */
static weir_status become(weir_tensor **t, weir_tensor *other, weir_status st)
{
  if (st) return st;
  weir_tensor_release(*t);
  *t = other;
  return WEIR_OK;
}

static weir_status pin_batch(weir_batch *b)
{
  weir_status st = WEIR_OK;
  for (int i = 0; !st && i < b->count; i++) {
    weir_tensor *pinned = NULL;
    st = weir_pin_memory(&pinned, b->tensor[i]);
    st = become(&b->tensor[i], pinned, st);
  }
  return st;
}

/* In the side stream. The allocator of pinned memory knows that it reads. */
static weir_status copy_batch(const weir_loader_iter *it, loader_slot *s)
{
  weir_options o = {.device = it->device, .non_blocking = it->side != NULL};
  weir_guard guard = {.device = -1, .of = {-1, -1}};
  weir_status st = it->side ? weir_stream_enter(&guard, it->side) : WEIR_OK;
  for (int i = 0; !st && i < s->batch.count; i++) {
    weir_tensor *there = NULL;
    st = weir_to(&there, s->batch.tensor[i], &o);
    st = become(&s->batch.tensor[i], there, st);
  }
  if (!st && it->side) st = weir_event_record(s->copied, it->side);
  weir_guard_leave(&guard);
  return st;
}

void loader_stage(const weir_loader_iter *it, loader_slot *s)
{
  if (s->st) return;
  weir_status st = it->pin ? pin_batch(&s->batch) : WEIR_OK;
  if (!st && it->device.type) st = copy_batch(it, s);
  if (!st) return;
  fail(s, st);
  weir_batch_drop(&s->batch);
}

/* ---- a dataset of tensors -------------------------------------------------------------------- */

typedef struct rows {
  int count;
  weir_tensor *tensor[WEIR_BATCH_TENSORS]; /* a count of each */
} rows;

static int64_t rows_length(void *user)
{
  return weir_tensor_size(((rows *)user)->tensor[0], 0);
}

static weir_status rows_get(weir_batch *out, void *user, int64_t index)
{
  const rows *r = user;
  weir_status st = WEIR_OK;
  for (; !st && out->count < r->count; out->count += !st)
    st = weir_select(&out->tensor[out->count], r->tensor[out->count], 0, index);
  return st;
}

static void rows_destroy(void *user)
{
  rows *r = user;
  for (int i = 0; i < r->count; i++)
    weir_tensor_release(r->tensor[i]);
  free(r);
}

weir_status weir_tensor_dataset(weir_dataset *out, weir_tensor *const *tensors, int count)
{
  WEIR_REQUIRE(out);
  if (count) WEIR_REQUIRE(tensors);
  *out = (weir_dataset){0};
  if (count < 1 || count > WEIR_BATCH_TENSORS)
    return fail_invalid("a dataset has 1 to %d tensors, not %d", WEIR_BATCH_TENSORS, count);
  for (int i = 0; i < count; i++)
    if (!tensors[i] || !weir_tensor_dim(tensors[i]) ||
        weir_tensor_size(tensors[i], 0) != weir_tensor_size(tensors[0], 0))
      return fail_invalid("Size mismatch between tensors");
  rows *r = calloc(1, sizeof *r);
  if (!r) return fail_memory("a dataset of %d tensors", count);
  for (int i = 0; i < count; i++, r->count++)
    r->tensor[i] = weir_tensor_retain(tensors[i]);
  *out = (weir_dataset){rows_length, rows_get, rows_destroy, r};
  return WEIR_OK;
}
