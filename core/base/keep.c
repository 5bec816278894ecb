/* keep.c: see keep.h. */
#include "core/base/keep.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "core/base/options.h"

static const struct {
  const char *unit;
  uint64_t ns;
} units[] = {{"ms", UINT64_C(1000000)},
             {"s", UINT64_C(1000000000)},
             {"min", UINT64_C(60000000000)},
             {"h", UINT64_C(3600000000000)}};

/* Whether `text` has the form of a time. */
static bool read_time(uint64_t *ns, const char *text)
{
  const size_t digits = strspn(text, "0123456789");
  uint64_t value = 0;
  if (!digits || digits > 9) return false;
  for (size_t i = 0; i < digits; i++)
    value = value * 10 + (uint64_t)(text[i] - '0');
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (value && !strcmp(text + digits, units[i].unit))
      return !__builtin_mul_overflow(value, units[i].ns, ns);
  return false;
}

static weir_status read_part(keep_size *k, const char *name, const char *text)
{
  const size_t length = strlen(text);
  if (read_time(&k->ns, text)) return WEIR_OK;
  if (length && strspn(text, "0123456789") == length - 1 && text[length - 1] == 'm')
    return fail_invalid("%s=%s is a size or a time: give %.*sM or %.*smin", name, text,
                        (int)length - 1, text, (int)length - 1, text);
  weir_status st = option_size(&k->bytes, name, text, KEEP_LEAST);
  if (!st && k->bytes > KEEP_MOST)
    return fail_invalid("%s=%s is more than is kept of a process: 2G", name, text);
  return st;
}

weir_status keep_read(keep_size *out, const char *name, const char *text)
{
  char part[64];
  keep_size k = {.bytes = KEEP_USUAL};
  const char *comma = strchr(text, ',');
  const size_t first = comma ? (size_t)(comma - text) : strlen(text);
  if (!strcmp(text, "off")) {
    *out = (keep_size){0};
    return WEIR_OK;
  }
  if (first >= sizeof part)
    return fail_invalid("%s=%s is not a size or a time, as 64M, 30s or 64M,30s", name, text);
  (void)snprintf(part, sizeof part, "%.*s", (int)first, text);
  weir_status st = read_part(&k, name, part);
  if (!st && comma) st = read_part(&k, name, comma + 1);
  if (!st) *out = k;
  return st;
}
