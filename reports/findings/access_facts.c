/* access_facts.c: see access_facts.h. Traces are untrusted: a set counts where it has as many words as it
 * says, and they are sorted here. */
#include "reports/findings/access_facts.h"
#include <stdlib.h>
#include "core/trace/event.h"
#include "reports/base/util.h"
#include "reports/model/graphs.h"

enum { MOST_WORDS = 512 /* in a set, by its writer's limit */ };

static weir_status access_memory(const wr_access *x)
{
  return wr_db_out_of_memory(x->events->db);
}

static uint64_t key_of_set(int64_t process, int64_t number)
{
  return hash_mix(hash_mix(23, (uint64_t)process), (uint64_t)number);
}

/* The place of a set, from 1; 0: it is not there whole. */
static uint32_t place_of_set(const wr_access *x, int64_t process, int64_t number)
{
  const uint64_t *at = number ? hash_map_get(&x->by_number, key_of_set(process, number)) : NULL;
  const wr_access_set *s = at ? &x->set[*at - 1] : NULL;
  bool whole = s && s->process == process && s->number == number && s->found == s->count;
  return whole ? (uint32_t)*at : 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* process, number, words, parameters; where a number stands twice the first counts. */
static weir_status take_access_set(void *context, sqlite3_stmt *q)
{
  wr_access *x = context;
  bool added;
  wr_access_set s = {.process = sqlite3_column_int64(q, 0),
                     .number = sqlite3_column_int64(q, 1),
                     .first = x->words,
                     .count = (size_t)sqlite3_column_int64(q, 2),
                     .parameters = -1};
  if (sqlite3_column_type(q, 3) == SQLITE_INTEGER) s.parameters = sqlite3_column_int64(q, 3);
  if (s.count > UINT32_MAX || x->sets == UINT32_MAX) return WEIR_OK;
  if (!wr_grow(&x->set, &x->set_capacity, x->sets + 1, sizeof(s))) return access_memory(x);
  uint64_t *at = hash_map_place(&x->by_number, key_of_set(s.process, s.number), &added);
  if (!at) return access_memory(x);
  if (!added) return WEIR_OK;
  x->set[x->sets++] = s;
  x->words += s.count;
  *at = x->sets;
  return WEIR_OK;
}

/* A number of a parameter, or of a word in one; -1: not known. */
static int32_t place_in(sqlite3_stmt *q, int column)
{
  bool known = sqlite3_column_type(q, column) == SQLITE_INTEGER;
  int64_t n = known ? sqlite3_column_int64(q, column) : -1;
  return n >= 0 && n <= UINT16_MAX ? (int32_t)n : -1;
}

/* process, number, address, parameter, part */
static weir_status take_access_word(void *context, sqlite3_stmt *q)
{
  wr_access *x = context;
  uint64_t key = key_of_set(sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1));
  const uint64_t *at = hash_map_get(&x->by_number, key);
  if (!at) return WEIR_OK;
  wr_access_set *s = &x->set[*at - 1];
  if (s->found++ >= s->count) return WEIR_OK;
  x->word[s->first + s->found - 1] = (uint64_t)sqlite3_column_int64(q, 2);
  x->where[s->first + s->found - 1] = (wr_access_place){place_in(q, 3), place_in(q, 4)};
  return WEIR_OK;
}

/* template, number */
static weir_status take_template_access(void *context, sqlite3_stmt *q)
{
  wr_access *x = context;
  size_t at = wr_events_template(x->events, sqlite3_column_int64(q, 0));
  if (at == SIZE_MAX) return WEIR_OK;
  const wr_template *t = &x->events->templates[at];
  if (t->kind == WEIR_EV_LAUNCH)
    x->of[at] = place_of_set(x, t->process, sqlite3_column_int64(q, 1));
  return WEIR_OK;
}

/* Whether it is known what memory a node's work touches: of a kernel by its set, which is looked for when it is asked. Nodes
 * that allocate, those whose bodies were not seen and calls of the host may touch any. */
static bool is_known_work(const wr_access_run *r, int64_t type)
{
  return type == WR_NODE_KERNEL ? r->set != 0
                                : (type == WR_NODE_COPY || type == WR_NODE_MEMSET) && r->target;
}

/* content, type, access, kernel, target, source, bytes; in the order of contents. */
static weir_status take_content_work(void *context, sqlite3_stmt *q)
{
  wr_access *x = context;
  int64_t content = sqlite3_column_int64(q, 0), type = sqlite3_column_int64(q, 1);
  bool none = type == WR_NODE_EMPTY || type == WR_NODE_EVENT_WAIT || type == WR_NODE_EVENT_RECORD;
  uint64_t *at = hash_map_place(&x->contents, (uint64_t)content, NULL);
  if (!at || !wr_grow(&x->run, &x->run_capacity, x->runs + 1, sizeof(*x->run)))
    return access_memory(x);
  if (*at >> 32 == 0) *at = x->runs;
  if (none || x->runs >= UINT32_MAX) return WEIR_OK;
  wr_access_run r = {.set = sqlite3_column_int64(q, 2),
                     .kernel = (uint64_t)sqlite3_column_int64(q, 3),
                     .target = (uint64_t)sqlite3_column_int64(q, 4),
                     .source = (uint64_t)sqlite3_column_int64(q, 5),
                     .bytes = (uint64_t)sqlite3_column_int64(q, 6)};
  r.is_kernel = type == WR_NODE_KERNEL, r.known = is_known_work(&r, type);
  x->run[x->runs++] = r;
  *at += UINT64_C(1) << 32;
  return WEIR_OK;
}

/* event, content */
static weir_status take_graph_launch(void *context, sqlite3_stmt *q)
{
  wr_access *x = context;
  weir_status st = hash_map_put(&x->launched, (uint64_t)sqlite3_column_int64(q, 0),
                                (uint64_t)sqlite3_column_int64(q, 1));
  return st ? access_memory(x) : WEIR_OK;
}

typedef struct placed_word {
  uint64_t word;
  wr_access_place where;
} placed_word;

static int by_word(const void *left, const void *right)
{
  const placed_word *a = left, *b = right;
  if (a->word != b->word) return a->word < b->word ? -1 : 1;
  return (a->where.parameter > b->where.parameter) - (a->where.parameter < b->where.parameter);
}

static void sort_words(wr_access *x, const wr_access_set *s)
{
  placed_word sorted[MOST_WORDS];
  for (size_t i = 0; i < s->count; i++)
    sorted[i] = (placed_word){x->word[s->first + i], x->where[s->first + i]};
  if (s->count) qsort(sorted, s->count, sizeof(*sorted), by_word);
  for (size_t i = 0; i < s->count; i++)
    x->word[s->first + i] = sorted[i].word, x->where[s->first + i] = sorted[i].where;
}

static weir_status read_words(wr_access *x)
{
  int64_t rows = 0;
  weir_status st = wr_db_number(x->events->db, "SELECT count(*) FROM access_word", &rows);
  if (!st && x->words > (uint64_t)rows) x->sets = 0; /* damaged */
  if (st || !x->sets) return st;
  x->word = calloc(x->words + 1, sizeof(*x->word));
  x->where = calloc(x->words + 1, sizeof(*x->where));
  x->of = calloc(x->events->count + 1, sizeof(*x->of));
  if (!x->word || !x->where || !x->of) return access_memory(x);
  st = wr_db_each(x->events->db,
                  wr_db_has_column(x->events->db, "access_word", "parameter")
                      ? "SELECT process, number, address, parameter, part FROM access_word"
                      : "SELECT process, number, address, NULL, NULL FROM access_word",
                  take_access_word, x);
  for (size_t i = 0; !st && i < x->sets; i++)
    if (x->set[i].count <= MOST_WORDS)
      sort_words(x, &x->set[i]);
    else
      x->set[i].found = 0; /* damaged */
  return st;
}

static weir_status read_graphs(wr_access *x)
{
  const wr_db *db = x->events->db;
  if (!wr_db_has_table(db, "graph_launch") || !wr_db_has_column(db, "graph_work", "access"))
    return WEIR_OK;
  bool addresses = wr_db_has_column(db, "graph_work", "target");
  weir_status st = wr_db_each(db,
                              addresses ? "SELECT content, type, ifnull(access, 0), kernel, target,"
                                          " source, bytes FROM main.graph_work ORDER BY content"
                                        : "SELECT content, type, ifnull(access, 0), kernel, 0, 0, 0"
                                          " FROM main.graph_work ORDER BY content",
                              take_content_work, x);
  if (st || !x->runs) return st;
  return wr_db_each(db, "SELECT event, content FROM main.graph_launch WHERE content IS NOT NULL",
                    take_graph_launch, x);
}

weir_status wr_access_open(wr_access *x, const wr_events *events)
{
  *x = (wr_access){.events = events};
  if (events->db->schema < 2 || !wr_db_has_table(events->db, "template_access")) return WEIR_OK;
  weir_status st = wr_db_each(events->db,
                              wr_db_has_column(events->db, "access_set", "parameters")
                                  ? "SELECT process, number, words, parameters FROM access_set"
                                  : "SELECT process, number, words, NULL FROM access_set",
                              take_access_set, x);
  if (!st) st = read_words(x);
  if (st || !x->sets) return st;
  st = wr_db_each(events->db, "SELECT template, number FROM template_access", take_template_access,
                  x);
  return st ? st : read_graphs(x);
}

void wr_access_close(wr_access *x)
{
  free(x->set);
  free(x->word);
  free(x->where);
  free(x->of);
  free(x->run);
  hash_map_free(&x->by_number);
  hash_map_free(&x->contents);
  hash_map_free(&x->launched);
  *x = (wr_access){0};
}

/* ---- asking ---------------------------------------------------------------------------------- */

bool wr_access_any(const wr_access *x)
{
  return x->sets > 0;
}

const wr_access_run *wr_access_runs(const wr_access *x, const wr_event *e, size_t *count)
{
  const uint64_t *content = x->launched.count ? hash_map_get(&x->launched, (uint64_t)e->id) : NULL;
  const uint64_t *at = content ? hash_map_get(&x->contents, *content) : NULL;
  *count = at ? (size_t)(*at >> 32) : 0;
  return at ? &x->run[*at & UINT32_MAX] : NULL;
}

bool wr_access_known(const wr_access *x, const wr_event *e)
{
  size_t count = 0, i = 0;
  if (!x->sets) return false;
  if (e->t->kind == WEIR_EV_LAUNCH) return x->of[e->at] != 0;
  const wr_access_run *r = wr_access_runs(x, e, &count);
  while (i < count && r[i].known && (!r[i].is_kernel || place_of_set(x, e->t->process, r[i].set)))
    i++;
  return count && i == count;
}

const wr_access_set *wr_access_set_of(const wr_access *x, const wr_event *e)
{
  uint32_t place = x->sets && e->t->kind == WEIR_EV_LAUNCH ? x->of[e->at] : 0;
  return place ? &x->set[place - 1] : NULL;
}

const uint64_t *wr_access_words(const wr_access *x, const wr_event *e, size_t *count)
{
  uint32_t place = x->sets && e->t->kind == WEIR_EV_LAUNCH ? x->of[e->at] : 0;
  *count = place ? x->set[place - 1].count : 0;
  return place ? x->word + x->set[place - 1].first : NULL;
}

static bool set_touches(const wr_access *x, uint32_t place, uint64_t address, uint64_t bytes)
{
  if (!place) return false;
  const wr_access_set *s = &x->set[place - 1];
  const uint64_t *word = x->word + s->first;
  size_t low = 0, high = s->count;
  while (low < high) { /* the first word from `address` on */
    size_t middle = low + (high - low) / 2;
    if (word[middle] < address)
      low = middle + 1;
    else
      high = middle;
  }
  return low < s->count && word[low] - address < bytes;
}

static bool are_near(uint64_t a, uint64_t bytes, uint64_t b, uint64_t others)
{
  return a < b ? b - a < bytes : a - b < others;
}

bool wr_access_run_touches(const wr_access *x, const wr_event *e, const wr_access_run *r,
                           uint64_t address, uint64_t bytes)
{
  if (r->is_kernel) return set_touches(x, place_of_set(x, e->t->process, r->set), address, bytes);
  return are_near(r->target, r->bytes, address, bytes) ||
         (r->source && are_near(r->source, r->bytes, address, bytes));
}

bool wr_access_touches(const wr_access *x, const wr_event *e, uint64_t address, uint64_t bytes)
{
  size_t count = 0;
  if (!x->sets) return false;
  if (e->t->kind == WEIR_EV_LAUNCH) return set_touches(x, x->of[e->at], address, bytes);
  const wr_access_run *r = wr_access_runs(x, e, &count);
  for (size_t i = 0; i < count; i++)
    if (wr_access_run_touches(x, e, &r[i], address, bytes)) return true;
  return false;
}
