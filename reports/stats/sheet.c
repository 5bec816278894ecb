/* sheet.c: see sheet.h. */
#include "reports/stats/sheet.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/escape.h"
#include "reports/base/util.h"

enum { WIDEST = 100, NUMBER = 400 /* bytes of any double with decimals and separators */ };

const char *const sheet_formats[SHEET_FORMATS] = {[SHEET_COLUMN] = "column",
                                                  [SHEET_TABLE] = "table",
                                                  [SHEET_CSV] = "csv",
                                                  [SHEET_TSV] = "tsv",
                                                  [SHEET_JSON] = "json"};

static bool aligned(const sheet *s)
{
  return s->format == SHEET_COLUMN || s->format == SHEET_TABLE;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void write_number(char text[NUMBER], const sheet_cell *c)
{
  if (c->decimals)
    (void)snprintf(text, NUMBER, "%.*f", c->decimals, c->number);
  else
    (void)snprintf(text, NUMBER, "%" PRId64, c->whole);
}

/* "1234567.5" as "1,234,567.5" */
static void separate(char to[NUMBER], const char *from)
{
  size_t sign = *from == '-', digits = strcspn(from, ".") - sign, at = 0;
  if (sign) to[at++] = '-';
  for (size_t i = 0; i < digits; i++) {
    if (i && (digits - i) % 3 == 0) to[at++] = ',';
    to[at++] = from[sign + i];
  }
  (void)snprintf(to + at, NUMBER - at, "%s", from + sign + digits);
}

/* ---- columns and tables ---------------------------------------------------------------------- */

static size_t width_of(const char *text)
{
  size_t width = 0;
  for (; *text; text++)
    width += ((unsigned char)*text & 0xc0) != 0x80;
  return width;
}

/* Bytes of the first `width` characters. */
static size_t bytes_of(const char *text, size_t width)
{
  size_t at = 0;
  for (; text[at]; at++)
    if (((unsigned char)text[at] & 0xc0) != 0x80 && width-- == 0) break;
  return at;
}

/* As it is shown; new. */
static char *shown_cell(const sheet_cell *c)
{
  char plain[NUMBER], text[NUMBER];
  if (c->text) {
    size_t bytes = strnlen(c->text, (size_t)4 * (WIDEST + 1));
    return wr_show_unseen(wr_text(c->text, bytes, true));
  }
  if (!c->there) return strdup("");
  write_number(plain, c);
  separate(text, plain);
  return strdup(text);
}

static void put_padding(FILE *out, size_t n, char with)
{
  while (n-- > 0)
    (void)putc(with, out);
}

static void put_text_in(const sheet *s, int column, const char *text, size_t left)
{
  size_t width = width_of(text), most = s->width[column];
  if (width > most) {
    (void)fwrite(text, 1, bytes_of(text, most - 1), s->out);
    (void)fputs("\xe2\x80\xa6", s->out);
    return;
  }
  if (left > most - width) left = most - width;
  put_padding(s->out, left, ' ');
  (void)fputs(text, s->out);
  put_padding(s->out, most - width - left, ' ');
}

static void put_line(const sheet *s, char *const *texts)
{
  bool table = s->format == SHEET_TABLE;
  for (int i = 0; i < s->columns; i++) {
    (void)fputs(table ? "| " : i ? "  " : " ", s->out);
    put_text_in(s, i, texts[i], s->number[i] ? SIZE_MAX : 0);
    if (table) (void)putc(' ', s->out);
  }
  (void)fputs(table ? "|\n" : "\n", s->out);
}

static void put_rule(const sheet *s)
{
  bool table = s->format == SHEET_TABLE;
  for (int i = 0; i < s->columns; i++) {
    (void)fputs(table ? "+" : i ? "  " : " ", s->out);
    put_padding(s->out, s->width[i] + (table ? 2 : 0), '-');
  }
  (void)fputs(table ? "+\n" : "\n", s->out);
}

static void put_headings(const sheet *s)
{
  if (s->format == SHEET_TABLE) put_rule(s);
  for (int i = 0; i < s->columns; i++) {
    (void)fputs(s->format == SHEET_TABLE ? "| " : i ? "  " : " ", s->out);
    put_text_in(s, i, s->heading[i], (s->width[i] - width_of(s->heading[i])) / 2);
    if (s->format == SHEET_TABLE) (void)putc(' ', s->out);
  }
  (void)fputs(s->format == SHEET_TABLE ? "|\n" : "\n", s->out);
  put_rule(s);
}

static void forget_row(char **row, int columns)
{
  for (int i = 0; i < columns; i++) {
    free(row[i]);
    row[i] = NULL;
  }
}

/* The rows that wait, now that their widths are known. */
static void put_waiting(sheet *s)
{
  for (int i = 0; i < s->columns; i++) {
    s->width[i] = width_of(s->heading[i]);
    for (int r = 0; r < s->waiting; r++) {
      size_t width = width_of(s->ahead[r][i]);
      if (width > s->width[i]) s->width[i] = width < WIDEST ? width : WIDEST;
    }
  }
  put_headings(s);
  for (int r = 0; r < s->waiting; r++) {
    put_line(s, s->ahead[r]);
    forget_row(s->ahead[r], s->columns);
  }
  s->waiting = 0;
  s->begun = true;
}

static weir_status align_row(sheet *s, const sheet_cell *cells)
{
  char *one[SHEET_COLUMNS] = {0}, **row = s->begun ? one : s->ahead[s->waiting];
  bool whole = true;
  for (int i = 0; i < s->columns; i++) {
    row[i] = shown_cell(&cells[i]);
    whole = whole && row[i];
    if (!cells[i].text && cells[i].there) s->number[i] = true;
  }
  if (!whole) {
    forget_row(row, s->columns);
    return weir_fail(WEIR_ENOMEM, "statistics: out of host memory");
  }
  if (s->begun) {
    put_line(s, row);
    forget_row(row, s->columns);
  } else if (++s->waiting == SHEET_AHEAD)
    put_waiting(s);
  return WEIR_OK;
}

/* ---- formats for programs -------------------------------------------------------------------- */

static void put_value(const sheet *s, const sheet_cell *c)
{
  char number[NUMBER];
  if (c->text && s->format == SHEET_JSON)
    wr_put_json_text(s->out, c->text);
  else if (c->text && s->format == SHEET_CSV)
    wr_put_csv_text(s->out, c->text, "");
  else if (c->text)
    wr_put_tsv_text(s->out, c->text);
  else if (c->there) {
    write_number(number, c);
    (void)fputs(number, s->out);
  } else if (s->format == SHEET_JSON)
    (void)fputs("\"\"", s->out);
}

static void put_plain(const sheet *s, const sheet_cell *cells)
{
  for (int i = 0; i < s->columns; i++) {
    if (i) (void)putc(s->format == SHEET_CSV ? ',' : '\t', s->out);
    put_value(s, &cells[i]);
  }
  (void)putc('\n', s->out);
}

static void put_object(sheet *s, const sheet_cell *cells)
{
  (void)fputs(s->begun ? ",\n{" : "\n{", s->out);
  for (int i = 0; i < s->columns; i++) {
    if (i) (void)putc(',', s->out);
    wr_put_json_text(s->out, s->heading[i]);
    (void)putc(':', s->out);
    put_value(s, &cells[i]);
  }
  (void)putc('}', s->out);
  s->begun = true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static weir_status written(const sheet *s)
{
  return ferror(s->out) ? weir_fail_errno(WEIR_EIO, errno, "writing statistics") : WEIR_OK;
}

void sheet_begin(sheet *s, const char *title, const char *name)
{
  if (aligned(s)) {
    (void)fprintf(s->out, "\n ** %s (%s):\n\n", title, name);
    return;
  }
  if (s->format == SHEET_JSON) {
    (void)putc('[', s->out);
    return;
  }
  sheet_cell headings[SHEET_COLUMNS] = {0};
  for (int i = 0; i < s->columns; i++)
    headings[i].text = s->heading[i];
  put_plain(s, headings);
}

weir_status sheet_row(sheet *s, const sheet_cell *cells)
{
  weir_status status = WEIR_OK;
  if (aligned(s))
    status = align_row(s, cells);
  else if (s->format == SHEET_JSON)
    put_object(s, cells);
  else
    put_plain(s, cells);
  return status ? status : written(s);
}

weir_status sheet_end(sheet *s)
{
  if (aligned(s) && !s->begun) put_waiting(s);
  if (s->format == SHEET_TABLE) put_rule(s);
  if (aligned(s)) (void)putc('\n', s->out);
  if (s->format == SHEET_JSON) (void)fputs("\n]\n", s->out);
  return written(s);
}

void sheet_clear(sheet *s)
{
  for (int r = 0; r < SHEET_AHEAD; r++)
    forget_row(s->ahead[r], s->columns);
}
