/* page_file.c: see page_file.h. The page is written to a new file beside the one that is asked for,
 * which it then replaces: nothing half is ever seen, whatever ends us. A signal that would ends the
 * work in between, and the new file goes with it. */
#include "tools/weir/page_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "reports/page/page.h"
#include "tools/weir/cmd.h"

#define NS_PATIENCE UINT64_C(1000000000)

typedef struct drawing { /* a line of progress */
  uint64_t since_ns;
  bool drawn;
} drawing;

static volatile sig_atomic_t stopped; /* by this signal */

static void on_stop(int signal)
{
  stopped = signal;
}

/* A second one ends us. */
static void take_signals(void)
{
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction act = {.sa_handler = on_stop, .sa_flags = SA_RESETHAND}, old;
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
    if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
      (void)sigaction(signals[i], &act, NULL);
}

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

static weir_status fill_file(int fd, const char *trace, const char *output,
                             const report_settings *o)
{
  drawing line = {0};
  const page_settings settings = {.symbols = o->symbols,
                                  .findings = o->findings,
                                  .progress = draw_progress,
                                  .context = &line,
                                  .stop = &stopped};
  FILE *out = fdopen(fd, "w");
  if (!out) {
    (void)close(fd);
    return weir_fail_errno(WEIR_EIO, errno, "cannot write %s", output);
  }
  take_signals();
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
  char *part = cmd_format("%s.part-%ld", output, (long)getpid());
  int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  weir_status s = fd < 0 ? weir_fail_errno(WEIR_EIO, errno, "cannot write %s", output)
                         : fill_file(fd, trace, output, options);
  if (!s && !stopped && rename(part, output))
    s = weir_fail_errno(WEIR_EIO, errno, "cannot write %s", output);
  if (fd >= 0 && (s || stopped)) (void)unlink(part);
  free(part);
  if (!s && !stopped) {
    say_written(output);
    return 0;
  }
  if (!stopped) return cmd_failed();
  cmd_say("stopped: %s was not written.", output);
  (void)signal(stopped, SIG_DFL);
  (void)raise(stopped);
  return CMD_FAILED;
}
