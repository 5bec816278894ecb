/* lifetime.h: which free ends which allocation, and how much was live when.
 *
 * One pass over the memory events of a trace in the order in which the program can have seen them:
 * an allocation counts from its return, a free from its call. So a free and a later allocation that
 * got the same address on another thread are never taken for each other: the address can be handed
 * out again only after the free was called and before the new allocation returned. Failed and
 * captured calls change nothing.
 *
 * The importer keeps the memory events that it takes, up to a limit, so that its pass need not have
 * SQLite read and sort them again; beyond that, and for a trace of another's, the rows are read,
 * and memory is the live set and what SQLite's sorter takes.
 *
 * Device side: device, managed and array memory, and memory of unknown kind. Host side: the rest.
 */
#ifndef WEIR_REPORTS_LIFETIME_H
#define WEIR_REPORTS_LIFETIME_H

#include "reports/import/template.h"

/* How a block ended: block.how. */
enum {
  WR_BLOCK_LIVE = 0,     /* never: live at exit */
  WR_BLOCK_FREED = 1,    /* by a free (or unregister) */
  WR_BLOCK_RESET = 2,    /* with its device or context */
  WR_BLOCK_REPLACED = 3, /* its address was handed out again: the free was not seen */
  WR_BLOCK_UNKNOWN = 4   /* no block: a free whose allocation was not seen */
};

typedef struct wr_memory_event {
  int64_t id, time, pointer, bytes;
  int32_t process, thread, stack; /* rows; stack 0: none */
  uint8_t kind;                   /* weir_event_kind */
  uint8_t context;                /* number in the process */
  uint8_t mem;                    /* weir_mem */
  int16_t device;                 /* WR_NO_DEVICE: none */
} wr_memory_event;

enum { WR_NO_DEVICE = 256 };

/* Those of a trace, in the order of their rows; times as its rows had them when they were taken. */
typedef struct wr_memory_log {
  wr_memory_event *event;
  size_t count, capacity;
  bool unsorted;   /* some are not in order of time */
  bool incomplete; /* too many, or some were there before: nothing is kept */
} wr_memory_log;

/* An event as it is taken: its row, who called, and when; its record. */
typedef struct wr_taken {
  int64_t id, start, end;
  wr_caller who;
  const weir_trace_event *e;
} wr_taken;

/* Keeps it if it is a memory event. */
void wr_memory_keep(wr_memory_log *log, const wr_taken *x);

void wr_memory_drop(wr_memory_log *log);

/* True for memory that counts as the device's. `mem`: weir_mem. */
bool wr_mem_device_side(int mem);

/* Fills `block` and `memory` of the database `batch` was opened for; the rows are written by nested
 * flushes, the last by the caller. Main or temp tables are found by their names alone. `log`: what
 * was kept, or NULL: the rows are read; `shift`: what its times have that the rows have no more. */
weir_status wr_lifetimes(wr_batch *batch, wr_memory_log *log, int64_t shift);

/* An unfinished trace has no lifetimes yet: makes them in temporary tables of the same names. */
weir_status wr_lifetimes_temporary(const wr_db *db);

#endif
