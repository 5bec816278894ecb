/* judge.c: see judge.h.
 *
 * A site that a trace does not have is one where nothing happened, and so is a device: their values
 * are 0, and a note says so. A range that it does not have is a mistake of who named it, or of the
 * program: what holds of it is not known. */
#include "reports/diff/judge.h"
#include <stdlib.h>
#include "reports/base/util.h"

typedef struct sum { /* of the subjects that a condition means */
  uint64_t value;
  size_t subjects;
} sum;

static bool is_meant(const wr_condition *c, const wr_subject *x)
{
  if (x->of != c->of) return false;
  if (c->of == WR_OF_RUN) return true;
  return c->of == WR_OF_DEVICE ? x->device == c->device : wr_subject_is(x, c->name);
}

static sum sum_of(const wr_condition *c, const wr_figures *f)
{
  sum all = {0};
  for (size_t i = 0; i < f->count; i++) {
    if (!is_meant(c, &f->subject[i])) continue;
    all.value += f->subject[i].value[c->metric];
    all.subjects++;
  }
  return all;
}

/* Why it is not known of this trace (new), NULL: it is. False: out of memory. */
static bool find_unknown(const wr_condition *c, const wr_figures *f, const sum *all, char **why)
{
  if (f->unknown[c->metric])
    *why = wr_format("not known of %s: %s", f->path, f->unknown[c->metric]);
  else if (c->of == WR_OF_RANGE && !all->subjects)
    *why = wr_format("not known: %s has no such range", f->path);
  else if (c->of == WR_OF_RANGE && all->subjects > 1)
    *why = wr_format("not known: several domains of %s have such a range: \"DOMAIN/%s\" names one",
                     f->path, c->name);
  else
    return true;
  return *why != NULL;
}

static bool compare(wr_comparison how, long double value, long double limit)
{
  switch (how) {
  case WR_LESS_EQUAL:
    return value <= limit;
  case WR_GREATER_EQUAL:
    return value >= limit;
  case WR_EQUAL:
    return value >= limit && value <= limit;
  case WR_NOT_EQUAL:
    return value > limit || value < limit;
  case WR_LESS:
    return value < limit;
  case WR_GREATER:
    return value > limit;
  }
  return false;
}

static weir_status judge_one(wr_verdict *v, const wr_figures *f, const wr_figures *other)
{
  const wr_condition *c = v->condition;
  sum all = sum_of(c, f), base = {0};
  bool relative = c->relative != WR_ABSOLUTE && other;
  if (relative) base = sum_of(c, other);
  bool good = find_unknown(c, f, &all, &v->note);
  if (good && !v->note && relative) good = find_unknown(c, other, &base, &v->note);
  v->known = good && !v->note;
  v->value = all.value, v->other = base.value;
  v->limit = (long double)base.value;
  v->limit += c->relative == WR_BY_SHARE ? v->limit * c->amount / 100 : c->amount;
  v->met = v->known && compare(c->comparison, (long double)all.value, v->limit);
  if (v->known && !all.subjects)
    good = (v->note = wr_format(c->of == WR_OF_DEVICE ? "the trace has no such device"
                                                      : "the trace has no such site")) != NULL;
  return good ? WEIR_OK : weir_fail(WEIR_ENOMEM, "judging %s: out of host memory", f->path);
}

weir_status wr_judge(wr_verdicts *out, const wr_conditions *conditions, const wr_figures *f,
                     const wr_figures *other)
{
  weir_status s = WEIR_OK;
  *out = (wr_verdicts){.verdict = calloc(conditions->count + 1, sizeof(*out->verdict))};
  if (!out->verdict) return weir_fail(WEIR_ENOMEM, "judging %s: out of host memory", f->path);
  for (; !s && out->count < conditions->count; out->count++) {
    wr_verdict *v = &out->verdict[out->count];
    v->condition = &conditions->condition[out->count];
    s = judge_one(v, f, other);
    out->met += v->met;
    out->unknown += !v->known;
  }
  if (s) wr_verdicts_free(out);
  return s;
}

void wr_verdicts_free(wr_verdicts *v)
{
  for (size_t i = 0; i < v->count; i++)
    free(v->verdict[i].note);
  free(v->verdict);
  *v = (wr_verdicts){0};
}
