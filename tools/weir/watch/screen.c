/* screen.c: see screen.h. The screen is lines that are cut and counted in one place; below the
 * processes, what there is stands left and what was done right. */
#include "tools/weir/watch/screen.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/json.h"
#include "reports/base/escape.h"
#include "reports/base/units.h"
#include "tools/weir/base/cmd.h"

enum { MOST_LINES = 64, LINE = 512, NARROW = 80 };

typedef struct block {
  char line[MOST_LINES][LINE];
  unsigned count;
} block;

typedef struct printer {
  FILE *out;
  const screen *s;
  unsigned lines;
} printer;

const char *screen_sort_name(int sort)
{
  static const char *const names[SORTS] = {"live", "peak", "copied", "waits", "events", "pid"};
  return sort >= 0 && sort < SORTS ? names[sort] : "live";
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Prints `text` in `columns` columns: cut, and with blanks behind it where `full`. */
static void put_cut(FILE *out, const char *text, unsigned columns, bool full)
{
  const unsigned char *at = (const unsigned char *)text, *end = at + strlen(text);
  unsigned used = 0;
  for (; at < end && used < columns; used++) {
    const unsigned n = utf8_sequence(at, end);
    if (n && (n > 1 || (*at >= ' ' && *at != 127)))
      (void)fwrite(at, 1, n, out);
    else
      (void)fputc('?', out);
    at += n ? n : 1;
  }
  while (full && used++ < columns)
    (void)fputc(' ', out);
}

static bool has_room(const printer *p)
{
  return !p->s->rows || p->lines < p->s->rows;
}

__attribute__((format(printf, 2, 3))) static void put_line(printer *p, const char *format, ...)
{
  char text[LINE];
  va_list args;
  if (!has_room(p)) return;
  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  put_cut(p->out, text, p->s->columns, false);
  (void)fputc('\n', p->out);
  p->lines++;
}

__attribute__((format(printf, 2, 3))) static void add_line(block *b, const char *format, ...)
{
  va_list args;
  if (b->count == MOST_LINES) return;
  va_start(args, format);
  (void)vsnprintf(b->line[b->count++], LINE, format, args);
  va_end(args);
}

static void put_beside(printer *p, const block *left, const block *right)
{
  const unsigned width = p->s->columns / 2;
  for (unsigned i = 0; (i < left->count || i < right->count) && has_room(p); i++) {
    put_cut(p->out, i < left->count ? left->line[i] : "", width, true);
    put_cut(p->out, i < right->count ? right->line[i] : "", p->s->columns - width, false);
    (void)fputc('\n', p->out);
    p->lines++;
  }
}

/* ---- sums and rates -------------------------------------------------------------------------- */

uint64_t screen_live(const sample *s)
{
  uint64_t live = 0;
  for (unsigned i = 0; i < s->count; i++)
    if (!s->process[i].ended) live += s->process[i].n[SAMPLE_LIVE];
  return live;
}

/* Rows of all processes together; what is there now only of those that live. */
static sample_rows sum_rows(const sample *s, sample_list list, bool of_now)
{
  sample_rows sum = {0};
  for (unsigned i = 0; s && i < s->count; i++) {
    const sample_rows *rows = &s->process[i].list[list];
    for (unsigned k = 0; k < rows->count && !(of_now && s->process[i].ended); k++) {
      sample_row *row = (sample_row *)(uintptr_t)sample_find_row(&sum, &rows->row[k]);
      if (!row) {
        sum.row = cmd_grow(sum.row, &sum.room, sum.count, sizeof *sum.row);
        row = &sum.row[sum.count++];
        *row = (sample_row){.device = rows->row[k].device, .what = rows->row[k].what};
      }
      for (int n = 0; n < 3; n++)
        row->n[n] += rows->row[k].n[n];
    }
  }
  return sum;
}

/* Rows of one kind alone, whatever the device. */
static uint64_t sum_of(const sample_rows *rows, int n, const char *what)
{
  uint64_t sum = 0;
  for (unsigned i = 0; i < rows->count; i++)
    if (!what || !strcmp(rows->row[i].what, what)) sum += rows->row[i].n[n];
  return sum;
}

/* Seconds between the samples, 0: there is one only. */
static double seconds_of(const screen *s)
{
  if (!s->before || s->now->time_ns <= s->before->time_ns) return 0;
  return (double)(s->now->time_ns - s->before->time_ns) * 1e-9;
}

static uint64_t rate_of(const screen *s, uint64_t now, uint64_t before)
{
  const double seconds = seconds_of(s);
  return seconds > 0 && now > before ? (uint64_t)((double)(now - before) / seconds + 0.5) : 0;
}

/* Parts of a second a second, in percent. */
static double share_of(const screen *s, uint64_t now_ns, uint64_t before_ns)
{
  return (double)rate_of(s, now_ns, before_ns) * 1e-7;
}

/* Titles of figures that lack what was allocated before counting began have a star, which a line
 * explains. */
static const char *title_of(const screen *s, const char *whole, const char *partial)
{
  return s->now->since_ns ? partial : whole;
}

/* ---- processes ------------------------------------------------------------------------------- */

typedef struct shown {
  const sample_process *p;
  uint64_t copied, waited, events; /* a second: bytes, ns, events */
  uint64_t key;
} shown;

static shown show_process(const screen *s, const sample_process *p)
{
  const sample_process *b = s->before ? sample_find(s->before, p->n[SAMPLE_PID]) : NULL;
  shown x = {.p = p};
  if (b) {
    x.copied = rate_of(s, sum_of(&p->list[SAMPLE_COPIES], 1, NULL),
                       sum_of(&b->list[SAMPLE_COPIES], 1, NULL));
    x.waited = rate_of(s, sum_of(&p->list[SAMPLE_WAITS], 1, NULL),
                       sum_of(&b->list[SAMPLE_WAITS], 1, NULL));
    x.events = rate_of(s, p->n[SAMPLE_EVENTS], b->n[SAMPLE_EVENTS]);
  }
  const uint64_t keys[SORTS] = {
      p->ended ? 0 : p->n[SAMPLE_LIVE], p->n[SAMPLE_PEAK], x.copied, x.waited, x.events,
      UINT64_MAX - p->n[SAMPLE_PID]};
  x.key = keys[s->sort];
  return x;
}

static int most_first(const void *a, const void *b)
{
  const shown *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? 1 : -1;
  return (x->p->n[SAMPLE_PID] > y->p->n[SAMPLE_PID]) - (x->p->n[SAMPLE_PID] < y->p->n[SAMPLE_PID]);
}

static void put_process(printer *p, const shown *x)
{
  char pid[24] = "others", rank[24] = "-", name[64];
  const char *slash = strrchr(x->p->program, '/'), *program = slash ? slash + 1 : x->p->program;
  const unsigned wide = p->s->columns > NARROW + 20 ? 30 : 11;
  if (x->p->n[SAMPLE_PID]) (void)snprintf(pid, sizeof pid, "%" PRIu64, x->p->n[SAMPLE_PID]);
  if (x->p->n[SAMPLE_RANK]) (void)snprintf(rank, sizeof rank, "%" PRIu64, x->p->n[SAMPLE_RANK] - 1);
  (void)snprintf(name, sizeof name, "%.*s", (int)wide, program);
  put_line(p, "%7s %4s %-*s %10s %10s %11s %4.0f%% %8s %5s", pid, rank, (int)wide, name,
           x->p->ended ? "ended" : BYTES(x->p->n[SAMPLE_LIVE]), BYTES(x->p->n[SAMPLE_PEAK]),
           wr_speed(x->copied, UINT64_C(1000000000)).text, (double)x->waited * 1e-7,
           COUNT(x->events), COUNT(x->p->n[SAMPLE_DROPPED]));
}

static void put_processes(printer *p)
{
  const sample *now = p->s->now;
  const unsigned wide = p->s->columns > NARROW + 20 ? 30 : 11;
  unsigned most = p->s->rows ? (p->s->rows < 40 ? 4 : 16) : now->count;
  shown *all = cmd_alloc((now->count + 1) * sizeof *all);
  for (unsigned i = 0; i < now->count; i++)
    all[i] = show_process(p->s, &now->process[i]);
  qsort(all, now->count, sizeof *all, most_first);
  put_line(p, "%7s %4s %-*s %10s %10s %11s %5s %8s %5s", "PID", "RANK", (int)wide, "PROGRAM",
           title_of(p->s, "LIVE", "LIVE*"), title_of(p->s, "PEAK", "PEAK*"), "COPIED", "WAITS",
           "EVENTS/S", "DROPS");
  for (unsigned i = 0; i < now->count && i < most; i++)
    put_process(p, &all[i]);
  if (now->count > most) put_line(p, "%8s", "…");
  free(all);
}

/* ---- what there is, and what was done -------------------------------------------------------- */

static void device_text(char out[16], int device)
{
  if (device == SAMPLE_HOST)
    (void)snprintf(out, 16, "host");
  else
    (void)snprintf(out, 16, "%d", device);
}

static void add_memory(block *b, const screen *s)
{
  sample_rows rows = sum_rows(s->now, SAMPLE_MEMORY, true);
  char device[16];
  add_line(b, "%6s %-9s %10s %10s", "DEVICE", "MEMORY", title_of(s, "LIVE", "LIVE*"),
           title_of(s, "PEAK", "PEAK*"));
  for (unsigned i = 0; i < rows.count; i++) {
    device_text(device, rows.row[i].device);
    add_line(b, "%6s %-9s %10s %10s", device, rows.row[i].what, BYTES(rows.row[i].n[0]),
             BYTES(rows.row[i].n[2]));
  }
  free(rows.row);
}

static void add_used(block *b, const screen *s)
{
  static const struct {
    sample_list list;
    const char *name;
  } kinds[] = {{SAMPLE_USED, "in use"}, {SAMPLE_CACHED, "cached"}, {SAMPLE_POOLED, "in pools"}};
  char device[16];
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    sample_rows rows = sum_rows(s->now, kinds[k].list, true);
    for (unsigned i = 0; i < rows.count; i++) {
      device_text(device, rows.row[i].device);
      if (rows.row[i].n[1])
        add_line(b, "%6s %-9s %10s", device, kinds[k].name, BYTES(rows.row[i].n[1]));
    }
    free(rows.row);
  }
}

static void add_copies(block *b, const screen *s)
{
  sample_rows now = sum_rows(s->now, SAMPLE_COPIES, false),
              before = sum_rows(s->before, SAMPLE_COPIES, false);
  static const char *const ways[] = {"h2d", "d2h", "d2d", "p2p", "h2h", "unknown"};
  add_line(b, "%-8s %10s %12s", "COPIES", "CALLS/S", "BYTES/S");
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    if (!sum_of(&now, 0, ways[i])) continue;
    const uint64_t calls = rate_of(s, sum_of(&now, 0, ways[i]), sum_of(&before, 0, ways[i])),
                   bytes = rate_of(s, sum_of(&now, 1, ways[i]), sum_of(&before, 1, ways[i]));
    add_line(b, "%-8s %10s %12s", ways[i], COUNT(calls),
             wr_speed(bytes, UINT64_C(1000000000)).text);
  }
  free(now.row);
  free(before.row);
}

static void add_waits(block *b, const screen *s)
{
  sample_rows now = sum_rows(s->now, SAMPLE_WAITS, false),
              before = sum_rows(s->before, SAMPLE_WAITS, false);
  add_line(b, "%-8s %10s %12s", "WAITS", "CALLS/S", "OF A THREAD");
  for (unsigned i = 0; i < now.count; i++) {
    const sample_row *was = sample_find_row(&before, &now.row[i]);
    if (!now.row[i].n[0]) continue;
    add_line(b, "%-8s %10s %11.1f%%", now.row[i].what,
             COUNT(rate_of(s, now.row[i].n[0], was ? was->n[0] : 0)),
             share_of(s, now.row[i].n[1], was ? was->n[1] : 0));
  }
  free(now.row);
  free(before.row);
}

/* Sums of a list over all processes, before and now. */
static uint64_t list_rate(const screen *s, sample_list list, uint64_t *all)
{
  sample_rows now = sum_rows(s->now, list, false), before = sum_rows(s->before, list, false);
  const uint64_t rate = s->before ? rate_of(s, sum_of(&now, 0, NULL), sum_of(&before, 0, NULL)) : 0;
  *all = sum_of(&now, 0, NULL);
  free(now.row);
  free(before.row);
  return rate;
}

static void add_cache(block *b, const screen *s)
{
  uint64_t hits, misses, failures;
  const uint64_t hit_rate = list_rate(s, SAMPLE_HITS, &hits);
  (void)list_rate(s, SAMPLE_MISSES, &misses);
  (void)list_rate(s, SAMPLE_FAILURES, &failures);
  if (hits + misses)
    add_line(b, "CACHE    %s hits/s, %s of all", COUNT(hit_rate),
             wr_percent(hits, hits + misses).text);
  if (failures) add_line(b, "FAILED   %s allocations", COUNT(failures));
}

/* ---- places, history, head ------------------------------------------------------------------- */

static int most_live_first(const void *a, const void *b)
{
  const sample_row *x = a, *y = b;
  if (x->n[0] != y->n[0]) return x->n[0] < y->n[0] ? 1 : -1;
  return strcmp(x->what, y->what);
}

static void put_places(printer *p)
{
  sample_rows rows = sum_rows(p->s->now, SAMPLE_SITES, true);
  uint64_t other = 0;
  for (unsigned i = 0; i < p->s->now->count; i++)
    other += p->s->now->process[i].n[SAMPLE_OTHER];
  if (rows.count) qsort(rows.row, rows.count, sizeof *rows.row, most_live_first);
  put_line(p, "%10s %8s  %s", "LIVE", "BLOCKS", "PLACE");
  for (unsigned i = 0; i < rows.count && i < 20; i++)
    put_line(p, "%10s %8s  %s", BYTES(rows.row[i].n[0]), COUNT(rows.row[i].n[1]), rows.row[i].what);
  if (other) put_line(p, "%10s %8s  %s", BYTES(other), "", "other");
  free(rows.row);
}

static void put_history(printer *p)
{
  static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, *const plain[] = {
                                                                                  "_", ".", "-",
                                                                                  "=", "+", "*",
                                                                                  "#", "@"};
  const screen *s = p->s;
  char text[LINE], *at = text;
  uint64_t most = 1;
  unsigned room = s->columns > 40 ? s->columns - 36 : 4;
  if (room > s->history_count) room = s->history_count;
  const uint64_t *from = s->history + (s->history_count - room);
  for (unsigned i = 0; i < room; i++)
    if (from[i] > most) most = from[i];
  for (unsigned i = 0; i < room; i++) {
    const unsigned level = (unsigned)((double)from[i] / (double)most * 7.0 + 0.5);
    at = stpcpy(at, (s->blocks ? bars : plain)[level < 8 ? level : 7]);
  }
  *at = 0;
  put_line(p, "%-5s%10s  at most %10s  %s", title_of(s, "live", "live*"),
           BYTES(screen_live(s->now)), BYTES(most > 1 ? most : 0), text);
}

static void put_time(char out[16], uint64_t ns)
{
  const time_t seconds = (time_t)(ns / UINT64_C(1000000000));
  struct tm t;
  if (!localtime_r(&seconds, &t) || !strftime(out, 16, "%H:%M:%S", &t)) out[0] = 0;
}

static void put_top(printer *p)
{
  const screen *s = p->s;
  char now[16], since[16], span[40] = "of whole runs";
  unsigned live = 0;
  put_time(now, s->now->time_ns);
  put_time(since, s->now->since_ns);
  if (s->now->since_ns) (void)snprintf(span, sizeof span, "since %s", since);
  for (unsigned i = 0; i < s->now->count; i++)
    live += !s->now->process[i].ended;
  put_line(p, "weir top  %s  %s, %s; by %s; collector %.1f%%", now,
           OF(live, "process", "processes"), span, screen_sort_name(s->sort),
           s->before ? share_of(s, s->now->own_ns, s->before->own_ns) : 0.0);
}

static void put_note(printer *p)
{
  char since[16];
  if (!p->s->now->since_ns) return;
  put_time(since, p->s->now->since_ns);
  put_line(p, "* allocated since %s alone: of whole runs with --keep, --dormant, --metrics", since);
}

void screen_print(FILE *out, const screen *s)
{
  printer p = {out, s, 0};
  block *left = cmd_alloc(sizeof *left), *right = cmd_alloc(sizeof *right);
  put_top(&p);
  put_history(&p);
  put_note(&p);
  put_line(&p, "%s", "");
  put_processes(&p);
  put_line(&p, "%s", "");
  add_memory(left, s);
  add_used(left, s);
  add_copies(right, s);
  add_waits(right, s);
  add_cache(right, s);
  put_beside(&p, left, right);
  put_line(&p, "%s", "");
  put_places(&p);
  free(left);
  free(right);
}
