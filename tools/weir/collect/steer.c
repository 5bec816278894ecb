/* steer.c: see steer.h. A spool is opened for the one word and closed: whoever reads it is another.
 * What cannot be opened, or has another version, is no program that could be steered. */
#include "tools/weir/collect/steer.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "tools/weir/base/cmd.h"

struct steer {
  control *control;
  steer_spools *each;
  void *context;
  bool all;                  /* somebody has steered all: what comes is steered, too */
  spool_recording as;        /* what they record then */
  uint64_t begin_ns, end_ns; /* of a window, CLOCK_MONOTONIC; 0: none, or past */
};

static bool steer_spool(const char *path, spool_recording as)
{
  spool_reader *r = NULL;
  if (spool_reader_open(&r, path, true) != WEIR_OK) return false;
  bool good = spool_reader_steer(r, as) == WEIR_OK;
  spool_reader_close(r);
  return good;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Programs that are steered at once. */
typedef struct steering {
  pid_t pid; /* of the only one; 0: all */
  spool_recording as;
  FILE *reply;
  unsigned steered, failed;
} steering;

static void steer_one(void *context, pid_t pid, const char *path)
{
  steering *x = context;
  if (x->pid && x->pid != pid) return;
  if (!steer_spool(path, x->as)) {
    x->failed++;
    return;
  }
  x->steered++;
  if (x->reply)
    (void)fprintf(x->reply, "%d: %s from the next call on\n", (int)pid,
                  x->as == WEIR_RECORD_ALL ? "all calls are recorded"
                                           : "only allocations and frees are recorded");
}

static void steer_all(steer *s, spool_recording as)
{
  steering x = {.as = as};
  s->all = true;
  s->as = as;
  s->each(s->context, steer_one, &x);
}

/* Who is named: a pid of one of the programs; anything else (the collector's own pid, a trace):
 * all of them. */
static pid_t pid_named(const char *word)
{
  char *end;
  long pid = strtol(word, &end, 10);
  bool number = *word && !*end && pid > 0 && pid <= INT_MAX;
  return number && pid != getpid() ? (pid_t)pid : 0;
}

static bool answer(steer *s, FILE *reply, unsigned count, char *const *words, spool_recording as)
{
  steering x = {.pid = count ? pid_named(words[0]) : 0, .as = as, .reply = reply};
  s->begin_ns = s->end_ns = 0; /* who asks by hand goes on by hand */
  if (!x.pid) s->all = true, s->as = as;
  s->each(s->context, steer_one, &x);
  if (x.steered || !x.pid) return true;
  if (x.failed)
    (void)fprintf(reply, "%s\n", weir_error_message());
  else
    (void)fprintf(reply, "no program with the pid %d is recorded here\n", (int)x.pid);
  return false;
}

static bool start_recording(void *context, FILE *reply, unsigned count, char *const *words)
{
  return answer(context, reply, count, words, WEIR_RECORD_ALL);
}

static bool stop_recording(void *context, FILE *reply, unsigned count, char *const *words)
{
  return answer(context, reply, count, words, WEIR_RECORD_MEMORY);
}

/* ---- the clock ------------------------------------------------------------------------------- */

void steer_window(steer *s, uint64_t delay_ns, uint64_t duration_ns)
{
  const uint64_t now = clock_monotonic_ns();
  s->begin_ns = delay_ns ? now + delay_ns : 0;
  s->end_ns = duration_ns ? now + delay_ns + duration_ns : 0;
}

uint64_t steer_due(const steer *s)
{
  if (s->begin_ns) return s->begin_ns;
  return s->end_ns ? s->end_ns : UINT64_MAX;
}

void steer_turn(steer *s)
{
  const uint64_t now = clock_monotonic_ns();
  if (s->begin_ns && now >= s->begin_ns) {
    s->begin_ns = 0;
    steer_all(s, WEIR_RECORD_ALL);
  }
  if (s->end_ns && now >= s->end_ns) {
    s->end_ns = 0;
    steer_all(s, WEIR_RECORD_MEMORY);
  }
}

/* ---- the whole ------------------------------------------------------------------------------- */

void steer_take(const steer *s, const char *path)
{
  if (s->all) (void)steer_spool(path, s->as);
}

steer *steer_new(control *c, steer_spools *each, void *context)
{
  steer *s = cmd_alloc(sizeof *s);
  *s = (steer){.control = c, .each = each, .context = context};
  if (!c) return s;
  control_on(c, "start", start_recording, s);
  control_on(c, "stop", stop_recording, s);
  return s;
}

void steer_free(steer *s)
{
  if (s && s->control) {
    control_on(s->control, "start", NULL, NULL);
    control_on(s->control, "stop", NULL, NULL);
  }
  free(s);
}
