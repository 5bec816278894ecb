/* recorder.c: see recorder.h. */
#include "tests/reports/recorder.h"
#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "reports/tally/tally.h"

const char *recorder_file(const char *spool)
{
  static char path[PATH_MAX];
  (void)snprintf(path, sizeof path, "%.*s" WR_TALLY_SUFFIX,
                 (int)(strlen(spool) - strlen(WEIR_SPOOL_SUFFIX)), spool);
  return path;
}

void recorder_tally(const char *spool, bool final)
{
  spool_reader *r;
  wr_tally *t;
  ck_assert_int_eq(spool_reader_open(&r, spool, false), WEIR_OK);
  ck_assert_msg(wr_tally_open(&t, r, spool, NULL) == WEIR_OK, "%s", weir_error_message());
  ck_assert_int_eq(wr_tally_drain(t, final), WEIR_OK);
  ck_assert_int_eq(wr_tally_commit(t), WEIR_OK);
  wr_tally_close(t);
  spool_reader_close(r);
}
