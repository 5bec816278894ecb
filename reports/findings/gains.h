/* gains.h: what a run gains by findings that overlap, and how sure the sum of each is.
 *
 * A finding saves *pieces* of time, each from the start of a call on. Pieces overlap where two
 * rules found one call, where calls of several threads go on at one time, where a gap of the device
 * follows a wait: time that two pieces share is gained once. It is counted for the finding that
 * stands first, so that what findings add to those in front of them adds up to what all of them
 * gain.
 *
 * The interval: the pieces of a finding, in order of time, are divided into *tenths* of as many
 * pieces each (ten to nineteen of them). As the tenths differ, so does what another run of this
 * length would have saved: the interval is that of the mean of a tenth, at 95 %, times their
 * number. */
#ifndef WEIR_REPORTS_FINDINGS_GAINS_H
#define WEIR_REPORTS_FINDINGS_GAINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  WR_GAIN_TENTHS = 20,      /* at so many two become one */
  WR_GAIN_LEAST_PIECES = 20 /* of fewer there is no interval */
};

typedef struct wr_gain {
  bool queued;          /* its pieces are a device's, and follow one another: set by the owner */
  uint64_t added;       /* ns that no finding in front of it gains */
  uint64_t sum, pieces; /* of pieces: ns, and how many */
  uint64_t tenth[WR_GAIN_TENTHS];  /* ns; the last may not be full */
  uint64_t per_tenth, tenths, has; /* pieces of a full one; begun ones; pieces of the last one */
} wr_gain;

/* A piece that goes on. */
typedef struct wr_gain_piece {
  size_t rank;
  uint64_t end;
} wr_gain_piece;

typedef struct wr_gains {
  wr_gain *gain;        /* owned: by rank, the finding that stands first has 0 */
  wr_gain_piece *piece; /* owned: in order of rank, one of each at most */
  size_t count, pieces;
  uint64_t now; /* ns: what is before is counted */
} wr_gains;

/* Of so many findings. False: out of memory. */
bool wr_gains_open(wr_gains *x, size_t findings);
void wr_gains_close(wr_gains *x);

/* Pieces come in order of their start. */
void wr_gains_add(wr_gains *x, size_t rank, uint64_t start, uint64_t ns);

/* All pieces have been added. */
void wr_gains_end(wr_gains *x);

/* False: there are too few pieces. */
bool wr_gain_interval(const wr_gain *g, uint64_t *low, uint64_t *high);

#endif
