/* test_scrape.c: pages of metrics are taken by those whom they are for: prometheus_client's parsers,
 * promtool, Prometheus, node_exporter. Which of them is missing, the test that needs it says. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tools/command.h"

#define SCRAPE "$BUILD/venv/scrape/bin/python $WEIR_SOURCE/tests/tools/scrape.py "
#define CURL                                                                                       \
  "python3 -c 'import socket, sys\n"                                                               \
  "s = socket.socket(socket.AF_UNIX); s.connect(\"m\")\n"                                          \
  "s.sendall(b\"GET /metrics HTTP/1.1\\r\\nAccept: \" + sys.argv[1].encode() + "                   \
  "b\"\\r\\n\\r\\n\")\n"                                                                           \
  "text = b\"\".join(iter(lambda: s.recv(65536), b\"\"))\n"                                        \
  "sys.stdout.buffer.write(text.split(b\"\\r\\n\\r\\n\", 1)[1])' "

static int to_program, from_program;
static pid_t weir;

static void start_program(const char *options)
{
  int in[2], out[2];
  ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
  ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
  weir = start(in[0], out[1],
               "exec $WEIR run --sim --force -o t.db %s -- $BUILD/tests/tools/holder", options);
  (void)close(in[0]);
  (void)close(out[1]);
  to_program = in[1];
  from_program = out[0];
  read_until(from_program, "ready\n");
}

static void end_program(void)
{
  int status;
  ck_assert_int_eq(write(to_program, "\n", 1), 1);
  read_until(from_program, "half\n");
  ck_assert_int_eq(write(to_program, "\n", 1), 1);
  ck_assert_int_eq(waitpid(weir, &status, 0), weir);
  ck_assert_int_eq(status, 0);
}

START_TEST(both_formats_are_parsed)
{
  start_program("--metrics=unix:m");
  sh_status(0, CURL "text/plain >page && " CURL "application/openmetrics-text >open");
  sh_status(0, SCRAPE "parsers page open");
  end_program();
}
END_TEST

START_TEST(hostile_names_are_parsed)
{
  static const char *const jobs[] = {"quotes \" and \\ and \n ends", "\xff\xfe invalid \xc3",
                                     "esc \x1b[31m bell \a", "{a=\"b\"} 1\n# EOF\n"};
  for (size_t i = 0; i <= sizeof jobs / sizeof *jobs; i++) {
    static char longest[4097];
    memset(longest, '"', sizeof longest - 1);
    const bool more = i == sizeof jobs / sizeof *jobs;
    (void)setenv("WEIR_JOB", more ? longest : jobs[i], 1);
    start_program("--metrics=unix:m");
    sh_status(0, CURL "application/openmetrics-text >open");
    sh_status(0, SCRAPE "hostile \"$WEIR_JOB\" open");
    end_program();
  }
  (void)unsetenv("WEIR_JOB");
}
END_TEST

START_TEST(prometheus_scrapes_a_port)
{
  char options[128];
  sh_status(0, "umask 077; head -c 16 /dev/urandom | od -An -tx8 | tr -d ' ' >token");
  outcome *o = sh_status(0, "python3 -c 'import socket; s = socket.socket();"
                            " s.bind((\"127.0.0.1\", 0)); print(s.getsockname()[1])'");
  const int port = atoi(o->out);
  (void)snprintf(options, sizeof options, "--metrics=127.0.0.1:%d --metrics-token-file=token",
                 port);
  start_program(options);
  sh_status(0, SCRAPE "prometheus %d token", port);
  end_program();
}
END_TEST

START_TEST(node_exporter_has_the_file)
{
  ck_assert_int_eq(mkdir("texts", 0700), 0);
  start_program("--metrics=textfile:texts/weir.prom");
  end_program();
  sh_status(0, SCRAPE "exporter texts");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("scrape");
  TCase *t = tcase_create("scrape");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, both_formats_are_parsed);
  tcase_add_test(t, hostile_names_are_parsed);
  tcase_add_test(t, prometheus_scrapes_a_port);
  tcase_add_test(t, node_exporter_has_the_file);
  suite_add_tcase(s, t);
  return run_suite(s);
}
