/* first.c: see first.h. A context's *life* is how many resets it or its device had seen before: its
 * number is given again. Only a thread's first call into a context can have made it, since
 * its second begins when the first has returned. */
#include "reports/model/first.h"
#include <stdlib.h>
#include "core/trace/api.h"
#include "core/trace/event.h"
#include "reports/base/util.h"

enum {
  ANY = 1024,
  CONTEXT = 2048
}; /* what a reset was of: 0-256 a device, one of them, a context */

static uint64_t key_of(int64_t whose, int64_t what, uint64_t life)
{
  return hash_mix(hash_mix(hash_mix(9, (uint64_t)whose), (uint64_t)what), life);
}

static weir_status add_reset(wr_firsts *f, int64_t process, int64_t what, int64_t end)
{
  if (!wr_grow(&f->resets, &f->reset_capacity, f->reset_count + 1, sizeof(*f->resets)))
    return weir_fail(WEIR_ENOMEM, "reading resets: out of host memory");
  f->resets[f->reset_count++] = (struct wr_reset){key_of(process, what, 0), end};
  return WEIR_OK;
}

/* process, end, device, context, whether of the context alone */
static weir_status take_reset(void *context, sqlite3_stmt *q)
{
  wr_firsts *f = context;
  int64_t process = sqlite3_column_int64(q, 0), end = sqlite3_column_int64(q, 1);
  if (sqlite3_column_int64(q, 4) == 1)
    return add_reset(f, process, CONTEXT + (sqlite3_column_int64(q, 3) & 255), end);
  weir_status s = add_reset(f, process, sqlite3_column_int64(q, 2) & 255, end);
  return s ? s : add_reset(f, process, ANY, end);
}

static int by_key(const void *left, const void *right)
{
  const struct wr_reset *a = left, *b = right;
  return a->key != b->key ? (a->key > b->key) - (a->key < b->key)
                          : (a->end > b->end) - (a->end < b->end);
}

weir_status wr_firsts_open(wr_firsts *f, const wr_db *db)
{
  static const char *const makers[] = {"cuCtxCreate", "cuCtxCreate_v2", "cuCtxCreate_v3",
                                       "cuCtxCreate_v4"};
  *f = (wr_firsts){.last_thread = INT64_MIN};
  f->init = api_find_name("cuInit");
  f->init_device = api_find_name("cudaInitDevice");
  f->retain = api_find_name("cuDevicePrimaryCtxRetain");
  for (int i = 0; i < 4; i++)
    f->create[i] = api_find_name(makers[i]);
  weir_status s = wr_db_each(db,
                             "SELECT process, \"end\", device, context, bytes FROM rare_event"
                             " WHERE kind = 10 AND status = 0",
                             take_reset, f);
  if (f->reset_count) qsort(f->resets, f->reset_count, sizeof(*f->resets), by_key);
  return s;
}

void wr_firsts_close(wr_firsts *f)
{
  free(f->threads);
  free(f->resets);
  hash_map_free(&f->by_thread);
  hash_map_free(&f->met);
  hash_map_free(&f->earliest);
  hash_map_free(&f->by_name);
  *f = (wr_firsts){0};
}

/* Where the resets under `key` begin that end after `time`. */
static size_t resets_until(const wr_firsts *f, uint64_t key, int64_t time)
{
  size_t low = 0, high = f->reset_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const struct wr_reset *r = &f->resets[middle];
    if (r->key < key || (r->key == key && r->end <= time))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static size_t resets_of(const wr_firsts *f, const wr_first_call *c, int64_t what)
{
  uint64_t key = key_of(c->process, what, 0);
  return resets_until(f, key, c->start) - resets_until(f, key, INT64_MIN);
}

/* Resets of its context, or of its device, that were over when the call began. */
static uint64_t life_of(const wr_firsts *f, const wr_first_call *c)
{
  if (!f->reset_count) return 0;
  return resets_of(f, c, CONTEXT + c->context) + resets_of(f, c, c->device > 255 ? ANY : c->device);
}

/* Keeps the earliest end under a key. */
static bool lower_time(hash_map *m, uint64_t key, int64_t end)
{
  bool added;
  uint64_t *known = hash_map_place(m, key, &added);
  if (!known) return false;
  if (added || end < (int64_t)*known) *known = (uint64_t)end;
  return true;
}

static bool thread_goes_on(wr_firsts *f, const wr_first_call *c)
{
  bool added = false;
  if (c->thread != f->last_thread || !f->thread_count) {
    uint64_t *at = hash_map_place(&f->by_thread, (uint64_t)c->thread, &added);
    if (!at) return false;
    if (added) *at = f->thread_count;
    f->last_at = (size_t)*at;
    f->last_thread = c->thread;
  }
  if (added) {
    if (!wr_grow(&f->threads, &f->thread_capacity, f->thread_count + 1, sizeof(*f->threads)))
      return false;
    f->threads[f->thread_count++] = (wr_first_thread){.process = c->process,
                                                      .thread = c->thread,
                                                      .start = c->start,
                                                      .end = c->end,
                                                      .context = -1};
  }
  wr_first_thread *t = &f->threads[f->last_at];
  if (c->start < t->start) t->start = c->start;
  if (c->end > t->end) t->end = c->end;
  return true;
}

/* By what it does, wherever it is called. */
bool wr_firsts_named(const wr_firsts *f, uint32_t api)
{
  return api &&
         (api == f->init || api == f->init_device || api == f->retain || api == f->create[0] ||
          api == f->create[1] || api == f->create[2] || api == f->create[3]);
}

bool wr_firsts_take(wr_firsts *f, const wr_first_call *c, bool *maybe)
{
  bool by_name = wr_firsts_named(f, c->api);
  uint64_t life;
  *maybe = by_name;
  if (!thread_goes_on(f, c)) return false;
  wr_first_thread *t = &f->threads[f->last_at];
  if (!by_name && (!c->context || (c->context == t->context && !f->reset_count))) return true;
  life = life_of(f, c);
  if (c->worked && (c->api == f->retain || c->api == f->init_device) &&
      !lower_time(&f->by_name, key_of(c->process, c->device, life), c->end))
    return false;
  if (c->worked && c->api == f->init && !lower_time(&f->by_name, key_of(c->process, -1, 0), c->end))
    return false;
  if (!c->context || (c->context == t->context && life == t->life)) return true;
  bool added;
  if (!hash_map_place(&f->met, key_of(c->thread, c->context, life), &added)) return false;
  t->context = c->context;
  t->life = life;
  if (!added) return true;
  *maybe = true;
  return lower_time(&f->earliest, key_of(c->process, c->context, life), c->end);
}

bool wr_firsts_made(const wr_firsts *f, const wr_first_call *c)
{
  uint64_t life = life_of(f, c);
  bool asked = c->api == f->retain || c->api == f->init_device;
  const uint64_t *named =
      hash_map_get(&f->by_name, c->api == f->init ? key_of(c->process, -1, 0)
                                                  : key_of(c->process, c->device, life));
  if (c->api == f->init || asked) return named && c->start <= (int64_t)*named;
  if (wr_firsts_named(f, c->api)) return true;
  const uint64_t *earliest = hash_map_get(&f->earliest, key_of(c->process, c->context, life));
  if (!earliest || c->start > (int64_t)*earliest) return false;
  return !named || c->start < (int64_t)*named; /* or it was there when this was called */
}
