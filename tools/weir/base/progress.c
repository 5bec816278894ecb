/* progress.c: see progress.h. */
#include "tools/weir/base/progress.h"

#include <stdio.h>

#include "core/base/clock.h"
#include "tools/weir/base/cmd.h"

#define NS_PATIENCE UINT64_C(1000000000)
#define NS_REDRAW   UINT64_C(200000000)
/* So many events are half a second's work or more. It is a count, so that the line does not depend
 * on the machine. */
#define MUCH_LEFT UINT64_C(400000)

static void print_backlog_once(progress *p, uint64_t left)
{
  char text[32];
  if (p->printed || left < MUCH_LEFT) return;
  p->printed = true;
  cmd_message("%s: about %s events still to import.", p->trace, cmd_grouped(text, left));
}

void progress_report(void *context, uint64_t done, uint64_t total_guess)
{
  progress *p = context;
  char text[32];
  if (!p->allowed) return;
  if (!cmd_chatty()) {
    print_backlog_once(p, total_guess - done);
    return;
  }
  uint64_t now = clock_monotonic_ns();
  if (!p->since_ns) p->since_ns = now;
  if (now - p->since_ns < NS_PATIENCE || now - p->last_ns < NS_REDRAW) return;
  p->last_ns = now;
  p->drawn = true;
  (void)fprintf(stderr, "\r\033[Kweir: importing, %s events", cmd_grouped(text, done));
  if (total_guess > done)
    (void)fprintf(stderr, ", %d %%", (int)((double)done * 100 / (double)total_guess));
}

void progress_findings(void *context, const char *what, uint64_t done, uint64_t all)
{
  progress *p = context;
  if (!what) progress_clear(p);
  if (!what || !cmd_chatty()) return;
  uint64_t now = clock_monotonic_ns();
  if (!p->since_ns) p->since_ns = now;
  if (now - p->since_ns < NS_PATIENCE || now - p->last_ns < NS_REDRAW) return;
  p->last_ns = now;
  p->drawn = true;
  (void)fprintf(stderr, "\r\033[Kweir: looking for findings: %s", what);
  if (all) (void)fprintf(stderr, ", %d %%", (int)((double)done * 100 / (double)all));
}

void progress_clear(progress *p)
{
  if (p->drawn) (void)fprintf(stderr, "\r\033[K");
  p->drawn = false;
}
