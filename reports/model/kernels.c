/* kernels.c: see kernels.h.
 *
 * Launches are summed by process and handle, which names are found by; then sums of equal names are added up, since a
 * kernel has a handle in each module and process that has it. A graph's kernel has a device time of its own only
 * where all kernels of that graph are one: operations of devices state their graph's launch, and no kernel. */
#include "reports/model/kernels.h"
#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"
#include "core/trace/event.h"
#include "reports/base/demangle.h"
#include "reports/events/events.h"

typedef struct kernel_pass {
  wr_kernels *k;
  const wr_db *db;
  hash_map by_handle; /* process and handle -> index in `handle` + 1 */
  wr_kernel_sum *handle;
  size_t handles, handle_capacity;
  wr_demangler demangler;
} kernel_pass;

static uint64_t handle_key(int64_t process, uint64_t handle)
{
  return hash_mix(hash_mix(1, (uint64_t)process), handle);
}

static wr_kernel_sum *sum_of_handle(kernel_pass *p, int64_t process, uint64_t handle)
{
  uint64_t *at = hash_map_place(&p->by_handle, handle_key(process, handle), NULL);
  if (!at) return NULL;
  if (!*at) {
    if (!wr_grow(&p->handle, &p->handle_capacity, p->handles + 1, sizeof(wr_kernel_sum)))
      return NULL;
    p->handle[p->handles++] = (wr_kernel_sum){0};
    *at = p->handles;
  }
  return &p->handle[*at - 1];
}

/* ---- launches -------------------------------------------------------------------------------- */

static weir_status take_launch(void *context, const wr_event *e)
{
  kernel_pass *p = context;
  if (e->t->kind != WEIR_EV_LAUNCH || !e->t->done) return WEIR_OK;
  wr_kernel_sum *x = sum_of_handle(p, e->t->process, e->a);
  if (!x) return wr_db_out_of_memory(p->db);
  x->launches++;
  return WEIR_OK;
}

/* process, handle, launches */
static weir_status take_graph_launches(void *context, sqlite3_stmt *q)
{
  kernel_pass *p = context;
  wr_kernel_sum *x =
      sum_of_handle(p, sqlite3_column_int64(q, 0), (uint64_t)sqlite3_column_int64(q, 1));
  if (!x) return wr_db_out_of_memory(p->db);
  x->launches += (uint64_t)sqlite3_column_int64(q, 2);
  return WEIR_OK;
}

/* process, handle, operations, their time, the longest */
static weir_status take_times(void *context, sqlite3_stmt *q)
{
  kernel_pass *p = context;
  wr_kernel_sum *x =
      sum_of_handle(p, sqlite3_column_int64(q, 0), (uint64_t)sqlite3_column_int64(q, 1));
  if (!x) return wr_db_out_of_memory(p->db);
  uint64_t longest = (uint64_t)sqlite3_column_int64(q, 4);
  x->timed += (uint64_t)sqlite3_column_int64(q, 2);
  x->device_ns += (uint64_t)sqlite3_column_int64(q, 3);
  if (longest > x->longest_ns) x->longest_ns = longest;
  return WEIR_OK;
}

#define GRAPH_LAUNCHES                                                                             \
  "SELECT t.process, w.kernel, sum(g.launches * w.count) FROM (SELECT e.template, l.content,"      \
  " count(*) AS launches FROM graph_launch l CROSS JOIN event_row e ON e.id = l.event"             \
  " WHERE l.content IS NOT NULL GROUP BY 1, 2) g CROSS JOIN template t ON t.id = g.template"       \
  " CROSS JOIN graph_work w ON w.content = g.content"                                              \
  " WHERE w.type = 0 AND NOT ifnull(w.conditional, 0) GROUP BY 1, 2"

#define TIMED_KERNELS                                                                              \
  "(SELECT event, \"end\" - start AS ns FROM device_work WHERE kind = 3 AND event IS NOT NULL"     \
  " AND " WR_DEVICE_TIME ") d"
#define TIME_SUMS "count(*), CAST(total(d.ns) AS INTEGER), max(d.ns)"

#define LAUNCH_TIMES                                                                               \
  "SELECT t.process, e.a, " TIME_SUMS " FROM " TIMED_KERNELS " CROSS JOIN event_row e"             \
  " ON e.id = d.event CROSS JOIN template t ON t.id = e.template AND t.kind = 6 GROUP BY 1, 2"

#define GRAPH_TIMES                                                                                \
  "SELECT t.process, w.kernel, " TIME_SUMS " FROM " TIMED_KERNELS " CROSS JOIN graph_launch l"     \
  " ON l.event = d.event CROSS JOIN (SELECT content, min(kernel) AS kernel FROM graph_work"        \
  " WHERE type = 0 GROUP BY content HAVING min(kernel) = max(kernel)) w ON w.content = l.content"  \
  " CROSS JOIN event_row e ON e.id = l.event CROSS JOIN template t ON t.id = e.template"           \
  " GROUP BY 1, 2"

static weir_status sum_launches(kernel_pass *p)
{
  wr_events events;
  weir_status st = wr_events_open(&events, p->db);
  if (!st) st = wr_events_each(&events, take_launch, p);
  wr_events_close(&events);
  bool narrow = p->db->schema >= 2, times = wr_db_has_table(p->db, "device_work");
  bool graphs = narrow && wr_db_has_table(p->db, "graph_work");
  if (!st && graphs) st = wr_db_each(p->db, GRAPH_LAUNCHES, take_graph_launches, p);
  if (!st && narrow && times) st = wr_db_each(p->db, LAUNCH_TIMES, take_times, p);
  if (!st && graphs && times) st = wr_db_each(p->db, GRAPH_TIMES, take_times, p);
  return st;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* process, handle, name */
static weir_status take_name(void *context, sqlite3_stmt *q)
{
  kernel_pass *p = context;
  const uint64_t *at = hash_map_get(
      &p->by_handle, handle_key(sqlite3_column_int64(q, 0), (uint64_t)sqlite3_column_int64(q, 1)));
  if (!at || !*at || p->handle[*at - 1].name) return WEIR_OK;
  char *name = wr_db_text(q, 2), *source = name ? wr_demangle(&p->demangler, name) : NULL;
  p->handle[*at - 1].name = source ? source : name;
  if (source) free(name);
  return name ? WEIR_OK : wr_db_out_of_memory(p->db);
}

/* Those without a name last. */
static int kernel_by_name(const void *left, const void *right)
{
  const wr_kernel_sum *a = left, *b = right;
  if (!a->name || !b->name) return (b->name != NULL) - (a->name != NULL);
  return strcmp(a->name, b->name);
}

static int by_device_time(const void *left, const void *right)
{
  const wr_kernel_sum *a = left, *b = right;
  if (a->device_ns != b->device_ns) return a->device_ns < b->device_ns ? 1 : -1;
  if (a->launches != b->launches) return a->launches < b->launches ? 1 : -1;
  return kernel_by_name(left, right);
}

/* Sums of equal names become one, which takes the name. */
static void merge_names(kernel_pass *p)
{
  wr_kernels *k = p->k;
  if (p->handles) qsort(p->handle, p->handles, sizeof(*p->handle), kernel_by_name);
  for (size_t i = 0; i < p->handles; i++) {
    wr_kernel_sum *x = &p->handle[i], *to = k->count ? &p->handle[k->count - 1] : NULL;
    if (!to || kernel_by_name(to, x) != 0) {
      p->handle[k->count++] = *x;
      continue;
    }
    to->launches += x->launches, to->timed += x->timed, to->device_ns += x->device_ns;
    if (x->longest_ns > to->longest_ns) to->longest_ns = x->longest_ns;
    free(x->name);
  }
  k->sum = p->handle;
  if (k->count) qsort(k->sum, k->count, sizeof(*k->sum), by_device_time);
}

weir_status wr_kernels_load(wr_kernels *k, const wr_db *db)
{
  kernel_pass p = {.k = k, .db = db};
  *k = (wr_kernels){0};
  weir_status st = sum_launches(&p);
  wr_demangler_open(&p.demangler);
  if (!st)
    st = wr_db_each(db, "SELECT process, handle, name FROM main.name WHERE kind = 'kernel'",
                    take_name, &p);
  wr_demangler_close(&p.demangler);
  hash_map_free(&p.by_handle);
  if (!st) {
    merge_names(&p);
    return WEIR_OK;
  }
  for (size_t i = 0; i < p.handles; i++)
    free(p.handle[i].name);
  free(p.handle);
  return st;
}

void wr_kernels_free(wr_kernels *k)
{
  for (size_t i = 0; i < k->count; i++)
    free(k->sum[i].name);
  free(k->sum);
  *k = (wr_kernels){0};
}
