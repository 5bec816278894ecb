/* test_watch.c: weir ps, weir top and pages of metrics: what they print of a program that runs is
 * what its trace says; whoever asks, properly or not, changes nothing of the run. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tools/command.h"

#define RUN    "exec $WEIR run --sim --force -o t.db "
#define HOLDER "$BUILD/tests/tools/holder "

/* ---- a program that is recorded -------------------------------------------------------------- */

typedef struct held {
  pid_t weir;
  int in, out; /* the program's */
} held;

/* Starts a program and waits until it has done its first half. */
static held hold_program(const char *options, const char *arguments)
{
  int in[2], out[2];
  ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
  ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
  held h = {.in = in[1], .out = out[0]};
  (void)setenv("WEIR_SPOOL_ROOT", "/dev/shm", 0);
  h.weir = start(in[0], out[1], RUN "%s -- " HOLDER "%s", options, arguments);
  (void)close(in[0]);
  (void)close(out[1]);
  read_until(h.out, "ready\n");
  return h;
}

static void let_go_on(const held *h)
{
  ck_assert_int_eq(write(h->in, "\n", 1), 1);
}

static void let_end(held *h)
{
  int status;
  let_go_on(h);
  read_until(h->out, "half\n");
  let_go_on(h);
  ck_assert_int_eq(waitpid(h->weir, &status, 0), h->weir);
  ck_assert_int_eq(status, 0);
  (void)close(h->in);
  (void)close(h->out);
  ck_assert_int_eq(ask("t.db", "SELECT sum(dropped) FROM process"), 0);
}

static void enter_own_place(void)
{
  enter_scratch();
  ck_assert_int_eq(mkdir("place", 0700), 0);
  char *place = realpath("place", NULL);
  (void)setenv("WEIR_SPOOL_ROOT", place, 1);
  free(place);
}

/* ---- ps and top ------------------------------------------------------------------------------ */

START_TEST(ps_lists_what_is_recorded)
{
  outcome *o = sh_status(0, "$WEIR ps");
  ck_assert_str_eq(o->out, "nothing runs under Weir on this machine, of yours\n");
  held h = hold_program("", "");
  o = sh_status(0, "$WEIR ps");
  ck_assert_ptr_nonnull(strstr(o->out, "holder"));
  ck_assert_ptr_nonnull(strstr(o->out, "/t.db"));
  sh_status(0, "$WEIR ps --json | python3 -c 'import json, os, sys\n"
               "(p,) = [json.loads(line) for line in sys.stdin]\n"
               "assert os.readlink(\"/proc/%%d/exe\" %% p[\"pid\"]) == p[\"program\"], p\n"
               "assert p[\"dropped\"] == 0 and p[\"events\"] > 20 and p[\"spool_bytes\"] > 0, p\n"
               "assert p[\"trace\"] == os.path.abspath(\"t.db\"), p'");
  let_end(&h);
  ck_assert_str_eq(sh_status(0, "$WEIR ps")->out,
                   "nothing runs under Weir on this machine, of yours\n");
  ck_assert_str_eq(sh_status(0, "$WEIR ps --json")->out, "");
}
END_TEST

START_TEST(top_knows_all_of_a_run_with_metrics)
{
  held h = hold_program("--metrics=unix:m", "");
  outcome *o = sh_status(0, "$WEIR top --samples 1 $(pwd)/t.db");
  ck_assert_ptr_nonnull(strstr(o->out, "of whole runs"));
  ck_assert_ptr_nonnull(strstr(o->out, "live   5.00 MiB"));
  ck_assert_ptr_nonnull(strstr(o->out, "0 device      5.00 MiB   5.00 MiB"));
  ck_assert_ptr_nonnull(strstr(o->out, "host pinned      1.00 MiB"));
  ck_assert_ptr_nonnull(strstr(o->out, "FAILED   1 allocation"));
  sh_status(0, "$WEIR top --samples 1 --json | python3 -c 'import json, sys\n"
               "p = json.load(sys.stdin)[\"collectors\"][0][\"processes\"][0]\n"
               "way = {c[\"direction\"]: c for c in p[\"copies\"]}\n"
               "assert (way[\"h2d\"][\"count\"], way[\"h2d\"][\"bytes\"]) == (7, 7 << 16), p\n"
               "assert (way[\"d2h\"][\"count\"], way[\"d2h\"][\"bytes\"]) == (7, 7 << 10), p\n"
               "assert p[\"live_bytes\"] == 5 << 20, p\n"
               "assert sum(s[\"live_bytes\"] for s in p[\"sites\"]) == 5 << 20, p\n"
               "assert all(s[\"site\"].startswith(\"holder+\") for s in p[\"sites\"]), p'");
  let_end(&h);
}
END_TEST

/* Copies are left out, allocations never. */
START_TEST(top_knows_all_memory_of_a_dormant_run)
{
  held h = hold_program("--dormant", "");
  outcome *o = sh_status(0, "$WEIR top --samples 1 t.db");
  ck_assert_ptr_nonnull(strstr(o->out, "of whole runs"));
  ck_assert_ptr_nonnull(strstr(o->out, "live   5.00 MiB"));
  ck_assert_ptr_null(strstr(o->out, "LIVE*"));
  let_end(&h);
}
END_TEST

START_TEST(top_of_a_run_without_metrics_begins_when_it_is_asked)
{
  held h = hold_program("", "20000");
  (void)sh_status(0, "$WEIR top --samples 1 t.db");
  let_go_on(&h);
  read_until(h.out, "half\n");
  outcome *o = sh_status(0, "$WEIR top --samples 1 --json t.db");
  const char *since = strstr(o->out, "\"since_ns\": ");
  ck_assert_ptr_nonnull(since);
  ck_assert_ptr_nonnull(strstr(o->out, "\"direction\": \"h2d\""));
  if (strtoll(since + 12, NULL, 10)) { /* its first chunks had been handed back */
    o = sh_status(0, "$WEIR top --samples 1 t.db");
    ck_assert_ptr_nonnull(strstr(o->out, ", since "));
    ck_assert_ptr_nonnull(strstr(o->out, "      LIVE*      PEAK*"));
    ck_assert_ptr_nonnull(strstr(o->out, "\n* allocated since "));
  }
  let_go_on(&h);
  ck_assert_int_eq(waitpid(h.weir, NULL, 0), h.weir);
}
END_TEST

START_TEST(who_is_not_recorded_is_not_found)
{
  held h = hold_program("", "");
  outcome *o = sh_status(1, "$WEIR top --samples 1 1");
  ck_assert_ptr_nonnull(strstr(o->err, "process 1 does not run under Weir"));
  o = sh_status(1, "$WEIR top --samples 1 nothing.db");
  ck_assert_ptr_nonnull(strstr(o->err, "cannot find nothing.db"));
  o = sh_status(1, "echo >other.db; $WEIR top --samples 1 other.db");
  ck_assert_ptr_nonnull(strstr(o->err, "is not being written"));
  o = sh_status(0, "$WEIR top --samples 1 %d", (int)h.weir); /* its collector's pid */
  ck_assert_ptr_nonnull(strstr(o->out, "1 process"));
  sh_status(2, "$WEIR top --json --plain");
  sh_status(2, "$WEIR top 1 2");
  sh_status(2, "$WEIR ps 1");
  let_end(&h);
  o = sh_status(1, "$WEIR top --samples 1");
  ck_assert_ptr_nonnull(strstr(o->err, "nothing runs under Weir that answers"));
}
END_TEST

START_TEST(a_hundred_tops_that_come_and_go_change_nothing)
{
  held h = hold_program("", "3000");
  let_go_on(&h);
  for (int i = 0; i < 100; i++)
    (void)sh("$WEIR top --samples 1 --json t.db >top.json");
  read_until(h.out, "half\n");
  let_go_on(&h);
  ck_assert_int_eq(waitpid(h.weir, NULL, 0), h.weir);
  ck_assert_int_eq(ask("t.db", "SELECT sum(dropped) FROM process"), 0);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM copy"), 12000);
  sh_status(0, "$WEIR run --sim --force -o u.db -- " HOLDER "3000 <<'E'\n\n\nE");
  ck_assert_int_eq(ask("u.db", "SELECT count(*) FROM event"),
                   ask("t.db", "SELECT count(*) FROM event"));
}
END_TEST

/* ---- a page ---------------------------------------------------------------------------------- */

static int connect_unix(const char *path)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
  (void)close(fd);
  return -1;
}

static int connect_port(int port)
{
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
  (void)close(fd);
  return -1;
}

/* A port that nobody has (now). */
static int free_port(void)
{
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t bytes = sizeof address;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
  (void)close(fd);
  return ntohs(address.sin_port);
}

/* Sends a request and reads the reply to its end (borrowed until the next call). */
static const char *talk(int fd, const char *request)
{
  static char reply[1 << 20];
  size_t count = 0;
  ssize_t n = 1;
  ck_assert_int_ge(fd, 0);
  (void)send(fd, request, strlen(request), MSG_NOSIGNAL);
  while (n > 0 && count < sizeof reply - 1) {
    n = read(fd, reply + count, sizeof reply - 1 - count);
    if (n > 0) count += (size_t)n;
  }
  reply[count] = 0;
  (void)close(fd);
  return reply;
}

#define GET "GET /metrics HTTP/1.1\r\nHost: x\r\n"

/* The sum of a metric's samples whose labels have `with` in them. -1: there is none. */
static double metric(const char *page, const char *name, const char *with)
{
  double sum = 0;
  bool found = false;
  for (const char *at = page; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
    const size_t n = strlen(name), line = strcspn(at, "\n");
    if (strncmp(at, name, n) != 0 || (at[n] != '{' && at[n] != ' ')) continue;
    char text[1024];
    (void)snprintf(text, sizeof text, "%.*s", (int)line, at);
    if (!strstr(text, with)) continue;
    sum += strtod(strrchr(text, ' '), NULL);
    found = true;
  }
  return found ? sum : -1;
}

static void expect_metrics_of_trace(const char *page)
{
  static const struct {
    const char *name, *with, *sql;
  } rows[] = {
      {"weir_copied_bytes_total", "\"h2d\"",
       "SELECT sum(bytes) FROM event WHERE kind = 3 AND copy = 1"},
      {"weir_copied_bytes_total", "\"d2h\"",
       "SELECT sum(bytes) FROM event WHERE kind = 3 AND copy = 2"},
      {"weir_copies_total", "", "SELECT count(*) FROM event WHERE kind = 3"},
      {"weir_waits_total", "\"device\"", "SELECT count(*) FROM event WHERE kind = 5 AND copy = 4"},
      {"weir_allocation_failures_total", "",
       "SELECT count(*) FROM event WHERE kind = 1 AND status"},
      {"weir_events_total", "", "SELECT count(*) FROM event"},
      {"weir_dropped_events_total", "", "SELECT sum(dropped) FROM process"},
      {"weir_peak_bytes", "memory=\"device\"", "SELECT 5 << 20"},
      {"weir_peak_bytes", "memory=\"pinned\"", "SELECT 1 << 20"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const double shown = metric(page, rows[i].name, rows[i].with);
    ck_assert_msg((long long)shown == ask("t.db", rows[i].sql), "%s %s: %f, the trace: %lld",
                  rows[i].name, rows[i].with, shown, ask("t.db", rows[i].sql));
  }
  const double waited = metric(page, "weir_wait_seconds_total", "\"device\"") * 1e9,
               traced = (double)ask("t.db", "SELECT sum(\"end\" - start) FROM event WHERE kind = 5"
                                            " AND copy = 4");
  ck_assert_msg(waited > traced * 0.999 && waited < traced * 1.001, "%f, %f", waited, traced);
}

static char *file_text(const char *path)
{
  static char text[1 << 20];
  FILE *in = fopen(path, "r");
  ck_assert_ptr_nonnull(in);
  text[fread(text, 1, sizeof text - 1, in)] = 0;
  ck_assert_int_eq(fclose(in), 0);
  return text;
}

START_TEST(at_the_end_each_number_is_the_traces)
{
  held h = hold_program("--metrics=textfile:m.prom", "");
  let_end(&h);
  const char *page = file_text("m.prom");
  expect_metrics_of_trace(page);
  ck_assert_ptr_null(strstr(page, "# EOF"));
  struct stat info;
  ck_assert_int_eq(stat("m.prom", &info), 0);
  ck_assert_uint_eq(info.st_mode & 0777, 0600);
  h = hold_program("--metrics=textfile:m.prom --metrics-mode=644", "");
  let_end(&h);
  ck_assert_int_eq(stat("m.prom", &info), 0);
  ck_assert_uint_eq(info.st_mode & 0777, 0644);
  sh_status(0, "test \"$(ls m.prom*)\" = m.prom");
}
END_TEST

/* The importer has read on by now, or will have soon: the same page as long as it takes. */
static const char *page_with_events(const char *request, long long events)
{
  const char *page;
  do
    page = talk(connect_unix("m"), request);
  while (metric(page, "weir_events_total", "") < (double)events);
  return page;
}

START_TEST(a_page_while_the_program_runs_is_what_it_holds)
{
  held h = hold_program("--metrics=unix:m", "");
  const char *page = page_with_events(GET "\r\n", 4 + 7 * 3);
  ck_assert_ptr_nonnull(strstr(page, "HTTP/1.1 200 OK\r\n"));
  ck_assert_ptr_nonnull(strstr(page, "Content-Type: text/plain; version=0.0.4"));
  ck_assert_double_eq(metric(page, "weir_live_bytes", "memory=\"device\""), 5 << 20);
  ck_assert_double_eq(metric(page, "weir_live_bytes", "memory=\"pinned\""), 1 << 20);
  ck_assert_double_eq(metric(page, "weir_site_live_bytes", ""), 5 << 20);
  ck_assert_double_eq(metric(page, "weir_copies_total", ""), 14);
  let_go_on(&h);
  read_until(h.out, "half\n");
  page = page_with_events(GET "Accept: application/openmetrics-text; version=1.0.0\r\n\r\n",
                          4 + 14 * 3 + 1);
  ck_assert_ptr_nonnull(strstr(page, "Content-Type: application/openmetrics-text; version=1.0.0"));
  ck_assert_str_eq(page + strlen(page) - 6, "# EOF\n");
  ck_assert_double_eq(metric(page, "weir_live_bytes", "memory=\"device\""), 1 << 20);
  ck_assert_double_eq(metric(page, "weir_peak_bytes", "memory=\"device\""), 5 << 20);
  let_go_on(&h);
  ck_assert_int_eq(waitpid(h.weir, NULL, 0), h.weir);
  ck_assert_int_ne(access("m", F_OK), 0);
}
END_TEST

START_TEST(a_page_is_had_by_http_and_nothing_else_is)
{
  held h = hold_program("--metrics=unix:m", "");
  ck_assert_ptr_nonnull(strstr(talk(connect_unix("m"), "POST /metrics HTTP/1.1\r\n\r\n"), " 405 "));
  ck_assert_ptr_nonnull(strstr(talk(connect_unix("m"), "GET /etc HTTP/1.1\r\n\r\n"), " 404 "));
  ck_assert_ptr_nonnull(strstr(talk(connect_unix("m"), "GET / HTTP/1.0\n\n"), " 200 "));
  const char *head = talk(connect_unix("m"), "HEAD /metrics HTTP/1.1\r\n\r\n");
  ck_assert_ptr_nonnull(strstr(head, " 200 "));
  ck_assert_str_eq(head + strlen(head) - 4, "\r\n\r\n");
  let_end(&h);
}
END_TEST

START_TEST(a_port_answers_who_has_the_token)
{
  char options[256];
  const int port = free_port();
  sh_status(0, "umask 077; echo secret-token >token");
  (void)snprintf(options, sizeof options, "--metrics=127.0.0.1:%d --metrics-token-file=token",
                 port);
  held h = hold_program(options, "");
  static const char *const wrong[] = {GET "\r\n",
                                      GET "Authorization: Bearer secret-toke\r\n\r\n",
                                      GET "Authorization: Bearer secret-token2\r\n\r\n",
                                      GET "Authorization: Basic secret-token\r\n\r\n",
                                      GET "Authorization: Bearer \r\n\r\n",
                                      GET "X-Authorization: Bearer secret-token\r\n\r\n"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const char *reply = talk(connect_port(port), wrong[i]);
    ck_assert_ptr_nonnull(strstr(reply, "HTTP/1.1 401 "));
    ck_assert_ptr_null(strstr(reply, "weir_"));
  }
  ck_assert_ptr_nonnull(strstr(
      talk(connect_port(port), GET "authorization: bearer secret-token\r\n\r\n"), " 200 OK"));
  let_end(&h);
}
END_TEST

START_TEST(a_place_that_cannot_be_is_refused_in_a_sentence)
{
  static const struct {
    const char *prepare, *options, *why;
  } cases[] = {
      {"mkfifo fifo", "--metrics=textfile:fifo", "what is there is no file"},
      {"mkdir dir", "--metrics=textfile:dir", "what is there is no file"},
      {":", "--metrics=textfile:none/m.prom", "No such file"},
      {"echo >file", "--metrics=unix:file", "File exists"},
      {":", "--metrics=unix:none/m", "No such file"},
      {":", "--metrics=tcp:9", "that is not unix:PATH, textfile:PATH or 127.0.0.1:PORT"},
      {":", "--metrics=0.0.0.0:9", "that is not unix:PATH"},
      {":", "--metrics=127.0.0.1:0", "a port is a number"},
      {":", "--metrics=127.0.0.1:9100", "it needs --metrics-token-file"},
      {"echo x >open; chmod 644 open", "--metrics=127.0.0.1:9100 --metrics-token-file=open",
       "only you can read"},
      {"umask 077; : >empty", "--metrics=127.0.0.1:9100 --metrics-token-file=empty", "first line"},
      {":", "--metrics=textfile:m --metrics-mode=9", "octal number"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    outcome *o = sh_status(125, "%s; $WEIR run --sim -o r.db %s -- $VICTIM call", cases[i].prepare,
                           cases[i].options);
    ck_assert_msg(strstr(o->err, cases[i].why) != NULL, "%s: %s", cases[i].options, o->err);
    ck_assert_int_ne(access("r.db", F_OK), 0);
  }
  sh_status(0, "test -p fifo && test -d dir && test -s file && test -z \"$(ls place)\"");
}
END_TEST

START_TEST(ranks_have_files_of_their_own)
{
  sh_status(0, "for r in 0 1; do RANK=$r WEIR_JOB=j7 $WEIR run --sim -o t%%r.db"
               " --metrics=textfile:m-%%j-%%r.prom -- $VICTIM call; done");
  for (int r = 0; r < 2; r++) {
    char name[32], label[32];
    (void)snprintf(name, sizeof name, "m-j7-%d.prom", r);
    (void)snprintf(label, sizeof label, "job=\"j7\",rank=\"%d\"", r);
    ck_assert_double_gt(metric(file_text(name), "weir_events_total", label), 0);
  }
  outcome *o = sh_status(125, "$WEIR run --sim -o r.db --metrics=textfile:m-%%r -- $VICTIM call");
  ck_assert_ptr_nonnull(strstr(o->err, "%r"));
}
END_TEST

START_TEST(a_dead_socket_is_replaced_and_a_live_one_is_not)
{
  held h = hold_program("--metrics=unix:m", "");
  outcome *o = sh_status(125, "$WEIR run --sim -o r.db --metrics=unix:m -- $VICTIM call");
  ck_assert_ptr_nonnull(strstr(o->err, "in use"));
  ck_assert_ptr_nonnull(strstr(talk(connect_unix("m"), GET "\r\n"), " 200 OK"));
  let_end(&h);
  sh_status(0, "python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.bind(\"m\")'");
  h = hold_program("--metrics=unix:m", "");
  let_end(&h);
}
END_TEST

/* ---- hostile clients ------------------------------------------------------------------------- */

START_TEST(another_user_gets_nothing_from_the_socket)
{
  int status;
  if (geteuid() != 0) return;
  ck_assert_int_eq(chmod(".", 0755), 0);
  held h = hold_program("--metrics=unix:m", "");
  ck_assert_int_eq(chmod("m", 0666), 0);
  pid_t other = fork();
  if (!other) {
    if (setgid(65534) || setuid(65534)) _exit(2);
    int fd = connect_unix("m");
    _exit(fd < 0 || *talk(fd, GET "\r\n") ? 1 : 0);
  }
  ck_assert_int_eq(waitpid(other, &status, 0), other);
  ck_assert_int_eq(status, 0);
  let_end(&h);
}
END_TEST

START_TEST(clients_that_never_read_do_no_harm)
{
  enum { CROWD = 1000 };
  static int crowd[CROWD];
  struct rlimit most;
  ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &most), 0);
  most.rlim_cur = most.rlim_max;
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &most), 0);
  held h = hold_program("--metrics=unix:m", "");
  for (int i = 0; i < CROWD; i++) {
    crowd[i] = connect_unix("m");
    if (crowd[i] >= 0 && i % 2) (void)send(crowd[i], GET "\r\n", strlen(GET) + 2, MSG_NOSIGNAL);
    if (crowd[i] >= 0 && i % 2 == 0) (void)send(crowd[i], "GET /me", 7, MSG_NOSIGNAL);
  }
  ck_assert_ptr_nonnull(strstr(talk(connect_unix("m"), GET "\r\n"), " 200 OK"));
  for (int i = 0; i < CROWD; i++)
    if (crowd[i] >= 0) (void)close(crowd[i]);
  let_end(&h);
}
END_TEST

START_TEST(a_head_without_an_end_is_cut_off)
{
  static char much[1 << 20];
  held h = hold_program("--metrics=unix:m", "");
  int fd = connect_unix("m");
  memset(much, 'h', sizeof much);
  (void)send(fd, GET, strlen(GET), MSG_NOSIGNAL);
  ssize_t n;
  do
    n = send(fd, much, sizeof much, MSG_NOSIGNAL);
  while (n > 0);
  (void)close(fd);
  fd = connect_unix("m");
  ck_assert_int_eq(send(fd, GET, strlen(GET), MSG_NOSIGNAL), (ssize_t)strlen(GET));
  ck_assert_int_eq(read(fd, much, 1), 0); /* the collector closes it: we never do */
  (void)close(fd);
  ck_assert_ptr_nonnull(strstr(talk(connect_unix("m"), GET "\r\n"), " 200 OK"));
  let_end(&h);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("watch");
  TCase *w = tcase_create("watch"), *p = tcase_create("page");
  tcase_set_timeout(w, 0);
  tcase_set_timeout(p, 0);
  tcase_add_checked_fixture(w, enter_own_place, leave_scratch);
  tcase_add_checked_fixture(p, enter_own_place, leave_scratch);
  tcase_add_test(w, ps_lists_what_is_recorded);
  tcase_add_test(w, top_knows_all_of_a_run_with_metrics);
  tcase_add_test(w, top_knows_all_memory_of_a_dormant_run);
  tcase_add_test(w, top_of_a_run_without_metrics_begins_when_it_is_asked);
  tcase_add_test(w, who_is_not_recorded_is_not_found);
  tcase_add_test(w, a_hundred_tops_that_come_and_go_change_nothing);
  tcase_add_test(p, at_the_end_each_number_is_the_traces);
  tcase_add_test(p, a_page_while_the_program_runs_is_what_it_holds);
  tcase_add_test(p, a_page_is_had_by_http_and_nothing_else_is);
  tcase_add_test(p, a_port_answers_who_has_the_token);
  tcase_add_test(p, a_place_that_cannot_be_is_refused_in_a_sentence);
  tcase_add_test(p, ranks_have_files_of_their_own);
  tcase_add_test(p, a_dead_socket_is_replaced_and_a_live_one_is_not);
  tcase_add_test(p, another_user_gets_nothing_from_the_socket);
  tcase_add_test(p, clients_that_never_read_do_no_harm);
  tcase_add_test(p, a_head_without_an_end_is_cut_off);
  suite_add_tcase(s, w);
  suite_add_tcase(s, p);
  return run_suite(s);
}
