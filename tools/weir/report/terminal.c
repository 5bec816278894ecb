/* terminal.c: see terminal.h. */
#include "tools/weir/report/terminal.h"
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/weir/base/cmd.h"

bool terminal_has_color(void)
{
  const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
  return isatty(STDOUT_FILENO) && !(no_color && *no_color) && !(term && !strcmp(term, "dumb"));
}

int terminal_width(int asked)
{
  struct winsize size;
  long columns;
  const char *columns_text = getenv("COLUMNS");
  if (asked != TERMINAL_NOT_ASKED) return asked;
  if (!isatty(STDOUT_FILENO)) return 0;
  if (columns_text && cmd_number(columns_text, 1, 100000, &columns)) return (int)columns;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}
