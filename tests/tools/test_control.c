/* test_control.c: requests to a collector: who asks properly is answered, whole; who does not, or
 * does not read, or is somebody else, gets nothing and is in nobody's way. The server runs in a
 * process of its own, on a folder of the test's; what it answers is made here. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tools/command.h"
#include "tools/weir/collect/control.h"

enum { BIG = 8 << 20, ANSWER_MS = 60000 };

static pid_t server;
static const char *folder = "folder";

/* ---- what is asked for ----------------------------------------------------------------------- */

static bool echo(void *context, FILE *reply, unsigned count, char *const *words)
{
  (void)context;
  for (unsigned i = 0; i < count; i++)
    (void)fprintf(reply, "%s\n", words[i]);
  return true;
}

static bool refuse(void *context, FILE *reply, unsigned count, char *const *words)
{
  (void)count;
  (void)words;
  (void)fprintf(reply, "%s\n", (const char *)context);
  return false;
}

static bool print_much(void *context, FILE *reply, unsigned count, char *const *words)
{
  (void)context;
  (void)count;
  (void)words;
  for (int i = 0; i < BIG / 64; i++)
    (void)fprintf(reply, "%063d\n", i);
  return true;
}

static void run_server(int ready)
{
  control *c = control_new(folder);
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!c) _exit(1);
  control_on(c, "echo", echo, NULL);
  control_on(c, "refuse", refuse, "not today");
  control_on(c, "much", print_much, NULL);
  (void)!write(ready, "r", 1);
  for (;;) {
    struct pollfd p = {.fd = control_fd(c), .events = POLLIN};
    (void)poll(&p, 1, -1);
    control_serve(c);
  }
}

static void start_server(void)
{
  char byte;
  int ready[2];
  ck_assert_int_eq(mkdir(folder, 0700), 0);
  ck_assert_int_eq(pipe(ready), 0);
  server = fork();
  ck_assert_int_ge(server, 0);
  if (!server) run_server(ready[1]);
  (void)close(ready[1]);
  ck_assert_int_eq(read(ready[0], &byte, 1), 1);
  (void)close(ready[0]);
}

static void enter_folder(void)
{
  enter_scratch();
  start_server();
}

static void leave_folder(void)
{
  (void)kill(server, SIGKILL);
  (void)waitpid(server, NULL, 0);
  leave_scratch();
}

/* ---- clients --------------------------------------------------------------------------------- */

static int connect_client(void)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/" CONTROL_SOCKET, folder);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ck_assert_int_ge(fd, 0);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
  (void)close(fd);
  return -1;
}

/* Reads to the end of what the server sends, at most `room` bytes. Returns how many. */
static size_t read_all(int fd, char *to, size_t room)
{
  size_t count = 0;
  ssize_t n = 1;
  while (n > 0 && count < room) {
    n = read(fd, to + count, room - count);
    if (n > 0) count += (size_t)n;
  }
  return count;
}

/* Whether the server closes this connection without an answer. */
static bool is_closed_unanswered(int fd)
{
  char some[64];
  bool closed = read_all(fd, some, sizeof some) == 0;
  (void)close(fd);
  return closed;
}

static void expect_answer(const char *const *words, bool good, const char *text)
{
  control_answer a = control_ask(folder, words, ANSWER_MS);
  ck_assert(a.reached);
  ck_assert(a.good == good);
  ck_assert_str_eq(a.text, text);
  ck_assert_int_eq(a.collector, server);
  free(a.text);
}

static void expect_alive(void)
{
  const char *words[] = {"echo", "here", NULL};
  expect_answer(words, true, "here\n");
}

/* ---- proper requests ------------------------------------------------------------------------- */

START_TEST(words_arrive_as_they_were_sent)
{
  const char *words[] = {"echo", "plain", "two words", "100%", "a\tb", "\xc3\xa9", "%41", NULL};
  expect_answer(words, true, "plain\ntwo words\n100%\na\tb\n\xc3\xa9\n%41\n");
}
END_TEST

START_TEST(a_handler_that_refuses_is_heard)
{
  const char *words[] = {"refuse", NULL};
  expect_answer(words, false, "not today\n");
}
END_TEST

START_TEST(a_verb_that_nobody_serves_is_refused)
{
  const char *words[] = {"launch", NULL};
  expect_answer(words, false, "this collector does not serve that request\n");
}
END_TEST

START_TEST(a_long_reply_comes_whole)
{
  const char *words[] = {"much", NULL};
  control_answer a = control_ask(folder, words, ANSWER_MS);
  ck_assert(a.good);
  ck_assert_uint_eq(strlen(a.text), BIG);
  free(a.text);
}
END_TEST

START_TEST(a_request_by_hand_is_answered)
{
  outcome *o =
      sh("printf 'echo a%%%%20b\\n' | timeout 60 python3 -c \""
         "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect('folder/.control');"
         "s.sendall(sys.stdin.buffer.read()); print(s.recv(99).decode(), end='')\"");
  ck_assert_str_eq(o->out, "ok\na b\n");
}
END_TEST

START_TEST(a_folder_without_a_collector_is_not_reached)
{
  const char *words[] = {"echo", NULL};
  ck_assert_int_eq(mkdir("other", 0700), 0);
  control_answer a = control_ask("other", words, ANSWER_MS);
  ck_assert(!a.reached && !a.good);
  free(a.text);
  (void)kill(server, SIGKILL);
  (void)waitpid(server, NULL, 0);
  a = control_ask(folder, words, ANSWER_MS);
  ck_assert(!a.reached && !a.good);
  free(a.text);
}
END_TEST

START_TEST(a_folder_of_a_long_name_is_served)
{
  char name[200];
  memset(name, 'x', sizeof name);
  name[sizeof name - 1] = 0;
  folder = name;
  start_server();
  expect_alive();
}
END_TEST

START_TEST(a_request_that_is_too_long_is_not_sent)
{
  static char word[CONTROL_LINE];
  const char *words[] = {"echo", word, NULL};
  memset(word, 'w', sizeof word - 1);
  control_answer a = control_ask(folder, words, ANSWER_MS);
  ck_assert(!a.reached);
  free(a.text);
  expect_alive();
}
END_TEST

/* ---- others ---------------------------------------------------------------------------------- */

START_TEST(what_is_no_request_is_refused_or_cut_off)
{
  static const struct {
    const char *line;
    size_t bytes;
    bool answered;
  } lines[] = {{"\n", 1, true},           {" echo\n", 6, true},    {"echo  a\n", 8, true},
               {"echo %4\n", 8, true},    {"echo %zz\n", 9, true}, {"echo %00\n", 9, true},
               {"echo a\0b\n", 9, false}, {"echo %", 6, false}};
  char some[256];
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    int fd = connect_client();
    ck_assert_int_eq(write(fd, lines[i].line, lines[i].bytes), (ssize_t)lines[i].bytes);
    (void)shutdown(fd, SHUT_WR);
    size_t n = read_all(fd, some, sizeof some - 1);
    some[n] = 0;
    ck_assert_str_eq(some, lines[i].answered ? "no\nthis is no request\n" : "");
    (void)close(fd);
  }
  expect_alive();
}
END_TEST

START_TEST(more_words_than_there_may_be_are_refused)
{
  const char *words[CONTROL_WORDS + 2] = {"echo"};
  for (int i = 1; i <= CONTROL_WORDS; i++)
    words[i] = "w";
  expect_answer(words, false, "this is no request\n");
}
END_TEST

START_TEST(a_line_without_an_end_is_cut_off)
{
  static char line[CONTROL_LINE];
  int fd = connect_client();
  memset(line, 'w', sizeof line);
  ck_assert_int_eq(send(fd, line, sizeof line, MSG_NOSIGNAL), (ssize_t)sizeof line);
  ck_assert(is_closed_unanswered(fd));
  expect_alive();
}
END_TEST

START_TEST(half_a_request_is_closed_in_time)
{
  int fd = connect_client();
  ck_assert_int_eq(write(fd, "ec", 2), 2);
  expect_alive();
  ck_assert(is_closed_unanswered(fd)); /* the server closes it: we never do */
}
END_TEST

START_TEST(who_does_not_read_is_closed_in_time)
{
  static char to[BIG + 64];
  int fd = connect_client();
  ck_assert_int_eq(write(fd, "much\n", 5), 5);
  expect_alive();
  struct pollfd p = {.fd = fd, .events = POLLRDHUP};
  ck_assert_int_eq(poll(&p, 1, -1), 1);
  ck_assert_uint_lt(read_all(fd, to, sizeof to), BIG);
  (void)close(fd);
}
END_TEST

START_TEST(a_thousand_that_never_write_are_in_nobodys_way)
{
  enum { CROWD = 1000 };
  static int crowd[CROWD];
  struct rlimit most;
  ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &most), 0);
  most.rlim_cur = most.rlim_max;
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &most), 0);
  for (int i = 0; i < CROWD; i++) {
    crowd[i] = connect_client();
    if (i % 100 == 0) expect_alive();
  }
  expect_alive();
  for (int i = 0; i < CROWD; i++)
    if (crowd[i] >= 0) (void)close(crowd[i]);
}
END_TEST

START_TEST(another_user_gets_no_answer)
{
  int status;
  if (geteuid() != 0) return;
  ck_assert_int_eq(chmod(".", 0755) | chmod(folder, 0755), 0);
  ck_assert_int_eq(chmod("folder/" CONTROL_SOCKET, 0666), 0);
  pid_t other = fork();
  ck_assert_int_ge(other, 0);
  if (!other) {
    if (setgid(65534) || setuid(65534)) _exit(2);
    int fd = connect_client();
    if (fd < 0) _exit(3);
    (void)!send(fd, "echo a\n", 7, MSG_NOSIGNAL);
    _exit(is_closed_unanswered(fd) ? 0 : 1);
  }
  ck_assert_int_eq(waitpid(other, &status, 0), other);
  ck_assert_int_eq(status, 0);
  expect_alive();
}
END_TEST

START_TEST(the_socket_is_the_users_alone)
{
  struct stat info;
  ck_assert_int_eq(stat("folder/" CONTROL_SOCKET, &info), 0);
  ck_assert_uint_eq(info.st_mode & 0777, 0600);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("control");
  TCase *proper = tcase_create("proper"), *others = tcase_create("others");
  tcase_set_timeout(proper, 0);
  tcase_set_timeout(others, 0);
  tcase_add_checked_fixture(proper, enter_folder, leave_folder);
  tcase_add_checked_fixture(others, enter_folder, leave_folder);
  tcase_add_test(proper, words_arrive_as_they_were_sent);
  tcase_add_test(proper, a_handler_that_refuses_is_heard);
  tcase_add_test(proper, a_verb_that_nobody_serves_is_refused);
  tcase_add_test(proper, a_long_reply_comes_whole);
  tcase_add_test(proper, a_request_by_hand_is_answered);
  tcase_add_test(proper, a_folder_without_a_collector_is_not_reached);
  tcase_add_test(proper, a_folder_of_a_long_name_is_served);
  tcase_add_test(proper, a_request_that_is_too_long_is_not_sent);
  tcase_add_test(others, what_is_no_request_is_refused_or_cut_off);
  tcase_add_test(others, more_words_than_there_may_be_are_refused);
  tcase_add_test(others, a_line_without_an_end_is_cut_off);
  tcase_add_test(others, half_a_request_is_closed_in_time);
  tcase_add_test(others, who_does_not_read_is_closed_in_time);
  tcase_add_test(others, a_thousand_that_never_write_are_in_nobodys_way);
  tcase_add_test(others, another_user_gets_no_answer);
  tcase_add_test(others, the_socket_is_the_users_alone);
  suite_add_tcase(s, proper);
  suite_add_tcase(s, others);
  return run_suite(s);
}
