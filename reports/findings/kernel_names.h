/* kernel_names.h: which kernels the operations of a finding launch, wait for, or have in their graphs. */
#ifndef WEIR_REPORTS_FINDINGS_KERNEL_NAMES_H
#define WEIR_REPORTS_FINDINGS_KERNEL_NAMES_H

#include "reports/base/demangle.h"
#include "reports/findings/findings.h"
#include "reports/import/schema.h"

enum { WR_KERNEL_SAMPLES = 16 };

/* Some of a group's operations: those whose numbers have the lowest hashes, so that the order in which rows are found
 * changes nothing. Begins zeroed. */
typedef struct wr_kernel_samples {
  size_t count;
  struct {
    uint64_t order;
    int64_t event;
  } of[WR_KERNEL_SAMPLES]; /* by order */
} wr_kernel_samples;

void wr_kernel_samples_add(wr_kernel_samples *s, uint64_t order, int64_t event);

static inline void wr_kernel_samples_take(wr_kernel_samples *s, int64_t event)
{
  const uint64_t order = hash_mix(17, (uint64_t)event);
  if (s->count < WR_KERNEL_SAMPLES || order < s->of[WR_KERNEL_SAMPLES - 1].order)
    wr_kernel_samples_add(s, order, event);
}

/* What kernels are looked up with. Begins zeroed. */
typedef struct wr_kernel_names {
  wr_demangler demangler;
  sqlite3_stmt *launch, *graph, *name; /* owned; graph NULL: the trace has none */
} wr_kernel_names;

weir_status wr_kernel_names_open(wr_kernel_names *k, const wr_db *db);
void wr_kernel_names_close(wr_kernel_names *k);

/* The kernel of a mangled name as people call it: "ns::scale<float>(float*, int)" is "scale<float>"; long arguments of
 * a template are left out. New; NULL: out of memory. */
char *wr_kernel_short_name(wr_demangler *d, const char *name);

#endif
