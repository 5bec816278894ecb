/* tally.c: tallies spools to their end, as a collector that keeps no events would; prints how many
 * events. With -k only the oldest records, as a recorder does that keeps so many bytes.
 *
 * tally [-k BYTES] SPOOL... */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "reports/tally/tally.h"

static weir_status tally_spool(const char *path, const char *kept, uint64_t *events)
{
  spool_reader *reader = NULL;
  wr_tally *tally = NULL;
  const wr_tally_options options = {.anew = true};
  weir_status st = spool_reader_open(&reader, path, false);
  if (!st) st = wr_tally_open(&tally, reader, path, &options);
  const wr_tally_window window = {.bytes = kept ? strtoull(kept, NULL, 10) : 0};
  if (!st) st = kept ? wr_tally_take_oldest(tally, &window, NULL) : wr_tally_drain(tally, true);
  if (!st) st = wr_tally_commit(tally);
  if (!st) *events += ((wr_tally_facts *)wr_table_at(&wr_tally_look(tally)->facts, 0))->events;
  wr_tally_close(tally);
  spool_reader_close(reader);
  return st;
}

int main(int argc, char **argv)
{
  uint64_t events = 0;
  const char *kept = argc > 2 && !strcmp(argv[1], "-k") ? argv[2] : NULL;
  for (int i = kept ? 3 : 1; i < argc; i++)
    if (tally_spool(argv[i], kept, &events)) {
      (void)fprintf(stderr, "%s\n", weir_error_message());
      return 1;
    }
  printf("%llu\n", (unsigned long long)events);
  return 0;
}
