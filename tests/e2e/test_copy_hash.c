/* test_copy_hash.c: what `weir run --hash` says of each copy, against what hasher.c knows of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/level.h"
#include "tests/tools/command.h"

#define SEEDS      AT_LEVEL(4, 30, 300)
#define SLOW_LINKS "h2d:400M,d2h:200M"

/* A line a copy, in the order of their calls: the hash, else why there is none. */
#define OF_COPIES                                                                                  \
  "SELECT ifnull((SELECT CASE h.outcome WHEN 1 THEN printf(\"%%016x%%016x\", h.hash_high,"         \
  " h.hash_low) ELSE (SELECT name FROM hash_outcome o WHERE o.id = h.outcome) END"                 \
  " FROM copy_hash h WHERE h.event = c.id), \"none\") FROM copy c WHERE c.status = 0"

static const char *next_line(const char *at, char line[64])
{
  size_t n = strcspn(at, "\n");
  ck_assert_uint_lt(n, 64);
  memcpy(line, at, n);
  line[n] = '\0';
  return at[n] ? at + n + 1 : at + n;
}

/* How many of them were hashed. */
static int compare_lines(const char *said, const char *there)
{
  char want[64], got[64];
  int hashed = 0;
  for (int i = 1; *said || *there; i++) {
    said = next_line(said, want);
    there = next_line(there, got);
    bool hash = strlen(got) == 32;
    hashed += hash;
    if (want[0] == '=' || (want[0] == '~' && hash))
      ck_assert_msg(!strcmp(want + 1, got), "copy %d: %s, and it carries %s", i, got, want);
    else if (want[0] != '~')
      ck_assert_msg(!strcmp(want, got), "copy %d: %s, and it is %s", i, got, want);
  }
  return hashed;
}

static char said[65536];

static void run_hasher(const char *options, const char *mode)
{
  outcome *o = sh_status(0, "$WEIR run --force --sim -o t.db %s -- $BUILD/tests/e2e/hasher %s",
                         options, mode);
  (void)snprintf(said, sizeof said, "%s", o->out);
}

START_TEST(each_way_of_a_copy_has_its_hash_or_the_reason_for_none)
{
  const char *const modes[] = {"--hash=1M --mode=observe", "--hash=1M", "--hash=1M --mode=relaxed"};
  for (int i = 0; i < 3; i++) {
    run_hasher(modes[i], "cases");
    outcome *o = sh_status(0, "sqlite3 t.db '" OF_COPIES " ORDER BY c.id'");
    ck_assert_int_ge(compare_lines(said, o->out), 12);
    ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM copy_hash WHERE uniform = 1"), 1);
    ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM copy_hash WHERE event IS NULL"), 0);
    ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM copy_hash h JOIN copy c ON c.id = h.event"
                                 " WHERE h.outcome = 1 AND (h.bytes <> c.bytes OR h.ns <= 0)"),
                     0);
  }
}
END_TEST

/* Buffers are written over as soon as the program may: a hash that was taken too early or too
 * late is of something else. */
START_TEST(no_hash_is_of_other_bytes_than_the_copy_has_moved)
{
  char mode[32];
  int hashed = 0;
  for (int seed = 1; seed <= SEEDS; seed++) {
    (void)snprintf(mode, sizeof mode, "random %d", seed);
    if (seed % 4 >= 2) (void)setenv("WEIR_SIM_LINK", SLOW_LINKS, 1); /* streams stay behind */
    run_hasher(seed % 2 ? "--hash" : "--hash --mode=observe", mode);
    (void)unsetenv("WEIR_SIM_LINK");
    outcome *o = sh_status(0, "sqlite3 t.db '" OF_COPIES " ORDER BY c.id'");
    hashed += compare_lines(said, o->out);
  }
  ck_assert_int_gt(hashed, 20 * SEEDS);
}
END_TEST

static void compare_sorted(const char *mode, int copies)
{
  run_hasher("--hash", mode);
  FILE *f = fopen("said", "w");
  ck_assert_ptr_nonnull(f);
  (void)fputs(said, f);
  (void)fclose(f);
  (void)sh_status(0, "tr -d = <said | sort >want; sqlite3 t.db '" OF_COPIES
                     "' | sort >got; cmp want got");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM copy_hash WHERE outcome = 1"), copies);
}

START_TEST(sixteen_threads_hash_at_a_time)
{
  compare_sorted("threads 16", 320);
}
END_TEST

START_TEST(a_forked_child_has_its_own)
{
  compare_sorted("fork", 40);
  ck_assert_int_eq(ask("t.db", "SELECT count(DISTINCT process) FROM copy_hash"), 2);
}
END_TEST

START_TEST(nothing_is_hashed_where_it_is_switched_off)
{
  run_hasher("--hash=off", "threads 2");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM copy_hash"), 0);
  (void)sh_status(2, "$WEIR run --sim --hash=some -o u.db -- touch ran");
}
END_TEST

/* Each way of a copy again, where few are hashed. Records of why not are of those that were chosen. */
START_TEST(by_default_no_hash_is_of_other_bytes_either)
{
  char mode[32];
  int hashed = 0;
  for (int seed = 1; seed <= SEEDS; seed++) {
    (void)snprintf(mode, sizeof mode, "random %d", seed + 1000);
    if (seed % 4 >= 2) (void)setenv("WEIR_SIM_LINK", SLOW_LINKS, 1);
    run_hasher(seed % 2 ? "" : "--mode=observe", mode);
    (void)unsetenv("WEIR_SIM_LINK");
    outcome *o = sh_status(0, "sqlite3 t.db '" OF_COPIES " ORDER BY c.id'");
    hashed += compare_lines(said, o->out);
  }
  ck_assert_int_gt(hashed, 4 * SEEDS);
}
END_TEST

START_TEST(a_listing_has_the_hash_of_each_copy)
{
  run_hasher("--hash=1M", "cases");
  outcome *o = sh_status(0, "$WEIR trace --format jsonl --kind copy t.db");
  char hash[64];
  (void)next_line(said + 1, hash);
  ck_assert_ptr_nonnull(strstr(o->out, hash));
  ck_assert_ptr_nonnull(strstr(o->out, "\"uniform\":1"));
  (void)sh_status(0, "$WEIR report t.db | grep 'copies were hashed, 7 not[:,]'");
}
END_TEST

/* The copy itself may succeed: then the program must, too. */
START_TEST(memory_that_cannot_be_read_is_counted_and_ends_no_program)
{
  const char *const modes[] = {"--hash --mode=observe", "--hash", "--hash --mode=relaxed"};
  for (int i = 0; i < 3; i++) {
    run_hasher(modes[i], "closed");
    int64_t taken = said[0] != 0;
    ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM copy_hash WHERE outcome = 4"), taken);
    if (!taken) continue;
    (void)sh_status(0, "$WEIR report --format json t.db | grep '\"copies_unreadable\": *1'");
    (void)sh_status(0, "$WEIR report t.db | grep '1 copy was not hashed because the memory'");
  }
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("copy_hash");
  TCase *hashes = tcase_create("hashes");
  tcase_add_checked_fixture(hashes, enter_scratch, leave_scratch);
  tcase_set_timeout(hashes, 600);
  tcase_add_test(hashes, each_way_of_a_copy_has_its_hash_or_the_reason_for_none);
  tcase_add_test(hashes, no_hash_is_of_other_bytes_than_the_copy_has_moved);
  tcase_add_test(hashes, sixteen_threads_hash_at_a_time);
  tcase_add_test(hashes, a_forked_child_has_its_own);
  tcase_add_test(hashes, nothing_is_hashed_where_it_is_switched_off);
  tcase_add_test(hashes, by_default_no_hash_is_of_other_bytes_either);
  tcase_add_test(hashes, a_listing_has_the_hash_of_each_copy);
  tcase_add_test(hashes, memory_that_cannot_be_read_is_counted_and_ends_no_program);
  suite_add_tcase(suite, hashes);
  return run_suite(suite);
}
