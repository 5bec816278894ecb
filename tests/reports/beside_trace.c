/* beside_trace.c: see beside_trace.h. The tally's rows go into tables of a database in memory, to
 * which the trace is attached; then both sides are one query each. */
#include "tests/reports/beside_trace.h"

#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct beside {
  sqlite3 *db;
  const wr_tally_state *s;
  uint64_t opened;
  int process;
  bool times, stacks;
} beside;

static void run_sql_of(const beside *b, const char *sql)
{
  char *why = NULL;
  int code = sqlite3_exec(b->db, sql, NULL, NULL, &why);
  ck_assert_msg(code == SQLITE_OK, "%s: %s", sql, why ? why : "?");
}

static sqlite3_stmt *prepare(const beside *b, const char *sql)
{
  sqlite3_stmt *q = NULL;
  int code = sqlite3_prepare_v2(b->db, sql, -1, &q, NULL);
  ck_assert_msg(code == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(b->db));
  return q;
}

/* Numbers, then an end; the first parameter that is a text is bound by the caller. */
static void add_row(sqlite3_stmt *q, const int64_t *numbers, int count)
{
  for (int i = 0; i < count; i++)
    sqlite3_bind_int64(q, i + 1, numbers[i]);
  ck_assert_int_eq(sqlite3_step(q), SQLITE_DONE);
  sqlite3_reset(q);
}

/* "12 34 56" (new): the addresses of a stack, "" where there is none. */
static char *text_of_stack(const beside *b, uint64_t key)
{
  char *text = NULL;
  size_t bytes = 0;
  FILE *f = open_memstream(&text, &bytes);
  const wr_tally_stack *x = key > WR_STACK_FORGOTTEN ? wr_table_find(&b->s->stack, key) : NULL;
  ck_assert(x || key <= WR_STACK_FORGOTTEN);
  if (b->stacks) ck_assert_uint_ne(key, WR_STACK_FORGOTTEN);
  for (uint32_t i = 0; x && i < x->depth; i++)
    (void)fprintf(f, i ? " %lld" : "%lld",
                  *(const long long *)wr_table_at(&b->s->frame, x->first + i));
  (void)fclose(f);
  return text;
}

static void bind_stack(const beside *b, sqlite3_stmt *q, int at, uint64_t key)
{
  char *text = b->stacks ? text_of_stack(b, key) : NULL;
  sqlite3_bind_text(q, at, text ? text : "", -1, SQLITE_TRANSIENT);
  free(text);
}

static void put_totals(const beside *b)
{
  run_sql_of(b, "CREATE TABLE total(api, kind, status, kept, device, mem, detail, count, bytes,"
                " ticks, frames)");
  sqlite3_stmt *q = prepare(b, "INSERT INTO total VALUES(?,?,?,?,?,?,?,?,?,?,?)");
  for (uint32_t i = 0; i < b->s->total.count; i++) {
    const wr_tally_total *x = wr_table_at(&b->s->total, i);
    const int64_t numbers[] = {x->api,
                               x->kind,
                               x->status,
                               x->flags,
                               x->device,
                               x->mem & 15,
                               x->detail,
                               (int64_t)x->count,
                               (int64_t)x->bytes,
                               b->times ? (int64_t)x->ticks : 0};
    bind_stack(b, q, 11, x->stack);
    add_row(q, numbers, 10);
  }
  sqlite3_finalize(q);
}

static void put_blocks(const beside *b)
{
  run_sql_of(b,
             "CREATE TABLE live(pointer, bytes, device, mem, context, registered, start, frames)");
  sqlite3_stmt *q = prepare(b, "INSERT INTO live VALUES(?,?,?,?,?,?,?,?)");
  for (uint32_t i = 0; i < b->s->block.count; i++) {
    const wr_tally_block *x = wr_table_at(&b->s->block, i);
    const int64_t numbers[] = {(int64_t)x->address,
                               (int64_t)x->bytes,
                               x->device,
                               x->mem,
                               x->context,
                               x->kind == WEIR_EV_HOSTREG,
                               b->times ? (int64_t)(x->time - b->opened) : 0};
    bind_stack(b, q, 8, x->stack);
    add_row(q, numbers, 7);
  }
  sqlite3_finalize(q);
}

/* Of a device as NULL all, of a class as NULL the device side. */
static void put_accounts(const beside *b)
{
  run_sql_of(b, "CREATE TABLE account(device, mem, registered, allocs, bytes, peak, peak_at, live,"
                " live_blocks)");
  sqlite3_stmt *q = prepare(b, "INSERT INTO account VALUES(?,?,?,?,?,?,?,?,?)");
  for (uint32_t i = 0; i < b->s->account.count; i++) {
    const wr_tally_account *x = wr_table_at(&b->s->account, i);
    const bool side = x->class == WR_ACCOUNT_DEVICE_SIDE;
    const int64_t numbers[] = {x->device,
                               x->class == WR_ACCOUNT_REGISTERED ? WEIR_MEM_PINNED : x->class,
                               x->class == WR_ACCOUNT_REGISTERED,
                               (int64_t)x->allocs,
                               (int64_t)x->bytes,
                               (int64_t)x->peak,
                               b->times ? (int64_t)(x->peak_time - b->opened) : 0,
                               (int64_t)x->live,
                               (int64_t)x->blocks};
    if (side && x->device == WEIR_DEVICE_NONE) continue; /* only part of the sum of all */
    add_row(q, numbers, 9);
  }
  sqlite3_finalize(q);
  run_sql_of(b, "UPDATE account SET device = NULL WHERE device > 254;"
                "UPDATE account SET mem = NULL WHERE mem = 12");
}

static void put_ranges(const beside *b)
{
  run_sql_of(b, "CREATE TABLE open(kind, number, text)");
  sqlite3_stmt *q = prepare(b, "INSERT INTO open VALUES(?,?,?)");
  for (uint32_t i = 0; i < b->s->range.count; i++) {
    const wr_open_range *x = wr_table_at(&b->s->range, i);
    const wr_tally_name *name = x->name ? wr_table_find(&b->s->name, x->name) : NULL;
    const int64_t numbers[] = {x->started ? 2 : 1, (int64_t)x->number};
    if (x->started == 2) continue; /* its end came, and its start did not */
    sqlite3_bind_null(q, 3);
    if (name)
      sqlite3_bind_text(q, 3, name->text.bytes ? b->s->text.entry + name->text.at : "",
                        (int)name->text.bytes, SQLITE_TRANSIENT);
    add_row(q, numbers, 2);
  }
  sqlite3_finalize(q);
}

/* ---- both sides ------------------------------------------------------------------------------ */

static char *first_row(const beside *b, const char *sql)
{
  sqlite3_stmt *q = prepare(b, sql);
  char *text = NULL;
  size_t bytes = 0;
  if (sqlite3_step(q) == SQLITE_ROW) {
    FILE *f = open_memstream(&text, &bytes);
    for (int i = 0; i < sqlite3_column_count(q); i++) {
      const char *value = (const char *)sqlite3_column_text(q, i);
      (void)fprintf(f, "%s%s %s", i ? ", " : "", sqlite3_column_name(q, i), value ? value : "NULL");
    }
    (void)fclose(f);
  }
  sqlite3_finalize(q);
  return text;
}

/* The rows of both queries, which are sets. */
static void expect_same(const beside *b, const char *what, const char *ours, const char *trace)
{
  char *sql = sqlite3_mprintf("%s EXCEPT %s", ours, trace);
  char *more = first_row(b, sql);
  sqlite3_free(sql);
  sql = sqlite3_mprintf("%s EXCEPT %s", trace, ours);
  char *less = first_row(b, sql);
  sqlite3_free(sql);
  ck_assert_msg(!more && !less, "%s: the tally alone has: %s; the trace alone has: %s", what,
                more ? more : "nothing", less ? less : "nothing");
}

#define STACKS                                                                                     \
  "CREATE TABLE stacks AS SELECT stack AS id, group_concat(address, ' ') AS frames FROM (SELECT "  \
  "sf.stack, f.address FROM x.stack_frame sf JOIN x.frame f ON f.id = sf.frame ORDER BY sf.stack," \
  " sf.depth) GROUP BY stack; CREATE UNIQUE INDEX by_stack ON stacks(id)"

static void expect_totals(const beside *b)
{
  char *trace = sqlite3_mprintf(
      "SELECT api, kind, status, flags & 82 AS kept, ifnull(device, 255) AS device, mem,"
      " copy AS detail, %s AS frames, count(*), sum(bytes), %s FROM x.event e WHERE process = %d"
      " GROUP BY 1, 2, 3, 4, 5, 6, 7, 8",
      b->stacks ? "ifnull((SELECT frames FROM stacks s WHERE s.id = e.stack), '')" : "''",
      b->times ? "sum(\"end\" - start)" : "0", b->process);
  expect_same(b, "totals",
              "SELECT api, kind, status, kept, device, mem, detail, frames, sum(count),"
              " sum(bytes), sum(ticks) FROM total GROUP BY 1, 2, 3, 4, 5, 6, 7, 8",
              trace);
  sqlite3_free(trace);
}

static void expect_live(const beside *b)
{
  char *trace = sqlite3_mprintf(
      "SELECT pointer, bytes, ifnull(device, 255) AS device, mem, context, registered, %s AS start,"
      " %s AS frames, count(*) FROM x.block b WHERE how = 0 AND process = %d AND mem NOT IN (9, 10)"
      " GROUP BY 1, 2, 3, 4, 5, 6, 7, 8",
      b->times ? "start" : "0",
      b->stacks ? "ifnull((SELECT frames FROM stacks s WHERE s.id = b.stack), '')" : "''",
      b->process);
  expect_same(b, "live set",
              "SELECT pointer, bytes, device, mem, context, registered, start, frames, count(*)"
              " FROM live GROUP BY 1, 2, 3, 4, 5, 6, 7, 8",
              trace);
  sqlite3_free(trace);
}

static void expect_accounts(const beside *b, bool peaks)
{
  char columns[160];
  (void)snprintf(columns, sizeof columns,
                 "device, mem, registered, allocs, bytes, live, live_blocks, %s, %s",
                 peaks ? "peak" : "0", peaks && b->times ? "peak_at" : "0");
  char *ours = sqlite3_mprintf("SELECT %s FROM account", columns);
  char *trace =
      sqlite3_mprintf("SELECT %s FROM x.memory WHERE mem IS NULL OR mem NOT IN (9, 10)", columns);
  expect_same(b, "accounts", ours, trace);
  sqlite3_free(ours);
  sqlite3_free(trace);
}

static void expect_ranges(const beside *b)
{
  char *trace = sqlite3_mprintf(
      "SELECT kind, number, (SELECT text FROM x.range_name n WHERE n.id = r.name) AS text, count(*)"
      " FROM x.range_row r WHERE \"end\" IS NULL AND number <> 0 AND process = %d GROUP BY 1, 2, 3",
      b->process);
  expect_same(b, "open ranges", "SELECT kind, number, text, count(*) FROM open GROUP BY 1, 2, 3",
              trace);
  sqlite3_free(trace);
}

void expect_as_trace(const wr_tally *t, const char *trace, int process, uint64_t opened, int what)
{
  beside b = {.s = wr_tally_look(t),
              .opened = opened,
              .process = process,
              .times = what & BESIDE_TIMES,
              .stacks = what & BESIDE_STACKS};
  ck_assert_int_eq(sqlite3_open(":memory:", &b.db), SQLITE_OK);
  char *attach = sqlite3_mprintf("ATTACH %Q AS x", trace);
  run_sql_of(&b, attach);
  sqlite3_free(attach);
  run_sql_of(&b, STACKS);
  put_totals(&b);
  put_blocks(&b);
  put_accounts(&b);
  put_ranges(&b);
  expect_totals(&b);
  expect_live(&b);
  if (what & BESIDE_PEAKS) expect_accounts(&b, true);
  expect_ranges(&b);
  sqlite3_close(b.db);
}
