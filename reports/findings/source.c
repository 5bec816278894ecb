/* source.c: see source.h. */
#include "reports/findings/source.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "reports/base/follow.h"
#include "reports/base/util.h"

enum { MOST_BYTES = 8 << 20, LONGEST = 200 };

static bool called_as_source(const char *file)
{
  static const char *const ends[] = {".c",   ".cc",  ".cpp", ".cxx", ".cu", ".cuh", ".h",   ".hh",
                                     ".hpp", ".inl", ".py",  ".rs",  ".jl", ".f90", ".F90", ".f"};
  const char *dot = strrchr(file, '.');
  for (size_t i = 0; dot && i < sizeof(ends) / sizeof(ends[0]); i++)
    if (!strcmp(dot, ends[i])) return true;
  return false;
}

/* Line `line` of a file that is open (new), or NULL. */
static char *nth_line(FILE *f, int line)
{
  char *text = NULL;
  size_t room = 0;
  ssize_t n = 0;
  for (int i = 0; i < line && n >= 0; i++)
    n = getline(&text, &room, f);
  if (n < 0 || !text || strlen(text) < (size_t)n) { /* none, or no text */
    free(text);
    return NULL;
  }
  size_t first = strspn(text, " \t"), bytes = strcspn(text + first, "\r\n");
  while (bytes && (text[first + bytes - 1] == ' ' || text[first + bytes - 1] == '\t'))
    bytes--;
  char *clean = bytes ? wr_text(text + first, bytes < LONGEST ? bytes : LONGEST, true) : NULL;
  free(text);
  return clean;
}

/* Opens what is called as a source and is a regular file of 1 to MOST_BYTES. -1: it is none. */
static int open_source(const char *file, struct stat *st)
{
  wr_followed at;
  if (wr_follow(file, &at)) return -1;
  int fd = -1;
  if (!at.process && called_as_source(at.name))
    fd = openat(at.folder, at.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  (void)close(at.folder);
  if (fd < 0) return -1;
  if (!fstat(fd, st) && S_ISREG(st->st_mode) && st->st_size > 0 && st->st_size <= MOST_BYTES)
    return fd;
  (void)close(fd);
  return -1;
}

/* Seconds: a copy of a file may have lost the rest. */
static bool changed_after(const struct stat *st, int64_t time)
{
  return time > 0 && st->st_mtim.tv_sec > time / 1000000000;
}

char *wr_source_line(const char *file, int line, int64_t began, int64_t built)
{
  struct stat st;
  int fd = file && line > 0 ? open_source(file, &st) : -1;
  if (fd < 0) return NULL;
  bool later = changed_after(&st, began) || changed_after(&st, built);
  FILE *f = later ? NULL : fdopen(fd, "r");
  char *text = f ? nth_line(f, line) : NULL;
  if (f)
    (void)fclose(f);
  else
    (void)close(fd);
  return text;
}

weir_status wr_sources_may_be_quoted(const wr_db *db, wr_quoting asked, bool *may)
{
  struct stat file;
  *may = asked == WR_QUOTE_ANY;
  if (asked != WR_QUOTE_OWN || stat(db->path, &file) || file.st_uid != geteuid()) return WEIR_OK;
  *may = true;
  if (!wr_db_has_column(db, "process", "uid")) return WEIR_OK;
  char *sql = wr_format("SELECT NOT EXISTS (SELECT 1 FROM process) OR EXISTS (SELECT 1 FROM process"
                        " WHERE ifnull(uid, -1) IN (-1, %lld))",
                        (long long)geteuid());
  int64_t own = 0;
  weir_status s = sql ? wr_db_number(db, sql, &own) : wr_db_out_of_memory(db);
  free(sql);
  *may = own != 0;
  return s;
}
