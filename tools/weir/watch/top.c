/* top.c: weir top: what programs under Weir hold and do, once a second.
 *
 * Each second all collectors that are meant are asked; what they answer and what they answered
 * before become a screen (screen.c). On a terminal it is drawn over the one before, with plain
 * escapes on the alternate screen, which is left on every way out. */
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "tools/weir/base/commands.h"
#include "tools/weir/collect/control.h"
#include "tools/weir/watch/screen.h"

enum { ASK_MS = 5000, PLAIN_COLUMNS = 100 };

typedef enum style { STYLE_SCREEN, STYLE_PLAIN, STYLE_JSON } style;

typedef struct top {
  const char *operand; /* NULL: all of this user's */
  long pid;            /* of the one process that is meant; 0: all of a collector */
  char *dir;           /* of the one collector that is meant; owned */
  style style;
  sample samples[2];
  unsigned turn;    /* which of them is newer */
  bool some, asked; /* a collector answered; there was one before */
  screen screen;
  char *answers; /* of STYLE_JSON: objects with commas between them; owned */
} top;

static volatile sig_atomic_t ended;

static void on_end(int signal)
{
  (void)signal;
  ended = 1;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static bool ask_one(void *context, const char *dir, const char *trace)
{
  static const char *const words[] = {"top", NULL};
  top *t = context;
  control_answer a = control_ask(dir, words, ASK_MS);
  (void)trace;
  if (!a.good) {
    free(a.text);
    return true;
  }
  t->some = true;
  if (t->style == STYLE_JSON) {
    char *joined = cmd_format("%s%s%.*s", t->answers ? t->answers : "", t->answers ? ", " : "",
                              (int)strcspn(a.text, "\n"), a.text);
    free(t->answers);
    t->answers = joined;
  }
  if (!sample_add_top(&t->samples[t->turn], a.text)) t->some = false;
  return true;
}

/* Of a process that is meant, its row alone. */
static void keep_meant(sample *s, long pid)
{
  unsigned kept = 0;
  for (unsigned i = 0; i < s->count; i++) {
    sample_process *p = &s->process[i];
    if (p->n[SAMPLE_PID] == (uint64_t)pid) {
      sample_process other = s->process[kept];
      s->process[kept++] = *p;
      s->process[i] = other;
    }
  }
  for (unsigned i = kept; i < s->count && kept; i++)
    for (int k = 0; k < SAMPLE_LISTS; k++)
      free(s->process[i].list[k].row);
  if (kept) s->count = kept;
}

/* Returns false when nobody answers. */
static bool take_sample(top *t)
{
  t->turn = !t->turn;
  sample *now = &t->samples[t->turn];
  sample_clear(now);
  free(t->answers);
  t->answers = NULL;
  t->some = false;
  if (t->dir)
    (void)ask_one(t, t->dir, "");
  else
    control_each(ask_one, t);
  if (t->pid) keep_meant(now, t->pid);
  screen *s = &t->screen;
  if (s->history_count == SCREEN_HISTORY)
    memmove(s->history, s->history + 1, --s->history_count * sizeof *s->history);
  s->history[s->history_count++] = screen_live(now);
  s->now = now;
  s->before = t->asked ? &t->samples[!t->turn] : NULL;
  t->asked = true;
  return t->some;
}

/* ---- the terminal ---------------------------------------------------------------------------- */

static struct termios before_us;
static bool in_screen;

static void leave_screen(void)
{
  static const char out[] = "\x1b[?25h\x1b[?1049l";
  if (!in_screen) return;
  in_screen = false;
  (void)!write(STDOUT_FILENO, out, sizeof out - 1);
  (void)tcsetattr(STDIN_FILENO, TCSANOW, &before_us);
}

/* Keys come one by one, without an echo; that of job control comes as a key. */
static void enter_screen(void)
{
  static const char in[] = "\x1b[?1049h\x1b[?25l\x1b[2J";
  if (tcgetattr(STDIN_FILENO, &before_us) != 0) return;
  struct termios raw = before_us;
  raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  raw.c_cc[VSUSP] = _POSIX_VDISABLE;
  if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0) return;
  in_screen = true;
  (void)atexit(leave_screen);
  (void)!write(STDOUT_FILENO, in, sizeof in - 1);
}

static void measure_screen(screen *s)
{
  struct winsize size;
  s->columns = 80;
  s->rows = 24;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return;
  if (size.ws_col) s->columns = size.ws_col;
  if (size.ws_row) s->rows = size.ws_row;
}

/* Each line is cleared behind its end, and the screen below the last: nothing flickers. */
static void draw_screen(const screen *s)
{
  char *text = NULL, *all = NULL;
  size_t bytes = 0, all_bytes = 0;
  FILE *out = open_memstream(&text, &bytes), *drawn = open_memstream(&all, &all_bytes);
  if (out) screen_print(out, s);
  if (out) (void)fclose(out);
  if (drawn) {
    (void)fputs("\x1b[H", drawn);
    for (const char *at = text; at && *at;) {
      const size_t n = strcspn(at, "\n");
      const bool last = !at[n] || !at[n + 1];
      (void)fprintf(drawn, "%.*s\x1b[K%s", (int)n, at, last ? "" : "\r\n");
      at += n + (at[n] == '\n');
    }
    (void)fputs("\x1b[J", drawn);
    (void)fclose(drawn);
  }
  for (size_t sent = 0; sent < all_bytes;) {
    ssize_t n = write(STDOUT_FILENO, all + sent, all_bytes - sent);
    if (n <= 0 && errno != EINTR) break;
    if (n > 0) sent += (size_t)n;
  }
  free(text);
  free(all);
}

/* Returns false when the key ends it. */
static bool take_key(top *t, char key)
{
  static const char keys[SORTS + 1] = "lpcwei";
  const char *at = key ? strchr(keys, key) : NULL;
  if (at) t->screen.sort = (screen_sort)(at - keys);
  return key != 'q' && key != 'Q' && key != 3;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void print_json(const top *t)
{
  printf("{\"time_ns\": %llu, \"collectors\": [%s]}\n", (unsigned long long)t->screen.now->time_ns,
         t->answers ? t->answers : "");
  (void)fflush(stdout);
}

static void show_sample(top *t)
{
  if (t->style == STYLE_SCREEN) {
    measure_screen(&t->screen);
    draw_screen(&t->screen);
  } else if (t->style == STYLE_JSON) {
    print_json(t);
  } else {
    screen_print(stdout, &t->screen);
    (void)putchar('\n');
    (void)fflush(stdout);
  }
}

/* Waits until `due` (CLOCK_MONOTONIC, ns), taking keys. Returns false when it is to end. */
static bool wait_until(top *t, uint64_t due)
{
  for (;;) {
    const uint64_t now = clock_monotonic_ns();
    if (ended) return false;
    if (now >= due) return true;
    struct pollfd p = {.fd = in_screen ? STDIN_FILENO : -1, .events = POLLIN};
    char key;
    if (poll(&p, 1, (int)((due - now) / 1000000 + 1)) <= 0) continue;
    const ssize_t n = read(STDIN_FILENO, &key, 1);
    if (n <= 0 || !take_key(t, key)) return false;
    draw_screen(&t->screen);
  }
}

static int run_top(top *t, long interval, long count)
{
  for (long i = 0; !count || i < count; i++) {
    const uint64_t due = clock_monotonic_ns() + (uint64_t)interval * UINT64_C(1000000000);
    if (!take_sample(t)) {
      leave_screen();
      if (!i) cmd_message("nothing runs under Weir that answers; 'weir ps' lists what does.");
      return i ? 0 : CMD_FAILED;
    }
    show_sample(t);
    if (ferror(stdout)) break;
    if ((!count || i + 1 < count) && !wait_until(t, due)) break;
  }
  leave_screen();
  return 0;
}

static bool find_meant(top *t)
{
  if (!t->operand) return true;
  t->dir = control_find(t->operand);
  long pid;
  if (t->dir && cmd_number(t->operand, 1, INT32_MAX, &pid) && control_records(t->dir, pid))
    t->pid = pid;
  return t->dir != NULL;
}

static bool shows_blocks(void)
{
  const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
  for (int i = 0; i < 3; i++) {
    const char *value = getenv(names[i]);
    if (value && *value) return strstr(value, "UTF-8") || strstr(value, "utf8");
  }
  return false;
}

int top_main(const cmd *c, int argc, char **argv)
{
  cmd_line line = {0};
  int at = cmd_parse(c, argc, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  if (argc - at > 1) return cmd_usage(c, "weir top takes one PID or TRACE, not %d", argc - at);
  top t = {.operand = at < argc ? argv[at] : NULL};
  const bool json = line.value[OPT_WATCH_JSON].given, plain = line.value[OPT_PLAIN].given;
  if (json && plain) return cmd_usage(c, "--json and --plain exclude each other");
  const bool terminal = isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);
  t.style = json ? STYLE_JSON : plain || !terminal ? STYLE_PLAIN : STYLE_SCREEN;
  t.screen.columns = PLAIN_COLUMNS;
  t.screen.sort = (screen_sort)cmd_number_of(&line, OPT_TOP_SORT, SORT_LIVE);
  t.screen.blocks = shows_blocks();
  if (!find_meant(&t)) return CMD_FAILED;
  const struct sigaction end = {.sa_handler = on_end};
  (void)sigaction(SIGINT, &end, NULL);
  (void)sigaction(SIGTERM, &end, NULL);
  (void)sigaction(SIGHUP, &end, NULL);
  if (t.style == STYLE_SCREEN) enter_screen();
  int status =
      run_top(&t, cmd_number_of(&line, OPT_INTERVAL, 1), cmd_number_of(&line, OPT_SAMPLES, 0));
  sample_clear(&t.samples[0]);
  sample_clear(&t.samples[1]);
  free(t.answers);
  free(t.dir);
  return status;
}
