/* test_loader.c: datasets and loaders (row 24). Those with a loop run with 0, 1, 3 and 8 workers.
 * No test sleeps: where threads must be somewhere, a dataset keeps them there. */
#include <pthread.h>
#include <stdatomic.h>
#include "tests/nn/rig.h"

static const int worker_counts[] = {0, 1, 3, 8};
enum { LOOPS = 4 };

/* ---- a dataset that can do all that a dataset can -------------------------------------------- */

typedef struct items {
  int64_t length;
  int64_t ragged_at, short_at, silent_at; /* items that are otherwise; -1: none */
  int64_t fail_from, fail_to;             /* these items fail; from > to: none */
  int gather;               /* so many threads must be in get at once before any goes on */
  int64_t first, waits_for; /* item `first` goes on when that item is done */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int inside, most_inside, ended;
  int64_t gets;
  bool done[64];
} items;

static void items_init(items *s, int64_t length)
{
  *s = (items){.length = length,
               .ragged_at = -1,
               .short_at = -1,
               .silent_at = -1,
               .fail_from = 1,
               .first = -1,
               .lock = PTHREAD_MUTEX_INITIALIZER,
               .changed = PTHREAD_COND_INITIALIZER};
}

static int64_t items_length(void *user)
{
  return ((items *)user)->length;
}

static void enter_get_item(items *s, int64_t index)
{
  pthread_mutex_lock(&s->lock);
  s->gets++;
  if (++s->inside > s->most_inside) s->most_inside = s->inside;
  pthread_cond_broadcast(&s->changed);
  while (s->most_inside < s->gather || (index == s->first && !s->done[s->waits_for]))
    pthread_cond_wait(&s->changed, &s->lock);
  pthread_mutex_unlock(&s->lock);
}

static void leave_get_item(items *s, int64_t index)
{
  pthread_mutex_lock(&s->lock);
  s->inside--;
  if (index < 64) s->done[index] = true;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
}

/* Tensor 0: {i, i * i} of int64; tensor 1: i / 2 without dimensions. */
static weir_status make_item(weir_batch *out, const items *s, int64_t i)
{
  int64_t v[3] = {i, i * i, 0};
  float half = (float)i / 2;
  weir_status st =
      weir_tensor_from(&out->tensor[0], v, WEIR_INT64, weir_shape(i == s->ragged_at ? 3 : 2), NULL);
  out->count = !st;
  if (st || i == s->short_at) return st;
  st = weir_tensor_from(&out->tensor[1], &half, WEIR_FLOAT32, weir_shape_of(0, NULL), NULL);
  out->count += !st;
  return st;
}

static weir_status items_get(weir_batch *out, void *user, int64_t index)
{
  items *s = user;
  enter_get_item(s, index);
  weir_status st = make_item(out, s, index);
  leave_get_item(s, index);
  if (!st && index == s->silent_at) return WEIR_EIO;
  if (!st && index >= s->fail_from && index <= s->fail_to)
    return weir_fail(WEIR_EIO, "item %d is broken", (int)index);
  return st;
}

static void items_destroy(void *user)
{
  ((items *)user)->ended++;
}

static weir_loader *loader(items *s, const weir_loader_options *o)
{
  weir_loader *l;
  weir_dataset set = {items_length, items_get, items_destroy, s};
  weir_ok(weir_loader_create(&l, &set, o));
  return l;
}

/* The items of all batches, in order, as their numbers; how many batches. Each batch's other
 * figures must be its numbers'. */
static int drain_iterator(int64_t *out, int *count, weir_loader_iter *it)
{
  weir_batch b;
  int batches = 0;
  for (*count = 0;; batches++) {
    weir_ok(weir_loader_next(&b, it));
    if (!b.count) return batches;
    ck_assert_int_eq(b.count, 2);
    int64_t n = weir_tensor_size(b.tensor[0], 0), v[64][2];
    float half[64];
    ck_assert_int_le(n, 64);
    ck_assert(weir_tensor_size(b.tensor[0], 1) == 2 && weir_tensor_size(b.tensor[1], 0) == n);
    weir_ok(weir_tensor_read(v, (size_t)n * sizeof *v, WEIR_INT64, b.tensor[0]));
    weir_ok(weir_tensor_read(half, (size_t)n * sizeof *half, WEIR_FLOAT32, b.tensor[1]));
    for (int64_t i = 0; i < n; i++) {
      ck_assert_int_eq(v[i][1], v[i][0] * v[i][0]);
      ck_assert(half[i] == (float)v[i][0] / 2);
      out[(*count)++] = v[i][0];
    }
    weir_batch_drop(&b);
    ck_assert_int_eq(b.count, 0);
  }
}

/* A whole epoch of the loader. */
static int drain_loader_epoch(int64_t *out, int *count, weir_loader *l)
{
  weir_loader_iter *it;
  weir_ok(weir_loader_begin(&it, l));
  int batches = drain_iterator(out, count, it);
  weir_batch b;
  weir_ok(weir_loader_next(&b, it)); /* the end stays the end */
  ck_assert_int_eq(b.count, 0);
  weir_loader_end(it);
  return batches;
}

/* ---- order ----------------------------------------------------------------------------------- */

START_TEST(all_items_come_once_in_order)
{
  items s;
  int64_t got[64], length;
  int count;
  items_init(&s, 23);
  weir_loader_options o = {.batch_size = 4, .workers = worker_counts[_i]};
  weir_loader *l = loader(&s, &o);
  for (int again = 0; again < 3; again++) {
    ck_assert_int_eq(drain_loader_epoch(got, &count, l), 6);
    ck_assert_int_eq(count, 23);
    for (int i = 0; i < 23; i++)
      ck_assert_int_eq(got[i], i);
  }
  weir_ok(weir_loader_length(&length, l));
  ck_assert_int_eq(length, 6);
  weir_loader_release(l);
  ck_assert_int_eq(s.ended, 1);
}
END_TEST

START_TEST(drop_last_leaves_out_a_batch_that_is_not_full)
{
  items s;
  int64_t got[64], length;
  int count;
  items_init(&s, 23);
  weir_loader_options o = {.batch_size = 4, .drop_last = true, .workers = worker_counts[_i]};
  weir_loader *l = loader(&s, &o);
  ck_assert_int_eq(drain_loader_epoch(got, &count, l), 5);
  ck_assert_int_eq(count, 20);
  weir_ok(weir_loader_length(&length, l));
  ck_assert_int_eq(length, 5);
  s.length = 20; /* nothing to drop */
  ck_assert_int_eq(drain_loader_epoch(got, &count, l), 5);
  s.length = 3; /* all */
  ck_assert_int_eq(drain_loader_epoch(got, &count, l), 0);
  weir_loader_release(l);
}
END_TEST

START_TEST(an_empty_dataset_has_no_batches)
{
  items s;
  int64_t got[64];
  int count;
  items_init(&s, 0);
  weir_loader_options o = {.batch_size = 4, .shuffle = true, .workers = worker_counts[_i]};
  weir_loader *l = loader(&s, &o);
  ck_assert_int_eq(drain_loader_epoch(got, &count, l), 0);
  weir_loader_release(l);
}
END_TEST

START_TEST(a_shuffled_epoch_follows_from_seed_and_epoch_alone)
{
  items s;
  int64_t first[64], second[64], again[64], other[64];
  int count;
  bool seen[23] = {false};
  items_init(&s, 23);
  weir_loader_options o = {.batch_size = 5, .shuffle = true, .seed = 42};
  weir_loader *one = loader(&s, &o);
  o.workers = worker_counts[_i];
  weir_loader *l = loader(&s, &o);
  o.seed = 43;
  weir_loader *different = loader(&s, &o);
  drain_loader_epoch(first, &count, one);
  for (int i = 0; i < count; i++) {
    ck_assert(!seen[first[i]]);
    seen[first[i]] = true;
  }
  ck_assert_int_eq(count, 23);
  drain_loader_epoch(again, &count, l); /* by another number of workers */
  ck_assert_mem_eq(first, again, 23 * sizeof *first);
  drain_loader_epoch(second, &count, l);
  ck_assert_mem_ne(first, second, 23 * sizeof *first);
  drain_loader_epoch(other, &count, different);
  ck_assert_mem_ne(first, other, 23 * sizeof *first);
  weir_loader_set_epoch(l, 1);
  drain_loader_epoch(again, &count, l);
  ck_assert_mem_eq(second, again, 23 * sizeof *first);
  weir_loader_release(one);
  weir_loader_release(l);
  weir_loader_release(different);
}
END_TEST

/* Each place of 3 items is each item's equally often: 6 orders, 600 epochs. */
START_TEST(every_order_is_as_likely)
{
  items s;
  int64_t got[64];
  int count, orders[27] = {0};
  items_init(&s, 3);
  weir_loader *l = loader(&s, &(weir_loader_options){.batch_size = 3, .shuffle = true, .seed = 7});
  for (int i = 0; i < 600; i++) {
    drain_loader_epoch(got, &count, l);
    orders[got[0] * 9 + got[1] * 3 + got[2]]++;
  }
  int different = 0;
  for (int i = 0; i < 27; i++)
    if (orders[i]) {
      different++;
      ck_assert_int_gt(orders[i], 50); /* 100, and 9.1 of deviation */
      ck_assert_int_lt(orders[i], 150);
    }
  ck_assert_int_eq(different, 6);
  weir_loader_release(l);
}
END_TEST

typedef struct backwards {
  int64_t next, stray_at, fail_at;
  uint64_t epochs[4];
  int begun;
  bool refuses;
} backwards;

static weir_status backwards_begin(void *user, uint64_t number)
{
  backwards *b = user;
  b->next = 9;
  if (b->begun < 4) b->epochs[b->begun++] = number;
  return b->refuses ? weir_fail(WEIR_EIO, "no order today") : WEIR_OK;
}

static weir_status backwards_next(int64_t *out, void *user)
{
  backwards *b = user;
  *out = b->next == b->stray_at ? 99 : b->next;
  if (b->next == b->fail_at) return weir_fail(WEIR_EIO, "no item after %d", (int)b->next + 1);
  if (b->next >= 0) b->next--;
  return WEIR_OK;
}

START_TEST(a_sampler_of_the_program_names_the_items)
{
  items s;
  backwards order = {.stray_at = -9, .fail_at = -9};
  int64_t got[64], length;
  int count;
  items_init(&s, 10);
  weir_loader_options o = {.batch_size = 4,
                           .workers = worker_counts[_i],
                           .sampler = {backwards_begin, backwards_next, &order}};
  weir_loader *l = loader(&s, &o);
  for (int again = 0; again < 2; again++) {
    ck_assert_int_eq(drain_loader_epoch(got, &count, l), 3);
    ck_assert_int_eq(count, 10);
    for (int i = 0; i < 10; i++)
      ck_assert_int_eq(got[i], 9 - i);
  }
  ck_assert(order.begun == 2 && order.epochs[0] == 0 && order.epochs[1] == 1);
  weir_not(WEIR_ENOTSUP, "at its end only", weir_loader_length(&length, l));
  weir_loader_release(l);
}
END_TEST

START_TEST(a_samplers_failure_comes_after_the_batches_before_it_and_is_the_end)
{
  items s;
  backwards order = {.stray_at = -9, .fail_at = 2};
  items_init(&s, 10);
  weir_loader_options o = {.batch_size = 4,
                           .workers = worker_counts[_i],
                           .sampler = {backwards_begin, backwards_next, &order}};
  weir_loader *l = loader(&s, &o);
  for (int kind = 0; kind < 2; kind++) {
    weir_loader_iter *it;
    weir_batch b;
    weir_ok(weir_loader_begin(&it, l));
    weir_ok(weir_loader_next(&b, it));
    weir_batch_drop(&b);
    weir_not(kind ? WEIR_EINVAL : WEIR_EIO,
             kind ? "the sampler named item 99, of a dataset of 10" : "no item after 3",
             weir_loader_next(&b, it));
    ck_assert_int_eq(b.count, 0);
    weir_ok(weir_loader_next(&b, it));
    ck_assert_int_eq(b.count, 0);
    weir_loader_end(it);
    order.fail_at = -9;
    order.stray_at = 3;
  }
  order.refuses = true;
  weir_loader_iter *none;
  weir_not(WEIR_EIO, "no order today", weir_loader_begin(&none, l));
  ck_assert_ptr_null(none);
  weir_loader_release(l);
}
END_TEST

/* ---- collation ------------------------------------------------------------------------------- */

static weir_status count_items(weir_batch *out, const weir_batch *all, int64_t count, void *user)
{
  int64_t v[2] = {count, weir_tensor_numel(all[count - 1].tensor[0])};
  if (*(bool *)user) return weir_fail(WEIR_ELIMIT, "%d are too many", (int)count);
  weir_status st = weir_tensor_from(&out->tensor[0], v, WEIR_INT64, weir_shape(2), NULL);
  out->count = !st;
  return st;
}

START_TEST(a_collation_of_the_program_makes_the_batch)
{
  items s;
  bool refuses = false;
  weir_loader_iter *it;
  weir_batch b;
  items_init(&s, 5);
  weir_loader_options o = {.batch_size = 3,
                           .workers = worker_counts[_i],
                           .collate = count_items,
                           .collate_user = &refuses};
  weir_loader *l = loader(&s, &o);
  weir_ok(weir_loader_begin(&it, l));
  weir_ok(weir_loader_next(&b, it));
  ck_assert_int_eq(b.count, 1);
  ck_assert(rig_number(b.tensor[0], 0) == 3 && rig_number(b.tensor[0], 1) == 2);
  weir_batch_drop(&b);
  weir_loader_end(it);
  refuses = true;
  weir_ok(weir_loader_begin(&it, l));
  weir_not(WEIR_ELIMIT, "3 are too many", weir_loader_next(&b, it));
  weir_not(WEIR_ELIMIT, "2 are too many", weir_loader_next(&b, it));
  weir_loader_end(it);
  weir_loader_release(l);
}
END_TEST

START_TEST(items_that_do_not_fit_together_are_told_in_torchs_words)
{
  items s;
  weir_loader_iter *it;
  weir_batch b;
  items_init(&s, 4);
  weir_loader_options o = {.batch_size = 2, .workers = worker_counts[_i]};
  weir_loader *l = loader(&s, &o);
  s.ragged_at = 1;
  s.short_at = 3;
  weir_ok(weir_loader_begin(&it, l));
  weir_not(WEIR_EINVAL,
           "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1",
           weir_loader_next(&b, it));
  weir_not(WEIR_EINVAL, "each element in list of batch should be of equal size",
           weir_loader_next(&b, it));
  weir_loader_end(it);
  weir_loader_release(l);
}
END_TEST

/* ---- workers --------------------------------------------------------------------------------- */

START_TEST(a_workers_error_reaches_the_caller_at_its_batch_with_its_sentence)
{
  items s;
  weir_loader_iter *it;
  weir_batch b;
  items_init(&s, 12);
  weir_loader_options o = {.batch_size = 3, .workers = worker_counts[_i]};
  weir_loader *l = loader(&s, &o);
  s.fail_from = s.fail_to = 4;
  s.silent_at = 10;
  weir_ok(weir_loader_begin(&it, l));
  for (int i = 0; i < 4; i++) {
    weir_status st = weir_loader_next(&b, it);
    ck_assert_int_eq(st, i == 1 || i == 3 ? WEIR_EIO : WEIR_OK);
    if (i == 1) ck_assert_str_eq(weir_error_message(), "item 4 is broken");
    if (i == 3) ck_assert_str_eq(weir_error_message(), weir_status_string(WEIR_EIO));
    if (!st) ck_assert(rig_number(b.tensor[0], 0) == 3 * i);
    weir_batch_drop(&b);
  }
  weir_ok(weir_loader_next(&b, it));
  ck_assert_int_eq(b.count, 0);
  weir_loader_end(it);
  weir_loader_release(l);
}
END_TEST

START_TEST(workers_load_side_by_side)
{
  items s;
  int64_t got[64];
  int count;
  items_init(&s, 20);
  s.gather = worker_counts[_i];
  weir_loader *l = loader(&s, &(weir_loader_options){.workers = worker_counts[_i]});
  ck_assert_int_eq(drain_loader_epoch(got, &count, l), 20); /* hangs unless they do */
  ck_assert_int_ge(s.most_inside, worker_counts[_i]);
  ck_assert_int_le(s.most_inside, worker_counts[_i] ? worker_counts[_i] : 1);
  weir_loader_release(l);
}
END_TEST

START_TEST(batches_come_in_order_though_a_later_one_is_loaded_first)
{
  items s;
  int64_t got[64];
  int count;
  items_init(&s, 12);
  s.first = 0;
  s.waits_for = 1;
  weir_loader *l = loader(&s, &(weir_loader_options){.workers = 2 + _i});
  drain_loader_epoch(got, &count, l);
  for (int i = 0; i < 12; i++)
    ck_assert_int_eq(got[i], i);
  weir_loader_release(l);
}
END_TEST

START_TEST(workers_run_ahead_as_far_as_prefetch_factor_says)
{
  items s;
  weir_loader_iter *it;
  weir_batch b;
  items_init(&s, 64);
  weir_loader_options o = {.batch_size = 2, .workers = 2, .prefetch_factor = 3};
  weir_loader *l = loader(&s, &o);
  weir_ok(weir_loader_begin(&it, l));
  pthread_mutex_lock(&s.lock);
  while (s.gets < 12) /* 6 batches of 2: hangs if they go less far */
    pthread_cond_wait(&s.changed, &s.lock);
  pthread_mutex_unlock(&s.lock);
  weir_ok(weir_loader_next(&b, it));
  weir_batch_drop(&b);
  weir_loader_end(it);
  ck_assert_int_le(s.gets, 14); /* one more batch for the one that was taken */
  weir_loader_release(l);
}
END_TEST

START_TEST(an_iteration_may_end_early_while_workers_run)
{
  items s;
  items_init(&s, 64);
  s.fail_from = 20;
  s.fail_to = 30;
  weir_loader_options o = {.batch_size = 2, .workers = worker_counts[_i]};
  weir_loader *l = loader(&s, &o);
  for (int taken = 0; taken < 20; taken++) {
    weir_loader_iter *it;
    weir_batch b;
    weir_ok(weir_loader_begin(&it, l));
    for (int i = 0; i < taken; i++) {
      (void)weir_loader_next(&b, it);
      weir_batch_drop(&b);
    }
    weir_loader_end(it);
    ck_assert_int_eq(s.inside, 0);
  }
  weir_loader_release(l);
  weir_loader_end(NULL);
  weir_loader_release(NULL);
}
END_TEST

START_TEST(two_iterations_do_not_disturb_each_other_and_outlive_the_loader)
{
  items s;
  weir_loader_iter *a, *b;
  weir_batch x, y;
  items_init(&s, 10);
  weir_loader *l = loader(&s, &(weir_loader_options){.workers = worker_counts[_i]});
  weir_ok(weir_loader_begin(&a, l));
  weir_ok(weir_loader_begin(&b, l));
  weir_loader_release(l);
  for (int i = 0; i < 10; i++) {
    weir_ok(weir_loader_next(&x, a));
    weir_ok(weir_loader_next(&y, b));
    rig_same(x.tensor[0], y.tensor[0], 0);
    ck_assert(rig_number(x.tensor[0], 0) == i);
    weir_batch_drop(&x);
    weir_batch_drop(&y);
  }
  weir_loader_end(a);
  ck_assert_int_eq(s.ended, 0);
  weir_loader_end(b);
  ck_assert_int_eq(s.ended, 1);
}
END_TEST

/* ---- what is no loader ----------------------------------------------------------------------- */

START_TEST(options_that_make_no_sense_are_told_in_torchs_words)
{
  items s;
  backwards order = {0};
  weir_loader *l;
  weir_dataset set = {items_length, items_get, items_destroy, &s};
  const struct {
    weir_loader_options o;
    const char *words;
  } wrong[] = {
      {{.batch_size = -1}, "batch_size should be a positive integer value, but got batch_size=-1"},
      {{.workers = -1}, "num_workers option should be non-negative"},
      {{.workers = 1, .prefetch_factor = -1}, "prefetch_factor option should be non-negative"},
      {{.prefetch_factor = 2}, "prefetch_factor option could only be specified in multiprocessing"},
      {{.shuffle = true, .sampler = {NULL, backwards_next, &order}},
       "sampler option is mutually exclusive with shuffle"}};
  items_init(&s, 4);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    weir_not(WEIR_EINVAL, wrong[i].words, weir_loader_create(&l, &set, &wrong[i].o));
    ck_assert_ptr_null(l);
    ck_assert_int_eq(s.ended, (int)i + 1); /* the data was the loader's */
  }
  set.get = NULL;
  weir_not(WEIR_EINVAL, "both length and get", weir_loader_create(&l, &set, NULL));
}
END_TEST

START_TEST(a_length_that_fails_fails_the_beginning)
{
  items s;
  int64_t length;
  weir_loader_iter *it;
  items_init(&s, -1);
  weir_loader *l = loader(&s, NULL);
  weir_not(WEIR_EINVAL, "length is negative", weir_loader_begin(&it, l));
  ck_assert_ptr_null(it);
  weir_not(WEIR_EINVAL, "length is negative", weir_loader_length(&length, l));
  weir_loader_release(l);
}
END_TEST

START_TEST(a_dataset_of_tensors_has_their_rows)
{
  WEIR_TENSOR a = rig_tensor(weir_shape(6, 2), CPU, 1);
  WEIR_TENSOR b = rig_count(0, weir_shape(6));
  WEIR_TENSOR c = rig_count(0, weir_shape(5));
  WEIR_TENSOR rows = NULL;
  weir_tensor *both[3] = {a, b, c};
  weir_dataset set;
  weir_loader *l;
  weir_loader_iter *it;
  weir_batch batch;
  weir_not(WEIR_EINVAL, "Size mismatch between tensors", weir_tensor_dataset(&set, both, 3));
  weir_not(WEIR_EINVAL, "1 to 8 tensors, not 0", weir_tensor_dataset(&set, both, 0));
  weir_ok(weir_tensor_dataset(&set, both, 2));
  weir_ok(weir_loader_create(&l, &set, &(weir_loader_options){.batch_size = 4}));
  weir_ok(weir_loader_begin(&it, l));
  weir_ok(weir_loader_next(&batch, it));
  weir_ok(weir_narrow(&rows, a, 0, 0, 4));
  rig_same(batch.tensor[0], rows, 0);
  ck_assert(rig_number(batch.tensor[1], 3) == 3);
  weir_batch_drop(&batch);
  weir_loader_end(it);
  weir_loader_release(l);
}
END_TEST

/* ---- pinning --------------------------------------------------------------------------------- */

START_TEST(pinned_batches_are_on_the_cpu_and_page_locked)
{
  items s;
  weir_loader_iter *it;
  weir_batch b;
  int batches = 0;
  rig_log log = {0};
  rig_devices(1);
  weir_set_log_callback(rig_logged, &log);
  items_init(&s, 10);
  weir_loader_options o = {.batch_size = 4, .pin_memory = true, .workers = worker_counts[_i]};
  weir_loader *l = loader(&s, &o);
  weir_ok(weir_loader_begin(&it, l));
  for (;; batches++) {
    weir_ok(weir_loader_next(&b, it));
    if (!b.count) break;
    for (int k = 0; k < 2; k++)
      ck_assert(weir_tensor_is_pinned(b.tensor[k]) && rig_on(b.tensor[k], CPU));
    ck_assert(rig_number(b.tensor[0], 0) == 4 * batches);
    weir_batch_drop(&b);
  }
  ck_assert_int_eq(batches, 3);
  ck_assert_int_eq(log.count, 0);
  weir_loader_end(it);
  weir_loader_release(l);
}
END_TEST

START_TEST(without_a_gpu_pinning_is_a_warning_and_batches_come_all_the_same)
{
  items s;
  int64_t got[64];
  int count;
  rig_log log = {0};
  rig_devices(0);
  weir_set_log_callback(rig_logged, &log);
  items_init(&s, 10);
  weir_loader_options o = {.batch_size = 4, .pin_memory = true, .workers = worker_counts[_i]};
  weir_loader *l = loader(&s, &o);
  ck_assert_int_eq(drain_loader_epoch(got, &count, l), 3);
  ck_assert_int_eq(log.count, 1);
  ck_assert_int_eq(log.level, WEIR_LOG_WARNING);
  ck_assert_str_eq(log.text, "'pin_memory' argument is set as true but no accelerator is found, "
                             "then device pinned memory won't be used.");
  weir_loader_release(l);
}
END_TEST

START_TEST(batches_that_cannot_be_pinned_are_errors_of_theirs)
{
  rig_devices(1);
  WEIR_TENSOR a = rig_tensor(weir_shape(4, 2), CUDA(0), 1);
  weir_tensor *one = a;
  weir_dataset set;
  weir_loader *l;
  weir_loader_iter *it;
  weir_batch b;
  weir_loader_options o = {.batch_size = 2, .pin_memory = true, .workers = worker_counts[_i]};
  weir_ok(weir_tensor_dataset(&set, &one, 1));
  weir_ok(weir_loader_create(&l, &set, &o));
  weir_ok(weir_loader_begin(&it, l));
  weir_not(WEIR_EINVAL, "cannot pin 'weir.cuda.FloatTensor' only dense CPU tensors can be pinned",
           weir_loader_next(&b, it));
  weir_loader_end(it);
  weir_loader_release(l);
}
END_TEST

/* ---- prefetch to a device -------------------------------------------------------------------- */

/* Copies take 2 ms each, so that work that did not wait for them would see what was there before.
 * The consumer's stream is held while batches come and go: memory they leave must not be written
 * before it has been read. */
START_TEST(batches_prefetched_to_a_device_are_whole_for_the_stream_that_takes_them)
{
  enum { BATCHES = 12, ROWS = 64, WIDTH = 256 };
  rig_devices(2);
  ck_assert_int_eq(setenv("WEIR_SIM_LINK", "h2d:0:2ms", 1), 0);
  WEIR_TENSOR data = rig_tensor(weir_shape(BATCHES * ROWS, WIDTH), CPU, 1);
  weir_tensor *one = data, *sum[BATCHES] = {NULL};
  weir_dataset set;
  weir_loader *l;
  weir_loader_iter *it;
  weir_stream *mine;
  weir_loader_options o = {
      .batch_size = ROWS, .pin_memory = _i & 1, .workers = worker_counts[_i], .device = CUDA(1)};
  weir_ok(weir_tensor_dataset(&set, &one, 1));
  weir_ok(weir_loader_create(&l, &set, &o));
  weir_ok(weir_stream_create(&mine, CUDA(1)));
  weir_ok(weir_loader_begin(&it, l));
  rig_hold(mine);
  WEIR_WITH_STREAM(mine)
  {
    weir_batch b;
    for (int i = 0; i < BATCHES; i++) {
      weir_ok(weir_loader_next(&b, it));
      ck_assert_int_eq(b.count, 1);
      ck_assert(rig_on(b.tensor[0], CUDA(1)));
      weir_ok(weir_add_scalar(&sum[i], b.tensor[0], weir_float(1)));
      weir_batch_drop(&b);
    }
    weir_ok(weir_loader_next(&b, it));
    ck_assert_int_eq(b.count, 0);
  }
  rig_release(mine);
  weir_ok(weir_stream_synchronize(mine));
  for (int i = 0; i < BATCHES; i++) {
    WEIR_TENSOR rows = NULL;
    WEIR_TENSOR wanted = NULL;
    weir_ok(weir_narrow(&rows, data, 0, i * ROWS, ROWS));
    weir_ok(weir_add_scalar(&wanted, rows, weir_float(1)));
    rig_same(sum[i], wanted, 0);
    weir_tensor_release(sum[i]);
  }
  weir_loader_end(it);
  weir_loader_release(l);
}
END_TEST

START_TEST(an_iteration_with_copies_under_way_may_end_early)
{
  items s;
  rig_devices(1);
  ck_assert_int_eq(setenv("WEIR_SIM_LINK", "h2d:0:1ms", 1), 0);
  items_init(&s, 64);
  weir_loader_options o = {
      .batch_size = 2, .pin_memory = true, .workers = worker_counts[_i], .device = WEIR_CUDA};
  weir_loader *l = loader(&s, &o);
  for (int taken = 0; taken < 4; taken++) {
    weir_loader_iter *it;
    weir_batch b;
    weir_ok(weir_loader_begin(&it, l));
    for (int i = 0; i < taken; i++) {
      weir_ok(weir_loader_next(&b, it));
      ck_assert(rig_on(b.tensor[0], CUDA(0)));
      weir_batch_drop(&b);
    }
    weir_loader_end(it);
  }
  weir_loader_release(l);
}
END_TEST

START_TEST(prefetch_to_a_device_that_is_not_there_fails_the_beginning)
{
  items s;
  weir_loader_iter *it;
  rig_devices(1);
  items_init(&s, 4);
  weir_loader *l =
      loader(&s, &(weir_loader_options){.workers = worker_counts[_i], .device = CUDA(3)});
  weir_not(WEIR_EINVAL, "invalid device ordinal", weir_loader_begin(&it, l));
  ck_assert_ptr_null(it);
  weir_loader_release(l);
  l = loader(&s, &(weir_loader_options){.device = CPU}); /* where they are already */
  int64_t got[64];
  int count;
  ck_assert_int_eq(drain_loader_epoch(got, &count, l), 4);
  weir_loader_release(l);
}
END_TEST

/* ---- want of memory -------------------------------------------------------------------------- */

static weir_status half_an_epoch(items *s, int workers, weir_device device)
{
  weir_loader *l = NULL;
  weir_loader_iter *it = NULL;
  weir_batch b;
  weir_dataset set = {items_length, items_get, items_destroy, s};
  weir_loader_options o = {.batch_size = 3,
                           .shuffle = true,
                           .workers = workers,
                           .pin_memory = device.type == WEIR_DEVICE_CUDA,
                           .device = device};
  weir_status st = weir_loader_create(&l, &set, &o);
  if (!st) st = weir_loader_begin(&it, l);
  for (int i = 0; it && i < 3; i++) {
    weir_status next = weir_loader_next(&b, it);
    if (!st) st = next;
    if (next && b.count) return WEIR_EINTERNAL; /* a failure gives no batch */
    weir_batch_drop(&b);
  }
  weir_loader_end(it);
  weir_loader_release(l);
  return st;
}

START_TEST(every_request_of_host_memory_may_fail)
{
  items s;
  weir_device there = _i & 2 ? CUDA(0) : (weir_device){0};
  rig_devices(1);
  items_init(&s, 9);
  weir_ok(half_an_epoch(&s, 2 * (_i & 1), there));
  int64_t nth = 0, ended = 1;
  for (bool failed = true; failed; ended++) {
    rig_fail_host(++nth);
    weir_status st = half_an_epoch(&s, 2 * (_i & 1), there);
    failed = rig_failed_host();
    rig_fail_host(0);
    ck_assert(!st || (failed && st != WEIR_EINTERNAL));
  }
  ck_assert_int_gt(nth, 10);
  ck_assert_int_eq(s.ended, ended);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("loader");
  TCase *c = rig_case(suite);
  tcase_add_loop_test(c, all_items_come_once_in_order, 0, LOOPS);
  tcase_add_loop_test(c, drop_last_leaves_out_a_batch_that_is_not_full, 0, LOOPS);
  tcase_add_loop_test(c, an_empty_dataset_has_no_batches, 0, LOOPS);
  tcase_add_loop_test(c, a_shuffled_epoch_follows_from_seed_and_epoch_alone, 0, LOOPS);
  tcase_add_test(c, every_order_is_as_likely);
  tcase_add_loop_test(c, a_sampler_of_the_program_names_the_items, 0, LOOPS);
  tcase_add_loop_test(c, a_samplers_failure_comes_after_the_batches_before_it_and_is_the_end, 0,
                      LOOPS);
  tcase_add_loop_test(c, a_collation_of_the_program_makes_the_batch, 0, LOOPS);
  tcase_add_loop_test(c, items_that_do_not_fit_together_are_told_in_torchs_words, 0, LOOPS);
  tcase_add_loop_test(c, a_workers_error_reaches_the_caller_at_its_batch_with_its_sentence, 0,
                      LOOPS);
  tcase_add_loop_test(c, workers_load_side_by_side, 0, LOOPS);
  tcase_add_loop_test(c, batches_come_in_order_though_a_later_one_is_loaded_first, 0, LOOPS);
  tcase_add_test(c, workers_run_ahead_as_far_as_prefetch_factor_says);
  tcase_add_loop_test(c, an_iteration_may_end_early_while_workers_run, 0, LOOPS);
  tcase_add_loop_test(c, two_iterations_do_not_disturb_each_other_and_outlive_the_loader, 0, LOOPS);
  tcase_add_test(c, options_that_make_no_sense_are_told_in_torchs_words);
  tcase_add_test(c, a_length_that_fails_fails_the_beginning);
  tcase_add_test(c, a_dataset_of_tensors_has_their_rows);
  tcase_add_loop_test(c, pinned_batches_are_on_the_cpu_and_page_locked, 0, LOOPS);
  tcase_add_loop_test(c, without_a_gpu_pinning_is_a_warning_and_batches_come_all_the_same, 0,
                      LOOPS);
  tcase_add_loop_test(c, batches_that_cannot_be_pinned_are_errors_of_theirs, 0, LOOPS);
  tcase_add_loop_test(c, batches_prefetched_to_a_device_are_whole_for_the_stream_that_takes_them, 0,
                      LOOPS);
  tcase_add_loop_test(c, an_iteration_with_copies_under_way_may_end_early, 0, LOOPS);
  tcase_add_loop_test(c, prefetch_to_a_device_that_is_not_there_fails_the_beginning, 0, LOOPS);
  tcase_add_loop_test(c, every_request_of_host_memory_may_fail, 0, LOOPS);
  return rig_run(suite);
}
