/* loader.c: loaders and their iterations: threads and whose turn it is. loader.h states how a batch
 * goes its way. Nobody waits but on a condition variable, and every change that somebody may wait
 * for is followed by a broadcast. */
#include "core/base/require.h"
#include "core/base/lock.h"
#include "core/nn/loader.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/nn/log.h"
#include "core/weir/cuda.h"
#include "core/weir/trace.h"

/* ---- loaders --------------------------------------------------------------------------------- */

/* torch.utils.data.DataLoader's checks, and its words. */
static weir_status check_loader_options(const weir_loader_options *o)
{
  if (o->workers < 0)
    return fail_invalid("num_workers option should be non-negative; use num_workers=0 to load in "
                        "the calling thread.");
  if (o->prefetch_factor < 0) return fail_invalid("prefetch_factor option should be non-negative");
  if (o->prefetch_factor && !o->workers)
    return fail_invalid(
        "prefetch_factor option could only be specified in multiprocessing. let num_workers > 0 to "
        "enable multiprocessing, otherwise set prefetch_factor to None.");
  if (o->batch_size < 0 || o->batch_size > INT32_MAX)
    return fail_invalid("batch_size should be a positive integer value, but got batch_size=%lld",
                        (long long)o->batch_size);
  if (o->sampler.next && o->shuffle)
    return fail_invalid("sampler option is mutually exclusive with shuffle");
  return WEIR_OK;
}

weir_status weir_loader_create(weir_loader **out, const weir_dataset *dataset,
                               const weir_loader_options *options)
{
  WEIR_REQUIRE_OUT(out, dataset);
  weir_loader_options o = options ? *options : (weir_loader_options){0};
  weir_status st = check_loader_options(&o);
  if (!st && (!dataset->length || !dataset->get))
    st = fail_invalid("a dataset needs both length and get");
  weir_loader *l = st ? NULL : calloc(1, sizeof *l);
  if (!l) {
    if (dataset->destroy) dataset->destroy(dataset->user);
    return st ? st : fail_memory("a loader");
  }
  if (!o.batch_size) o.batch_size = 1;
  if (!o.prefetch_factor) o.prefetch_factor = 2;
  atomic_init(&l->refs, 1);
  atomic_init(&l->epoch, 0);
  l->set = *dataset;
  l->options = o;
  *out = l;
  return WEIR_OK;
}

void weir_loader_release(weir_loader *l)
{
  if (!l || atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) != 1) return;
  if (l->set.destroy) l->set.destroy(l->set.user);
  free(l);
}

static weir_status length_of(int64_t *out, const weir_loader *l)
{
  (void)weir_fail(WEIR_OK, "%s", "");
  *out = l->set.length(l->set.user);
  if (*out >= 0) return WEIR_OK;
  const char *why = weir_error_message();
  return fail_invalid("%s", *why ? why : "the dataset's length is negative");
}

weir_status weir_loader_length(int64_t *out, const weir_loader *l)
{
  WEIR_REQUIRE(out, l);
  int64_t items, size = l->options.batch_size;
  *out = 0;
  if (l->options.sampler.next)
    return fail_unsupported("how many items a sampler names is known at its end only");
  weir_status st = length_of(&items, l);
  if (!st) *out = items / size + (items % size && !l->options.drop_last);
  return st;
}

void weir_loader_set_epoch(weir_loader *l, uint64_t epoch)
{
  if (!l) return;
  atomic_store(&l->epoch, epoch);
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* Keeps the outcome of a draw: a batch to load (its slot is returned), or the end. lock is held. */
static loader_slot *drawn(weir_loader_iter *it, loader_slot *s, weir_status st)
{
  bool batch = st || s->count;
  if (st) {
    const char *text = weir_error_message();
    s->st = st;
    (void)snprintf(s->text, sizeof s->text, "%s", *text ? text : weir_status_string(st));
  }
  if (st || s->count < it->loader->options.batch_size) {
    it->last = it->drawn + batch;
    pthread_cond_broadcast(&it->moved);
  }
  it->drawn += batch;
  s->state = batch ? SLOT_BUSY : SLOT_EMPTY;
  return batch ? s : NULL;
}

/* The next batch to load, when there is room for one; NULL: there is none any more. */
static loader_slot *next_free_slot(weir_loader_iter *it)
{
  loader_slot *s = NULL;
  pthread_mutex_lock(&it->draw);
  pthread_mutex_lock(&it->lock);
  while (!it->stop && it->drawn < it->last && it->drawn >= it->taken + it->window)
    pthread_cond_wait(&it->room, &it->lock);
  bool more = !it->stop && it->drawn < it->last;
  if (more) s = &it->slot[it->drawn % it->window];
  pthread_mutex_unlock(&it->lock);
  if (more) {
    (void)weir_fail(WEIR_OK, "%s", "");
    weir_status st = loader_draw(it, s);
    pthread_mutex_lock(&it->lock);
    s = drawn(it, s, st);
    pthread_mutex_unlock(&it->lock);
  }
  pthread_mutex_unlock(&it->draw);
  return s;
}

static void reached(weir_loader_iter *it, loader_slot *s, enum slot_state state)
{
  HOLD_LOCK(&it->lock);
  s->state = state;
  pthread_cond_broadcast(&it->moved);
}

/* The slot of batch b once it is in this state; NULL: there is no such batch, or stop. */
static loader_slot *await_slot(weir_loader_iter *it, int64_t b, enum slot_state state)
{
  loader_slot *s = &it->slot[b % it->window];
  HOLD_LOCK(&it->lock);
  while (!it->stop && b < it->last && s->state != state)
    pthread_cond_wait(&it->moved, &it->lock);
  bool there = !it->stop && b < it->last;
  return there ? s : NULL;
}

static void *load_batches(void *argument)
{
  weir_loader_iter *it = argument;
  loader_slot *s;
  (void)weir_set_device(it->current);
  weir_module_path_push("DataLoader");
  while ((s = next_free_slot(it))) {
    if (!s->st) loader_load(it->loader, s);
    reached(it, s, SLOT_LOADED);
  }
  return NULL;
}

static void *stage_batches(void *argument)
{
  weir_loader_iter *it = argument;
  loader_slot *s;
  (void)weir_set_device(it->current);
  weir_module_path_push("DataLoader");
  for (int64_t b = 0; (s = await_slot(it, b, SLOT_LOADED)); b++) {
    loader_stage(it, s);
    reached(it, s, SLOT_STAGED);
  }
  return NULL;
}

/* ---- beginning and ending -------------------------------------------------------------------- */

/* A thread that leaves signals to the program's own. */
static int start_loader_thread(pthread_t *out, void *(*run)(void *), weir_loader_iter *it,
                               const char *name)
{
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(out, NULL, run, it);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!error) (void)pthread_setname_np(*out, name);
  return error;
}

static weir_status start_threads(weir_loader_iter *it)
{
  int wanted = it->loader->options.workers, error = 0;
  for (; it->workers < wanted && !error; it->workers += !error)
    error = start_loader_thread(&it->worker[it->workers], load_batches, it, "weir-load");
  if (error)
    return weir_fail_errno(WEIR_ENOMEM, error, "cannot start worker %d of %d of a loader",
                           it->workers + 1, wanted);
  if (!wanted || !it->staging) return WEIR_OK;
  error = start_loader_thread(&it->stager, stage_batches, it, "weir-pin");
  it->stages = !error;
  return error ? weir_fail_errno(WEIR_ENOMEM, error, "cannot start the pin thread of a loader")
               : WEIR_OK;
}

/* Where batches go after they are loaded. */
static weir_status prepare_staging(weir_loader_iter *it)
{
  const weir_loader_options *o = &it->loader->options;
  weir_status st = weir_current_device(&it->current);
  it->pin = o->pin_memory && weir_cuda_is_available();
  if (o->pin_memory && !it->pin)
    log_message(WEIR_LOG_WARNING,
                "'pin_memory' argument is set as true but no accelerator is found, "
                "then device pinned memory won't be used.");
  it->device = o->device;
  it->staging = it->pin || it->device.type;
  if (st || it->device.type != WEIR_DEVICE_CUDA) return st;
  if (weir_device_index(it->device) < 0) it->device = it->current;
  st = weir_stream_new(&it->side, it->device, 0);
  for (int64_t i = 0; !st && i < it->window; i++)
    st = weir_event_new(&it->slot[i].copied, NULL);
  return st;
}

static weir_status prepare_order(weir_loader_iter *it)
{
  const weir_loader_options *o = &it->loader->options;
  uint64_t epoch = atomic_fetch_add(&it->loader->epoch, 1);
  weir_status st = length_of(&it->length, it->loader);
  if (!st && o->shuffle) st = loader_shuffle(&it->order, it->length, o->seed, epoch);
  if (!st && o->sampler.next && o->sampler.begin) st = o->sampler.begin(o->sampler.user, epoch);
  return st;
}

/* The ring, empty. */
static weir_status prepare_ring(weir_loader_iter *it)
{
  const weir_loader_options *o = &it->loader->options;
  int64_t indices;
  it->window = o->workers ? (int64_t)o->workers * o->prefetch_factor : 1;
  if (__builtin_mul_overflow(it->window, o->batch_size, &indices) || indices < 0)
    return fail_invalid("%d workers, %d batches each of %lld items are too many", o->workers,
                        o->prefetch_factor, (long long)o->batch_size);
  it->slot = calloc((size_t)it->window, sizeof *it->slot);
  it->worker = calloc((size_t)o->workers + 1, sizeof *it->worker);
  it->indices = calloc((size_t)indices, sizeof *it->indices);
  if (!it->slot || !it->worker || !it->indices)
    return fail_memory("%lld batches of %lld", (long long)it->window, (long long)o->batch_size);
  for (int64_t i = 0; i < it->window; i++)
    it->slot[i].index = it->indices + i * o->batch_size;
  return WEIR_OK;
}

weir_status weir_loader_begin(weir_loader_iter **out, weir_loader *l)
{
  WEIR_REQUIRE_OUT(out, l);
  weir_loader_iter *it = calloc(1, sizeof *it);
  if (!it) return fail_memory("an iteration of a loader");
  atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
  it->loader = l;
  it->last = INT64_MAX;
  pthread_mutex_init(&it->draw, NULL);
  pthread_mutex_init(&it->lock, NULL);
  pthread_cond_init(&it->room, NULL);
  pthread_cond_init(&it->moved, NULL);
  weir_status st = prepare_ring(it);
  if (!st) st = prepare_staging(it);
  if (!st) st = prepare_order(it);
  if (!st) st = start_threads(it);
  if (st)
    weir_loader_end(it);
  else
    *out = it;
  return st;
}

static void stop_threads(weir_loader_iter *it)
{
  pthread_mutex_lock(&it->lock);
  it->stop = true;
  pthread_cond_broadcast(&it->room);
  pthread_cond_broadcast(&it->moved);
  pthread_mutex_unlock(&it->lock);
  for (int i = 0; i < it->workers; i++)
    (void)pthread_join(it->worker[i], NULL);
  if (it->stages) (void)pthread_join(it->stager, NULL);
}

void weir_loader_end(weir_loader_iter *it)
{
  if (!it) return;
  stop_threads(it);
  for (int64_t i = 0; it->slot && i < it->window; i++) {
    weir_batch_drop(&it->slot[i].batch);
    weir_event_release(it->slot[i].copied);
  }
  pthread_mutex_destroy(&it->draw);
  pthread_mutex_destroy(&it->lock);
  pthread_cond_destroy(&it->room);
  pthread_cond_destroy(&it->moved);
  free(it->slot);
  free(it->worker);
  free(it->indices);
  free(it->order);
  weir_loader_release(it->loader);
  free(it);
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* What the current stream does from now on waits for the copies, and their memory for it. */
static weir_status arrive(const weir_loader_iter *it, loader_slot *s)
{
  weir_stream *now;
  weir_status st = it->side ? weir_current_stream(&now, it->device) : WEIR_OK;
  if (st || !it->side) return st;
  st = weir_event_wait(s->copied, now);
  for (int i = 0; !st && i < s->batch.count; i++)
    if (weir_tensor_is_cuda(s->batch.tensor[i]))
      st = weir_tensor_record_stream(s->batch.tensor[i], now);
  return st;
}

/* Empties the slot: its batch is the program's, or its failure is the thread's. */
static weir_status take_batch(weir_batch *out, weir_loader_iter *it, loader_slot *s)
{
  weir_status st = s->st ? weir_fail(s->st, "%s", s->text) : arrive(it, s);
  if (st)
    weir_batch_drop(&s->batch);
  else
    *out = s->batch;
  s->batch.count = 0;
  s->st = WEIR_OK;
  HOLD_LOCK(&it->lock);
  s->state = SLOT_EMPTY;
  it->taken++;
  pthread_cond_broadcast(&it->room);
  return st;
}

weir_status weir_loader_next(weir_batch *out, weir_loader_iter *it)
{
  WEIR_REQUIRE(out, it);
  loader_slot *s;
  memset(out, 0, sizeof *out);
  if (!it->workers) {
    weir_module_path_push("DataLoader");
    s = next_free_slot(it);
    if (s && !s->st) loader_load(it->loader, s);
    if (s) loader_stage(it, s);
    weir_module_path_pop();
  } else {
    s = await_slot(it, it->taken, it->staging ? SLOT_STAGED : SLOT_LOADED);
  }
  return s ? take_batch(out, it, s) : WEIR_OK;
}
