/* sweep.c: what is beyond the bounds goes. Between drains, once a commit: what is in use is looked
 * at as a whole, so that nothing has to be counted with every event.
 *
 * Half of a bound stays, so that a sweep is rare: it costs one look at all entries. */
#include <stdlib.h>
#include <string.h>
#include "reports/tally/private.h"

enum { SETTLED = 2 /* sweeps after which what was recorded and is in no use goes */ };

static int ascending_ticks(const void *left, const void *right)
{
  const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
  return (a > b) - (a < b);
}

/* Of the numbers that are `at` bytes into the entries of a table, the one below which all go so
 * that `most` stay; no more than `keep_from`. UINT64_MAX: out of memory. */
static uint64_t oldest_kept(const wr_table *table, size_t at, uint32_t most, uint64_t keep_from)
{
  uint64_t *ticks = malloc(table->count * sizeof *ticks), kept;
  if (!ticks) return UINT64_MAX;
  for (uint32_t i = 0; i < table->count; i++)
    memcpy(&ticks[i], (const char *)wr_table_at(table, i) + at, sizeof *ticks);
  qsort(ticks, table->count, sizeof *ticks, ascending_ticks);
  kept = ticks[table->count - most];
  free(ticks);
  return kept < keep_from ? kept : keep_from;
}

/* ---- totals ---------------------------------------------------------------------------------- */

/* Into the total of all that differ in their stack alone. False: no room. */
static bool fold_total(wr_tally *t, const wr_tally_total *x)
{
  wr_tally_total rest = *x;
  bool added;
  rest.stack = WR_STACK_FORGOTTEN;
  rest.key = wr_total_key(&rest);
  if (!wr_table_room(&t->s.total, 1)) return false;
  wr_tally_total *into = wr_table_place(&t->s.total, rest.key, &added);
  if (added) {
    *into = rest;
    return true;
  }
  into->count += x->count;
  into->bytes += x->bytes;
  into->ticks += x->ticks;
  if (x->longest > into->longest) into->longest = x->longest;
  if (x->last > into->last) into->last = x->last;
  return true;
}

static weir_status sweep_totals(wr_tally *t)
{
  const uint32_t most = t->options.most_totals;
  if (t->s.total.count <= most) return WEIR_OK;
  uint64_t from =
      oldest_kept(&t->s.total, offsetof(wr_tally_total, last), most / 2, t->options.keep_from);
  if (from == UINT64_MAX) return wr_tally_no_memory(t);
  for (uint32_t i = t->s.total.count; i--;) {
    wr_tally_total was = *(wr_tally_total *)wr_table_at(&t->s.total, i);
    if (was.last >= from || was.stack <= WR_STACK_FORGOTTEN) continue;
    if (!fold_total(t, &was)) return wr_tally_no_memory(t);
    wr_table_remove(&t->s.total, wr_table_at(&t->s.total, i));
    wr_facts(t)->forgotten_totals++;
  }
  return WEIR_OK;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static bool mark_used(hash_map *used, uint64_t stack)
{
  return stack <= WR_STACK_FORGOTTEN || hash_map_put(used, stack, 1) == WEIR_OK;
}

static bool mark_stacks(const wr_tally *t, hash_map *used)
{
  bool good = true;
  for (uint32_t i = 0; i < t->s.total.count && good; i++)
    good = mark_used(used, ((wr_tally_total *)wr_table_at(&t->s.total, i))->stack);
  for (uint32_t i = 0; i < t->s.block.count && good; i++)
    good = mark_used(used, ((wr_tally_block *)wr_table_at(&t->s.block, i))->stack);
  for (uint32_t i = 0; i < t->s.replaced.count && good; i++)
    good = mark_used(used, ((wr_tally_block *)wr_table_at(&t->s.replaced, i))->stack);
  for (uint32_t i = 0; i < t->s.pending.count && good; i++)
    good = mark_used(used, ((wr_pending *)wr_table_at(&t->s.pending, i))->stack);
  for (uint32_t i = 0; i < t->s.context.count && good; i++)
    good = mark_used(used, ((wr_tally_context *)wr_table_at(&t->s.context, i))->call.stack);
  for (uint32_t i = 0; i < t->s.stream.count && good; i++)
    good = mark_used(used, ((wr_tally_stream *)wr_table_at(&t->s.stream, i))->call.stack);
  for (uint32_t i = 0; i < t->s.gauge.count && good; i++)
    good = mark_used(used, ((wr_tally_gauge *)wr_table_at(&t->s.gauge, i))->call.stack);
  return good;
}

/* Stacks that nothing has, and what threads call them. One that was recorded lately may be used by
 * the next event. */
static weir_status sweep_stacks(wr_tally *t)
{
  const uint32_t now = wr_facts(t)->sweeps;
  hash_map used = {0};
  if (!mark_stacks(t, &used)) {
    hash_map_free(&used);
    return wr_tally_no_memory(t);
  }
  for (uint32_t i = t->s.stack.count; i--;) {
    wr_tally_stack *x = wr_table_at(&t->s.stack, i);
    if (now - x->sweep < SETTLED || hash_map_get(&used, x->key)) continue;
    wr_table_remove(&t->s.stack, x);
  }
  hash_map_free(&used);
  for (uint32_t i = t->s.local.count; i--;) {
    wr_local_stack *x = wr_table_at(&t->s.local, i);
    if (wr_table_find(&t->s.stack, x->stack)) continue;
    wr_table_remove(&t->s.local, x);
    t->stacks_went = true;
  }
  return WEIR_OK;
}

/* Every thread may call a stack something: of these as many as four times the totals stay, of those
 * that were used lately. */
static void sweep_locals(wr_tally *t)
{
  const uint32_t now = wr_facts(t)->sweeps;
  uint32_t age = 64;
  for (; t->s.local.count / 4 > t->options.most_totals && age >= SETTLED; age /= 2)
    for (uint32_t i = t->s.local.count; i--;) {
      wr_local_stack *x = wr_table_at(&t->s.local, i);
      if (now - x->sweep < age) continue;
      wr_table_remove(&t->s.local, x);
      t->stacks_went = true;
    }
}

/* ---- what stacks have ------------------------------------------------------------------------ */

static weir_status sweep_python(wr_tally *t)
{
  const uint32_t now = wr_facts(t)->sweeps;
  hash_map used = {0};
  bool good = true;
  if (!t->s.python.count) return WEIR_OK;
  for (uint32_t i = 0; i < t->s.stack.count; i++) {
    const wr_tally_stack *x = wr_table_at(&t->s.stack, i);
    const uint64_t *frame = wr_table_at(&t->s.frame, x->first);
    for (uint32_t k = 0; k < x->depth && good; k++)
      if (frame[k] >= WEIR_PYTHON_FRAME_FIRST) good = hash_map_put(&used, frame[k], 1) == WEIR_OK;
  }
  for (uint32_t i = t->s.python.count; good && i--;) {
    wr_python_frame *x = wr_table_at(&t->s.python, i);
    if (now - x->sweep >= SETTLED && !hash_map_get(&used, x->number))
      wr_table_remove(&t->s.python, x);
  }
  hash_map_free(&used);
  return good ? WEIR_OK : wr_tally_no_memory(t);
}

static weir_status sweep_names(wr_tally *t)
{
  const uint32_t most = t->options.most_names;
  if (t->s.name.count <= most) return WEIR_OK;
  uint64_t from =
      oldest_kept(&t->s.name, offsetof(wr_tally_name, used), most / 2, t->options.keep_from);
  hash_map open = {0};
  bool good = from != UINT64_MAX;
  for (uint32_t i = 0; i < t->s.range.count && good; i++)
    good = hash_map_put(&open, ((wr_open_range *)wr_table_at(&t->s.range, i))->name, 1) == WEIR_OK;
  for (uint32_t i = t->s.name.count; good && i--;) {
    wr_tally_name *x = wr_table_at(&t->s.name, i);
    if (x->used >= from || hash_map_get(&open, x->key)) continue;
    wr_table_remove(&t->s.name, x);
    wr_facts(t)->forgotten_names++;
  }
  hash_map_free(&open);
  return good ? WEIR_OK : wr_tally_no_memory(t);
}

/* Modules that are gone, the first ones first; those a stack may be in stay as long as there are
 * not too many by far. */
static void sweep_modules(wr_tally *t)
{
  const uint64_t most = t->options.most_modules, unloads = wr_facts(t)->unloads;
  uint32_t gone = 0, least = UINT32_MAX;
  for (uint32_t i = 0; i < t->s.module.count; i++)
    gone += ((wr_tally_module *)wr_table_at(&t->s.module, i))->unloaded != 0;
  if (gone <= most) return;
  for (uint32_t i = 0; i < t->s.stack.count; i++) {
    const wr_tally_stack *x = wr_table_at(&t->s.stack, i);
    if (x->unloads < least) least = x->unloads;
  }
  for (uint32_t i = t->s.module.count; i--;) {
    wr_tally_module *x = wr_table_at(&t->s.module, i);
    const bool far = gone > 4 * most && unloads - x->unloads > most;
    if (!x->unloaded || (x->unloads >= least && !far)) continue;
    wr_table_remove(&t->s.module, x);
    wr_facts(t)->forgotten_modules++;
  }
}

/* A free that comes so late is of no block any more that another has replaced. */
static void sweep_replaced(wr_tally *t)
{
  for (uint32_t i = t->s.replaced.count; i--;) {
    wr_tally_block *x = wr_table_at(&t->s.replaced, i);
    const wr_tally_block *by = wr_table_find(&t->s.block, x->key);
    if (by && by->replaced && wr_facts(t)->settled < by->time + 2 * t->tremor) continue;
    wr_table_remove(&t->s.replaced, x);
  }
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* An array that is written anew without its holes. */
typedef struct packing {
  wr_table *array;
  char *to;
  uint32_t count;
} packing;

static uint32_t move_piece(packing *x, uint32_t first, uint32_t count)
{
  const uint32_t at = x->count;
  if (count)
    memcpy(x->to + (size_t)at * x->array->size, wr_table_at(x->array, first),
           (size_t)count * x->array->size);
  x->count += count;
  return at;
}

static void pack_frames(wr_tally *t, packing *x)
{
  for (uint32_t i = 0; i < t->s.stack.count; i++) {
    wr_tally_stack *s = wr_table_at(&t->s.stack, i);
    s->first = move_piece(x, s->first, s->depth);
  }
}

static void pack_nodes(wr_tally *t, packing *x)
{
  for (uint32_t i = 0; i < t->s.graph.count; i++) {
    wr_tally_graph *g = wr_table_at(&t->s.graph, i);
    g->first = move_piece(x, g->first, g->count);
  }
  for (uint32_t i = 0; i < t->s.pending.count; i++) {
    wr_pending *p = wr_table_at(&t->s.pending, i);
    p->first = move_piece(x, p->first, p->count);
  }
}

static void move_text(packing *x, wr_piece_of_text *text)
{
  text->at = move_piece(x, text->at, text->bytes);
}

static void pack_texts(wr_tally *t, packing *x)
{
  for (uint32_t i = 0; i < t->s.thread.count; i++)
    move_text(x, &((wr_tally_thread *)wr_table_at(&t->s.thread, i))->name);
  for (uint32_t i = 0; i < t->s.module.count; i++) {
    wr_tally_module *m = wr_table_at(&t->s.module, i);
    move_text(x, &m->build_id);
    move_text(x, &m->path);
  }
  for (uint32_t i = 0; i < t->s.name.count; i++) {
    wr_tally_name *n = wr_table_at(&t->s.name, i);
    move_text(x, &n->domain);
    move_text(x, &n->text);
  }
  for (uint32_t i = 0; i < t->s.python.count; i++) {
    wr_python_frame *f = wr_table_at(&t->s.python, i);
    move_text(x, &f->function);
    move_text(x, &f->file);
  }
}

/* Pieces do not overlap, so that they fit where they were. */
static weir_status pack_array(wr_tally *t, wr_table *array, void (*pack)(wr_tally *t, packing *x))
{
  packing x = {.array = array, .to = malloc((size_t)array->count * array->size + 1)};
  if (!x.to) return wr_tally_no_memory(t);
  pack(t, &x);
  if (x.count) memcpy(array->entry, x.to, (size_t)x.count * array->size);
  array->count = x.count;
  free(x.to);
  return WEIR_OK;
}

/* Pending events in use, thread by thread: what a file has of them. */
static weir_status pack_pending(wr_tally *t)
{
  wr_pending *packed = malloc(((size_t)t->waiting + 1) * sizeof *packed);
  uint32_t count = 0;
  if (!packed) return wr_tally_no_memory(t);
  for (uint32_t i = 0; i < t->s.thread.count; i++) {
    wr_tally_thread *thread = wr_table_at(&t->s.thread, i);
    uint32_t at = thread->first;
    thread->first = at ? count + 1 : 0;
    for (uint32_t after, before = 0; at; at = after) {
      packed[count] = *(wr_pending *)wr_table_at(&t->s.pending, at - 1);
      after = packed[count].after;
      packed[count].before = before;
      packed[count].after = after ? count + 2 : 0;
      before = ++count;
      thread->newest = count;
    }
  }
  if (count) memcpy(t->s.pending.entry, packed, count * sizeof *packed);
  t->s.pending.count = count;
  t->unused = 0;
  free(packed);
  return WEIR_OK;
}

weir_status wr_tally_sweep(wr_tally *t)
{
  wr_tally_facts *facts = wr_facts(t);
  const uint32_t threads_last = t->last;
  facts->sweeps++;
  weir_status st = pack_pending(t);
  if (!st) sweep_replaced(t);
  if (!st) st = sweep_totals(t);
  if (!st && t->s.stack.count > t->options.most_totals) st = sweep_stacks(t);
  if (!st) sweep_locals(t);
  if (!st && t->s.python.count > t->options.most_names) st = sweep_python(t);
  if (!st) st = sweep_names(t);
  if (!st) sweep_modules(t);
  if (!st) st = pack_array(t, &t->s.frame, pack_frames);
  if (!st) st = pack_array(t, &t->s.node, pack_nodes);
  if (!st) st = pack_array(t, &t->s.text, pack_texts);
  t->last = threads_last;
  return st;
}
