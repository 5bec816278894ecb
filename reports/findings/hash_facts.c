/* hash_facts.c: see hash_facts.h. Addresses and payloads are numbered from 1 as hashed copies come, so that most calls of a run
 * have no row: they touch none of these addresses. Where more than WR_RECORDS_MOST of a kind would have to be remembered, the
 * rows are partial, and the rules are asked in SQL. */
#include "reports/findings/hash_facts.h"
#include <stdio.h>
#include "core/trace/event.h"

typedef struct hash_of {
  uint64_t key;      /* of the event */
  int64_t low, high; /* the hash */
  bool uniform;      /* all bytes are the same */
} hash_of;

typedef struct numbered {
  uint64_t key;
  int64_t number;
} numbered;

static uint64_t key_of_event(int64_t event)
{
  return hash_mix(37, (uint64_t)event);
}

/* ---- hashes ---------------------------------------------------------------------------------- */

static weir_status take_hash(void *context, sqlite3_stmt *q)
{
  bool added;
  wr_hash_facts *f = context;
  *f->partial |= f->hash.count >= WR_RECORDS_MOST - 1;
  for (int i = 0; i < 4; i++)
    *f->partial |= sqlite3_column_type(q, i) != SQLITE_INTEGER;
  if (*f->partial) return WEIR_OK;
  uint64_t key = key_of_event(sqlite3_column_int64(q, 0));
  hash_of *h = wr_records_place(&f->hash, key, sizeof(*h), &added);
  if (!h) return weir_fail(WEIR_ENOMEM, "finding facts of hashes: out of host memory");
  *f->partial |= !added;
  h->low = sqlite3_column_int64(q, 1);
  h->high = sqlite3_column_int64(q, 2);
  h->uniform = sqlite3_column_int64(q, 3) != 0;
  return WEIR_OK;
}

weir_status wr_hash_load(wr_hash_facts *f, const wr_db *db)
{
  if (!wr_db_has_column(db, "copy_hash", "uniform")) return WEIR_OK;
  char sql[160];
  (void)snprintf(sql, sizeof(sql),
                 "SELECT event, hash_low, hash_high, uniform FROM main.copy_hash NOT INDEXED"
                 " WHERE event IS NOT NULL AND outcome = %d",
                 WEIR_HASH_HASHED);
  weir_status st = wr_db_each(db, sql, take_hash, f);
  if (*f->partial) wr_records_free(&f->hash);
  return st;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The number of a key, or a new one. 0: out of memory, or, `partial`, there are too many. */
static int64_t number_of(wr_hash_facts *f, wr_records *of, uint64_t key)
{
  bool added;
  *f->partial |= of->count >= WR_RECORDS_MOST - 1;
  numbered *n = *f->partial ? NULL : wr_records_place(of, key, sizeof(*n), &added);
  if (n && added) n->number = (int64_t)of->count;
  return n ? n->number : 0;
}

static int64_t number_if_known(const wr_records *of, uint64_t key)
{
  const numbered *n = wr_records_find(of, key, sizeof(*n));
  return n ? n->number : 0;
}

/* Gives up what is remembered: no more rows are made. */
static weir_status end_hashes(wr_hash_facts *f)
{
  if (!*f->partial) return weir_fail(WEIR_ENOMEM, "finding facts of hashes: out of host memory");
  wr_hash_facts_free(f);
  return WEIR_OK;
}

/* What a row has of a call: numbers; 0: none. */
typedef struct hash_step {
  int64_t payload; /* times 2, and whether it is uniform */
  int64_t to, from;
} hash_step;

static weir_status add_step(const wr_hash_facts *f, const wr_process_state *x, const wr_common *t,
                            const wr_fact_call *c, const hash_step *s)
{
  return wr_fact_add(f->tables, WR_FACT_HASH_STEP,
                     (const int64_t[]){c->id, t->id, c->time, c->duration, (int64_t)c->bytes,
                                       s->payload, s->to, s->from, (int64_t)x->begun_writes});
}

static weir_status take_hashed(wr_hash_facts *f, const wr_process_state *x, const wr_common *t,
                               const wr_fact_call *c, const hash_of *h)
{
  bool to = t->what & WR_WRITES, from = t->what & WR_BACK;
  uint64_t key = hash_mix(hash_mix(t->seed, (uint64_t)h->low), (uint64_t)h->high);
  hash_step s = {.payload = number_of(f, &f->payload, hash_mix(key, c->bytes)) * 2 + h->uniform};
  if (to) s.to = number_of(f, &f->place, c->key);
  if (from) s.from = number_of(f, &f->place, hash_mix(t->seed, c->b));
  if (s.payload < 2 || (to && !s.to) || (from && !s.from)) return end_hashes(f);
  return add_step(f, x, t, c, &s);
}

weir_status wr_hash_take(wr_hash_facts *f, wr_process_state *x, const wr_common *t,
                         const wr_fact_call *c)
{
  bool copy = t->kind == WEIR_EV_COPY;
  bool touches = copy ? t->what & WR_WRITES : t->kind <= WEIR_EV_MEMSET;
  x->begun_writes += (t->what & WR_WRITES) != 0;
  const hash_of *h = copy ? wr_records_find(&f->hash, key_of_event(c->id), sizeof(*h)) : NULL;
  if (h) return take_hashed(f, x, t, c, h);
  if (!touches) return WEIR_OK;
  hash_step s = {.to = number_if_known(&f->place, c->key)};
  if (copy && t->what & WR_BACK) s.from = number_if_known(&f->place, hash_mix(t->seed, c->b));
  return s.to || s.from ? add_step(f, x, t, c, &s) : WEIR_OK;
}

void wr_hash_facts_free(wr_hash_facts *f)
{
  wr_records_free(&f->hash);
  wr_records_free(&f->payload);
  wr_records_free(&f->place);
}
