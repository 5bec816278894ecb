/* judge.c: see judge.h. */
#include "reports/findings/judge.h"
#include <stdlib.h>
#include <string.h>

enum { STEP = 1 << 16 /* rows between two looks whether to go on */ };

const wr_common wr_no_common = {.device = -1, .own_device = -1};

/* The row that the reader has come to, with which a block begins. */
static const void *row_at(wr_case *c, weir_status s)
{
  const uint64_t before = c->rows;
  c->rows += c->reader.left + 1;
  if (!s && before / STEP != c->rows / STEP) s = c->go_on(c->context);
  if (!c->status) c->status = s;
  return c->status || c->reader.over ? NULL : c->reader.v;
}

const void *wr_case_first(wr_case *c, wr_fact fact)
{
  if (c->status) return NULL;
  return row_at(c, wr_pack_first(&c->reader, &c->facts->tables.pack[fact]));
}

const void *wr_case_next_block(wr_case *c)
{
  return c->status ? NULL : row_at(c, wr_pack_next(&c->reader));
}

size_t wr_case_count(const wr_case *c, wr_fact fact)
{
  return (size_t)c->facts->tables.pack[fact].rows;
}

int64_t wr_case_limit(wr_case *c, const char *name)
{
  for (int i = 0; i < c->rule->thresholds; i++)
    if (!strcmp(c->rule->threshold[i].name + 1, name)) return c->rule->threshold[i].value;
  c->lacks = name;
  if (!c->status) c->status = WEIR_EINVAL;
  return 0;
}

bool wr_case_of_weir(const wr_case *c, const wr_common *t)
{
  const hash_map *weirs = &c->finders->weirs;
  return weirs->count && hash_map_get(weirs, (uint64_t)t->api);
}

/* Opened already, or now. */
static bool has_waits(wr_case *c)
{
  wr_waits *w = &c->finders->waits;
  if (!c->status && !w->db) c->status = wr_waits_open(w, c->db);
  return !c->status;
}

const wr_wait_row *wr_case_wait(wr_case *c, int64_t event)
{
  const wr_wait_row *row = has_waits(c) ? wr_waits_find(&c->finders->waits, event) : NULL;
  if (!c->status) c->status = c->finders->waits.status;
  return row;
}

unsigned wr_case_wait_bits_of(wr_case *c, int64_t event)
{
  unsigned bits = has_waits(c) ? wr_waits_bits(&c->finders->waits, event) : 0;
  if (!c->status) c->status = c->finders->waits.status;
  return bits;
}

bool wr_case_wait_time_of(wr_case *c, int64_t event, wr_wait_time_row *row)
{
  bool there = has_waits(c) && wr_waits_time(&c->finders->waits, event, row);
  if (!c->status) c->status = c->finders->waits.status;
  return there;
}

const wr_wait_row *wr_case_next_wait(wr_case *c, unsigned mask, unsigned bits)
{
  const wr_wait_row *row = has_waits(c) ? wr_waits_next(&c->finders->waits, mask, bits) : NULL;
  weir_status s = c->finders->waits.status;
  if (!s && row && !(++c->rows % STEP)) s = c->go_on(c->context);
  if (!c->status) c->status = s;
  return c->status ? NULL : row;
}

const wr_call_row *wr_case_call(wr_case *c, int64_t event)
{
  static const char *const columns[] = {"id", "template", "start", "duration", "bytes"};
  wr_row_walk *r = &c->finders->calls;
  if (!c->status && !c->finders->calls_open) {
    c->finders->calls_open = true;
    c->status = wr_rows_open(r, c->db, "event_row", columns, 5);
  }
  bool there = !c->status && wr_rows_find(r, event);
  if (!c->status) c->status = r->status;
  if (!there || c->status) return NULL;
  c->call = (wr_call_row){wr_case_common(c, r->v[0]), r->v[1], r->v[2], r->v[3]};
  return &c->call;
}

/* NULL: the case has failed. */
static const wr_idle *idle_of(wr_case *c)
{
  if (!c->status) c->status = wr_idle_read(&c->finders->idle, c->db);
  return c->status ? NULL : &c->finders->idle;
}

static int device_of(const wr_common *t)
{
  return t->own_device < 0 ? t->device : t->own_device;
}

int64_t wr_case_idle(wr_case *c, const wr_call_row *call)
{
  const wr_idle *idle = idle_of(c);
  int64_t end = wr_sum(call->start, call->duration);
  return idle ? wr_idle_around(idle, device_of(call->common), end) : 0;
}

int64_t wr_case_idle_before(wr_case *c, const wr_call_row *call, int64_t most, int64_t unknown)
{
  const wr_idle *idle = idle_of(c);
  if (!idle || !idle->count) return unknown;
  return wr_least(wr_idle_before(idle, device_of(call->common), call->start), most);
}

void wr_finders_close(wr_finders *f)
{
  wr_idle_close(&f->idle);
  wr_waits_close(&f->waits);
  hash_map_free(&f->weirs);
  if (f->calls_open) (void)wr_rows_close(&f->calls);
}

void *wr_case_array(wr_case *c, size_t count, size_t size)
{
  void *array = c->status || !count ? NULL : calloc(count, size);
  if (!array && count && !c->status) c->status = wr_db_out_of_memory(c->db);
  return array;
}

void wr_case_find(wr_case *c, const wr_found *row)
{
  if (!c->status) c->status = c->take(c->context, row);
}

static weir_status take_function(void *context, sqlite3_stmt *q)
{
  wr_finders *f = context;
  return hash_map_put(&f->weirs, (uint64_t)sqlite3_column_int64(q, 0), 1);
}

weir_status wr_case_run(wr_case *c, wr_judge judge)
{
  wr_finders *f = c->finders;
  if (!f->weirs_known)
    c->status = wr_db_each(c->db, "SELECT id FROM main.api WHERE layer = 'weir'", take_function, f);
  f->weirs_known = !c->status;
  if (!c->status) judge(c);
  wr_pack_reader_free(&c->reader);
  return c->status;
}
