/* replay.c: see replay.h. Here the dictionaries, and the order of all.
 *
 * A stack means what was loaded when it was recorded. So modules come and go between the stacks as
 * they did: by *epoch*, which is how many were gone before. */
#include "reports/tally/replay.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "reports/base/util.h"
#include "reports/tally/probe.h"
#include "reports/tally/replaying.h"

static bool put_piece(wr_replay *r, wr_piece_of_text text)
{
  return wr_replay_put(r, r->t->s.text.entry + text.at, text.bytes);
}

/* ---- modules and stacks ---------------------------------------------------------------------- */

enum { LOADED, STACKED, UNLOADED };

typedef struct place {
  uint64_t epoch, time;
  uint32_t what; /* LOADED, ... */
  uint32_t thread, id;
  const void *of; /* wr_tally_module, wr_tally_stack */
} place;

typedef struct places {
  place *place; /* owned */
  size_t count, room;
} places;

static bool list_place(places *all, place one)
{
  if (!wr_grow(&all->place, &all->room, all->count + 1, sizeof one)) return false;
  all->place[all->count++] = one;
  return true;
}

static int by_epoch(const void *left, const void *right)
{
  const place *a = left, *b = right;
  if (a->epoch != b->epoch) return a->epoch < b->epoch ? -1 : 1;
  if (a->what != b->what) return a->what < b->what ? -1 : 1;
  if (a->time != b->time) return a->time < b->time ? -1 : 1;
  if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
  return (a->id > b->id) - (a->id < b->id);
}

static bool list_stack_as(places *all, const wr_replay *r, uint32_t thread, uint32_t id,
                          uint64_t stack)
{
  const wr_tally_stack *x = wr_table_find(&r->t->s.stack, stack);
  return !x || list_place(all, (place){x->unloads, x->met, STACKED, thread, id, x});
}

static bool list_places(places *all, wr_replay *r)
{
  const wr_tally_state *s = &r->t->s;
  bool good = true;
  for (uint32_t i = 0; i < s->module.count && good; i++) {
    const wr_tally_module *m = wr_table_at(&s->module, i);
    good = list_place(all, (place){m->unloads_before, m->loaded, LOADED, 0, 0, m});
    if (m->unloaded && good)
      good = list_place(all, (place){m->unloads, m->unloaded, UNLOADED, 0, 0, m});
  }
  for (uint32_t i = 0; i < s->local.count && good; i++) {
    const wr_local_stack *x = wr_table_at(&s->local, i);
    good = list_stack_as(all, r, x->thread, x->id, x->stack);
  }
  /* numbers that no thread gave: from above, as wr_replay_stack() made them */
  for (uint32_t i = 0; i < r->count && good; i++) {
    const wr_call *c = &r->early[i].call;
    uint32_t id;
    good = wr_replay_stack(r, c->thread, c->stack, &id);
    if (good && id && !wr_table_find(&s->local, wr_key_of_small(c->thread, id)))
      good = list_stack_as(all, r, c->thread, id, c->stack);
  }
  for (uint32_t i = 0; i < s->total.count && good; i++) {
    const uint64_t stack = ((wr_tally_total *)wr_table_at(&s->total, i))->stack;
    uint32_t id;
    if (stack <= WR_STACK_FORGOTTEN || hash_map_get(&r->any, stack)) continue;
    good = wr_replay_stack(r, r->home, stack, &id);
    if (good && id) good = list_stack_as(all, r, r->home, id, stack);
  }
  return good;
}

static weir_status deliver_loaded(wr_replay *r, const wr_tally_module *m)
{
  const trace_event head = {.kind = WEIR_EV_MODULE, .start = m->loaded, .a = 1};
  module_info info = m->info;
  info.build_id_bytes = m->build_id.bytes;
  info.path_bytes = m->path.bytes;
  if (!wr_replay_put(r, &info, sizeof info) || !put_piece(r, m->build_id) ||
      !put_piece(r, m->path) || !wr_replay_put(r, &m->stamp, sizeof m->stamp))
    return wr_replay_no_memory(r);
  return wr_replay_extended(r, r->home, &head);
}

static weir_status deliver_unloaded(wr_replay *r, uint64_t base, uint64_t time)
{
  const trace_event head = {.kind = WEIR_EV_MODULE, .start = time};
  const module_info info = {.base = base};
  if (!wr_replay_put(r, &info, sizeof info)) return wr_replay_no_memory(r);
  return wr_replay_extended(r, r->home, &head);
}

static weir_status deliver_stack(wr_replay *r, const place *p)
{
  const wr_tally_stack *x = p->of;
  const trace_event head = {.kind = WEIR_EV_STACK, .start = x->met, .a = p->id, .bytes = x->depth};
  if (!wr_replay_put(r, wr_table_at(&r->t->s.frame, x->first), x->depth * sizeof(uint64_t)))
    return wr_replay_no_memory(r);
  return wr_replay_extended(r, p->thread, &head);
}

static weir_status deliver_place(wr_replay *r, const place *p)
{
  const wr_tally_module *m = p->of;
  switch (p->what) {
  case LOADED:
    return deliver_loaded(r, m);
  case UNLOADED:
    return deliver_unloaded(r, m->info.base, m->unloaded);
  default:
    return deliver_stack(r, p);
  }
}

/* Where the module is not known whose end divides two epochs, the end of none does. */
static weir_status deliver_places(wr_replay *r)
{
  places all = {0};
  weir_status st = list_places(&all, r) ? WEIR_OK : wr_replay_no_memory(r);
  bool divided = true;
  if (all.count) qsort(all.place, all.count, sizeof *all.place, by_epoch);
  for (size_t i = 0; i < all.count && !st; i++) {
    const place *p = &all.place[i];
    if (i && p->epoch != p[-1].epoch && !divided) st = deliver_unloaded(r, 0, p->time);
    if (!st) st = deliver_place(r, p);
    divided = p->what == UNLOADED;
  }
  free(all.place);
  return st;
}

/* ---- names ----------------------------------------------------------------------------------- */

static weir_status deliver_name(wr_replay *r, const wr_tally_name *n)
{
  trace_event head = {
      .kind = WEIR_EV_NAME, .start = n->said, .a = n->handle, .b = n->kind, .stream = n->bytes};
  bool good = put_piece(r, n->domain);
  if (n->kind == WEIR_NAME_CATEGORY) good = good && wr_replay_put(r, "", 1);
  if (!good || !put_piece(r, n->text)) return wr_replay_no_memory(r);
  return wr_replay_extended(r, r->home, &head);
}

static weir_status deliver_range_name(wr_replay *r, const wr_tally_name *n)
{
  const trace_event head = {.kind = WEIR_EV_RANGE_NAME, .start = n->said, .a = n->handle};
  const range_name name = {.category = (uint32_t)(n->bytes >> 32),
                           .color = (uint32_t)n->bytes,
                           .domain_bytes = (uint16_t)n->domain.bytes,
                           .text_bytes = (uint16_t)n->text.bytes};
  if (!wr_replay_put(r, &name, sizeof name) || !put_piece(r, n->domain) || !put_piece(r, n->text))
    return wr_replay_no_memory(r);
  return wr_replay_extended(r, n->thread, &head);
}

static weir_status deliver_names(wr_replay *r)
{
  const wr_table *names = &r->t->s.name;
  weir_status st = WEIR_OK;
  for (uint32_t i = 0; i < names->count && !st; i++) {
    const wr_tally_name *n = wr_table_at(names, i);
    st = n->kind == WR_NAME_RANGE ? deliver_range_name(r, n) : deliver_name(r, n);
  }
  return st;
}

static weir_status deliver_python(wr_replay *r)
{
  const wr_table *frames = &r->t->s.python;
  weir_status st = WEIR_OK;
  for (uint32_t i = 0; i < frames->count && !st; i++) {
    const wr_python_frame *f = wr_table_at(frames, i);
    const trace_event head = {.kind = WEIR_EV_PYTHON_FRAME, .a = f->number};
    const python_frame_info info = {.line = f->line,
                                    .function_bytes = (uint16_t)f->function.bytes,
                                    .file_bytes = (uint16_t)f->file.bytes};
    if (!wr_replay_put(r, &info, sizeof info) || !put_piece(r, f->function) ||
        !put_piece(r, f->file))
      return wr_replay_no_memory(r);
    st = wr_replay_extended(r, r->home, &head);
  }
  return st;
}

static weir_status deliver_threads(wr_replay *r)
{
  const wr_table *threads = &r->t->s.thread;
  weir_status st = WEIR_OK;
  for (uint32_t i = 0; i < threads->count && !st; i++) {
    const wr_tally_thread *x = wr_table_at(threads, i);
    const trace_event head = {.kind = WEIR_EV_THREAD};
    if (!x->name.bytes) continue;
    if (!put_piece(r, x->name)) return wr_replay_no_memory(r);
    st = wr_replay_extended(r, x->serial, &head);
  }
  return st;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static weir_status deliver_totals(wr_replay *r)
{
  weir_status st = WEIR_OK;
  for (uint32_t i = 0; i < r->t->s.total.count && !st; i++) {
    const wr_tally_total *x = wr_table_at(&r->t->s.total, i);
    const uint64_t *name = hash_map_get(&r->any, x->stack);
    const wr_replay_total total = {.count = x->count,
                                   .bytes = x->bytes,
                                   .ticks = x->ticks,
                                   .longest = x->longest,
                                   .thread = name ? (uint32_t)(*name >> 32) : 0,
                                   .stack = name ? (uint32_t)*name : 0,
                                   .forgotten = x->stack && !name,
                                   .flags = x->flags,
                                   .api = x->api,
                                   .status = x->status,
                                   .kind = x->kind,
                                   .detail = x->detail,
                                   .mem = x->mem,
                                   .device = x->device,
                                   .src_device = x->src_device};
    if (x->count || x->bytes || x->ticks) st = r->v->total(r->v->records.context, &total);
  }
  return st;
}

static weir_status deliver_accounts(wr_replay *r)
{
  weir_status st = WEIR_OK;
  for (uint32_t i = 0; i < r->t->s.account.count && !st; i++) {
    const wr_tally_account *x = wr_table_at(&r->t->s.account, i);
    const bool side = x->class == WR_ACCOUNT_DEVICE_SIDE, all = x->device == WR_ALL_DEVICES;
    const bool registered = x->class == WR_ACCOUNT_REGISTERED;
    const wr_replay_account account = {.allocs = x->allocs,
                                       .bytes = x->bytes,
                                       .peak = x->peak,
                                       .peak_ticks = x->peak_time,
                                       .live = x->live,
                                       .live_blocks = x->blocks,
                                       .all_devices = all,
                                       .registered = registered,
                                       .device_side = side,
                                       .device = all ? WEIR_DEVICE_NONE : (uint8_t)x->device,
                                       .mem = registered ? WEIR_MEM_PINNED
                                              : side     ? 0
                                                         : (uint8_t)x->class};
    if (side && x->device == WEIR_DEVICE_NONE) continue; /* only part of the sum of all */
    st = r->v->account(r->v->records.context, &account);
  }
  const uint8_t *home = wr_facts(r->t)->home;
  for (unsigned i = 0; i < 256 && !st; i++)
    if (home[i] != WEIR_DEVICE_NONE) st = r->v->home(r->v->records.context, (uint8_t)i, home[i]);
  return st;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static weir_status know_stacks(wr_replay *r)
{
  for (uint32_t i = 0; i < r->t->s.local.count; i++) {
    const wr_local_stack *x = wr_table_at(&r->t->s.local, i);
    if (wr_table_find(&r->t->s.stack, x->stack) &&
        !wr_replay_name_stack(r, x->thread, x->stack, x->id))
      return wr_replay_no_memory(r);
  }
  return WEIR_OK;
}

static void know_threads(wr_replay *r)
{
  for (uint32_t i = 0; i < r->t->s.thread.count; i++) {
    const wr_tally_thread *x = wr_table_at(&r->t->s.thread, i);
    if (r->home && r->home < x->serial) continue;
    r->home = x->serial;
    r->home_tid = x->tid;
  }
}

static uint64_t latest_start(const wr_tally *t)
{
  uint64_t latest = wr_facts(t)->latest_range;
  for (uint32_t i = 0; i < t->s.total.count; i++) {
    const wr_tally_total *x = wr_table_at(&t->s.total, i);
    if (x->last > latest) latest = x->last;
  }
  return latest;
}

static weir_status deliver_state(wr_replay *r)
{
  know_threads(r);
  if (!r->t->s.thread.count) return WEIR_OK; /* nothing came before */
  weir_status st = know_stacks(r);
  if (!st) st = wr_replay_list_calls(r);
  if (!st) st = deliver_places(r);
  if (!st) st = deliver_python(r);
  if (!st) st = deliver_names(r);
  if (!st) st = deliver_threads(r);
  if (!st) st = wr_replay_graphs(r);
  if (!st) st = wr_replay_calls(r);
  if (!st) st = deliver_totals(r);
  return st ? st : deliver_accounts(r);
}

static char *tally_path(const char *spool)
{
  size_t bytes = strlen(spool), suffix = sizeof WEIR_SPOOL_SUFFIX - 1;
  if (bytes > suffix && !strcmp(spool + bytes - suffix, WEIR_SPOOL_SUFFIX)) bytes -= suffix;
  return wr_format("%.*s" WR_TALLY_SUFFIX, (int)bytes, spool);
}

bool wr_replay_there(const char *spool)
{
  struct stat info;
  char *path = tally_path(spool);
  const bool there = path && (!lstat(path, &info) || errno != ENOENT);
  free(path);
  return there;
}

weir_status wr_replay_state(spool_reader *reader, const char *spool,
                            const wr_replay_visitor *visitor, uint64_t *latest)
{
  wr_replay r = {.v = visitor};
  weir_status st = wr_tally_open(&r.t, reader, spool, NULL);
  *latest = 0;
  if (st) return st;
  *latest = latest_start(r.t);
  st = deliver_state(&r);
  wr_tally_close(r.t);
  hash_map_free(&r.ids);
  hash_map_free(&r.any);
  hash_map_free(&r.spare);
  free(r.early);
  free(r.text);
  return st;
}
