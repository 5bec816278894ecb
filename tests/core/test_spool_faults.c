/* test_spool_faults.c: what must hold when something is missing: room, memory, the file, the
 * process.
 *
 * Everywhere: delivered + dropped is what was tried, and the program goes on. */
#include "tests/core/support.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[256];

static void set_up(void)
{
  make_folder(folder);
}

static void tear_down(void)
{
  umount2(folder, MNT_DETACH); /* the small disk of a test that mounted one */
  remove_folder(folder);
}

static uint64_t write_some(spool_writer *w, uint64_t from, uint64_t to)
{
  uint64_t written = 0;
  for (uint64_t i = from; i < to; i++)
    written += put_event(w, 1, i);
  return written;
}

static uint64_t dropped(void)
{
  return atomic_load(&spool_current()->dropped);
}
static int reason(void)
{
  return (int)atomic_load(&spool_current()->drop_errno);
}

/* Drains n-th spool of `pid` and checks that it has what was written. */
static void check_delivered(int pid, uint64_t written)
{
  char path[512];
  tally *t = calloc(1, sizeof *t);
  spool_path(path, folder, pid, 0);
  spool_damage damage = drain_all(path, t);
  ck_assert_uint_eq(t->total, written);
  ck_assert_uint_eq(t->wrong_payload, 0);
  ck_assert_uint_eq(damage.chunks + damage.torn, 0);
  free(t);
}

/* ---- limits ---------------------------------------------------------------------------------- */

START_TEST(beyond_the_limit_every_drop_is_counted)
{
  spool_writer w = {0};
  enum { N = 100000 };
  open_spool(folder, 3 << 20);
  uint64_t written = write_some(&w, 0, N);
  ck_assert_uint_eq(written, 3 * WEIR_SPOOL_SLOTS);
  ck_assert_uint_eq(dropped(), N - written);
  ck_assert_int_eq(reason(), ENOBUFS);
  check_delivered(getpid(), written);
}
END_TEST

START_TEST(recording_goes_on_when_the_reader_has_caught_up)
{
  char path[512];
  static tally t;
  spool_visitor v = visitor(&t);
  spool_writer w = {0};
  spool_reader *r;
  open_spool(folder, 3 << 20);
  spool_path(path, folder, getpid(), 0);
  ck_assert_int_eq(spool_reader_open(&r, path, true), WEIR_OK);
  uint64_t written = write_some(&w, 0, 100000), before = dropped();
  ck_assert_int_eq(spool_drain(r, &v, false), WEIR_OK);
  written += write_some(&w, 100000, 110000);
  ck_assert_uint_eq(dropped(), before); /* its own ring is looked at first: not one is lost */
  ck_assert_int_eq(spool_drain(r, &v, true), WEIR_OK);
  ck_assert_uint_eq(t.total, written);
  spool_reader_close(r);
}
END_TEST

/* As many threads as chunks, each sitting on a full one. */
START_TEST(full_chunks_are_handed_over_even_when_there_is_no_other)
{
  char path[512];
  static tally t;
  spool_visitor v = visitor(&t);
  spool_writer a = {0}, b = {0};
  spool_reader *r;
  open_spool(folder, 2 << 20);
  spool_path(path, folder, getpid(), 0);
  ck_assert_int_eq(spool_reader_open(&r, path, true), WEIR_OK);
  uint64_t number = 0;
  for (int round = 0; round < 10; round++) {
    for (int i = 0; i < 20000; i++, number++) {
      put_event(&a, 1, number);
      put_event(&b, 2, number);
    }
    ck_assert_int_eq(spool_drain(r, &v, false), WEIR_OK);
  }
  ck_assert_uint_gt(dropped(), 0);
  ck_assert_uint_eq(t.total + dropped(), 2 * number);
  ck_assert_uint_ge(t.total, 10 * 2 * (WEIR_SPOOL_SLOTS - 16));
  ck_assert_uint_eq(spool_reader_damage(r).chunks, 0);
  spool_reader_close(r);
}
END_TEST

START_TEST(a_starved_thread_finds_chunks_others_left)
{
  char path[512];
  static tally t;
  spool_visitor v = visitor(&t);
  spool_writer hog = {0}, late = {0};
  spool_reader *r;
  open_spool(folder, 2 << 20);
  spool_path(path, folder, getpid(), 0);
  ck_assert_int_eq(spool_reader_open(&r, path, true), WEIR_OK);
  uint64_t written = write_some(&hog, 0, 2 * WEIR_SPOOL_SLOTS);
  ck_assert(!put_event(&late, 2, 0));
  spool_writer_release(&hog);
  ck_assert_int_eq(spool_drain(r, &v, false), WEIR_OK);
  uint64_t tries = 1;
  while (!put_event(&late, 2, tries) && tries < 1000)
    tries++;
  ck_assert_uint_le(tries, 16);
  ck_assert_uint_eq(dropped(), tries);
  ck_assert_int_eq(spool_drain(r, &v, true), WEIR_OK);
  ck_assert_uint_eq(t.total, written + 1);
  spool_reader_close(r);
}
END_TEST

START_TEST(what_is_refused_as_too_long_leaves_room_for_short)
{
  spool_writer w = {0};
  enum { LEFT = 100 };
  open_spool(folder, 1 << 20);
  write_some(&w, 0, WEIR_SPOOL_SLOTS - LEFT);
  ck_assert(!put_note(&w, 1, 0, 64 * (LEFT + 10)));
  ck_assert_uint_eq(dropped(), 0);
  ck_assert_uint_eq(spool_current()->dropped_extended, 1);
  ck_assert_uint_eq(write_some(&w, WEIR_SPOOL_SLOTS - LEFT, WEIR_SPOOL_SLOTS + 5), LEFT);
  ck_assert_uint_eq(dropped(), 5);
  check_delivered(getpid(), WEIR_SPOOL_SLOTS);
}
END_TEST

START_TEST(without_a_spool_drops_are_kept_for_the_first)
{
  spool_writer w = {0};
  ck_assert(!put_event(&w, 1, 0));
  ck_assert(!put_event(&w, 1, 1));
  open_spool(folder, 0);
  ck_assert_uint_eq(dropped(), 2);
  ck_assert_int_eq(reason(), ENOENT);
  ck_assert(put_event(&w, 1, 2));
  check_delivered(getpid(), 1);
}
END_TEST

/* ---- the kernel says no ---------------------------------------------------------------------- */

static void write_text(const char *path, const char *text)
{
  FILE *f = fopen(path, "w");
  if (!f) return;
  (void)fputs(text, f);
  (void)fclose(f);
}

/* A tmpfs of 3 MiB on `folder`, in a mount namespace of this process alone. */
static bool mount_small_disk(void)
{
  char map[64];
  uid_t uid = getuid();
  gid_t gid = getgid();
  if (unshare(CLONE_NEWNS)) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS)) return false;
    write_text("/proc/self/setgroups", "deny");
    (void)snprintf(map, sizeof map, "0 %u 1", uid);
    write_text("/proc/self/uid_map", map);
    (void)snprintf(map, sizeof map, "0 %u 1", gid);
    write_text("/proc/self/gid_map", map);
  }
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) return false;
  return !mount("weir-test", folder, "tmpfs", 0, "size=3m");
}

/* In a process of its own. All of the disk is used but what is too small for a chunk. */
START_TEST(a_full_disk_costs_only_the_events)
{
  spool_writer w = {0};
  enum { N = 200000 };
  int expected = ENOSPC;
  if (!mount_small_disk()) { /* not allowed here: the same road by another limit */
    struct rlimit limit = {3 << 20, 3 << 20};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    expected = EFBIG;
  }
  open_spool(folder, 0);
  uint64_t written = write_some(&w, 0, N), room = (3 << 20) - WEIR_SPOOL_HEADER;
  ck_assert_uint_ge(written, room / 64 - WEIR_SPOOL_UNIT / 64);
  ck_assert_uint_eq(dropped(), N - written);
  ck_assert_int_eq(reason(), expected);
  check_delivered(getpid(), written);
}
END_TEST

START_TEST(a_disk_too_full_for_the_header_is_enospc)
{
  char path[512];
  spool_options options = {.directory = folder};
  if (mount_small_disk()) {
    (void)snprintf(path, sizeof path, "%s/ballast", folder);
    FILE *f = fopen(path, "w");
    while (f && fputc('x', f) != EOF && !fflush(f))
      continue;
    if (f) (void)fclose(f);
  } else {
    struct rlimit limit = {1000, 1000};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ck_assert_int_eq(spool_open(&options), WEIR_ENOSPC);
  ck_assert_ptr_null(spool_current());
  spool_path(path, folder, getpid(), 0);
  ck_assert_int_eq(access(path, F_OK), -1);
}
END_TEST

START_TEST(the_file_size_limit_raises_no_signal)
{
  spool_writer w = {0};
  struct rlimit limit = {WEIR_SPOOL_HEADER + (5 << 20) / 2, RLIM_INFINITY};
  open_spool(folder, 0);
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
  uint64_t written = write_some(&w, 0, 100000);
  limit.rlim_cur = RLIM_INFINITY;
  setrlimit(RLIMIT_FSIZE, &limit);
  ck_assert_uint_eq(written, (5 << 20) / 2 / 64);
  ck_assert_uint_eq(dropped(), 100000 - written);
  ck_assert_int_eq(reason(), EFBIG);
  check_delivered(getpid(), written);
}
END_TEST

#if !SANITIZED /* a sanitizer's own shadow is over any such limit */
static uint64_t address_space(void)
{
  unsigned long long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (fscanf(f, "%llu", &pages) != 1) pages = 0;
  (void)fclose(f);
  return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

START_TEST(no_address_space_costs_only_the_events)
{
  spool_writer w = {0};
  open_spool(folder, 0);
  struct rlimit limit = {address_space() + (5 << 20) / 2, RLIM_INFINITY};
  ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
  uint64_t written = write_some(&w, 0, 100000);
  limit.rlim_cur = RLIM_INFINITY;
  setrlimit(RLIMIT_AS, &limit);
  ck_assert_uint_ge(written, (2 << 20) / 64);
  ck_assert_uint_le(written, (5 << 20) / 2 / 64);
  ck_assert_uint_eq(dropped(), 100000 - written);
  ck_assert_int_eq(reason(), ENOMEM);
  check_delivered(getpid(), written);
}
END_TEST
#endif

START_TEST(a_removed_folder_costs_only_what_does_not_fit)
{
  char path[512];
  spool_writer w = {0};
  open_spool(folder, 0);
  ck_assert(put_event(&w, 1, 0));
  remove_folder(folder);
  ck_assert_uint_eq(write_some(&w, 1, 50000), WEIR_SPOOL_UNIT / 64 - 1);
  ck_assert_uint_eq(dropped(), 50000 - WEIR_SPOOL_UNIT / 64);
  ck_assert_int_eq(reason(), ENOENT);
  spool_path(path, folder, getpid(), 0);
  ck_assert_int_eq(access(path, F_OK), -1); /* not made again */
}
END_TEST

START_TEST(another_file_in_its_place_is_not_touched)
{
  char path[512], other[512];
  struct stat st;
  spool_writer w = {0};
  open_spool(folder, 0);
  spool_path(path, folder, getpid(), 0);
  (void)snprintf(other, sizeof other, "%s/other", folder);
  write_text(other, "precious");
  ck_assert_int_eq(rename(other, path), 0);
  ck_assert_uint_eq(write_some(&w, 0, 100), 0);
  ck_assert_int_eq(reason(), ESTALE);
  ck_assert_int_eq(stat(path, &st), 0);
  ck_assert_int_eq(st.st_size, 8);
  unlink(path);
  ck_assert_int_eq(symlink(other, path), 0);
  spool_writer fresh = {0};
  ck_assert_uint_eq(write_some(&fresh, 0, 100), 0);
}
END_TEST

/* ---- fork ------------------------------------------------------------------------------------ */

START_TEST(a_forked_child_has_a_spool_of_its_own)
{
  spool_writer w = {0};
  int status;
  open_spool(folder, 0);
  uint64_t written = write_some(&w, 0, 20000);
  pid_t child = fork();
  if (child == 0) {
    spool_after_fork();
    if (spool_current()) _exit(1);
    put_event(&w, 1, 999999); /* a stale writer reaches nobody */
    spool_writer_release(&w);
    spool_options options = {.directory = folder};
    memset(&w, 0, sizeof w);
    if (spool_open(&options)) _exit(2);
    for (uint64_t i = 0; i < 30000; i++)
      if (!put_event(&w, 1, i)) _exit(3);
    _exit(0);
  }
  written += write_some(&w, 20000, 40000);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  ck_assert_uint_eq(written, 40000);
  check_delivered(getpid(), 40000);
  check_delivered(child, 30000);
}
END_TEST

START_TEST(a_stale_writer_is_renewed_at_its_next_chunk)
{
  spool_writer w = {0};
  int status;
  open_spool(folder, 0);
  write_some(&w, 0, WEIR_SPOOL_UNIT / 64); /* the chunk is full: the next record rolls */
  pid_t child = fork();
  if (child == 0) {
    spool_options options = {.directory = folder};
    spool_after_fork();
    if (spool_open(&options)) _exit(2);
    for (uint64_t i = 0; i < 100; i++)
      if (!put_event(&w, 1, i)) _exit(3);
    _exit(w.thread == 1 && w.sequence == 1 ? 0 : 4);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  check_delivered(getpid(), WEIR_SPOOL_UNIT / 64);
  check_delivered(child, 100);
}
END_TEST

/* ---- SIGKILL --------------------------------------------------------------------------------- */

enum { WRITERS = 3 };

typedef struct published {
  _Atomic uint64_t committed[WRITERS]; /* by writer, raised after each commit */
  _Atomic uint32_t ready;              /* the spool is open */
} published;

typedef struct victim {
  published *shared;
  int number;
} victim;

static void *write_for_ever(void *context)
{
  victim *me = context;
  spool_writer w = {0};
  uint64_t seed = (uint64_t)me->number;
  for (uint64_t i = 0;;) {
    bool note = random_next(&seed) % 100 == 0;
    if (note ? put_note(&w, (uint64_t)me->number, i, 500) : put_event(&w, (uint64_t)me->number, i))
      atomic_store(&me->shared->committed[me->number], ++i);
    else
      sched_yield();
  }
  return NULL;
}

static void be_victim(published *shared)
{
  static victim victims[WRITERS];
  pthread_t threads[WRITERS];
  open_spool(folder, 8 << 20);
  atomic_store(&shared->ready, 1);
  for (int i = 0; i < WRITERS; i++) {
    victims[i] = (victim){shared, i};
    pthread_create(&threads[i], NULL, write_for_ever, &victims[i]);
  }
  for (;;)
    pause();
}

static uint64_t committed(const published *shared)
{
  uint64_t sum = 0;
  for (int i = 0; i < WRITERS; i++)
    sum += atomic_load((_Atomic uint64_t *)&shared->committed[i]);
  return sum;
}

/* One life: killed once `target` records are out, read live meanwhile or only afterwards. */
static void kill_one(published *shared, uint64_t target, bool live)
{
  char path[512];
  tally *t = calloc(1, sizeof *t);
  spool_visitor v = visitor(t);
  spool_reader *r;
  memset(shared, 0, sizeof *shared);
  pid_t child = fork();
  if (child == 0) be_victim(shared);
  while (!atomic_load(&shared->ready))
    sched_yield();
  spool_path(path, folder, child, 0);
  ck_assert_int_eq(spool_reader_open(&r, path, live), WEIR_OK);
  while (committed(shared) < target)
    if (live) ck_assert_int_eq(spool_drain(r, &v, false), WEIR_OK);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  ck_assert_int_eq(spool_drain(r, &v, true), WEIR_OK);
  for (int i = 0; i < WRITERS; i++) {
    uint64_t sure = atomic_load(&shared->committed[i]), got = t->events[i] + t->notes[i];
    ck_assert_msg(got == sure || got == sure + 1, "writer %d: %llu committed, %llu delivered", i,
                  (unsigned long long)sure, (unsigned long long)got);
  }
  spool_damage damage = spool_reader_damage(r);
  ck_assert_uint_eq(t->out_of_order, 0);
  ck_assert_uint_eq(t->wrong_payload, 0);
  ck_assert_uint_eq(t->wrong_thread, 0);
  ck_assert_uint_eq(damage.chunks, 0);
  ck_assert_uint_le(damage.torn, WRITERS);
  spool_reader_close(r);
  unlink(path);
  (void)snprintf(path, sizeof path, "%s/" WEIR_SPOOL_BUDGET, folder);
  unlink(path); /* of which the dead still have a share */
  free(t);
}

START_TEST(sigkill_loses_nothing_that_was_committed)
{
  published *shared =
      mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  uint64_t seed = 42;
  for (int i = 0; i < 100; i++) {
    bool live = i % 2;
    uint64_t most = live ? 400000 : 6 * WEIR_SPOOL_SLOTS; /* unread, the limit stops them */
    kill_one(shared, random_next(&seed) % (SANITIZED ? most / 10 : most), live);
  }
  munmap(shared, sizeof *shared);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("core/spool_faults");
  TCase *t = tcase_create("faults");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, set_up, tear_down);
  tcase_add_test(t, beyond_the_limit_every_drop_is_counted);
  tcase_add_test(t, recording_goes_on_when_the_reader_has_caught_up);
  tcase_add_test(t, full_chunks_are_handed_over_even_when_there_is_no_other);
  tcase_add_test(t, a_starved_thread_finds_chunks_others_left);
  tcase_add_test(t, what_is_refused_as_too_long_leaves_room_for_short);
  tcase_add_test(t, without_a_spool_drops_are_kept_for_the_first);
  tcase_add_test(t, a_full_disk_costs_only_the_events);
  tcase_add_test(t, a_disk_too_full_for_the_header_is_enospc);
  tcase_add_test(t, the_file_size_limit_raises_no_signal);
#if !SANITIZED
  tcase_add_test(t, no_address_space_costs_only_the_events);
#endif
  tcase_add_test(t, a_removed_folder_costs_only_what_does_not_fit);
  tcase_add_test(t, another_file_in_its_place_is_not_touched);
  tcase_add_test(t, a_forked_child_has_a_spool_of_its_own);
  tcase_add_test(t, a_stale_writer_is_renewed_at_its_next_chunk);
  tcase_add_test(t, sigkill_loses_nothing_that_was_committed);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
