/* judge_copies.c: the judges (judge.h) of copies and memsets. */
#include <stdlib.h>
#include "reports/findings/judge.h"

/* 3: A copy to a device whose memory is freed, with nothing between that can have read it. */
void wr_judge_unused_transfer(wr_case *c)
{
  WR_EACH(c, UNREAD, unread, u)
  {
    wr_case_find(c, &(wr_found){.event = u->event,
                                .template = u->template,
                                .cost = u->duration,
                                .saving = u->duration,
                                .bytes = u->bytes,
                                .related = u->free,
                                .certainty = c->rule->certainty});
  }
}

/* 23: What the next copy or memset writes again before anything can have read it; in another stream it may run first. */
void wr_judge_dead_write(wr_case *c)
{
  WR_EACH(c, OVERWRITTEN, overwritten, o)
  {
    wr_case_find(c, &(wr_found){.event = o->event,
                                .template = o->template,
                                .cost = o->duration,
                                .saving = o->duration,
                                .bytes = o->bytes,
                                .related = o->next,
                                .certainty = o->same_stream ? WR_CERTAIN : WR_POSSIBLE});
  }
}

/* ---- 6 to 8: copies that could be made another way ------------------------------------------- */

/* 6: The host waits for it, and then goes on by itself for a while. */
void wr_judge_blocking_copy(wr_case *c)
{
  int64_t min_bytes = wr_case_limit(c, "min_bytes"), min_ns = wr_case_limit(c, "min_ns");
  WR_EACH(c, BLOCKING_COPY, blocking_copy, b)
  {
    if (b->bytes <= min_bytes || b->null || b->gap < min_ns || b->duration < min_ns) continue;
    wr_case_find(c, &(wr_found){.event = b->event,
                                .template = b->template,
                                .cost = b->duration,
                                .saving = wr_least(b->duration, b->gap),
                                .bytes = b->bytes,
                                .certainty = c->rule->certainty});
  }
}

/* 7: One of many small ones: in one buffer it takes what the link takes. */
void wr_judge_tiny_copies(wr_case *c)
{
  int64_t link = wr_case_limit(c, "link");
  WR_EACH(c, SMALL_COPY, small_copy, s)
  {
    wr_case_find(c, &(wr_found){.event = s->event,
                                .template = s->template,
                                .cost = s->duration,
                                .saving = s->duration - wr_over(s->bytes, link),
                                .bytes = s->bytes,
                                .certainty = c->rule->certainty});
  }
}

/* 8: One row of a matrix of as many rows. */
void wr_judge_rows_one_by_one(wr_case *c)
{
  int64_t min_rows = wr_case_limit(c, "min_rows"), link = wr_case_limit(c, "link");
  bool *tall = wr_case_array(c, wr_case_count(c, WR_FACT_ROW_MATRIX), sizeof(*tall));
  if (!tall) return;
  WR_EACH(c, ROW_MATRIX, row_matrix, m)
  {
    tall[m->id] = m->rows + 1 >= min_rows;
  }
  WR_EACH(c, ROW_COPY, row_copy, r)
  {
    if (!tall[r->matrix]) continue;
    wr_case_find(c, &(wr_found){.event = r->event,
                                .template = r->template,
                                .cost = r->duration,
                                .saving = r->duration - wr_over(r->bytes, link),
                                .bytes = r->bytes,
                                .certainty = c->rule->certainty});
  }
  free(tall);
}

/* ---- 9: through the host --------------------------------------------------------------------- */

/* The call that sent bytes back; *place: where those of its stack are counted: how many, times 2^32, and how many of them in so
 * little time that the host cannot have changed much. False: it is too small. */
static bool find_bounce(wr_case *c, const wr_fact_sent_back *s, hash_map *at, wr_call_row *back,
                        uint64_t **place)
{
  const wr_call_row *e = wr_case_call(c, s->event);
  if (!e || e->bytes < wr_case_limit(c, "min_bytes")) return false;
  *back = *e;
  uint64_t key = hash_mix(hash_mix(29, (uint64_t)e->common->process), (uint64_t)e->common->stack);
  *place = hash_map_place(at, key, NULL);
  if (!*place) c->status = wr_db_out_of_memory(c->db);
  return *place;
}

static void count_bounces(wr_case *c, hash_map *at)
{
  int64_t max_gap = wr_case_limit(c, "max_gap");
  WR_EACH(c, SENT_BACK, sent_back, s)
  {
    wr_call_row back;
    uint64_t *place;
    if (!find_bounce(c, s, at, &back, &place)) continue;
    const wr_call_row *away = wr_case_call(c, s->earlier);
    if (!away) continue;
    int64_t gap = wr_sum(wr_sum(back.start, -away->start), -away->duration);
    bool brief = gap <= max_gap && wr_times(gap, 50) < back.bytes;
    *place += (UINT64_C(1) << 32) + brief;
  }
}

/* Of hashed copies it is known what came back, which the SELECT looks at. */
void wr_judge_through_the_host(wr_case *c)
{
  hash_map at = {0};
  int64_t min_times = wr_case_limit(c, "min_times"), hashed = 1;
  if (wr_db_has_table(c->db, "copy_hash") && !c->status)
    c->status = wr_db_number(c->db, "SELECT EXISTS(SELECT 1 FROM main.copy_hash)", &hashed);
  c->declines = hashed != 0;
  if (hashed) return;
  count_bounces(c, &at);
  WR_EACH(c, SENT_BACK, sent_back, s)
  {
    wr_call_row back;
    uint64_t *place;
    if (!find_bounce(c, s, &at, &back, &place)) continue;
    int64_t times = (int64_t)(*place >> 32), brief = (int64_t)(*place & UINT32_MAX);
    if (times < min_times) continue;
    wr_case_find(c, &(wr_found){.event = s->event,
                                .template = back.common->id,
                                .cost = back.duration,
                                .saving = back.duration,
                                .bytes = back.bytes,
                                .related = s->earlier,
                                .certainty = brief * 2 >= times ? WR_LIKELY : WR_POSSIBLE});
  }
  hash_map_free(&at);
}
