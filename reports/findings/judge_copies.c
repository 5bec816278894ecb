/* judge_copies.c: the judges (judge.h) of copies and memsets. */
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
