/* units.c: see units.h. */
#include "reports/base/units.h"
#include <stdio.h>
#include <string.h>

/* Three significant digits. */
static wr_word print_significant(double value, const char *unit)
{
  wr_word w;
  int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  (void)snprintf(w.text, sizeof(w.text), "%.*f %s", digits, value, unit);
  return w;
}

wr_word wr_bytes(uint64_t bytes)
{
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  wr_word w;
  if (bytes < 1024) {
    (void)snprintf(w.text, sizeof(w.text), "%u B", (unsigned)bytes);
    return w;
  }
  double value = (double)bytes / 1024;
  int unit = 0;
  while (value >= 1023.5 && unit < 5)
    value /= 1024, unit++;
  return print_significant(value, units[unit]);
}

wr_word wr_count(uint64_t n)
{
  wr_word w;
  char digits[24];
  int length = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n), at = 0;
  for (int i = 0; i < length; i++) {
    if (i && (length - i) % 3 == 0) w.text[at++] = ',';
    w.text[at++] = digits[i];
  }
  w.text[at] = '\0';
  return w;
}

wr_word wr_counted(uint64_t n, const char *one, const char *more)
{
  wr_word w = wr_count(n);
  size_t used = strlen(w.text);
  (void)snprintf(w.text + used, sizeof(w.text) - used, " %s", n == 1 ? one : more);
  return w;
}

wr_word wr_duration(uint64_t ns)
{
  if (ns < 1000) {
    wr_word w;
    (void)snprintf(w.text, sizeof(w.text), "%u ns", (unsigned)ns);
    return w;
  }
  if ((double)ns < 999.5e3) return print_significant((double)ns / 1e3, "µs");
  if ((double)ns < 999.5e6) return print_significant((double)ns / 1e6, "ms");
  if ((double)ns < 600e9) return print_significant((double)ns / 1e9, "s");
  return print_significant((double)ns / 60e9, "min");
}

wr_word wr_speed(uint64_t bytes, uint64_t ns)
{
  wr_word none = {"-"};
  if (!ns) return none;
  double speed = (double)bytes / (double)ns; /* GB/s */
  if (speed >= 0.9995) return print_significant(speed, "GB/s");
  if (speed >= 0.9995e-3) return print_significant(speed * 1e3, "MB/s");
  return print_significant(speed * 1e6, "kB/s");
}

wr_word wr_percent(uint64_t part, uint64_t whole)
{
  wr_word w = {"-"};
  double value = whole ? 100.0 * (double)part / (double)whole : 0;
  if (whole) (void)snprintf(w.text, sizeof(w.text), value < 9.95 ? "%.1f %%" : "%.0f %%", value);
  return w;
}
