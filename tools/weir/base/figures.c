/* figures.c: see figures.h. */
#include "tools/weir/base/figures.h"

#include <signal.h>

#include "reports/whole/whole.h"
#include "tools/weir/base/progress.h"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNALS = sizeof signals / sizeof *signals };

static bool asked_for_later;
static volatile sig_atomic_t stopped;

void figures_ask(const cmd_line *line)
{
  asked_for_later = line->value[OPT_FIGURES].number != 0;
}

void figures_later(void)
{
  asked_for_later = true;
}

static void on_stop(int signal)
{
  stopped = signal;
}

/* Takes signals that are not ignored, once. */
static void take_signals(struct sigaction old[SIGNALS])
{
  const struct sigaction act = {.sa_handler = on_stop, .sa_flags = SA_RESETHAND | SA_RESTART};
  stopped = 0;
  for (int i = 0; i < SIGNALS; i++)
    if (sigaction(signals[i], NULL, &old[i]) == 0 && old[i].sa_handler != SIG_IGN)
      (void)sigaction(signals[i], &act, NULL);
}

static void give_signals_back(const struct sigaction old[SIGNALS])
{
  for (int i = 0; i < SIGNALS; i++)
    (void)sigaction(signals[i], &old[i], NULL);
}

void figures_keep(const char *trace)
{
  struct sigaction old[SIGNALS];
  progress line = {.trace = trace};
  if (asked_for_later) return;
  const wr_findings_settings settings = {
      .stop = &stopped, .progress = progress_findings, .progress_context = &line};
  take_signals(old);
  (void)wr_whole_keep(trace, &settings);
  progress_clear(&line);
  give_signals_back(old);
}
