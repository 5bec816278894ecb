/* asked.c: calls that ask were counted, and the counts of a thread's place become one row.
 *
 * A place's first record comes right after the event of one of its calls; each adds to the row, and
 * has how long a call of it took, most often: the sum of that is robust, where a mean of some calls
 * is not, when a processor is taken away during one of them. */
#include <string.h>
#include "core/trace/api.h"
#include "reports/import/importer.h"

static weir_status add_counts(wr_spool *s, const wr_thread *t, const asked_info *info,
                              int64_t event)
{
  double all = (double)wr_length(s, info->typical) * (double)info->calls;
  int64_t about = all < 1e18 ? (int64_t)all : 0;
  wr_op op = {
      .sql = "INSERT INTO asked(thread, api, address, event, calls, timed, timed_ns, about_ns,"
             " launches, followed) VALUES(?1,?2,?3,NULLIF(?4,0),?5,?6,?7,?8,?9,?10)"
             " ON CONFLICT DO UPDATE SET event = coalesce(event, excluded.event),"
             " calls = calls + excluded.calls, timed = timed + excluded.timed,"
             " timed_ns = timed_ns + excluded.timed_ns,"
             " about_ns = about_ns + excluded.about_ns,"
             " launches = launches + excluded.launches, followed = followed + excluded.followed",
      .v = {t->id, info->api, (int64_t)info->from, event, (int64_t)info->calls, info->timed,
            (int64_t)wr_length(s, info->ticks), about, (int64_t)info->launches, info->followed},
      .numbers = 10};
  return wr_batch_op(&s->im->batch, op);
}

/* Sums of damaged records are of no use: so many calls would take years. */
static bool is_plausible(const asked_info *info)
{
  const uint64_t most = UINT64_C(1) << 48;
  return info->calls < most && info->launches < most && info->timed <= info->calls &&
         info->followed <= info->timed && info->typical < most && info->ticks < most;
}

weir_status wr_take_asked(wr_spool *s, wr_thread *t, const trace_event *head, const void *payload,
                          size_t bytes)
{
  asked_info info;
  if (bytes < sizeof(info)) return WEIR_OK;
  memcpy(&info, payload, sizeof(info));
  if (!is_plausible(&info) || info.api >= api_total) return WEIR_OK;
  bool of_last = head->a && t->last_call && head->a == t->last_start;
  return add_counts(s, t, &info, of_last ? t->last_call : 0);
}
