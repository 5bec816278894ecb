/* page_file.c: see page_file.h. */
#include "tools/weir/report/page_file.h"

#include <stdio.h>
#include <sys/stat.h>

#include "core/base/clock.h"
#include "reports/page/page.h"
#include "tools/weir/base/cmd.h"
#include "tools/weir/base/output_file.h"

#define NS_PATIENCE UINT64_C(1000000000)

typedef struct drawing { /* a line of progress */
  uint64_t since_ns;
  bool drawn;
} drawing;

static void draw_progress(void *context, const char *doing, uint64_t done, uint64_t all)
{
  drawing *d = context;
  uint64_t now = clock_monotonic_ns();
  if (!cmd_chatty()) return;
  if (!d->since_ns) d->since_ns = now;
  if (now - d->since_ns < NS_PATIENCE && !d->drawn) return;
  d->drawn = true;
  (void)fprintf(stderr, "\r\033[Kweir: page: %s", doing);
  if (all) (void)fprintf(stderr, ", %d %%", (int)((double)done * 100 / (double)all));
}

/* What the page is of. */
typedef struct wanted {
  const char *trace;
  const report_settings *report;
} wanted;

static weir_status fill_page(FILE *out, const void *context)
{
  const wanted *w = context;
  drawing line = {0};
  const page_settings settings = {.symbols = w->report->symbols,
                                  .innermost_sites = w->report->innermost_sites,
                                  .anew = w->report->anew,
                                  .findings = w->report->findings,
                                  .progress = draw_progress,
                                  .context = &line};
  weir_status st = page_write(out, w->trace, &settings);
  if (line.drawn) (void)fprintf(stderr, "\r\033[K");
  return st;
}

static void print_written(const char *output)
{
  struct stat file;
  if (!cmd_chatty() || output_is_stdout(output) || stat(output, &file) || !S_ISREG(file.st_mode))
    return;
  cmd_message("%s: %.1f MiB; open it in a browser.", output, (double)file.st_size / (1 << 20));
}

int page_file_write(const char *trace, const char *output, const report_settings *options)
{
  const wanted w = {trace, options};
  if (output_write(output, 0600, fill_page, &w)) return cmd_failed();
  print_written(output);
  return 0;
}
