/* import.h: spools in, one SQLite trace out.
 *
 * The collector (weir run, weir collect) and `weir import` drive this; it knows no process, signal
 * or terminal. One importer writes one trace. Rows are inserted in batched transactions while
 * programs run (WAL), so the trace can be queried live; block lifetimes and modules of frames are
 * made by finish(). */
#ifndef WEIR_REPORTS_IMPORT_H
#define WEIR_REPORTS_IMPORT_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"

typedef struct weir_importer weir_importer;

typedef struct weir_importer_options {
  bool overwrite; /* an existing file is replaced, unless somebody writes it or it is not ours;
                     otherwise it must not exist, or be an empty file of ours */
  bool merge;     /* a trace that is there is added to: what it lacks of the spools that it knows
                     and all of the others; `overwrite` does not count then */
  const char *command; /* the traced command line, for the trace's meta table (borrowed), or NULL */
  void (*progress)(void *context, uint64_t events_done, uint64_t events_total_guess); /* or NULL */
  void *progress_context;
} weir_importer_options;

/* Why a spool ended, for the process row. */
typedef enum weir_end_reason {
  WEIR_END_UNKNOWN = 0,
  WEIR_END_EXIT,
  WEIR_END_SIGNAL,
  WEIR_END_EXEC,
  WEIR_END_GONE
} weir_end_reason;

/* Creates the trace file (*out new), mode 0600, and locks it until the importer is closed. Errors:
 * EIO (with the path and SQLite's reason), ENOSPC. */
weir_status weir_importer_open(weir_importer **out, const char *database,
                               const weir_importer_options *options);

/* Adds a spool file; `live`: its process may still write. *number: its handle. */
weir_status weir_importer_add(weir_importer *im, const char *spool_path, bool live,
                              uint32_t *number);

/* Imports what has been committed since the last poll, over all spools. *events: how many rows were
 * added (may be NULL). On ENOSPC or EIO nothing of the failed batch is in the file and nothing is
 * lost: the spools still hold it, and the next poll tries again. */
weir_status weir_importer_poll(weir_importer *im, uint64_t *events);

/* The writer of spool `number` is gone: the rest is imported (final drain), and its end recorded.
 * `detail`: exit status or signal number, -1 unknown. */
weir_status weir_importer_end(weir_importer *im, uint32_t number, weir_end_reason reason,
                              int detail);

/* The same in two steps, for many at once: the ends of all that were drained are in the trace after
 * the commit. */
weir_status weir_importer_drain(weir_importer *im, uint32_t number, weir_end_reason reason,
                                int detail);
weir_status weir_importer_commit(weir_importer *im);

/* Whether a call succeeded that only a device can do: memory, a copy, a launch. */
bool weir_importer_reached(const weir_importer *im);

/* The caller found that there is no driver, and why; for a trace that reached no device. */
void weir_importer_no_driver(weir_importer *im, const char *why);

/* Why no GPU was reached (new), or NULL: one was, or nobody knows. */
char *weir_importer_no_gpu(const weir_importer *im);

/* The caller started a program that Weir is not in; `why` in words. */
weir_status weir_importer_unseen(weir_importer *im, const char *path, const char *why);

/* Lifetimes (bytes of frees, live and peak), WAL folded in; the trace is then complete. */
weir_status weir_importer_finish(weir_importer *im);

/* Always succeeds; an unfinished trace stays readable. */
void weir_importer_close(weir_importer *im);

/* Closes, and removes the trace that weir_importer_open() made. */
void weir_importer_discard(weir_importer *im);

/* Events that processes dropped, as far as their spools were drained; *why: the first reason, an
 * errno (weir_spool_drop_reason()). */
uint64_t weir_importer_dropped(const weir_importer *im, int *why);

/* Whether the trace was there and is added to; and whether it knows a spool, or others of its
 * folder. Before anything is added. */
bool weir_importer_merges(const weir_importer *im);
weir_status weir_importer_knows(weir_importer *im, const char *spool_path, bool *known);

/* Events imported so far, all spools. */
uint64_t weir_importer_events(const weir_importer *im);

#endif
