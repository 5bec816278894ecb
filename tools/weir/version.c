/* version.c: weir version: ours, and those of what we stand on. */
#include <elfutils/libdwfl.h>
#include <gnu/libc-version.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>

#include "core/trace/spool.h"
#include "core/weir.h"
#include "tools/weir/base/commands.h"

int version_main(const cmd *c, int argc, char **argv)
{
  cmd_line line = {0};
  int at = cmd_parse(c, argc, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  if (at < argc) return cmd_usage(c, "weir version takes no argument, not '%s'", argv[at]);
  printf("weir %s\n", WEIR_VERSION);
  printf("spool format %u\n", WEIR_SPOOL_VERSION);
  printf("SQLite %s\n", sqlite3_libversion());
  printf("jansson %s\n", JANSSON_VERSION);
  printf("elfutils libdw %s\n", dwfl_version(NULL));
  printf("glibc %s\n", gnu_get_libc_version());
  return 0;
}
