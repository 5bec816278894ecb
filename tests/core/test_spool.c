/* test_spool.c: what goes into a spool comes out of it: once, in order, whole, whoever reads it
 * when. */
#include "tests/core/support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[256];

static void set_up(void)
{
  make_folder(folder);
}
static void tear_down(void)
{
  remove_folder(folder);
}

/* ---- one thread ------------------------------------------------------------------------------ */

START_TEST(an_empty_spool_delivers_nothing)
{
  char path[512];
  static tally t;
  open_spool(folder, 0);
  spool_path(path, folder, getpid(), 0);
  spool_damage damage = drain_all(path, &t);
  ck_assert_uint_eq(t.total, 0);
  ck_assert_uint_eq(damage.chunks + damage.torn + damage.bytes_cut, 0);
}
END_TEST

START_TEST(the_header_says_who_wrote_it)
{
  char path[512], exe[1024] = "";
  struct stat st;
  spool_reader *r;
  spool_options options = {.directory = folder, .api_count = 17, .api_hash = 0x1234567890};
  spool_drop(3, EMFILE); /* before there is a spool */
  ck_assert_int_eq(spool_open(&options), WEIR_OK);
  spool_path(path, folder, getpid(), 0);
  ck_assert_int_eq(stat(path, &st), 0);
  ck_assert_uint_eq(st.st_mode & 07777, 0600);
  ck_assert_int_eq(spool_reader_open(&r, path, false), WEIR_OK);
  const spool_header *h = spool_reader_header(r);
  ck_assert_uint_eq(h->pid, (uint32_t)getpid());
  ck_assert_uint_eq(h->ppid, (uint32_t)getppid());
  ck_assert_uint_eq(h->api_count, 17);
  ck_assert_uint_eq(h->api_hash, 0x1234567890);
  ck_assert_uint_eq(h->dropped, 3);
  ck_assert_uint_eq(h->drop_errno, EMFILE);
  ck_assert_int_gt(readlink("/proc/self/exe", exe, sizeof exe - 1), 0);
  ck_assert_str_eq(h->exe, exe);
  ck_assert_uint_gt(h->cmdline_bytes, 0);
  ck_assert_ptr_nonnull(strstr(h->cmdline, "test_spool"));
  ck_assert_uint_gt(h->start_time, 0);
  ck_assert_uint_eq(h->closed, 0);
  spool_close();
  ck_assert_uint_eq(spool_reader_header(r)->closed, 1);
  spool_reader_close(r);
}
END_TEST

START_TEST(the_rank_is_what_the_launcher_says)
{
  static const struct {
    const char *name, *value;
    uint32_t rank; /* and 1 */
  } cases[] = {{"HOME", "3", 0},      {"RANK", "0", 1},         {"SLURM_PROCID", "12", 13},
               {"PMIX_RANK", "7", 8}, {"RANK", "", 0},          {"RANK", "-1", 0},
               {"RANK", "5 of 6", 0}, {"RANK", "4294967296", 0}};
  ck_assert_int_eq(setenv(cases[_i].name, cases[_i].value, 1), 0);
  open_spool(folder, 0);
  ck_assert_uint_eq(spool_current()->rank, cases[_i].rank);
  spool_close();
  ck_assert_int_eq(setenv("OMPI_COMM_WORLD_RANK", "2", 1), 0); /* Open MPI's own goes first */
  open_spool(folder, 0);
  ck_assert_uint_eq(spool_current()->rank, 3);
}
END_TEST

START_TEST(the_start_time_is_procs)
{
  char text[1024], *p;
  unsigned long long start;
  FILE *f = fopen("/proc/self/stat", "r");
  size_t n = fread(text, 1, sizeof text - 1, f);
  (void)fclose(f);
  text[n] = 0;
  p = strrchr(text, ')');
  ck_assert_int_eq(
      sscanf(p + 1,
             " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
             &start),
      1);
  open_spool(folder, 0);
  ck_assert_uint_eq(spool_current()->start_time, start);
}
END_TEST

START_TEST(names_go_on_counting)
{
  char path[512];
  for (int i = 0; i < 3; i++) {
    open_spool(folder, 0);
    spool_path(path, folder, getpid(), i);
    ck_assert_int_eq(access(path, F_OK), 0);
  }
}
END_TEST

START_TEST(a_folder_that_is_not_there_is_enoent)
{
  spool_options options = {.directory = "/nonexistent/weir"};
  ck_assert_int_eq(spool_open(&options), WEIR_ENOENT);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "/nonexistent/weir: No such file"));
  options.directory = "relative";
  ck_assert_int_eq(spool_open(&options), WEIR_EINVAL);
  ck_assert_ptr_null(spool_current());
}
END_TEST

START_TEST(events_and_extended_records_come_back_in_order)
{
  char path[512];
  static tally t;
  spool_writer w = {0};
  uint64_t seed = 7, notes = 0;
  enum { N = 60000 };
  open_spool(folder, 0);
  for (uint64_t i = 0; i < N; i++) {
    if (random_next(&seed) % 50 == 0) {
      size_t bytes = random_next(&seed) % 8 == 0
                         ? random_next(&seed) % (WEIR_SPOOL_MAX_EXTRA * 64 + 1)
                         : random_next(&seed) % 300;
      ck_assert(put_note(&w, 1, i, bytes));
      notes++;
    } else {
      ck_assert(put_event(&w, 1, i));
    }
  }
  spool_path(path, folder, getpid(), 0);
  spool_damage damage = drain_all(path, &t);
  ck_assert_uint_eq(t.events[1], N - notes);
  ck_assert_uint_eq(t.notes[1], notes);
  ck_assert_uint_eq(t.out_of_order + t.wrong_payload + t.wrong_thread, 0);
  ck_assert_uint_eq(damage.chunks + damage.torn + damage.bytes_cut, 0);
}
END_TEST

START_TEST(the_largest_payload_fits_and_a_larger_is_refused)
{
  static uint8_t big[WEIR_SPOOL_MAX_EXTRA * 64 + 1];
  char path[512];
  static tally t;
  spool_writer w = {0};
  trace_event head = {.a = 1};
  open_spool(folder, 0);
  ck_assert(put_note(&w, 1, 0, sizeof big - 1));
  ck_assert(!spool_writer_extended(&w, WEIR_EV_NOTE, &head, big, sizeof big));
  ck_assert_uint_eq(spool_current()->dropped_extended, 1);
  ck_assert_uint_eq(spool_current()->dropped, 0);
  ck_assert(put_note(&w, 1, 1, 0));
  spool_path(path, folder, getpid(), 0);
  drain_all(path, &t);
  ck_assert_uint_eq(t.notes[1], 2);
  ck_assert_uint_eq(t.out_of_order + t.wrong_payload, 0);
}
END_TEST

START_TEST(a_stack_counts_its_addresses)
{
  char path[512];
  spool_writer w = {0};
  uint64_t frames[5] = {1, 2, 3, 4, 5};
  trace_event head = {.a = 1, .bytes = 77};
  open_spool(folder, 0);
  ck_assert(spool_writer_extended(&w, WEIR_EV_STACK, &head, frames, sizeof frames));
  ck_assert_uint_eq(w.next[-2].bytes, 5);
  ck_assert_uint_eq(w.next[-2].status, 1);
  spool_path(path, folder, getpid(), 0);
  static tally t;
  ck_assert_uint_eq(drain_all(path, &t).chunks, 0);
  ck_assert_uint_eq(t.total, 1);
}
END_TEST

START_TEST(recording_keeps_errno)
{
  spool_writer w = {0};
  open_spool(folder, 2 << 20);
  for (uint64_t i = 0; i < 50000; i++) { /* rolls, grows, drops */
    errno = 4711;
    put_event(&w, 1, i);
    ck_assert_int_eq(errno, 4711);
    if (i % 100) continue;
    put_note(&w, 1, i, 100);
    ck_assert_int_eq(errno, 4711);
  }
  ck_assert_uint_gt(spool_current()->dropped, 0);
  spool_writer_release(&w);
  spool_close();
  ck_assert_int_eq(errno, 4711);
}
END_TEST

START_TEST(a_released_writer_starts_a_new_chunk)
{
  char path[512];
  static tally t;
  spool_writer w = {0};
  open_spool(folder, 0);
  for (uint64_t i = 0; i < 100; i++) {
    ck_assert(put_event(&w, 1, i));
    if (i % 10 == 9) spool_writer_release(&w);
    if (i % 20 == 19) spool_writer_release(&w); /* twice: nothing to hand over */
  }
  spool_path(path, folder, getpid(), 0);
  spool_damage damage = drain_all(path, &t);
  ck_assert_uint_eq(t.events[1], 100);
  ck_assert_uint_eq(t.out_of_order + damage.chunks, 0);
  ck_assert_uint_eq(spool_current()->threads, 1);
}
END_TEST

/* ---- the reader's side ----------------------------------------------------------------------- */

START_TEST(a_live_reader_sees_each_record_once_as_it_comes)
{
  char path[512];
  static tally t;
  spool_visitor v = visitor(&t);
  spool_writer w = {0};
  spool_reader *r;
  open_spool(folder, 0);
  spool_path(path, folder, getpid(), 0);
  ck_assert_int_eq(spool_reader_open(&r, path, true), WEIR_OK);
  for (uint64_t i = 0; i < 40000; i++) {
    ck_assert(i % 97 ? put_event(&w, 1, i) : put_note(&w, 1, i, i % 1000));
    if (i % 13 == 0 || i < 100) {
      ck_assert_int_eq(spool_drain(r, &v, false), WEIR_OK);
      ck_assert_uint_eq(t.total, i + 1);
    }
  }
  ck_assert_int_eq(spool_drain(r, &v, true), WEIR_OK);
  ck_assert_uint_eq(t.total, 40000);
  ck_assert_uint_eq(t.out_of_order + t.wrong_payload, 0);
  ck_assert_uint_le(spool_current()->taken, 4 << 20); /* drained chunks are used again */
  ck_assert_int_eq(spool_drain(r, &v, true), WEIR_OK);
  ck_assert_uint_eq(t.total, 40000);
  spool_reader_close(r);
}
END_TEST

START_TEST(what_a_visitor_refuses_comes_again)
{
  char path[512];
  static tally t;
  spool_visitor v = visitor(&t);
  spool_writer w = {0};
  spool_reader *r;
  open_spool(folder, 0);
  for (uint64_t i = 0; i < 40000; i++)
    put_event(&w, 1, i);
  spool_path(path, folder, getpid(), 0);
  ck_assert_int_eq(spool_reader_open(&r, path, true), WEIR_OK);
  for (uint64_t at = 1; at <= 40000; at += 997) {
    t.refuse_at = at;
    ck_assert_int_eq(spool_drain(r, &v, at % 2), WEIR_EIO);
    ck_assert_uint_eq(t.total, at - 1);
  }
  ck_assert_int_eq(spool_drain(r, &v, true), WEIR_OK);
  ck_assert_uint_eq(t.total, 40000);
  ck_assert_uint_eq(t.out_of_order, 0);
  spool_reader_close(r);
}
END_TEST

START_TEST(a_reader_that_is_not_live_leaves_the_file_alone)
{
  char path[512], command[1200];
  static tally t;
  spool_writer w = {0};
  open_spool(folder, 0);
  for (uint64_t i = 0; i < 40000; i++)
    put_event(&w, 1, i);
  spool_path(path, folder, getpid(), 0);
  (void)snprintf(command, sizeof command, "cp %s %s/copy", path, folder);
  ck_assert_int_eq(system(command), 0);
  drain_all(path, &t);
  ck_assert_uint_eq(t.total, 40000);
  (void)snprintf(command, sizeof command, "cmp %s %s/copy", path, folder);
  ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(the_clock_map_brings_ticks_to_monotonic_time)
{
  char path[512];
  spool_reader *r;
  open_spool(folder, 0);
  spool_path(path, folder, getpid(), 0);
  ck_assert_int_eq(spool_reader_open(&r, path, false), WEIR_OK);
  uint64_t before = clock_monotonic_ns();
  while (clock_monotonic_ns() < before + 2000000)
    continue;
  before = clock_monotonic_ns();
  uint64_t ticks = clock_ticks(), after = clock_monotonic_ns();
  clock_map map = spool_reader_clock(r);
  int64_t ns = clock_to_mono_ns(&map, ticks);
  ck_assert_int_ge(ns, (int64_t)before - 100000);
  ck_assert_int_le(ns, (int64_t)after + 100000);
  spool_reader_close(r);
}
END_TEST

/* ---- many threads ---------------------------------------------------------------------------- */

typedef struct job {
  pthread_t thread;
  uint64_t key, count;
  uint64_t refused; /* tries that were dropped */
  _Atomic uint64_t *alive;
} job;

static void *write_all(void *context)
{
  job *j = context;
  spool_writer w = {0};
  uint64_t seed = j->key;
  for (uint64_t i = 0; i < j->count;) {
    bool note = random_next(&seed) % 200 == 0;
    if (note ? put_note(&w, j->key, i, random_next(&seed) % 2000) : put_event(&w, j->key, i)) {
      i++;
      continue;
    }
    j->refused += !note;
    sched_yield();
  }
  spool_writer_release(&w);
  atomic_fetch_sub(j->alive, 1);
  return NULL;
}

static uint64_t run_writers(job *jobs, unsigned threads, uint64_t count, _Atomic uint64_t *alive)
{
  atomic_store(alive, threads);
  for (unsigned i = 0; i < threads; i++) {
    jobs[i] = (job){.key = i + 1, .count = count, .alive = alive};
    ck_assert_int_eq(pthread_create(&jobs[i].thread, NULL, write_all, &jobs[i]), 0);
  }
  return threads * count;
}

static void check_tally(const tally *t, unsigned threads, uint64_t count)
{
  for (unsigned key = 1; key <= threads; key++)
    ck_assert_uint_eq(t->events[key] + t->notes[key], count);
  ck_assert_uint_eq(t->total, threads * count);
  ck_assert_uint_eq(t->out_of_order, 0);
  ck_assert_uint_eq(t->wrong_payload, 0);
  ck_assert_uint_eq(t->wrong_thread, 0);
}

static const unsigned thread_counts[] = {1, 2, 4, 16};

START_TEST(threads_are_read_afterwards)
{
  const unsigned threads = thread_counts[_i];
  char path[512];
  static tally t;
  static job jobs[16];
  _Atomic uint64_t alive;
  open_spool(folder, 0);
  run_writers(jobs, threads, 30000, &alive);
  for (unsigned i = 0; i < threads; i++)
    pthread_join(jobs[i].thread, NULL);
  spool_path(path, folder, getpid(), 0);
  spool_damage damage = drain_all(path, &t);
  check_tally(&t, threads, 30000);
  ck_assert_uint_eq(damage.chunks + damage.torn, 0);
  ck_assert_uint_eq(spool_current()->threads, threads);
}
END_TEST

/* Few chunks, so that every one is recycled many times and writers run dry; dropped is what was
 * refused. */
START_TEST(threads_are_read_live_while_chunks_are_recycled)
{
  const unsigned threads = thread_counts[_i];
  const uint64_t count = SANITIZED ? 30000 : 100000;
  char path[512];
  static tally t;
  static job jobs[16];
  spool_visitor v = visitor(&t);
  spool_reader *r;
  _Atomic uint64_t alive;
  uint64_t refused = 0;
  open_spool(folder, (uint64_t)(threads + 2) << 20);
  spool_path(path, folder, getpid(), 0);
  ck_assert_int_eq(spool_reader_open(&r, path, true), WEIR_OK);
  run_writers(jobs, threads, count, &alive);
  while (atomic_load(&alive))
    ck_assert_int_eq(spool_drain(r, &v, false), WEIR_OK);
  for (unsigned i = 0; i < threads; i++) {
    pthread_join(jobs[i].thread, NULL);
    refused += jobs[i].refused;
  }
  ck_assert_int_eq(spool_drain(r, &v, true), WEIR_OK);
  check_tally(&t, threads, count);
  ck_assert_uint_eq(spool_current()->dropped, refused);
  ck_assert_uint_le(spool_current()->taken - spool_current()->returned,
                    ((uint64_t)(threads + 2) << 20) + WEIR_SPOOL_BLOCKS);
  ck_assert_uint_eq(spool_reader_damage(r).chunks, 0);
  spool_reader_close(r);
}
END_TEST

START_TEST(another_process_reads_live)
{
  enum { THREADS = 4, COUNT = 60000 };
  char path[512];
  static tally t;
  spool_visitor v = visitor(&t);
  spool_reader *r;
  int ready[2], status;
  char byte;
  ck_assert_int_eq(pipe(ready), 0);
  pid_t child = fork();
  if (child == 0) {
    static job jobs[THREADS];
    _Atomic uint64_t alive;
    open_spool(folder, 0);
    if (write(ready[1], "x", 1) != 1) _exit(1);
    run_writers(jobs, THREADS, COUNT, &alive);
    for (int i = 0; i < THREADS; i++)
      pthread_join(jobs[i].thread, NULL);
    _exit(atomic_load(&spool_current()->dropped) != 0);
  }
  ck_assert_int_eq(read(ready[0], &byte, 1), 1);
  spool_path(path, folder, child, 0);
  ck_assert_int_eq(spool_reader_open(&r, path, true), WEIR_OK);
  while (waitpid(child, &status, WNOHANG) == 0)
    ck_assert_int_eq(spool_drain(r, &v, false), WEIR_OK);
  ck_assert_int_eq(status, 0);
  ck_assert_int_eq(spool_drain(r, &v, true), WEIR_OK);
  check_tally(&t, THREADS, COUNT);
  spool_reader_close(r);
}
END_TEST

/* A pool of threads that come and go takes over the chunks of those that went. */
START_TEST(chunks_of_finished_threads_are_adopted)
{
  enum { ROUNDS = 200 };
  char path[512];
  static tally t;
  spool_visitor v = visitor(&t);
  spool_reader *r;
  _Atomic uint64_t alive;
  open_spool(folder, 0);
  spool_path(path, folder, getpid(), 0);
  ck_assert_int_eq(spool_reader_open(&r, path, true), WEIR_OK);
  for (unsigned i = 0; i < ROUNDS; i++) {
    job j = {.key = 1, .count = 10, .alive = &alive};
    t.next[1] = 0; /* each round counts from 0 in a thread of its own */
    t.thread[1] = 0;
    ck_assert_int_eq(pthread_create(&j.thread, NULL, write_all, &j), 0);
    pthread_join(j.thread, NULL);
    ck_assert_int_eq(spool_drain(r, &v, false), WEIR_OK);
  }
  ck_assert_uint_eq(t.total, ROUNDS * 10);
  ck_assert_uint_eq(t.out_of_order + t.wrong_payload, 0);
  ck_assert_uint_eq(spool_current()->chunks, 1);
  ck_assert_uint_eq(spool_current()->threads, ROUNDS);
  spool_reader_close(r);
}
END_TEST

START_TEST(idle_threads_are_told_apart)
{
  enum { THREADS = 60 };
  char path[512];
  static tally t;
  spool_visitor v = visitor(&t);
  static spool_writer writers[THREADS];
  spool_reader *r;
  open_spool(folder, 0);
  spool_path(path, folder, getpid(), 0);
  ck_assert_int_eq(spool_reader_open(&r, path, true), WEIR_OK);
  for (uint64_t round = 0; round < 50; round++)
    for (uint64_t i = 0; i < THREADS; i++) {
      ck_assert(put_event(&writers[i], i, round));
      if ((round * THREADS + i) % 17 == 0) ck_assert_int_eq(spool_drain(r, &v, false), WEIR_OK);
    }
  ck_assert_int_eq(spool_drain(r, &v, true), WEIR_OK);
  ck_assert_uint_eq(t.total, 50 * THREADS);
  ck_assert_uint_eq(t.out_of_order + t.wrong_thread, 0);
  spool_reader_close(r);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

/* Bytes of disk the spool takes. */
static uint64_t blocks(const char *path)
{
  struct stat st;
  ck_assert_int_eq(stat(path, &st), 0);
  return (uint64_t)st.st_blocks * 512;
}

START_TEST(a_program_that_records_little_takes_little)
{
  char path[512];
  spool_writer w = {0};
  open_spool(folder, 0);
  for (uint64_t i = 0; i < 200; i++)
    ck_assert(put_event(&w, 1, i));
  spool_path(path, folder, getpid(), 0);
  ck_assert_uint_le(blocks(path), 64 << 10);
}
END_TEST

/* Whether there is disk for so much, and for what other suites need meanwhile. */
static bool has_room(uint64_t bytes)
{
  struct statvfs fs;
  ck_assert_int_eq(statvfs(folder, &fs), 0);
  return (uint64_t)fs.f_bavail * fs.f_frsize >= 2 * bytes;
}

START_TEST(a_crowd_of_threads_takes_little)
{
  enum { CROWD = 5000 };
  if (!has_room(400 << 20)) return;
  char path[512];
  static spool_writer writers[CROWD];
  static tally t;
  open_spool(folder, 0);
  for (uint64_t i = 0; i < CROWD; i++)
    ck_assert(put_event(&writers[i], 1, i));
  ck_assert_uint_eq(spool_current()->dropped, 0);
  spool_path(path, folder, getpid(), 0);
  ck_assert_uint_le(blocks(path), 400 << 20);
  ck_assert_uint_eq(drain_all(path, &t).chunks, 0);
  ck_assert_uint_eq(t.events[1], CROWD);
}
END_TEST

/* ---- by time --------------------------------------------------------------------------------- */

/* A visitor that holds deliveries against the times that were given. */
typedef struct by_time {
  tally seen;
  uint64_t latest;       /* the largest time given */
  uint64_t early, turns; /* records from before it; times it was given */
  uint64_t slots, most;  /* since then, and the most between two */
} by_time;

static weir_status until_time(void *context, uint64_t ticks)
{
  by_time *t = context;
  if (ticks > t->latest) t->latest = ticks;
  t->turns++;
  t->slots = 0;
  return WEIR_OK;
}

static weir_status event_by_time(void *context, uint32_t thread, uint32_t tid, const trace_event *e)
{
  by_time *t = context;
  spool_visitor counts = visitor(&t->seen);
  t->early += e->start < t->latest;
  if (++t->slots > t->most) t->most = t->slots;
  trace_event plain = *e;
  plain.start = e->b * 10; /* as the visitor that counts wants it */
  return counts.event(counts.context, thread, tid, &plain);
}

static weir_status note_by_time(void *context, uint32_t thread, uint32_t tid,
                                const trace_event *head, const void *payload, size_t bytes)
{
  by_time *t = context;
  spool_visitor counts = visitor(&t->seen);
  t->slots += 1u + head->status;
  if (t->slots > t->most) t->most = t->slots;
  return counts.extended(counts.context, thread, tid, head, payload, bytes);
}

static bool put_event_at(spool_writer *w, uint64_t key, uint64_t number, uint64_t start)
{
  trace_event *e = spool_writer_slots(w, 1);
  if (!e) return false;
  memset((char *)e + sizeof e->commit, 0, sizeof *e - sizeof e->commit);
  e->kind = WEIR_EV_CALL;
  e->a = key;
  e->b = number;
  e->bytes = key ^ number;
  e->stream = ~number;
  e->start = start;
  event_set_duration(e, number & 1023);
  spool_writer_commit(w, 1);
  return true;
}

enum { BY_TIME_THREADS = 7, BY_TIME_RECORDS = 60000 };

/* Random turns of threads, one of which writes long records besides; some begin late. */
static uint64_t put_by_time(spool_writer *w, uint64_t *number, uint64_t *seed, uint64_t *now)
{
  uint64_t put = 0;
  for (int i = 0; i < BY_TIME_RECORDS; i++) {
    unsigned k = (unsigned)(random_next(seed) % (i < BY_TIME_RECORDS / 4 ? 2 : BY_TIME_THREADS));
    bool note = k == 3 && i % 64 == 0;
    *now += 1 + random_next(seed) % 5;
    put += note ? put_note(&w[k], k, number[k], random_next(seed) % 65536)
                : put_event_at(&w[k], k, number[k], *now);
    number[k]++;
  }
  return put;
}

START_TEST(by_time_each_record_comes_once_and_none_is_early)
{
  static spool_writer w[BY_TIME_THREADS];
  static by_time t;
  char path[512];
  spool_reader *r;
  uint64_t number[BY_TIME_THREADS] = {0}, seed = (uint64_t)_i + 1, now = 1000;
  spool_visitor v = {&t, event_by_time, note_by_time};
  memset(w, 0, sizeof w);
  memset(&t, 0, sizeof t);
  open_spool(folder, UINT64_C(128) << 20);
  spool_path(path, folder, getpid(), 0);
  ck_assert_int_eq(spool_reader_open(&r, path, _i % 2), WEIR_OK);
  uint64_t put = put_by_time(w, number, &seed, &now);
  ck_assert_int_eq(spool_drain_by_time(r, &v, until_time, false), WEIR_OK);
  put += put_by_time(w, number, &seed, &now);
  for (int i = 0; i < BY_TIME_THREADS; i++)
    spool_writer_release(&w[i]);
  ck_assert_int_eq(spool_drain_by_time(r, &v, until_time, true), WEIR_OK);
  spool_damage damage = spool_reader_damage(r);
  ck_assert_uint_eq(damage.chunks + damage.torn + damage.bytes_cut, 0);
  ck_assert_uint_eq(t.seen.total, put);
  ck_assert_uint_eq(t.seen.out_of_order + t.seen.wrong_payload + t.seen.wrong_thread, 0);
  ck_assert_uint_eq(t.early, 0);
  ck_assert_uint_gt(t.turns, 2 * BY_TIME_RECORDS / WEIR_SPOOL_TURN);
  ck_assert_uint_le(t.most, WEIR_SPOOL_TURN);
  spool_reader_close(r);
}
END_TEST

/* What a copy of the directory holds depends on when each entry was copied. pread() is ours: when
 * `tear` is set, the writer goes on to two more chunks while the reader copies the directory, the
 * second of which is in the copy, the first not yet. */
static struct {
  int tears; /* copies to come that are torn */
  spool_writer *writer;
  uint64_t number; /* of the writer's next record */
} tear;

static uint32_t roll_once(void)
{
  const uint32_t before = tear.writer->chunk;
  for (uint64_t i = 0; i <= WEIR_SPOOL_SLOTS; i++) {
    if (!put_event(tear.writer, 1, tear.number++)) ck_abort_msg("an event found no room");
    if (tear.writer->chunk != before) return tear.writer->chunk;
  }
  ck_abort_msg("a writer filled a chunk and has the same");
  return 0;
}

ssize_t pread(int fd, void *out, size_t bytes, off_t offset)
{
  chunk_entry early;
  if (!tear.tears || offset != WEIR_SPOOL_DIRECTORY || bytes < 2 * sizeof early)
    return syscall(SYS_pread64, fd, out, bytes, offset);
  tear.tears--;
  chunk_entry *entries = out;
  ck_assert_int_eq(syscall(SYS_pread64, fd, out, bytes, offset), bytes);
  const uint32_t missed = roll_once();
  if ((missed + 1) * sizeof early <= bytes) early = entries[missed];
  (void)roll_once();
  ck_assert_int_eq(syscall(SYS_pread64, fd, out, bytes, offset), bytes);
  if ((missed + 1) * sizeof early <= bytes) entries[missed] = early;
  return (ssize_t)bytes;
}

START_TEST(a_copy_of_a_directory_that_changes_again_breaks_no_order)
{
  enum { CHUNKS = 24 }; /* until chunks do not grow any more and come back */
  char path[512];
  static tally t;
  spool_writer w = {0};
  spool_reader *r;
  spool_visitor v = visitor(&t);
  open_spool(folder, 0);
  spool_path(path, folder, getpid(), 0);
  ck_assert_int_eq(spool_reader_open(&r, path, true), WEIR_OK);
  tear.writer = &w;
  for (int i = 0; i < CHUNKS; i++) {
    (void)roll_once();
    ck_assert_int_eq(spool_drain(r, &v, false), WEIR_OK);
  }
  for (int tears = 1; tears <= 5; tears++) {
    tear.tears = tears;
    ck_assert_int_eq(spool_drain(r, &v, false), WEIR_OK);
    const int left = tear.tears;
    tear.tears = 0;
    ck_assert_int_eq(spool_drain(r, &v, false), WEIR_OK);
    ck_assert_uint_eq(t.total, tear.number);
    ck_assert_uint_eq(t.out_of_order, 0);
    ck_assert_uint_eq(spool_reader_damage(r).chunks, 0);
    ck_assert_int_eq(left, 0); /* each copy showed a gap, and another was made */
  }
  spool_reader_close(r);
}
END_TEST

/* Of 64 MiB that a program wrote while nobody read. */
START_TEST(what_was_drained_is_given_back)
{
  enum { N = 1 << 20, KEPT = 10 << 20 };
  char path[512];
  static tally t;
  spool_visitor v = visitor(&t);
  spool_writer w = {0};
  spool_reader *r;
  spool_budget *budget = NULL;
  if (!has_room(80 << 20)) return;
  open_spool(folder, 0);
  uint64_t written = 0; /* asked once: a check that holds is written down, too */
  for (uint64_t i = 0; i < N; i++)
    written += put_event(&w, 1, i);
  ck_assert_uint_eq(written, N);
  spool_path(path, folder, getpid(), 0);
  ck_assert_uint_gt(blocks(path), 64 << 20);
  ck_assert_int_eq(spool_reader_open(&r, path, true), WEIR_OK);
  for (int i = 0; i < 3; i++)
    ck_assert_int_eq(spool_drain(r, &v, false), WEIR_OK);
  ck_assert_uint_le(blocks(path), KEPT);
  const spool_header *h = spool_current();
  ck_assert_uint_le(h->taken - h->returned, KEPT);
  for (uint64_t i = 0; i < N; i++) /* what is gone is there again when it is wanted */
    written += put_event(&w, 1, N + i);
  ck_assert_uint_eq(written, 2 * N);
  ck_assert_int_eq(spool_drain(r, &v, true), WEIR_OK);
  ck_assert_uint_eq(t.events[1], 2 * N);
  ck_assert_uint_eq(t.out_of_order + spool_reader_damage(r).chunks, 0);
  spool_reader_repay(r, spool_reader_owes(r));
  spool_reader_close(r);
  (void)snprintf(path, sizeof path, "%s/" WEIR_SPOOL_BUDGET, folder);
  int fd = open(path, O_RDWR);
  budget = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  ck_assert_ptr_ne(budget, MAP_FAILED);
  ck_assert_uint_gt(budget->taken, 0);
  ck_assert_uint_eq(budget->taken, budget->returned);
  munmap(budget, 4096);
}
END_TEST

/* Bytes of the folder's budget that are in use. */
static uint64_t budget_in_use(void)
{
  char path[512];
  uint64_t numbers[2];
  (void)snprintf(path, sizeof path, "%s/" WEIR_SPOOL_BUDGET, folder);
  int fd = open(path, O_RDONLY);
  ck_assert_int_eq(pread(fd, numbers, sizeof numbers, 0), sizeof numbers);
  close(fd);
  return numbers[0] - numbers[1];
}

START_TEST(headers_are_in_the_budget_and_had_beyond_it)
{
  spool_options options = {.directory = folder, .limit_bytes = 2 * WEIR_SPOOL_BLOCKS};
  char path[512];
  spool_writer w = {0};
  spool_reader *r;
  for (unsigned i = 1; i <= 3; i++) {
    ck_assert_int_eq(spool_open(&options), WEIR_OK);
    ck_assert_uint_eq(budget_in_use(), i * WEIR_SPOOL_BLOCKS);
    spool_path(path, folder, getpid(), (int)i - 1);
    ck_assert_uint_le(blocks(path), WEIR_SPOOL_BLOCKS);
  }
  ck_assert(!put_event(&w, 1, 0)); /* and counted by the third */
  ck_assert_uint_eq(spool_current()->dropped, 1);
  ck_assert_uint_eq(budget_in_use(), 3 * WEIR_SPOOL_BLOCKS);
  spool_path(path, folder, getpid(), 0);
  ck_assert_int_eq(spool_reader_open(&r, path, true), WEIR_OK);
  spool_reader_repay(r, spool_reader_owes(r));
  spool_reader_close(r);
  ck_assert_uint_eq(budget_in_use(), 2 * WEIR_SPOOL_BLOCKS);
}
END_TEST

/* A recorder that takes nothing: the spool grows to what is kept and two chunks for each thread,
 * whatever the folder's other spools have, and what does not fit is dropped, counted. */
START_TEST(a_spool_that_is_kept_has_a_bound_of_its_own)
{
  enum { KEPT = 4 << 20, CHUNK = KEPT / 128, THREADS = 3 };
  spool_options options = {.directory = folder, .keep_bytes = KEPT};
  static spool_writer w[THREADS];
  char path[512];
  struct stat file;
  memset(w, 0, sizeof w);
  for (int spools = 0; spools < 2; spools++) {
    uint64_t written = 0;
    ck_assert_int_eq(spool_open(&options), WEIR_OK);
    for (int i = 0; i < 4 * KEPT / 64; i++)
      written += put_event(&w[i % THREADS], 1, (uint64_t)i);
    spool_path(path, folder, getpid(), spools);
    ck_assert_int_eq(stat(path, &file), 0);
    ck_assert_uint_le((uint64_t)file.st_blocks * 512, KEPT + 2 * CHUNK * (THREADS + 1));
    ck_assert_uint_ge(written * sizeof(trace_event), KEPT - KEPT / 8);
    ck_assert_uint_eq(spool_current()->dropped, 4 * KEPT / 64 - written);
    for (uint32_t i = 0; i < spool_current()->chunks; i++)
      ck_assert_uint_le(spool_directory(spool_current())[i].units * WEIR_SPOOL_UNIT, CHUNK);
  }
}
END_TEST

/* What an event needs is there when the file cannot be opened again; where the limit has no room
 * for it, the spool opens without. */
START_TEST(a_chunk_that_is_asked_for_comes_with_the_header)
{
  enum { HELD = WEIR_SPOOL_BLOCKS + WEIR_SPOOL_UNIT };
  spool_options options = {.directory = folder, .limit_bytes = 2 * HELD - 1, .chunk = true};
  char path[512];
  spool_writer w = {0};
  static tally t;
  spool_visitor v = visitor(&t);
  spool_reader *r;
  ck_assert_int_eq(spool_open(&options), WEIR_OK);
  ck_assert_uint_eq(budget_in_use(), HELD);
  ck_assert_uint_eq(spool_current()->taken, HELD);
  spool_path(path, folder, getpid(), 0);
  ck_assert_int_eq(spool_reader_open(&r, path, true), WEIR_OK);
  ck_assert_int_eq(unlink(path), 0);
  for (uint64_t i = 0; i < WEIR_SPOOL_UNIT / sizeof(trace_event); i++)
    ck_assert(put_event(&w, 1, i));
  ck_assert(!put_event(&w, 1, 0));
  ck_assert_int_eq(spool_drain(r, &v, true), WEIR_OK);
  ck_assert_uint_eq(t.total, WEIR_SPOOL_UNIT / sizeof(trace_event));
  spool_reader_close(r);
  ck_assert_int_eq(spool_open(&options), WEIR_OK);
  ck_assert_uint_eq(budget_in_use(), HELD + WEIR_SPOOL_BLOCKS);
  ck_assert_uint_eq(spool_current()->chunks, 0);
}
END_TEST

/* The first spool's process is gone when the second wants what it had. */
START_TEST(spools_of_a_folder_share_one_budget)
{
  enum { LIMIT = 4 << 20, N = LIMIT / 64 };
  char path[512];
  static tally t;
  spool_visitor v = visitor(&t);
  spool_writer first = {0}, second = {0};
  spool_reader *r;
  uint64_t written = 0;
  open_spool(folder, LIMIT);
  spool_path(path, folder, getpid(), 0);
  for (uint64_t i = 0; i < N / 2; i++)
    ck_assert(put_event(&first, 1, i));
  open_spool(folder, LIMIT);
  for (uint64_t i = 0; i < N; i++)
    written += put_event(&second, 2, i);
  ck_assert_uint_le(written, N / 2);
  ck_assert_uint_ge(written, N / 4 - WEIR_SPOOL_BLOCKS / 64);
  ck_assert_uint_eq(spool_current()->dropped, N - written);
  ck_assert_int_eq(spool_reader_open(&r, path, true), WEIR_OK);
  ck_assert_int_eq(spool_drain(r, &v, true), WEIR_OK);
  spool_reader_repay(r, spool_reader_owes(r));
  spool_reader_close(r);
  uint64_t more = 0;
  for (uint64_t i = 0; i < N; i++)
    more += put_event(&second, 2, N + i);
  ck_assert_uint_ge(more, N / 2 - 16);
}
END_TEST

/* ---- steering -------------------------------------------------------------------------------- */

static spool_recording recording_now(void)
{
  return (spool_recording)atomic_load(&spool_steering_now()->recording);
}

static spool_reader *live_reader(void)
{
  char path[512];
  spool_reader *r;
  spool_path(path, folder, getpid(), 0);
  ck_assert_int_eq(spool_reader_open(&r, path, true), WEIR_OK);
  return r;
}

START_TEST(a_reader_steers_the_program)
{
  open_spool(folder, 0);
  spool_reader *r = live_reader();
  ck_assert_int_eq(recording_now(), WEIR_RECORD_ALL);
  ck_assert_int_eq(spool_reader_steer(r, WEIR_RECORD_MEMORY), WEIR_OK);
  ck_assert_int_eq(recording_now(), WEIR_RECORD_MEMORY);
  ck_assert_int_eq(spool_reader_steer(r, WEIR_RECORD_ALL), WEIR_OK);
  ck_assert_int_eq(recording_now(), WEIR_RECORD_ALL);
  const uint32_t before = atomic_load(&spool_steering_now()->stacks_anew);
  for (uint32_t i = 1; i < 300; i++) {
    ck_assert_int_eq(spool_reader_renew_stacks(r), WEIR_OK);
    ck_assert_uint_eq(atomic_load(&spool_steering_now()->stacks_anew), before + i);
  }
  spool_reader_close(r);
}
END_TEST

START_TEST(a_reader_that_is_not_live_steers_nothing)
{
  char path[512];
  spool_reader *r;
  open_spool(folder, 0);
  spool_path(path, folder, getpid(), 0);
  ck_assert_int_eq(spool_reader_open(&r, path, false), WEIR_OK);
  ck_assert_int_eq(spool_reader_steer(r, WEIR_RECORD_MEMORY), WEIR_OK);
  ck_assert_int_eq(spool_reader_renew_stacks(r), WEIR_OK);
  ck_assert_int_eq(recording_now(), WEIR_RECORD_ALL);
  ck_assert_uint_eq(atomic_load(&spool_steering_now()->stacks_anew), 0);
  spool_reader_close(r);
}
END_TEST

START_TEST(a_spool_begins_with_what_its_program_is_to_record)
{
  const spool_options options = {.directory = folder, .recording = WEIR_RECORD_MEMORY};
  ck_assert_int_eq(recording_now(), WEIR_RECORD_ALL);
  ck_assert_int_eq(spool_open(&options), WEIR_OK);
  ck_assert_int_eq(recording_now(), WEIR_RECORD_MEMORY);
}
END_TEST

/* The parent is steered on, and the child is not, until it has a spool of its own. */
START_TEST(a_forked_child_goes_on_as_its_parent_was)
{
  int forked[2], told[2], status;
  char byte = 0;
  open_spool(folder, 0);
  spool_reader *r = live_reader();
  ck_assert_int_eq(spool_reader_steer(r, WEIR_RECORD_MEMORY), WEIR_OK);
  ck_assert_int_eq(pipe(told) | pipe(forked), 0);
  pid_t child = fork();
  if (child == 0) {
    spool_after_fork();
    bool good = write(forked[1], &byte, 1) == 1 && read(told[0], &byte, 1) == 1 &&
                recording_now() == WEIR_RECORD_MEMORY;
    open_spool(folder, 0);
    _exit(good && recording_now() == WEIR_RECORD_ALL ? 0 : 1);
  }
  ck_assert_int_eq(read(forked[0], &byte, 1), 1);
  ck_assert_int_eq(spool_reader_steer(r, WEIR_RECORD_ALL), WEIR_OK);
  ck_assert_int_eq(write(told[1], &byte, 1), 1);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  for (int i = 0; i < 2; i++)
    close(told[i]), close(forked[i]);
  spool_reader_close(r);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("core/spool");
  TCase *t = tcase_create("spool");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, set_up, tear_down);
  tcase_add_test(t, an_empty_spool_delivers_nothing);
  tcase_add_test(t, the_header_says_who_wrote_it);
  tcase_add_loop_test(t, the_rank_is_what_the_launcher_says, 0, 8);
  tcase_add_test(t, the_start_time_is_procs);
  tcase_add_test(t, names_go_on_counting);
  tcase_add_test(t, a_folder_that_is_not_there_is_enoent);
  tcase_add_test(t, events_and_extended_records_come_back_in_order);
  tcase_add_test(t, the_largest_payload_fits_and_a_larger_is_refused);
  tcase_add_test(t, a_stack_counts_its_addresses);
  tcase_add_test(t, recording_keeps_errno);
  tcase_add_test(t, a_released_writer_starts_a_new_chunk);
  tcase_add_test(t, a_live_reader_sees_each_record_once_as_it_comes);
  tcase_add_test(t, what_a_visitor_refuses_comes_again);
  tcase_add_test(t, a_reader_that_is_not_live_leaves_the_file_alone);
  tcase_add_test(t, the_clock_map_brings_ticks_to_monotonic_time);
  tcase_add_loop_test(t, threads_are_read_afterwards, 0, 4);
  tcase_add_loop_test(t, threads_are_read_live_while_chunks_are_recycled, 0, 4);
  tcase_add_test(t, another_process_reads_live);
  tcase_add_test(t, chunks_of_finished_threads_are_adopted);
  tcase_add_test(t, idle_threads_are_told_apart);
  tcase_add_test(t, a_program_that_records_little_takes_little);
  tcase_add_test(t, a_crowd_of_threads_takes_little);
  tcase_add_test(t, a_copy_of_a_directory_that_changes_again_breaks_no_order);
  tcase_add_loop_test(t, by_time_each_record_comes_once_and_none_is_early, 0, 4);
  tcase_add_test(t, what_was_drained_is_given_back);
  tcase_add_test(t, headers_are_in_the_budget_and_had_beyond_it);
  tcase_add_test(t, a_spool_that_is_kept_has_a_bound_of_its_own);
  tcase_add_test(t, a_chunk_that_is_asked_for_comes_with_the_header);
  tcase_add_test(t, spools_of_a_folder_share_one_budget);
  tcase_add_test(t, a_reader_steers_the_program);
  tcase_add_test(t, a_reader_that_is_not_live_steers_nothing);
  tcase_add_test(t, a_spool_begins_with_what_its_program_is_to_record);
  tcase_add_test(t, a_forked_child_goes_on_as_its_parent_was);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
