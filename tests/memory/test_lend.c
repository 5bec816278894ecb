/* test_lend.c: pages that move: a request larger than any free piece is served by mapping whole
 * pages of free blocks side by side, before any memory is made.
 *
 * On held streams, so that old work runs after the new block was handed out: through the old
 * address, in the same memory. Work carries the number of its block and finds out when it runs
 * whether the memory had become somebody else's. */
#include <stdlib.h>
#include <string.h>
#include "core/memory/tags.h"
#include "tests/memory/rig.h"

enum { PAGE = 2 << 20, STEP = 256 << 10, SLOTS = 8, WORK = 4096 };

static rig r;

typedef struct launch {
  uint64_t *at; /* a word every STEP bytes is looked at and written */
  uint64_t bytes, number;
  bool first; /* of its block: only writes */
} launch;

typedef struct slot {
  void *at; /* NULL: none */
  uint64_t bytes, number;
  int home; /* stream */
} slot;

static slot slots[SLOTS];
static launch work[WORK];
static int launched;
static uint64_t numbers;
static bool wrong;

static void check_and_mark_block(void *argument)
{
  const launch *l = argument;
  for (uint64_t i = 0; i < l->bytes / 8; i += STEP / 8) {
    if (!l->first && l->at[i] != l->number) wrong = true;
    l->at[i] = l->number;
  }
}

static void submit(int stream, const slot *s, bool first)
{
  launch *l = &work[launched++];
  *l = (launch){s->at, s->bytes, s->number, first};
  fake_submit(&r.f, stream, check_and_mark_block, l);
}

static void start_lending_rig(uint64_t capacity)
{
  rig_start(&r, capacity, PAGE, "decay_ms:0");
  memset(slots, 0, sizeof slots);
  launched = 0;
  wrong = false;
  for (int i = 1; i <= 2; i++)
    fake_hold(&r.f, i);
}

static bool allocate_and_use_slot(int i, int stream, uint64_t bytes)
{
  slot *s = &slots[i];
  if (s->at || weir_tcache_malloc(rig_stream(&r, stream), bytes, &s->at)) return false;
  s->bytes = bytes;
  s->number = ++numbers;
  s->home = stream;
  submit(stream, s, true);
  return true;
}

static void use_and_free_slot(int i)
{
  slot *s = &slots[i];
  if (!s->at) return;
  submit(s->home, s, false); /* the latest work that may still see the block */
  rig_free(&r, s->at);
  s->at = NULL;
}

static void stop_lending_rig(void)
{
  for (int i = 0; i < SLOTS; i++)
    use_and_free_slot(i);
  fake_release(&r.f, 2);
  fake_release(&r.f, 1);
  ck_assert(!wrong);
  rig_stop(&r);
}

/* Four blocks of 4 MiB on stream 1, of which every other one is freed. */
static void checkered(void)
{
  for (int i = 0; i < 4; i++)
    ck_assert(allocate_and_use_slot(i, 1, 4 * MIB));
  use_and_free_slot(0);
  use_and_free_slot(2);
}

START_TEST(own_pages_are_lent_while_their_work_is_pending)
{
  start_lending_rig(64 * MIB);
  checkered();
  ck_assert(allocate_and_use_slot(4, 1, 8 * MIB));
  ck_assert_int_eq(RIG_STAT(&r, reserved_bytes), 16 * MIB);
  ck_assert_int_gt(RIG_STAT(&r, num_stitches), 0);
  ck_assert_uint_eq(r.f.syncs + r.f.waits, 0);
  ck_assert_uint_eq(r.f.mapped, 24 * MIB); /* the old work still runs through the old addresses */
  fake_release(&r.f, 1);
  ck_assert(!wrong);
  ck_assert(allocate_and_use_slot(5, 1, 2 * MIB)); /* grows, and unmaps what is over */
  ck_assert_uint_eq(r.f.mapped, 18 * MIB);
  stop_lending_rig();
}
END_TEST

START_TEST(other_streams_pages_are_not_lent_before_their_work_is_complete)
{
  start_lending_rig(64 * MIB);
  checkered();
  ck_assert(allocate_and_use_slot(4, 2, 8 * MIB));
  ck_assert_int_eq(RIG_STAT(&r, reserved_bytes), 24 * MIB);
  fake_release(&r.f, 1);
  use_and_free_slot(4);
  ck_assert(allocate_and_use_slot(5, 2, 16 * MIB)); /* its own 8 and the 8 of stream 1 */
  ck_assert_int_eq(RIG_STAT(&r, reserved_bytes), 24 * MIB);
  stop_lending_rig();
}
END_TEST

START_TEST(a_hole_between_two_pieces_joins_both)
{
  start_lending_rig(64 * MIB);
  fake_release(&r.f, 1);
  ck_assert(allocate_and_use_slot(0, 1, 3 * MIB));
  ck_assert(allocate_and_use_slot(1, 1, 9 * MIB));
  ck_assert(allocate_and_use_slot(2, 1, 4 * MIB));
  use_and_free_slot(1); /* 1 MiB, four pages, none left over */
  ck_assert_int_eq(RIG_STAT(&r, reserved_bytes), 16 * MIB);
  void *whole = rig_malloc(&r, 1, 12 * MIB);
  ck_assert_int_eq(RIG_STAT(&r, reserved_bytes), 20 * MIB);
  rig_free(&r, whole);
  ck_assert(allocate_and_use_slot(3, 1, 9 * MIB)); /* wherever; nothing is made */
  ck_assert_int_eq(RIG_STAT(&r, reserved_bytes), 20 * MIB);
  stop_lending_rig();
}
END_TEST

START_TEST(what_a_lent_page_left_is_address_space_again)
{
  start_lending_rig(32 * MIB);
  fake_release(&r.f, 1);
  for (int round = 0; round < 200; round++) { /* far more than the reservation, four devices */
    checkered();
    ck_assert(allocate_and_use_slot(4, 1, 8 * MIB + (uint64_t)(round % 5) * MIB));
    for (int i = 0; i < SLOTS; i++)
      use_and_free_slot(i);
    ck_assert(!wrong);
    launched = 0;
  }
  ck_assert_int_le(RIG_STAT(&r, reserved_bytes), 24 * MIB);
  stop_lending_rig();
}
END_TEST

/* 3 MiB free, of which one in the page of 4 MiB live, and 1 MiB behind that: all of 8 MiB. */
static void pieces(void)
{
  start_lending_rig(8 * MIB);
  ck_assert(allocate_and_use_slot(0, 1, 3 * MIB));
  ck_assert(allocate_and_use_slot(1, 1, 4 * MIB));
  use_and_free_slot(0);
}

START_TEST(pieces_of_pages_serve_while_their_work_is_pending)
{
  pieces();
  ck_assert(allocate_and_use_slot(2, 1, 4 * MIB)); /* a piece, a page and a piece */
  rig_check(&r);
  ck_assert_uint_ne(r.p->stitched, 0);
  ck_assert_uint_eq(r.f.syncs + r.f.waits, 0);
  fake_release(&r.f, 1);
  ck_assert(!wrong);
  submit(1, &slots[1], false); /* both have all their memory */
  submit(1, &slots[2], false);
  ck_assert(!wrong);
  stop_lending_rig();
}
END_TEST

START_TEST(a_piece_comes_home_and_makes_its_page_whole)
{
  pieces();
  fake_release(&r.f, 1);
  ck_assert(allocate_and_use_slot(2, 1, 4 * MIB));
  use_and_free_slot(2);
  ck_assert(allocate_and_use_slot(4, 1, MIB)); /* before the page and the piece */
  use_and_free_slot(1);
  ck_assert(allocate_and_use_slot(
      3, 1, 7 * MIB)); /* three pages, one of them the piece's home, and a piece */
  rig_check(&r);
  use_and_free_slot(3);
  use_and_free_slot(4);
  ck_assert_int_eq(weir_pool_empty(r.p), WEIR_OK);
  ck_assert_int_eq(RIG_STAT(&r, reserved_bytes), 0);
  ck_assert_uint_eq(r.p->stitched, 0);
  stop_lending_rig();
}
END_TEST

START_TEST(a_piece_that_cannot_move_changes_nothing)
{
  bool failed = true;
  for (uint64_t n = 1; failed; n++) {
    pieces();
    fake_release(&r.f, 1);
    fake_fail(&r.f, n, _i, WEIR_ECUDA);
    failed = !allocate_and_use_slot(2, 1, 4 * MIB);
    fake_fail(&r.f, 0, false, WEIR_OK);
    rig_check(&r);
    if (failed) ck_assert(allocate_and_use_slot(2, 1, 4 * MIB));
    rig_check(&r);
    submit(1, &slots[1], false);
    submit(1, &slots[2], false);
    use_and_free_slot(2);
    use_and_free_slot(1);
    fake_fail(&r.f, n, false, WEIR_ECUDA);
    failed |= weir_pool_empty(r.p) != WEIR_OK;
    fake_fail(&r.f, 0, false, WEIR_OK);
    rig_check(&r);
    stop_lending_rig();
  }
}
END_TEST

START_TEST(pieces_keep_their_contents_over_a_pause)
{
  pieces();
  fake_release(&r.f, 1);
  ck_assert(allocate_and_use_slot(2, 1, 4 * MIB));
  uint64_t lost = 0;
  pthread_mutex_lock(&r.p->lock);
  ck_assert_int_eq(pool_pause(r.p, WEIR_TAGS, true), WEIR_OK);
  pthread_mutex_unlock(&r.p->lock);
  rig_check(&r);
  ck_assert_int_gt(RIG_STAT(&r, paused_bytes), 0);
  pthread_mutex_lock(&r.p->lock);
  ck_assert_int_eq(pool_resume(r.p, WEIR_TAGS, &lost), WEIR_OK);
  pthread_mutex_unlock(&r.p->lock);
  rig_check(&r);
  submit(1, &slots[1], false);
  submit(1, &slots[2], false);
  stop_lending_rig();
}
END_TEST

START_TEST(no_page_is_lent_to_work_it_may_not_serve)
{
  uint64_t seed = (uint64_t)_i + 1, lent = 0, away = 0;
  for (int round = 0; round < (SANITIZED ? 30 : 300); round++) {
    start_lending_rig((uint64_t)(20 + round % 3 * 8) * MIB);
    for (int i = 0; i < 120; i++) {
      int one = (int)(rig_random(&seed) % SLOTS), stream = 1 + (int)(rig_random(&seed) % 2);
      switch (rig_random(&seed) % 6) {
      case 0:
      case 1:
        (void)allocate_and_use_slot(one, stream, (1 + rig_random(&seed) % 14) * MIB / 2);
        break;
      case 2:
      case 3:
        use_and_free_slot(one);
        break;
      case 4:
        (void)fake_step(&r.f, stream);
        break;
      default:
        if (slots[one].at) submit(slots[one].home, &slots[one], false);
      }
      rig_check(&r);
      away += r.p->stitched != 0;
    }
    lent += r.p->stitches;
    stop_lending_rig();
  }
  ck_assert_uint_gt(lent, 0);
  ck_assert_uint_gt(away, 0);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("lend");
  TCase *t = tcase_create("lend");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, own_pages_are_lent_while_their_work_is_pending);
  tcase_add_test(t, other_streams_pages_are_not_lent_before_their_work_is_complete);
  tcase_add_test(t, a_hole_between_two_pieces_joins_both);
  tcase_add_test(t, what_a_lent_page_left_is_address_space_again);
  tcase_add_test(t, pieces_of_pages_serve_while_their_work_is_pending);
  tcase_add_test(t, a_piece_comes_home_and_makes_its_page_whole);
  tcase_add_loop_test(t, a_piece_that_cannot_move_changes_nothing, 0, 2);
  tcase_add_test(t, pieces_keep_their_contents_over_a_pause);
  tcase_add_loop_test(t, no_page_is_lent_to_work_it_may_not_serve, 0, 4);
  suite_add_tcase(s, t);
  return rig_run(s);
}
