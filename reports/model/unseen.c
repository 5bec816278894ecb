/* unseen.c: the programs of a trace that Weir was not in, as the processes that started them told,
 * and the modules that are not there any more as they ran. */
#include <stdlib.h>
#include <string.h>
#include "reports/model/model.h"
#include "reports/symbols/symbolize.h"
#include "reports/base/util.h"

typedef struct unseen_load {
  wr_coverage *coverage;
  const wr_db *db;
  size_t capacity;
} unseen_load;

static weir_status take_unseen(void *context, sqlite3_stmt *q)
{
  unseen_load *l = context;
  wr_coverage *c = l->coverage;
  if (!wr_grow(&c->unseen, &l->capacity, c->unseen_count + 1, sizeof(wr_unseen)))
    return wr_db_out_of_memory(l->db);
  wr_unseen *u = &c->unseen[c->unseen_count++];
  *u = (wr_unseen){wr_db_text(q, 0), wr_db_text(q, 1), (uint64_t)sqlite3_column_int64(q, 2)};
  if (u->path && u->why) return WEIR_OK;
  return wr_db_out_of_memory(l->db);
}

weir_status wr_unseen_load(wr_coverage *c, const wr_db *db)
{
  unseen_load l = {.coverage = c, .db = db};
  if (!wr_db_has_column(db, "unseen", "why")) return WEIR_OK; /* of an older Weir */
  return wr_db_each(db,
                    "SELECT path, why, sum(count) AS n FROM unseen GROUP BY path, why HAVING n > 0"
                    " ORDER BY path = '', n DESC, path, why",
                    take_unseen, &l);
}

weir_status wr_lacking_load(wr_coverage *c, const wr_symbols *symbols)
{
  const char *path = NULL, *why = NULL;
  size_t capacity = 0;
  for (size_t at = 0; wr_symbols_lacking(symbols, &at, &path, &why);) {
    if (!wr_grow(&c->lacking, &capacity, c->lacking_count + 1, sizeof(wr_lacking)))
      return weir_fail(WEIR_ENOMEM, "reporting: out of host memory");
    wr_lacking *l = &c->lacking[c->lacking_count++];
    *l = (wr_lacking){wr_text(path, strlen(path), true), wr_text(why, strlen(why), true)};
    if (!l->path || !l->why) return weir_fail(WEIR_ENOMEM, "reporting: out of host memory");
  }
  return WEIR_OK;
}

void wr_unseen_free(wr_coverage *c)
{
  for (size_t i = 0; i < c->lacking_count; i++) {
    free(c->lacking[i].path);
    free(c->lacking[i].why);
  }
  free(c->lacking);
  for (size_t i = 0; i < c->unseen_count; i++) {
    free(c->unseen[i].path);
    free(c->unseen[i].why);
  }
  free(c->unseen);
}
