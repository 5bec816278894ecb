/* kernel_names.c: see kernel_names.h. A launch has its kernel, a launch of a graph the kernels of what it runs, a call that
 * makes or updates a graph those of its nodes, and a wait the kernel of the last work that it waited for. A finding has the
 * names that most of some operations have; where fewer than half of these have a kernel it has none. */
#include "reports/findings/kernel_names.h"
#include <stdlib.h>
#include <string.h>
#include "core/trace/event.h"
#include "reports/base/util.h"
#include "reports/findings/search.h"

enum {
  NAMES = 32,      /* that a finding's operations are asked for, at most */
  OPERATIONS = 64, /* of a finding that are asked */
  ARGUMENTS = 40   /* bytes of a template's arguments that a name keeps */
};

void wr_kernel_samples_add(wr_kernel_samples *s, uint64_t order, int64_t event)
{
  size_t at = s->count < WR_KERNEL_SAMPLES ? s->count++ : WR_KERNEL_SAMPLES - 1;
  for (; at && s->of[at - 1].order > order; at--)
    s->of[at] = s->of[at - 1];
  s->of[at].order = order, s->of[at].event = event;
}

weir_status wr_kernel_names_open(wr_kernel_names *k, const wr_db *db)
{
  wr_demangler_open(&k->demangler);
  weir_status s = wr_db_prepare(db, "SELECT template, a FROM event_row WHERE id = ?", &k->launch);
  if (!s)
    s = wr_db_prepare(
        db, "SELECT name FROM main.name WHERE process = ? AND kind = 'kernel' AND handle = ?",
        &k->name);
  if (s || !wr_db_has_table(db, "graph_change") || !wr_db_has_table(db, "graph_work")) return s;
  return wr_db_prepare(
      db,
      "SELECT w.kernel FROM graph_launch l CROSS JOIN graph_work w ON w.content = l.content"
      " WHERE l.event = ?1 AND w.type = 0 UNION SELECT n.a FROM main.graph_change c CROSS JOIN"
      " main.graph_node n ON n.change = c.id WHERE c.event = ?1 AND n.type = 0 LIMIT 32",
      &k->graph);
}

void wr_kernel_names_close(wr_kernel_names *k)
{
  sqlite3_finalize(k->launch);
  sqlite3_finalize(k->graph);
  sqlite3_finalize(k->name);
  wr_demangler_close(&k->demangler);
  *k = (wr_kernel_names){0};
}

/* After the '>' that closes the '<' at `at`. */
static const char *end_of_arguments(const char *at)
{
  for (size_t depth = 0; *at; at++) {
    if (*at == '<') depth++;
    if (*at == '>' && at[-1] != '-' && !--depth) return at + 1;
  }
  return at;
}

char *wr_kernel_short_name(wr_demangler *d, const char *name)
{
  size_t length = 0;
  char *whole = wr_demangle(d, name);
  if (!whole) return wr_text(name, strlen(name), true);
  const char *own = wr_function_name(whole, &length), *end = own + length;
  if (*end == '<') end = end_of_arguments(end);
  const bool kept = (size_t)(end - own) - length <= ARGUMENTS;
  char *text =
      kept ? wr_format("%.*s", (int)(end - own), own) : wr_format("%.*s<…>", (int)length, own);
  char *clean = text ? wr_text(text, strlen(text), true) : NULL;
  free(text);
  free(whole);
  return clean;
}

/* ---- the kernels of an operation ------------------------------------------------------------- */

typedef struct kernel_tally {
  char *name; /* owned */
  size_t times;
} kernel_tally;

typedef struct kernel_tallies {
  wr_search *x;
  kernel_tally of[NAMES];
  size_t count, asked, known; /* names; operations asked, and those that have a kernel */
} kernel_tallies;

/* The name of a process's kernel is one of the operation at hand; *any: it is known. */
static weir_status count_kernel(kernel_tallies *t, int64_t process, int64_t handle, bool *any)
{
  wr_kernel_names *k = &t->x->kernels;
  sqlite3_bind_int64(k->name, 1, process);
  sqlite3_bind_int64(k->name, 2, handle);
  char *text = sqlite3_step(k->name) == SQLITE_ROW ? wr_db_text(k->name, 0) : NULL,
       *name = text ? wr_kernel_short_name(&k->demangler, text) : NULL;
  bool out = text && !name;
  free(text);
  (void)sqlite3_reset(k->name);
  if (!name) return out ? wr_search_no_memory(t->x) : WEIR_OK;
  size_t at = 0;
  while (at < t->count && strcmp(t->of[at].name, name) != 0)
    at++;
  if (at == t->count && t->count < NAMES) t->of[t->count++].name = name, name = NULL;
  if (at < t->count) t->of[at].times++, *any = true;
  free(name);
  return WEIR_OK;
}

static weir_status count_graph(kernel_tallies *t, int64_t process, int64_t event, bool *any)
{
  sqlite3_stmt *q = t->x->kernels.graph;
  weir_status s = WEIR_OK;
  if (!q) return s;
  sqlite3_bind_int64(q, 1, event);
  while (!s && sqlite3_step(q) == SQLITE_ROW)
    s = count_kernel(t, process, sqlite3_column_int64(q, 0), any);
  (void)sqlite3_reset(q);
  return s;
}

/* The last work that a wait waited for; 0: none is known. */
static int64_t waited_for(wr_search *x, int64_t event)
{
  wr_case c = {.facts = &x->facts, .finders = &x->finders, .db = x->db};
  const wr_wait_row *w = wr_case_wait(&c, event);
  return w && w->known && w->pending && w->other != event ? w->other : 0;
}

static weir_status count_operation(kernel_tallies *t, int64_t event)
{
  wr_search *x = t->x;
  bool any = false;
  weir_status s = WEIR_OK;
  t->asked++;
  for (bool waits = true; !s && event;) {
    sqlite3_stmt *q = x->kernels.launch;
    sqlite3_bind_int64(q, 1, event);
    const wr_common *c = sqlite3_step(q) == SQLITE_ROW
                             ? wr_facts_common(&x->facts, sqlite3_column_int64(q, 0))
                             : NULL;
    const int64_t handle = c ? sqlite3_column_int64(q, 1) : 0, own = event;
    (void)sqlite3_reset(q);
    event = c && waits && c->kind == WEIR_EV_SYNC ? waited_for(x, own) : 0;
    waits = false;
    if (c && c->kind == WEIR_EV_LAUNCH) s = count_kernel(t, c->process, handle, &any);
    if (c && c->kind == WEIR_EV_CALL) s = count_graph(t, c->process, own, &any);
  }
  t->known += any;
  return s;
}

/* ---- of a finding ---------------------------------------------------------------------------- */

static int by_times(const void *left, const void *right)
{
  const kernel_tally *a = left, *b = right;
  if (a->times != b->times) return a->times < b->times ? 1 : -1;
  return strcmp(a->name, b->name);
}

weir_status wr_search_name_kernels(wr_search *x, wr_finding *f, const wr_search_group *g,
                                   size_t count)
{
  kernel_tallies t = {.x = x};
  weir_status s = WEIR_OK;
  for (size_t i = 0; !s && i < count && t.asked < OPERATIONS; i++) {
    const wr_kernel_samples *of = g[i].samples ? &x->samples[g[i].samples - 1] : NULL;
    for (size_t k = 0; of && !s && k < of->count; k++)
      s = count_operation(&t, of->of[k].event);
  }
  if (t.count) qsort(t.of, t.count, sizeof(*t.of), by_times);
  const bool named = !s && t.known * 2 >= t.asked;
  for (size_t i = 0; i < t.count; i++) {
    if (named && i < WR_FINDING_KERNELS)
      f->kernel[f->kernels++] = t.of[i].name;
    else
      free(t.of[i].name);
  }
  f->more_kernels = named ? t.count - f->kernels : 0;
  return s;
}
