/* summary.c: the figures of stats.c as programs ask for them, and PyTorch's table of them. */
#include <stdio.h>
#include "core/base/lock.h"
#include "core/memory/devices.h"
#include "core/memory/stats.h"

weir_status weir_memory_get_stats(weir_memory_stats *out, weir_device device)
{
  WEIR_REQUIRE(out);
  FIND_POOL(p, pool_of_device(device, &p));
  HOLD_LOCK(&p->lock);
  pool_stats(p, out);
  return WEIR_OK;
}

weir_status weir_memory_stat(int64_t *out, weir_device device, const char *name)
{
  WEIR_REQUIRE(out, name);
  weir_memory_stats all;
  TRY(weir_memory_get_stats(&all, device));
  const int64_t *found = stats_find(&all, name);
  if (found) {
    *out = *found;
    return WEIR_OK;
  }
  return fail_invalid("there is no figure called %s, as in allocated_bytes.all.current", name);
}

weir_status weir_memory_reset_peak(weir_device device)
{
  FIND_POOL(p, pool_of_device(device, &p));
  HOLD_LOCK(&p->lock);
  pool_reset_peak(p);
  return WEIR_OK;
}

weir_status weir_memory_reset_accumulated(weir_device device)
{
  FIND_POOL(p, pool_of_device(device, &p));
  HOLD_LOCK(&p->lock);
  pool_reset_sums(p);
  return WEIR_OK;
}

/* ---- PyTorch's short ways -------------------------------------------------------------------- */

static uint64_t figure_or_0(weir_device device, const char *name)
{
  int64_t value = 0;
  if (!attached_device_of(device)) return 0; /* asking uses no device */
  return weir_memory_stat(&value, device, name) ? 0 : (uint64_t)value;
}

#define FIGURE(name, figure)                                                                       \
  uint64_t weir_##name(weir_device device)                                                         \
  {                                                                                                \
    return figure_or_0(device, figure);                                                            \
  }
FIGURE(memory_allocated, "allocated_bytes.all.current")
FIGURE(max_memory_allocated, "allocated_bytes.all.peak")
FIGURE(memory_reserved, "reserved_bytes.all.current")
FIGURE(max_memory_reserved, "reserved_bytes.all.peak")
FIGURE(memory_cached, "reserved_bytes.all.current")
FIGURE(max_memory_cached, "reserved_bytes.all.peak")

weir_status weir_mem_get_info(uint64_t *free_bytes, uint64_t *total_bytes, weir_device device)
{
  WEIR_REQUIRE(free_bytes, total_bytes);
  FIND_POOL(p, pool_of_device(device, &p));
  return p->backend->source.mem_info(p->backend->self, free_bytes, total_bytes);
}

/* ---- the table --------------------------------------------------------------------------------
 * As torch.cuda.memory_summary() lays it out: 75 columns between bars; a line's unit is chosen by
 * its metric's first line, the next one from 768 of it on (bytes, KiB, ...) or 750 (K, M). */

enum { WIDTH = 75 };

static const struct table_row {
  enum metric metric;
  const char *name;
  bool bytes;
} table_rows[] = {{METRIC_allocated_bytes, "Allocated memory", true},
                  {METRIC_active_bytes, "Active memory", true},
                  {METRIC_requested_bytes, "Requested memory", true},
                  {METRIC_reserved_bytes, "GPU reserved memory", true},
                  {METRIC_inactive_split_bytes, "Non-releasable memory", true},
                  {METRIC_allocation, "Allocations", false},
                  {METRIC_active, "Active allocs", false},
                  {METRIC_segment, "GPU reserved segments", false},
                  {METRIC_inactive_split, "Non-releasable allocs", false}};

static void rule(FILE *f, char c)
{
  (void)fputc('|', f);
  for (int i = 0; i < WIDTH; i++)
    (void)fputc(c, f);
  (void)fputs("|\n", f);
}

/* In the unit that suits `by`. */
static void cell(FILE *f, int64_t value, int64_t by, bool bytes)
{
  static const char *const units[] = {"B  ", "KiB", "MiB", "GiB", "TiB", "PiB"};
  static const char counts[] = " KM";
  const int64_t step = bytes ? 1024 : 1000, most = bytes ? 768 * 1024 : 750 * 1000;
  int unit = 0;
  for (; by >= most && unit < (bytes ? 5 : 2); unit++, by /= step)
    value /= step;
  if (bytes)
    (void)fprintf(f, " | %6lld %s", (long long)value, units[unit]);
  else
    (void)fprintf(f, " | %7lld %c ", (long long)value, counts[unit]);
}

static void print_memory_line(FILE *f, const char *name, const int64_t v[KINDS],
                              const int64_t by[KINDS], bool bytes)
{
  (void)fprintf(f, "| %-21s", name);
  for (int i = 0; i < KINDS; i++)
    cell(f, v[i], by[i], bytes);
  (void)fputs(" |\n", f);
}

static void print_memory_table(FILE *f, int device, const figures_all *all, bool abbreviated)
{
  const sums *s = all->metric;
  rule(f, '=');
  (void)fprintf(f, "|%17s Weir CUDA memory summary, device ID %-20d |\n", "", device);
  rule(f, '-');
  (void)fprintf(f, "|  %9s CUDA OOMs: %-12lld | %6s cudaMalloc retries: %-8lld  |\n", "",
                (long long)all->named.num_ooms, "", (long long)all->named.num_alloc_retries);
  rule(f, '=');
  (void)fputs("|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n", f);
  for (size_t i = 0; i < sizeof table_rows / sizeof *table_rows; i++) {
    const struct table_row *r = &table_rows[i];
    rule(f, '-');
    print_memory_line(f, r->name, s[r->metric][ALL], s[r->metric][ALL], r->bytes);
    if (abbreviated) continue;
    print_memory_line(f, "      from large pool", s[r->metric][LARGE], s[r->metric][ALL], r->bytes);
    print_memory_line(f, "      from small pool", s[r->metric][SMALL], s[r->metric][ALL], r->bytes);
  }
  rule(f, '-');
  print_memory_line(f, "Oversize allocations", all->oversize[0], all->oversize[0], false);
  rule(f, '-');
  print_memory_line(f, "Oversize GPU segments", all->oversize[1], all->oversize[1], false);
  rule(f, '=');
}

weir_status weir_memory_summary(char **out, weir_device device, bool abbreviated)
{
  WEIR_REQUIRE(out);
  figures_all all;
  size_t bytes;
  TRY(weir_memory_get_stats(&all.named, device));
  FILE *f = open_memstream(out, &bytes);
  if (!f) return weir_fail(WEIR_ENOMEM, "no memory for the table");
  print_memory_table(f, (int)device_at(device), &all, abbreviated);
  return fclose(f) ? weir_fail(WEIR_ENOMEM, "no memory for the table") : WEIR_OK;
}
