/* output.c: which file a trace may be written to. Nothing that is there is replaced without being
 * asked to, a file that Weir did not write never, and neither is a trace that is being written. */
#include "tools/weir/collect/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reports/import/trace_file.h"
#include "tools/weir/base/cmd.h"
#include "tools/weir/base/output_file.h"

enum { MOST_NAMES = 10000 };

/* Returns how many bytes a path has without its ".db". */
static int stem_bytes(const char *path)
{
  size_t n = strlen(path);
  if (n > 3 && !strcmp(path + n - 3, ".db") && path[n - 4] != '/') n -= 3;
  return (int)n;
}

/* Returns the name number `n` of trace.db, trace-2.db, trace-3.db, ... New. */
static char *numbered_path(const char *path, int n)
{
  int stem = stem_bytes(path);
  if (n < 2) return cmd_format("%s", path);
  return cmd_format("%.*s-%d%s", stem, path, n, path + stem);
}

char *output_of_rank(const char *path, uint32_t rank)
{
  int stem = stem_bytes(path);
  return cmd_format("%.*s.%u%s", stem, path, rank - 1, path + stem);
}

/* Returns the first numbered name with nothing there. New. */
static char *free_name(const char *path)
{
  struct stat info;
  for (int n = 2;; n++) {
    char *name = numbered_path(path, n);
    if (n == MOST_NAMES || (lstat(name, &info) < 0 && errno == ENOENT)) return name;
    free(name);
  }
}

static bool refuse_path(const char *path, wr_trace_state state)
{
  char *other = free_name(path);
  switch (state) {
  case WR_TRACE_KEPT:
    cmd_message("%s is there already: --force replaces it; %s is free.", path, other);
    break;
  case WR_TRACE_LIVE:
    cmd_message("%s is being written by another run; %s is free.", path, other);
    break;
  case WR_TRACE_FOREIGN:
    cmd_message(
        "%s is not a file of ours, or has another name too: it is not replaced; %s is free.", path,
        other);
    break;
  default:
    cmd_message("%s is there and is no trace of Weir's: it is not replaced; %s is free.", path,
                other);
    break;
  }
  free(other);
  return false;
}

void output_refuse_other_run(const char *path)
{
  char *other = free_name(path);
  cmd_message("%s holds another run: --force replaces it; %s is free.", path, other);
  free(other);
}

bool output_may_extend(const char *path, bool force)
{
  wr_trace_state state;
  return (!force && *path && wr_trace_file_look(path, &state) == WEIR_OK &&
          state == WR_TRACE_KEPT) ||
         output_may_write(path, force);
}

bool output_may_write(const char *path, bool force)
{
  wr_trace_state state;
  if (!*path) {
    cmd_message("the name of the trace is empty.");
    return false;
  }
  if (output_is_stdout(path)) {
    cmd_message("a trace is a file: it cannot be written to stdout, which -o - would be.");
    return false;
  }
  if (wr_trace_file_look(path, &state) != WEIR_OK) {
    cmd_message("%s.", weir_error_message());
    return false;
  }
  if (state == WR_TRACE_FREE || (state == WR_TRACE_KEPT && force)) return true;
  return refuse_path(path, state);
}

bool output_may_share(const char *path, bool force, uint32_t rank, bool *shared)
{
  wr_trace_state state;
  *shared = rank && *path && wr_trace_file_look(path, &state) == WEIR_OK &&
            (state == WR_TRACE_LIVE || (state == WR_TRACE_KEPT && (!force || rank > 1)));
  if (!*shared) return output_may_write(path, force);
  char *own = output_of_rank(path, rank);
  bool may = output_may_write(own, force);
  free(own);
  return may;
}

char *output_reserve(const char *path)
{
  for (int n = 1; n < MOST_NAMES; n++) {
    char *name = numbered_path(path, n);
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) {
      (void)close(fd);
      return name;
    }
    if (errno != EEXIST) {
      cmd_message("cannot write %s: %s.", name, strerror(errno));
      free(name);
      return NULL;
    }
    free(name);
  }
  cmd_message("cannot write %s: it and all its numbered names are there.", path);
  return NULL;
}

char *output_for_dumps(const char *path)
{
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  char *parent =
      slash ? cmd_format("%.*s", (int)(slash - path + (slash == path)), path) : cmd_format(".");
  char *folder = realpath(parent, NULL), *whole = NULL;
  if (folder && *name && access(folder, W_OK | X_OK) == 0)
    whole = cmd_format("%s%s%s", folder, folder[1] ? "/" : "", name);
  else
    cmd_message("cannot write dumps as %s: %s.", path, *name ? strerror(errno) : "it has no name");
  free(folder);
  free(parent);
  return whole;
}
