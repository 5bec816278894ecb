/* tally.c: life of a tally: opened, fed from a spool, committed. Room for a turn of the reader is
 * made between turns, so that what is done for every record (take.c) allocates nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/clock.h"
#include "core/trace/api.h"
#include "reports/base/util.h"
#include "reports/tally/private.h"

enum { MOST_TOTALS = 65536, MOST_NAMES = 65536, MOST_MODULES = 1024, APIS = UINT16_MAX + 1 };

static const uint64_t tremor_part = 100; /* of a second: as import/lifetime.c has it, 10 ms */

static const struct {
  const char *name;
  uint8_t role;
} graph_calls[] = {
    {"cuGraphLaunch", WR_GRAPH_LAUNCHED},       {"cuGraphLaunch_ptsz", WR_GRAPH_LAUNCHED},
    {"cudaGraphLaunch", WR_GRAPH_LAUNCHED},     {"cudaGraphLaunch_ptsz", WR_GRAPH_LAUNCHED},
    {"cuGraphExecDestroy", WR_GRAPH_DESTROYED}, {"cudaGraphExecDestroy", WR_GRAPH_DESTROYED}};

static bool find_roles(wr_tally *t)
{
  uint8_t *roles = calloc(APIS, 1);
  for (size_t i = 0; roles && i < sizeof graph_calls / sizeof *graph_calls; i++) {
    const uint32_t api = api_find_name(graph_calls[i].name);
    if (api && api < APIS) roles[api] = graph_calls[i].role;
  }
  t->roles = roles;
  return roles != NULL;
}

static void set_bounds(wr_tally *t, const wr_tally_options *options)
{
  if (options) t->options = *options;
  if (!t->options.most_totals) t->options.most_totals = MOST_TOTALS;
  if (!t->options.most_names) t->options.most_names = MOST_NAMES;
  if (!t->options.most_modules) t->options.most_modules = MOST_MODULES;
  if (!t->options.keep_from) t->options.keep_from = UINT64_MAX - 1;
}

static void set_sizes(wr_tally *t)
{
#define SIZE(name, type) t->s.name.size = sizeof(type);
  WR_TALLY_TABLES(SIZE) WR_TALLY_ARRAYS(SIZE)
#undef SIZE
}

/* "DIR/PID-N.spool" has "DIR/PID-N.tally". */
static bool name_files(wr_tally *t, const char *spool)
{
  size_t bytes = strlen(spool), suffix = sizeof WEIR_SPOOL_SUFFIX - 1;
  if (bytes > suffix && !strcmp(spool + bytes - suffix, WEIR_SPOOL_SUFFIX)) bytes -= suffix;
  t->path = wr_format("%.*s" WR_TALLY_SUFFIX, (int)bytes, spool);
  t->fresh = wr_format("%.*s" WR_TALLY_SUFFIX ".new", (int)bytes, spool);
  return t->path && t->fresh;
}

static void know_spool(wr_tally *t)
{
  const spool_header *h = spool_reader_header(t->reader);
  t->owner.pid = h->pid;
  t->owner.start_time = h->start_time;
  memcpy(t->owner.boot_id, h->boot_id, sizeof t->owner.boot_id);
  t->tremor = (h->clock_hint_hz ? h->clock_hint_hz : UINT64_C(1000000000)) / tremor_part;
}

static weir_status begin_anew(wr_tally *t)
{
  bool added;
#define EMPTY(name, type) wr_table_free(&t->s.name);
  WR_TALLY_TABLES(EMPTY)
  WR_TALLY_ARRAYS(EMPTY)
#undef EMPTY
  if (!wr_table_room(&t->s.facts, 1)) return wr_tally_no_memory(t);
  wr_tally_facts *facts = wr_table_place(&t->s.facts, 1, &added);
  memset(facts->home, WEIR_DEVICE_NONE, sizeof facts->home);
  return WEIR_OK;
}

static weir_status resume_reader(wr_tally *t)
{
  weir_status st = WEIR_OK;
  for (uint32_t i = 0; i < t->s.thread.count && !st; i++) {
    const wr_tally_thread *x = wr_table_at(&t->s.thread, i);
    if (x->position) st = spool_reader_resume(t->reader, x->serial, x->position);
  }
  return st;
}

weir_status wr_tally_open(wr_tally **out, spool_reader *reader, const char *path,
                          const wr_tally_options *options)
{
  wr_tally *t = calloc(1, sizeof *t);
  if (!t) return weir_fail(WEIR_ENOMEM, "no memory for a tally of %s", path);
  t->reader = reader;
  set_bounds(t, options);
  set_sizes(t);
  if (!name_files(t, path) || !find_roles(t)) {
    wr_tally_close(t);
    return weir_fail(WEIR_ENOMEM, "no memory for a tally of %s", path);
  }
  clock_init();
  know_spool(t);
  weir_status st = t->options.anew ? WEIR_ENOENT : wr_tally_load(t);
  if (st == WEIR_ENOENT) st = begin_anew(t);
  if (!st) st = resume_reader(t);
  if (st) {
    wr_tally_close(t);
    return st;
  }
  spool_reader_hold(reader);
  *out = t;
  return WEIR_OK;
}

void wr_tally_close(wr_tally *t)
{
  if (!t) return;
#define FREE(name, type) wr_table_free(&t->s.name);
  WR_TALLY_TABLES(FREE)
  WR_TALLY_ARRAYS(FREE)
#undef FREE
  free((void *)(uintptr_t)t->roles);
  free(t->heap);
  free(t->path);
  free(t->fresh);
  free(t);
}

const wr_tally_state *wr_tally_look(const wr_tally *t)
{
  return &t->s;
}

void wr_tally_keep_from(wr_tally *t, uint64_t ticks)
{
  t->options.keep_from = ticks;
}

/* ---- a drain --------------------------------------------------------------------------------- */

/* For as many records as the reader delivers at most before it asks again; all of a turn are of
 * one thread. */
static bool make_room(wr_tally *t)
{
  return wr_table_room(&t->s.thread, 1) && wr_array_room(&t->s.pending, WEIR_SPOOL_TURN) &&
         wr_table_room(&t->s.total, WEIR_SPOOL_TURN) &&
         wr_table_room(&t->s.range, WEIR_SPOOL_TURN) &&
         wr_table_room(&t->s.context, WEIR_SPOOL_TURN) &&
         wr_table_room(&t->s.stream, WEIR_SPOOL_TURN) &&
         wr_table_room(&t->s.gauge, WEIR_SPOOL_TURN);
}

static bool is_enough(const wr_tally *t, uint64_t ticks)
{
  return t->window && ticks >= t->window->from && spool_reader_kept(t->reader) <= t->window->bytes;
}

static weir_status between_turns(void *context, uint64_t ticks)
{
  wr_tally *t = context;
  weir_status st = wr_tally_settle(t, ticks, false);
  if (st) return st;
  t->enough = is_enough(t, ticks);
  if (t->enough) return WEIR_ELIMIT;
  return make_room(t) ? WEIR_OK : wr_tally_no_memory(t);
}

/* The time before which all that was done is committed, where the spool's ticks are this machine's.
 */
static uint64_t time_of_drain(const wr_tally *t)
{
  const spool_header *h = spool_reader_header(t->reader);
  return (int)h->clock_kind == clock_source_in_use ? clock_ticks() : 0;
}

weir_status wr_tally_drain(wr_tally *t, bool final)
{
  const spool_visitor take = {t, wr_tally_event, wr_tally_extended};
  const uint64_t now = final ? UINT64_MAX : time_of_drain(t);
  t->final = final;
  weir_status st = spool_drain_by_time(t->reader, &take, between_turns, final);
  return st ? st : wr_tally_settle(t, now, final);
}

weir_status wr_tally_take_oldest(wr_tally *t, const wr_tally_window *window, bool *taken)
{
  const spool_visitor take = {t, wr_tally_event, wr_tally_extended};
  const uint64_t events = wr_facts(t)->events;
  t->final = t->enough = false;
  t->window = window;
  weir_status st = spool_drain_by_time(t->reader, &take, between_turns, false);
  t->window = NULL;
  if (taken) *taken = wr_facts(t)->events > events;
  return t->enough ? WEIR_OK : st;
}

/* ---- a commit -------------------------------------------------------------------------------- */

static weir_status keep_position(void *context, uint32_t serial, uint64_t position)
{
  wr_tally *t = context;
  if (!wr_table_room(&t->s.thread, 1)) return wr_tally_no_memory(t);
  wr_tally_thread *thread = wr_tally_thread_of(t, serial, 0);
  if (thread) thread->position = position;
  return WEIR_OK;
}

static void renew_stacks(wr_tally *t)
{
  if (t->stacks_went) (void)spool_reader_renew_stacks(t->reader); /* else at the next event lost */
  t->stacks_went = false;
}

weir_status wr_tally_commit(wr_tally *t)
{
  if (t->options.in_memory) {
    weir_status swept = wr_tally_sweep(t);
    if (!swept) renew_stacks(t);
    return swept;
  }
  weir_status st = spool_reader_positions(t->reader, keep_position, t);
  if (!st) st = wr_tally_sweep(t);
  if (!st) st = wr_tally_save(t);
  if (st) return st;
  spool_hand_back(t->reader);
  renew_stacks(t);
  if (t->options.step) t->options.step(t->options.step_context, WR_TALLY_DONE);
  return WEIR_OK;
}
