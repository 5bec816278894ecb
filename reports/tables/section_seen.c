/* section_seen.c: what was not seen, last in a summary: a report that hides its gaps would be
 * believed too much. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/spool.h"
#include "reports/base/units.h"
#include "reports/tables/sections.h"

enum { UNSEEN_ROWS = 10 /* programs */, EMBEDDING_ROWS = 4, NOTE_ROWS = 5 };

static void add_graph_work(const wr_sections *s, wr_named_table *t)
{
  const wr_totals *x = &s->m->total;
  if (x->graph_launches > x->graph_launches_unknown)
    wr_table_before(
        t, false, "%s ran %s (%s), %s, %s: they are in the numbers above",
        OF(x->graph_launches - x->graph_launches_unknown, "graph launch", "graph launches"),
        OF(x->graph_copies, "copy", "copies"),
        x->graph_copy_bytes ? BYTES(x->graph_copy_bytes) : "0", COUNTED(x->graph_memsets, "memset"),
        COUNTED(x->graph_kernels, "kernel"));
  if (x->graph_launches_unknown)
    wr_table_before(t, true, "%s: what ran in them, copies included, is in no number above",
                    OF(x->graph_launches_unknown, "graph launch", "graph launches"));
  if (x->graph_allocs)
    wr_table_before(t, false,
                    "graph launches allocated %s (%s): they are in peaks and in what is live",
                    COUNTED(x->graph_allocs, "block"), BYTES(x->graph_alloc_bytes));
  if (x->graph_conditional_nodes)
    wr_table_before(t, true,
                    "%s in bodies of conditional nodes ran or not: they are in no number above",
                    COUNTED(x->graph_conditional_nodes, "graph node"));
}

/* By default most copies are not looked at. Those in graphs are in the totals, and have no hash; nor
 * have the few of no bytes. */
static void add_hashes(const wr_sections *s, wr_named_table *t)
{
  const wr_totals *x = &s->m->total;
  uint64_t seen = x->copies_hashed + x->copies_not_hashed, all = x->h2d_calls + x->d2h_calls;
  uint64_t rest = all / 2 > seen && !x->graph_copies ? all - seen : 0;
  char others[128] = "";
  if (rest)
    (void)snprintf(others, sizeof(others), ", %s not looked at (weir run --hash looks at all)",
                   OF(rest, "other", "others"));
  if (seen)
    wr_table_before(
        t, false,
        "%s hashed, %llu not%s: that took %s of host time, which the run's length has, and no time"
        " of calls, ranges or threads",
        OF(x->copies_hashed, "copy was", "copies were"), (unsigned long long)x->copies_not_hashed,
        others, DURATION(x->hashing_ns));
  if (x->copies_unreadable)
    wr_table_before(t, true, "%s not hashed because the memory could not be read",
                    OF(x->copies_unreadable, "copy was", "copies were"));
}

/* Where none is known the program did not ask, or the driver is older. */
static void add_unread(const wr_sections *s, wr_named_table *t)
{
  const wr_totals *x = &s->m->total;
  uint64_t own = x->launches > x->graph_kernels ? x->launches - x->graph_kernels : 0;
  if (x->launches_unread && x->launches_unread < own)
    wr_table_before(t, true,
                    "%s of which it is not known what memory they are handed: it may be any",
                    OF(x->launches_unread, "kernel launch", "kernel launches"));
}

static void add_captured(const wr_sections *s, wr_named_table *t)
{
  const wr_totals *x = &s->m->total;
  if (x->captured_events)
    wr_table_before(
        t, false,
        "captured into graphs: %s, of them %s (%s), %s, %s; they run at each launch of their graph,"
        " not while they are captured",
        COUNTED(x->captured_events, "operation"), OF(x->captured_copies, "copy", "copies"),
        x->captured_copy_bytes ? BYTES(x->captured_copy_bytes) : "0",
        COUNTED(x->captured_memsets, "memset"), COUNTED(x->captured_launches, "kernel"));
  add_graph_work(s, t);
  add_unread(s, t);
  add_hashes(s, t);
}

static void add_left_out(const wr_coverage *c, wr_named_table *t)
{
  if (!c->unrecorded_spans) return;
  wr_table_before(t, true,
                  "not all calls were recorded: for %s they were, for %s only what memory is live;"
                  " %s then counted and left out: numbers other than of memory are of the first"
                  " time alone, and what needs all calls is not judged",
                  c->whole_ns ? DURATION(c->whole_ns) : "no time", DURATION(c->partial_ns),
                  c->unrecorded == 1 ? "1 call was" : OF(c->unrecorded, "call was", "calls were"));
}

static void add_losses(const wr_sections *s, wr_named_table *t)
{
  const wr_totals *x = &s->m->total;
  const wr_coverage *c = &s->m->coverage;
  uint64_t why = 0;
  add_left_out(c, t);
  for (size_t i = 0; i < s->m->process_count && !why; i++)
    why = s->m->processes[i].drop_errno;
  if (x->dropped)
    wr_table_before(t, true, "%s %s dropped (%s): every number above is a lower bound",
                    COUNTED(x->dropped, "event"), x->dropped == 1 ? "was" : "were",
                    spool_drop_reason((int)why));
  if (c->damaged_chunks)
    wr_table_before(t, true, "%s of a spool %s damaged and skipped",
                    COUNTED(c->damaged_chunks, "part"), c->damaged_chunks == 1 ? "was" : "were");
  if (c->bytes_cut)
    wr_table_before(t, true, "%s of a spool are missing at its end", BYTES(c->bytes_cut));
  if (c->torn)
    wr_table_before(t, false, "%s %s begun and not committed when the process ended",
                    COUNTED(c->torn, "record"), c->torn == 1 ? "was" : "were");
  if (c->dropped_extended)
    wr_table_before(t, false, "%s could not be recorded",
                    OF(c->dropped_extended, "stack, module or name", "stacks, modules or names"));
  if (x->failed_calls)
    wr_table_before(t, true, "%s returned an error and %s nowhere else",
                    COUNTED(x->failed_calls, "call"), x->failed_calls == 1 ? "counts" : "count");
  if (c->nested)
    wr_table_before(t, true,
                    "%s %s made within another, by a signal handler or a callback, and %s nowhere",
                    COUNTED(c->nested, "CUDA call"), c->nested == 1 ? "was" : "were",
                    c->nested == 1 ? "counts" : "count");
  if (c->deep)
    wr_table_before(t, true,
                    "%s %s pushed deeper than 256 and not recorded: calls in them count for the"
                    " ranges around them",
                    COUNTED(c->deep, "NVTX range"), c->deep == 1 ? "was" : "were");
  add_captured(s, t);
  if (x->unmatched_frees)
    wr_table_before(t, false, "%s of blocks whose allocation was not seen",
                    COUNTED(x->unmatched_frees, "free"));
}

static void add_unseen_programs(const wr_sections *s, wr_named_table *t)
{
  const wr_coverage *c = &s->m->coverage;
  if (!c->unseen_count) return;
  wr_table_before(t, true, "%s ran without Weir: what they did is not in this trace",
                  COUNTED(c->unseen_count, "program"));
  for (size_t i = 0; i < c->unseen_count && i < UNSEEN_ROWS; i++) {
    const wr_unseen *u = &c->unseen[i];
    wr_table_before(t, false, "  %s (%s), %s", *u->path ? u->path : "others", u->why,
                    COUNTED(u->count, "time"));
  }
  if (c->unseen_count > UNSEEN_ROWS)
    wr_table_before(t, false, "  … and %zu more", c->unseen_count - UNSEEN_ROWS);
}

/* What was looked up: wrapped, let through for a reason, or out of reach. */
static void add_looked_up(const wr_sections *s, wr_named_table *t)
{
  const wr_coverage *c = &s->m->coverage;
  const wr_passed *unseen = &c->passed[WEIR_API_UNREACHED];
  size_t asks = c->passed[WEIR_API_ASKS].count, sets = c->passed[WEIR_API_SETS].count;
  size_t below = c->passed[WEIR_API_BELOW].count;
  if (!c->called && !c->looked_up && !unseen->count && !asks && !sets && !below) {
    wr_table_before(t, false, "no CUDA function was looked up");
    return;
  }
  wr_table_before(t, false, "%s called; of those looked up, %s %s wrapped and %s %s through unseen",
                  COUNTED(c->called, "function"), COUNT(c->looked_up),
                  c->looked_up == 1 ? "is" : "are", COUNT(unseen->count),
                  unseen->count == 1 ? "passes" : "pass");
  if (asks + sets)
    wr_table_before(
        t, false,
        "%s more are not recorded: %s ask and %s set how things are done; they move nothing",
        COUNT(asks + sets), COUNT(asks), COUNT(sets));
  if (below)
    wr_table_before(t, false, "%s of the runtime's, seen as the driver's that they call",
                    COUNTED(below, "function"));
}

/* The names of those out of reach. */
static void add_passed(const wr_sections *s)
{
  static const wr_column columns[] = {{"function", "function", WR_COLUMN_TEXT, 0}};
  const wr_passed *unseen = &s->m->coverage.passed[WEIR_API_UNREACHED];
  if (!unseen->count) return;
  wr_named_table *t = WR_TABLE(s->t, "passed_through", "passed through", columns);
  wr_table_look(t, WR_LIST);
  for (size_t i = 0; i < unseen->count; i++) {
    wr_table_row(t);
    wr_table_put_text(t, unseen->names[i]);
  }
}

static void add_modules(const wr_sections *s, wr_named_table *t)
{
  const wr_model *m = s->m;
  const wr_coverage *c = &m->coverage;
  if (c->unknown_lookups)
    wr_table_before(
        t, true, "%s of functions, or of versions of them, that Weir does not know, the first: %s",
        COUNTED(c->unknown_lookups, "look-up"), c->unknown_name ? c->unknown_name : "?");
  if (c->embedding_count)
    wr_table_before(t, false,
                    "CUDA's runtime is built into %s, whose calls are seen at the driver layer:",
                    COUNTED(c->embedding_count, "module"));
  for (size_t i = 0; i < c->embedding_count && i < EMBEDDING_ROWS; i++)
    wr_table_before(t, false, "  %s", c->embedding[i]);
  if (c->embedding_count > EMBEDDING_ROWS)
    wr_table_before(t, false, "  … and %zu more", c->embedding_count - EMBEDDING_ROWS);
  if (c->stackless && c->stackless < m->total.events)
    wr_table_before(t, false, "%s of %s %s no stack", COUNT(c->stackless),
                    COUNTED(m->total.events, "event"), c->stackless == 1 ? "has" : "have");
  else if (c->stackless)
    wr_table_before(t, false, "no stacks were taken");
  for (size_t i = 0; i < c->lacking_count && i < UNSEEN_ROWS; i++)
    wr_table_before(t, true,
                    "%s was %s the run: no names of its places (--symbols DIR: from a copy)",
                    c->lacking[i].path,
                    strcmp(c->lacking[i].why, "removed") ? c->lacking[i].why : "removed since");
}

static void add_seen_notes(const wr_sections *s, wr_named_table *t)
{
  const wr_model *m = s->m;
  for (size_t i = 0; i < m->note_count && i < NOTE_ROWS; i++)
    wr_table_before(t, false, "note: %s", m->notes[i]);
  if (m->note_count > NOTE_ROWS)
    wr_table_before(t, false, "… and %s more", COUNTED(m->note_count - NOTE_ROWS, "note"));
}

void wr_section_seen(const wr_sections *s)
{
  add_looked_up(s, wr_tables_add_sentences(s->t, "coverage", "Seen and not seen"));
  add_passed(s);
  wr_named_table *t = wr_tables_add_sentences(s->t, "not_seen", "");
  add_modules(s, t);
  add_unseen_programs(s, t);
  add_losses(s, t);
  wr_add_unjudged(s, t);
  add_seen_notes(s, t);
}
