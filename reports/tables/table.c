/* table.c: see table.h. */
#include "reports/tables/table.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"
#include "reports/render/grid.h"

static char *clean(const char *text)
{
  return wr_text(text, strlen(text), true);
}

wr_named_table *wr_tables_add(wr_tables *t, const char *name, const char *title,
                              const wr_column *columns, size_t count)
{
  wr_named_table *x = calloc(1, sizeof(*x));
  wr_column *copy = calloc(count, sizeof(*copy));
  char *words = clean(title), *own_name = clean(name);
  if (!x || !copy || !words || !own_name ||
      !wr_grow(&t->table, &t->capacity, t->count + 1, sizeof(wr_named_table *))) {
    t->failed = true;
    free(words);
    free(own_name);
    free(copy);
    free(x);
    return NULL;
  }
  memcpy(copy, columns, count * sizeof(*copy));
  *x =
      (wr_named_table){.name = own_name, .title = words, .column = copy, .columns = count, .of = t};
  return t->table[t->count++] = x;
}

void wr_tables_note(wr_tables *t, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  char *text = wr_vformat(format, args);
  va_end(args);
  char *words = text ? clean(text) : NULL;
  free(text);
  if (words && wr_grow(&t->note, &t->note_capacity, t->notes + 1, sizeof(char *))) {
    t->note[t->notes++] = words;
    return;
  }
  t->failed = true;
  free(words);
}

void wr_tables_free(wr_tables *t)
{
  for (size_t i = 0; i < t->count; i++) {
    wr_named_table *x = t->table[i];
    for (size_t k = 0; k < x->rows * x->columns; k++) {
      free(x->value[k].text);
      free(x->value[k].file);
    }
    free(x->value);
    free(x->name);
    free(x->title);
    free(x->aside);
    free(x->column);
    free(x);
  }
  for (size_t i = 0; i < t->notes; i++)
    free(t->note[i]);
  free(t->note);
  free(t->table);
  free(t->trace);
  free(t->scope);
  *t = (wr_tables){0};
}

weir_status wr_tables_no_memory(const wr_tables *t)
{
  return weir_fail(WEIR_ENOMEM, "reporting on %s: out of host memory", t->trace ? t->trace : "");
}

/* ---- rows ------------------------------------------------------------------------------------ */

void wr_table_row(wr_named_table *t)
{
  if (!t || t->of->failed) return;
  t->next = t->columns; /* takes no value */
  if (!wr_grow(&t->value, &t->capacity, (t->rows + 1) * t->columns, sizeof(wr_value))) {
    t->of->failed = true;
    return;
  }
  memset(&t->value[t->rows++ * t->columns], 0, t->columns * sizeof(wr_value));
  t->next = 0;
}

static void put_value(wr_named_table *t, wr_value v)
{
  if (t && t->rows && t->next < t->columns && !t->of->failed) {
    t->value[(t->rows - 1) * t->columns + t->next++] = v;
    return;
  }
  free(v.text);
  free(v.file);
}

void wr_table_put(wr_named_table *t, uint64_t n)
{
  put_value(t, (wr_value){.known = true, .n = n});
}

void wr_table_put_real(wr_named_table *t, double x)
{
  put_value(t, (wr_value){.known = true, .real = x});
}

void wr_table_put_none(wr_named_table *t)
{
  put_value(t, (wr_value){0});
}

void wr_table_put_text(wr_named_table *t, const char *text)
{
  wr_table_put_place(t, text, NULL, 0);
}

void wr_table_put_place(wr_named_table *t, const char *function, const char *file, int line)
{
  wr_value v = {.known = function != NULL, .line = file ? line : 0};
  if (!t) return;
  if (function) v.text = clean(function);
  if (file) v.file = clean(file);
  if ((function && !v.text) || (file && !v.file)) t->of->failed = true;
  put_value(t, v);
}

void wr_table_put_share(wr_named_table *t, uint64_t part, uint64_t whole)
{
  if (whole)
    wr_table_put_real(t, (double)part / (double)whole);
  else
    wr_table_put_none(t);
}

void wr_table_put_speed(wr_named_table *t, uint64_t bytes, uint64_t ns)
{
  if (ns)
    wr_table_put_real(t, (double)bytes / (double)ns * 1e9);
  else
    wr_table_put_none(t);
}

void wr_table_aside(wr_named_table *t, const char *format, ...)
{
  if (!t) return;
  va_list args;
  va_start(args, format);
  char *text = wr_vformat(format, args);
  va_end(args);
  free(t->aside);
  t->aside = text ? clean(text) : NULL;
  if (!t->aside) t->of->failed = true;
  free(text);
}

/* ---- values as people read them -------------------------------------------------------------- */

static const char *base_name(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static char *change_words(int64_t change)
{
  uint64_t size = change < 0 ? 0 - (uint64_t)change : (uint64_t)change;
  return wr_format("%s%s", change < 0 ? "-" : change ? "+" : "", wr_bytes(size).text);
}

char *wr_value_words(const wr_value *v, wr_column_type type)
{
  if (!v->known)
    return wr_format("%s", type == WR_COLUMN_TEXT || type == WR_COLUMN_PLACE ? "" : "-");
  switch (type) {
  case WR_COLUMN_TEXT:
    return wr_format("%s", v->text);
  case WR_COLUMN_PLACE:
    return v->file ? wr_format("%s  %s:%d", v->text, base_name(v->file), v->line)
                   : wr_format("%s", v->text);
  case WR_COLUMN_BYTES:
    return wr_format("%s", wr_bytes(v->n).text);
  case WR_COLUMN_CHANGE:
    return change_words((int64_t)v->n);
  case WR_COLUMN_HOST_NS:
  case WR_COLUMN_DEVICE_NS:
  case WR_COLUMN_MOMENT:
    return wr_format("%s", wr_duration(v->n).text);
  case WR_COLUMN_SPEED: /* wr_speed() takes whole numbers */
    return wr_format(
        "%s", wr_speed(v->real < 1e18 ? (uint64_t)v->real : UINT64_MAX, UINT64_C(1000000000)).text);
  case WR_COLUMN_SHARE:
    return wr_format("%.1f %%", 100 * v->real);
  default:
    return wr_format("%s", wr_count(v->n).text);
  }
}
