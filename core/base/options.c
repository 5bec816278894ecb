/* options.c: see options.h. Works on the text in place; no locale, no memory, no errno. */
#include "core/base/options.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Reads decimal digits at *text and moves past them; false: none there, or more than 64 bits. */
static bool digits(uint64_t *out, const char **text)
{
  const char *p = *text;
  uint64_t value = 0;
  for (; *p >= '0' && *p <= '9'; p++)
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
      return false;
  if (p == *text) return false;
  *text = p;
  *out = value;
  return true;
}

/* Shift of a size suffix, -1 when it is none. */
static int suffix_shift(const char *suffix)
{
  static const char letters[] = "KMGT";
  if (!*suffix || strcasecmp(suffix, "B") == 0) return 0;
  const char *at = strchr(letters, *suffix & ~0x20);
  if (!at || !*at) return -1;
  suffix++;
  if (*suffix && strcasecmp(suffix, "B") != 0 && strcasecmp(suffix, "iB") != 0) return -1;
  return (int)(at - letters + 1) * 10;
}

weir_status option_size(uint64_t *out, const char *name, const char *text, uint64_t min)
{
  const char *rest = text;
  uint64_t value;
  int shift;
  if (!digits(&value, &rest) || (shift = suffix_shift(rest)) < 0 || value > UINT64_MAX >> shift)
    return fail_invalid("%s=%s is not a size; give bytes with an optional K, M, G or T, as 64M",
                        name, text);
  value <<= shift;
  if (value < min)
    return fail_invalid("%s=%s is %llu bytes; the least is %llu", name, text,
                        (unsigned long long)value, (unsigned long long)min);
  *out = value;
  return WEIR_OK;
}

weir_status option_time(uint64_t *out, const char *name, const char *text)
{
  static const struct {
    const char *unit;
    uint64_t ns;
  } units[] = {{"ms", UINT64_C(1000000)},
               {"s", UINT64_C(1000000000)},
               {"min", UINT64_C(60000000000)},
               {"h", UINT64_C(3600000000000)}};
  const size_t digits = strspn(text, "0123456789");
  uint64_t value = 0, ns;
  for (size_t i = 0; i < digits && digits < 10; i++)
    value = value * 10 + (uint64_t)(text[i] - '0');
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    if (!value || strcmp(text + digits, units[i].unit) != 0) continue;
    if (__builtin_mul_overflow(value, units[i].ns, &ns)) break;
    *out = ns;
    return WEIR_OK;
  }
  return fail_invalid("%s=%s is not a time, as 500ms, 30s, 5min or 2h", name, text);
}

weir_status option_bool(bool *out, const char *name, const char *text)
{
  static const char *const words[] = {"off", "on", "no", "yes", "false", "true", "0", "1"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (!strcasecmp(text, words[i])) {
      *out = i & 1;
      return WEIR_OK;
    }
  return fail_invalid("%s=%s is neither on nor off; valid: on, off, yes, no, true, false, 1, 0",
                      name, text);
}

weir_status option_number(uint64_t *out, const char *name, const char *text, uint64_t min,
                          uint64_t max)
{
  const char *rest = text;
  uint64_t value;
  if (!digits(&value, &rest) || *rest || value < min || value > max)
    return fail_invalid("%s=%s is not a number from %llu to %llu", name, text,
                        (unsigned long long)min, (unsigned long long)max);
  *out = value;
  return WEIR_OK;
}

weir_status option_off_or_number(uint64_t *out, const char *name, const char *text, uint64_t max)
{
  if (!strcasecmp(text, "off")) {
    *out = 0;
    return WEIR_OK;
  }
  if (!option_number(out, name, text, 1, max)) return WEIR_OK;
  return fail_invalid("%s=%s is neither off nor a number from 1 to %llu", name, text,
                      (unsigned long long)max);
}

/* What is wrong with a word, and which would be right. */
static weir_status not_a_choice(const char *name, const char *text, const char *const *choices)
{
  char valid[256] = "";
  size_t used = 0;
  for (unsigned i = 0; choices[i] && used < sizeof valid; i++)
    used += (size_t)snprintf(valid + used, sizeof valid - used, "%s%s", i ? ", " : "", choices[i]);
  return fail_invalid("%s=%s is not known; valid: %s", name, text, valid);
}

weir_status option_choice(unsigned *out, const char *name, const char *text,
                          const char *const *choices)
{
  for (unsigned i = 0; choices[i]; i++)
    if (!strcmp(text, choices[i])) {
      *out = i;
      return WEIR_OK;
    }
  return not_a_choice(name, text, choices);
}

weir_status option_choices(unsigned *out, const char *name, const char *text,
                           const char *const *choices)
{
  unsigned bits = 0;
  const char *at = text;
  for (bool more = strcmp(text, "none") != 0; more; at++) {
    size_t n = strcspn(at, ",");
    unsigned i = 0;
    while (choices[i] && (strlen(choices[i]) != n || strncmp(at, choices[i], n) != 0))
      i++;
    if (!choices[i]) return not_a_choice(name, text, choices);
    bits |= 1u << i;
    at += n;
    more = *at != 0;
  }
  *out = bits;
  return WEIR_OK;
}
