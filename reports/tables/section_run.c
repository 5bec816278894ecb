/* section_run.c: what ran, by whom, and how it ended. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "reports/base/units.h"
#include "reports/tables/sections.h"

enum { PROCESS_ROWS = 8 };

static void time_text(const wr_model *m, char out[32])
{
  time_t seconds = (time_t)(m->start_realtime_ns / 1000000000);
  struct tm local;
  out[0] = '\0';
  if (m->start_realtime_ns <= 0 || !localtime_r(&seconds, &local)) return;
  (void)strftime(out, 32, "%Y-%m-%d %H:%M:%S", &local);
}

static void add_window(wr_named_table *t, const wr_model *m)
{
  const uint64_t from = (uint64_t)m->window_start_ns;
  const uint64_t end = m->window_end_ns > m->window_start_ns ? (uint64_t)m->window_end_ns : from;
  wr_table_before(t, true,
                  "This trace is a window of the run, from %s to %s after its begin (%s). Of what "
                  "came before it has what is still live; %s %s in totals alone (before_window).",
                  DURATION(from), DURATION(end),
                  m->window_reason ? m->window_reason : "for a reason that is not known",
                  COUNTED(m->before_calls, "call"), m->before_calls == 1 ? "is" : "are");
}

static void add_run_facts(const wr_sections *s)
{
  const wr_model *m = s->m;
  const char *command = m->command && *m->command ? m->command
                        : m->process_count        ? m->processes[0].command
                                                  : m->path;
  char date[32];
  time_text(m, date);
  if (!(s->t->head = wr_text(command, strlen(command), true))) s->t->failed = true;
  wr_named_table *t = wr_tables_add_sentences(s->t, "run", "");
  wr_table_before(t, false, "%s · %s · %s%s%s", DURATION((uint64_t)m->duration_ns),
                  OF(m->process_count, "process", "processes"), COUNTED(m->total.events, "event"),
                  *date ? " · " : "", date);
  if (!m->finished)
    wr_table_before(t, true,
                    "This trace is unfinished: its collector is still running, or was killed. The "
                    "numbers cover what it had written.");
  if (m->is_window) add_window(t, m);
  if (m->no_gpu)
    wr_table_before(t, true, "No GPU was found; `weir run --sim -- PROGRAM` needs none (%s).",
                    m->no_gpu);
}

static void put_end(wr_named_table *t, const wr_process_row *x)
{
  if (!x->ended)
    wr_table_put_text(t, "running");
  else if (!strcmp(x->end_reason, "exit") && x->end_detail >= 0)
    wr_table_put_words(t, "exit %lld", (long long)x->end_detail);
  else if (!strcmp(x->end_reason, "signal") && x->end_detail > 0 && x->end_detail < 65)
    wr_table_put_text(t, strsignal((int)x->end_detail));
  else
    wr_table_put_text(t, x->end_reason);
}

static void put_process(wr_named_table *t, const wr_process_row *x)
{
  WR_PUT(t, (uint64_t)x->pid, x->events);
  wr_table_put_if(t, x->ended, (uint64_t)(x->end - x->start));
  put_end(t, x);
  wr_table_put_text(t, *x->command ? x->command : x->exe);
}

/* A tree can be a shell's: those with CUDA calls are shown, the others counted. */
static void add_processes(const wr_sections *s)
{
  static const wr_column columns[] = {{"pid", "pid", WR_COLUMN_ID, 0},
                                      {"events", "events", WR_COLUMN_COUNT, 0},
                                      {"duration_ns", "time", WR_COLUMN_HOST_NS, 0},
                                      {"end", "ended", WR_COLUMN_TEXT, 0},
                                      {"command", "command", WR_COLUMN_TEXT, 0}};
  const wr_model *m = s->m;
  size_t quiet = 0, active = 0;
  if (m->process_count < 2) return;
  wr_named_table *t = WR_TABLE(s->t, "processes", "Processes", columns);
  wr_table_look(t, WR_QUIET);
  for (size_t i = 0; i < m->process_count; i++) {
    bool has_events = m->processes[i].events != 0;
    if (has_events) active++;
    quiet += !has_events;
    wr_table_row_for(t, has_events && active <= PROCESS_ROWS ? WR_ROW_ALL : WR_ROW_DATA);
    put_process(t, &m->processes[i]);
  }
  if (active > PROCESS_ROWS) wr_table_after(t, false, "… and %zu more", active - PROCESS_ROWS);
  if (quiet)
    wr_table_after(t, false, "%s%s made no CUDA calls", active ? "and " : "",
                   COUNTED(quiet, "program"));
}

void wr_section_run(const wr_sections *s)
{
  add_run_facts(s);
  add_processes(s);
}
