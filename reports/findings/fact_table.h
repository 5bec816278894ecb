/* fact_table.h: what the pass over the calls has seen (facts.h), as temporary tables that rules
 * ask. Their rows lie in packs (pack.h), which SQLite reads as virtual tables: a row costs a few
 * bytes and nanoseconds, where one that is put into a table of SQLite's costs a microsecond. */
#ifndef WEIR_REPORTS_FACT_TABLE_H
#define WEIR_REPORTS_FACT_TABLE_H

#include "reports/findings/pack.h"
#include "reports/import/schema.h"

/* X(NAME, table, whether it is keyed, columns): a keyed one begins with an id, and these ascend.
 * N(NAME, table, column, columns): that column, from 1, can be NULL. */
/* clang-format off */
#define WR_FACT_MAP(X, N)                                                                                         \
  X(OVERWRITTEN, overwritten, false, event, next, same_stream, template, duration, bytes)                        \
  X(UNREAD, unread, false, event, free, template, duration, bytes)                                               \
  X(REREAD, reread, false, event, earlier, template, duration, bytes)                                            \
  X(ROW_COPY, row_copy, false, event, matrix, template, duration, bytes)                                         \
  X(ROW_MATRIX, row_matrix, true, id, rows)                                                                      \
  X(SMALL_COPY, small_copy, false, event, template, duration, bytes)                                             \
  X(LARGE_COPY, large_copy, false, event, template, duration, bytes)                                             \
  N(PAGEABLE_COPY, pageable_copy, 2, event, gap, template, duration, bytes)                                      \
  N(BLOCKING_COPY, blocking_copy, 2, event, gap, template, duration, bytes)                                      \
  N(HIDDEN_WAIT, hidden_wait, 2, event, gap, template, duration, bytes)                                          \
  X(TURNED_COPY, turned_copy, false, event, earlier, template, bytes, earlier_bytes)                             \
  N(DEEP_LAUNCH, deep_launch, 2, event, ahead, template, duration, quiet)                                        \
  N(UNTOUCHED, untouched, 2, event, free, template, bytes)                                                       \
  X(EARLY_BLOCK, early_block, false, event, template, bytes)                                                     \
  X(LATE_FREE, late_free, false, event, alloc, template, bytes, taken)                                           \
  X(PAIR, pair, false, alloc, free, family, again, others, template, alloc_ns, free_ns)                          \
  X(RESIZED, resized, false, alloc, free, next, again, others, template, alloc_ns, free_ns, bytes)               \
  X(PAIR_GROUP, pair_group, true, id, process, stack, again, brief, first_brief, least_free_ns)                  \
  X(REPEATED_COPY, repeated_copy, false, event, family, template, duration, bytes)                               \
  X(COPY_FAMILY, copy_family, true, id, times, first)                                                            \
  X(SENT_BACK, sent_back, false, event, earlier)                                                                 \
  X(WAIT_AHEAD, wait_ahead, false, event, gap, gain, template, duration, shared)                                 \
  X(WAIT_COPY, wait_copy, false, event, gap, copy, template, duration, shared, copied, copy_ns, copy_bytes)      \
  X(OWN_WORK, own_work, false, event, template, duration, queued)                                 \
  X(TIMED_WAIT, timed_wait, false, event)                                                                        \
  X(GIVEN_BLOCK, given_block, false, alloc)                                                                      \
  X(GIVEN_COPY, given_copy, false, event)                                                                        \
  X(TEMPLATE_USE, template_use, true, template, calls, small, ns, bytes, most, first, longest)                   \
  X(STORM, storm, false, event, last, launches, total, span, waited, threads, template, launch_ns, whole)        \
  X(HANDLE_PAIR, handle_pair, false, made, ended, family, again, template, made_ns, ended_ns)                    \
  X(HANDLE_FAMILY, handle_family, true, id, object, again)                                                       \
  X(GROWN, grown, false, event, alloc, free, template, bytes)                                      \
  X(COMBINED_READ, combined_read, false, event, template, duration, bytes)                                        \
  X(BRIEF_RESULT, brief_result, false, event, next, host_ns, template, duration, bytes, wait, wait_ns)                           \
  X(DEVICE_TURN, device_turn, false, event, next, template, duration)                                            \
  X(WHOLE_COPY, whole_copy, false, event, to_alloc, from_alloc, copied_out, template, duration, bytes)           \
  N(COPIED_ONCE, copied_once, 2, alloc, free, copy, template, alloc_ns, free_ns, bytes, copied)                   \
  X(POLLED, polled, false, event, template, polls, asked_ns, span_ns)                                             \
  X(LATE_WAIT, late_wait, false, event, template, polls, span_ns, gap)                                             \
  X(SCALAR_STEP, scalar_step, false, event, wait, gap, template, duration, launches, crossed)                     \
  X(STREAM_MADE, stream_made, false, event, template, non_blocking)                                               \
  X(LEGACY_WORK, legacy_work, false, event, before, template, duration, other)                                    \
  X(PLACE_NAMED, place_named, false, template, address)                                                           \
  X(ORDER_UNNEEDED, order_unneeded, false, event, template, related, saving, legacy, timed)                         \
  X(CHUNK, chunk, false, event, back, template, up_ns, back_ns, up_bytes, back_bytes, locked, quick)                \
  X(TURN, turn, false, event, next, template, duration, next_ns, up, back, devices)                                 \
  X(SHORT_RUN, short_run, false, event, last, template, moves, ns, bytes)                                         \
  X(MIXED_STORM, mixed_storm, false, event, last, template, launches, span, waited, launch_ns, threads)            \
  X(HANDLE_LEFT, handle_left, false, event, template, family, made_ns)                                            \
  X(RESULT_COPY, result_copy, false, event, gap, template, duration)                                              \
  X(CODE_LOADED, code_loaded, false, event, template, duration)                                                  \
  X(REPEATED_LAUNCH, repeated_launch, false, event, earlier, family, others, template, duration)                           \
  X(HELD_TWICE, held_twice, false, alloc, twin, template, bytes)                                                   \
  X(READ_AGAIN, read_again, false, event, earlier, template, duration, bytes)                                     \
  X(WRITTEN_OVER, written_over, false, event, next, same_stream, template, duration, bytes)                       \
  X(UPLOADED_FOR_NONE, uploaded_for_none, false, event, free, template, duration, bytes)                          \
  X(HASH_STEP, hash_step, false, event, template, start, duration, bytes, payload, place, source, writes)
/* clang-format on */

typedef enum wr_fact {
#define WR_FACT_NUMBER(NAME, ...) WR_FACT_##NAME,
  WR_FACT_MAP(WR_FACT_NUMBER, WR_FACT_NUMBER)
#undef WR_FACT_NUMBER
      WR_FACTS
} wr_fact;

/* A row of each, as a reader of its pack has it: wr_fact_unread, ...; where a column can be NULL,
 * `null` is whether it is. */
#define WR_FACT_ROW(NAME, table, keyed, ...)                                                       \
  typedef struct wr_fact_##table {                                                                 \
    int64_t __VA_ARGS__;                                                                           \
  } wr_fact_##table;
#define WR_FACT_NULL_ROW(NAME, table, nullable, ...)                                               \
  typedef struct wr_fact_##table {                                                                 \
    int64_t __VA_ARGS__, null;                                                                     \
  } wr_fact_##table;
WR_FACT_MAP(WR_FACT_ROW, WR_FACT_NULL_ROW)
#undef WR_FACT_ROW
#undef WR_FACT_NULL_ROW

typedef struct wr_fact_module { /* a fact as a table of SQLite's */
  int fact;
  struct wr_fact_tables *tables; /* borrowed: what it is in; NULL: it is no table yet */
  bool made;                     /* by CREATE VIRTUAL TABLE: the trace has a table of that name */
} wr_fact_module;

typedef struct wr_fact_tables {
  wr_pack pack[WR_FACTS];
  char *beside; /* owned: begin of the names of their files */
  wr_fact_module module[WR_FACTS];
  sqlite3 *db; /* whose tables they are; NULL: not yet */
  bool
      declaring; /* a fact's columns: what SQLite asks the authorizer meanwhile is no statement's */
} wr_fact_tables;

/* Errors: ENOMEM. */
weir_status wr_fact_open(wr_fact_tables *t);
void wr_fact_close(wr_fact_tables *t);

/* A row: its columns in their order; a number for one that is NULL, too. Those of a table whose
 * first column is an id come in order of it. Errors: ENOMEM, EIO. */
static inline weir_status wr_fact_add(wr_fact_tables *t, wr_fact table, const int64_t *row)
{
  return wr_pack_add(&t->pack[table], row, t->beside);
}

/* The same, of a table of which a column can be NULL: whether it is. */
weir_status wr_fact_add_either(wr_fact_tables *t, wr_fact table, const int64_t *row, bool null);

/* Forgets all rows. */
void wr_fact_empty(wr_fact_tables *t);

/* Makes tables of them, once all rows are there; `t` stays where it is until they are closed.
 * Errors: ENOMEM, EIO. */
weir_status wr_fact_make_tables(wr_fact_tables *t, const wr_db *db);

/* How many rows the fact of that name has; false: there is none of that name. */
bool wr_fact_rows(const wr_fact_tables *t, const char *name, size_t *rows);

/* Whether SQLite finds a fact by that name, as a table that it says is `main`'s: there is no
 * other. */
bool wr_fact_is_table(const wr_fact_tables *t, const char *name);

#endif
