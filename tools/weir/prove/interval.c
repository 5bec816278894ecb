/* interval.c: see interval.h. */
#include "tools/weir/prove/interval.h"

#include <math.h>
#include <stddef.h>

/* Percentiles as tables of the distribution have them (NIST/SEMATECH e-Handbook of Statistical
 * Methods, 1.3.6.7.2); above 30 the next lower row serves, which is on the safe side. */
double interval_factor(unsigned freedom)
{
  static const double first[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                 2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                 2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                 2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
  static const struct {
    unsigned from;
    double factor;
  } further[] = {{100, 1.984}, {60, 2.000}, {40, 2.021}, {30, 2.042}};
  if (freedom <= sizeof first / sizeof *first) return first[freedom ? freedom - 1 : 0];
  size_t i = 0;
  while (freedom < further[i].from)
    i++;
  return further[i].factor;
}

interval interval_of(const double *differences, unsigned count)
{
  interval n = {0};
  double squares = 0;
  for (unsigned i = 0; i < count; i++)
    n.mean += differences[i] / count;
  for (unsigned i = 0; i < count; i++)
    squares += (differences[i] - n.mean) * (differences[i] - n.mean);
  n.low = n.high = n.mean;
  n.known = count > 1;
  if (!n.known) return n;
  double error = sqrt(squares / (count - 1) / count), half = interval_factor(count - 1) * error;
  n.low -= half, n.high += half;
  return n;
}
