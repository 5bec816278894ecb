/* spool_list.h: spools that were left without a collector. */
#ifndef WEIR_TOOLS_WEIR_COLLECT_SPOOL_LIST_H
#define WEIR_TOOLS_WEIR_COLLECT_SPOOL_LIST_H

#include <stdbool.h>

#include "reports/import/import.h"

typedef struct spool_list {
  char **path; /* each owned */
  unsigned count, room;
} spool_list;

/* Whether a name is that of a spool in its folder. */
bool spool_is_name(const char *name);

/* Whether a folder is such as Weir makes: owned by the user, mode 0700, no link. */
bool spool_folder_is_ours(const char *path);

/* Adds a spool, or all of a folder. Returns false after a message. */
bool spool_list_operand(spool_list *l, const char *path);

/* Keeps the spools that can be read; there is a message about each of the others. Returns whether
 * all are kept. */
bool spool_list_check(spool_list *l);

void spool_list_clear(spool_list *l);

/* Whether the importer's trace knows one of them. */
bool spool_list_known(trace_importer *im, const spool_list *l);

/* Imports one spool to its end. Returns false after a message. */
bool spool_import(trace_importer *im, const char *path);

#endif
