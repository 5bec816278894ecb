/* access.c: which memory launches were handed becomes rows: a set's words, a row each, and the sets
 * of launches by their templates, which have one each. Numbers of sets are of a process; a
 * number that no record explains (it was lost) has no row of access_set: what such a launch is
 * handed is not known. Where a kernel is handed a set with parameters that vary, that is a row, too. */
#include <string.h>
#include "reports/import/importer.h"

enum { MOST_WORDS = 512 /* in a set, by its writer's limit */ };

/* A kernel was handed the set again with parameters of other bytes. */
static weir_status take_varying(wr_spool *s, const trace_event *head, const void *payload,
                                size_t bytes)
{
  int64_t kernel = 0;
  wr_row *row = wr_batch_row(&s->im->batch, WR_TABLE_ACCESS_VARYING);
  if (!row) return wr_out_of_memory(s->im);
  if (bytes >= sizeof(kernel)) memcpy(&kernel, payload, sizeof(kernel));
  *row = (wr_row){.v = {s->process, (int64_t)head->a, kernel}};
  return WEIR_OK;
}

weir_status wr_take_access(wr_spool *s, const trace_event *head, const void *payload, size_t bytes)
{
  enum { PARAMETERS = 3, PARAMETER = 3, PART = 4 }; /* columns of a set, and of a word */
  wr_batch_rows *words = &s->im->batch.rows[WR_TABLE_ACCESS_WORD];
  size_t count = bytes / sizeof(access_word);
  if (head->access_fact == WEIR_ACCESS_VARIES) return take_varying(s, head, payload, bytes);
  if (!head->a || head->a > WEIR_ACCESS_MOST || count > MOST_WORDS) return WEIR_OK;
  if (!wr_grow(&words->row, &words->capacity, words->count + count, sizeof(wr_row)))
    return wr_out_of_memory(s->im);
  wr_row *set = wr_batch_row(&s->im->batch, WR_TABLE_ACCESS_SET);
  if (!set) return wr_out_of_memory(s->im);
  const bool known = head->b && head->b <= UINT16_MAX;
  *set = (wr_row){.v = {s->process, (int64_t)head->a, (int64_t)count, (int64_t)head->b - 1},
                  .nulls = known ? 0 : 1u << PARAMETERS};
  for (size_t i = 0; i < count; i++) {
    access_word w;
    memcpy(&w, (const char *)payload + i * sizeof(w), sizeof(w));
    words->row[words->count++] =
        (wr_row){.v = {s->process, (int64_t)head->a, (int64_t)w.word, w.parameter, w.part},
                 .nulls = known ? 0 : 1u << PARAMETER | 1u << PART};
  }
  return WEIR_OK;
}
