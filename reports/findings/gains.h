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

typedef struct wr_gains {
  wr_gain *gain;   /* owned: by rank, the finding that stands first has 0 */
  uint64_t *end;   /* owned: by rank, ns, of the piece that goes on, where there is one: */
  uint64_t *going; /* owned: a bit for each rank, of 64 in a word */
  size_t count, words;
  size_t first; /* word: those before it have no bit */
  uint64_t now; /* ns: what is before is counted; pieces that ended there may have bits still */
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
