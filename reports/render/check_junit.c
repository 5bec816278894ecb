/* check_junit.c: what came of a budget, as the XML that CI systems read as JUnit's: testsuites, one
 * testsuite, a testcase a limit, and in one that does not hold a failure. There are no times: judging
 * a limit takes none that matters. */
#include "reports/base/escape.h"
#include "reports/render/diff_render.h"

static void put_attribute(FILE *out, const char *name, const char *value)
{
  (void)fprintf(out, " %s=\"", name);
  wr_put_xml_text(out, value);
  (void)fputc('"', out);
}

/* "leaks.bytes is 64.0 KiB (65536 B), and the limit is == 0 B" */
static void put_failure(FILE *out, const wr_verdict *v)
{
  static const char *const units[] = {
      [WR_UNIT_BYTES] = "B", [WR_UNIT_COUNT] = "", [WR_UNIT_TIME] = "ns"};
  const wr_condition *c = v->condition;
  const wr_metric_row *m = &wr_metric_rows[c->metric];
  char text[256], exact[64] = "";
  if (m->unit != WR_UNIT_COUNT)
    (void)snprintf(exact, sizeof(exact), " (%llu %s)", (unsigned long long)v->value,
                   units[m->unit]);
  (void)snprintf(text, sizeof(text), "%s is %s%s, and the limit is %s", m->name,
                 wr_in_unit(c->metric, v->value).text, exact, wr_limit_words(v).text);
  (void)fputs("      <failure", out);
  put_attribute(out, "message", v->known ? text : v->note);
  put_attribute(out, "type", v->known ? "exceeded" : "not known");
  (void)fputs(">", out);
  wr_put_xml_text(out, c->text);
  (void)fputs("</failure>\n", out);
}

static void put_case(FILE *out, const wr_checked *checked, const wr_verdict *v)
{
  char where[32];
  (void)snprintf(where, sizeof(where), "%zu", v->condition->line);
  (void)fputs("    <testcase", out);
  put_attribute(out, "name", v->condition->text);
  put_attribute(out, "classname", checked->budget);
  put_attribute(out, "file", checked->budget);
  put_attribute(out, "line", where);
  (void)fputs(v->met ? "/>\n" : ">\n", out);
  if (v->met) return;
  put_failure(out, v);
  (void)fputs("    </testcase>\n", out);
}

static void put_counts(FILE *out, const wr_verdicts *v)
{
  (void)fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"0\"", v->count, v->count - v->met);
}

weir_status wr_check_render_junit(FILE *out, const wr_checked *c)
{
  (void)fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"weir check\"", out);
  put_counts(out, c->verdicts);
  (void)fputs(">\n  <testsuite", out);
  put_attribute(out, "name", c->figures->path);
  put_counts(out, c->verdicts);
  (void)fputs(" skipped=\"0\">\n", out);
  for (size_t i = 0; i < c->verdicts->count; i++)
    put_case(out, c, &c->verdicts->verdict[i]);
  (void)fputs("  </testsuite>\n</testsuites>\n", out);
  if (ferror(out) || fflush(out))
    return weir_fail(WEIR_EIO, "the report on %s cannot be written", c->figures->path);
  return WEIR_OK;
}
