/* compare.c: a victim's own tally held against the report of its trace. */
#include "tests/e2e/compare.h"

#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static json_t *load_json_or_fail(const char *path)
{
  json_error_t why;
  json_t *j = json_load_file(path, 0, &why);
  ck_assert_msg(j != NULL, "%s: line %d: %s", path, why.line, why.text);
  return j;
}

typedef struct differences {
  char text[8192];
  size_t used;
} differences;

static void differ(differences *d, const char *what, const char *field, json_int_t want,
                   json_int_t got)
{
  if (want == got || d->used > sizeof d->text - 256) return;
  int n = snprintf(d->text + d->used, sizeof d->text - d->used,
                   "\n  %s%s: the program counted %lld, the trace has %lld", what, field,
                   (long long)want, (long long)got);
  if (n > 0) d->used += (size_t)n;
}

static json_t *find_api(json_t *apis, const char *name)
{
  size_t i;
  json_t *row;
  json_array_foreach(apis, i, row)
  {
    const char *n = json_string_value(json_object_get(row, "name"));
    if (n && strcmp(n, name) == 0) return row;
  }
  return NULL;
}

static json_int_t number(const json_t *row, const char *field)
{
  return json_integer_value(json_object_get(row, field));
}

static void compare_names(differences *d, json_t *tallied, json_t *reported)
{
  size_t i;
  json_t *row;
  json_array_foreach(tallied, i, row)
  {
    const char *name = json_string_value(json_object_get(row, "name"));
    const json_t *got = find_api(reported, name);
    differ(d, name, " calls", number(row, "calls"), number(got, "calls"));
    differ(d, name, " errors", number(row, "errors"), number(got, "errors"));
  }
}

void compare_tally(const char *tally_path, const char *report_path, bool names)
{
  json_t *tally = load_json_or_fail(tally_path), *report = load_json_or_fail(report_path);
  json_t *want = json_object_get(tally, "totals"), *got = json_object_get(report, "totals");
  differences d = {"", 0};
  const char *key;
  json_t *value;
  json_object_foreach(want, key, value)
  {
    ck_assert_msg(json_is_integer(json_object_get(got, key)), "the report has no total %s", key);
    differ(&d, "", key, json_integer_value(value), number(got, key));
  }
  differ(&d, "", "dropped", 0, number(got, "dropped"));
  if (names) compare_names(&d, json_object_get(tally, "apis"), json_object_get(report, "apis"));
  ck_assert_msg(d.used == 0, "%s", d.text);
  json_decref(tally);
  json_decref(report);
}

static char seen[1024][64];
static unsigned seen_count;

bool remembered_name(const char *name)
{
  for (unsigned i = 0; i < seen_count; i++)
    if (strcmp(seen[i], name) == 0) return true;
  return false;
}

void remember_names(const char *tally_path)
{
  json_t *tally = load_json_or_fail(tally_path);
  size_t i;
  json_t *row;
  json_array_foreach(json_object_get(tally, "apis"), i, row)
  {
    const char *name = json_string_value(json_object_get(row, "name"));
    if (remembered_name(name) || seen_count == sizeof seen / sizeof *seen) continue;
    strncpy(seen[seen_count++], name, sizeof *seen - 1);
  }
  json_decref(tally);
}
