/* grid.c: see grid.h. */
#include "reports/grid.h"
#include <stdarg.h>
#include <string.h>

void wr_grid_row(wr_grid *g)
{
  if (g->rows < WR_GRID_ROWS) memset(g->cell[g->rows], 0, sizeof(g->cell[0]));
  g->rows++;
  g->column = 0;
}

void wr_grid_cell(wr_grid *g, const char *format, ...)
{
  if (!g->rows || g->rows > WR_GRID_ROWS || g->column >= WR_GRID_COLUMNS) return;
  va_list args;
  va_start(args, format);
  (void)vsnprintf(g->cell[g->rows - 1][g->column++], WR_GRID_CELL, format, args);
  va_end(args);
}

static bool begins_character(char c)
{
  return ((unsigned char)c & 0xc0) != 0x80;
}

size_t wr_text_width(const char *text)
{
  size_t n = 0;
  for (; *text; text++)
    n += begins_character(*text);
  return n;
}

size_t wr_put_fit(FILE *out, const char *text, size_t width)
{
  size_t need = wr_text_width(text), done = 0;
  if (!width) return 0;
  for (; *text; text++) {
    if (begins_character(*text)) {
      if (need > width && done == width - 1) {
        (void)fputs("…", out);
        return width;
      }
      done++;
    }
    (void)fputc(*text, out);
  }
  return done;
}

static void blanks(FILE *out, size_t n)
{
  while (n--)
    (void)fputc(' ', out);
}

/* The widths of the columns; the one that gives way gets what the others leave. */
static void measure(const wr_grid *g, size_t rows, size_t columns, int width, size_t *out)
{
  size_t sum = 2 + (columns - 1) * 2, flexible = columns;
  for (size_t c = 0; c < columns; c++) {
    out[c] = 0;
    for (size_t r = 0; r < rows; r++) {
      size_t n = wr_text_width(g->cell[r][c]);
      if (n > out[c]) out[c] = n;
    }
    sum += out[c];
    if (g->align[c] == 'f') flexible = c;
  }
  size_t limit = width > 20 ? (size_t)width : 20;
  if (flexible == columns || sum <= limit) return;
  size_t over = sum - limit;
  out[flexible] = out[flexible] > over + 8 ? out[flexible] - over : 8;
}

static void print_row(FILE *out, const wr_grid *g, size_t r, size_t columns, const size_t *widths)
{
  size_t last = 0;
  for (size_t c = 0; c < columns; c++)
    if (g->cell[r][c][0]) last = c;
  blanks(out, 2);
  for (size_t c = 0; c <= last; c++) {
    const char *text = g->cell[r][c];
    size_t n = wr_text_width(text);
    if (n > widths[c]) n = widths[c];
    if (g->align[c] == 'r') blanks(out, widths[c] - n);
    wr_put_fit(out, text, widths[c]);
    if (c == last) break;
    if (g->align[c] != 'r') blanks(out, widths[c] - n);
    blanks(out, 2);
  }
}

void wr_grid_print(FILE *out, wr_grid *g, int width, bool dim_first, bool color)
{
  size_t widths[WR_GRID_COLUMNS] = {0}, columns = strlen(g->align);
  size_t rows = g->rows < WR_GRID_ROWS ? g->rows : WR_GRID_ROWS;
  if (columns > WR_GRID_COLUMNS) columns = WR_GRID_COLUMNS;
  measure(g, rows, columns, width, widths);
  for (size_t r = 0; r < rows; r++) {
    bool dim = color && dim_first && r == 0;
    if (dim) (void)fputs("\033[2m", out);
    print_row(out, g, r, columns, widths);
    (void)fputs(dim ? "\033[0m\n" : "\n", out);
  }
  g->rows = 0;
}

/* ---- units ----------------------------------------------------------------------------------- */

/* Three significant digits. */
static wr_word three(double value, const char *unit)
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
  return three(value, units[unit]);
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

wr_word wr_duration(uint64_t ns)
{
  if (ns < 1000) {
    wr_word w;
    (void)snprintf(w.text, sizeof(w.text), "%u ns", (unsigned)ns);
    return w;
  }
  if ((double)ns < 999.5e3) return three((double)ns / 1e3, "µs");
  if ((double)ns < 999.5e6) return three((double)ns / 1e6, "ms");
  if ((double)ns < 600e9) return three((double)ns / 1e9, "s");
  return three((double)ns / 60e9, "min");
}

wr_word wr_speed(uint64_t bytes, uint64_t ns)
{
  wr_word none = {"-"};
  if (!ns) return none;
  double speed = (double)bytes / (double)ns; /* GB/s */
  if (speed >= 0.9995) return three(speed, "GB/s");
  if (speed >= 0.9995e-3) return three(speed * 1e3, "MB/s");
  return three(speed * 1e6, "kB/s");
}

wr_word wr_percent(uint64_t part, uint64_t whole)
{
  wr_word w = {"-"};
  double value = whole ? 100.0 * (double)part / (double)whole : 0;
  if (whole) (void)snprintf(w.text, sizeof(w.text), value < 9.95 ? "%.1f %%" : "%.0f %%", value);
  return w;
}
