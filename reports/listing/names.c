/* names.c: see names.h. */
#include "reports/listing/names.h"
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"

enum { NAMES_MOST = 65536 /* numbers of functions have 16 bits, all others fewer */ };

static const char *const table_names[NAMES_TABLES] = {
    [NAMES_API] = "api",
    [NAMES_KIND] = "event_kind",
    [NAMES_MEMORY] = "mem_kind",
    [NAMES_DIRECTION] = "copy_direction",
    [NAMES_WAIT] = "wait_kind",
    [NAMES_FACT] = "cache_fact",
    [NAMES_REASON] = "cache_reason",
};

typedef struct loading {
  const wr_db *db;
  char ***text;
  size_t *count;
} loading;

static weir_status take_given_name(void *context, sqlite3_stmt *q)
{
  loading *l = context;
  int64_t number = sqlite3_column_int64(q, 0);
  const char *name = (const char *)sqlite3_column_text(q, 1);
  if (number < 0 || number >= NAMES_MOST || !name) return WEIR_OK;
  if ((size_t)number >= *l->count) {
    size_t count = *l->count ? *l->count : 16;
    while (count <= (size_t)number)
      count *= 2;
    char **grown = reallocarray(*l->text, count, sizeof *grown);
    if (!grown) return wr_db_out_of_memory(l->db);
    memset(grown + *l->count, 0, (count - *l->count) * sizeof *grown);
    *l->text = grown;
    *l->count = count;
  }
  char **at = &(*l->text)[number];
  free(*at);
  *at = strdup(name);
  return *at ? WEIR_OK : wr_db_out_of_memory(l->db);
}

weir_status listing_names_load(listing_names *n, const wr_db *db)
{
  weir_status s = WEIR_OK;
  for (int i = 0; i < NAMES_TABLES && !s; i++) {
    if (!wr_db_has_table(db, table_names[i])) continue;
    loading l = {db, &n->table[i].text, &n->table[i].count};
    char *sql = wr_format("SELECT id, name FROM main.\"%s\"", table_names[i]);
    s = sql ? wr_db_each(db, sql, take_given_name, &l) : wr_db_out_of_memory(db);
    free(sql);
  }
  return s;
}

void listing_names_free(listing_names *n)
{
  for (int i = 0; i < NAMES_TABLES; i++) {
    for (size_t at = 0; at < n->table[i].count; at++)
      free(n->table[i].text[at]);
    free(n->table[i].text);
  }
  *n = (listing_names){0};
}

const char *listing_name(const listing_names *n, listing_table table, int64_t number)
{
  if (number < 0 || (uint64_t)number >= n->table[table].count) return NULL;
  return n->table[table].text[number];
}
