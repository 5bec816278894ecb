/* row.h: an event as values by column. */
#ifndef WEIR_REPORTS_LISTING_ROW_H
#define WEIR_REPORTS_LISTING_ROW_H

#include "reports/listing/names.h"
#include "reports/write/rows.h"

/* In the order in which CSV has them. Names are those of the views (SCHEMA.md), where one has
 * it. */
#define LISTING_COLUMN_MAP(X)                                                                      \
  X(id)                                                                                            \
  X(start_ns)                                                                                      \
  X(duration_ns)                                                                                   \
  X(pid)                                                                                           \
  X(tid)                                                                                           \
  X(kind)                                                                                          \
  X(function)                                                                                      \
  X(status)                                                                                        \
  X(device)                                                                                        \
  X(source_device)                                                                                 \
  X(stream)                                                                                        \
  X(bytes)                                                                                         \
  X(direction)                                                                                     \
  X(memory)                                                                                        \
  X(source_memory)                                                                                 \
  X(pointer)                                                                                       \
  X(source)                                                                                        \
  X(value)                                                                                         \
  X(waits_for)                                                                                     \
  X(waited_ns)                                                                                     \
  X(handle)                                                                                        \
  X(kernel)                                                                                        \
  X(grid_x)                                                                                        \
  X(grid_y)                                                                                        \
  X(grid_z)                                                                                        \
  X(threads)                                                                                       \
  X(action)                                                                                        \
  X(reason)                                                                                        \
  X(asynchronous)                                                                                  \
  X(captured)                                                                                      \
  X(cached)                                                                                        \
  X(staged)                                                                                        \
  X(call)                                                                                          \
  X(context)                                                                                       \
  X(stack)                                                                                         \
  X(caller)                                                                                        \
  X(file)                                                                                          \
  X(line)                                                                                          \
  X(range)                                                                                         \
  X(count)                                                                                         \
  X(hash)                                                                                          \
  X(uniform)                                                                                       \
  X(thread_name)                                                                                   \
  X(device_name)                                                                                   \
  X(stream_name)                                                                                   \
  X(memory_name)                                                                                   \
  X(handle_name)                                                                                   \
  X(device_start_ns)                                                                               \
  X(device_ns)

typedef enum listing_column {
#define LISTING_COLUMN_ENUM(name) LISTING_##name,
  LISTING_COLUMN_MAP(LISTING_COLUMN_ENUM)
#undef LISTING_COLUMN_ENUM
      LISTING_COLUMNS
} listing_column;

typedef struct listing_row {
  wr_field at[LISTING_COLUMNS]; /* their texts are borrowed, until the statement steps */
} listing_row;

/* The columns' names, in their order. */
extern const char *const listing_columns[LISTING_COLUMNS];

/* Whether the trace has been asked for NVTX's ranges: one of an older Weir has not. */
bool listing_has_ranges(const wr_db *db);

/* A statement of one event by its id, ?1 (*out new). */
weir_status listing_row_prepare(const wr_db *db, sqlite3_stmt **out);

/* The statement's row. */
void listing_row_read(listing_row *row, sqlite3_stmt *q, const listing_names *names);

#endif
