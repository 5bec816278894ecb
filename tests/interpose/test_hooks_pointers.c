/* test_hooks_pointers.c: the pointer map: every address of a block is known, none beside it; huge
 * ranges are cheap; threads do not disturb each other. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "core/trace/event.h"
#include "interpose/record/pointers.h"
#include "interpose/record/hash_table.h"

#define DEVICE block_tag_make(WEIR_MEM_DEVICE, 1, 2)
#define PINNED block_tag_make(WEIR_MEM_PINNED, 0, 1)
#define KIB    UINT64_C(1024)
#define MIB    (KIB * 1024)
#define GIB    (MIB * 1024)
#define TOP_57 (UINT64_C(1) << 57)

static void add_tagged_block(uint64_t start, uint64_t bytes, block_tag tag)
{
  pointer_block_add((pointer_block){start, bytes, tag});
}

static void expect(uint64_t at, block_tag tag)
{
  ck_assert_msg(pointer_tag(at) == tag, "%#llx: %#x, not %#x", (unsigned long long)at,
                pointer_tag(at), tag);
}

/* Known inside (ends, middle and around every boundary of a MiB or GiB), unknown a page beside. */
static void check_block(uint64_t start, uint64_t bytes, block_tag tag, block_tag beside)
{
  expect(start, tag);
  expect(start + bytes - 1, tag);
  expect(start + bytes / 2, tag);
  for (uint64_t at = (start / MIB + 1) * MIB, n = 0; at < start + bytes && n < 5000;
       at += MIB, n++) {
    expect(at, tag);
    expect(at - 1, tag);
  }
  expect((start & ~UINT64_C(4095)) - 1, beside);
  expect((start + bytes + 4095) & ~UINT64_C(4095), beside);
}

START_TEST(a_block_is_known_from_its_first_byte_to_its_last_and_gone_when_taken)
{
  static const uint64_t starts[] = {4096,
                                    0x7f0000000000,
                                    0x7f0000000200,
                                    0x7f00001ff000,
                                    0x7f003ffffe00,
                                    (UINT64_C(1) << 48) - 2 * MIB,
                                    (UINT64_C(1) << 52) + 512,
                                    TOP_57 - 8 * GIB};
  static const uint64_t sizes[] = {1,       512,         4096,    4097, 2 * MIB - 1,
                                   2 * MIB, 2 * MIB + 1, 3 * MIB, GIB,  GIB + 3 * MIB + 7,
                                   5 * GIB};
  for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
    for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
      add_tagged_block(starts[i], sizes[j], DEVICE);
      check_block(starts[i], sizes[j], DEVICE, 0);
      pointer_block b = pointer_block_remove(starts[i]);
      ck_assert_uint_eq(b.bytes, sizes[j]);
      ck_assert_uint_eq(b.tag, DEVICE);
      expect(starts[i], 0);
      expect(starts[i] + sizes[j] - 1, 0);
      expect(starts[i] + sizes[j] / 2, 0);
      ck_assert_uint_eq(pointer_block_remove(starts[i]).tag, 0);
    }
}
END_TEST

START_TEST(addresses_past_57_bits_and_ranges_that_wrap_are_refused)
{
  add_tagged_block(TOP_57, 4096, DEVICE);
  add_tagged_block(TOP_57 - 4096, 8192, DEVICE);
  add_tagged_block(4096, UINT64_MAX - 100, DEVICE);
  add_tagged_block(0, 4096, DEVICE);
  expect(TOP_57, 0);
  expect(TOP_57 - 1, 0);
  expect(UINT64_MAX, 0);
  expect(4096, 0);
  expect(0, 0);
}
END_TEST

START_TEST(a_block_across_a_48_bit_boundary_is_known_on_both_sides)
{
  uint64_t edge = UINT64_C(1) << 48;
  add_tagged_block(edge - 3 * MIB, 6 * MIB, DEVICE);
  check_block(edge - 3 * MIB, 6 * MIB, DEVICE, 0);
  pointer_block_remove(edge - 3 * MIB);
  expect(edge - 1, 0);
  expect(edge, 0);
}
END_TEST

START_TEST(small_blocks_share_a_page_until_the_last_is_gone)
{
  for (uint64_t i = 0; i < 8; i++)
    add_tagged_block(0x7f0000000000 + 512 * i, 512, DEVICE);
  for (uint64_t i = 0; i < 8; i++) {
    expect(0x7f0000000000 + 512 * 7, DEVICE);
    pointer_block_remove(0x7f0000000000 + 512 * i);
  }
  expect(0x7f0000000000, 0);
}
END_TEST

static void check_bytes(uint64_t start, uint64_t bytes, block_tag before, block_tag behind)
{
  expect(start - 1, before);
  expect(start, PINNED);
  expect(start + bytes / 2, PINNED);
  expect(start + bytes - 1, PINNED);
  expect(start + bytes, behind);
}

START_TEST(page_locked_memory_of_the_host_is_known_to_the_byte)
{
  static const uint64_t sizes[] = {1, 63, 64, 80, 4000, 4096, 5000, 96 * KIB - 56, 3 * MIB + 5};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (uint64_t start = 0x7f0000000010; start < 0x7f0000002000; start += 1009) {
      add_tagged_block(start, sizes[i], PINNED);
      check_bytes(start, sizes[i], 0, 0);
      add_tagged_block(start + sizes[i] + 16, 48, PINNED); /* malloc's next one */
      check_bytes(start + sizes[i] + 16, 48, 0, 0);
      check_bytes(start, sizes[i], 0, 0);
      pointer_block_remove(start);
      check_bytes(start + sizes[i] + 16, 48, 0, 0);
      expect(start + sizes[i] - 1, 0);
      pointer_block_remove(start + sizes[i] + 16);
      expect(start + sizes[i] + 16, 0);
    }
}
END_TEST

START_TEST(a_block_whose_end_was_not_seen_gives_way_to_its_successors)
{
  add_tagged_block(8 * GIB, 4 * GIB, DEVICE);
  add_tagged_block(9 * GIB + 4096, 8192, PINNED);
  expect(9 * GIB + 4096, PINNED);
  expect(9 * GIB, DEVICE);
  expect(9 * GIB + 4096 + 8192, DEVICE);
  add_tagged_block(8 * GIB, 4096, PINNED); /* the same start again */
  expect(8 * GIB, PINNED);
  expect(8 * GIB + 4096, 0);
}
END_TEST

START_TEST(eighty_gib_cost_few_pages_of_our_own)
{
  struct rusage before, after;
  add_tagged_block(0x7f0000000000, 4096, DEVICE);
  getrusage(RUSAGE_SELF, &before);
  for (int i = 0; i < 100; i++) {
    add_tagged_block(0x600000200000, 80 * GIB, DEVICE);
    pointer_block_remove(0x600000200000);
  }
  getrusage(RUSAGE_SELF, &after);
  ck_assert_int_lt(after.ru_minflt - before.ru_minflt, 1000);
}
END_TEST

START_TEST(blocks_of_a_context_are_dropped_together)
{
  add_tagged_block(1 * GIB, MIB, block_tag_make(WEIR_MEM_DEVICE, 0, 1));
  add_tagged_block(2 * GIB, MIB, block_tag_make(WEIR_MEM_DEVICE, 0, 2));
  add_tagged_block(3 * GIB, MIB, block_tag_make(WEIR_MEM_PINNED, 1, 2));
  pointer_blocks_drop(block_tag_make(0, 0, 255), block_tag_make(0, 0, 2));
  ck_assert_uint_ne(pointer_tag(1 * GIB), 0);
  expect(2 * GIB, 0);
  expect(3 * GIB, 0);
  pointer_blocks_drop(block_tag_make(0, 255, 0), block_tag_make(0, 0, 0));
  expect(1 * GIB, 0);
}
END_TEST

static unsigned marks_in(const pointer_page_mark *marks, unsigned n)
{
  unsigned set = 0;
  for (unsigned i = 0; i < n; i++)
    set += atomic_load(&marks[i]) != 0;
  return set;
}

static const pointer_node *child_node(const pointer_word *of)
{
  return (const pointer_node *)(uintptr_t)atomic_load(of);
}

/* All marks in the tree beneath one root, that of the addresses with the given upper bits. */
static unsigned marks_under(uint64_t address)
{
  const pointer_root *r = (const pointer_root *)(uintptr_t)atomic_load(&pointer_top[address >> 48]);
  unsigned n =
      marks_in(r->mark, 1 << 18) + marks_in(r->mark8, 1 << 15) + marks_in(r->mark64, 1 << 12);
  for (unsigned i = 0; i < 1 << 18; i++) {
    const pointer_node *g = child_node(&r->child[i]);
    if (!g) continue;
    n += marks_in(g->mark, 512) + marks_in(g->mark8, 64) + marks_in(g->mark64, 8);
    for (unsigned j = 0; j < 512; j++) {
      const pointer_node *p = child_node(&g->child[j]);
      if (p) n += marks_in(p->mark, 512) + marks_in(p->mark8, 64) + marks_in(p->mark64, 8);
    }
  }
  return n;
}

/* 7 single marks, 7 of 8 and 7 of 64 at each end of each of three levels, at the very most. */
START_TEST(a_block_of_any_size_costs_some_marks_at_its_ends)
{
  static const uint64_t sizes[] = {4096,       64 * KIB,       MIB,      64 * MIB, GIB - 2 * MIB,
                                   GIB + 4096, 17 * GIB + 513, 80 * GIB, 100 * GIB};
  static const uint64_t offsets[] = {0, 512, 4096 * 3 + 512, 2 * MIB, 5 * MIB, GIB - 4096};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (size_t j = 0; j < sizeof offsets / sizeof *offsets; j++) {
      uint64_t start = UINT64_C(0x7e8200000000) + offsets[j];
      add_tagged_block(start, sizes[i], DEVICE);
      check_block(start, sizes[i], DEVICE, 0);
      ck_assert_uint_le(marks_under(start), 2 * 3 * 3 * 7);
      pointer_block_remove(start);
      ck_assert_uint_eq(marks_under(start), 0);
    }
}
END_TEST

/* ---- random blocks against a plain list ------------------------------------------------------ */

enum { ARENA_BLOCKS = 160 };
#define ARENA       UINT64_C(0x7d0000000000)
#define ARENA_BYTES (3 * GIB)

static pointer_block in_arena[ARENA_BLOCKS]; /* oldest first; tag 0: gone */
static bool ended[ARENA_BLOCKS];             /* freed without our knowing */

static uint64_t random_bits(uint64_t *state)
{
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

/* Of any size, and of a size like any other; whole pages, as tags differ. */
static pointer_block random_block(uint64_t *state, unsigned n)
{
  uint64_t bytes = (UINT64_C(4096) << random_bits(state) % 19);
  bytes += random_bits(state) % 3 ? 0 : (random_bits(state) % bytes) & ~UINT64_C(4095);
  uint64_t unit = random_bits(state) % 2 ? 4096 : 2 * MIB;
  uint64_t start = ARENA + random_bits(state) % (ARENA_BYTES - bytes) / unit * unit;
  return (pointer_block){start, bytes, block_tag_make(WEIR_MEM_DEVICE, n % 250, n / 250 % 250 + 1)};
}

static bool overlap(const pointer_block *a, const pointer_block *b)
{
  return a->tag && b->tag && a->start < b->start + b->bytes && b->start < a->start + a->bytes;
}

/* A place in the list; what lies where the block goes is taken out, or was freed unseen. */
static void model_add(pointer_block b, uint64_t *state)
{
  bool unseen = random_bits(state) % 8 == 0;
  for (int i = 0; i < ARENA_BLOCKS; i++) {
    if (!overlap(&in_arena[i], &b)) continue;
    if (!unseen || ended[i] || in_arena[i].start == b.start) {
      pointer_block_remove(in_arena[i].start);
      in_arena[i].tag = 0;
    } else {
      ended[i] = true;
    }
  }
  int last = ARENA_BLOCKS - 1;
  if (in_arena[0].tag) pointer_block_remove(in_arena[0].start);
  memmove(in_arena, in_arena + 1, sizeof *in_arena * (size_t)last);
  memmove(ended, ended + 1, sizeof *ended * (size_t)last);
  in_arena[last] = b;
  ended[last] = false;
  pointer_block_add(b);
}

/* The newest block at an address is what the map says, unless it was freed unseen. */
static void model_check(uint64_t at)
{
  block_tag tag = 0;
  for (int i = ARENA_BLOCKS - 1; i >= 0; i--) {
    const pointer_block *b = &in_arena[i];
    if (!b->tag || at - b->start >= b->bytes) continue;
    if (ended[i]) return; /* anything may be said of it */
    tag = b->tag;
    break;
  }
  expect(at, tag);
}

START_TEST(random_blocks_of_all_sizes_agree_with_a_list_of_them)
{
  uint64_t state = (uint64_t)_i;
  memset(in_arena, 0, sizeof in_arena);
  for (unsigned step = 0; step < 6000; step++) {
    model_add(random_block(&state, step), &state);
    for (int k = 0; k < 6; k++) {
      const pointer_block *b = &in_arena[random_bits(&state) % ARENA_BLOCKS];
      if (b->tag) {
        model_check(b->start);
        model_check(b->start - 1);
        model_check(b->start + b->bytes - 1);
        model_check(b->start + b->bytes);
        model_check(b->start + random_bits(&state) % b->bytes);
      }
      model_check(ARENA + random_bits(&state) % ARENA_BYTES);
    }
  }
  for (int i = 0; i < ARENA_BLOCKS; i++)
    if (in_arena[i].tag) pointer_block_remove(in_arena[i].start);
}
END_TEST

/* Random blocks against a plain list. */
START_TEST(random_blocks_agree_with_a_list)
{
  enum { LIVE = 200 };
  static pointer_block live[LIVE];
  unsigned seed = 1;
  for (int step = 0; step < 20000; step++) {
    int i = rand_r(&seed) % LIVE;
    uint64_t base = UINT64_C(0x7a0000000000) + (uint64_t)i * 64 * MIB;
    if (live[i].tag) {
      ck_assert_uint_eq(pointer_block_remove(live[i].start).bytes, live[i].bytes);
      expect(live[i].start, 0);
      expect(live[i].start + live[i].bytes - 1, 0);
      live[i].tag = 0;
    } else {
      uint64_t bytes = 1 + (uint64_t)rand_r(&seed) % (rand_r(&seed) % 4 ? 8192 : 40 * MIB);
      live[i] = (pointer_block){base + (uint64_t)(rand_r(&seed) % (16 * (int)MIB)), bytes,
                                block_tag_make(WEIR_MEM_DEVICE, (unsigned)i, 1)};
      pointer_block_add(live[i]);
    }
    int j = rand_r(&seed) % LIVE;
    if (live[j].tag) check_block(live[j].start, live[j].bytes, live[j].tag, 0);
  }
}
END_TEST

enum { THREADS = 4, STEPS = 3000 };

/* Each thread has slots of its own, interleaved with the others' in the same granules. */
static void *churn_tagged_slots(void *arg)
{
  uint64_t id = (uint64_t)(uintptr_t)arg;
  unsigned seed = (unsigned)id + 1;
  block_tag tag = block_tag_make(WEIR_MEM_DEVICE, 3, 3);
  for (int i = 0; i < STEPS; i++) {
    uint64_t slot = (uint64_t)(rand_r(&seed) % 256) * THREADS + id;
    uint64_t start = UINT64_C(0x7b0000000000) + slot * 1536,
             bytes = 512 + (uint64_t)(rand_r(&seed) % 1024);
    pointer_block_add((pointer_block){start, bytes, tag});
    if (pointer_tag(start) != tag || pointer_tag(start + bytes - 1) != tag) return (void *)1;
    if (pointer_block_remove(start).bytes != bytes) return (void *)2;
    uint64_t large = UINT64_C(0x6b0000000000) + id * 8 * GIB;
    pointer_block_add((pointer_block){large + 512 * (uint64_t)i, 3 * GIB, tag});
    if (pointer_tag(large + 2 * GIB) != tag) return (void *)3;
    if (pointer_block_remove(large + 512 * (uint64_t)i).bytes != 3 * GIB) return (void *)4;
  }
  return NULL;
}

START_TEST(threads_in_the_same_pages_do_not_disturb_each_other)
{
  pthread_t t[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_create(&t[i], NULL, churn_tagged_slots, (void *)i), 0);
  for (int i = 0; i < THREADS; i++) {
    void *wrong = NULL;
    pthread_join(t[i], &wrong);
    ck_assert_ptr_null(wrong);
  }
  for (uint64_t at = 0; at < 1024 * 1536; at += 512)
    expect(UINT64_C(0x7b0000000000) + at, 0);
}
END_TEST

/* ---- ranges freed here and reused there, while others look ----------------------------------- */

enum { PLACES = 24, CHURNERS = 4, LOOKERS = 2, TURNS = 4000 };
#define SHARED      UINT64_C(0x6d0000000000)
#define PLACE_BYTES (96 * MIB) /* and two blocks between it and the next that never go */

static _Atomic bool taken[PLACES], churned;

static uint64_t place_at(uint64_t i)
{
  return SHARED + i * (PLACE_BYTES + 4 * MIB);
}

static void *churn_places(void *argument)
{
  uint64_t id = (uint64_t)(uintptr_t)argument, state = id;
  block_tag tag = block_tag_make(WEIR_MEM_PINNED, (unsigned)id, 7);
  for (int turn = 0; turn < TURNS; turn++) {
    uint64_t i = random_bits(&state) % PLACES;
    if (atomic_exchange(&taken[i], true)) continue;
    uint64_t bytes = 1 + random_bits(&state) % (UINT64_C(512) << random_bits(&state) % 18);
    uint64_t start = place_at(i) + random_bits(&state) % (PLACE_BYTES - bytes) / 512 * 512;
    pointer_block_add((pointer_block){start, bytes, tag});
    for (int k = 0; k < 8; k++)
      if (pointer_tag(start + random_bits(&state) % bytes) != tag) return (void *)1;
    if (pointer_tag(start + bytes - 1) != tag) return (void *)2;
    if (pointer_block_remove(start).bytes != bytes) return (void *)3;
    if (pointer_tag(start) || pointer_tag(start + bytes / 2)) return (void *)4;
    atomic_store(&taken[i], false);
  }
  return NULL;
}

/* What stays is known at all times; in a place there is a churner's block or none. */
static void *look_at_places(void *argument)
{
  uint64_t state = (uint64_t)(uintptr_t)argument;
  while (!atomic_load(&churned)) {
    uint64_t at = place_at(random_bits(&state) % PLACES);
    if (pointer_tag(at + PLACE_BYTES + random_bits(&state) % (2 * MIB)) != DEVICE) return (void *)5;
    if (pointer_tag(at + PLACE_BYTES + 2 * MIB + random_bits(&state) % 4096) != DEVICE)
      return (void *)6;
    block_tag tag = pointer_tag(at + random_bits(&state) % PLACE_BYTES);
    if (tag && (block_tag_mem(tag) != WEIR_MEM_PINNED || block_tag_context(tag) != 7))
      return (void *)7;
  }
  return NULL;
}

START_TEST(ranges_are_freed_and_reused_while_other_threads_look)
{
  pthread_t t[CHURNERS + LOOKERS];
  void *wrong;
  for (uint64_t i = 0; i < PLACES; i++) {
    add_tagged_block(place_at(i) + PLACE_BYTES, 2 * MIB, DEVICE);
    add_tagged_block(place_at(i) + PLACE_BYTES + 2 * MIB, 4096, DEVICE);
  }
  for (uintptr_t i = 0; i < CHURNERS + LOOKERS; i++)
    ck_assert_int_eq(
        pthread_create(&t[i], NULL, i < CHURNERS ? churn_places : look_at_places, (void *)(i + 1)),
        0);
  for (int i = 0; i < CHURNERS + LOOKERS; i++) {
    if (i == CHURNERS) atomic_store(&churned, true);
    pthread_join(t[i], &wrong);
    ck_assert_msg(!wrong, "thread %d: %ld", i, (long)(intptr_t)wrong);
  }
  ck_assert_uint_eq(marks_under(SHARED), PLACES * 2);
}
END_TEST

#define FIRST UINT64_C(0x7c0000000000)

/* An address in granules of its own whose slot in a table is FIRST's. */
static uint64_t with_the_slot_of_first(void)
{
  static hash_table t;
  uint64_t x, y, at = FIRST;
  const hash_entry *slot = hash_table_put(&t, FIRST, 1, 1);
  ck_assert(slot && hash_table_take(&t, FIRST, &x, &y));
  for (;;) {
    at += 2 * MIB;
    bool same = hash_table_put(&t, at, 1, 1) == slot;
    ck_assert(hash_table_take(&t, at, &x, &y));
    if (same) return at;
  }
}

static _Atomic bool enough;

/* Contexts come and go, each with a block. */
static void *come_and_go(void *address)
{
  block_tag gone = block_tag_make(WEIR_MEM_DEVICE, 1, 3);
  while (!atomic_load(&enough)) {
    add_tagged_block(*(const uint64_t *)address, 4096, gone);
    pointer_blocks_drop(block_tag_make(0, 0, 255), block_tag_make(0, 0, 3));
  }
  return NULL;
}

START_TEST(a_block_is_not_dropped_with_a_context_that_had_its_slot)
{
  pthread_t other;
  uint64_t at = with_the_slot_of_first();
  atomic_store(&enough, false);
  ck_assert_int_eq(pthread_create(&other, NULL, come_and_go, &at), 0);
  for (int i = 0; i < 300000; i++) {
    add_tagged_block(FIRST, 48 * 4096, DEVICE);
    expect(FIRST, DEVICE);
    pointer_block b = pointer_block_remove(FIRST);
    ck_assert(b.tag == DEVICE && b.bytes == 48 * 4096);
  }
  atomic_store(&enough, true);
  pthread_join(other, NULL);
  expect(FIRST, 0);
  expect(at, 0);
}
END_TEST

static unsigned visited;
static void check_visited_entry(void *context, uint64_t key, uint64_t x, uint64_t y)
{
  (void)context;
  ck_assert_uint_eq(x, key * 2);
  ck_assert_uint_eq(y, key * 3);
  visited++;
}

START_TEST(a_table_grows_and_reuses_what_was_taken_out)
{
  static hash_table t;
  uint64_t x, y;
  for (uint64_t k = 1; k <= 50000; k++)
    ck_assert_ptr_nonnull(hash_table_put(&t, k * 512, k * 1024, k * 1536));
  for (uint64_t k = 1; k <= 50000; k += 2)
    ck_assert(hash_table_take(&t, k * 512, &x, &y) && x == k * 1024);
  visited = 0;
  hash_table_each(&t, check_visited_entry, NULL);
  ck_assert_uint_eq(visited, 25000);
  for (uint64_t k = 1; k <= 50000; k++)
    ck_assert((hash_table_find(&t, k * 512) != NULL) == (k % 2 == 0));
  ck_assert_ptr_null(hash_table_put(&t, 0, 1, 1));
  ck_assert_ptr_null(hash_table_put(&t, UINT64_MAX, 1, 1));
  for (int round = 0; round < 200000; round++) {
    uint64_t k = (uint64_t)round * 4096 + 8;
    ck_assert_ptr_nonnull(hash_table_put(&t, k, 1, 1));
    ck_assert(hash_table_take(&t, k, &x, &y));
  }
  ck_assert_ptr_null(atomic_load(&t.level[4])); /* churn makes no new levels */
}
END_TEST

#define TESTS(X)                                                                                   \
  X(a_block_is_known_from_its_first_byte_to_its_last_and_gone_when_taken)                          \
  X(addresses_past_57_bits_and_ranges_that_wrap_are_refused)                                       \
  X(a_block_across_a_48_bit_boundary_is_known_on_both_sides)                                       \
  X(small_blocks_share_a_page_until_the_last_is_gone)                                              \
  X(page_locked_memory_of_the_host_is_known_to_the_byte)                                           \
  X(a_block_whose_end_was_not_seen_gives_way_to_its_successors)                                    \
  X(eighty_gib_cost_few_pages_of_our_own)                                                          \
  X(blocks_of_a_context_are_dropped_together)                                                      \
  X(a_block_of_any_size_costs_some_marks_at_its_ends)                                              \
  X(random_blocks_agree_with_a_list)                                                               \
  X(ranges_are_freed_and_reused_while_other_threads_look)                                          \
  X(threads_in_the_same_pages_do_not_disturb_each_other)                                           \
  X(a_block_is_not_dropped_with_a_context_that_had_its_slot)                                       \
  X(a_table_grows_and_reuses_what_was_taken_out)

int main(void)
{
  Suite *s = suite_create("pointers");
  TCase *c = tcase_create("pointers");
  tcase_set_timeout(c, 0);
#define ADD(test) tcase_add_test(c, test);
  TESTS(ADD)
  tcase_add_loop_test(c, random_blocks_of_all_sizes_agree_with_a_list_of_them, 0, 4);
  suite_add_tcase(s, c);
  SRunner *runner = srunner_create(s);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
