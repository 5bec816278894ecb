/* rule_calls.c: see rule_calls.h. */
#include "reports/findings/rule_calls.h"
#include <stdio.h>
#include <stdlib.h>

enum { MOST_KINDS = 400 /* of call; SQLite joins 500 rows of values */ };

/* A column that conditions ask for. */
#define KIND_MAP(X) X(kind) X(api) X(status) X(copy) X(mem) X(src_mem) X(flags)

static uint64_t hash_kind(const wr_template *t)
{
  uint64_t hash = 31;
#define MIX(name) hash = hash_mix(hash, (uint64_t)t->name);
  KIND_MAP(MIX)
#undef MIX
  return hash;
}

static bool are_of_a_kind(const wr_template *a, const wr_template *b)
{
#define SAME(name) &&a->name == b->name
  return true KIND_MAP(SAME);
#undef SAME
}

/* Writes the kinds of call as a table `t`. Returns how many; more than MOST_KINDS: there are too
 * many, or memory is short, and not all are written. */
static size_t put_kinds(FILE *sql, const wr_events *x)
{
#define NAME(name)   #name ","
#define NUMBER(name) (void)fprintf(sql, "%lld,", (long long)t->name);
  hash_map at = {0};
  size_t kinds = 0;
  (void)fputs("WITH t(" KIND_MAP(NAME) "own) AS (VALUES", sql);
  for (size_t i = 0; i < x->count && kinds <= MOST_KINDS; i++) {
    bool added;
    const wr_template *t = &x->templates[i];
    uint64_t *place = hash_map_place(&at, hash_kind(t), &added);
    if (!place) kinds = MOST_KINDS + 1;
    if (!place || (!added && are_of_a_kind(t, &x->templates[*place]))) continue;
    *place = i;
    (void)fputs(kinds++ ? ",(" : "(", sql);
    KIND_MAP(NUMBER)
    (void)fputs("0)", sql);
  }
  hash_map_free(&at);
  return kinds;
#undef NAME
#undef NUMBER
}

static bool is_asked(const wr_rule *r)
{
  return r->calls && !r->file;
}

/* The statement (new); NULL: none can be asked, or out of memory. */
static char *make_statement(const wr_events *x, const wr_rules *rules)
{
  char *text = NULL;
  size_t bytes = 0;
  FILE *sql = open_memstream(&text, &bytes);
  if (!sql) return NULL;
  size_t kinds = put_kinds(sql, x);
  (void)fputs(") SELECT 0", sql);
  for (size_t i = 0; i < rules->count; i++)
    if (is_asked(&rules->rule[i])) (void)fprintf(sql, ", max((%s) <> 0)", rules->rule[i].calls);
  (void)fputs(" FROM t", sql);
  bool good = !fclose(sql) && kinds && kinds <= MOST_KINDS;
  if (good) return text;
  free(text);
  return NULL;
}

void wr_rule_calls_find(const wr_events *events, const wr_rules *rules, wr_rule_calls *calls)
{
  sqlite3_stmt *q = NULL;
  char *sql = make_statement(events, rules);
  bool good = sql && !sqlite3_prepare_v2(events->db->handle, sql, -1, &q, NULL) &&
              sqlite3_step(q) == SQLITE_ROW;
  for (size_t i = 0, column = 1; i < rules->count; i++) {
    calls[i] = WR_CALLS_UNKNOWN;
    if (!good || !is_asked(&rules->rule[i])) continue;
    calls[i] = sqlite3_column_int(q, (int)column++) ? WR_CALLS_SOME : WR_CALLS_NONE;
  }
  sqlite3_finalize(q);
  free(sql);
}
