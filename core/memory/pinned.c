/* pinned.c: weir_pinned_*: the host pools by device and flags.
 *
 * A pool is made at the first request for it and ends with its device. Before a device ends, no
 * host pool may name its streams any more: all host pools are held while it does, and then forget
 * them.
 *
 * In a forked child nothing of this is used: locks may be taken by threads that do not exist there,
 * and the device cannot be reached. The handler that reports it is set with the first pool. So is
 * one for the end of the process, which waits until nothing is being locked in the background: it
 * is set after the driver was started, so it runs before the driver ends, whose calls must not be
 * underway then. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/lock.h"
#include "core/memory/devices.h"
#include "core/base/host_memory.h"
#include "core/memory/history.h"
#include "core/memory/host.h"
#include "core/trace/notify.h"
#include "core/weir/memory.h"

_Static_assert((int)WEIR_PINNED_PORTABLE == (int)WEIR_HOST_PORTABLE &&
                   (int)WEIR_PINNED_MAPPED == (int)WEIR_HOST_MAPPED &&
                   (int)WEIR_PINNED_WRITE_COMBINED == (int)WEIR_HOST_WRITE_COMBINED,
               "one set of flags");

static host_pool *_Atomic hosts[WEIR_DEVICES][HOST_FLAGS];
static pthread_mutex_t hosts_lock = PTHREAD_MUTEX_INITIALIZER; /* making and ending host pools */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic bool forked;

#define FOR_EACH_HOST(s)                                                                           \
  for (int i_ = 0; i_ < WEIR_DEVICES * HOST_FLAGS; i_++)                                           \
    for (host_pool *s = atomic_load(&hosts[i_ / HOST_FLAGS][i_ % HOST_FLAGS]); s; s = NULL)

static void pinned_in_child(void)
{
  atomic_store(&forked, true);
  for (int d = 0; d < WEIR_DEVICES; d++)
    for (int f = 0; f < HOST_FLAGS; f++)
      atomic_store(&hosts[d][f], NULL);
}

static void at_exit(void)
{
  if (atomic_load(&forked)) return;
  FOR_EACH_HOST(s) host_pool_settle(s, true);
}

static void prepare_pinned(void)
{
  (void)pthread_atfork(NULL, NULL, pinned_in_child);
  (void)atexit(at_exit);
}

static weir_status check_fork(void)
{
  if (!atomic_load_explicit(&forked, memory_order_relaxed)) return WEIR_OK;
  return fail_unsupported(
      "pinned memory belongs to the process that made it, not to its forked child");
}

/* ---- out of memory --------------------------------------------------------------------------- */

/* Bytes as MiB, or "none" for no bound. */
static const char *bound(char *text, size_t room, uint64_t bytes)
{
  (void)snprintf(text, room, bytes == UINT64_MAX ? "none" : "%.2f", to_mib(bytes));
  return text;
}

static weir_status word_oom(const mem_pool *p, uint64_t bytes, const host_census *c)
{
  host_room r;
  char text[4][32];
  uint64_t limit = atomic_load(&host_pool_limit);
  const host_pool *s = p->host;
  host_room_read(&r);
  return weir_fail(
      WEIR_EOOM,
      "out of pinned memory. Tried to pin %.2f MiB for device %d: %s. MiB: budget %s, pinned in "
      "all %.2f, by this pool %.2f; live %.2f, waiting for recorded work %.2f, cached %.2f "
      "(largest %.2f); available on the machine %s, left in the control group %s, "
      "RLIMIT_MEMLOCK %s (not charged)",
      to_mib(bytes), p->backend->index,
      c->pending >= bytes ? "freed memory is still used by recorded work"
      : s->why[0]         ? s->why
                          : "it is more than there can be",
      bound(text[0], sizeof text[0], limit ? limit : UINT64_MAX), to_mib(host_pool_locked()),
      to_mib(p->reserved), to_mib(c->live), to_mib(c->pending), to_mib(c->free), to_mib(c->largest),
      bound(text[1], sizeof text[1], r.available),
      bound(text[2], sizeof text[2],
            r.cgroup_limit == UINT64_MAX ? UINT64_MAX : r.cgroup_limit - r.cgroup_used),
      bound(text[3], sizeof text[3], r.memlock));
}

static const host_pool_calls host_calls = {
    .grow = host_pool_grow, .used = host_pool_used, .oom = word_oom};

/* ---- pools ----------------------------------------------------------------------------------- */

static weir_status host_make(host_pool **out, mem_pool *device, unsigned flags)
{
  host_pool *_Atomic *place = &hosts[device->backend->index][flags];
  weir_status st = WEIR_OK;
  pthread_once(&once, prepare_pinned);
  HOLD_LOCK(&hosts_lock);
  *out = atomic_load(place);
  if (!*out && !(st = host_pool_new(out, device, flags, &host_calls))) atomic_store(place, *out);
  return st;
}

static __attribute__((noinline)) weir_status host_find(host_pool **out, weir_device device,
                                                       unsigned flags)
{
  weir_status st = check_fork();
  mem_pool *p;
  if (!st && device.type != WEIR_DEVICE_CUDA)
    st = fail_invalid("pinned memory is locked by a cuda device, not by the cpu");
  if (!st) st = pool_of_device(device, &p);
  if (st) return st;
  if (flags >= HOST_FLAGS)
    return fail_invalid("0x%x are not flags of pinned memory; valid: portable 1, mapped 2, "
                        "write-combined 4, or a sum of them",
                        flags);
  return host_make(out, p, flags);
}

/* Calls `visit` for every pool, all of which exist meanwhile. */
static void each_host(void (*visit)(host_pool *s, void *user), void *user)
{
  HOLD_LOCK(&hosts_lock);
  FOR_EACH_HOST(s) visit(s, user);
}

/* The device's own host pools. Lock of the list held. */
static weir_status end_own(const mem_pool *device)
{
  weir_status st = WEIR_OK;
  for (int f = 0; f < HOST_FLAGS && !st; f++) {
    host_pool *_Atomic *place = &hosts[device->backend->index][f];
    host_pool *s = atomic_load(place);
    if (!s || s->device != device) continue;
    atomic_store(place, NULL);
    if ((st = host_pool_free(s))) atomic_store(place, s);
  }
  return st;
}

static void hold_all(bool hold)
{
  FOR_EACH_HOST(s)(void)(hold ? pthread_mutex_lock : pthread_mutex_unlock)(&s->pool->lock);
}

/* A bit for every heap of the device. */
static void heaps_of(const mem_pool *device, uint64_t *out)
{
  for (unsigned i = 1; i < HOST_HEAPS; i++) {
    const mem_heap *h = atomic_load(&heap_table[i]);
    if (h && h->pool == device) out[i / 64] |= UINT64_C(1) << i % 64;
  }
}

static void forget_all(const uint64_t *gone)
{
  FOR_EACH_HOST(s) pool_forget(s->pool, gone);
}

weir_status host_pool_device_ends(mem_pool *device)
{
  uint64_t gone[HEAPS / 64] = {0};
  if (atomic_load(&forked)) return pool_free(device);
  HOLD_LOCK(&hosts_lock);
  weir_status st = end_own(device);
  if (!st) {
    hold_all(true);
    heaps_of(device, gone);
    if (!(st = pool_free(device))) forget_all(gone);
    hold_all(false);
  }
  return st;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static inline weir_status host_malloc(host_pool *s, void **out, size_t bytes)
{
  return weir_tcache_malloc_host(&s->pool->common[HEAP_IDLE], bytes, out);
}

static inline __attribute__((always_inline)) weir_status
malloc_plain(void **out, size_t bytes, weir_device device, unsigned flags)
{
  unsigned d = device_at(device);
  bool good = device.type == WEIR_DEVICE_CUDA && d < WEIR_DEVICES && flags < HOST_FLAGS;
  host_pool *s = good ? atomic_load_explicit(&hosts[d][flags], memory_order_acquire) : NULL;
  if (__builtin_expect(!s, 0)) {
    TRY(host_find(&s, device, flags));
  }
  if (__builtin_expect(!bytes, 0)) {
    *out = NULL;
    return WEIR_OK;
  }
  return host_malloc(s, out, bytes);
}

static __attribute__((noinline)) weir_status malloc_notified(void **out, size_t bytes,
                                                             weir_device device, unsigned flags)
{
  const engine_listener *l = active_listener;
  engine_notice call;
  bool notified = l && l->begin(&call);
  weir_status st = malloc_plain(out, bytes, device, flags);
  if (notified)
    l->end(&call, &(block_notice){.api = WEIR_NOTICE_PINNED_MALLOC,
                                  .status = notify_status(st),
                                  .address = st ? 0 : (uint64_t)(uintptr_t)*out,
                                  .bytes = bytes,
                                  .device = -1});
  return st;
}

weir_status weir_pinned_malloc_flags(void **out, size_t bytes, weir_device device, unsigned flags)
{
  WEIR_REQUIRE(out);
  if (__builtin_expect(active_listener != NULL, 0))
    return malloc_notified(out, bytes, device, flags);
  return malloc_plain(out, bytes, device, flags);
}

weir_status weir_pinned_malloc(void **out, size_t bytes)
{
  WEIR_REQUIRE(out);
  return weir_pinned_malloc_flags(out, bytes, WEIR_CUDA, 0);
}

weir_status weir_pinned_free(void *ptr)
{
  if (__builtin_expect(!ptr || atomic_load_explicit(&forked, memory_order_relaxed), 0))
    return WEIR_OK; /* a child's copy of a program's objects may well be freed there */
  if (__builtin_expect(active_listener != NULL, 0))
    return notify_of_free(ptr, WEIR_NOTICE_PINNED_FREE, weir_tcache_free_host);
  return weir_tcache_free_host(ptr);
}

weir_status weir_is_pinned(bool *out, const void *ptr)
{
  WEIR_REQUIRE(out);
  *out = false;
  if (!ptr || atomic_load(&forked)) return WEIR_OK;
  *out = host_pool_owns((uint64_t)ptr);
  const attached_device *d = *out ? NULL : attached_device_of(WEIR_CUDA);
  const mem_pool *p = d ? d->pool : NULL;
  if (!p || !p->backend->source.host_is_pinned) return WEIR_OK;
  return p->backend->source.host_is_pinned(p->backend->self, ptr, out);
}

static void empty_pinned(host_pool *s, void *status)
{
  weir_status st = weir_pool_empty(s->pool);
  if (!*(weir_status *)status) *(weir_status *)status = st;
}

weir_status weir_pinned_empty_cache(void)
{
  weir_status st = check_fork();
  if (!st) each_host(empty_pinned, &st);
  return st;
}

weir_status weir_pinned_set_limit(uint64_t bytes)
{
  atomic_store(&host_pool_limit, bytes);
  return WEIR_OK;
}

/* ---- figures --------------------------------------------------------------------------------- */

static void add_times(const host_timing *t, int64_t *total, int64_t *max, int64_t *min,
                      int64_t *count)
{
  if (!t->count) return;
  if (!*count || (int64_t)t->min < *min) *min = (int64_t)t->min;
  if ((int64_t)t->max > *max) *max = (int64_t)t->max;
  *total += (int64_t)t->total;
  *count += (int64_t)t->count;
}

#define ADD_KINDS(to, sum, from, figure)                                                           \
  (to)->sum += (from).figure;                                                                      \
  (to)->sum##_peak += (from).figure##_peak;                                                        \
  (to)->sum##_allocated += (from).figure##_allocated;                                              \
  (to)->sum##_freed += (from).figure##_freed

static void add_figures(host_pool *s, void *user)
{
  weir_pinned_stats *o = user;
  weir_memory_stats all;
  mem_pool *p = s->pool;
  HOLD_LOCK(&p->lock);
  pool_stats(p, &all);
  ADD_KINDS(o, allocations, all, segment);
  ADD_KINDS(o, allocated_bytes, all, reserved_bytes);
  ADD_KINDS(o, active_requests, all, active);
  ADD_KINDS(o, active_bytes, all, active_bytes);
  o->requested_bytes += all.requested_bytes;
  o->pending_bytes += p->pending_bytes[0] + p->pending_bytes[1];
  o->num_ooms += all.num_ooms;
  add_times(&s->allocs, &o->host_alloc_time_total, &o->host_alloc_time_max, &o->host_alloc_time_min,
            &o->host_alloc_time_count);
  add_times(&s->frees, &o->host_free_time_total, &o->host_free_time_max, &o->host_free_time_min,
            &o->host_free_time_count);
}

weir_status weir_pinned_get_stats(weir_pinned_stats *o)
{
  WEIR_REQUIRE(o);
  weir_status st = check_fork();
  memset(o, 0, sizeof *o);
  if (st) return st;
  each_host(add_figures, o);
  o->num_host_alloc = o->host_alloc_time_count;
  o->num_host_free = o->host_free_time_count;
  if (o->host_alloc_time_count)
    o->host_alloc_time_avg = o->host_alloc_time_total / o->host_alloc_time_count;
  if (o->host_free_time_count)
    o->host_free_time_avg = o->host_free_time_total / o->host_free_time_count;
  o->limit_bytes = (int64_t)atomic_load(&host_pool_limit);
  return WEIR_OK;
}

static const struct figure {
  const char *name;
  size_t offset;
} figures[] = {
#define ROW(name, field) {name, offsetof(weir_pinned_stats, field)},
    WEIR_PINNED_STATS_MAP(ROW)
#undef ROW
};

enum { FIGURES = sizeof figures / sizeof *figures };

weir_status weir_pinned_stat(int64_t *out, const char *name)
{
  WEIR_REQUIRE(out, name);
  weir_pinned_stats all;
  weir_status st = weir_pinned_get_stats(&all);
  for (int i = 0; i < FIGURES && !st; i++)
    if (!strcmp(figures[i].name, name)) {
      *out = *(int64_t *)((char *)&all + figures[i].offset);
      return WEIR_OK;
    }
  return st ? st : fail_invalid("there is no figure called %s, as in active_bytes.current", name);
}

static void reset_pinned(host_pool *s, void *unused)
{
  (void)unused;
  HOLD_LOCK(&s->pool->lock);
  pool_reset_peak(s->pool);
}

weir_status weir_pinned_reset_peak(void)
{
  weir_status st = check_fork();
  if (!st) each_host(reset_pinned, NULL);
  return st;
}

static void largest(host_pool *s, void *out)
{
  mem_pool *p = s->pool;
  pthread_mutex_lock(&p->lock);
  tcache_reclaim(p);
  epoch_pending(p);
  uint64_t bytes = heap_largest(&p->common[HEAP_IDLE]);
  pthread_mutex_unlock(&p->lock);
  if (bytes > *(uint64_t *)out) *(uint64_t *)out = bytes;
}

weir_status weir_pinned_largest_free_block(uint64_t *out)
{
  WEIR_REQUIRE(out);
  weir_status st = check_fork();
  *out = 0;
  if (!st) each_host(largest, out);
  return st;
}

weir_status weir_pinned_summary(char **out)
{
  WEIR_REQUIRE(out);
  weir_pinned_stats all;
  size_t bytes;
  TRY(weir_pinned_get_stats(&all));
  FILE *f = open_memstream(out, &bytes);
  if (!f) return weir_fail(WEIR_ENOMEM, "no memory for the table");
  (void)fprintf(f, "Weir pinned memory summary\n%-40s %20s\n", "figure", "value");
  for (int i = 0; i < FIGURES; i++)
    (void)fprintf(f, "%-40s %20lld\n", figures[i].name,
                  (long long)*(int64_t *)((char *)&all + figures[i].offset));
  return fclose(f) ? weir_fail(WEIR_ENOMEM, "no memory for the table") : WEIR_OK;
}
