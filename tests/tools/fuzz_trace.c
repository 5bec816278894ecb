/* fuzz_trace.c: weir's reading commands over damaged traces.
 *
 *   fuzz_trace SECONDS SEED TRACE...    for so long; 0: the one round of this seed
 *
 * A round copies one of the traces, does it damage (damage.h), and reads it by a few command
 * lines of all that weir has: reports, formats, groups, filters, exports, pages, differences,
 * budgets, models. A command is weir's own main(), in a child of ours: it must end by itself,
 * with one of weir's exit statuses, after a bounded number of SQLite's steps and bytes, and
 * little of a processor; say in one sentence why, when it does not work; write text that is
 * text, JSON that is JSON; and leave the trace as it is. What did not is kept, with what was
 * done to it, and how to do it again. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "reports/base/util.h"
#include "tests/tools/damage.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

int weir_main(int argc, char **argv); /* main() of tools/weir/main.c */

enum {
  COMMANDS = 8,           /* that read a damaged trace */
  WORDS = 24,             /* of a command line */
  PROCESSOR_SECONDS = 60, /* a command takes well below one */
  STEP = 100000,          /* instructions of SQLite's, between looks at how many there were */
  RULE_SHARE = 50         /* of the time that a rule may take */
};
#define MOST_STEPS                                                                                 \
  (UINT64_C(20000000000) / STEP)       /* of a command; without damage it takes 10 M instructions */
#define MOST_BYTES (UINT64_C(1) << 30) /* of a file that it writes */

/* ---- command lines --------------------------------------------------------------------------- */

typedef enum output_kind { TEXT, JSON, JSON_LINES, BYTES } output_kind;

typedef struct line {
  char words[WORDS][256];
  int count;
  output_kind out, file; /* what stdout gets, and `made` */
  bool judges;           /* 1 is an answer, too */
  bool changes;          /* the trace */
} line;

static char folder[64]; /* ours, the working directory; removed at the end */
static uint64_t state;

static uint64_t draw_below(uint64_t below)
{
  return damage_draw(&state, below);
}

__attribute__((format(printf, 2, 3))) static void add_word(line *l, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  if (l->count < WORDS) (void)vsnprintf(l->words[l->count++], sizeof *l->words, format, list);
  va_end(list);
}

static const char *one_of(const char *const *names, size_t count)
{
  return names[draw_below(count)];
}

static void add_group(line *l)
{
  static const char *const by[] = {"site",   "stack",  "module",  "range", "stream",
                                   "device", "thread", "process", "rank",  "function"};
  add_word(l, "--by=%s", one_of(by, COUNT(by)));
}

static void add_filters(line *l)
{
  if (!draw_below(5)) add_word(l, "--from=%d%%", (int)draw_below(101));
  if (!draw_below(5)) add_word(l, "--to=%d%s", (int)draw_below(101), draw_below(2) ? "%" : "ms");
  if (!draw_below(30)) add_word(l, "--process=%d", 1 + (int)draw_below(4));
  if (!draw_below(8)) add_word(l, "--range=step");
}

static void add_widths(line *l)
{
  if (!draw_below(4)) add_word(l, "--top=%d", 1 + (int)draw_below(1000));
  if (!draw_below(4)) add_word(l, "--depth=%d", (int)draw_below(65));
  if (!draw_below(3))
    add_word(l, "--width=%d", (int)(draw_below(2) ? draw_below(200) : draw_below(100000)));
  if (!draw_below(4)) add_word(l, "--min-cost=1ns");
}

static void make_report(line *l)
{
  static const char *const what[] = {"summary", "transfers", "waits",    "memory", "leaks",   "oom",
                                     "devices", "idle",      "coverage", "cache",  "findings"};
  static const char *const formats[] = {"text", "json", "csv", "markdown", "json/1"};
  enum { GROUPED = 6 /* of them are by something */ };
  uint64_t format = draw_below(COUNT(formats)), kind = draw_below(COUNT(what));
  add_word(l, "report");
  add_word(l, "%s", what[kind]);
  add_word(l, "--format=%s", formats[format]);
  if (kind < GROUPED && draw_below(2)) add_group(l);
  if (draw_below(2)) add_filters(l);
  add_widths(l);
  add_word(l, "t.db");
  l->out = strstr(formats[format], "json") ? JSON : TEXT;
}

static void make_page(line *l)
{
  add_word(l, "report");
  add_word(l, "--html");
  add_word(l, "-omade");
  if (draw_below(2)) add_word(l, "--min-cost=1ns");
  add_word(l, "t.db");
  l->file = BYTES;
}

static void make_trace(line *l)
{
  static const char *const formats[] = {"text", "csv", "jsonl"};
  static const char *const filters[] = {
      "--kind=copy,alloc", "--function=cuda*", "--range=*",     "--device=0", "--stream=legacy",
      "--thread=1",        "--min-bytes=1K",   "--min-ns=10us", "--from=1ms", "--to=1s"};
  uint64_t format = draw_below(COUNT(formats));
  add_word(l, "trace");
  add_word(l, "--format=%s", formats[format]);
  for (uint64_t n = draw_below(3); n; n--)
    add_word(l, "%s", one_of(filters, COUNT(filters)));
  add_word(l, "t.db");
  l->out = format == 2 ? JSON_LINES : TEXT;
}

static void make_stats(line *l)
{
  static const char *const names[] = {
      "cuda_api_sum",     "cuda_api_trace",     "cuda_gpu_kern_sum",     "cuda_gpu_mem_time_sum",
      "cuda_gpu_sum",     "cuda_api_gpu_sum",   "cuda_gpu_mem_size_sum", "cuda_gpu_trace",
      "nvtx_sum",         "cuda_kern_exec_sum", "nvtx_pushpop_sum",      "nvtx_startend_sum",
      "cuda_memcpy_sync", "cuda_memcpy_async",  "cuda_memset_sync",      "cuda_api_sync",
      "gpu_gaps",         "gpu_time_util"};
  static const char *const formats[] = {"column", "table", "csv", "tsv", "json"};
  uint64_t format = draw_below(COUNT(formats));
  add_word(l, "stats");
  add_word(l, "--format=%s", formats[format]);
  if (!draw_below(3)) add_word(l, "--rows=%d", (int)draw_below(100));
  bool one = draw_below(8) > 0;
  if (one) add_word(l, "%s", one_of(names, COUNT(names)));
  add_word(l, "t.db");
  l->out = format != 4 ? TEXT : one ? JSON : BYTES;
}

static void make_export(line *l)
{
  static const struct {
    const char *name;
    output_kind kind;
  } formats[] = {{"perfetto", BYTES},
                 {"chrome", JSON},
                 {"folded", TEXT},
                 {"speedscope", JSON},
                 {"pprof", BYTES},
                 {"firefox", JSON},
                 {"csv", TEXT},
                 {"nsys", BYTES},
                 {"rmm-csv", TEXT},
                 {"pytorch-snapshot", JSON},
                 {"pytorch-pickle", BYTES}};
  static const char *const weights[] = {"calls", "host-time", "allocated", "copied",
                                        "live-at-peak"};
  uint64_t format = draw_below(COUNT(formats));
  add_word(l, "export");
  add_word(l, "--format=%s", formats[format].name);
  if (format == 2) add_word(l, "--weight=%s", one_of(weights, COUNT(weights)));
  add_word(l, "-omade");
  add_word(l, "t.db");
  l->file = formats[format].kind;
}

static void make_diff(line *l)
{
  static const char *const formats[] = {"text", "markdown", "json"};
  uint64_t format = draw_below(COUNT(formats)), order = draw_below(3);
  add_word(l, "diff");
  add_word(l, "--format=%s", formats[format]);
  if (draw_below(2)) add_word(l, "--fail-on=peak>+5%%,leaks>0,waits.count>+0,finding:certain>0");
  if (draw_below(2)) add_word(l, "--min-cost=1ns");
  add_word(l, order ? "t.db" : "good.db");
  add_word(l, order == 1 ? "good.db" : "t.db");
  l->judges = true;
  l->out = format == 2 ? JSON : TEXT;
}

static void make_check(line *l)
{
  add_word(l, "check");
  add_word(l, "--budget=budget");
  if (draw_below(2)) add_word(l, draw_below(2) ? "--junit=made" : "--markdown=made");
  add_word(l, "t.db");
  l->judges = true;
  l->file = TEXT;
}

static void make_replay(line *l)
{
  static const char *const policies[] = {"all",      "weir",  "pytorch", "pytorch-expandable",
                                         "rmm-pool", "malloc"};
  bool json = draw_below(2);
  add_word(l, "replay");
  add_word(l, "--policy=%s", one_of(policies, COUNT(policies)));
  if (json) add_word(l, "--format=json");
  if (draw_below(2)) add_word(l, "--capacity=%dM", 1 + (int)draw_below(1 << 20));
  if (!draw_below(3)) add_word(l, "--svg=made");
  add_word(l, "t.db");
  l->out = json ? JSON : TEXT;
  l->file = TEXT;
}

static void make_resolve(line *l)
{
  add_word(l, "resolve");
  add_word(l, "t.db");
  l->changes = true;
}

static void make_line(line *l)
{
  static void (*const kinds[])(line *) = {make_report, make_report, make_report, make_report,
                                          make_page,   make_trace,  make_stats,  make_export,
                                          make_export, make_diff,   make_check,  make_replay};
  *l = (line){0};
  add_word(l, "weir");
  kinds[draw_below(COUNT(kinds))](l);
}

/* ---- a command in a child -------------------------------------------------------------------- */

/* SQLite's instructions are counted in every database that is opened, whoever else wants to be
 * asked. */
int __real_sqlite3_open_v2(const char *, sqlite3 **, int, const char *);
int __wrap_sqlite3_open_v2(const char *, sqlite3 **, int, const char *);
void __real_sqlite3_progress_handler(sqlite3 *, int, int (*)(void *), void *);
void __wrap_sqlite3_progress_handler(sqlite3 *, int, int (*)(void *), void *);
void __real_wr_guard_time(void *, int64_t);
void __wrap_wr_guard_time(void *, int64_t);

static uint64_t steps; /* of a handler that is called each STEP, or more often */

static void stop_at_most(uint64_t done)
{
  steps += done;
  if (steps < MOST_STEPS * STEP) return;
  (void)fprintf(stderr, "fuzz_trace: SQLite has no end\n");
  abort();
}

static int count_steps(void *context)
{
  (void)context;
  stop_at_most(STEP);
  return 0;
}

static struct {
  int (*ask)(void *);
  void *context;
  int each;
} asked;

static int count_and_ask(void *context)
{
  (void)context;
  stop_at_most((uint64_t)asked.each);
  return asked.ask(asked.context);
}

int __wrap_sqlite3_open_v2(const char *name, sqlite3 **db, int flags, const char *vfs)
{
  int code = __real_sqlite3_open_v2(name, db, flags, vfs);
  if (*db) __real_sqlite3_progress_handler(*db, STEP, count_steps, NULL);
  return code;
}

void __wrap_sqlite3_progress_handler(sqlite3 *db, int each, int (*ask)(void *), void *context)
{
  if (ask) asked.ask = ask, asked.context = context, asked.each = each;
  __real_sqlite3_progress_handler(db, ask ? each : STEP, ask ? count_and_ask : count_steps, NULL);
}

void __wrap_wr_guard_time(void *guard, int64_t ms)
{
  __real_wr_guard_time(guard, ms / RULE_SHARE);
}

static void run_in_child(const line *l, int out, int err)
{
  static char words[WORDS][256];
  char *argv[WORDS + 1] = {NULL};
  const struct rlimit processor = {PROCESSOR_SECONDS, PROCESSOR_SECONDS},
                      file = {MOST_BYTES, MOST_BYTES};
  memcpy(words, l->words, sizeof words);
  for (int i = 0; i < l->count; i++)
    argv[i] = words[i];
  if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0 ||
      setrlimit(RLIMIT_CPU, &processor) || setrlimit(RLIMIT_FSIZE, &file))
    _exit(99);
  exit(weir_main(l->count, argv));
}

/* ---- what a command must do ------------------------------------------------------------------ */

static char wrong[512]; /* what it did not; "": nothing */

__attribute__((format(printf, 1, 2))) static void say_wrong(const char *format, ...)
{
  va_list list;
  va_start(list, format);
  if (!*wrong) (void)vsnprintf(wrong, sizeof wrong, format, list);
  va_end(list);
}

/* All of a file (new, a NUL behind it); NULL: it is not there. */
static char *read_whole(int fd, size_t *bytes)
{
  struct stat file;
  if (fd < 0 || fstat(fd, &file)) return NULL;
  char *text = malloc((size_t)file.st_size + 1);
  ssize_t n = text ? pread(fd, text, (size_t)file.st_size, 0) : -1;
  *bytes = n < 0 ? 0 : (size_t)n;
  if (text) text[*bytes] = 0;
  return text;
}

/* Nothing that a terminal would obey, and UTF-8. */
static void hold_text(const char *where, const char *text, size_t bytes)
{
  const unsigned char *at = (const unsigned char *)text;
  for (size_t i = 0; i < bytes;) {
    size_t n = wr_utf8_length(at + i, bytes - i);
    bool control = at[i] < 32 ? at[i] != '\n' && at[i] != '\t' && at[i] != '\r'
                              : at[i] == 127 || (n == 2 && at[i] == 0xc2 && at[i + 1] < 0xa0);
    if (!n || control) {
      say_wrong("%s: byte %zu of %zu is %s: 0x%02x after '%.20s'", where, i, bytes,
                n ? "a control character" : "no UTF-8", at[i], text + (i > 20 ? i - 20 : 0));
      return;
    }
    i += n;
  }
}

static void hold_json(const char *where, const char *text, size_t bytes)
{
  json_error_t error;
  json_t *j = json_loadb(text, bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
  if (!j) say_wrong("%s: no JSON: %s, at byte %d", where, error.text, error.position);
  json_decref(j);
}

static void hold_output(const char *where, output_kind kind, const char *text, size_t bytes)
{
  if (kind == TEXT) hold_text(where, text, bytes);
  if (kind == JSON) hold_json(where, text, bytes);
  for (const char *at = text; kind == JSON_LINES && at < text + bytes;) {
    const char *end = memchr(at, '\n', bytes - (size_t)(at - text));
    if (!end) end = text + bytes;
    hold_json(where, at, (size_t)(end - at));
    at = end + 1;
  }
}

/* A sentence of weir's, and no more than text; the first words may be a sanitizer's. */
static void hold_message(int status, const char *text, size_t bytes)
{
  bool works = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  hold_text("stderr", text, bytes);
  if (!works && strncmp(text, "weir: ", 6) != 0) say_wrong("it says nothing of why");
  if (!works && strstr(text, "weir help")) say_wrong("the command line is wrong");
}

static void hold_end(int status)
{
  if (WIFSIGNALED(status))
    say_wrong("signal %d%s", WTERMSIG(status),
              WTERMSIG(status) == SIGXCPU ? ": it does not end" : "");
  else if (WEXITSTATUS(status) > 2)
    say_wrong("exit status %d", WEXITSTATUS(status));
}

static void hold_files(const line *l, bool works)
{
  size_t bytes = 0;
  int fd = open("made", O_RDONLY | O_CLOEXEC);
  char *text = read_whole(fd, &bytes);
  if (text && works) hold_output("the file", l->file, text, bytes);
  free(text);
  if (fd >= 0) (void)close(fd);
  (void)unlink("made");
}

static void hold_all(const line *l, int status, int out, int err)
{
  size_t out_bytes = 0, err_bytes = 0;
  char *said = read_whole(err, &err_bytes), *text = read_whole(out, &out_bytes);
  bool answers =
      WIFEXITED(status) && (WEXITSTATUS(status) == 0 || (l->judges && WEXITSTATUS(status) == 1));
  hold_end(status);
  if (said && !answers) hold_message(status, said, err_bytes);
  if (text && answers) hold_output("stdout", l->out, text, out_bytes);
  hold_files(l, answers);
  if (*wrong && said) (void)fprintf(stderr, "%.6000s\n", said);
  free(said);
  free(text);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void copy_file(const char *from, const char *to)
{
  size_t bytes = 0;
  int in = open(from, O_RDONLY | O_CLOEXEC),
      out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  char *data = read_whole(in, &bytes);
  if (!data || out < 0 || write(out, data, bytes) != (ssize_t)bytes) {
    (void)fprintf(stderr, "fuzz_trace: cannot copy %s to %s: %s\n", from, to, strerror(errno));
    exit(2);
  }
  free(data);
  (void)close(in);
  (void)close(out);
}

/* What a file is by its bytes. */
static uint64_t sum_of(const char *path)
{
  size_t bytes = 0;
  uint64_t sum = UINT64_C(14695981039346656037);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  char *data = read_whole(fd, &bytes);
  for (size_t i = 0; data && i < bytes; i++)
    sum = (sum ^ (unsigned char)data[i]) * UINT64_C(1099511628211);
  free(data);
  if (fd >= 0) (void)close(fd);
  return sum;
}

static int temporary(void)
{
  int fd = open(".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
  if (fd < 0) {
    perror("fuzz_trace: a temporary file");
    exit(2);
  }
  return fd;
}

/* A command over t.db; wrong[] says what was. */
static void run_line(const line *l)
{
  int out = temporary(), err = temporary(), status = 0;
  uint64_t before = l->changes ? 0 : sum_of("t.db");
  (void)fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) run_in_child(l, out, err);
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  hold_all(l, status, out, err);
  if (!l->changes && sum_of("t.db") != before) say_wrong("the trace is changed");
  if (damage_written("t.db") > 0) say_wrong("a trigger was run");
  (void)close(out);
  (void)close(err);
}

static void report_wrong(uint64_t seed, const line *l, const char *what)
{
  char kept[600];
  const char *keep = getenv("FUZZ_KEEP");
  (void)snprintf(kept, sizeof kept, "%s/fuzz-%llu.db", keep ? keep : "/tmp",
                 (unsigned long long)seed);
  copy_file("t.db", kept);
  (void)fprintf(stderr, "fuzz_trace: seed %llu: %s\n ", (unsigned long long)seed, wrong);
  for (int i = 0; i < l->count; i++)
    (void)fprintf(stderr, " %s", l->words[i]);
  (void)fprintf(stderr, "\n  the trace is %s; it was damaged by:\n%s\n", kept, what);
  *wrong = 0;
}

/* One damaged trace, read by several commands. How many of them did wrong. */
static unsigned do_round(uint64_t seed, const char *trace)
{
  static char what[8192];
  unsigned failed = 0;
  line l;
  state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
  for (int i = 0; i < 8; i++)
    (void)draw_below(2);
  copy_file(trace, "t.db");
  copy_file(trace, "good.db");
  damage_trace("t.db", &state, what, sizeof what);
  for (int i = 0; i <= COMMANDS; i++) {
    make_line(&l);
    if (i == COMMANDS) {
      l = (line){0};
      add_word(&l, "weir");
      make_resolve(&l);
    }
    run_line(&l);
    if (!*wrong) continue;
    report_wrong(seed, &l, what);
    failed++;
  }
  return failed;
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *at)
{
  (void)s, (void)type, (void)at;
  return remove(path);
}

static void enter_folder(void)
{
  const char *shared = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
  (void)snprintf(folder, sizeof folder, "%s/weir-fuzz-XXXXXX", shared);
  FILE *f = mkdtemp(folder) && !chdir(folder) ? fopen("budget", "w") : NULL;
  if (!f) {
    perror("fuzz_trace: a folder");
    exit(2);
  }
  (void)fputs("peak <= 12 GiB\ndevice 0: peak <= 8 GiB\nleaks.bytes == 0\nrange \"step\": "
              "waits.count == 0\n"
              "site \"main\": transfers.h2d.bytes <= 1 GiB\nfinding certain == 0\n",
              f);
  (void)fclose(f);
  (void)setenv("TMPDIR", folder, 1);
}

int main(int argc, char **argv)
{
  if (argc < 4) {
    (void)fprintf(stderr, "usage: fuzz_trace SECONDS SEED TRACE...\n");
    return 2;
  }
  time_t end = time(NULL) + atol(argv[1]);
  uint64_t seed = strtoull(argv[2], NULL, 10), rounds = 0;
  unsigned failed = 0;
  char *traces[64];
  int count = 0;
  for (int i = 3; i < argc && count < 64; i++)
    traces[count++] = realpath(argv[i], NULL);
  enter_folder();
  do
    failed += do_round(seed + rounds, traces[(seed + rounds) % (uint64_t)count]);
  while (rounds++, time(NULL) < end);
  (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  for (int i = 0; i < count; i++)
    free(traces[i]);
  printf("fuzz_trace: %llu damaged traces from seed %llu on, %u failures\n",
         (unsigned long long)rounds, (unsigned long long)seed, failed);
  return failed > 0;
}
