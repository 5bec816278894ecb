/* synth.h: synthetic spools, written with core's own writer, and traces made of them.
 *
 * One process has one spool; a synthetic thread is a spool_writer of its own. Time is a number the
 * test moves: a tick is a ns here, counted from the spool's opening. */
#ifndef WEIR_TESTS_REPORTS_SYNTH_H
#define WEIR_TESTS_REPORTS_SYNTH_H

#include <jansson.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/trace/api.h"
#include "core/trace/event.h"
#include "core/trace/spool.h"
#include "reports/import/import.h"
#include "reports/write/report.h"

/* A fresh empty folder of this test (static buffer), removed by synth_clean(). */
const char *synth_dir(void);
void synth_clean(void);

/* Opens a new spool in `dir`; later synth_event() calls write there. */
void synth_open(const char *dir);
void synth_open_limited(const char *dir, uint64_t limit_bytes);

/* The path of the newest spool in the folder (static buffer). */
const char *synth_spool(void);

/* Synthetic thread `n`, 0-63. */
spool_writer *synth_thread(int n);
void synth_close(void); /* hands all threads' chunks over and closes the spool */

/* The function number of `name`; the test fails when there is none. */
uint16_t synth_api(const char *name);

/* Writes `e` on thread n: start = opening + at_ns, for ns long. Flags, api as given. False:
 * dropped. */
bool synth_event(int n, uint64_t at_ns, uint64_t ns, trace_event e);

/* Shorthands. */
void synth_alloc(int n, uint64_t at, uint64_t ns, uint64_t pointer, uint64_t bytes, int device,
                 int mem);
void synth_free(int n, uint64_t at, uint64_t ns, uint64_t pointer);
void synth_copy(int n, uint64_t at, uint64_t ns, int copy, uint64_t bytes, int device,
                int src_device, int mem, int src_mem, int flags);
void synth_sync(int n, uint64_t at, uint64_t ns, int type);
bool synth_extended(int n, event_kind kind, uint64_t a, uint64_t b, const void *payload,
                    size_t bytes);
/* An executable graph is made of these nodes. */
bool synth_graph(int n, uint64_t at, uint64_t exec, const graph_node_info *nodes, size_t count);
bool synth_stack(int n, uint32_t id, const uint64_t *frames, size_t depth);
void synth_stamp(uint64_t bytes, int64_t mtime_ns); /* of the modules to come; 0: none */
bool synth_module(int n, uint64_t base, uint64_t start, uint64_t end, const char *path,
                  const void *build_id, size_t build_id_bytes);

/* Imports the spools (NULL-ended list) into dir/NAME; returns its path (static). */
const char *synth_import(const char *name, const char *const *spools);
/* The same of what this process has written, which is closed: to t.db. */
const char *synth_import_this(void);

/* One number of a trace. */
int64_t synth_number(const char *trace, const char *sql);

/* Changes a trace. */
void synth_change(const char *trace, const char *sql);

/* Numbers below n, the same ones after the same seed, which is not 0. */
void synth_seed(uint64_t seed);
uint64_t synth_below(uint64_t n);

/* The report: JSON (new) or text (new, malloc). */
json_t *synth_json(const char *trace);
char *synth_text(const char *trace, int width);
int64_t synth_total(const json_t *report, const char *name);

#endif
