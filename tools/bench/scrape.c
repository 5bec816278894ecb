/* scrape.c: what a scrape costs: figures of eight processes, and a page of all its series, made again
 * and again; prints processor milliseconds of one.
 *
 * scrape SPOOL... */
#include <stdio.h>
#include <time.h>
#include "reports/metrics/page.h"

enum { PROCESSES = 8, SCRAPES = 100 };

static double cpu_ms(void)
{
  struct timespec t;
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void scrape(FILE *out, const wr_tally_state *s, wr_figures *figures, bool fill)
{
  wr_page_process processes[PROCESSES];
  for (uint32_t i = 0; i < PROCESSES; i++) {
    wr_figures_of(&figures[i], s, 1.0, NULL, NULL);
    processes[i] = (wr_page_process){.figures = &figures[i], .pid = i + 1, .rank = i + 1};
    for (uint16_t k = 0; k < WR_FIGURE_ROWS && fill; k++) /* so that the page is full */
      figures[i].memory[k] = (wr_live_figure){k, WEIR_MEM_DEVICE, k, 1, k};
    if (fill) figures[i].memory_count = WR_FIGURE_ROWS;
  }
  const wr_page page = {.job = "bench", .process = processes, .count = PROCESSES};
  wr_page_write(out, &page, true);
}

static weir_status read_spool(const char *path, spool_reader **reader, wr_tally **tally)
{
  const wr_tally_options options = {.in_memory = true, .anew = true};
  weir_status st = spool_reader_open(reader, path, false);
  if (!st) st = wr_tally_open(tally, *reader, path, &options);
  return st ? st : wr_tally_drain(*tally, false);
}

int main(int argc, char **argv)
{
  spool_reader *reader = NULL;
  wr_tally *tally = NULL;
  static wr_figures figures[PROCESSES];
  FILE *out = fopen("/dev/null", "w");
  if (argc != 2 || !out || read_spool(argv[1], &reader, &tally)) {
    (void)fprintf(stderr, "scrape: %s\n", weir_error_message());
    return 1;
  }
  const double begun = cpu_ms();
  for (int i = 0; i < SCRAPES; i++)
    scrape(out, wr_tally_look(tally), figures, true);
  printf("%.4f\n", (cpu_ms() - begun) / SCRAPES);
  wr_tally_close(tally);
  spool_reader_close(reader);
  return fclose(out) != 0;
}
