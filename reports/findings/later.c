/* later.c: what a device takes for the copies of a finding after their calls have returned (copy_times.h), which the run gains
 * at most, besides the saving. Pieces of such time lie in waits: those of one wait together are no longer than it, in a finding
 * and in all findings, where each copy counts once. */
#include <stdlib.h>
#include "reports/base/util.h"
#include "reports/findings/search.h"

enum { OF_WAIT = INT32_MIN /* in `unit`: what the wait itself has the run lose */ };

/* ns of a copy to be had of a wait, beyond what its row saves. */
static weir_status add_piece(wr_search *x, size_t group, uint32_t wait, uint32_t unit, double ns)
{
  wr_later_pieces *p = &x->later;
  if (ns < 1 || !wait) return WEIR_OK;
  if (!wr_grow(&p->piece, &p->capacity, p->count + 1, sizeof(*p->piece)))
    return wr_search_no_memory(x);
  p->piece[p->count++] = (wr_later_piece){group, wait - 1, unit, (uint64_t)ns};
  return WEIR_OK;
}

/* A saving beyond the call's own time is the device's already. */
static weir_status add_copy(wr_search *x, size_t group, const wr_copy_time *c, uint64_t saving,
                            double part)
{
  const uint64_t call = (uint64_t)c->duration, counted = saving > call ? saving - call : 0;
  return add_piece(x, group, c->wait, (uint32_t)(c - x->copy_times.copy),
                   (double)c->device_ns * part - (double)counted);
}

weir_status wr_search_add_later(wr_search *x, const wr_rule *rule, const wr_search_row *r,
                                size_t group)
{
  const wr_copy_times *t = &x->copy_times;
  const wr_copy_time *c = wr_copy_times_find(t, r->event);
  if (r->removed || !c) return WEIR_OK;
  const uint64_t apart = r->related_saving < r->saving ? r->related_saving : r->saving;
  const double part = r->bytes < c->bytes ? (double)r->bytes / (double)c->bytes : 1;
  weir_status s = add_copy(x, group, c, r->saving - apart, part);
  const wr_copy_time *back =
      rule->later == WR_LATER_ROUND && c->up ? wr_copy_times_find(t, r->related) : NULL;
  if (s || !back || !back->wait) return s;
  s = add_copy(x, group, back, apart, 1);
  const uint32_t wait = back->wait;
  return s ? s
           : add_piece(x, group, wait, wait | (uint32_t)OF_WAIT, (double)t->wait[wait - 1].gain);
}

static int by_group(const void *left, const void *right)
{
  const wr_later_piece *a = left, *b = right;
  if (a->group != b->group) return a->group < b->group ? -1 : 1;
  if (a->wait != b->wait) return a->wait < b->wait ? -1 : 1;
  return (a->unit > b->unit) - (a->unit < b->unit);
}

/* ns of the pieces of one wait in [*at, end) of one group, at most what it takes; *at: after them. */
static uint64_t sum_of_wait(const wr_search *x, size_t *at, size_t end)
{
  const wr_later_piece *p = x->later.piece, first = p[*at];
  const uint64_t most = (uint64_t)x->copy_times.wait[first.wait].ns;
  uint64_t ns = 0;
  for (; *at < end && p[*at].wait == first.wait; ++*at)
    ns = wr_capped_sum(ns, p[*at].ns);
  return ns < most ? ns : most;
}

/* Pieces [at, end) are a group's. Waits that took far longer than the others, which the machine's other work may explain, are
 * taken for what the median of them is. */
static weir_status sum_group(wr_search *x, wr_search_group *g, size_t at, size_t end)
{
  wr_later_piece *p = x->later.piece;
  wr_spread spread = {0};
  bool good = true;
  for (size_t i = at; good && i < end;)
    good = wr_spread_add(&spread, sum_of_wait(x, &i, end), 0);
  const wr_slow slow = good ? wr_spread_slow(&spread, x->f->starved_ns) : (wr_slow){0};
  wr_spread_free(&spread);
  for (size_t i = at, first = at; good && i < end; first = i) {
    uint64_t ns = sum_of_wait(x, &i, end);
    if (slow.count && ns >= slow.least) {
      for (; first < i; first++)
        p[first].ns = (uint64_t)((double)p[first].ns / (double)ns * (double)slow.median);
      ns = slow.median;
    }
    g->later = wr_capped_sum(g->later, ns);
  }
  return good ? WEIR_OK : wr_search_no_memory(x);
}

/* The pieces of the rule that has run, whose groups ascend as theirs do. */
weir_status wr_search_sum_later(wr_search *x)
{
  wr_later_pieces *p = &x->later;
  weir_status s = WEIR_OK;
  size_t i = p->summed;
  if (p->count > i) qsort(p->piece + i, p->count - i, sizeof(*p->piece), by_group);
  for (size_t g = 0; !s && g < x->group_count; g++) {
    const size_t at = i;
    while (i < p->count && p->piece[i].group == x->groups[g].claims)
      i++;
    if (at < i) s = sum_group(x, &x->groups[g], at, i);
  }
  p->summed = p->count;
  return s;
}

/* ---- of all findings ------------------------------------------------------------------------- */

static int by_finding(const void *left, const void *right, void *context)
{
  const wr_later_piece *a = left, *b = right;
  const wr_search *x = ((void **)context)[0];
  const size_t *rank = ((void **)context)[1];
  const size_t p = rank[x->claims.group[a->group].finding],
               q = rank[x->claims.group[b->group].finding];
  if (p != q) return p < q ? -1 : 1;
  if (a->wait != b->wait) return a->wait < b->wait ? -1 : 1;
  if (a->unit != b->unit) return a->unit < b->unit ? -1 : 1;
  return (a->ns < b->ns) - (a->ns > b->ns);
}

/* Of what is not known to save anything nothing is added up. */
weir_status wr_search_add_later_up(wr_search *x, size_t *rank)
{
  wr_later_pieces *p = &x->later;
  wr_findings *f = x->f;
  hash_map done = {0};
  void *context[] = {x, rank};
  int64_t *left = calloc(x->copy_times.waits + 1, sizeof(*left));
  weir_status s = left ? WEIR_OK : wr_search_no_memory(x);
  for (size_t i = 0; left && i < x->copy_times.waits; i++)
    left[i] = x->copy_times.wait[i].ns;
  if (!s && p->count) qsort_r(p->piece, p->count, sizeof(*p->piece), by_finding, context);
  for (size_t i = 0; left && !s && i < p->count; i++) {
    const wr_later_piece *b = &p->piece[i];
    const size_t made = x->claims.group[b->group].finding;
    wr_finding *of = made ? &f->finding[rank[made]] : NULL;
    bool added;
    if (!of || !of->saving_ns || !of->later_ns) continue;
    if (!hash_map_place(&done, b->unit, &added)) s = wr_search_no_memory(x);
    if (s || !added) continue;
    const int64_t ns = wr_least((int64_t)b->ns, left[b->wait]);
    left[b->wait] -= ns;
    of->added_later_ns += (uint64_t)ns;
    f->saving_ns = wr_capped_sum(f->saving_ns, (uint64_t)ns);
    if (of->certainty != WR_POSSIBLE)
      f->sure_saving_ns = wr_capped_sum(f->sure_saving_ns, (uint64_t)ns);
  }
  free(left);
  hash_map_free(&done);
  return s;
}
