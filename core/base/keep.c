/* keep.c: see keep.h. */
#include "core/base/keep.h"

#include <stdio.h>
#include <string.h>
#include "core/base/options.h"

static weir_status read_part(keep_size *k, const char *name, const char *text)
{
  const size_t length = strlen(text);
  if (option_time(&k->ns, name, text) == WEIR_OK) return WEIR_OK;
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
