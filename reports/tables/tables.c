/* tables.c: see tables.h. */
#include "reports/tables/tables.h"
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"
#include "reports/tables/build.h"

enum { TOP_WORDS = 10 /* rows of a main table in text and Markdown, where none are asked for */ };

static const struct kind {
  const char *name;
  weir_status (*build)(const wr_build *b);
  bool by; /* --by is for it */
} kinds[] = {{"transfers", wr_build_transfers, true}, {"waits", wr_build_waits, true},
             {"memory", wr_build_memory, true},       {"leaks", wr_build_leaks, true},
             {"devices", wr_build_devices, false},    {"idle", wr_build_idle, false},
             {"coverage", wr_build_coverage, false},  {"summary", wr_build_summary, true},
             {"cache", wr_build_cache, false},        {"oom", wr_build_oom, true},
             {"findings", wr_build_findings, false}};

static const struct kind *kind_of(const char *name)
{
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (!strcmp(kinds[i].name, name)) return &kinds[i];
  return NULL;
}

bool report_tables_has(const char *name)
{
  return kind_of(name) != NULL;
}

bool report_tables_by(const char *name)
{
  const struct kind *kind = kind_of(name);
  return kind && kind->by;
}

static int top_of(const report_settings *o)
{
  bool words = o->format == WEIR_REPORT_TEXT || o->format == WEIR_REPORT_MARKDOWN;
  return o->top > 0 ? o->top : words ? TOP_WORDS : 0;
}

static weir_status build_tables(wr_tables *t, const struct kind *kind, const wr_db *db,
                                const report_settings *o)
{
  wr_scope scope;
  weir_status s = wr_scope_open(&scope, db, o);
  if (s) return s;
  wr_build b = {t, db, &scope, o, top_of(o)};
  if (scope.any && !(t->scope = wr_scope_words(&scope, o))) s = wr_db_out_of_memory(db);
  if (!s) s = kind->build(&b);
  wr_scope_close(&scope);
  return s;
}

weir_status wr_tables_build(wr_tables *t, const char *name, const wr_db *db,
                            const report_settings *o)
{
  const struct kind *kind = kind_of(name);
  if (!kind) return weir_fail(WEIR_EINVAL, "there is no report '%s' in tables", name);
  *t = (wr_tables){.report = kind->name, .trace = wr_text(db->path, strlen(db->path), true)};
  return t->trace ? build_tables(t, kind, db, o) : wr_db_out_of_memory(db);
}
