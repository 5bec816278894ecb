/* output.c: which file a trace may be written to. A file that Weir did not write is never replaced.
 */
#include "tools/weir/output.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/weir/cmd.h"

/* A trace is known by its tables: enough of them that no other database has all. */
static bool is_trace(const char *path)
{
  sqlite3 *db = NULL;
  sqlite3_stmt *s = NULL;
  bool yes = sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
             sqlite3_prepare_v2(db,
                                "SELECT count(*) = 4 FROM sqlite_master WHERE type = 'table' AND "
                                "name IN ('meta', 'event', 'coverage', 'stack_frame')",
                                -1, &s, NULL) == SQLITE_OK &&
             sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int(s, 0);
  (void)sqlite3_finalize(s);
  (void)sqlite3_close(db);
  return yes;
}

bool output_may_write(const char *path)
{
  struct stat st;
  if (!*path) {
    cmd_say("the name of the trace is empty.");
    return false;
  }
  if (stat(path, &st) < 0) {
    if (errno == ENOENT) return true; /* what else is wrong, creating it will tell */
    cmd_say("cannot write %s: %s.", path, strerror(errno));
    return false;
  }
  if (!S_ISREG(st.st_mode)) {
    cmd_say("%s is not a regular file: a trace cannot be written there.", path);
    return false;
  }
  if (st.st_size == 0 || is_trace(path)) return true;
  cmd_say("%s is there and is no trace of Weir's: it is not replaced.", path);
  return false;
}

char *output_reserve(const char *path)
{
  for (int n = 0; n < 10000; n++) {
    char *name = n ? cmd_format("%s.%d", path, n) : cmd_format("%s", path);
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
      (void)close(fd);
      return name;
    }
    if (errno != EEXIST) {
      cmd_say("cannot write %s: %s.", name, strerror(errno));
      free(name);
      return NULL;
    }
    free(name);
  }
  cmd_say("cannot write %s: it and %s.1 to .9999 are all there.", path, path);
  return NULL;
}
