/* table.c: see table.h. */
#include "reports/tables/table.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/units.h"
#include "reports/base/util.h"

static char *clean(const char *text)
{
  return wr_text(text, strlen(text), true);
}

/* New; NULL: out of memory. */
static char *clean_words(const char *format, va_list args)
{
  char *text = wr_vformat(format, args), *words = text ? clean(text) : NULL;
  free(text);
  return words;
}

/* New; NULL: out of memory. */
static wr_named_table *new_table(wr_tables *t, const char *name, const char *title,
                                 const wr_column *columns, size_t count)
{
  wr_named_table *x = calloc(1, sizeof(*x));
  wr_column *copy = calloc(count + 1, sizeof(*copy));
  char *words = clean(title), *own_name = clean(name);
  if (!x || !copy || !words || !own_name) {
    t->failed = true;
    free(words);
    free(own_name);
    free(copy);
    free(x);
    return NULL;
  }
  if (count) memcpy(copy, columns, count * sizeof(*copy));
  *x =
      (wr_named_table){.name = own_name, .title = words, .column = copy, .columns = count, .of = t};
  return x;
}

static void free_table(wr_named_table *x);

wr_named_table *wr_tables_add(wr_tables *t, const char *name, const char *title,
                              const wr_column *columns, size_t count)
{
  wr_named_table *x = new_table(t, name, title, columns, count);
  if (x && wr_grow(&t->table, &t->capacity, t->count + 1, sizeof(wr_named_table *)))
    return t->table[t->count++] = x;
  t->failed = true;
  free_table(x);
  return NULL;
}

wr_named_table *wr_table_of_run(wr_named_table *t)
{
  if (t) t->whole_run = true;
  return t;
}

wr_named_table *wr_tables_add_sentences(wr_tables *t, const char *name, const char *title)
{
  wr_named_table *x = wr_tables_add(t, name, title, NULL, 0);
  wr_table_look(x, WR_UNSEEN | (*title ? 0 : WR_JOINED));
  return x;
}

void wr_tables_note(wr_tables *t, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  char *words = clean_words(format, args);
  va_end(args);
  if (words && wr_grow(&t->note, &t->note_capacity, t->notes + 1, sizeof(char *))) {
    t->note[t->notes++] = words;
    return;
  }
  t->failed = true;
  free(words);
}

static void free_value(wr_value *v)
{
  free(v->text);
  free(v->file);
  free(v->module);
  free(v->lead);
  free_table(v->rows);
}

static void free_sentences(wr_sentences *s)
{
  for (size_t i = 0; i < s->count; i++)
    free(s->list[i].text);
  free(s->list);
}

static void free_table(wr_named_table *x)
{
  if (!x) return;
  for (size_t k = 0; k < x->rows * x->columns; k++)
    free_value(&x->value[k]);
  for (size_t k = 0; k < x->word_count; k++)
    free(x->words[k]);
  free_sentences(&x->before);
  free_sentences(&x->after);
  free(x->words);
  free(x->value);
  free(x->kind);
  free(x->name);
  free(x->title);
  free(x->aside);
  free(x->column);
  free(x);
}

void wr_tables_free(wr_tables *t)
{
  for (size_t i = 0; i < t->count; i++)
    free_table(t->table[i]);
  for (size_t i = 0; i < t->notes; i++)
    free(t->note[i]);
  free(t->note);
  free(t->table);
  free(t->trace);
  free(t->head);
  free(t->scope);
  *t = (wr_tables){0};
}

weir_status wr_tables_no_memory(const wr_tables *t)
{
  return weir_fail(WEIR_ENOMEM, "reporting on %s: out of host memory", t->trace ? t->trace : "");
}

/* ---- rows ------------------------------------------------------------------------------------ */

void wr_table_row_for(wr_named_table *t, wr_row_kind kind)
{
  if (!t || t->of->failed) return;
  t->next = t->columns; /* takes no value */
  if (!wr_grow(&t->value, &t->capacity, (t->rows + 1) * t->columns, sizeof(wr_value)) ||
      !wr_grow(&t->kind, &t->kind_capacity, t->rows + 1, 1)) {
    t->of->failed = true;
    return;
  }
  memset(&t->value[t->rows * t->columns], 0, t->columns * sizeof(wr_value));
  t->kind[t->rows++] = (unsigned char)kind;
  t->next = 0;
}

void wr_table_row(wr_named_table *t)
{
  wr_table_row_for(t, WR_ROW_ALL);
}

static void put_value(wr_named_table *t, wr_value v)
{
  if (t && t->rows && t->next < t->columns && !t->of->failed)
    t->value[(t->rows - 1) * t->columns + t->next++] = v;
  else
    free_value(&v);
}

void wr_table_put(wr_named_table *t, uint64_t n)
{
  put_value(t, (wr_value){.known = true, .n = n});
}

void wr_table_put_all(wr_named_table *t, const uint64_t *n, size_t count)
{
  for (size_t i = 0; i < count; i++)
    wr_table_put(t, n[i]);
}

void wr_table_put_if(wr_named_table *t, bool known, uint64_t n)
{
  put_value(t, (wr_value){.known = known, .n = known ? n : 0});
}

void wr_table_put_real(wr_named_table *t, double x)
{
  put_value(t, (wr_value){.known = true, .real = x});
}

void wr_table_put_none(wr_named_table *t)
{
  put_value(t, (wr_value){0});
}

void wr_table_skip(wr_named_table *t, size_t cells)
{
  while (cells--)
    put_value(t, (wr_value){.empty = true});
}

void wr_table_put_text(wr_named_table *t, const char *text)
{
  wr_table_put_place(t, text, NULL, 0);
}

void wr_table_put_words(wr_named_table *t, const char *format, ...)
{
  if (!t) return;
  va_list args;
  va_start(args, format);
  char *words = clean_words(format, args);
  va_end(args);
  if (!words) t->of->failed = true;
  put_value(t, (wr_value){.known = true, .text = words});
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

void wr_table_put_device(wr_named_table *t, int64_t ordinal, const char *words)
{
  if (!t) return;
  wr_value v = {.known = true, .numbered = true, .n = (uint64_t)ordinal, .text = clean(words)};
  if (!v.text) t->of->failed = true;
  put_value(t, v);
}

void wr_table_put_kept(wr_named_table *t, const char *text, const char *kept)
{
  wr_table_put_place(t, text, kept, 0);
}

void wr_table_put_share(wr_named_table *t, uint64_t part, uint64_t whole)
{
  double share = whole ? (double)part / (double)whole : 0;
  put_value(t, whole ? (wr_value){.known = true, .n = part, .whole = whole, .real = share}
                     : (wr_value){0});
}

void wr_table_put_speed(wr_named_table *t, uint64_t bytes, uint64_t ns)
{
  double speed = ns ? (double)bytes / (double)ns * 1e9 : 0;
  put_value(t,
            ns ? (wr_value){.known = true, .n = bytes, .whole = ns, .real = speed} : (wr_value){0});
}

/* The value that was put last; NULL: none. */
static wr_value *last_value(wr_named_table *t)
{
  if (!t || t->of->failed || !t->rows || !t->next) return NULL;
  return &t->value[(t->rows - 1) * t->columns + t->next - 1];
}

void wr_table_put_texts(wr_named_table *t)
{
  put_value(t, (wr_value){.known = true});
}

void wr_table_add_text(wr_named_table *t, const char *text)
{
  wr_value *v = last_value(t);
  if (!v) return;
  char *line = clean(text),
       *words = line ? v->text ? wr_format("%s\n%s", v->text, line) : line : NULL;
  if (words != line) free(line);
  if (!words) {
    t->of->failed = true;
    return;
  }
  free(v->text);
  v->text = words;
}

wr_named_table *wr_table_put_rows(wr_named_table *t, const wr_column *columns, size_t count)
{
  if (!t || t->of->failed || t->next >= t->columns) return NULL;
  wr_named_table *rows = new_table(t->of, "", "", columns, count);
  put_value(t, (wr_value){.known = rows != NULL, .rows = rows});
  return rows;
}

void wr_table_lead(wr_named_table *t, const char *format, ...)
{
  wr_value *v = last_value(t);
  if (!v) return;
  va_list args;
  va_start(args, format);
  free(v->lead);
  v->lead = clean_words(format, args);
  va_end(args);
  if (!v->lead) t->of->failed = true;
}

void wr_table_module(wr_named_table *t, const char *module)
{
  wr_value *v = last_value(t);
  if (!v || !module) return;
  free(v->module);
  v->module = clean(module);
  if (!v->module) t->of->failed = true;
}

/* ---- around the rows ------------------------------------------------------------------------- */

void wr_table_aside(wr_named_table *t, const char *format, ...)
{
  if (!t) return;
  va_list args;
  va_start(args, format);
  free(t->aside);
  t->aside = clean_words(format, args);
  va_end(args);
  if (!t->aside) t->of->failed = true;
}

void wr_table_look(wr_named_table *t, int look)
{
  if (t) t->look |= look;
}

void wr_table_title(wr_named_table *t, size_t column, const char *format, ...)
{
  if (!t || column >= t->columns) return;
  va_list args;
  va_start(args, format);
  char *words = clean_words(format, args);
  va_end(args);
  if (words && wr_grow(&t->words, &t->word_capacity, t->word_count + 1, sizeof(char *))) {
    t->column[column].title = t->words[t->word_count++] = words;
    return;
  }
  t->of->failed = true;
  free(words);
}

static void add_sentence(wr_named_table *t, wr_sentences *to, int style, const char *format,
                         va_list args)
{
  char *words = clean_words(format, args);
  if (words && wr_grow(&to->list, &to->capacity, to->count + 1, sizeof(wr_sentence))) {
    to->list[to->count++] = (wr_sentence){style, words};
    return;
  }
  t->of->failed = true;
  free(words);
}

void wr_table_before(wr_named_table *t, int style, const char *format, ...)
{
  if (!t) return;
  va_list args;
  va_start(args, format);
  add_sentence(t, &t->before, style, format, args);
  va_end(args);
}

void wr_table_after(wr_named_table *t, int style, const char *format, ...)
{
  if (!t) return;
  va_list args;
  va_start(args, format);
  add_sentence(t, &t->after, style, format, args);
  va_end(args);
}

void wr_table_most(wr_named_table *t, size_t most, const char *one, const char *many)
{
  if (!t || t->rows <= most) return;
  size_t more = t->rows - most;
  memset(t->kind + most, WR_ROW_DATA, more);
  if (one)
    wr_table_after(t, false, "… and %s more", wr_counted(more, one, many).text);
  else
    wr_table_after(t, false, "… and %zu more", more);
}
