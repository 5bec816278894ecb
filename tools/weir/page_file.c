/* page_file.c: see page_file.h. */
#include "tools/weir/page_file.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "core/base/clock.h"
#include "reports/page/page.h"
#include "tools/weir/cmd.h"
#include "tools/weir/part.h"

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

static weir_status fill_page(const char *part, const char *trace, const char *output,
                             const report_settings *o)
{
  drawing line = {0};
  const page_settings settings = {
      .symbols = o->symbols, .findings = o->findings, .progress = draw_progress, .context = &line};
  FILE *out = fopen(part, "we");
  if (!out) return weir_fail_errno(WEIR_EIO, errno, "cannot write %s", output);
  weir_status s = page_write(out, trace, &settings);
  if (line.drawn) (void)fprintf(stderr, "\r\033[K");
  if (fclose(out) && !s)
    s = weir_fail_errno(errno == ENOSPC ? WEIR_ENOSPC : WEIR_EIO, errno, "writing %s", output);
  return s;
}

static void say_written(const char *output)
{
  struct stat file;
  if (!cmd_chatty() || stat(output, &file)) return;
  cmd_say("%s: %.1f MiB; open it in a browser.", output, (double)file.st_size / (1 << 20));
}

int page_file_write(const char *trace, const char *output, const report_settings *options)
{
  part_file part;
  weir_status s = part_begin(&part, output, 0600);
  if (!s) s = fill_page(part.path, trace, output, options);
  if (part_end(&part, s)) return cmd_failed();
  say_written(output);
  return 0;
}
