/* group.h: what `--by` puts together: events by place, stack, module, range, stream, device,
 * thread, process, rank or function, with what a person calls each. */
#ifndef WEIR_REPORTS_GROUP_H
#define WEIR_REPORTS_GROUP_H

#include "reports/model/sites.h"
#include "reports/tables/activity.h"
#include "reports/tables/table.h"

typedef struct wr_group {
  char *text;          /* owned; what it is called; NULL: `place` says it */
  wr_frame_name place; /* owned */
  char *frames;        /* owned; of a stack: all of it, or NULL */
} wr_group;

typedef struct wr_groups {
  report_by by;
  const wr_db *db;
  wr_symbols *symbols; /* owned */
  wr_group *group;     /* owned */
  size_t count, capacity;
  hash_map by_number, by_name; /* keys -> group */
  struct wr_numbered *name[5]; /* owned; of threads, processes, functions, ranges, ranks */
  size_t names[5], name_capacity[5];
} wr_groups;

/* `by` is none: by place. */
weir_status wr_groups_open(wr_groups *g, const wr_db *db, report_by by);
void wr_groups_close(wr_groups *g);

/* The group of what a call did; `range`: row of range_name. */
weir_status wr_group_of(wr_groups *g, const wr_template *c, int64_t range, size_t *out);

/* The place of a stack, whatever the groups are by (out's texts are new). */
weir_status wr_group_place(wr_groups *g, int64_t stack, wr_frame_name *out);

/* What a function or thread is called (borrowed). */
const char *wr_group_function(const wr_groups *g, int64_t api);
const char *wr_group_thread(const wr_groups *g, int64_t thread);

/* "site", "stream". */
const char *wr_by_name(report_by by);

/* The columns that a group takes in a table, and its values; `group` NULL: "all others". */
size_t wr_group_columns(const wr_groups *g, wr_column out[2]);
void wr_group_put(const wr_groups *g, wr_named_table *t, const wr_group *group);

/* "device 0", "host" (in `buffer`). */
const char *wr_device_words(int64_t device, char buffer[32]);
/* The same as a value: an ordinal, or "host" for WR_HOST and below 0. */
void wr_put_device(wr_named_table *t, int64_t device);

#endif
