/* test_history.c: what the allocator does is written down, by whom, and at no cost to it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/memory/history.h"
#include "core/weir.h"
#include "tests/memory/rig.h"

static fake f;
static const weir_device cuda0 = WEIR_CUDA_INIT(0);

static void attach(uint64_t capacity, uint64_t page, const char *conf)
{
  fake_init(&f, capacity, page);
  ck_assert_msg(weir_memory_attach(&f.backend, conf) == WEIR_OK, "%s", weir_error_message());
}

static void detach(void)
{
  ck_assert_msg(weir_memory_detach(cuda0) == WEIR_OK, "%s", weir_error_message());
  ck_assert(fake_clean(&f));
  fake_fini(&f);
}

static void *allocate_on_cuda0(size_t bytes)
{
  void *out;
  ck_assert_msg(weir_malloc(&out, bytes, cuda0, NULL) == WEIR_OK, "%s", weir_error_message());
  return out;
}

static void free_on_cuda0(void *ptr)
{
  ck_assert_msg(weir_free(ptr) == WEIR_OK, "%s", weir_error_message());
}

static void record(weir_history_mode mode, weir_history_context context, uint64_t most)
{
  ck_assert_msg(weir_memory_record_history(cuda0, mode, context, most) == WEIR_OK, "%s",
                weir_error_message());
}

static weir_history_info info(void)
{
  weir_history_info out;
  ck_assert_int_eq(weir_memory_history_info(&out, cuda0), WEIR_OK);
  return out;
}

static mem_pool *cuda0_pool(void)
{
  mem_pool *p;
  ck_assert_int_eq(pool_of_device(cuda0, &p), WEIR_OK);
  return p;
}

static char *snapshot_json(void)
{
  char *text;
  ck_assert_msg(weir_memory_snapshot(&text, cuda0) == WEIR_OK, "%s", weir_error_message());
  return text;
}

/* ---- the trace ------------------------------------------------------------------------------- */

/* The actions of the trace, the oldest first, as letters. */
static const char *actions(void)
{
  static const char letters[] = "afcSFmuos";
  static char text[256];
  mem_pool *p = cuda0_pool();
  pthread_mutex_lock(&p->lock);
  const history_ring *r = &p->history->entries;
  uint64_t n = r->count < sizeof text - 1 ? r->count : sizeof text - 1;
  for (uint64_t i = 0; i < n; i++)
    text[i] = letters[((const history_entry *)history_ring_at(r, i))->action];
  text[n] = 0;
  pthread_mutex_unlock(&p->lock);
  return text;
}

static history_entry history_entry_at(uint64_t i)
{
  mem_pool *p = cuda0_pool();
  pthread_mutex_lock(&p->lock);
  history_entry e = *(const history_entry *)history_ring_at(&p->history->entries, i);
  pthread_mutex_unlock(&p->lock);
  return e;
}

START_TEST(actions_are_written_in_their_order)
{
  attach(256 * MIB, 2 * MIB, NULL);
  record(WEIR_HISTORY_ALL, WEIR_CONTEXT_NONE, 0);
  void *a = allocate_on_cuda0(1000), *b = allocate_on_cuda0(900);
  ck_assert_str_eq(actions(), "maa"); /* a page, two blocks */
  ck_assert(history_entry_at(0).bytes == 2 * MIB && history_entry_at(0).address == (uint64_t)a &&
            !history_entry_at(0).stream);
  ck_assert(history_entry_at(1).bytes == 1000 && history_entry_at(1).address == (uint64_t)a);
  free_on_cuda0(a);
  free_on_cuda0(b);
  ck_assert_str_eq(actions(), "maafcfc");
  ck_assert(history_entry_at(6).bytes == 900 && history_entry_at(6).address == (uint64_t)b);
  ck_assert_int_eq(weir_memory_empty_cache(cuda0), WEIR_OK);
  ck_assert_str_eq(actions(), "maafcfcu");
  void *out;
  ck_assert_int_eq(weir_malloc(&out, 500 * MIB, cuda0, NULL), WEIR_EOOM);
  ck_assert_str_eq(actions(), "maafcfcuo");
  ck_assert(history_entry_at(8).bytes == 500 * MIB && history_entry_at(8).address == 256 * MIB);
  free(snapshot_json());
  ck_assert_str_eq(actions(), "maafcfcuos");
  for (uint64_t i = 1; i < 10; i++)
    ck_assert_uint_ge(history_entry_at(i).time, history_entry_at(i - 1).time);
  detach();
}
END_TEST

START_TEST(segments_are_named_as_such)
{
  attach(256 * MIB, 0, NULL);
  record(WEIR_HISTORY_ALL, WEIR_CONTEXT_NONE, 0);
  void *a = allocate_on_cuda0(1000);
  free_on_cuda0(a);
  ck_assert_int_eq(weir_memory_empty_cache(cuda0), WEIR_OK);
  ck_assert_str_eq(actions(), "SafcF");
  ck_assert(history_entry_at(0).bytes == 2 * MIB && history_entry_at(4).bytes == 2 * MIB);
  detach();
}
END_TEST

START_TEST(a_free_completes_when_other_streams_are_through)
{
  weir_stream *side;
  attach(256 * MIB, 2 * MIB, NULL);
  record(WEIR_HISTORY_ALL, WEIR_CONTEXT_ALL, 0);
  ck_assert_int_eq(weir_stream_from_native(&side, cuda0, fake_handle(&f, 1)), WEIR_OK);
  void *a = allocate_on_cuda0(1000);
  fake_hold(&f, 1);
  fake_submit(&f, 1, nothing, NULL);
  ck_assert_int_eq(weir_record_stream(a, side), WEIR_OK);
  free_on_cuda0(a);
  ck_assert_str_eq(actions(), "maf");
  fake_release(&f, 1);
  ck_assert_int_eq(weir_memory_empty_cache(cuda0), WEIR_OK);
  ck_assert_str_eq(actions(), "mafcu");
  ck_assert_uint_eq(history_entry_at(3).stack,
                    history_entry_at(1).stack); /* who found it complete is nobody's business */
  ck_assert_uint_ne(history_entry_at(2).stack, history_entry_at(1).stack);
  detach();
}
END_TEST

START_TEST(the_ring_keeps_the_newest)
{
  attach(256 * MIB, 2 * MIB, NULL);
  record(WEIR_HISTORY_ALL, WEIR_CONTEXT_NONE, 700);
  void *a = allocate_on_cuda0(1000);
  for (int i = 0; i < 2000; i++) {
    free_on_cuda0(a);
    a = allocate_on_cuda0(1000);
    uint64_t written = 2 + 3 * (uint64_t)(i + 1);
    ck_assert_uint_eq(info().entries, written < 700 ? written : 700);
    ck_assert_uint_eq(info().overwritten, written < 700 ? 0 : written - 700);
  }
  ck_assert_uint_eq(info().lost, 0);
  ck_assert_int_eq(history_entry_at(699).action, ACTION_ALLOC);
  ck_assert_int_eq(history_entry_at(698).action, ACTION_FREE_COMPLETED);
  record(WEIR_HISTORY_ALL, WEIR_CONTEXT_NONE, 2); /* the newest that fit stay */
  ck_assert_str_eq(actions(), "ca");
  record(WEIR_HISTORY_ALL, WEIR_CONTEXT_NONE, 1000);
  free_on_cuda0(a);
  ck_assert_str_eq(actions(), "cafc");
  record(WEIR_HISTORY_STATE, WEIR_CONTEXT_ALL, 0); /* keeps no trace */
  a = allocate_on_cuda0(1000);
  ck_assert_uint_eq(info().entries, 0);
  free_on_cuda0(a);
  detach();
}
END_TEST

START_TEST(wrong_wishes_are_refused)
{
  attach(64 * MIB, 2 * MIB, NULL);
  ck_assert_int_eq(weir_memory_record_history(cuda0, (weir_history_mode)3, WEIR_CONTEXT_ALL, 0),
                   WEIR_EINVAL);
  ck_assert_int_eq(weir_memory_record_history(cuda0, WEIR_HISTORY_ALL, (weir_history_context)9, 0),
                   WEIR_EINVAL);
  ck_assert_int_eq(
      weir_memory_record_history(cuda0, WEIR_HISTORY_ALL, WEIR_CONTEXT_ALL, UINT64_MAX),
      WEIR_EINVAL);
  ck_assert_int_eq(info().mode, WEIR_HISTORY_OFF);
  record(WEIR_HISTORY_OFF, WEIR_CONTEXT_NONE, 0); /* off when it is off: nothing */
  detach();
}
END_TEST

/* ---- off ------------------------------------------------------------------------------------- */

START_TEST(off_leaves_threads_their_caches)
{
  attach(64 * MIB, 2 * MIB, NULL);
  for (int round = 0; round < 3; round++) {
    void *a = allocate_on_cuda0(1000);
    free_on_cuda0(a);
    ck_assert_int_eq(block_state(block(page_map_find((uint64_t)a))), BLOCK_CACHED);
    record(WEIR_HISTORY_ALL, WEIR_CONTEXT_NONE, 0);
    ck_assert_uint_eq(page_map_find((uint64_t)a), 0); /* taken back */
    a = allocate_on_cuda0(1000);
    free_on_cuda0(a);
    ck_assert_uint_eq(page_map_find((uint64_t)a), 0);
    ck_assert_str_eq(actions(), "afc");
    record(WEIR_HISTORY_OFF, WEIR_CONTEXT_NONE, 0);
    ck_assert_ptr_null(cuda0_pool()->history);
  }
  detach();
}
END_TEST

START_TEST(figures_are_the_same_on_and_off_and_peaks_exact_on)
{
  int64_t value;
  attach(64 * MIB, 2 * MIB, NULL);
  record(WEIR_HISTORY_STATE, WEIR_CONTEXT_NONE, 0);
  void *a[100];
  for (int i = 0; i < 100; i++)
    a[i] = allocate_on_cuda0(1000);
  for (int i = 0; i < 100; i++)
    free_on_cuda0(a[i]);
  record(WEIR_HISTORY_OFF, WEIR_CONTEXT_NONE, 0);
  for (int i = 0; i < 50; i++)
    free_on_cuda0(allocate_on_cuda0(1000));
  ck_assert_int_eq(weir_memory_stat(&value, cuda0, "allocation.all.peak"), WEIR_OK);
  ck_assert_int_eq(value, 100);
  ck_assert_int_eq(weir_memory_stat(&value, cuda0, "requested_bytes.all.peak"), WEIR_OK);
  ck_assert_int_eq(value, 100 * 1000);
  ck_assert_int_eq(weir_memory_stat(&value, cuda0, "allocation.all.freed"), WEIR_OK);
  ck_assert_int_eq(value, 150);
  ck_assert_uint_eq(weir_memory_allocated(cuda0), 0);
  detach();
}
END_TEST

/* ---- stacks ---------------------------------------------------------------------------------- */

static __attribute__((noinline)) void *inner_function(size_t bytes)
{
  void *ptr = allocate_on_cuda0(bytes);
  __asm__ volatile("" ::: "memory"); /* no tail call */
  return ptr;
}

static __attribute__((noinline)) void *outer_function(size_t bytes)
{
  void *ptr = inner_function(bytes);
  __asm__ volatile("" ::: "memory");
  return ptr;
}

static __attribute__((noinline)) void freeing_function(void *ptr)
{
  free_on_cuda0(ptr);
  __asm__ volatile("" ::: "memory");
}

/* Whether the stack written behind `where` goes through the functions, in this order. */
static void has_frames(const char *text, const char *where, const char *const names[], int count)
{
  const char *at = strstr(text, where);
  ck_assert_msg(at != NULL, "no %s in %s", where, text);
  at = strstr(at, "\"frames\": [");
  ck_assert_ptr_nonnull(at);
  const char *end = strchr(at, ']');
  for (int i = 0; i < count; i++) {
    const char *found = strstr(at, names[i]);
    ck_assert_msg(found && found < end, "no %s in %.*s", names[i], (int)(end - at), at);
    at = found;
  }
}

static const char *const allocating[] = {"inner_function", "outer_function", "rig_run"};

START_TEST(what_is_live_keeps_the_stack_of_its_allocation)
{
  attach(64 * MIB, _i ? 0 : 2 * MIB, NULL);
  void *early = allocate_on_cuda0(5000);
  record(WEIR_HISTORY_STATE, WEIR_CONTEXT_STATE, 0);
  ck_assert_str_ne(info().unwinder, "off");
  void *a = outer_function(1000), *b = outer_function(20 * MIB);
  char *text = snapshot_json();
  has_frames(text, "\"requested_size\": 1000,", allocating, 3);
  has_frames(text, "\"requested_size\": 20971520,", allocating, 3);
  ck_assert_ptr_null(strstr(text, "\"weir_")); /* the allocator's own are left out */
  /* Blocks of before have none, nor what is free. */
  ck_assert_ptr_nonnull(strstr(text, "\"requested_size\": 5000, \"state\": \"active_allocated\", "
                                     "\"stream\": 0, \"pool_id\": [0, 0], \"user_metadata\": \"\", "
                                     "\"frames\": []"));
  ck_assert_ptr_nonnull(strstr(text, "test_history\", \"line\": "));
  free(text);
  ck_assert_uint_ge(info().stacks, 1);
  free_on_cuda0(a);
  free_on_cuda0(b);
  free_on_cuda0(early);
  text = snapshot_json();
  ck_assert_ptr_null(strstr(text, "\"active_allocated\""));
  free(text);
  detach();
}
END_TEST

START_TEST(a_segment_keeps_the_stack_that_asked_for_it)
{
  attach(64 * MIB, _i ? 0 : 2 * MIB, NULL);
  record(WEIR_HISTORY_STATE, WEIR_CONTEXT_STATE, 0);
  free_on_cuda0(outer_function(5 * MIB));
  char *text = snapshot_json();
  ck_assert_ptr_null(strstr(text, "\"active_allocated\""));
  has_frames(text, "\"segment_type\"", allocating, 3);
  free(text);
  detach();
}
END_TEST

/* Which entries have whose frames, by context. */
START_TEST(contexts_choose_whose_stacks_there_are)
{
  attach(64 * MIB, 2 * MIB, NULL);
  record(WEIR_HISTORY_ALL, (weir_history_context)_i, 0);
  void *a = outer_function(1000), *live = outer_function(3000);
  freeing_function(a);
  ck_assert_str_eq(actions(), "maafc");
  ck_assert_int_eq(history_entry_at(1).stack != 0, _i >= WEIR_CONTEXT_ALLOC);
  ck_assert_int_eq(history_entry_at(0).stack != 0, _i >= WEIR_CONTEXT_ALLOC);
  ck_assert_int_eq(history_entry_at(3).stack != 0, _i >= WEIR_CONTEXT_ALLOC);
  ck_assert_int_eq(history_entry_at(3).stack == history_entry_at(1).stack, _i != WEIR_CONTEXT_ALL);
  ck_assert_uint_eq(history_entry_at(3).stack, history_entry_at(4).stack);
  char *text = snapshot_json();
  static const char *const freeing[] = {"freeing_function"};
  if (_i == WEIR_CONTEXT_ALL) has_frames(text, "\"free_requested\"", freeing, 1);
  if (_i == WEIR_CONTEXT_ALLOC) has_frames(text, "\"free_requested\"", allocating, 3);
  if (_i >= WEIR_CONTEXT_STATE) has_frames(text, "\"requested_size\": 3000", allocating, 3);
  ck_assert_int_eq(strstr(text, "outer_function") != NULL, _i != WEIR_CONTEXT_NONE);
  free(text);
  free_on_cuda0(live);
  detach();
}
END_TEST

START_TEST(off_forgets_and_on_again_knows_nothing_of_before)
{
  attach(64 * MIB, 2 * MIB, NULL);
  record(WEIR_HISTORY_ALL, WEIR_CONTEXT_ALL, 0);
  void *a = outer_function(1000);
  record(WEIR_HISTORY_OFF, WEIR_CONTEXT_NONE, 0);
  for (int on = 0; on < 2; on++) {
    char *text = snapshot_json();
    ck_assert_ptr_null(strstr(text, "outer_function"));
    free(text);
    record(WEIR_HISTORY_ALL, WEIR_CONTEXT_ALL, 0);
  }
  free_on_cuda0(a);
  detach();
}
END_TEST

START_TEST(the_largest_owners_are_found)
{
  history_owner owner[4];
  char text[512];
  attach(256 * MIB, 2 * MIB, NULL);
  mem_pool *p = cuda0_pool();
  ck_assert_uint_eq(history_owners(p, owner, 4), 0);
  record(WEIR_HISTORY_STATE, WEIR_CONTEXT_STATE, 0);
  void *ptr[12];
  for (int i = 0; i < 10; i++)
    ptr[i] = outer_function(4 * MIB);
  ptr[10] = inner_function(16 * MIB);
  ptr[11] = inner_function(1000);
  pthread_mutex_lock(&p->lock);
  tcache_freeze(p);
  ck_assert_uint_eq(history_owners(p, owner, 2), 2);
  ck_assert_uint_eq(history_owners(p, owner, 4), 3);
  tcache_thaw(p);
  pthread_mutex_unlock(&p->lock);
  ck_assert(owner[0].bytes == 40 * MIB && owner[0].blocks == 10);
  ck_assert(owner[1].bytes == 16 * MIB && owner[1].blocks == 1);
  ck_assert(owner[2].bytes == 1024 && owner[2].blocks == 1);
  code_names *names = names_new();
  size_t used = callers_text(text, sizeof text, owner[0].stack, 3, names);
  ck_assert_uint_eq(used, strlen(text));
  ck_assert_msg(strstr(text, "inner_function (test_history+0x") != NULL, "%s", text);
  ck_assert_msg(strstr(text, " < outer_function (") != NULL, "%s", text);
  char cut[200];
  for (size_t room = 1; room < sizeof cut; room += 7) {
    used = callers_text(cut, room, owner[0].stack, 3, names);
    ck_assert(used < room && used == strlen(cut) && !strncmp(cut, text, used));
  }
  ck_assert_uint_eq(callers_text(text, 10, owner[0].stack, 3, names), 9);
  ck_assert_uint_eq(strlen(text), 9);
  names_free(names);
  for (int i = 0; i < 12; i++)
    free_on_cuda0(ptr[i]);
  detach();
}
END_TEST

/* ---- no host memory -------------------------------------------------------------------------- */

static bool starving;
static weir_status (*usual_commit)(void *self, uint64_t bytes);

static weir_status stingy_commit(void *self, uint64_t bytes)
{
  if (starving) return weir_fail(WEIR_ENOMEM, "no host memory for %llu", (unsigned long long)bytes);
  return usual_commit(self, bytes);
}

START_TEST(without_host_memory_history_loses_and_the_allocator_works)
{
  fake_init(&f, 256 * MIB, 2 * MIB);
  usual_commit = f.backend.source.host_commit;
  f.backend.source.host_commit = stingy_commit;
  ck_assert_int_eq(weir_memory_attach(&f.backend, NULL), WEIR_OK);
  free_on_cuda0(allocate_on_cuda0(1000));
  void *a[300];
  starving = true;
  ck_assert_int_eq(weir_memory_record_history(cuda0, WEIR_HISTORY_ALL, WEIR_CONTEXT_ALL, 0),
                   WEIR_ENOMEM);
  starving = false;
  record(WEIR_HISTORY_ALL, WEIR_CONTEXT_ALL, 0);
  starving = true; /* from the first entry on, or after some */
  if (_i) {
    starving = false;
    a[299] = allocate_on_cuda0(1000);
    starving = true;
  }
  for (int i = 0; i < 299; i++)
    a[i] = allocate_on_cuda0(1000);
  weir_history_info now = info();
  ck_assert_uint_eq(now.entries, _i ? 256 : 0);
  ck_assert_uint_ge(now.lost, _i ? 300 - 256 : 299);
  if (!_i) ck_assert_uint_ge(now.stacks_lost, 1);
  starving = false;
  if (!_i) a[299] = allocate_on_cuda0(1000);
  ck_assert_uint_eq(info().entries, _i ? 256 : 1);
  for (int i = 0; i < 300; i++)
    free_on_cuda0(a[i]); /* now it grows again */
  ck_assert_uint_ge(info().entries, 600);
  ck_assert_uint_eq(weir_memory_allocated(cuda0), 0);
  detach();
}
END_TEST

START_TEST(each_commit_may_fail)
{
  for (uint64_t nth = 1; nth < 40; nth++) {
    fake_init(&f, 64 * MIB, 2 * MIB);
    ck_assert_int_eq(weir_memory_attach(&f.backend, NULL), WEIR_OK);
    fake_fail(&f, nth, false, WEIR_ENOMEM);
    weir_status st = weir_memory_record_history(cuda0, WEIR_HISTORY_ALL, WEIR_CONTEXT_ALL, 0);
    ck_assert(st == WEIR_OK || st == WEIR_ENOMEM);
    for (int i = 0; i < 20; i++) {
      void *ptr;
      if (weir_malloc(&ptr, i % 2 ? 1000 : 3 * MIB, cuda0, NULL) == WEIR_OK) free_on_cuda0(ptr);
      const char *wrong = pool_check(cuda0_pool());
      ck_assert_msg(!wrong, "%s", wrong);
    }
    free(snapshot_json());
    fake_fail(&f, 0, false, WEIR_OK);
    ck_assert_int_eq(weir_memory_empty_cache(cuda0), WEIR_OK);
    detach();
  }
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS = SANITIZED ? 16 : 64, ROUNDS = SANITIZED ? 150 : 600, KEPT = 8 };

static _Atomic bool stopping;

static void *traffic(void *argument)
{
  uint64_t seed = (uint64_t)(uintptr_t)argument;
  weir_stream *s;
  void *kept[KEPT] = {NULL};
  if (weir_stream_from_native(&s, cuda0, fake_handle(&f, (int)(seed % 8)))) return "stream";
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t r = rig_random(&seed), k = r % KEPT;
    if (weir_free(kept[k])) return "free";
    kept[k] = NULL;
    if (r >> 8 & 1 &&
        weir_malloc(&kept[k], 1 + (r >> 16) % (r >> 9 & 1 ? 3 * MIB : 4000), cuda0, s))
      return "malloc";
  }
  for (int k = 0; k < KEPT; k++)
    if (weir_free(kept[k])) return "free";
  return NULL;
}

/* On and off, with other contexts and limits, and snapshots, while others allocate. */
static void *toggle(void *argument)
{
  uint64_t seed = 1;
  (void)argument;
  for (int i = 0; !atomic_load(&stopping) || i < 20; i++) {
    uint64_t r = rig_random(&seed);
    char *text;
    if (weir_memory_record_history(cuda0, (weir_history_mode)(r % 3),
                                   (weir_history_context)(r >> 4 & 3), 1 + (r >> 8) % 2000))
      return "record";
    if (i % 4 == 0) {
      if (weir_memory_snapshot(&text, cuda0)) return "snapshot";
      free(text);
    }
    weir_history_info out;
    if (weir_memory_history_info(&out, cuda0)) return "info";
  }
  return NULL;
}

START_TEST(threads_allocate_while_history_comes_and_goes)
{
  pthread_t thread[THREADS], toggler;
  void *said;
  attach(16384 * MIB, 2 * MIB, NULL);
  atomic_store(&stopping, false);
  if (!_i) record(WEIR_HISTORY_ALL, WEIR_CONTEXT_ALL, 1000);
  if (_i) ck_assert_int_eq(pthread_create(&toggler, NULL, toggle, NULL), 0);
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, traffic, (void *)(uintptr_t)(i + 1)), 0);
  for (int i = 0; i < THREADS; i++) {
    ck_assert_int_eq(pthread_join(thread[i], &said), 0);
    ck_assert_msg(!said, "%s failed", (char *)said);
  }
  atomic_store(&stopping, true);
  if (_i) {
    ck_assert_int_eq(pthread_join(toggler, &said), 0);
    ck_assert_msg(!said, "%s failed", (char *)said);
  }
  const char *wrong = pool_check(cuda0_pool());
  ck_assert_msg(!wrong, "%s", wrong);
  ck_assert_uint_eq(weir_memory_allocated(cuda0), 0);
  if (!_i) ck_assert_uint_eq(info().entries, 1000);
  record(WEIR_HISTORY_OFF, WEIR_CONTEXT_NONE, 0);
  detach();
}
END_TEST

int main(void)
{
  Suite *s = suite_create("history");
  TCase *t = tcase_create("history");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, actions_are_written_in_their_order);
  tcase_add_test(t, segments_are_named_as_such);
  tcase_add_test(t, a_free_completes_when_other_streams_are_through);
  tcase_add_test(t, the_ring_keeps_the_newest);
  tcase_add_test(t, wrong_wishes_are_refused);
  tcase_add_test(t, off_leaves_threads_their_caches);
  tcase_add_test(t, figures_are_the_same_on_and_off_and_peaks_exact_on);
  tcase_add_loop_test(t, what_is_live_keeps_the_stack_of_its_allocation, 0, 2);
  tcase_add_loop_test(t, a_segment_keeps_the_stack_that_asked_for_it, 0, 2);
  tcase_add_loop_test(t, contexts_choose_whose_stacks_there_are, 0, 4);
  tcase_add_test(t, off_forgets_and_on_again_knows_nothing_of_before);
  tcase_add_test(t, the_largest_owners_are_found);
  tcase_add_loop_test(t, without_host_memory_history_loses_and_the_allocator_works, 0, 2);
  tcase_add_test(t, each_commit_may_fail);
  tcase_add_loop_test(t, threads_allocate_while_history_comes_and_goes, 0, 2);
  suite_add_tcase(s, t);
  return rig_run(s);
}
