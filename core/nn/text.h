/* text.h: numbers as Python prints them, for what layers state of themselves. */
#ifndef WEIR_NN_TEXT_H
#define WEIR_NN_TEXT_H

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct layer_text {
  char at[128];
} layer_text;

/* repr(x): the fewest digits that read back as x; "1.0". */
static inline const char *float_text(layer_text *out, double x)
{
  for (int digits = 1; digits <= 17; digits++) {
    (void)snprintf(out->at, sizeof out->at, "%.*g", digits, x);
    if (strtod(out->at, NULL) == x) break;
  }
  if (strchr(out->at, 'e') && fabs(x) >= 1 && fabs(x) < 1e16)
    (void)snprintf(out->at, sizeof out->at, "%.0f", x); /* "2e+01" */
  if (!strpbrk(out->at, ".en")) strncat(out->at, ".0", sizeof out->at - strlen(out->at) - 1);
  return out->at;
}

/* "(2, 3)", "(2,)". */
static inline const char *tuple_text(layer_text *out, const int64_t *v, int count)
{
  size_t at = 0, room = sizeof out->at;
  out->at[0] = 0;
  for (int i = 0; i < count && at < room; i++) {
    int n = snprintf(out->at + at, room - at, "%s%" PRId64, i ? ", " : "(", v[i]);
    at += n > 0 ? (size_t)n : 0;
  }
  if (at < room) (void)snprintf(out->at + at, room - at, count == 1 ? ",)" : ")");
  return out->at;
}

/* "2" where all are the same, else a tuple. */
static inline const char *sizes_text(layer_text *out, const int64_t *v, int count)
{
  bool same = true;
  for (int i = 1; i < count; i++)
    same = same && v[i] == v[0];
  if (!same) return tuple_text(out, v, count);
  (void)snprintf(out->at, sizeof out->at, "%" PRId64, v[0]);
  return out->at;
}

static inline const char *bool_text(bool x)
{
  return x ? "True" : "False";
}

#endif
