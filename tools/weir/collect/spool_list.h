/* spool_list.h: spools that were left without a collector. */
#ifndef WEIR_TOOLS_WEIR_COLLECT_SPOOL_LIST_H
#define WEIR_TOOLS_WEIR_COLLECT_SPOOL_LIST_H

#include <stdbool.h>

#include "reports/import/import.h"

typedef struct spool_list {
  char **path; /* each owned */
  unsigned count, room;
} spool_list;

/* A spool's name in its folder. */
bool spool_is_name(const char *name);

/* Such a folder as Weir makes: owned by the user, mode 0700, no link. */
bool spool_folder_is_ours(const char *path);

/* Adds a spool, or all of a folder. False after a sentence. */
bool spool_list_operand(spool_list *l, const char *path);

/* Leaves those that can be read; the others are named. Whether all are left. */
bool spool_list_check(spool_list *l);

void spool_list_clear(spool_list *l);

/* Whether the importer's trace knows one of them. */
bool spool_list_known(trace_importer *im, const spool_list *l);

/* Takes one in, to its end. False after a sentence. */
bool spool_import(trace_importer *im, const char *path);

#endif
