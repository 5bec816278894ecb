/* source.c: see source.h. The file's name comes out of an untrusted trace: only what is called as
 * source is, is read, so that a trace of somebody else's quotes no other files of the reader's. */
#include "reports/findings/source.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
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
  if (n < 0 || !text) {
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

char *wr_source_line(const char *file, int line, int64_t time)
{
  struct stat st;
  if (!file || line < 1 || !called_as_source(file)) return NULL;
  int fd = wr_open_regular(file, MOST_BYTES, &st);
  if (fd < 0) return NULL;
  bool later = time > 0 && st.st_mtim.tv_sec > time / 1000000000;
  FILE *f = later ? NULL : fdopen(fd, "r");
  char *text = f ? nth_line(f, line) : NULL;
  if (f)
    (void)fclose(f);
  else
    close(fd);
  return text;
}
