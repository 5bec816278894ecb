/* test_spool_hostile.c: whatever a spool file holds, the reader neither crashes nor lies: it
 * delivers the records that are whole, says that there is damage, and ends.
 *
 * The levels of tests/level.h try samples of all bytes and cuts; the longest every one of them. */
#include "tests/core/sample.h"
#include "tests/level.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEP = AT_LEVEL(61, 11, 1), CUT_STEP = AT_LEVEL(101, 13, 1) };
enum { MUTATIONS = AT_LEVEL(600, 4000, 20000) };

static char folder[256];
static sample s;
static int file = -1; /* the sample's, to be damaged */

static void set_up(void)
{
  make_folder(folder);
  make_sample(&s, folder);
  file = open(s.path, O_RDWR);
}

static void tear_down(void)
{
  close(file);
  free(s.bytes);
  remove_folder(folder);
}

static void put_bytes(const void *bytes, size_t count, size_t offset)
{
  ck_assert_int_eq(pwrite(file, bytes, count, (off_t)offset), (ssize_t)count);
}

static void restore(size_t offset, size_t count)
{
  put_bytes(s.bytes + offset, count, offset);
}

static void restore_all(void)
{
  ck_assert_int_eq(ftruncate(file, 0), 0);
  restore(0, SAMPLE_BYTES);
}

/* Reads the file as it is, twice over: as a live one and to the end. Whether it could be opened. */
static bool read_file(tally *t, spool_damage *damage)
{
  spool_reader *r;
  spool_visitor v = visitor(t);
  memset(t, 0, sizeof *t);
  weir_status status = spool_reader_open(&r, s.path, false);
  if (status) {
    ck_assert(status == WEIR_ECORRUPT || status == WEIR_EVERSION);
    ck_assert_str_ne(weir_error_message(), "");
    return false;
  }
  ck_assert_int_eq(spool_drain(r, &v, false), WEIR_OK);
  ck_assert_int_eq(spool_drain(r, &v, true), WEIR_OK);
  const spool_header *h = spool_reader_header(r);
  ck_assert_uint_lt(strlen(h->exe), sizeof h->exe);
  ck_assert_uint_lt(strlen(h->unknown_name), sizeof h->unknown_name);
  ck_assert_uint_lt(h->cmdline_bytes, sizeof h->cmdline);
  ck_assert_uint_le(h->chunks, WEIR_SPOOL_MAX_CHUNKS);
  ck_assert_uint_le(h->api_count, WEIR_SPOOL_MAX_APIS);
  clock_map map = spool_reader_clock(r);
  clock_to_mono_ns(&map, 12345);
  *damage = spool_reader_damage(r);
  spool_reader_close(r);
  return true;
}

static tally t;
static spool_damage damage;

START_TEST(the_sample_itself_is_sound)
{
  ck_assert(read_file(&t, &damage));
  ck_assert_uint_eq(t.total, SAMPLE_RECORDS);
  ck_assert_uint_eq(
      t.wrong_payload + t.out_of_order + damage.chunks + damage.torn + damage.bytes_cut, 0);
}
END_TEST

/* ---- every byte ------------------------------------------------------------------------------ */

START_TEST(any_byte_of_the_header_may_change)
{
  static const uint8_t flips[] = {0xff, 0x01, 0x80, 0x03};
  const size_t dense = offsetof(spool_header, exe), directory = WEIR_SPOOL_DIRECTORY;
  for (size_t at = 0; at < directory + 8192; at++) {
    bool close_look = at < dense || (at >= directory && at < directory + 96);
    if (!close_look && at % STEP) continue;
    for (size_t i = 0; i < sizeof flips; i++) {
      uint8_t changed = s.bytes[at] ^ flips[i];
      put_bytes(&changed, 1, at);
      if (read_file(&t, &damage)) ck_assert_uint_le(t.total, SAMPLE_RECORDS);
      ck_assert_uint_eq(t.wrong_payload, 0);
    }
    restore(at, 1);
  }
}
END_TEST

/* One changed byte of a record costs that record at most, and is reported. */
START_TEST(any_byte_of_a_chunk_may_change)
{
  static const uint8_t flips[] = {0xff, 0x01, 0x80};
  for (uint32_t chunk = 0; chunk < SAMPLE_CHUNKS; chunk++)
    for (size_t i = chunk; i < s.used[chunk] * 64u; i += STEP) {
      size_t at = WEIR_SPOOL_HEADER + (size_t)chunk * WEIR_SPOOL_UNIT + i;
      uint8_t changed = s.bytes[at] ^ flips[i % sizeof flips];
      put_bytes(&changed, 1, at);
      ck_assert(read_file(&t, &damage));
      ck_assert_uint_ge(t.total, SAMPLE_RECORDS - 1);
      ck_assert_uint_le(t.total, SAMPLE_RECORDS);
      ck_assert_uint_eq(t.wrong_payload, 0);
      ck_assert_msg(damage.chunks + damage.torn == 1, "byte %zu of chunk %u: not reported", i,
                    chunk);
      restore(at, 1);
    }
}
END_TEST

/* ---- every cut ------------------------------------------------------------------------------- */

/* Records wholly in front of a cut. */
static uint64_t whole_before(size_t cut)
{
  uint64_t count = 0;
  for (uint32_t i = 0; i < SAMPLE_RECORDS; i++) {
    size_t chunk = WEIR_SPOOL_HEADER + (size_t)(i >= SAMPLE_FULL) * WEIR_SPOOL_UNIT;
    count += chunk + s.after[i] * (size_t)64 <= cut;
  }
  return count;
}

static void cut_at(size_t cut)
{
  ck_assert_int_eq(ftruncate(file, (off_t)cut), 0);
  bool opened = read_file(&t, &damage);
  ck_assert(opened == (cut >= sizeof(spool_header)));
  if (opened) {
    ck_assert_uint_eq(t.total, whole_before(cut));
    ck_assert_uint_eq(t.wrong_payload, 0);
    if (cut >= WEIR_SPOOL_DIRECTORY + SAMPLE_CHUNKS * sizeof(chunk_entry))
      ck_assert_uint_eq(damage.bytes_cut, SAMPLE_BYTES - cut);
    else
      ck_assert_uint_gt(damage.bytes_cut, 0);
  }
}

START_TEST(the_file_may_be_cut_anywhere)
{
  for (uint32_t chunk = SAMPLE_CHUNKS; chunk--;) {
    size_t start = WEIR_SPOOL_HEADER + (size_t)chunk * WEIR_SPOOL_UNIT;
    cut_at(start + WEIR_SPOOL_UNIT / 2);
    for (size_t at = start + s.used[chunk] * (size_t)64; at > start;
         at -= at - start < CUT_STEP ? at - start : CUT_STEP)
      cut_at(at);
  }
  for (size_t at = WEIR_SPOOL_HEADER; at > CUT_STEP; at -= CUT_STEP)
    cut_at(at);
  cut_at(9);
  cut_at(0);
}
END_TEST

START_TEST(a_file_cut_while_it_is_read_is_no_crash)
{
  spool_reader *r;
  spool_visitor v = visitor(&t);
  memset(&t, 0, sizeof t);
  ck_assert_int_eq(spool_reader_open(&r, s.path, true), WEIR_OK);
  ck_assert_int_eq(spool_drain(r, &v, false), WEIR_OK);
  ck_assert_int_eq(ftruncate(file, 100), 0);
  ck_assert_int_eq(spool_drain(r, &v, false), WEIR_OK);
  spool_reader_header(r);
  spool_reader_clock(r);
  ck_assert_int_eq(spool_drain(r, &v, true), WEIR_OK);
  ck_assert_uint_eq(t.total, SAMPLE_RECORDS);
  spool_reader_close(r);
}
END_TEST

/* ---- chance ---------------------------------------------------------------------------------- */

START_TEST(random_damage_is_survived)
{
  uint64_t seed = 20240229;
  const size_t spans[][2] = {{0, 256},
                             {WEIR_SPOOL_DIRECTORY, 8192},
                             {WEIR_SPOOL_HEADER, s.used[0] * 64u},
                             {WEIR_SPOOL_HEADER + WEIR_SPOOL_UNIT, s.used[1] * 64u}};
  for (int i = 0; i < MUTATIONS; i++) {
    uint64_t changes = 1 + random_next(&seed) % 20;
    for (uint64_t k = 0; k < changes; k++) {
      const size_t *span = spans[random_next(&seed) % 4];
      uint64_t bytes = random_next(&seed);
      put_bytes(&bytes, 1 + random_next(&seed) % 8, span[0] + random_next(&seed) % (span[1] - 8));
    }
    if (i % 2) restore(0, 32); /* so that it opens */
    if (random_next(&seed) % 8 == 0)
      ck_assert_int_eq(ftruncate(file, (off_t)(random_next(&seed) % SAMPLE_BYTES)), 0);
    read_file(&t, &damage);
    if (i % 4 == 3) restore_all();
  }
}
END_TEST

/* ---- malice: right commit words over wrong contents ------------------------------------------ */

static trace_event *slot_of(uint8_t *bytes, uint32_t chunk, uint32_t slot)
{
  return (trace_event *)(void *)(bytes + WEIR_SPOOL_HEADER + (size_t)chunk * WEIR_SPOOL_UNIT +
                                 slot * 64u);
}

static void rewrite(const trace_event *e, uint32_t slot)
{
  uint8_t *copy = malloc(SAMPLE_BYTES);
  memcpy(copy, s.bytes, SAMPLE_BYTES);
  memcpy(slot_of(copy, 0, slot), e, sizeof *e);
  recommit(copy, 0, slot);
  put_bytes(copy, SAMPLE_BYTES, 0);
  free(copy);
}

START_TEST(lengths_that_lie_are_damage)
{
  static const struct {
    uint8_t kind;
    uint16_t extra;
    uint64_t bytes;
  } lies[] = {{WEIR_EV_NOTE, WEIR_SPOOL_MAX_EXTRA + 1, 64 * 1025},
              {WEIR_EV_NOTE, UINT16_MAX, 1},
              {WEIR_EV_NOTE, 1, 65},
              {WEIR_EV_NOTE, 1, UINT64_MAX},
              {WEIR_EV_NOTE, 0, 1},
              {WEIR_EV_NOTE, 2, 64},
              {WEIR_EV_STACK, 1, 9},
              {WEIR_EV_STACK, 1, UINT64_C(1) << 61},
              {WEIR_EV_MODULE, 1, 8},
              {WEIR_EV_MODULE, 1, 64},
              {WEIR_EV_MODULE, 0, 0},
              {WEIR_EV_NAME, 1000, 64000},
              {30, 0, 0},
              {200, 3, 0},
              {31, 0, 0}};
  for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
    trace_event e = *slot_of(s.bytes, 0, s.first[5]);
    e.kind = lies[i].kind;
    e.status = lies[i].extra;
    e.bytes = lies[i].bytes;
    rewrite(&e, s.first[5]);
    ck_assert(read_file(&t, &damage));
    ck_assert_uint_lt(t.total, SAMPLE_RECORDS);
    ck_assert_uint_ge(t.total, SAMPLE_OPEN + 5);
    ck_assert_uint_eq(t.wrong_payload, 0);
    ck_assert_uint_eq(damage.chunks, 1);
  }
}
END_TEST

START_TEST(an_extended_record_may_not_leave_its_chunk)
{
  trace_event e = *slot_of(s.bytes, 0, s.first[3]);
  ck_assert_uint_eq(e.kind, WEIR_EV_NOTE);
  e.status = WEIR_SPOOL_MAX_EXTRA;
  e.bytes = WEIR_SPOOL_MAX_EXTRA * 64;
  uint8_t *copy = malloc(SAMPLE_BYTES);
  memcpy(copy, s.bytes, SAMPLE_BYTES);
  uint32_t last = WEIR_SPOOL_UNIT / 64 - 1;
  memcpy(slot_of(copy, 1, last), &e, sizeof e);
  recommit(copy, 1, last);
  put_bytes(copy, SAMPLE_BYTES, 0);
  free(copy);
  ck_assert(read_file(&t, &damage));
  ck_assert_uint_eq(t.total, SAMPLE_RECORDS);
  ck_assert_uint_eq(damage.chunks, 1);
}
END_TEST

/* A directory full of chunks, all of one thread, with every odd sequence number there is. */
START_TEST(a_directory_of_lies_ends)
{
  static chunk_entry entries[WEIR_SPOOL_MAX_CHUNKS];
  uint32_t chunks = UINT32_MAX;
  static const uint32_t odd[] = {0, 1, 7, UINT32_MAX, UINT32_MAX - 1, 1u << 31};
  for (uint32_t i = 0; i < WEIR_SPOOL_MAX_CHUNKS; i++) {
    memset(&entries[i], 0, sizeof entries[i]);
    atomic_store(&entries[i].state, 1u << WEIR_CHUNK_STATE_BITS | i % 5);
    entries[i].units = i % 9 ? 1u << i % 7 : odd[i % 6];
    entries[i].place = i % 5 ? WEIR_SPOOL_HEADER / WEIR_SPOOL_UNIT + i * 16 : odd[i % 6];
    entries[i].thread = odd[i / 7 % 6];
    entries[i].sequence = odd[i % 6];
  }
  put_bytes(&chunks, 4, offsetof(spool_header, chunks));
  put_bytes(entries, sizeof entries, WEIR_SPOOL_DIRECTORY);
  ck_assert(read_file(&t, &damage));
  ck_assert_uint_gt(damage.bytes_cut, 0);
  ck_assert_uint_gt(damage.chunks, 0);
}
END_TEST

/* Two entries that share a place, as a file does that is to be read for ever. */
START_TEST(chunks_may_not_overlap)
{
  chunk_entry entry;
  memcpy(&entry, s.bytes + WEIR_SPOOL_DIRECTORY + sizeof entry, sizeof entry);
  entry.place -= 1;
  entry.units = 2;
  put_bytes(&entry, sizeof entry, WEIR_SPOOL_DIRECTORY + sizeof entry);
  ck_assert(read_file(&t, &damage));
  ck_assert_uint_eq(t.total, SAMPLE_FULL);
  ck_assert_uint_eq(damage.chunks, 1);
}
END_TEST

START_TEST(a_lost_chunk_is_reported)
{
  uint32_t free_state = 0;
  chunk_entry entry;
  memcpy(&entry, s.bytes + WEIR_SPOOL_DIRECTORY + sizeof entry, sizeof entry);
  entry.thread = 1; /* chunk 1 becomes the third of thread 1: its second is missing */
  entry.sequence = 2;
  put_bytes(&entry, sizeof entry, WEIR_SPOOL_DIRECTORY + sizeof entry);
  ck_assert(read_file(&t, &damage));
  ck_assert_uint_eq(t.total, SAMPLE_RECORDS);
  ck_assert_uint_eq(damage.chunks, 1);
  put_bytes(&free_state, 4, WEIR_SPOOL_DIRECTORY);
  ck_assert(read_file(&t, &damage)); /* now only that one: drained by somebody before, no damage */
  ck_assert_uint_eq(t.total, SAMPLE_OPEN);
  ck_assert_uint_eq(damage.chunks, 0);
}
END_TEST

/* ---- not a spool ----------------------------------------------------------------------------- */

START_TEST(what_is_no_spool_is_refused)
{
  char path[600];
  spool_reader *r = NULL;
  ck_assert_int_eq(spool_reader_open(&r, "/nonexistent/x.spool", false), WEIR_ENOENT);
  ck_assert_int_eq(spool_reader_open(&r, folder, false), WEIR_ECORRUPT);
  (void)snprintf(path, sizeof path, "%s/fifo", folder);
  ck_assert_int_eq(mkfifo(path, 0600), 0);
  ck_assert_int_eq(spool_reader_open(&r, path, false), WEIR_ECORRUPT);
  (void)snprintf(path, sizeof path, "%s/empty", folder);
  close(open(path, O_CREAT | O_WRONLY, 0600));
  ck_assert_int_eq(spool_reader_open(&r, path, false), WEIR_ECORRUPT);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "is not a spool"));
  ck_assert_int_eq(spool_reader_open(&r, "/proc/self/exe", false), WEIR_ECORRUPT);
  for (uint32_t version = 1; version < 100; version += 98) { /* an older one's, a newer one's */
    put_bytes(&version, 4, offsetof(spool_header, version));
    ck_assert_int_eq(spool_reader_open(&r, s.path, false), WEIR_EVERSION);
    ck_assert_ptr_nonnull(strstr(weir_error_message(), "this Weir reads version 3"));
  }
  ck_assert_ptr_null(r);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("core/spool_hostile");
  TCase *c = tcase_create("hostile");
  tcase_set_timeout(c, 0);
  tcase_add_checked_fixture(c, set_up, tear_down);
  tcase_add_test(c, the_sample_itself_is_sound);
  tcase_add_test(c, any_byte_of_the_header_may_change);
  tcase_add_test(c, any_byte_of_a_chunk_may_change);
  tcase_add_test(c, the_file_may_be_cut_anywhere);
  tcase_add_test(c, a_file_cut_while_it_is_read_is_no_crash);
  tcase_add_test(c, random_damage_is_survived);
  tcase_add_test(c, lengths_that_lie_are_damage);
  tcase_add_test(c, an_extended_record_may_not_leave_its_chunk);
  tcase_add_test(c, a_directory_of_lies_ends);
  tcase_add_test(c, chunks_may_not_overlap);
  tcase_add_test(c, a_lost_chunk_is_reported);
  tcase_add_test(c, what_is_no_spool_is_refused);
  suite_add_tcase(suite, c);
  return run_suite(suite);
}
