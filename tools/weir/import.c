/* import.c: weir import: spools that were left without a collector, into a trace. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/trace/spool.h"
#include "reports/import.h"
#include "tools/weir/commands.h"
#include "tools/weir/output.h"
#include "tools/weir/progress.h"

enum { OPT_OUTPUT };

const cmd_option import_options[] = {
    [OPT_OUTPUT] = {"output", 'o', CMD_ARG_REQUIRED, "FILE", "the trace to write (needed)"},
    {NULL, 0, CMD_ARG_NONE, NULL, NULL},
};

static bool on_option(const cmd *c, size_t at, const char *value, void *context)
{
  (void)c, (void)at;
  *(const char **)context = value;
  return true;
}

/* ---- one spool ---------------------------------------------------------------------------------
 */

/* What the spool itself knows of its end. */
static weir_end_reason reason_of(const char *path)
{
  weir_spool_reader *r;
  weir_end_reason reason = WEIR_END_UNKNOWN;
  if (weir_spool_reader_open(&r, path, false) != WEIR_OK) return reason;
  uint32_t closed =
      atomic_load_explicit(&weir_spool_reader_header(r)->closed, memory_order_relaxed);
  if (closed) reason = closed == 2 ? WEIR_END_EXEC : WEIR_END_EXIT;
  weir_spool_reader_close(r);
  return reason;
}

static bool import_spool(weir_importer *im, const char *path)
{
  uint32_t number;
  if (weir_importer_add(im, path, false, &number) == WEIR_OK &&
      weir_importer_end(im, number, reason_of(path), -1) == WEIR_OK)
    return true;
  cmd_say("%s.", weir_error_message());
  return false;
}

/* ---- folders -----------------------------------------------------------------------------------
 */

static int spool_entry(const struct dirent *e)
{
  size_t n = strlen(e->d_name), suffix = sizeof WEIR_SPOOL_SUFFIX - 1;
  return n > suffix && !strcmp(e->d_name + n - suffix, WEIR_SPOOL_SUFFIX);
}

static bool import_folder(weir_importer *im, const char *folder)
{
  struct dirent **entries;
  int n = scandir(folder, &entries, spool_entry, alphasort);
  bool good = true;
  if (n <= 0) {
    cmd_say(n < 0 ? "cannot read %s: %s." : "there is no spool in %s.", folder, strerror(errno));
    return false;
  }
  for (int i = 0; i < n; i++) {
    char *path = cmd_format("%s/%s", folder, entries[i]->d_name);
    good = import_spool(im, path) && good;
    free(path);
    free(entries[i]);
  }
  free(entries);
  return good;
}

static bool import_operand(weir_importer *im, const char *path)
{
  struct stat st;
  if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) return import_folder(im, path);
  return import_spool(im, path);
}

/* ---- the command -------------------------------------------------------------------------------
 */

/* Imports all; a bad spool costs the exit status and not the others. */
static int import_all(const char *output, int count, char **spools)
{
  weir_importer *im;
  progress p = {.allowed = true};
  weir_importer_options o = {
      .overwrite = true, .progress = progress_report, .progress_context = &p};
  char events[32];
  bool good = true;
  if (weir_importer_open(&im, output, &o) != WEIR_OK) {
    cmd_say("%s.", weir_error_message());
    return CMD_FAILED;
  }
  for (int i = 0; i < count; i++)
    good = import_operand(im, spools[i]) && good;
  if (weir_importer_finish(im) != WEIR_OK) {
    cmd_say("%s.", weir_error_message());
    good = false;
  }
  progress_clear(&p);
  if (cmd_chatty())
    cmd_say("%s: %s events; see 'weir report %s'.", output,
            cmd_grouped(events, weir_importer_events(im)), output);
  weir_importer_close(im);
  return good ? 0 : CMD_FAILED;
}

int import_main(const cmd *c, int argc, char **argv)
{
  const char *output = NULL;
  bool helped;
  int at = cmd_parse(c, argc, argv, false, on_option, &output, &helped);
  if (at < 0) return CMD_USAGE;
  if (helped) return 0;
  if (at == argc) return cmd_usage(c, "which spools? SPOOL is missing");
  if (!output) return cmd_usage(c, "where to? -o FILE is missing");
  if (!output_may_write(output, true)) return CMD_FAILED;
  return import_all(output, argc - at, argv + at);
}
