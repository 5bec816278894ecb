/* interval.h: the mean of measured differences, and between which bounds it lies. */
#ifndef WEIR_TOOLS_WEIR_PROVE_INTERVAL_H
#define WEIR_TOOLS_WEIR_PROVE_INTERVAL_H

#include <stdbool.h>

typedef struct interval {
  double mean, low, high; /* low and high hold the true mean with a confidence of 95 % */
  bool known;             /* false: of one difference, or of none, nothing more than it is known */
} interval;

/* Returns the interval by Student's t: the differences are taken to scatter as sums of many small
 * causes do. */
interval interval_of(const double *differences, unsigned count);

/* Returns the factor of the standard error: the 97.5th percentile of Student's t with that many
 * degrees of freedom, from 1. */
double interval_factor(unsigned freedom);

#endif
