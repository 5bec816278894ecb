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

typedef struct trace_importer trace_importer;

typedef struct importer_options {
  bool overwrite; /* an existing file is replaced, unless somebody writes it or it is not ours;
                     otherwise it must not exist, or be an empty file of ours */
  bool merge;     /* a trace that is there is added to: what it lacks of the spools that it knows
                     and all of the others; `overwrite` does not count then */
  const char *command; /* the traced command line, for the trace's meta table (borrowed), or NULL */
  void (*progress)(void *context, uint64_t events_done, uint64_t events_total_guess); /* or NULL */
  void *progress_context;
} importer_options;

/* Why a spool ended, for the process row. */
typedef enum importer_end_reason {
  WEIR_END_UNKNOWN = 0,
  WEIR_END_EXIT,
  WEIR_END_SIGNAL,
  WEIR_END_EXEC,
  WEIR_END_GONE
} importer_end_reason;

/* Creates the trace file (*out new), mode 0600, and locks it until the importer is closed. Errors:
 * EIO (with the path and SQLite's reason), ENOSPC. */
weir_status importer_open(trace_importer **out, const char *database,
                          const importer_options *options);

/* Adds a spool file; `live`: its process may still write. *number: its handle. */
weir_status importer_add(trace_importer *im, const char *spool_path, bool live, uint32_t *number);

/* Imports what has been committed since the last poll, over all spools. *events: how many rows were
 * added (may be NULL). On ENOSPC or EIO nothing of the failed batch is in the file and nothing is
 * lost: the spools still hold it, and the next poll tries again. */
weir_status importer_poll(trace_importer *im, uint64_t *events);

/* For a second reader of the same spools: `read` is called in each poll before what was imported is
 * handed back to the programs, and so may be overwritten. NULL: nobody is called. */
void importer_read_too(trace_importer *im, void (*read)(void *context), void *context);

/* The writer of spool `number` is gone: the rest is imported (final drain), and its end recorded.
 * `detail`: exit status or signal number, -1 unknown. */
weir_status importer_end(trace_importer *im, uint32_t number, importer_end_reason reason,
                         int detail);

/* The same in two steps, for many at once: the ends of all that were drained are in the trace after
 * the commit. */
weir_status importer_drain(trace_importer *im, uint32_t number, importer_end_reason reason,
                           int detail);
weir_status importer_commit(trace_importer *im);

/* Whether a call succeeded that only a device can do: memory, a copy, a launch. */
bool importer_reached(const trace_importer *im);

/* The caller found that there is no driver, and why; for a trace that reached no device. */
void importer_no_driver(trace_importer *im, const char *why);

/* Why no GPU was reached (new), or NULL: one was, or nobody knows. */
char *importer_no_gpu(const trace_importer *im);

/* The caller started a program that Weir is not in; `why` in words. */
weir_status importer_unseen(trace_importer *im, const char *path, const char *why);

/* How much of a device is in use, by whomever, by NVML; WEIR_USAGE_UNKNOWN: it does not know. */
#define WEIR_USAGE_UNKNOWN UINT64_MAX
typedef struct importer_usage {
  const char *bus;                /* its PCI bus id, 0000:3B:00.0; borrowed */
  uint64_t time;                  /* CLOCK_MONOTONIC, ns */
  uint64_t total, used, reserved; /* bytes; reserved: by the driver for itself, not in `used` */
  uint64_t of_run, of_others;     /* of `used`: of the traced processes, of other CUDA programs */
} importer_usage;

/* Not before the first spool was added, nor where a trace is added to: nothing is kept then. */
weir_status importer_add_usage(trace_importer *im, const importer_usage *u);

/* Lifetimes (bytes of frees, live and peak), WAL folded in; the trace is then complete. */
weir_status importer_finish(trace_importer *im);

/* Always succeeds; an unfinished trace stays readable. */
void importer_close(trace_importer *im);

/* Closes, and removes the trace that importer_open() made. */
void importer_discard(trace_importer *im);

/* Events that processes dropped, as far as their spools were drained; *why: the first reason, an
 * errno (spool_drop_reason()). */
uint64_t importer_dropped(const trace_importer *im, int *why);

/* Whether the trace was there and is added to; and whether it knows a spool, or others of its
 * folder. Before anything is added. */
bool importer_merges(const trace_importer *im);
weir_status importer_knows(trace_importer *im, const char *spool_path, bool *known);

/* Events imported so far: of all spools; of one whose end is not in the trace yet (else 0). */
uint64_t importer_events(const trace_importer *im);
uint64_t importer_events_of(const trace_importer *im, uint32_t number);

#endif
