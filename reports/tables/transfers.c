/* transfers.c: weir report transfers: copies by direction and memory, by size, between which
 * devices, beside kernels, and by whatever is asked for. A speed is of devices' times where these
 * are known, and of the host's where the call lasts until its copy is done. */
#include <stdlib.h>
#include "core/trace/event.h"
#include "reports/model/device_times.h"
#include "reports/model/model.h"
#include "reports/base/units.h"
#include "reports/tables/build.h"

/* Sums of all copies that are alike in two to four small numbers. */
typedef struct copy_sum {
  int direction, mem, src_mem, device, src_device;
  wr_activity_sums sums;
} copy_sum;

typedef struct copy_sums {
  copy_sum *sum; /* owned */
  size_t count, capacity;
} copy_sums;

static bool add_copy(copy_sums *x, const copy_sum *key, const wr_activity_sums *sums)
{
  size_t i = 0;
  while (i < x->count && (x->sum[i].direction != key->direction || x->sum[i].mem != key->mem ||
                          x->sum[i].src_mem != key->src_mem || x->sum[i].device != key->device ||
                          x->sum[i].src_device != key->src_device))
    i++;
  if (i == x->count) {
    if (!wr_grow(&x->sum, &x->capacity, x->count + 1, sizeof(*x->sum))) return false;
    x->sum[x->count++] = *key;
  }
  wr_activity_add(&x->sum[i].sums, sums);
  return true;
}

static int by_copied(const void *left, const void *right)
{
  const copy_sum *a = left, *b = right;
  if (a->direction != b->direction) return a->direction - b->direction;
  if (a->sums.bytes != b->sums.bytes) return a->sums.bytes < b->sums.bytes ? 1 : -1;
  if (a->src_device != b->src_device) return a->src_device - b->src_device;
  if (a->device != b->device) return a->device - b->device;
  return a->mem != b->mem ? a->mem - b->mem : a->src_mem - b->src_mem;
}

/* `routes`: by devices; else by memory. */
static weir_status sum_copies(const wr_build *b, const wr_activity *a, bool routes, copy_sums *out)
{
  for (size_t i = 0; i < a->count; i++) {
    const wr_activity_cell *cell = &a->cell[i];
    const wr_template *c = &cell->common;
    if (!wr_cell_copies(cell)) continue;
    copy_sum key = {.direction = wr_direction_index(c->copy)};
    if (routes)
      key.device = (int)c->device, key.src_device = (int)c->src_device;
    else
      key.mem = (int)c->mem, key.src_mem = (int)c->src_mem;
    if (!add_copy(out, &key, &cell->sums)) return wr_db_out_of_memory(b->db);
  }
  if (out->count) qsort(out->sum, out->count, sizeof(*out->sum), by_copied);
  return WEIR_OK;
}

#define SPEED_COLUMNS                                                                              \
  {"waited_bytes_per_second", "speed by host time", WR_COLUMN_SPEED, 2},                           \
      {"device_ns", "device time", WR_COLUMN_DEVICE_NS, 3},                                        \
  {                                                                                                \
    "device_bytes_per_second", "speed by device time", WR_COLUMN_SPEED, 1                          \
  }

static void put_move_sums(wr_named_table *t, const wr_activity *a, const wr_activity_sums *s)
{
  wr_table_put(t, s->calls);
  wr_table_put(t, s->bytes);
  wr_table_put(t, s->async_calls);
  wr_table_put(t, s->host_ns);
  wr_table_put_speed(t, s->timed_bytes, s->timed_ns);
  if (a->device_times && s->device_operations)
    wr_table_put(t, s->device_ns);
  else
    wr_table_put_none(t);
  wr_table_put_speed(t, s->device_bytes, s->device_ns);
}

/* The speed of all by that of the best single copy of its kind: of devices' times where known. */
static void put_best(wr_named_table *t, const wr_activity_sums *s)
{
  bool device = s->best_device > 0 && s->device_ns;
  double best = device ? s->best_device : s->best_host;
  uint64_t bytes = device ? s->device_bytes : s->timed_bytes;
  uint64_t ns = device ? s->device_ns : s->timed_ns;
  if (!(best > 0) || !ns) {
    wr_table_put_none(t);
    wr_table_put_none(t);
    return;
  }
  wr_table_put_real(t, best * 1e9);
  wr_table_put_real(t, (double)bytes / (double)ns / best);
}

static weir_status add_kinds(const wr_build *b, const wr_activity *a)
{
  static const wr_column columns[] = {
      {"direction", "direction", WR_COLUMN_TEXT, 0},
      {"source_memory", "from", WR_COLUMN_TEXT, 0},
      {"destination_memory", "to", WR_COLUMN_TEXT, 0},
      {"calls", "copies", WR_COLUMN_COUNT, 0},
      {"bytes", "bytes", WR_COLUMN_BYTES, 0},
      {"async_calls", "asynchronous", WR_COLUMN_COUNT, 4},
      {"host_ns", "host time in calls", WR_COLUMN_HOST_NS, 2},
      SPEED_COLUMNS,
      {"best_bytes_per_second", "best copy of 1 MiB or more", WR_COLUMN_SPEED, 5},
      {"share_of_best", "of the best", WR_COLUMN_SHARE, 5}};
  copy_sums x = {0};
  weir_status s = sum_copies(b, a, false, &x);
  wr_named_table *t = s ? NULL
                        : wr_tables_add(b->t, "transfers", "Copies by direction and memory",
                                        columns, sizeof columns / sizeof *columns);
  for (size_t i = 0; !s && i < x.count; i++) {
    wr_table_row(t);
    wr_table_put_text(t, wr_direction_names[x.sum[i].direction]);
    wr_table_put_text(t, wr_mem_name(x.sum[i].src_mem));
    wr_table_put_text(t, wr_mem_name(x.sum[i].mem));
    put_move_sums(t, a, &x.sum[i].sums);
    put_best(t, &x.sum[i].sums);
  }
  free(x.sum);
  return s;
}

static weir_status add_matrix(const wr_build *b, const wr_activity *a)
{
  static const wr_column columns[] = {{"direction", "direction", WR_COLUMN_TEXT, 0},
                                      {"source", "from", WR_COLUMN_TEXT, 0},
                                      {"destination", "to", WR_COLUMN_TEXT, 0},
                                      {"calls", "copies", WR_COLUMN_COUNT, 0},
                                      {"bytes", "bytes", WR_COLUMN_BYTES, 0},
                                      {"async_calls", "asynchronous", WR_COLUMN_COUNT, 4},
                                      {"host_ns", "host time in calls", WR_COLUMN_HOST_NS, 2},
                                      SPEED_COLUMNS};
  copy_sums x = {0};
  weir_status s = sum_copies(b, a, true, &x);
  wr_named_table *t = s ? NULL
                        : wr_tables_add(b->t, "matrix", "Copies from where to where", columns,
                                        sizeof columns / sizeof *columns);
  for (size_t i = 0; !s && i < x.count; i++) {
    wr_table_row(t);
    wr_table_put_text(t, wr_direction_names[x.sum[i].direction]);
    wr_put_device(t, x.sum[i].src_device);
    wr_put_device(t, x.sum[i].device);
    put_move_sums(t, a, &x.sum[i].sums);
  }
  free(x.sum);
  return s;
}

static void add_sizes(const wr_build *b, const wr_activity *a)
{
  static const wr_column columns[] = {{"direction", "direction", WR_COLUMN_TEXT, 0},
                                      {"at_least_bytes", "at least", WR_COLUMN_BYTES, 0},
                                      {"at_most_bytes", "at most", WR_COLUMN_BYTES, 1},
                                      {"calls", "copies", WR_COLUMN_COUNT, 0},
                                      {"bytes", "bytes", WR_COLUMN_BYTES, 0},
                                      {"share_of_calls", "of all copies", WR_COLUMN_SHARE, 0}};
  wr_named_table *t =
      wr_tables_add(b->t, "sizes", "Copies by size", columns, sizeof columns / sizeof *columns);
  uint64_t all = 0;
  for (int d = 0; d < WR_DIRECTIONS; d++)
    for (int i = 0; i < WR_SIZES; i++)
      all += a->size_calls[d][i];
  for (int d = 0; d < WR_DIRECTIONS; d++) {
    for (int i = 0; i < WR_SIZES; i++) {
      if (!a->size_calls[d][i]) continue;
      wr_table_row(t);
      wr_table_put_text(t, wr_direction_names[d]);
      wr_table_put(t, i ? UINT64_C(1) << (i - 1) : 0);
      wr_table_put(t, i > 63 ? UINT64_MAX : (UINT64_C(1) << i) - 1);
      wr_table_put(t, a->size_calls[d][i]);
      wr_table_put(t, a->size_bytes[d][i]);
      wr_table_put_share(t, a->size_calls[d][i], all);
    }
  }
}

static weir_status add_overlap(const wr_build *b)
{
  static const wr_column columns[] = {
      {"device", "device", WR_COLUMN_TEXT, 0},
      {"copy_device_ns", "device time: copies", WR_COLUMN_DEVICE_NS, 0},
      {"kernel_device_ns", "kernels", WR_COLUMN_DEVICE_NS, 0},
      {"overlap_device_ns", "both", WR_COLUMN_DEVICE_NS, 0},
      {"share_of_copying", "of copies", WR_COLUMN_SHARE, 0},
      {"busy_device_ns", "busy", WR_COLUMN_DEVICE_NS, 2},
      {"span_device_ns", "first to last operation", WR_COLUMN_DEVICE_NS, 3}};
  wr_device_times d = {0};
  weir_status s = wr_device_times_load(&d, b->db);
  if (s) return s;
  wr_named_table *t = NULL;
  for (size_t i = 0; i < d.count; i++) {
    const wr_device_time *x = &d.device[i];
    if (!t) {
      t = wr_tables_add(b->t, "overlap", "Copies beside kernels, in device time", columns,
                        sizeof columns / sizeof *columns);
      if (t) t->whole_run = true;
    }
    wr_table_row(t);
    wr_put_device(t, x->device);
    wr_table_put(t, x->copy_ns);
    if (d.no_kernels) {
      for (int k = 0; k < 3; k++)
        wr_table_put_none(t);
    } else {
      wr_table_put(t, x->kernel_ns);
      wr_table_put(t, x->overlap_ns);
      wr_table_put_share(t, x->overlap_ns, x->copy_ns);
    }
    wr_table_put(t, x->busy_ns);
    wr_table_put(t, x->span_ns);
  }
  if (!d.count) wr_note_no_device_times(b, &d, "");
  if (d.count && d.no_kernels)
    wr_tables_note(b->t,
                   "Kernels were not observed (weir run --device-times=all): whether copies ran "
                   "beside them is not known.");
  wr_device_times_free(&d);
  return s;
}

#define COPIES(name, title, type, extra, kind, ...)                                                \
  {                                                                                                \
    {name, title, type, extra}, kind, wr_cell_copies, __VA_ARGS__                                  \
  }

static weir_status add_transfer_groups(const wr_build *b, const wr_activity *a)
{
  bool none = !a->device_times;
  const wr_measure measures[] = {
      COPIES("bytes", "bytes", WR_COLUMN_BYTES, 0, WR_MEASURE_SUM, WR_SUM_OF(bytes), 0, false),
      COPIES("calls", "copies", WR_COLUMN_COUNT, 0, WR_MEASURE_SUM, WR_SUM_OF(calls), 0, false),
      COPIES("share_of_bytes", "of all bytes", WR_COLUMN_SHARE, 5, WR_MEASURE_SHARE,
             WR_SUM_OF(bytes), 0, false),
      COPIES("async_calls", "asynchronous", WR_COLUMN_COUNT, 4, WR_MEASURE_SUM,
             WR_SUM_OF(async_calls), 0, false),
      COPIES("host_ns", "host time in calls", WR_COLUMN_HOST_NS, 1, WR_MEASURE_SUM,
             WR_SUM_OF(host_ns), 0, false),
      COPIES("waited_bytes_per_second", "speed by host time", WR_COLUMN_SPEED, 2, WR_MEASURE_SPEED,
             WR_SUM_OF(timed_bytes), WR_SUM_OF(timed_ns), false),
      COPIES("device_ns", "device time", WR_COLUMN_DEVICE_NS, 3, WR_MEASURE_SUM,
             WR_SUM_OF(device_ns), 0, none),
      COPIES("device_bytes_per_second", "speed by device time", WR_COLUMN_SPEED, 2,
             WR_MEASURE_SPEED, WR_SUM_OF(device_bytes), WR_SUM_OF(device_ns), none)};
  return wr_build_grouped(b, a, "transfers", "Copies", measures,
                          sizeof measures / sizeof *measures);
}

static void say_unknown(const wr_build *b, const wr_activity *a)
{
  if (a->unknown_launches)
    wr_tables_note(b->t,
                   "%s of graphs whose contents are not known: what they copied is in no "
                   "number here.",
                   wr_counted(a->unknown_launches, "launch", "launches").text);
  if (a->conditional)
    wr_tables_note(b->t,
                   "%s in bodies of conditional nodes of graphs: how often they ran is not "
                   "known, and they are in no number here.",
                   wr_counted(a->conditional, "node", "nodes").text);
}

weir_status wr_build_transfers(const wr_build *b)
{
  wr_activity a;
  wr_activity_wants wants = {.ranges = b->o->by == WEIR_BY_RANGE};
  weir_status s = wr_activity_load(&a, b->db, b->scope, &wants);
  if (s) return s;
  s = add_kinds(b, &a);
  if (!s) s = add_transfer_groups(b, &a);
  if (!s) add_sizes(b, &a);
  if (!s) s = add_matrix(b, &a);
  if (!s) s = add_overlap(b);
  say_unknown(b, &a);
  wr_activity_free(&a);
  return s;
}
