/* test_shared.c: tensors that several processes have: by fork, by descriptor, by name; what is none
 * of them, and that the memory ends with the last. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/io/io.h"

static weir_tensor *shared_row(int count)
{
  weir_tensor *row, *t;
  must(weir_arange(&row, weir_int(0), weir_int(count), weir_int(1), NULL));
  must(weir_share_memory(&t, row));
  weir_tensor_release(row);
  return t;
}

static int64_t *elements_of(const weir_tensor *t)
{
  return weir_tensor_data(t);
}

/* A child runs it; 0: it said so. */
static int in_a_child(int (*run)(const void *with), const void *with)
{
  int status;
  pid_t pid = fork();
  if (!pid) _exit(run(with));
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int write_inherited(const void *with)
{
  elements_of(with)[1] = 42;
  return 0;
}

START_TEST(a_forked_child_has_it)
{
  WEIR_TENSOR t = shared_row(3);
  WEIR_TENSOR own = NULL;
  must(weir_clone(&own, t));
  ck_assert(weir_is_shared(t) && !weir_is_shared(own) && !weir_is_shared(NULL));
  ck_assert_int_eq(in_a_child(write_inherited, t), 0);
  ck_assert_int_eq(in_a_child(write_inherited, own), 0);
  ck_assert_int_eq(elements_of(t)[1], 42);
  ck_assert_int_eq(elements_of(own)[1], 1);
}
END_TEST

static int write_by_name(const void *with)
{
  weir_tensor *t;
  if (weir_shared_open_name(&t, with)) return 1;
  if (weir_tensor_size(t, 0) != 3 || elements_of(t)[2] != 2) return 2;
  elements_of(t)[2] = 43;
  weir_tensor_release(t);
  return 0;
}

START_TEST(another_process_opens_it_by_name)
{
  char name[64], short_one[4];
  weir_tensor *t = shared_row(3), *none;
  must(weir_shared_name(name, sizeof name, t));
  ck_assert_int_eq(in_a_child(write_by_name, name), 0);
  ck_assert_int_eq(elements_of(t)[2], 43);
  must_fail(weir_shared_name(short_one, sizeof short_one, t), WEIR_EINVAL, "does not fit into 4");
  weir_tensor_release(t);
  must_fail(weir_shared_open_name(&none, name), WEIR_ENOENT, name);
  must_fail(weir_shared_open_name(&none, "/proc/self/no"), WEIR_ENOENT, "/proc/self/no");
}
END_TEST

START_TEST(the_memory_stays_until_the_last_has_gone)
{
  int fd;
  weir_tensor *first = shared_row(3), *second;
  must(weir_shared_fd(&fd, first));
  must(weir_shared_open(&second, fd));
  ck_assert_ptr_ne(weir_tensor_data(first), weir_tensor_data(second));
  elements_of(first)[0] = 7;
  weir_tensor_release(first);
  ck_assert_int_eq(close(fd), 0);
  ck_assert_int_eq(elements_of(second)[0], 7);
  weir_tensor *again;
  must(weir_share_memory(&again, second)); /* shared already */
  ck_assert_ptr_eq(again, second);
  weir_tensor_release(again);
  weir_tensor_release(second);
  must_fail(weir_shared_open(&again, fd), WEIR_EINVAL, "descriptor");
}
END_TEST

/* Sends a descriptor to another process, which has the tensor by nothing else. */
static int send_row(const void *with)
{
  int fd, link = *(const int *)with;
  weir_tensor *t = shared_row(5);
  char control[CMSG_SPACE(sizeof fd)] = "", byte = 0;
  struct iovec io = {&byte, 1};
  struct msghdr m = {
      .msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr *c = CMSG_FIRSTHDR(&m);
  weir_status st = weir_shared_fd(&fd, t);
  weir_tensor_release(t); /* the descriptor holds the memory */
  if (st) return 1;
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(c), &fd, sizeof fd);
  return sendmsg(link, &m, 0) == 1 ? 0 : 2;
}

START_TEST(a_loaders_process_sends_a_batch_and_ends)
{
  int link[2], fd = -1;
  WEIR_TENSOR t = NULL;
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, link), 0);
  ck_assert_int_eq(in_a_child(send_row, &link[1]), 0);
  char control[CMSG_SPACE(sizeof fd)], byte;
  struct iovec io = {&byte, 1};
  struct msghdr m = {
      .msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  ck_assert_int_eq(recvmsg(link[0], &m, 0), 1);
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
  must(weir_shared_open(&t, fd));
  ck_assert_int_eq(weir_tensor_size(t, 0), 5);
  ck_assert_int_eq(elements_of(t)[4], 4);
  ck_assert(!close(fd) && !close(link[0]) && !close(link[1]));
}
END_TEST

START_TEST(all_dtypes_and_shapes_are_shared)
{
  for (int d = 1; d < WEIR_DTYPES; d++)
    for (int dims = 0; dims < 4; dims++) {
      weir_tensor *t, *s, *o;
      int fd;
      bool same;
      weir_shape shape = {dims, {2, dims == 3 ? 0 : 3, 4}};
      must(weir_ones(&t, shape, &(weir_options){.dtype = (weir_dtype)d}));
      must(weir_share_memory(&s, t));
      must(weir_shared_fd(&fd, s));
      must(weir_shared_open(&o, fd));
      ck_assert_int_eq(close(fd), 0);
      must(weir_equal(&same, t, o));
      ck_assert(same && weir_tensor_dtype(o) == (weir_dtype)d && weir_tensor_dim(o) == dims);
      weir_tensor_release(t);
      weir_tensor_release(s);
      weir_tensor_release(o);
    }
}
END_TEST

START_TEST(views_are_shared_by_a_copy)
{
  int fd;
  char name[64];
  WEIR_TENSOR t = shared_row(6);
  WEIR_TENSOR part = NULL;
  WEIR_TENSOR copy = NULL;
  WEIR_TENSOR plain = NULL;
  must(weir_narrow(&part, t, 0, 2, 3));
  ck_assert(weir_is_shared(part));
  must_fail(weir_shared_fd(&fd, part), WEIR_EINVAL, "a view of a shared tensor");
  must_fail(weir_shared_name(name, sizeof name, part), WEIR_EINVAL, "a view of a shared tensor");
  must(weir_share_memory(&copy, part));
  ck_assert(!weir_tensor_shares_storage(copy, t) && elements_of(copy)[0] == 2);
  must(weir_zeros(&plain, weir_shape(2), NULL));
  must_fail(weir_shared_fd(&fd, plain), WEIR_EINVAL, "the tensor is not shared");
}
END_TEST

/* ---- what is no tensor ----------------------------------------------------------------------- */

/* The file of a shared tensor with a number of its head changed. */
static int altered(size_t at, unsigned value, bool sealed)
{
  int source, fd = memfd_create("odd", MFD_ALLOW_SEALING);
  char all[4096 + 24];
  WEIR_TENSOR t = shared_row(3);
  must(weir_shared_fd(&source, t));
  ck_assert_int_eq(pread(source, all, sizeof all, 0), sizeof all);
  ck_assert_int_eq(close(source), 0);
  memcpy(all + at, &value, sizeof value);
  ck_assert_int_eq(pwrite(fd, all, sizeof all, 0), sizeof all);
  if (sealed) ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  return fd;
}

static void not_opened(int fd, const char *words)
{
  weir_tensor *t = (weir_tensor *)&t;
  must_fail(weir_shared_open(&t, fd), WEIR_ECORRUPT, words);
  ck_assert_ptr_null(t);
  ck_assert_int_eq(close(fd), 0);
}

START_TEST(what_is_no_shared_tensor_is_refused)
{
  int pipes[2];
  ck_assert_int_eq(pipe(pipes), 0);
  not_opened(pipes[0], "it is no memory");
  ck_assert_int_eq(close(pipes[1]), 0);
  not_opened(altered(0, 0, true), "does not begin as one");
  not_opened(altered(8, 9, true), "does not begin as one");
  not_opened(altered(12, 0, true), "dtype");
  not_opened(altered(12, 200, true), "dtype");
  not_opened(altered(16, 9, true), "dimensions");
  not_opened(altered(16, 2, true), "its sizes");
  not_opened(altered(24, 4, true), "its sizes");
  not_opened(altered(28, 0xffffffff, true), "its sizes");
  not_opened(altered(24, 3, false), "it could be shortened");
  int empty = memfd_create("empty", MFD_ALLOW_SEALING);
  ck_assert_int_eq(fcntl(empty, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  not_opened(empty, "does not begin as one");
  weir_tensor *t;
  int good = altered(24, 3, true); /* the size it has */
  must(weir_shared_open(&t, good));
  weir_tensor_release(t);
  ck_assert_int_eq(close(good), 0);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("io/shared");
  TCase *c = tcase_create("shared");
  tcase_set_timeout(c, 0);
  tcase_add_test(c, a_forked_child_has_it);
  tcase_add_test(c, another_process_opens_it_by_name);
  tcase_add_test(c, the_memory_stays_until_the_last_has_gone);
  tcase_add_test(c, a_loaders_process_sends_a_batch_and_ends);
  tcase_add_test(c, all_dtypes_and_shapes_are_shared);
  tcase_add_test(c, views_are_shared_by_a_copy);
  tcase_add_test(c, what_is_no_shared_tensor_is_refused);
  suite_add_tcase(s, c);
  return run_io_suite(s);
}
