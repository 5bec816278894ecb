/* importer.c: what the importer's files ask of its state, whichever of them runs: the batch
 * written, and why no device was reached. */
#include "reports/import/importer.h"
#include "reports/import/resume.h"

char *importer_no_gpu(const trace_importer *im)
{
  char name[24];
  if (im->reached) return NULL;
  if (im->no_driver) return wr_format("%s", im->no_driver);
  if (!im->refused_api) return NULL;
  return wr_format("%s returned %u", wr_api_name(im->refused_api, name), (unsigned)im->refused);
}

/* ---- writing what waits ---------------------------------------------------------------------- */

static void report_progress(trace_importer *im)
{
  if (!im->options.progress) return;
  uint64_t guess = im->written;
  for (size_t i = im->spools_ended; i < im->spool_count; i++)
    if (im->spools[i]) guess += spool_reader_left(im->spools[i]->reader);
  im->options.progress(im->options.progress_context, im->written, guess);
}

/* So that a trace whose collector lives, or died, has a length too. */
static weir_status queue_duration(trace_importer *im)
{
  int64_t duration = im->latest - im->least;
  if (duration == im->duration_written) return WEIR_OK;
  wr_op op = {.sql = "INSERT OR REPLACE INTO meta VALUES('duration_ns',?)", WR_NUMBERS(duration)};
  weir_status st = wr_batch_op(&im->batch, op);
  if (!st) im->duration_written = duration;
  return st;
}

weir_status wr_importer_flush(trace_importer *im)
{
  uint64_t events = im->batch.rows[WR_TABLE_EVENT].count;
  weir_status st = queue_duration(im);
  if (!st && im->ranges) st = wr_range_keep_open(im);
  if (!st) st = wr_resume_positions(im);
  if (!st) st = wr_resume_write(im);
  if (!st) st = wr_batch_flush(&im->batch, false);
  if (st) return st;
  im->written += events;
  if (events) report_progress(im);
  return WEIR_OK;
}
