/* move_facts.c: see move_facts.h. What is remembered of an address holds until the process reads, writes or frees the next
 * time: of each thing that is remembered it is known how often the process had done so. So nothing has to be found and
 * dropped, and of an address most things need one record: only where several lengths of it are moved before it ends to hold,
 * each further one has a record of its own. Beyond WR_RECORDS_MOST records of a kind all of it are forgotten. */
#include "reports/findings/move_facts.h"
#include <stdlib.h>
#include "core/trace/event.h"
#include "reports/base/util.h"

enum { MOST_UPLOADS = 1 << 20 /* of all processes */ };

typedef struct written { /* the last write of a length at an address */
  uint64_t key;
  uint64_t when; /* reads and frees by then */
  uint64_t bytes;
  int64_t event, duration;
  uint64_t round;  /* of the uploads */
  uint32_t upload; /* of the address, in that round: the last, its place + 1; 0 none */
  uint32_t common;
} written;

typedef struct read_back { /* the last copy of a length at an address */
  uint64_t key;
  uint64_t when; /* writes by then */
  uint64_t bytes;
  int64_t event;
} read_back;

typedef struct sent { /* the last copy to an address of the host */
  uint64_t key, bytes;
  int64_t event; /* 0: it has been sent back */
} sent;

typedef struct alike { /* a copy, or a family of copies */
  uint64_t key;
  int64_t first; /* the only one; or its family's place, and FAMILY */
} alike;

#define FAMILY INT64_MIN

#define ADD(f, fact, ...) wr_fact_add((f)->tables, WR_FACT_##fact, (const int64_t[]){__VA_ARGS__})

static weir_status out_of_memory(void)
{
  return weir_fail(WEIR_ENOMEM, "finding facts of copies: out of host memory");
}

static void bound_records(wr_records *r)
{
  if (r->count >= WR_RECORDS_MOST) wr_records_clear(r);
}

/* ---- writes ---------------------------------------------------------------------------------- */

static written *place_written(wr_move_facts *f, uint64_t key)
{
  bool added;
  bound_records(&f->written);
  written *w = wr_records_place(&f->written, key, sizeof(*w), &added);
  if (w && added) *w = (written){.key = key, .when = UINT64_MAX};
  return w;
}

/* Of an address the first length that was written since the last read or free; a further one has a record by itself. */
static weir_status see_write(wr_move_facts *f, const wr_process_state *x, const wr_common *t,
                             const wr_fact_call *c, written *w)
{
  weir_status st = WEIR_OK;
  if (w->when == x->reads_or_frees && w->bytes != c->bytes)
    w = place_written(f, hash_mix(c->key, c->bytes));
  if (!w) return out_of_memory();
  if (w->when == x->reads_or_frees) {
    const wr_common *before = &f->common[w->common];
    st = ADD(f, OVERWRITTEN, w->event, c->id, before->stream == t->stream, before->id, w->duration,
             (int64_t)c->bytes);
  }
  w->when = x->reads_or_frees;
  w->bytes = c->bytes, w->event = c->id, w->duration = c->duration, w->common = c->common;
  return st;
}

/* ---- copies to a device ---------------------------------------------------------------------- */

/* Uploads that nothing has read hang on their address, the last one first. */
static weir_status see_upload(const wr_move_facts *f, wr_process_state *x, const wr_fact_call *c,
                              written *w)
{
  if (x->upload_reads != x->reads || x->upload_count >= MOST_UPLOADS / f->processes) {
    x->upload_reads = x->reads;
    x->upload_count = 0;
    x->upload_round++;
  }
  if (!wr_grow(&x->upload, &x->upload_capacity, x->upload_count + 1, sizeof(*x->upload)))
    return out_of_memory();
  x->upload[x->upload_count++] = (wr_upload){.event = c->id,
                                             .duration = c->duration,
                                             .bytes = c->bytes,
                                             .common = c->common,
                                             .before = w->round == x->upload_round ? w->upload : 0};
  w->round = x->upload_round;
  w->upload = (uint32_t)x->upload_count;
  return WEIR_OK;
}

weir_status wr_move_free(wr_move_facts *f, wr_process_state *x, const wr_fact_call *c)
{
  weir_status st = WEIR_OK;
  if (!x->upload_count || x->upload_reads != x->reads) return st;
  written *w = wr_records_find(&f->written, c->key, sizeof(*w));
  if (!w || w->round != x->upload_round) return st;
  for (size_t i = w->upload; !st && i; i = x->upload[i - 1].before) {
    const wr_upload *u = &x->upload[i - 1];
    st = ADD(f, UNREAD, u->event, c->id, f->common[u->common].id, u->duration, (int64_t)u->bytes);
  }
  w->upload = 0;
  return st;
}

/* ---- copies that are made again -------------------------------------------------------------- */

static weir_status end_families(wr_move_facts *f)
{
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < f->family_count; i++)
    st = ADD(f, COPY_FAMILY, f->families + (int64_t)i, (int64_t)f->family[i].times,
             f->family[i].first);
  f->families += (int64_t)f->family_count;
  f->family_count = 0;
  wr_records_clear(&f->alike);
  return st;
}

/* A copy of host memory to a device: again from there, to there, by the same place. */
static weir_status see_again(wr_move_facts *f, const wr_common *t, const wr_fact_call *c)
{
  bool added;
  weir_status st = f->alike.count >= WR_RECORDS_MOST ? end_families(f) : WEIR_OK;
  if (st || c->id <= 0) return st; /* no trace that was written here has such an event */
  alike *x = wr_records_place(&f->alike, c->again, sizeof(*x), &added);
  if (!x) return out_of_memory();
  if (added) {
    x->first = c->id;
    return st;
  }
  if (!(x->first & FAMILY)) {
    if (!wr_grow(&f->family, &f->family_capacity, f->family_count + 1, sizeof(*f->family)))
      return out_of_memory();
    f->family[f->family_count] = (wr_copy_family){1, x->first};
    x->first = (int64_t)f->family_count++ | FAMILY;
  }
  int64_t family = x->first & ~FAMILY;
  f->family[family].times++;
  return ADD(f, REPEATED_COPY, c->id, f->families + family, t->id, c->duration, (int64_t)c->bytes);
}

/* ---- copies to the host ---------------------------------------------------------------------- */

static read_back *place_read(wr_move_facts *f, uint64_t key)
{
  bool added;
  bound_records(&f->read);
  read_back *r = wr_records_place(&f->read, key, sizeof(*r), &added);
  if (r && added) *r = (read_back){.key = key, .when = UINT64_MAX};
  return r;
}

/* As of writes, the first length that was read since the last write is the address's. */
static weir_status see_read_back(wr_move_facts *f, const wr_process_state *x, const wr_common *t,
                                 const wr_fact_call *c)
{
  weir_status st = WEIR_OK;
  uint64_t key = hash_mix(t->seed, c->b);
  read_back *r = place_read(f, key);
  if (r && r->when == x->writes && r->bytes != c->bytes) r = place_read(f, hash_mix(key, c->bytes));
  if (!r) return out_of_memory();
  if (r->when == x->writes)
    st = ADD(f, REREAD, c->id, r->event, t->id, c->duration, (int64_t)c->bytes);
  r->when = x->writes, r->bytes = c->bytes, r->event = c->id;
  return st;
}

static weir_status see_sent(wr_move_facts *f, const wr_fact_call *c)
{
  bool added;
  bound_records(&f->sent);
  sent *s = wr_records_place(&f->sent, c->key, sizeof(*s), &added);
  if (!s) return out_of_memory();
  s->bytes = c->bytes, s->event = c->id;
  return WEIR_OK;
}

/* A copy of what lies at an address of the host's to a device. */
static weir_status see_sent_back(wr_move_facts *f, const wr_common *t, const wr_fact_call *c)
{
  sent *s = wr_records_find(&f->sent, hash_mix(t->seed, c->b), sizeof(*s));
  if (!s || !s->event) return WEIR_OK;
  int64_t event = s->event;
  s->event = 0;
  return s->bytes == c->bytes ? ADD(f, SENT_BACK, c->id, event) : WEIR_OK;
}

/* ---- a call ---------------------------------------------------------------------------------- */

static bool is_given(const wr_process_state *x, const wr_common *t, const wr_fact_call *c)
{
  return wr_given_has(&x->given, c->a, c->bytes) ||
         (t->kind == WEIR_EV_COPY && wr_given_has(&x->given, c->b, c->bytes));
}

/* What a call does to memory that others may use is nothing to be judged. */
weir_status wr_move_take(wr_move_facts *f, wr_process_state *x, const wr_common *t,
                         const wr_fact_call *c)
{
  weir_status st = WEIR_OK;
  bool up = t->what & WR_UP, back = t->what & WR_BACK;
  if (wr_given_any(&x->given) && is_given(x, t, c))
    return t->kind == WEIR_EV_COPY ? ADD(f, GIVEN_COPY, c->id) : st;
  if (t->mem == WEIR_MEM_DEVICE && c->bytes) {
    written *w = place_written(f, c->key);
    if (!w) return out_of_memory();
    if (up) st = see_upload(f, x, c, w);
    if (!st) st = see_write(f, x, t, c, w);
  }
  if (!st && up && t->what & WR_FROM_HOST && c->bytes) st = see_again(f, t, c);
  if (!st && back && t->src_mem == WEIR_MEM_DEVICE) st = see_read_back(f, x, t, c);
  if (back && !st && wr_ranges_find(&x->combined, c->a, c->bytes))
    st = ADD(f, COMBINED_READ, c->id, t->id, c->duration, (int64_t)c->bytes);
  if (!st && back) st = see_sent(f, c);
  return !st && up ? see_sent_back(f, t, c) : st;
}

/* ---- the end --------------------------------------------------------------------------------- */

weir_status wr_move_facts_end(wr_move_facts *f)
{
  return end_families(f);
}

void wr_move_facts_free(wr_move_facts *f)
{
  wr_records_free(&f->written);
  wr_records_free(&f->read);
  wr_records_free(&f->sent);
  wr_records_free(&f->alike);
  free(f->family);
}
