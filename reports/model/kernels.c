/* kernels.c: see kernels.h.
 *
 * Launches are summed by process and handle, which names are found by; then sums of equal names are added up, since a
 * kernel has a handle in each module and process that has it. A graph's kernel has a device time of its own only
 * where all kernels of that graph are one: operations of devices state their graph's launch, and no kernel. */
#include "reports/model/kernels.h"
#include <stdlib.h>
#include <string.h>
#include "reports/base/demangle.h"

typedef struct kernel_pass {
  wr_kernels *k;
  const wr_db *db;
  wr_demangler demangler;
} kernel_pass;

static uint64_t handle_key(int64_t process, uint64_t handle)
{
  return hash_mix(hash_mix(1, (uint64_t)process), handle);
}

static wr_kernel_sum *sum_of_handle(wr_kernels *k, int64_t process, uint64_t handle)
{
  uint64_t *at = hash_map_place(&k->by_handle, handle_key(process, handle), NULL);
  if (!at) return NULL;
  if (!*at) {
    if (!wr_grow(&k->sum, &k->capacity, k->count + 1, sizeof(wr_kernel_sum))) return NULL;
    k->sum[k->count++] = (wr_kernel_sum){0};
    *at = k->count;
  }
  return &k->sum[*at - 1];
}

/* ---- launches -------------------------------------------------------------------------------- */

bool wr_kernels_launch(wr_kernels *k, const wr_event *e)
{
  wr_kernel_sum *x = sum_of_handle(k, e->t->process, e->a);
  if (x) x->launches++;
  return x != NULL;
}

/* process, handle, launches */
static weir_status take_graph_launches(void *context, sqlite3_stmt *q)
{
  kernel_pass *p = context;
  wr_kernel_sum *x =
      sum_of_handle(p->k, sqlite3_column_int64(q, 0), (uint64_t)sqlite3_column_int64(q, 1));
  if (!x) return wr_db_out_of_memory(p->db);
  x->launches += (uint64_t)sqlite3_column_int64(q, 2);
  return WEIR_OK;
}

/* process, handle, operations, their time, the longest */
static weir_status take_times(void *context, sqlite3_stmt *q)
{
  kernel_pass *p = context;
  wr_kernel_sum *x =
      sum_of_handle(p->k, sqlite3_column_int64(q, 0), (uint64_t)sqlite3_column_int64(q, 1));
  if (!x) return wr_db_out_of_memory(p->db);
  uint64_t longest = (uint64_t)sqlite3_column_int64(q, 4);
  x->timed += (uint64_t)sqlite3_column_int64(q, 2);
  x->device_ns += (uint64_t)sqlite3_column_int64(q, 3);
  if (longest > x->longest_ns) x->longest_ns = longest;
  return WEIR_OK;
}

#define GRAPH_LAUNCHES                                                                             \
  "SELECT t.process, w.kernel, CAST(total(g.launches * w.count) AS INTEGER) FROM (SELECT "         \
  "e.template, l.content,"                                                                         \
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

/* Launches by graphs, and device times. */
static weir_status sum_operations(kernel_pass *p)
{
  weir_status st = WEIR_OK;
  bool narrow = p->db->schema >= 2, times = wr_db_has_table(p->db, "device_work");
  bool graphs = narrow && wr_db_has_table(p->db, "graph_work");
  if (graphs) st = wr_db_each(p->db, GRAPH_LAUNCHES, take_graph_launches, p);
  if (!st && narrow && times) st = wr_db_each(p->db, LAUNCH_TIMES, take_times, p);
  if (!st && graphs && times) st = wr_db_each(p->db, GRAPH_TIMES, take_times, p);
  return st;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* process, handle, name */
static weir_status take_name(void *context, sqlite3_stmt *q)
{
  kernel_pass *p = context;
  const uint64_t *at =
      hash_map_get(&p->k->by_handle,
                   handle_key(sqlite3_column_int64(q, 0), (uint64_t)sqlite3_column_int64(q, 1)));
  wr_kernel_sum *x = at && *at ? &p->k->sum[*at - 1] : NULL;
  if (!x || x->name) return WEIR_OK;
  char *name = wr_db_text(q, 2), *source = name ? wr_demangle(&p->demangler, name) : NULL;
  x->name = source ? source : name;
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
static void merge_names(wr_kernels *k)
{
  size_t handles = k->count;
  k->count = 0;
  if (handles) qsort(k->sum, handles, sizeof(*k->sum), kernel_by_name);
  for (size_t i = 0; i < handles; i++) {
    wr_kernel_sum *x = &k->sum[i], *to = k->count ? &k->sum[k->count - 1] : NULL;
    if (!to || kernel_by_name(to, x) != 0) {
      k->sum[k->count++] = *x;
      continue;
    }
    to->launches += x->launches, to->timed += x->timed, to->device_ns += x->device_ns;
    if (x->longest_ns > to->longest_ns) to->longest_ns = x->longest_ns;
    free(x->name);
  }
  if (k->count) qsort(k->sum, k->count, sizeof(*k->sum), by_device_time);
}

weir_status wr_kernels_finish(wr_kernels *k, const wr_db *db)
{
  kernel_pass p = {.k = k, .db = db};
  weir_status st = sum_operations(&p);
  wr_demangler_open(&p.demangler);
  if (!st)
    st = wr_db_each(db, "SELECT process, handle, name FROM main.name WHERE kind = 'kernel'",
                    take_name, &p);
  wr_demangler_close(&p.demangler);
  hash_map_free(&k->by_handle);
  if (!st) merge_names(k);
  return st;
}

void wr_kernels_free(wr_kernels *k)
{
  for (size_t i = 0; i < k->count; i++)
    free(k->sum[i].name);
  free(k->sum);
  hash_map_free(&k->by_handle);
  *k = (wr_kernels){0};
}
