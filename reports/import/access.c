/* access.c: which memory launches were handed becomes rows: a set's words, a row each, and the sets
 * of launches by their templates, which have one each. Numbers of sets are of a process; a
 * number that no record explains (it was lost) has no row of access_set: what such a launch is
 * handed is not known. */
#include <string.h>
#include "reports/import/importer.h"

enum { MOST_WORDS = 512 /* in a set, by its writer's limit */ };

weir_status wr_take_access(wr_spool *s, const trace_event *head, const void *payload, size_t bytes)
{
  wr_batch_rows *words = &s->im->batch.rows[WR_TABLE_ACCESS_WORD];
  size_t count = bytes / sizeof(uint64_t);
  if (!head->a || head->a > WEIR_ACCESS_MOST || count > MOST_WORDS) return WEIR_OK;
  if (!wr_grow(&words->row, &words->capacity, words->count + count, sizeof(wr_row)))
    return wr_out_of_memory(s->im);
  wr_row *set = wr_batch_row(&s->im->batch, WR_TABLE_ACCESS_SET);
  if (!set) return wr_out_of_memory(s->im);
  *set = (wr_row){.v = {s->process, (int64_t)head->a, (int64_t)count}};
  for (size_t i = 0; i < count; i++) {
    int64_t word;
    memcpy(&word, (const char *)payload + i * sizeof(word), sizeof(word));
    words->row[words->count++] = (wr_row){.v = {s->process, (int64_t)head->a, word}};
  }
  return WEIR_OK;
}
