/* test_content.c: memory of a program is hashed as it is, and what cannot be read does no harm. */
#define XXH_INLINE_ALL
#include <check.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xxhash.h>
#include "interpose/content/reading.h"

enum { PAGE = 4096, MOST = 300000 };

static unsigned char *bytes_of(size_t count, unsigned seed)
{
  unsigned char *p = malloc(count);
  ck_assert_ptr_nonnull(p);
  for (size_t i = 0; i < count; i++)
    p[i] = (unsigned char)((seed = seed * 1664525 + 1013904223) >> 24);
  return p;
}

static content_region region_of(const void *at, size_t bytes)
{
  return (content_region){
      .at = (uint64_t)(uintptr_t)at, .width = bytes, .height = 1, .pitch = bytes};
}

static void expect(const content_digest *d, const void *content, size_t bytes)
{
  XXH128_hash_t h = XXH3_128bits(content, bytes);
  ck_assert_uint_eq(d->hash[0], h.low64);
  ck_assert_uint_eq(d->hash[1], h.high64);
}

/* Lengths about the edges of a piece, and any others. */
static void hash_lengths(void)
{
  static const size_t lengths[] = {1, 2, 63, 64, 65, 4095, 4097, 65535, 65536, 65537, 131072, MOST};
  unsigned char *p = bytes_of(MOST + 1, 7);
  content_digest d;
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    content_region r = region_of(p + 1, lengths[i]);
    ck_assert(content_digest_of(&r, &d, NULL));
    expect(&d, p + 1, lengths[i]);
    ck_assert_int_eq(d.uniform, lengths[i] == 1);
  }
  free(p);
}

START_TEST(bytes_of_every_length_have_the_hash_that_xxh3_gives)
{
  hash_lengths();
}
END_TEST

START_TEST(rows_are_hashed_as_if_there_were_no_gap)
{
  enum { WIDTH = 70000, PITCH = 70001, ROWS = 4 };
  unsigned char *p = bytes_of((size_t)PITCH * ROWS, 3), *tight = malloc((size_t)WIDTH * ROWS);
  content_digest d;
  for (size_t i = 0; i < ROWS; i++)
    memcpy(tight + i * WIDTH, p + i * PITCH, WIDTH);
  content_region r = {(uint64_t)(uintptr_t)p, WIDTH, ROWS, PITCH, false};
  ck_assert(content_digest_of(&r, &d, NULL));
  expect(&d, tight, (size_t)WIDTH * ROWS);
  free(tight);
  free(p);
}
END_TEST

START_TEST(one_byte_that_differs_makes_it_not_uniform)
{
  static const size_t places[] = {0, 1, 65535, 65536, 65537, MOST - 1};
  unsigned char *p = malloc(MOST);
  content_region r = region_of(p, MOST);
  content_digest d;
  memset(p, 9, MOST);
  ck_assert(content_digest_of(&r, &d, NULL));
  ck_assert(d.uniform);
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    p[places[i]] = 8;
    ck_assert(content_digest_of(&r, &d, NULL));
    ck_assert_msg(!d.uniform, "at %zu", places[i]);
    p[places[i]] = 9;
  }
  free(p);
}
END_TEST

static void hash_closed_memory(void)
{
  char *p =
      mmap(NULL, (size_t)20 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  content_digest d;
  ck_assert(p != MAP_FAILED);
  ck_assert_int_eq(mprotect(p + (size_t)19 * PAGE, PAGE, PROT_NONE), 0);
  content_region all = region_of(p, (size_t)20 * PAGE), open = region_of(p, (size_t)19 * PAGE);
  ck_assert(!content_digest_of(&all, &d, NULL));
  ck_assert(content_digest_of(&open, &d, NULL));
  ck_assert_int_eq(munmap(p, (size_t)20 * PAGE), 0);
  ck_assert(!content_digest_of(&open, &d, NULL));
  content_region wild = {UINT64_MAX - PAGE, (size_t)2 * PAGE, 1, (size_t)2 * PAGE, false};
  ck_assert(!content_digest_of(&wild, &d, NULL));
}

START_TEST(memory_that_is_closed_or_gone_is_said_to_be_unreadable)
{
  hash_closed_memory();
}
END_TEST

/* As where the memory is the driver's, or a container forbids the call. */
static void forbid_process_vm_readv(void)
{
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

START_TEST(memory_is_read_without_that_call_and_no_descriptor_stays_open)
{
  int before = dup(0);
  close(before);
  forbid_process_vm_readv();
  hash_lengths();
  hash_closed_memory();
  int after = dup(0);
  close(after);
  ck_assert_int_eq(after, before);
}
END_TEST

static void *hash_again(void *bytes)
{
  content_digest d;
  content_region r = region_of(bytes, MOST);
  for (int i = 0; i < 20; i++) {
    if (!content_digest_of(&r, &d, NULL)) return bytes;
    XXH128_hash_t h = XXH3_128bits(bytes, MOST);
    if (d.hash[0] != h.low64 || d.hash[1] != h.high64) return bytes;
  }
  return NULL;
}

START_TEST(more_threads_than_there_is_room_for_hash_at_a_time)
{
  enum { THREADS = 16 };
  pthread_t thread[THREADS];
  unsigned char *bytes[THREADS];
  void *wrong = NULL;
  for (unsigned i = 0; i < THREADS; i++) {
    bytes[i] = bytes_of(MOST, i);
    ck_assert_int_eq(pthread_create(&thread[i], NULL, hash_again, bytes[i]), 0);
  }
  for (unsigned i = 0; i < THREADS; i++) {
    ck_assert_int_eq(pthread_join(thread[i], &wrong), 0);
    ck_assert_ptr_null(wrong);
    free(bytes[i]);
  }
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("content");
  TCase *reading = tcase_create("reading");
  tcase_add_test(reading, bytes_of_every_length_have_the_hash_that_xxh3_gives);
  tcase_add_test(reading, rows_are_hashed_as_if_there_were_no_gap);
  tcase_add_test(reading, one_byte_that_differs_makes_it_not_uniform);
  tcase_add_test(reading, memory_that_is_closed_or_gone_is_said_to_be_unreadable);
  tcase_add_test(reading, memory_is_read_without_that_call_and_no_descriptor_stays_open);
  tcase_add_test(reading, more_threads_than_there_is_room_for_hash_at_a_time);
  suite_add_tcase(suite, reading);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
