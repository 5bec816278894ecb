/* findings_render.c: see findings_render.h. JSON's shape is in SCHEMA.md ("Findings"). */
#include "reports/render/findings_render.h"
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"

enum { SUMMARY_FINDINGS = 5, UNJUDGED_ROWS = 4 };

/* ---- text ------------------------------------------------------------------------------------ */

/* "saves up to 12.3 ms (4.1 % of the run) of 14.0 ms, 2.00 MiB moved, 400 times, device 0" */
static char *costs(const wr_findings *all, const wr_finding *f)
{
  char *text = NULL;
  size_t bytes = 0;
  FILE *to = open_memstream(&text, &bytes);
  if (!to) return NULL;
  if (f->saving_ns)
    (void)fprintf(to, "saves up to %s (%s of the run)", DURATION(f->saving_ns),
                  wr_percent(f->saving_ns, all->duration_ns).text);
  if (f->cost_ns > f->saving_ns)
    (void)fprintf(
        to, f->saving_ns ? " of %s" : "%s in it; no saving is sure: the time may go elsewhere",
        DURATION(f->cost_ns));
  if (f->saving_bytes)
    (void)fprintf(to, "%s%s %s", f->cost_ns || f->saving_ns ? ", " : "", BYTES(f->saving_bytes),
                  f->rule->holds ? "held" : "moved");
  (void)fprintf(to, ", %s", COUNTED(f->count, "time"));
  if (f->device >= 0) (void)fprintf(to, ", device %d", f->device);
  if (f->range && *f->range) (void)fprintf(to, ", range %s", f->range);
  return fclose(to) ? NULL : text;
}

static void print_site(wr_page *p, const wr_finding *f, const wr_finding_site *s)
{
  if (!s->count)
    LINE(p, false, s->file ? "  with %s  %s:%d" : "  with %s", s->function,
         s->file ? wr_file_name(s->file) : "", s->line);
  else if (f->sites - 1 && f->site[1].count)
    LINE(p, false, s->file ? "  %s, %s  %s  %s:%d" : "  %s, %s  %s", DURATION(s->cost_ns),
         COUNTED(s->count, "time"), s->function, s->file ? wr_file_name(s->file) : "", s->line);
  else
    LINE(p, false, s->file ? "  %s  %s:%d" : "  %s", s->function,
         s->file ? wr_file_name(s->file) : "", s->line);
  if (!s->source) return;
  char number[32];
  int indent = snprintf(number, sizeof(number), "      %d | ", s->line);
  wr_page_paint(p, "\033[2m");
  (void)fputs(number, p->out);
  wr_put_fit(p->out, s->source, p->width > 0 ? (size_t)(p->width - indent) : SIZE_MAX);
  wr_page_paint(p, "\033[0m");
  (void)fputc('\n', p->out);
}

static void print_finding(wr_page *p, const wr_findings *all, size_t i)
{
  const wr_finding *f = &all->finding[i];
  char *text = costs(all, f);
  if (!text) p->failed = true;
  wr_page_paint(p, "\033[1m");
  LINE(p, false, "%zu. %s", i + 1, f->rule->title);
  wr_page_paint(p, "\033[0m");
  LINE(p, false, "  %s: %s", wr_certainty_name(f->certainty), text ? text : "");
  free(text);
  for (size_t at = 0; at < f->sites; at++)
    print_site(p, f, &f->site[at]);
  if (f->more_sites) LINE(p, false, "  … and %s more", COUNTED(f->more_sites, "place"));
  LINE(p, false, "  %s", f->rule->fix);
}

/* "repeated-upload  train_step  train.cu:230  of 8.81 ms, 32 times; weir run --hash decides" */
static void print_line(wr_page *p, const wr_finding *f, size_t number)
{
  const wr_finding_site *s = &f->site[0];
  const char *decides = f->rule->decides;
  char *place = s->file ? wr_format("%s  %s:%d", s->function, wr_file_name(s->file), s->line)
                        : wr_format("%s", s->function);
  if (!place) p->failed = true;
  LINE(p, false, "%zu. %s  %s  %s%s, %s%s%s%s", number, f->rule->id, place ? place : "",
       f->saving_ns     ? "up to "
       : f->rule->holds ? ""
                        : "of ",
       f->saving_ns     ? DURATION(f->saving_ns)
       : f->rule->holds ? BYTES(f->saving_bytes)
                        : DURATION(f->cost_ns),
       COUNTED(f->count, "time"), decides ? "; " : "", decides ? decides : "",
       decides ? " decides" : "");
  free(place);
}

/* How many of the findings, which are in order, are sure: those that come first. */
static size_t count_sure(const wr_findings *f)
{
  size_t sure = 0;
  while (sure < f->count && f->finding[sure].certainty != WR_POSSIBLE)
    sure++;
  return sure;
}

/* Those that are possible stand apart, a line each, and never among those that are sure. */
static void print_possible(wr_page *p, const wr_findings *f, size_t first, size_t most)
{
  if (first == f->count || !most) return;
  if (p->possible)
    LINE(p, false, "Possible, which the calls alone do not tell:");
  else
    LINE(p, false, "Possible, which the calls alone do not tell (--possible: in full):");
  for (size_t i = first; i < f->count && i - first < most; i++) {
    if (p->possible)
      print_finding(p, f, i);
    else
      print_line(p, &f->finding[i], i + 1);
  }
}

/* "1 ms or 0.5 % of the run" */
static void print_none(wr_page *p, const wr_findings *f)
{
  const wr_min_cost *m = &f->min;
  char share[32] = "";
  if (m->share >= 0) (void)snprintf(share, sizeof(share), "%g %% of the run", m->share * 100);
  if (m->ns > 0)
    LINE(p, false, "Nothing was found that costs %s%s%s.", DURATION((uint64_t)m->ns),
         *share ? " or " : "", share);
  else
    LINE(p, false, "Nothing was found%s%s.", *share ? " that costs " : "", share);
}

static void print_removed(wr_page *p, const wr_findings *f)
{
  for (size_t i = 0; i < f->removed_count; i++) {
    const wr_removed *r = &f->removed[i];
    LINE(p, false,
         r->bytes ? "Removed by Weir in this run: %s (%s), %s, %s"
                  : "Removed by Weir in this run: %s (%s), %s",
         r->rule->title, r->rule->id, COUNTED(r->count, "time"), BYTES(r->bytes));
  }
}

/* The ids of the rules from `i` on that could not judge for the same reason (new). */
static char *unjudged_ids(const wr_findings *f, size_t i, size_t *count)
{
  const wr_unjudged_rule *first = &f->unjudged[i];
  char *text = NULL;
  size_t bytes = 0;
  FILE *to = open_memstream(&text, &bytes);
  for (*count = 0; to && i < f->unjudged_count; i++) {
    if (strcmp(f->unjudged[i].why, first->why) != 0) continue;
    (void)fprintf(to, "%s%s", (*count)++ ? ", " : "", f->unjudged[i].rule->id);
  }
  return to && !fclose(to) ? text : NULL;
}

static bool reason_is_new(const wr_findings *f, size_t i)
{
  for (size_t before = 0; before < i; before++)
    if (!strcmp(f->unjudged[before].why, f->unjudged[i].why)) return false;
  return true;
}

/* A line a reason. */
static void print_unjudged(wr_page *p, const wr_findings *f)
{
  size_t lines = 0, rules = 0, count;
  for (size_t i = 0; i < f->unjudged_count && lines < UNJUDGED_ROWS; i++) {
    if (!reason_is_new(f, i)) continue;
    char *ids = unjudged_ids(f, i, &count);
    if (!ids) p->failed = true;
    LINE(p, false, "Not looked for: %s: %s", ids ? ids : "", f->unjudged[i].why);
    free(ids);
    lines++, rules += count;
  }
  if (f->unjudged_count > rules)
    LINE(p, false, "… nor %s more", COUNTED(f->unjudged_count - rules, "rule"));
}

/* In a summary: how many rules could not judge for want of what an option records, and which. */
static void print_options(wr_page *p, const wr_findings *f)
{
  static const char *const options[] = {" --hash", " --device-times=all"};
  size_t count = 0;
  bool wanted[2] = {false};
  for (size_t i = 0; i < f->unjudged_count; i++)
    for (size_t o = 0; o < 2; o++)
      if (strstr(f->unjudged[i].why, options[o])) wanted[o] = true, count++;
  if (count)
    LINE(p, false, "%s more can judge a run that recorded more: weir run%s%s",
         COUNTED(count, "rule"), wanted[0] ? options[0] : "", wanted[1] ? options[1] : "");
}

void wr_findings_section(wr_page *p, const wr_findings *f, bool whole)
{
  char *aside = NULL;
  if (f->sure_saving_ns && f->count)
    aside = wr_format("together up to %s to be saved, %s of the run", DURATION(f->sure_saving_ns),
                      wr_percent(f->sure_saving_ns, f->duration_ns).text);
  wr_page_heading(p, "Findings", aside);
  free(aside);
  if (f->unavailable) {
    LINE(p, false, "None were looked for: %s.", f->unavailable);
    return;
  }
  size_t most = p->top_asked ? (size_t)p->top : whole ? SIZE_MAX : SUMMARY_FINDINGS;
  size_t sure = count_sure(f), maybe = f->count - sure;
  for (size_t i = 0; i < sure && i < most; i++)
    print_finding(p, f, i);
  size_t left = (sure > most ? sure - most : 0) + (maybe > most ? maybe - most : 0);
  print_possible(p, f, sure, most);
  if (left) LINE(p, false, "… and %s more: weir report findings", COUNTED(left, "finding"));
  if (!f->count) print_none(p, f);
  print_removed(p, f);
  if (whole) {
    print_unjudged(p, f);
    return;
  }
  print_options(p, f);
  if (f->late)
    LINE(p, false, "%s took too long for a summary: weir report findings",
         COUNTED(f->late, "rule"));
}

weir_status wr_findings_render_text(FILE *out, const wr_findings *f, const char *path,
                                    const report_settings *options)
{
  wr_page *p = calloc(1, sizeof(*p));
  if (!p) return weir_fail(WEIR_ENOMEM, "reporting on %s: out of host memory", path);
  *p = (wr_page){.out = out,
                 .width = options->width > 0 && options->width < 40 ? 40 : options->width,
                 .top = options->top,
                 .top_asked = options->top > 0,
                 .possible = options->possible,
                 .color = options->color != 0};
  wr_page_paint(p, "\033[1m");
  wr_put_fit(out, path, p->width > 0 ? (size_t)p->width : SIZE_MAX);
  wr_page_paint(p, "\033[0m");
  (void)fputc('\n', out);
  wr_findings_section(p, f, true);
  bool whole = wr_page_done(p);
  free(p);
  if (!whole) return weir_fail(WEIR_ENOMEM, "reporting on %s: out of host memory", path);
  if (ferror(out) || fflush(out))
    return weir_fail(WEIR_EIO, "the report on %s cannot be written", path);
  return WEIR_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *number(uint64_t n)
{
  return json_integer((json_int_t)(n > INT64_MAX ? INT64_MAX : n));
}

static json_t *text_or_null(const char *text)
{
  return text ? json_string(text) : json_null();
}

static json_t *sites_json(const wr_finding *f)
{
  json_t *list = json_array();
  for (size_t i = 0; i < f->sites; i++) {
    json_t *site = json_object();
    json_object_set_new(site, "function", json_string(f->site[i].function));
    json_object_set_new(site, "file", text_or_null(f->site[i].file));
    json_object_set_new(site, "line", json_integer(f->site[i].line));
    json_object_set_new(site, "source", text_or_null(f->site[i].source));
    json_object_set_new(site, "cost_ns", number(f->site[i].cost_ns));
    json_object_set_new(site, "count", number(f->site[i].count));
    json_array_append_new(list, site);
  }
  return list;
}

/* Of the run's time, 0 to 1. */
static json_t *share_json(const wr_findings *all, uint64_t ns)
{
  return json_real(all->duration_ns ? (double)ns / (double)all->duration_ns : 0);
}

static json_t *finding_json(const wr_findings *all, const wr_finding *f)
{
  json_t *o = json_object();
  json_object_set_new(o, "rule", json_integer(f->rule->number));
  json_object_set_new(o, "id", json_string(f->rule->id));
  json_object_set_new(o, "title", json_string(f->rule->title));
  json_object_set_new(o, "severity", json_string(wr_severity_name(f->rule->severity)));
  json_object_set_new(o, "certainty", json_string(wr_certainty_name(f->certainty)));
  json_object_set_new(o, "cost_ns", number(f->cost_ns));
  json_object_set_new(o, "saving_ns", number(f->saving_ns));
  json_object_set_new(o, "saving_share", share_json(all, f->saving_ns));
  json_object_set_new(o, "saving_bytes", number(f->saving_bytes));
  json_object_set_new(o, "bytes_are", json_string(f->rule->holds ? "held" : "moved"));
  json_object_set_new(o, "count", number(f->count));
  json_object_set_new(o, "sites", sites_json(f));
  json_object_set_new(o, "more_sites", number(f->more_sites));
  json_object_set_new(o, "range", text_or_null(f->range));
  json_object_set_new(o, "device", f->device >= 0 ? json_integer(f->device) : json_null());
  if (!json_object_set_new(o, "fix", json_string(f->rule->fix))) return o;
  json_decref(o);
  return NULL;
}

static json_t *removed_json(const wr_findings *f)
{
  json_t *list = json_array();
  for (size_t i = 0; i < f->removed_count; i++) {
    json_t *o = json_object();
    json_object_set_new(o, "id", json_string(f->removed[i].rule->id));
    json_object_set_new(o, "count", number(f->removed[i].count));
    json_object_set_new(o, "bytes", number(f->removed[i].bytes));
    json_array_append_new(list, o);
  }
  return list;
}

static json_t *unjudged_json(const wr_findings *f)
{
  json_t *list = json_array();
  for (size_t i = 0; i < f->unjudged_count; i++) {
    json_t *o = json_object();
    json_object_set_new(o, "id", json_string(f->unjudged[i].rule->id));
    json_object_set_new(o, "why", json_string(f->unjudged[i].why));
    json_array_append_new(list, o);
  }
  return list;
}

json_t *wr_findings_json(const wr_findings *f)
{
  json_t *o = json_object(), *list = json_array();
  int failed = json_object_set_new(o, "schema", json_string("weir-findings/1"));
  for (size_t i = 0; !failed && i < f->count; i++)
    failed = json_array_append_new(list, finding_json(f, &f->finding[i]));
  if (json_object_set_new(o, "findings", list)) failed = -1;
  json_object_set_new(o, "duration_ns", number(f->duration_ns));
  json_object_set_new(o, "saving_ns", number(f->saving_ns));
  json_object_set_new(o, "sure_saving_ns", number(f->sure_saving_ns));
  json_object_set_new(o, "moved_bytes", number(f->moved_bytes));
  json_object_set_new(o, "removed", removed_json(f));
  json_object_set_new(o, "unavailable", text_or_null(f->unavailable));
  if (json_object_set_new(o, "unjudged", unjudged_json(f))) failed = -1;
  if (!failed) return o;
  json_decref(o);
  return NULL;
}

weir_status wr_findings_render_json(FILE *out, const wr_findings *f, const char *path)
{
  json_t *o = wr_findings_json(f);
  if (!o) return weir_fail(WEIR_ENOMEM, "reporting on %s: out of host memory", path);
  int written = json_dumpf(o, out, JSON_INDENT(2));
  json_decref(o);
  if (written || fputc('\n', out) == EOF || fflush(out))
    return weir_fail(WEIR_EIO, "the report on %s cannot be written", path);
  return WEIR_OK;
}
