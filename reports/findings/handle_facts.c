/* handle_facts.c: see handle_facts.h. Objects beyond MOST_HANDLES are forgotten all at once, and less is
 * found. */
#include "reports/findings/handle_facts.h"
#include <stdlib.h>
#include <string.h>
#include "core/trace/event.h"
#include "reports/base/util.h"

enum { MOST_HANDLES = 1 << 18 };

/* By the begin of a function's name, after `cu` or `cuda`. */
static const struct {
  const char *begin;
  wr_handle_kind kind;
  bool ends;
} calls[] = {{"EventCreate", WR_HANDLE_EVENT, false},  {"EventDestroy", WR_HANDLE_EVENT, true},
             {"MemPoolCreate", WR_HANDLE_POOL, false}, {"MemPoolDestroy", WR_HANDLE_POOL, true},
             {"GraphCreate", WR_HANDLE_GRAPH, false},  {"GraphDestroy", WR_HANDLE_GRAPH, true},
             {"CtxCreate", WR_HANDLE_CONTEXT, false},  {"CtxDestroy", WR_HANDLE_CONTEXT, true},
             {"ModuleLoad", WR_HANDLE_MODULE, false},  {"ModuleUnload", WR_HANDLE_MODULE, true},
             {"LibraryLoad", WR_HANDLE_MODULE, false}, {"LibraryUnload", WR_HANDLE_MODULE, true}};

/* What follows the begin of a name but a version: cuGraphDestroyNode ends no graph. */
static bool is_named(const char *function, const char *begin)
{
  size_t n = strlen(begin);
  if (strncmp(function, begin, n) != 0) return false;
  static const char *const forms[] = {"WithFlags", "Data", "FatBinary", "FromFile"};
  for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
    if (!strncmp(function + n, forms[i], strlen(forms[i]))) return true;
  return !function[n] || function[n] == '_';
}

void wr_handle_call_of(int kind, const char *function, wr_handle_kind *object, bool *ends)
{
  *object = kind == WEIR_EV_STREAM ? WR_HANDLE_STREAM : WR_HANDLE_NONE;
  *ends = false;
  if (!function || strncmp(function, "cu", 2) != 0) return;
  function += !strncmp(function, "cuda", 4) ? 4 : 2;
  for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
    if (is_named(function, calls[i].begin)) *object = calls[i].kind, *ends = calls[i].ends;
}

static weir_status out_of_memory(void)
{
  return weir_fail(WEIR_ENOMEM, "finding facts of handles: out of host memory");
}

static uint64_t handle_key(const wr_common *t, uint64_t handle)
{
  return hash_mix(hash_mix(hash_mix(19, (uint64_t)t->process), t->object), handle);
}

static void forget_live(wr_handle_facts *f)
{
  hash_map_free(&f->by_handle);
  f->live_count = 0;
  for (size_t i = 0; i < f->family_count; i++)
    f->family[i].live = 0;
}

/* SIZE_MAX: out of memory. */
static size_t family_of(wr_handle_facts *f, const wr_common *t)
{
  bool added;
  uint64_t *at = hash_map_place(&f->by_family, handle_key(t, (uint64_t)t->stack), &added);
  if (!at) return SIZE_MAX;
  if (!added) return (size_t)*at;
  if (!wr_grow(&f->family, &f->family_capacity, f->family_count + 1, sizeof(*f->family)))
    return SIZE_MAX;
  f->family[f->family_count] = (wr_handle_family){.kind = t->object};
  return (size_t)(*at = f->family_count++);
}

static weir_status make_handle(wr_handle_facts *f, const wr_common *t, const wr_fact_call *c,
                               uint64_t handle)
{
  bool added;
  if (f->live_count >= MOST_HANDLES) forget_live(f);
  size_t family = family_of(f, t);
  uint64_t *at = hash_map_place(&f->by_handle, handle_key(t, handle), &added);
  if (family == SIZE_MAX || !at) return out_of_memory();
  if (added) {
    if (!wr_grow(&f->live, &f->live_capacity, f->live_count + 1, sizeof(*f->live)))
      return out_of_memory();
    *at = f->live_count++;
    f->live[*at].event = 0;
  }
  if (f->live[*at].event && f->family[f->live[*at].family].live) /* its end was not seen */
    f->family[f->live[*at].family].live--;
  wr_handle_family *g = &f->family[family];
  bool again = ++g->live <= g->most;
  if (!again) g->most = g->live;
  f->live[*at] = (wr_live_handle){c->id, t->id, c->duration, family, again};
  return WEIR_OK;
}

static weir_status end_handle(wr_handle_facts *f, const wr_common *t, const wr_fact_call *c,
                              uint64_t handle)
{
  const uint64_t *at = hash_map_get(&f->by_handle, handle_key(t, handle));
  wr_live_handle *h = at ? &f->live[*at] : NULL;
  if (!h || !h->event) return WEIR_OK;
  wr_handle_family *g = &f->family[h->family];
  if (g->live) g->live--;
  g->again += h->again;
  const int64_t v[] = {h->event,    c->id, (int64_t)h->family, h->again,
                       h->template, h->ns, c->duration};
  h->event = 0;
  return wr_fact_add(f->tables, WR_FACT_HANDLE_PAIR, v);
}

weir_status wr_handle_take(wr_handle_facts *f, const wr_common *t, const wr_fact_call *c)
{
  bool stream = t->object == WR_HANDLE_STREAM, ends = stream ? !c->a : t->ends;
  uint64_t handle = stream ? t->stream : c->a;
  return ends ? end_handle(f, t, c, handle) : make_handle(f, t, c, handle);
}

/* Code and graphs are as many as a program has of them. */
static bool is_kept(wr_handle_kind object)
{
  return object == WR_HANDLE_STREAM || object == WR_HANDLE_EVENT || object == WR_HANDLE_POOL ||
         object == WR_HANDLE_CONTEXT;
}

/* Objects that are there at the end, where one place has made many of them. */
static weir_status end_live(wr_handle_facts *f)
{
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < f->live_count; i++) {
    const wr_live_handle *h = &f->live[i];
    const wr_handle_family *g = &f->family[h->family];
    if (!h->event || g->live < WR_LEAST_LEFT || !is_kept(g->kind)) continue;
    st = wr_fact_add(f->tables, WR_FACT_HANDLE_LEFT,
                     (const int64_t[]){h->event, h->template, (int64_t)h->family, h->ns});
  }
  return st;
}

weir_status wr_handle_facts_end(wr_handle_facts *f)
{
  weir_status st = end_live(f);
  for (size_t i = 0; !st && i < f->family_count; i++) {
    const int64_t v[] = {(int64_t)i, f->family[i].kind, (int64_t)f->family[i].again};
    st = wr_fact_add(f->tables, WR_FACT_HANDLE_FAMILY, v);
  }
  return st;
}

void wr_handle_facts_free(wr_handle_facts *f)
{
  hash_map_free(&f->by_handle);
  hash_map_free(&f->by_family);
  free(f->live);
  free(f->family);
  *f = (wr_handle_facts){.tables = f->tables};
}
