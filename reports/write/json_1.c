/* json_1.c: reports as they were before "weir-report/2": "weir-report/1", which is a summary,
 * "weir-findings/1", "weir-diff/1", and the caches.
 *
 * * They are made of the same tables: json_1_members.c says of which column a member is. Nothing
 * is computed here but a speed, in the order of operations that the numbers had. */
#include "reports/write/json_1.h"
#include <jansson.h>
#include <string.h>
#include "reports/tables/build.h"
#include "reports/write/json.h"
#include "reports/write/write.h"

/* A row that members are of. */
typedef struct old_row {
  const wr_tables *t;
  const wr_named_table *of; /* NULL: no row */
  size_t row;
} old_row;

static json_t *object_of(const old_row *x, const old_member *members);

static const wr_named_table *table_named(const wr_tables *t, const char *name)
{
  for (size_t i = 0; i < t->count; i++)
    if (!strcmp(t->table[i]->name, name)) return t->table[i];
  return NULL;
}

/* Its type goes to *type. NULL: there is no such column, or row. */
static const wr_value *cell_of(const wr_named_table *t, size_t row, const char *column,
                               wr_column_type *type)
{
  for (size_t c = 0; t && row < t->rows && c < t->columns; c++) {
    if (strcmp(t->column[c].name, column) != 0) continue;
    *type = t->column[c].type;
    return &t->value[row * t->columns + c];
  }
  return NULL;
}

static json_t *value_of(const wr_value *v, wr_column_type type)
{
  if (!v || !v->known) return json_null();
  switch (type) {
  case WR_COLUMN_TEXT:
    return v->numbered ? json_integer((json_int_t)v->n) : json_string(v->text);
  case WR_COLUMN_TEXTS:
    return wr_json_lines(v->text);
  case WR_COLUMN_TRUTH:
    return json_boolean(v->n);
  case WR_COLUMN_SHARE:
  case WR_COLUMN_REAL:
    return json_real(v->real);
  case WR_COLUMN_SPEED:
    return json_real((double)v->n * 1e9 / (double)v->whole);
  default:
    return json_integer((json_int_t)v->n);
  }
}

/* ---- which rows fit -------------------------------------------------------------------------- */

static bool same_cell(const wr_named_table *a, size_t row, const wr_named_table *b, size_t other,
                      const char *column)
{
  wr_column_type type;
  const wr_value *x = cell_of(a, row, column, &type), *y = cell_of(b, other, column, &type);
  if (!x || !y || !x->text || !y->text) return x && y && !x->text && !y->text && x->n == y->n;
  return !strcmp(x->text, y->text);
}

/* One condition of `with`. */
static bool row_fits_one(const old_row *x, const wr_named_table *t, size_t row, const char *with)
{
  char column[64];
  const char *equals = strchr(with, '=');
  wr_column_type type;
  (void)snprintf(column, sizeof(column), "%.*s", (int)(equals ? equals - with : 63), with);
  if (!equals) return same_cell(x->of, x->row, t, row, column);
  const wr_value *v = cell_of(t, row, column, &type);
  return v && v->text && !strcmp(v->text, equals + 1);
}

static bool row_fits(const old_row *x, const wr_named_table *t, size_t row, const char *with)
{
  char one[96];
  while (with) {
    const char *end = strchrnul(with, '|');
    (void)snprintf(one, sizeof(one), "%.*s", (int)(end - with), with);
    if (!row_fits_one(x, t, row, one)) return false;
    with = *end ? end + 1 : NULL;
  }
  return true;
}

/* The next one from *row on. */
static bool next_fitting_row(const old_row *x, const wr_named_table *t, const char *with,
                             size_t *row)
{
  while (t && *row < t->rows && !row_fits(x, t, *row, with))
    ++*row;
  return t && *row < t->rows;
}

/* ---- members --------------------------------------------------------------------------------- */

static json_t *part_of_place(const wr_value *v, old_how how)
{
  if (!v) return json_null();
  return how == OLD_LINE ? json_integer(v->line)
                         : wr_json_text(how == OLD_FUNCTION ? v->text
                                        : how == OLD_FILE   ? v->file
                                                            : v->module);
}

static json_t *cell_json(const old_row *x, const old_member *m)
{
  wr_column_type type = WR_COLUMN_TEXT;
  const wr_value *v = cell_of(x->of, x->row, m->from, &type);
  switch (m->how) {
  case OLD_PRESENT:
    return v && v->known ? value_of(v, type) : NULL;
  case OLD_ORDINAL:
    return v && v->numbered ? json_integer((json_int_t)v->n) : json_null();
  case OLD_OTHERS:
    return json_string(v && v->text && strcmp(v->text, "(others)") != 0 ? v->text : "");
  case OLD_CELL:
    return value_of(v, type);
  default:
    return part_of_place(v, m->how);
  }
}

/* A number of a table whose rows are members: by `name`, or the first column. NULL: all of them,
 * as an object. */
static json_t *member_json(const wr_named_table *t, const char *name)
{
  json_t *all = name ? NULL : json_object();
  wr_column_type type;
  for (size_t r = 0; t && r < t->rows; r++) {
    const wr_value *v = cell_of(t, r, "name", &type), *row = &t->value[r * t->columns];
    const char *is = (v ? v : row)->text;
    if (all) json_object_set_new(all, is, value_of(&row[1], t->column[1].type));
    if (name && !strcmp(is, name)) return value_of(&row[1], t->column[1].type);
  }
  return all ? all : json_null();
}

/* The value of the only word of the first member. */
static json_t *only_value(const old_row *x, const old_member *m)
{
  const char *equals = strchr(m->from, '=');
  return cell_json(x,
                   &(old_member){m->name, m->how, equals ? equals + 1 : m->from, NULL, NULL, NULL});
}

static json_t *list_json(const old_row *x, const old_member *m)
{
  const wr_named_table *t = table_named(x->t, m->from);
  if (!t && m->how == OLD_IF) return json_null();
  json_t *list = json_array();
  for (size_t r = 0; next_fitting_row(x, t, m->with, &r); r++) {
    const old_row row = {x->t, t, r};
    json_array_append_new(list,
                          m->how == OLD_VALUES ? only_value(&row, m->of) : object_of(&row, m->of));
  }
  return list;
}

static json_t *keyed_json(const old_row *x, const old_member *m)
{
  wr_column_type type;
  bool inner = m->how == OLD_PAIRS || m->how == OLD_INNER;
  const wr_value *v = inner ? cell_of(x->of, x->row, m->from, &type) : NULL;
  const wr_named_table *t = inner ? v ? v->rows : NULL : table_named(x->t, m->from);
  json_t *all = json_object();
  for (size_t r = 0; next_fitting_row(x, t, m->with, &r); r++) {
    const old_row row = {x->t, t, r};
    const wr_value *key = cell_of(t, r, m->key, &type);
    json_object_set_new(all, key && key->text ? key->text : "",
                        m->how == OLD_PAIRS ? only_value(&row, m->of) : object_of(&row, m->of));
  }
  return all;
}

static json_t *rows_json(const old_row *x, const old_member *m)
{
  wr_column_type type;
  const wr_value *v = cell_of(x->of, x->row, m->from, &type);
  const wr_named_table *t = v ? v->rows : NULL;
  json_t *list = json_array();
  for (size_t r = 0; next_fitting_row(x, t, m->with, &r); r++) {
    const old_row row = {x->t, t, r};
    json_array_append_new(list,
                          m->how == OLD_WITHIN ? only_value(&row, m->of) : object_of(&row, m->of));
  }
  return list;
}

static json_t *first_json(const old_row *x, const old_member *m)
{
  const wr_named_table *t = table_named(x->t, m->from);
  size_t r = 0;
  return next_fitting_row(x, t, m->with, &r) ? object_of(&(old_row){x->t, t, r}, m->of)
                                             : json_null();
}

/* NULL: there is no such member. */
static json_t *member_of(const old_row *x, const old_member *m)
{
  wr_column_type type = WR_COLUMN_TEXT;
  const wr_value *v;
  switch (m->how) {
  case OLD_CONSTANT:
    return json_string(m->from);
  case OLD_TRACE:
    return json_string(x->t->trace);
  case OLD_NEXT:
    v = cell_of(table_named(x->t, m->with), x->row, m->from, &type);
    return value_of(v, type);
  case OLD_ONE:
    v = cell_of(table_named(x->t, m->with), 0, m->from, &type);
    return value_of(v, type);
  case OLD_MEMBER:
    return member_json(table_named(x->t, m->with), m->from);
  case OLD_MEMBERS:
    return member_json(table_named(x->t, m->from), NULL);
  case OLD_KNOWN:
    v = cell_of(x->of, x->row, m->from, &type);
    return v && v->known && (type != WR_COLUMN_TRUTH || v->n) ? object_of(x, m->of) : json_null();
  case OLD_SAME:
    return object_of(x, m->of);
  case OLD_FIRST:
    return first_json(x, m);
  case OLD_LIST:
  case OLD_IF:
  case OLD_VALUES:
    return list_json(x, m);
  case OLD_KEYED:
  case OLD_PAIRS:
  case OLD_INNER:
    return keyed_json(x, m);
  case OLD_ROWS:
  case OLD_WITHIN:
    return rows_json(x, m);
  default:
    return cell_json(x, m);
  }
}

static void put_member(json_t *o, const old_row *x, const old_member *m)
{
  json_t *value = member_of(x, m);
  if (value) json_object_set_new(o, m->name, value);
}

/* A member a word: "name", or "name=column". */
static void put_words(json_t *o, const old_row *x, const old_member *m)
{
  char word[96];
  for (const char *at = m->from; *at;) {
    const char *end = strchrnul(at, ' ');
    (void)snprintf(word, sizeof(word), "%.*s", (int)(end - at), at);
    char *equals = strchr(word, '=');
    if (equals) *equals = '\0';
    put_member(o, x, &(old_member){word, m->how, equals ? equals + 1 : word, m->with, NULL, NULL});
    at = *end ? end + 1 : end;
  }
}

static json_t *object_of(const old_row *x, const old_member *members)
{
  json_t *o = json_object();
  for (; members->name; members++) {
    if (*members->name)
      put_member(o, x, members);
    else
      put_words(o, x, members);
  }
  return o;
}

/* ---- reports --------------------------------------------------------------------------------- */

static json_t *report_of(const wr_tables *t, const char *name)
{
  const old_member *members = !strcmp(name, "summary")    ? old_summary
                              : !strcmp(name, "findings") ? old_findings
                              : !strcmp(name, "diff")     ? old_diff
                                                          : old_cache;
  return t->failed ? NULL : object_of(&(old_row){.t = t}, members);
}

json_t *wr_findings_old(const wr_findings *f)
{
  wr_tables t = {0};
  wr_add_findings(&(wr_build){.t = &t}, f);
  json_t *o = report_of(&t, "findings");
  wr_tables_free(&t);
  return o;
}

weir_status wr_tables_old(FILE *out, const wr_tables *t)
{
  json_t *o = report_of(t, t->report);
  if (!o) return wr_tables_no_memory(t);
  int written = json_dumpf(o, out, JSON_INDENT(2));
  json_decref(o);
  if (written || fputc('\n', out) == EOF || fflush(out))
    return weir_fail(WEIR_EIO, "the report on %s cannot be written", t->trace);
  return WEIR_OK;
}
