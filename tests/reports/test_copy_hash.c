/* test_copy_hash.c: hashes of copies find their copies, wherever the records lie, and what
 * hashing took is in no range's time. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "tests/reports/synth.h"

enum { OTHER = 1, DST = 0x7000, SRC = 0x100 };

static void write_hash(int thread, uint64_t number, uint64_t start, int outcome,
                       const copy_hash_info *info, size_t bytes)
{
  uint64_t zero = spool_current()->clock_first.ticks;
  trace_event head = {.start = zero + start,
                      .hash_outcome = (uint8_t)outcome,
                      .mem = 1,
                      .a = number,
                      .b = number && outcome != WEIR_HASH_PENDING ? 0 : zero + start};
  ck_assert(spool_writer_extended(synth_thread(thread), WEIR_EV_COPY_HASH, &head, info, bytes));
}

static copy_hash_info info_of(uint64_t hash, unsigned item)
{
  return (copy_hash_info){.hash = {hash, ~hash},
                          .bytes = 64,
                          .ticks = 1000 + hash,
                          .dst = DST + item,
                          .src = SRC + item};
}

static void hash_at(uint64_t start, uint64_t hash, unsigned item)
{
  copy_hash_info info = info_of(hash, item);
  write_hash(0, 0, start, WEIR_HASH_HASHED, &info, sizeof(info));
}

static void late_hash(int thread, uint64_t number, uint64_t hash)
{
  copy_hash_info info = info_of(hash, 0);
  write_hash(thread, number, 0, WEIR_HASH_HASHED, &info, sizeof(info));
}

static void announce(uint64_t start, uint64_t number, unsigned item)
{
  copy_hash_info info = info_of(0, item);
  write_hash(0, number, start, WEIR_HASH_PENDING, &info, sizeof(info));
}

static void copy_at(uint64_t start, unsigned item)
{
  trace_event e = {.kind = WEIR_EV_COPY,
                   .api = synth_api("cudaMemcpyBatchAsync"),
                   .flags = item ? WEIR_EVF_BATCH : 0,
                   .copy_kind = WEIR_COPY_HTOD,
                   .a = DST + item,
                   .b = SRC + item,
                   .bytes = 64,
                   .mem = WEIR_MEM_DEVICE | WEIR_MEM_PINNED << 4};
  ck_assert(synth_event(0, start, 5, e));
}

static int64_t hash_of(const char *trace, int start, int item)
{
  char sql[256];
  (void)snprintf(sql, sizeof(sql),
                 "SELECT ifnull((SELECT h.hash_low FROM copy_hash h JOIN event e ON e.id = h.event"
                 " WHERE e.start = %d AND e.a = %d AND h.hash_high = ~h.hash_low), -1)",
                 start, DST + item);
  return synth_number(trace, sql);
}

START_TEST(a_hash_is_of_the_event_that_comes_next_with_its_tick_and_addresses)
{
  synth_open(synth_dir());
  hash_at(10, 1, 0);
  synth_event(0, 12, 1, (trace_event){.kind = WEIR_EV_CACHE, .cache_fact = WEIR_CACHE_RESERVED});
  copy_at(10, 0);
  for (unsigned i = 0; i < 20; i++) {
    hash_at(30, 100 + i, i);
    if (i % 3 != 1) copy_at(30, i); /* the others' events were dropped */
  }
  hash_at(40, 7, 0);
  copy_at(50, 0);
  const char *t = synth_import_this();
  ck_assert_int_eq(hash_of(t, 10, 0), 1);
  ck_assert_int_eq(hash_of(t, 50, 0), -1);
  for (int i = 0; i < 20; i++)
    ck_assert_int_eq(hash_of(t, 30, i), i % 3 != 1 ? 100 + i : -1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM copy_hash WHERE uniform = 1"), 14);
}
END_TEST

/* Another thread's chunk may be read before the announcement. */
START_TEST(a_hash_that_comes_later_finds_its_copy_by_number)
{
  synth_open(synth_dir());
  late_hash(OTHER, 2, 22);
  announce(10, 1, 0);
  copy_at(10, 0);
  announce(20, 2, 0);
  copy_at(20, 0);
  announce(30, 3, 0); /* never ends */
  copy_at(30, 0);
  late_hash(0, 1, 11);
  late_hash(OTHER, 9, 99); /* nothing was announced so */
  const char *t = synth_import_this();
  ck_assert_int_eq(hash_of(t, 10, 0), 11);
  ck_assert_int_eq(hash_of(t, 20, 0), 22);
  ck_assert_int_eq(hash_of(t, 30, 0), -1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM copy_hash WHERE event IS NULL"), 1);
  json_t *j = synth_json(t);
  ck_assert_int_eq(synth_total(j, "copies_hashed"), 3);
  json_decref(j);
}
END_TEST

/* An older writer's record ends before what it has in common. */
START_TEST(what_an_upload_has_in_common_with_the_one_before_is_kept)
{
  copy_hash_info info = info_of(1, 0);
  info.before = 96, info.same = 48, info.changed = 2, info.tail = 16, info.last = 255;
  synth_open(synth_dir());
  write_hash(0, 0, 10, WEIR_HASH_HASHED, &info, sizeof(info));
  copy_at(10, 0);
  write_hash(0, 0, 20, WEIR_HASH_LEFT, &info, sizeof(info));
  copy_at(20, 0);
  write_hash(0, 0, 30, WEIR_HASH_UNREADABLE, &info, sizeof(info));
  copy_at(30, 0);
  write_hash(0, 0, 40, WEIR_HASH_HASHED, &info, COPY_HASH_LEAST);
  copy_at(40, 0);
  const char *t = synth_import_this();
  ck_assert_int_eq(hash_of(t, 40, 0), 1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM copy_part"), 2);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM copy_part p JOIN event e ON e.id = p.event"
                                   " JOIN hash_outcome o ON o.id = p.outcome WHERE p.before = 96"
                                   " AND p.same = 48 AND p.changed = 2 AND p.tail = 16"
                                   " AND p.last = 255 AND (e.start, o.name) IN"
                                   " (VALUES(10, 'hashed'), (20, 'left'))"),
                   2);
}
END_TEST

/* Nothing of a spool is believed: outcomes, numbers, lengths, ticks. */
START_TEST(records_that_make_no_sense_do_no_harm)
{
  synth_open(synth_dir());
  for (int outcome = 0; outcome < 256; outcome++) {
    copy_hash_info info = info_of((uint64_t)outcome, 0);
    info.ticks = outcome % 2 ? UINT64_MAX : UINT64_MAX / 2;
    info.bytes = UINT64_MAX;
    write_hash(0, 0, 10, outcome, &info, sizeof(info));
    copy_at(10, 0);
    write_hash(0, UINT64_MAX, 10, outcome, &info, sizeof(info));
    write_hash(0, 1, 10, outcome, &info, (size_t)outcome % sizeof(info));
  }
  const char *t = synth_import_this();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM copy_hash WHERE outcome NOT IN"
                                   " (SELECT id FROM hash_outcome) OR ns < 0"),
                   0);
  json_t *j = synth_json(t);
  ck_assert_int_ge(synth_total(j, "hashing_ns"), 0);
  json_decref(j);
  free(synth_text(t, 80));
}
END_TEST

static void write_range(uint64_t at, int fact, uint64_t name, uint64_t number)
{
  trace_event e = {.kind = WEIR_EV_RANGE, .range_fact = (uint8_t)fact, .a = name, .bytes = number};
  ck_assert(synth_event(0, at, 0, e));
}

static void name_range(uint64_t number, const char *text)
{
  struct {
    range_name head;
    char text[16];
  } name = {.head = {.text_bytes = (uint16_t)strlen(text)}};
  (void)snprintf(name.text, sizeof(name.text), "%s", text);
  ck_assert(
      synth_extended(0, WEIR_EV_RANGE_NAME, number, 0, &name, sizeof(name.head) + strlen(text)));
}

static int64_t range_ns(const json_t *report, const char *name)
{
  const json_t *ranges = json_object_get(report, "ranges"), *r;
  size_t i;
  json_array_foreach(ranges, i,
                     r) if (!strcmp(json_string_value(json_object_get(r, "text")),
                                    name)) return json_integer_value(json_object_get(r, "ns"));
  return -1;
}

START_TEST(hashing_is_in_no_time_of_ranges)
{
  for (int hashed = 0; hashed < 2; hashed++) {
    synth_open(synth_dir());
    name_range(1, "outer");
    name_range(2, "inner");
    write_range(100, WEIR_RANGE_PUSH, 1, 1);
    write_range(10000, WEIR_RANGE_PUSH, 2, 2);
    if (hashed) hash_at(11000, 500, 0);
    copy_at(11000, 0);
    write_range(20000, WEIR_RANGE_POP, 0, 2);
    if (hashed) late_hash(0, 5, 700);
    write_range(50100, WEIR_RANGE_POP, 0, 1);
    copy_at(60000, 0);
    const char *t = synth_import_this();
    json_t *j = synth_json(t);
    ck_assert_int_eq(range_ns(j, "inner"), hashed ? 10000 - 1500 : 10000);
    ck_assert_int_eq(range_ns(j, "outer"), hashed ? 50000 - 1500 - 1700 : 50000);
    ck_assert_int_eq(synth_total(j, "hashing_ns"), hashed ? 3200 : 0);
    json_decref(j);
    synth_clean();
  }
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("copy_hash");
  TCase *hashes = tcase_create("hashes");
  tcase_add_checked_fixture(hashes, NULL, synth_clean);
  tcase_add_test(hashes, a_hash_is_of_the_event_that_comes_next_with_its_tick_and_addresses);
  tcase_add_test(hashes, a_hash_that_comes_later_finds_its_copy_by_number);
  tcase_add_test(hashes, what_an_upload_has_in_common_with_the_one_before_is_kept);
  tcase_add_test(hashes, records_that_make_no_sense_do_no_harm);
  tcase_add_test(hashes, hashing_is_in_no_time_of_ranges);
  suite_add_tcase(suite, hashes);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
