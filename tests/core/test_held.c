/* test_held.c: a record that may still grow (held.h) is in the spool once, with all that was added,
 * whenever its writer ended. */
#include "tests/core/support.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/trace/held.h"

static char folder[256], path[512];
static spool_writer w;

static void set_up(void)
{
  make_folder(folder);
  open_spool(folder, 0);
  spool_path(path, folder, getpid(), 0);
  w = (spool_writer){0};
}

static void tear_down(void)
{
  remove_folder(folder);
}

typedef struct held_log {
  uint64_t bytes[4]; /* of the SYNC events, in order */
  int syncs, others;
} held_log;

static weir_status note_event(void *context, uint32_t thread, uint32_t tid, const trace_event *e)
{
  held_log *l = context;
  (void)thread, (void)tid;
  if (e->kind != WEIR_EV_SYNC) {
    l->others++;
    return WEIR_OK;
  }
  ck_assert_int_lt(l->syncs, 4);
  ck_assert_uint_eq(e->a, 77);
  ck_assert_uint_eq(e->stream, e->bytes * 3);
  l->bytes[l->syncs++] = e->bytes;
  return WEIR_OK;
}

/* Reads it all, as of now; `final`: the writer is gone. */
static held_log read_log(bool final)
{
  held_log l = {0};
  spool_reader *r;
  spool_visitor v = {.context = &l, .event = note_event};
  ck_assert_int_eq(spool_reader_open(&r, path, false), WEIR_OK);
  ck_assert_int_eq(spool_drain(r, &v, final), WEIR_OK);
  ck_assert_uint_eq(spool_reader_damage(r).chunks + spool_reader_damage(r).torn, 0);
  spool_reader_close(r);
  return l;
}

static void words_of(event_word words[8], uint64_t more)
{
  trace_event e = {.kind = WEIR_EV_SYNC, .a = 77, .bytes = more, .stream = more * 3};
  memcpy(words, &e, sizeof e);
}

static void begin_held(void)
{
  event_word words[8];
  words_of(words, 0);
  ck_assert_ptr_nonnull(spool_writer_slots(&w, HELD_SLOTS));
  held_begin(&w, words);
}

static void change_held(uint64_t more)
{
  event_word words[8];
  words_of(words, more);
  ck_assert(held_now(&w));
  held_change(&w, words);
}

static void hold_changed(uint64_t more)
{
  begin_held();
  for (uint64_t i = 1; i <= more; i++)
    change_held(i);
}

static void expect_one(held_log l, uint64_t more)
{
  ck_assert_int_eq(l.syncs, 1);
  ck_assert_uint_eq(l.bytes[0], more);
}

START_TEST(the_next_record_comes_behind_what_was_held)
{
  for (uint64_t more = 0; more < 4; more++) {
    hold_changed(more);
    ck_assert_int_eq(read_log(false).syncs, (int)more); /* those before it */
    ck_assert(put_event(&w, 1, more));
    held_log l = read_log(false);
    ck_assert_int_eq(l.syncs, (int)more + 1);
    ck_assert_uint_eq(l.bytes[more], more);
    ck_assert_int_eq(l.others, (int)more + 1);
  }
}
END_TEST

START_TEST(a_larger_record_and_another_held_one_come_behind_it_too)
{
  hold_changed(1);
  ck_assert(put_note(&w, 1, 0, 300));
  hold_changed(2);
  hold_changed(3);
  held_log l = read_log(true);
  ck_assert_int_eq(l.syncs, 3);
  ck_assert_uint_eq(l.bytes[0], 1);
  ck_assert_uint_eq(l.bytes[1], 2);
  ck_assert_uint_eq(l.bytes[2], 3);
}
END_TEST

START_TEST(what_is_held_when_the_writer_ends_is_read_once)
{
  for (uint64_t more = 0; more < 4; more++) {
    set_up();
    ck_assert(put_event(&w, 1, 0));
    hold_changed(more);
    held_log l = read_log(true);
    expect_one(l, more);
    ck_assert_int_eq(l.others, 1);
    tear_down();
  }
  set_up();
}
END_TEST

START_TEST(a_released_writer_has_committed_what_it_held)
{
  hold_changed(2);
  spool_writer_release(&w);
  expect_one(read_log(false), 2);
  ck_assert(put_event(&w, 1, 0));
  held_log l = read_log(true);
  expect_one(l, 2);
  ck_assert_int_eq(l.others, 1);
}
END_TEST

/* A change that is cut off behind each of its stores: what was before is there. */
START_TEST(a_change_that_is_cut_off_loses_only_itself)
{
  for (int words = 1; words <= 7; words++) {
    set_up();
    hold_changed((uint64_t)words);
    event_word next[8];
    words_of(next, (uint64_t)words + 1);
    event_word *other = held_words(w.next + (w.held_turn ^ 1u));
    for (int i = 1; i <= words; i++)
      other[i] = next[i];
    expect_one(read_log(true), (uint64_t)words);
    tear_down();
  }
  set_up();
}
END_TEST

/* The same of the commit: the steps of held_commit(), one more each time. */
START_TEST(a_commit_that_is_cut_off_loses_nothing)
{
  for (int steps = 1; steps <= 11; steps++) {
    set_up();
    hold_changed(1); /* in the second slot */
    event_word last[8];
    memcpy(last, held_last(&w), sizeof last);
    event_word *first = held_words(w.next);
    for (int i = 1; i <= 7 && i <= steps; i++)
      first[i] = last[i];
    if (steps >= 8) held_store(w.next, last, w.place, HELD_MARK);
    if (steps >= 9) atomic_store(&w.next[1].commit, 0);
    if (steps >= 10) memset(w.next + 1, 0, sizeof w.next[1]);
    if (steps >= 11) held_store(w.next, last, w.place, 0);
    expect_one(read_log(true), 1);
    tear_down();
  }
  set_up();
}
END_TEST

START_TEST(at_the_end_of_a_chunk_the_next_one_is_begun)
{
  ck_assert(put_event(&w, 1, 0));
  uint64_t number = 1;
  while (w.end - w.next > 1)
    ck_assert(put_event(&w, 1, number++));
  uint32_t chunk = w.chunk;
  hold_changed(3);
  ck_assert_uint_ne(w.chunk, chunk);
  ck_assert(put_event(&w, 1, number++));
  held_log l = read_log(true);
  expect_one(l, 3);
  ck_assert_int_eq(l.others, (int)number);
}
END_TEST

START_TEST(a_forked_child_does_not_go_on_with_what_its_parent_held)
{
  hold_changed(2);
  pid_t pid = fork();
  ck_assert_int_ge(pid, 0);
  if (!pid) {
    spool_after_fork();
    open_spool(folder, 0);
    _exit(put_event(&w, 1, 0) && !held_now(&w) ? 0 : 1);
  }
  int status = 1;
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(status, 0);
  change_held(3);
  expect_one(read_log(true), 3);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("held");
  TCase *t = tcase_create("held");
  tcase_add_checked_fixture(t, set_up, tear_down);
  tcase_add_test(t, the_next_record_comes_behind_what_was_held);
  tcase_add_test(t, a_larger_record_and_another_held_one_come_behind_it_too);
  tcase_add_test(t, what_is_held_when_the_writer_ends_is_read_once);
  tcase_add_test(t, a_released_writer_has_committed_what_it_held);
  tcase_add_test(t, a_change_that_is_cut_off_loses_only_itself);
  tcase_add_test(t, a_commit_that_is_cut_off_loses_nothing);
  tcase_add_test(t, at_the_end_of_a_chunk_the_next_one_is_begun);
  tcase_add_test(t, a_forked_child_does_not_go_on_with_what_its_parent_held);
  suite_add_tcase(s, t);
  return run_suite(s);
}
