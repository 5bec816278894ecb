/* judge_leaks.c: the judge (judge.h) of memory that is never freed, by the rows of blocks in the
 * trace. Where many are, they are walked twice, so that little is kept of each. */
#include <stdlib.h>
#include "core/trace/event.h"
#include "reports/findings/judge.h"
#include "reports/import/lifetime.h"

typedef struct leaks {
  hash_map exited; /* processes that ended by themselves */
  hash_map at;     /* process and stack -> live blocks, times 256, and a bit for each eighth of the
                      run in which some were allocated */
  int64_t last;    /* event */
  int64_t first;   /* row of a block that is one; 0 not known */
  int64_t *event;  /* owned: allocations of the first KEPT blocks that are one */
  size_t found;    /* blocks */
} leaks;

enum { EIGHTHS = 8, ROWS_AT_ONCE = 256, KEPT = 1 << 14 };
enum { BLOCK_ID, BLOCK_EVENT, BLOCK_HOW, BLOCK_COLUMNS };

typedef void (*leak_fn)(wr_case *c, leaks *x, int64_t event, const wr_call_row *call);

static bool is_leak(const leaks *x, const wr_common *t)
{
  bool own = t->mem == WEIR_MEM_DEVICE || t->mem == WEIR_MEM_MANAGED || t->mem == WEIR_MEM_ARRAY;
  return own && t->kind != WEIR_EV_HOSTREG &&
         hash_map_get((hash_map *)&x->exited, (uint64_t)t->process);
}

static void see_row(wr_case *c, leaks *x, const int64_t row[BLOCK_COLUMNS], leak_fn take)
{
  if (row[BLOCK_HOW] != WR_BLOCK_LIVE) return;
  const wr_call_row *call = wr_case_call(c, row[BLOCK_EVENT]);
  if (!call || !is_leak(x, call->common)) return;
  if (!x->first) x->first = row[BLOCK_ID];
  take(c, x, row[BLOCK_EVENT], call);
}

/* From the first row that is one, once that is known. */
static void each_leak(wr_case *c, leaks *x, leak_fn take)
{
  static const char *const columns[BLOCK_COLUMNS] = {"id", "event", "how"};
  int64_t rows[ROWS_AT_ONCE * BLOCK_COLUMNS];
  wr_row_walk r;
  weir_status s = wr_rows_open(&r, c->db, "block_row", columns, BLOCK_COLUMNS);
  if (!s && x->first) wr_rows_seek(&r, x->first);
  for (size_t count; !s && !c->status && (count = wr_rows_some(&r, rows, ROWS_AT_ONCE)) > 0;)
    for (size_t i = 0; i < count; i++)
      see_row(c, x, rows + i * BLOCK_COLUMNS, take);
  weir_status closed = wr_rows_close(&r);
  if (!c->status) c->status = s ? s : closed;
}

static uint64_t *leaks_at(wr_case *c, leaks *x, const wr_common *t)
{
  uint64_t key = hash_mix(hash_mix(37, (uint64_t)t->process), (uint64_t)t->stack);
  uint64_t *at = hash_map_place(&x->at, key, NULL);
  if (!at) c->status = wr_db_out_of_memory(c->db);
  return at;
}

static void count_leak(wr_case *c, leaks *x, int64_t event, const wr_call_row *call)
{
  uint64_t *at = leaks_at(c, x, call->common);
  unsigned eighth = (unsigned)(wr_times(event, EIGHTHS) / (x->last + 1)) % EIGHTHS;
  if (x->found++ < KEPT) x->event[x->found - 1] = event;
  if (at) *at = ((*at >> EIGHTHS) + 1) << EIGHTHS | (*at & 255) | 1U << eighth;
}

static void find_leak(wr_case *c, leaks *x, int64_t event, const wr_call_row *call)
{
  const uint64_t *at = leaks_at(c, x, call->common);
  if (!at) return;
  bool many = (int64_t)(*at >> EIGHTHS) >= wr_case_limit(c, "min_blocks");
  bool grows = __builtin_popcountll(*at & 255) >= wr_case_limit(c, "min_epochs");
  wr_case_find(c, &(wr_found){.event = event,
                              .template = call->common->id,
                              .bytes = call->bytes,
                              .certainty = !many   ? WR_POSSIBLE
                                           : grows ? WR_CERTAIN
                                                   : WR_LIKELY});
}

static void find_leaks(wr_case *c, leaks *x)
{
  if (x->found > KEPT) {
    each_leak(c, x, find_leak);
    return;
  }
  for (size_t i = 0; i < x->found && !c->status; i++) {
    const wr_call_row *call = wr_case_call(c, x->event[i]);
    if (call) find_leak(c, x, x->event[i], call);
  }
}

static weir_status take_exited(void *context, sqlite3_stmt *q)
{
  leaks *x = context;
  return hash_map_put(&x->exited, (uint64_t)sqlite3_column_int64(q, 0), 1);
}

/* 24: What launches of graphs allocate has no event of its own: then the SELECT is asked. */
void wr_judge_leak(wr_case *c)
{
  leaks x = {.last = 0};
  int64_t of_graphs = 0;
  if (wr_schema_graph_memory(c->db))
    c->status = wr_db_number(c->db, "SELECT EXISTS(SELECT 1 FROM graph_work WHERE pointer <> 0)",
                             &of_graphs);
  c->declines = of_graphs != 0;
  if (c->declines || c->status) return;
  c->status = wr_db_number(c->db, "SELECT max(id) FROM event_row", &x.last);
  if (!c->status)
    c->status =
        wr_db_each(c->db, "SELECT id FROM main.process WHERE end_reason = 'exit'", take_exited, &x);
  x.event = x.exited.count ? wr_case_array(c, KEPT, sizeof(*x.event)) : NULL;
  if (x.event) each_leak(c, &x, count_leak);
  find_leaks(c, &x);
  free(x.event);
  hash_map_free(&x.exited);
  hash_map_free(&x.at);
}
