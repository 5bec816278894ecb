/* figures.h: what a tally holds as a few dozen numbers of one process, which a page of metrics and
 * `weir top` print.
 *
 * Everything is a sum over rows of the tally, so that at the end of a run each is what the same sum
 * over the trace is. Calls that failed or were captured into a graph copied and waited for nothing:
 * they are in none but `failures`. What launches of graphs copy is not in `copies`. */
#ifndef WEIR_REPORTS_METRICS_FIGURES_H
#define WEIR_REPORTS_METRICS_FIGURES_H

#include "reports/metrics/place.h"
#include "reports/tally/tally.h"

enum { WR_FIGURE_ROWS = 128, WR_FIGURE_SITES = 20 };

typedef enum wr_wait_cause {
  WR_WAIT_EVENT,  /* cudaEventSynchronize */
  WR_WAIT_STREAM, /* cudaStreamSynchronize */
  WR_WAIT_DEVICE, /* cudaDeviceSynchronize, cuCtxSynchronize */
  WR_WAIT_COPY,   /* a copy or memset that waits by the documentation */
  WR_WAIT_FREE,   /* a free that does */
  WR_WAIT_OTHER,  /* another call that does */
  WR_WAIT_CAUSES
} wr_wait_cause;

/* "event", "stream", "device", "copy", "free", "other". */
const char *wr_wait_cause_name(int cause);

/* "h2d", "d2h", "d2d", "h2h", "p2p", "unknown". */
const char *wr_figure_direction(int copy_kind);

/* Of memory_kind, and "registered" of WR_ACCOUNT_REGISTERED. */
const char *wr_memory_class_name(int class);

/* A sum by device and one thing more: kind of memory, direction. */
typedef struct wr_figure {
  uint16_t device; /* ordinal, WEIR_DEVICE_NONE: the host's */
  uint8_t what;
  uint64_t count, bytes, ns;
} wr_figure;

typedef struct wr_figure_list {
  wr_figure row[WR_FIGURE_ROWS];
  unsigned count;
} wr_figure_list;

typedef struct wr_live_figure {
  uint16_t device, class; /* as in wr_tally_account */
  uint64_t live, blocks, peak;
} wr_live_figure;

typedef struct wr_site_figure {
  char place[WR_PLACE_BYTES];
  uint64_t live, blocks;
} wr_site_figure;

typedef struct wr_figures {
  uint64_t events;
  wr_live_figure memory[WR_FIGURE_ROWS]; /* by device and kind; the sums of kinds are not there */
  unsigned memory_count;
  uint64_t live, peak;     /* of all devices together */
  wr_figure_list copies;   /* what: copy_kind; device: the copy's, of the host's alone none */
  wr_figure_list hits;     /* what: memory_kind: allocations out of a cache */
  wr_figure_list misses;   /* allocations that a cache did not have */
  wr_figure_list failures; /* allocations that failed */
  wr_figure_list cached;   /* bytes that frees left in caches, and nobody took since */
  wr_figure_list pooled;   /* bytes that the driver's pools have reserved and nobody uses */
  wr_figure_list used;     /* bytes of a device in use by whomever, when it was last asked */
  wr_figure waits[WR_WAIT_CAUSES];
  wr_site_figure site[WR_FIGURE_SITES]; /* of device memory, the most first */
  unsigned site_count;
  uint64_t other_live, other_blocks; /* of all other places */
  uint64_t left_out;                 /* rows that there was no room for */
} wr_figures;

/* Makes the figures of a tally. `ns_per_tick`: of the spool's clock. `namer`: as in place.h, or NULL.
 * Allocates; where there is no memory sites are left out. */
void wr_figures_of(wr_figures *out, const wr_tally_state *s, double ns_per_tick,
                   wr_place_namer namer, void *namer_context);

/* Adds what a process that has ended counted: no memory that is live, cached or in use. */
void wr_figures_add_ended(wr_figures *to, const wr_figures *ended);

#endif
