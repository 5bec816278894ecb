/* sample.c: see sample.h. */
#include "tools/weir/watch/sample.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "tools/weir/base/cmd.h"

enum { MOST_ROWS = 100000 /* of all lists, so that an answer cannot take all memory */ };

static const char *const number_names[SAMPLE_NUMBERS] = {[SAMPLE_PID] = "pid",
                                                         [SAMPLE_RANK] = "rank",
                                                         [SAMPLE_EVENTS] = "events",
                                                         [SAMPLE_RATE] = "events_per_second",
                                                         [SAMPLE_DROPPED] = "dropped",
                                                         [SAMPLE_SPOOL] = "spool_bytes",
                                                         [SAMPLE_LIVE] = "live_bytes",
                                                         [SAMPLE_PEAK] = "peak_bytes",
                                                         [SAMPLE_OTHER] = "other_live_bytes"};

static const struct {
  const char *name, *what, *n[3];
} lists[SAMPLE_LISTS] = {
    [SAMPLE_MEMORY] = {"memory", "kind", {"live_bytes", "blocks", "peak_bytes"}},
    [SAMPLE_COPIES] = {"copies", "direction", {"count", "bytes", NULL}},
    [SAMPLE_WAITS] = {"waits", "cause", {"count", "ns", NULL}},
    [SAMPLE_HITS] = {"cache_hits", "kind", {"count", "bytes", NULL}},
    [SAMPLE_MISSES] = {"cache_misses", "kind", {"count", "bytes", NULL}},
    [SAMPLE_CACHED] = {"cached", "kind", {"count", "bytes", NULL}},
    [SAMPLE_POOLED] = {"pooled", "kind", {"count", "bytes", NULL}},
    [SAMPLE_USED] = {"used", "kind", {"count", "bytes", NULL}},
    [SAMPLE_FAILURES] = {"failures", "kind", {"count", "bytes", NULL}},
    [SAMPLE_SITES] = {"sites", "site", {"live_bytes", "blocks", NULL}}};

/* ---- pieces ---------------------------------------------------------------------------------- */

static weir_status read_text(json_reader *j, const char **out)
{
  char *text;
  weir_status st = json_reader_string(j, &text);
  if (!st) *out = text;
  return st;
}

static weir_status read_bool(json_reader *j, bool *out)
{
  const char *at = j->at;
  while (at < j->end && (*at == ' ' || *at == '\t'))
    at++;
  *out = at < j->end && *at == 't';
  return json_reader_skip(j);
}

/* One member of a row. */
static weir_status read_cell(json_reader *j, const char *key, sample_list list, sample_row *row)
{
  uint64_t device = 0;
  if (!strcmp(key, lists[list].what)) return read_text(j, &row->what);
  if (!strcmp(key, "device")) {
    weir_status st = json_reader_unsigned(j, &device);
    row->device = device < 4096 ? (int)device : SAMPLE_HOST;
    return st;
  }
  for (int i = 0; i < 3; i++)
    if (lists[list].n[i] && !strcmp(key, lists[list].n[i]))
      return json_reader_unsigned(j, &row->n[i]);
  return json_reader_skip(j);
}

static weir_status read_row(json_reader *j, sample_list list, sample_rows *rows)
{
  sample_row row = {.device = SAMPLE_HOST, .what = ""};
  bool more = true;
  char *key;
  weir_status st = json_reader_open(j, '{');
  while (!st && !(st = json_reader_next(j, '}', &more)) && more)
    if (!(st = json_reader_key(j, &key))) st = read_cell(j, key, list, &row);
  if (st || rows->count >= MOST_ROWS) return st;
  rows->row = cmd_grow(rows->row, &rows->room, rows->count, sizeof *rows->row);
  rows->row[rows->count++] = row;
  return st;
}

static weir_status read_rows(json_reader *j, sample_list list, sample_rows *rows)
{
  bool more = true;
  weir_status st = json_reader_open(j, '[');
  while (!st && !(st = json_reader_next(j, ']', &more)) && more)
    st = read_row(j, list, rows);
  return st;
}

static weir_status read_member(json_reader *j, const char *key, sample_process *p)
{
  for (int i = 0; i < SAMPLE_NUMBERS; i++) {
    if (strcmp(key, number_names[i]) != 0) continue;
    weir_status st = json_reader_unsigned(j, &p->n[i]);
    if (i == SAMPLE_RANK) p->n[i]++;
    return st;
  }
  for (int i = 0; i < SAMPLE_LISTS; i++)
    if (!strcmp(key, lists[i].name)) return read_rows(j, (sample_list)i, &p->list[i]);
  if (!strcmp(key, "program")) return read_text(j, &p->program);
  if (!strcmp(key, "trace")) return read_text(j, &p->trace);
  if (!strcmp(key, "ended")) return read_bool(j, &p->ended);
  return json_reader_skip(j);
}

static weir_status read_process(json_reader *j, sample *s)
{
  bool more = true;
  char *key;
  if (s->count >= MOST_ROWS) return json_reader_skip(j);
  s->process = cmd_grow(s->process, &s->room, s->count, sizeof *s->process);
  sample_process *p = &s->process[s->count++];
  *p = (sample_process){.program = "", .trace = ""};
  weir_status st = json_reader_open(j, '{');
  while (!st && !(st = json_reader_next(j, '}', &more)) && more)
    if (!(st = json_reader_key(j, &key))) st = read_member(j, key, p);
  return st;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void keep_text(sample *s, char *text)
{
  s->text = cmd_grow(s->text, &s->text_room, s->text_count, sizeof *s->text);
  s->text[s->text_count++] = text;
}

static weir_status read_processes(json_reader *j, sample *s)
{
  bool more = true;
  weir_status st = json_reader_open(j, '[');
  while (!st && !(st = json_reader_next(j, ']', &more)) && more)
    st = read_process(j, s);
  return st;
}

static weir_status read_top_member(json_reader *j, const char *key, sample *s, const char **trace)
{
  uint64_t n = 0;
  weir_status st = WEIR_OK;
  if (!strcmp(key, "processes")) return read_processes(j, s);
  if (!strcmp(key, "trace")) return read_text(j, trace);
  const bool time = !strcmp(key, "time_ns"), since = !strcmp(key, "since_ns"),
             own = !strcmp(key, "own_ns");
  if (!time && !since && !own) return json_reader_skip(j);
  st = json_reader_unsigned(j, &n);
  if (time && n > s->time_ns) s->time_ns = n;
  if (since && n > s->since_ns) s->since_ns = n;
  if (own) s->own_ns += n;
  return st;
}

bool sample_add_top(sample *s, char *text)
{
  json_reader j = json_reader_of(text, strlen(text));
  const unsigned before = s->count;
  const char *trace = "";
  bool more = true;
  char *key;
  keep_text(s, text);
  weir_status st = json_reader_open(&j, '{');
  while (!st && !(st = json_reader_next(&j, '}', &more)) && more)
    if (!(st = json_reader_key(&j, &key))) st = read_top_member(&j, key, s, &trace);
  if (!st) st = json_reader_finish(&j);
  for (unsigned i = before; i < s->count; i++)
    s->process[i].trace = trace;
  return !st;
}

bool sample_add_ps(sample *s, char *text)
{
  bool good = true;
  keep_text(s, text);
  for (char *line = text; *line && good;) {
    const size_t n = strcspn(line, "\n");
    json_reader j = json_reader_of(line, n);
    good = read_process(&j, s) == WEIR_OK && json_reader_finish(&j) == WEIR_OK;
    line += n + (line[n] == '\n');
  }
  return good;
}

void sample_clear(sample *s)
{
  for (unsigned i = 0; i < s->text_count; i++)
    free(s->text[i]);
  for (unsigned i = 0; i < s->count; i++)
    for (int k = 0; k < SAMPLE_LISTS; k++)
      free(s->process[i].list[k].row);
  free(s->text);
  free(s->process);
  *s = (sample){0};
}

const sample_process *sample_find(const sample *s, uint64_t pid)
{
  for (unsigned i = 0; i < s->count; i++)
    if (s->process[i].n[SAMPLE_PID] == pid) return &s->process[i];
  return NULL;
}

const sample_row *sample_find_row(const sample_rows *rows, const sample_row *row)
{
  for (unsigned i = 0; i < rows->count; i++)
    if (rows->row[i].device == row->device && !strcmp(rows->row[i].what, row->what))
      return &rows->row[i];
  return NULL;
}
