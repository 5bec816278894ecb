/* rows.c: see rows.h. */
#include "reports/write/rows.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/escape.h"
#include "reports/base/util.h"

enum {
  WIDEST = 100, /* characters of a column */
  AHEAD = 100,  /* rows that say how wide columns are */
  NUMBER = 400  /* bytes of any double with decimals and separators */
};

static bool for_people(const wr_rows *r)
{
  return r->format == WR_ROWS_COLUMN || r->format == WR_ROWS_TABLE;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void write_number(char text[NUMBER], const wr_field *f)
{
  if (f->type == WR_FIELD_HANDLE)
    (void)snprintf(text, NUMBER, "0x%" PRIx64, (uint64_t)f->whole);
  else if (f->type == WR_FIELD_REAL)
    (void)snprintf(text, NUMBER, "%.*f", f->decimals, f->real);
  else
    (void)snprintf(text, NUMBER, "%" PRId64, f->whole);
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
static char *shown_field(const wr_field *f)
{
  char plain[NUMBER], text[NUMBER];
  if (f->type == WR_FIELD_NONE) return strdup("");
  if (f->type == WR_FIELD_TEXT) {
    size_t bytes = strnlen(f->text, (size_t)4 * (WIDEST + 1));
    return wr_show_unseen(wr_text(f->text, bytes, true));
  }
  write_number(plain, f);
  if (f->type == WR_FIELD_HANDLE) return strdup(plain);
  separate(text, plain);
  return strdup(text);
}

static void put_padding(FILE *out, size_t n, char with)
{
  while (n-- > 0)
    (void)putc(with, out);
}

static void put_text_in(const wr_rows *r, int column, const char *text, size_t left)
{
  size_t width = width_of(text), most = r->width[column];
  if (width > most) {
    (void)fwrite(text, 1, bytes_of(text, most - 1), r->out);
    (void)fputs("\xe2\x80\xa6", r->out);
    return;
  }
  if (left > most - width) left = most - width;
  put_padding(r->out, left, ' ');
  (void)fputs(text, r->out);
  put_padding(r->out, most - width - left, ' ');
}

static void put_line(const wr_rows *r, char *const *texts)
{
  bool table = r->format == WR_ROWS_TABLE;
  for (int i = 0; i < r->columns; i++) {
    (void)fputs(table ? "| " : i ? "  " : " ", r->out);
    put_text_in(r, i, texts[i], r->number[i] ? SIZE_MAX : 0);
    if (table) (void)putc(' ', r->out);
  }
  (void)fputs(table ? "|\n" : "\n", r->out);
}

static void put_rule(const wr_rows *r)
{
  bool table = r->format == WR_ROWS_TABLE;
  for (int i = 0; i < r->columns; i++) {
    (void)fputs(table ? "+" : i ? "  " : " ", r->out);
    put_padding(r->out, r->width[i] + (table ? 2 : 0), '-');
  }
  (void)fputs(table ? "+\n" : "\n", r->out);
}

static void put_headings(const wr_rows *r)
{
  if (r->format == WR_ROWS_TABLE) put_rule(r);
  for (int i = 0; i < r->columns; i++) {
    (void)fputs(r->format == WR_ROWS_TABLE ? "| " : i ? "  " : " ", r->out);
    put_text_in(r, i, r->heading[i], (r->width[i] - width_of(r->heading[i])) / 2);
    if (r->format == WR_ROWS_TABLE) (void)putc(' ', r->out);
  }
  (void)fputs(r->format == WR_ROWS_TABLE ? "|\n" : "\n", r->out);
  put_rule(r);
}

static void forget_row(char **row, int columns)
{
  for (int i = 0; i < columns; i++) {
    free(row[i]);
    row[i] = NULL;
  }
}

static weir_status no_memory_for_rows(const wr_rows *r)
{
  return weir_fail(WEIR_ENOMEM, "%s: out of host memory", r->what);
}

/* The rows that wait, now that their widths are known. */
static void put_waiting(wr_rows *r)
{
  for (int i = 0; i < r->columns; i++) {
    r->width[i] = width_of(r->heading[i]);
    for (int k = 0; k < r->waiting; k++) {
      size_t width = width_of(r->ahead[k * r->columns + i]);
      if (width > r->width[i]) r->width[i] = width < WIDEST ? width : WIDEST;
    }
  }
  put_headings(r);
  for (int k = 0; k < r->waiting; k++) {
    put_line(r, &r->ahead[k * r->columns]);
    forget_row(&r->ahead[k * r->columns], r->columns);
  }
  r->waiting = 0;
  r->begun = true;
}

static weir_status align_row(wr_rows *r, const wr_field *fields)
{
  char *one[WR_ROWS_COLUMNS] = {0}, **row = one;
  bool whole = true;
  if (!r->ahead && !(r->ahead = calloc((size_t)AHEAD * (size_t)r->columns, sizeof(*r->ahead))))
    return no_memory_for_rows(r);
  if (!r->begun) row = &r->ahead[r->waiting * r->columns];
  for (int i = 0; i < r->columns; i++) {
    row[i] = shown_field(&fields[i]);
    whole = whole && row[i];
    if (fields[i].type == WR_FIELD_WHOLE || fields[i].type == WR_FIELD_REAL) r->number[i] = true;
  }
  if (!whole) {
    forget_row(row, r->columns);
    return no_memory_for_rows(r);
  }
  if (r->begun) {
    put_line(r, row);
    forget_row(row, r->columns);
  } else if (++r->waiting == AHEAD)
    put_waiting(r);
  return WEIR_OK;
}

/* ---- formats for programs -------------------------------------------------------------------- */

static void put_json_field(FILE *out, const wr_field *f)
{
  if (f->type == WR_FIELD_TEXT) {
    wr_put_json_text(out, f->text);
    return;
  }
  char number[NUMBER] = "";
  bool quoted = f->type == WR_FIELD_HANDLE || f->type == WR_FIELD_NONE;
  if (f->type != WR_FIELD_NONE) write_number(number, f);
  if (quoted) (void)putc('"', out);
  (void)fputs(number, out);
  if (quoted) (void)putc('"', out);
}

static void put_plain_field(const wr_rows *r, const wr_field *f)
{
  char number[NUMBER];
  if (f->type == WR_FIELD_NONE) return;
  if (f->type != WR_FIELD_TEXT) {
    write_number(number, f);
    (void)fputs(number, r->out);
  } else if (r->format == WR_ROWS_CSV)
    wr_put_csv_text(r->out, f->text, r->quoted ? r->quoted : "");
  else
    wr_put_tsv_text(r->out, f->text);
}

static void put_plain(const wr_rows *r, const wr_field *fields)
{
  for (int i = 0; i < r->columns; i++) {
    if (i) (void)putc(r->format == WR_ROWS_CSV ? ',' : '\t', r->out);
    put_plain_field(r, &fields[i]);
  }
  (void)putc('\n', r->out);
}

static void put_object(wr_rows *r, const wr_field *fields)
{
  bool line = r->format == WR_ROWS_JSONL;
  char before = '{';
  if (!line) (void)fputs(r->begun ? ",\n" : "\n", r->out);
  for (int i = 0; i < r->columns; i++) {
    if (line && fields[i].type == WR_FIELD_NONE) continue;
    (void)fprintf(r->out, "%c\"%s\":", before, r->heading[i]);
    before = ',';
    put_json_field(r->out, &fields[i]);
  }
  (void)fputs(line ? "}\n" : "}", r->out);
  r->begun = true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static weir_status rows_written(const wr_rows *r)
{
  return ferror(r->out) ? weir_fail_errno(WEIR_EIO, errno, "writing %s", r->what) : WEIR_OK;
}

void wr_rows_begin(wr_rows *r, const char *title, const char *name)
{
  wr_field headings[WR_ROWS_COLUMNS] = {0};
  if (for_people(r) && title) (void)fprintf(r->out, "\n ** %s (%s):\n\n", title, name);
  if (r->format == WR_ROWS_JSON) (void)putc('[', r->out);
  if (r->format != WR_ROWS_CSV && r->format != WR_ROWS_TSV) return;
  for (int i = 0; i < r->columns; i++)
    headings[i] = (wr_field){.type = WR_FIELD_TEXT, .text = r->heading[i]};
  put_plain(r, headings);
}

weir_status wr_rows_put(wr_rows *r, const wr_field *fields)
{
  weir_status st = WEIR_OK;
  if (for_people(r))
    st = align_row(r, fields);
  else if (r->format == WR_ROWS_CSV || r->format == WR_ROWS_TSV)
    put_plain(r, fields);
  else
    put_object(r, fields);
  return st ? st : rows_written(r);
}

weir_status wr_rows_end(wr_rows *r)
{
  if (for_people(r) && !r->begun) put_waiting(r);
  if (r->format == WR_ROWS_TABLE) put_rule(r);
  if (for_people(r)) (void)putc('\n', r->out);
  if (r->format == WR_ROWS_JSON) (void)fputs("\n]\n", r->out);
  return rows_written(r);
}

void wr_rows_clear(wr_rows *r)
{
  if (r->ahead) forget_row(r->ahead, AHEAD * r->columns);
  free(r->ahead);
  r->ahead = NULL;
}
