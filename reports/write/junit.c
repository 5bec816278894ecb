/* junit.c: a table as the XML that CI systems read as JUnit's: testsuites, one testsuite, a
 * testcase a row, and a failure in one whose column "failure" is known. Its columns "name", "line"
 * and "type" are read too; the table's title is the file that the lines are of. There are no times:
 * a row takes none that matters. */
#include <inttypes.h>
#include <string.h>
#include "reports/base/escape.h"
#include "reports/write/write.h"

static const wr_value *named_value(const wr_named_table *t, size_t row, const char *name)
{
  static const wr_value none = {0};
  for (size_t c = 0; c < t->columns; c++)
    if (!strcmp(t->column[c].name, name)) return &t->value[row * t->columns + c];
  return &none;
}

static void put_attribute(FILE *out, const char *name, const char *value)
{
  (void)fprintf(out, " %s=\"", name);
  wr_put_xml_text(out, value ? value : "");
  (void)fputc('"', out);
}

static void put_case(FILE *out, const wr_named_table *t, size_t row)
{
  const wr_value *name = named_value(t, row, "name"), *failure = named_value(t, row, "failure");
  (void)fputs("    <testcase", out);
  put_attribute(out, "name", name->text);
  put_attribute(out, "classname", t->title);
  put_attribute(out, "file", t->title);
  (void)fprintf(out, " line=\"%" PRIu64 "\"", named_value(t, row, "line")->n);
  (void)fputs(failure->known ? ">\n" : "/>\n", out);
  if (!failure->known) return;
  (void)fputs("      <failure", out);
  put_attribute(out, "message", failure->text);
  put_attribute(out, "type", named_value(t, row, "type")->text);
  (void)fputs(">", out);
  wr_put_xml_text(out, name->text ? name->text : "");
  (void)fputs("</failure>\n    </testcase>\n", out);
}

void wr_tables_junit(FILE *out, const wr_tables *t)
{
  const wr_named_table *x = t->count ? t->table[t->count - 1] : NULL;
  size_t failures = 0;
  if (t->failed || !x) return;
  for (size_t r = 0; r < x->rows; r++)
    failures += named_value(x, r, "failure")->known;
  (void)fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites", out);
  put_attribute(out, "name", t->report);
  (void)fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"0\">\n  <testsuite", x->rows,
                failures);
  put_attribute(out, "name", t->trace);
  (void)fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"0\">\n", x->rows,
                failures);
  for (size_t r = 0; r < x->rows; r++)
    put_case(out, x, r);
  (void)fputs("  </testsuite>\n</testsuites>\n", out);
}
