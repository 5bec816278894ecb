/* spool_list.c: spools that were left without a collector: found, checked, imported one by one. */
#include "tools/weir/collect/spool_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/trace/spool.h"
#include "tools/weir/base/cmd.h"

/* ---- one spool ------------------------------------------------------------------------------- */

/* Returns what the spool itself holds about its end. */
static importer_end_reason reason_of(const char *path)
{
  spool_reader *r;
  importer_end_reason reason = WEIR_END_UNKNOWN;
  if (spool_reader_open(&r, path, false) != WEIR_OK) return reason;
  uint32_t closed = atomic_load_explicit(&spool_reader_header(r)->closed, memory_order_relaxed);
  if (closed) reason = closed == 2 ? WEIR_END_EXEC : WEIR_END_EXIT;
  spool_reader_close(r);
  return reason;
}

bool spool_import(trace_importer *im, const char *path)
{
  uint32_t number;
  if (importer_add(im, path, false, &number) == WEIR_OK &&
      importer_end(im, number, reason_of(path), -1) == WEIR_OK)
    return true;
  cmd_message("%s.", weir_error_message());
  return false;
}

/* ---- folders --------------------------------------------------------------------------------- */

bool spool_is_name(const char *name)
{
  size_t n = strlen(name), suffix = sizeof WEIR_SPOOL_SUFFIX - 1;
  return n > suffix && !strcmp(name + n - suffix, WEIR_SPOOL_SUFFIX);
}

bool spool_folder_is_ours(const char *path)
{
  struct stat info;
  return lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
         (info.st_mode & 077) == 0;
}

static int spool_entry(const struct dirent *e)
{
  return spool_is_name(e->d_name);
}

/* Adds a path, which the list owns from then on. */
static void list_add(spool_list *l, char *path)
{
  l->path = cmd_grow(l->path, &l->room, l->count, sizeof *l->path);
  l->path[l->count++] = path;
}

void spool_list_clear(spool_list *l)
{
  for (unsigned i = 0; i < l->count; i++)
    free(l->path[i]);
  free(l->path);
}

static bool list_folder(spool_list *l, const char *folder)
{
  struct dirent **entries;
  int n = scandir(folder, &entries, spool_entry, alphasort);
  if (n <= 0) {
    cmd_message(n < 0 ? "cannot read %s: %s." : "there is no spool in %s.", folder,
                strerror(errno));
    if (n == 0) free(entries);
    return false;
  }
  for (int i = 0; i < n; i++) {
    list_add(l, cmd_format("%s/%s", folder, entries[i]->d_name));
    free(entries[i]);
  }
  free(entries);
  return true;
}

bool spool_list_operand(spool_list *l, const char *path)
{
  struct stat info;
  if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return list_folder(l, path);
  list_add(l, cmd_format("%s", path));
  return true;
}

bool spool_list_check(spool_list *l)
{
  unsigned kept = 0, count = l->count;
  for (unsigned i = 0; i < count; i++) {
    spool_reader *r;
    if (spool_reader_open(&r, l->path[i], false) == WEIR_OK) {
      spool_reader_close(r);
      l->path[kept++] = l->path[i];
    } else {
      cmd_message("%s.", weir_error_message());
      free(l->path[i]);
    }
  }
  l->count = kept;
  return kept == count;
}

bool spool_list_known(trace_importer *im, const spool_list *l)
{
  bool known = false;
  for (unsigned i = 0; i < l->count && !known; i++)
    if (importer_knows(im, l->path[i], &known) != WEIR_OK) cmd_message("%s.", weir_error_message());
  return known;
}
