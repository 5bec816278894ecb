/* range.c: ranges, marks and their names become rows, and a call finds its innermost range.
 *
 * Within a thread records are in order, so the ranges that a thread has pushed and not popped when
 * a call's record comes are the ranges of that call; the last one pushed, of whatever domain, is
 * its innermost. Where a pop was lost, a later pop of the same domain further out ends its range
 * too. A range is written once it has ended, or at a flush while it is open, and then only its end
 * is added: so one that never ends is there with no end, and who goes on with the trace finds it.
 *
 * Ranges that are started and ended are the process's, and nobody's innermost: any thread may end
 * them. Records of two threads come in any order, so an end may be here first. */
#include <string.h>
#include "reports/import/importer.h"
#include "reports/import/resume.h"

enum {
  MOST_OPEN = 4096,     /* of a thread; a program's own limit is lower: more is damage */
  MOST_SPANS = 1 << 20, /* started or ended, and not both */
  DOMAIN_UNKNOWN = -1
};

/* Columns of range_row. */
enum { ID, PROCESS, THREAD, KIND, NAME, PARENT, START, END, NUMBER, PAYLOAD_TYPE, PAYLOAD };

enum { PUSH_POP = 1, START_END = 2, MARK = 3 }; /* range_kind */

/* nvtxPayloadType_t */
enum { UNSIGNED_64 = 1, SIGNED_64, DOUBLE, UNSIGNED_32, SIGNED_32, FLOAT };

typedef struct wr_open_range {
  wr_row row;
  int64_t domain; /* a number of it in the process */
  bool written;   /* with no end */
} wr_open_range;

int64_t wr_range_innermost(const wr_thread *t)
{
  return t->open[t->open_count - 1].row.v[ID];
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void fill_payload(wr_row *row, unsigned type, uint64_t bits)
{
  uint32_t half = (uint32_t)bits;
  float single;
  double value;
  row->v[PAYLOAD] = (int64_t)bits;
  if (type == SIGNED_32) row->v[PAYLOAD] = (int32_t)half;
  if (type == UNSIGNED_32) row->v[PAYLOAD] = half;
  if (type == FLOAT) {
    memcpy(&single, &half, sizeof(single));
    value = (double)single;
    memcpy(&row->v[PAYLOAD], &value, sizeof(value));
  }
  if (type == DOUBLE || type == FLOAT) row->nulls |= WR_REAL(PAYLOAD);
  if (!type || type > FLOAT) row->nulls |= 1u << PAYLOAD | 1u << PAYLOAD_TYPE;
}

/* A range or mark that has begun, without an end. */
static void fill_range(wr_row *row, wr_spool *s, uint32_t serial, const wr_thread *t, int kind,
                       const trace_event *e)
{
  const uint64_t *name =
      e->a <= UINT32_MAX ? hash_map_get(&s->range_names, (uint64_t)serial << 32 | e->a) : NULL;
  int64_t parent = t->open_count ? wr_range_innermost(t) : 0;
  int64_t start = wr_time(s, e->start);
  *row = (wr_row){.nulls = 1u << END};
  row->v[ID] = ++s->im->ranges;
  row->v[PROCESS] = s->process;
  row->v[THREAD] = t->id;
  row->v[KIND] = kind;
  row->v[NAME] = name ? (int64_t)*name : 0;
  row->v[PARENT] = parent;
  row->v[START] = start;
  row->v[NUMBER] = (int64_t)e->bytes;
  row->v[PAYLOAD_TYPE] = e->mem;
  fill_payload(row, e->mem, e->b);
  if (!name) row->nulls |= 1u << NAME;
  if (!parent) row->nulls |= 1u << PARENT;
  wr_span(s->im, start, start);
}

static void set_end(wr_row *row, int64_t end)
{
  row->v[END] = end < row->v[START] ? row->v[START] : end;
  row->nulls &= ~(1u << END);
}

static weir_status write_end(trace_importer *im, int64_t id, int64_t end)
{
  wr_op op = {.sql = "UPDATE range_row SET \"end\" = max(start, ?1) WHERE id = ?2",
              WR_NUMBERS(end, id)};
  return wr_batch_op(&im->batch, op);
}

static weir_status end_open(wr_spool *s, wr_open_range *o, int64_t end)
{
  if (o->written) return write_end(s->im, o->row.v[ID], end);
  wr_row *row = wr_batch_row(&s->im->batch, WR_TABLE_RANGE);
  if (!row) return wr_out_of_memory(s->im);
  *row = o->row;
  set_end(row, end);
  return WEIR_OK;
}

/* ---- records --------------------------------------------------------------------------------- */

static weir_status take_push(wr_spool *s, uint32_t serial, wr_thread *t, const trace_event *e)
{
  if (t->open_count >= MOST_OPEN) return WEIR_OK;
  if (!wr_grow(&t->open, &t->open_capacity, t->open_count + 1, sizeof(wr_open_range)))
    return wr_out_of_memory(s->im);
  wr_open_range o = {.domain = (int64_t)(uint32_t)e->stream};
  fill_range(&o.row, s, serial, t, PUSH_POP, e);
  t->open[t->open_count++] = o;
  return WEIR_OK;
}

static bool ended_by(const wr_open_range *o, const trace_event *pop)
{
  uint64_t number = (uint64_t)o->row.v[NUMBER];
  return number == pop->bytes ||
         (number > pop->bytes && o->domain == (int64_t)(uint32_t)pop->stream);
}

static weir_status take_pop(wr_spool *s, wr_thread *t, const trace_event *e)
{
  size_t at = t->open_count, kept;
  int64_t end = wr_time(s, e->start);
  while (at && (uint64_t)t->open[at - 1].row.v[NUMBER] != e->bytes)
    at--;
  if (!at) return WEIR_OK; /* its push was lost */
  wr_span(s->im, end, end);
  for (size_t i = kept = at - 1; i < t->open_count; i++) {
    if (!ended_by(&t->open[i], e)) {
      t->open[kept++] = t->open[i];
      continue;
    }
    weir_status st = end_open(s, &t->open[i], end);
    if (st) return st;
  }
  t->open_count = kept;
  return WEIR_OK;
}

static weir_status take_mark(wr_spool *s, uint32_t serial, wr_thread *t, const trace_event *e)
{
  wr_row *row = wr_batch_row(&s->im->batch, WR_TABLE_RANGE);
  if (!row) return wr_out_of_memory(s->im);
  fill_range(row, s, serial, t, MARK, e);
  set_end(row, row->v[START]);
  return WEIR_OK;
}

/* In `spans`, the row of one that has started, doubled; the time of one that has ended, doubled,
 * and one more. Number 0 is of a tool that has no numbers. */
static weir_status take_start(wr_spool *s, uint32_t serial, wr_thread *t, const trace_event *e)
{
  wr_row *row = wr_batch_row(&s->im->batch, WR_TABLE_RANGE);
  if (!row) return wr_out_of_memory(s->im);
  fill_range(row, s, serial, t, START_END, e);
  if (!e->bytes) return WEIR_OK;
  const uint64_t *known = hash_map_get(&s->spans, e->bytes);
  if (known && *known & 1) {
    set_end(row, (int64_t)*known >> 1);
    hash_map_remove(&s->spans, e->bytes);
  } else if (s->spans.count < MOST_SPANS) {
    return hash_map_put(&s->spans, e->bytes, (uint64_t)row->v[ID] << 1);
  }
  return WEIR_OK;
}

static weir_status take_end(wr_spool *s, const trace_event *e)
{
  const uint64_t *known = hash_map_get(&s->spans, e->bytes);
  int64_t end = wr_time(s, e->start);
  if (!e->bytes) return WEIR_OK;
  wr_span(s->im, end, end);
  if (!known || *known & 1)
    return s->spans.count < MOST_SPANS ? hash_map_put(&s->spans, e->bytes, (uint64_t)end << 1 | 1)
                                       : WEIR_OK;
  int64_t id = (int64_t)(*known >> 1);
  hash_map_remove(&s->spans, e->bytes);
  return write_end(s->im, id, end);
}

weir_status wr_take_range(wr_spool *s, uint32_t serial, wr_thread *t, const trace_event *e)
{
  switch (e->range_fact) {
  case WEIR_RANGE_PUSH:
    return take_push(s, serial, t, e);
  case WEIR_RANGE_POP:
    return take_pop(s, t, e);
  case WEIR_RANGE_START:
    return take_start(s, serial, t, e);
  case WEIR_RANGE_END:
    return take_end(s, e);
  case WEIR_RANGE_MARK:
    return take_mark(s, serial, t, e);
  default:
    return WEIR_OK; /* a newer writer's */
  }
}

/* ---- names ----------------------------------------------------------------------------------- */

static uint64_t hash_text(uint64_t key, const char *text, size_t bytes)
{
  key = hash_mix(key, bytes);
  for (size_t i = 0; i < bytes; i++)
    key = hash_mix(key, (unsigned char)text[i]);
  return key;
}

/* The number of a domain by its name, made where it is new; "" is 0. */
static weir_status domain_of(trace_importer *im, const char *name, size_t bytes, int64_t *number)
{
  bool added = false;
  *number = 0;
  if (!bytes) return WEIR_OK;
  uint64_t *place = hash_map_place(&im->range_texts, hash_text(8, name, bytes), &added);
  if (!place) return wr_out_of_memory(im);
  if (added) *place = (uint64_t)++im->domains;
  *number = (int64_t)*place;
  return WEIR_OK;
}

static uint64_t name_key(const range_name *name, const char *texts)
{
  uint64_t key = hash_mix(9, (uint64_t)name->category << 32 | name->color);
  key = hash_text(key, texts, name->domain_bytes);
  return hash_text(key, texts + name->domain_bytes, name->text_bytes);
}

static weir_status add_name(trace_importer *im, const range_name *name, const char *texts,
                            int64_t *id)
{
  int64_t domain = 0;
  weir_status st = domain_of(im, texts, name->domain_bytes, &domain);
  if (st) return st;
  *id = im->range_names + 1;
  wr_op op = {.sql = "INSERT INTO range_name(id, domain_id, category, color, domain, text)"
                     " VALUES(?,?,NULLIF(?,0),NULLIF(?,0),?,?)",
              WR_NUMBERS(*id, domain, name->category, name->color),
              WR_TEXTS(wr_text(texts, name->domain_bytes, false),
                       wr_text(texts + name->domain_bytes, name->text_bytes, false))};
  st = wr_batch_whole(&im->batch, op);
  if (!st) im->range_names++;
  return st;
}

weir_status wr_take_range_name(wr_spool *s, uint32_t serial, const trace_event *head,
                               const void *payload, size_t bytes)
{
  trace_importer *im = s->im;
  range_name name;
  const char *texts = (const char *)payload + sizeof(name);
  uint64_t local = (uint64_t)serial << 32 | (uint32_t)head->a;
  int64_t id = 0;
  if (bytes < sizeof(name)) return WEIR_OK;
  memcpy(&name, payload, sizeof(name));
  if ((size_t)name.domain_bytes + name.text_bytes > bytes - sizeof(name)) return WEIR_OK;
  uint64_t key = name_key(&name, texts);
  const uint64_t *known = hash_map_get(&im->range_texts, key);
  weir_status st = WEIR_OK;
  if (known)
    id = (int64_t)*known;
  else
    st = add_name(im, &name, texts, &id);
  if (!st) st = hash_map_put(&im->range_texts, key, (uint64_t)id);
  if (!st) st = hash_map_put(&s->range_names, local, (uint64_t)id);
  return st ? st : wr_resume_keep(s, WR_RESUME_RANGE_NAME, local, (uint64_t)id);
}

weir_status wr_take_category(wr_spool *s, const trace_event *head, const void *payload,
                             size_t bytes)
{
  const char *domain = payload, *zero = memchr(domain, '\0', bytes);
  int64_t number = 0;
  if (!zero) return WEIR_OK;
  size_t domain_bytes = (size_t)(zero - domain);
  weir_status st = domain_of(s->im, domain, domain_bytes, &number);
  if (st) return st;
  wr_op op = {.sql = "INSERT OR REPLACE INTO range_category(process, domain_id, category, name)"
                     " VALUES(?,?,?,?)",
              WR_NUMBERS(s->process, number, (int64_t)head->a),
              WR_TEXTS(wr_text(zero + 1, bytes - domain_bytes - 1, false))};
  return wr_batch_whole(&s->im->batch, op);
}

/* ---- open ranges, kept and found again ------------------------------------------------------- */

static weir_status keep_open(wr_spool *s)
{
  for (size_t i = 0; i < s->thread_count; i++)
    for (size_t k = 0; k < s->thread[i].open_count; k++) {
      wr_open_range *o = &s->thread[i].open[k];
      wr_row *row = o->written ? NULL : wr_batch_row(&s->im->batch, WR_TABLE_RANGE);
      if (row)
        *row = o->row;
      else if (!o->written)
        return wr_out_of_memory(s->im);
      o->written = true;
    }
  return WEIR_OK;
}

weir_status wr_range_keep_open(trace_importer *im)
{
  weir_status st = WEIR_OK;
  for (size_t i = 0; i < im->spool_count && !st; i++)
    if (im->spools[i]) st = keep_open(im->spools[i]);
  return st;
}

static weir_status find_again(void *context, sqlite3_stmt *q)
{
  trace_importer *im = context;
  const char *domain = (const char *)sqlite3_column_text(q, 4);
  size_t domain_bytes = (size_t)sqlite3_column_bytes(q, 4);
  const char *text = (const char *)sqlite3_column_text(q, 5);
  size_t text_bytes = (size_t)sqlite3_column_bytes(q, 5);
  uint64_t about =
      (uint64_t)sqlite3_column_int64(q, 2) << 32 | (uint32_t)sqlite3_column_int64(q, 3);
  uint64_t key = hash_text(hash_text(hash_mix(9, about), domain ? domain : "", domain_bytes),
                           text ? text : "", text_bytes);
  int64_t number = sqlite3_column_int64(q, 1);
  weir_status st = hash_map_put(&im->range_texts, key, (uint64_t)sqlite3_column_int64(q, 0));
  if (!st && domain_bytes)
    st = hash_map_put(&im->range_texts, hash_text(8, domain, domain_bytes), (uint64_t)number);
  if (number > im->domains) im->domains = number;
  return st;
}

weir_status wr_range_resume_names(trace_importer *im)
{
  return wr_db_each(&im->db,
                    "SELECT id, domain_id, ifnull(category, 0), ifnull(color, 0), domain, text"
                    " FROM range_name",
                    find_again, im);
}

static weir_status resume_range(wr_spool *s, const wr_row *row)
{
  if (row->v[KIND] == START_END)
    return hash_map_put(&s->spans, (uint64_t)row->v[NUMBER], (uint64_t)row->v[ID] << 1);
  for (size_t i = 0; i < s->thread_count; i++) {
    wr_thread *t = &s->thread[i];
    if (t->id != row->v[THREAD] || t->open_count >= MOST_OPEN) continue;
    if (!wr_grow(&t->open, &t->open_capacity, t->open_count + 1, sizeof(wr_open_range)))
      return wr_out_of_memory(s->im);
    t->open[t->open_count++] = (wr_open_range){*row, DOMAIN_UNKNOWN, true};
  }
  return WEIR_OK;
}

weir_status wr_range_resume(wr_spool *s)
{
  sqlite3_stmt *q = NULL;
  weir_status st = wr_db_prepare(&s->im->db,
                                 "SELECT id, thread, kind, number, start FROM range_row"
                                 " WHERE process = ?1 AND \"end\" IS NULL ORDER BY id",
                                 &q);
  int code = SQLITE_DONE;
  if (st) return st;
  sqlite3_bind_int64(q, 1, s->process);
  while (!st && (code = sqlite3_step(q)) == SQLITE_ROW) {
    wr_row row = {0};
    row.v[ID] = sqlite3_column_int64(q, 0);
    row.v[THREAD] = sqlite3_column_int64(q, 1);
    row.v[KIND] = sqlite3_column_int64(q, 2);
    row.v[NUMBER] = sqlite3_column_int64(q, 3);
    row.v[START] = sqlite3_column_int64(q, 4);
    st = resume_range(s, &row);
  }
  if (!st && code != SQLITE_DONE) st = wr_db_fail(&s->im->db, "reading");
  sqlite3_finalize(q);
  return st;
}
