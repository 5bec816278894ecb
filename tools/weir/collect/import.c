/* import.c: weir import: spools that were left without a collector, into a trace. */

#include "reports/import/import.h"
#include "tools/weir/base/commands.h"
#include "tools/weir/base/figures.h"
#include "tools/weir/collect/output.h"
#include "tools/weir/base/progress.h"
#include "tools/weir/collect/spool_list.h"

typedef struct target {
  const char *output;
  bool force;
} target;

/* ---- the command ----------------------------------------------------------------------------- */

/* Whether the trace that is there is of the run that left the spools. */
static bool same_run(trace_importer *im, const target *t, const spool_list *l)
{
  bool known = !importer_merges(im) || spool_list_known(im, l);
  if (!known) output_refuse_other_run(t->output);
  return known;
}

/* Imports all spools. A bad one costs the exit status, not the others. */
static int import_all(const target *t, const spool_list *l, bool good)
{
  trace_importer *im;
  progress p = {.trace = t->output, .allowed = true};
  importer_options o = {.overwrite = t->force,
                        .merge = !t->force,
                        .progress = progress_report,
                        .progress_context = &p};
  char events[32];
  if (importer_open(&im, t->output, &o) != WEIR_OK) return cmd_failed();
  if (!same_run(im, t, l)) {
    importer_close(im);
    return CMD_FAILED;
  }
  for (unsigned i = 0; i < l->count; i++)
    good = spool_import(im, l->path[i]) && good;
  if (importer_finish(im) != WEIR_OK) {
    cmd_message("%s.", weir_error_message());
    good = false;
  }
  progress_clear(&p);
  if (cmd_chatty())
    cmd_message("%s: %s events%s; see 'weir report %s'.", t->output,
                cmd_grouped(events, importer_events(im)), importer_merges(im) ? " added" : "",
                t->output);
  importer_close(im);
  if (good) figures_keep(t->output);
  return good ? 0 : CMD_FAILED;
}

int import_main(const cmd *c, int argc, char **argv)
{
  cmd_line line = {0};
  int at = cmd_parse(c, argc, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  figures_ask(&line);
  const target t = {line.value[OPT_IMPORT_OUTPUT].text, line.value[OPT_IMPORT_FORCE].given};
  if (at == argc) return cmd_usage(c, "which spools? SPOOL is missing");
  if (!t.output) return cmd_usage(c, "where to? -o FILE is missing");
  if (!output_may_extend(t.output, t.force)) return CMD_FAILED;
  spool_list l = {0};
  bool good = true;
  for (int i = at; i < argc; i++)
    good = spool_list_operand(&l, argv[i]) && good;
  good = spool_list_check(&l) && good;
  int status = l.count ? import_all(&t, &l, good) : CMD_FAILED; /* nothing to import: no trace */
  spool_list_clear(&l);
  return status;
}
