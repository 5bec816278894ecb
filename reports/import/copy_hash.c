/* copy_hash.c: hashes of what copies carried become rows, and each row finds its copy.
 *
 * A record is before the copy's event, in the same thread; or, of a copy that went on after its
 * call, a record before the event has a number, and the hash comes later with that number, from
 * any thread. The second sort are rows of two tables, which meet when all are in, as device work
 * and its calls do (device_work.c). A hash whose event is missing is of none.
 *
 * What an upload has in common with the one before it is a row of another table (copy_part), which
 * those have that were cut (core/trace/event.h): its records are of the first sort. */
#include <string.h>
#include "reports/import/importer.h"

enum { PROCESS, EVENT, NUMBER, OUTCOME, LOW, HIGH, BYTES, UNIFORM, NS, TIME, RANGE };

static void fill_hash(wr_row *row, const wr_spool *s, const wr_hash *h, int64_t event)
{
  bool hashed = h->outcome == WEIR_HASH_HASHED;
  *row = (wr_row){.nulls = hashed ? 0 : 1u << LOW | 1u << HIGH | 1u << BYTES | 1u << UNIFORM};
  row->v[PROCESS] = s->process;
  row->v[EVENT] = event;
  row->v[NUMBER] = (int64_t)h->number;
  row->v[OUTCOME] = h->outcome;
  row->v[LOW] = (int64_t)h->info.hash[0];
  row->v[HIGH] = (int64_t)h->info.hash[1];
  row->v[BYTES] = (int64_t)h->info.bytes;
  row->v[UNIFORM] = h->uniform;
  row->v[NS] = (int64_t)wr_length(s, h->info.ticks);
  row->v[TIME] = h->time;
  row->v[RANGE] = h->range;
  if (!h->range) row->nulls |= 1u << RANGE;
  if (!event) row->nulls |= 1u << EVENT;
  if (!h->number) row->nulls |= 1u << NUMBER;
}

/* No row where it was not cut. */
static void add_part(wr_spool *s, const wr_hash *h, int64_t event)
{
  const copy_hash_info *i = &h->info;
  bool looked = h->outcome == WEIR_HASH_HASHED || h->outcome == WEIR_HASH_LEFT ||
                h->outcome == WEIR_HASH_ALIKE;
  if (!looked || !i->tail) return;
  wr_row *row = wr_batch_row(&s->im->batch, WR_TABLE_COPY_PART);
  if (!row) return;
  *row = (wr_row){.v = {event, h->outcome, (int64_t)i->before, (int64_t)i->same, i->changed,
                        (int64_t)i->tail, i->last}};
}

weir_status wr_take_copy_hash(wr_spool *s, wr_thread *t, const trace_event *head,
                              const void *payload, size_t bytes)
{
  wr_hash h = {
      .start = head->b, .number = head->a, .outcome = head->hash_outcome, .uniform = head->mem};
  if (bytes < COPY_HASH_LEAST) return WEIR_OK;
  memcpy(&h.info, payload, bytes < sizeof(h.info) ? COPY_HASH_LEAST : sizeof(h.info));
  h.uniform = h.uniform == 1;
  h.time = wr_time(s, head->start);
  h.range = t->open_count ? wr_range_innermost(t) : 0;
  if (h.outcome < WEIR_HASH_HASHED || h.outcome >= WEIR_HASH_OUTCOMES) return WEIR_OK;
  if (h.start) {
    t->hash = h;
    return WEIR_OK;
  }
  if (!h.number || h.outcome == WEIR_HASH_PENDING) return WEIR_OK;
  wr_row *row = wr_batch_row(&s->im->batch, WR_TABLE_COPY_HASH);
  if (!row) return wr_out_of_memory(s->im);
  fill_hash(row, s, &h, 0);
  return WEIR_OK;
}

/* Where there is no memory for a row, the copy has no hash. */
void wr_copy_hashed(wr_spool *s, wr_thread *t, const trace_event *e, int64_t id)
{
  const wr_hash h = t->hash;
  if (e->kind != WEIR_EV_COPY || e->start != h.start || e->a != h.info.dst || e->b != h.info.src)
    return;
  t->hash.start = 0;
  bool pending = h.outcome == WEIR_HASH_PENDING;
  wr_row *row = wr_batch_row(&s->im->batch, pending ? WR_TABLE_COPY_HASH_CALL : WR_TABLE_COPY_HASH);
  if (row && pending) *row = (wr_row){.v = {s->process, (int64_t)h.number, id}};
  if (row && !pending) fill_hash(row, s, &h, id);
  if (!pending) add_part(s, &h, id);
}

weir_status wr_finish_copy_hashes(const wr_db *db)
{
  int64_t any = 0;
  weir_status st = wr_db_number(db, "SELECT EXISTS(SELECT 1 FROM copy_hash_call)", &any);
  if (st || !any) return st;
  st = wr_db_exec(db, "CREATE INDEX copy_hash_by_number ON copy_hash_call(process, number)");
  if (!st)
    st = wr_db_exec(db, "UPDATE copy_hash SET event = (SELECT c.event FROM copy_hash_call c"
                        " WHERE c.process = copy_hash.process AND c.number = copy_hash.number)"
                        " WHERE number IS NOT NULL");
  return st ? st : wr_db_exec(db, "DROP INDEX copy_hash_by_number");
}
