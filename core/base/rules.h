/* rules.h: a user's rules for what goes through the caches, as text and as a table.
 *
 *     # sizes with K, M, G or T; all conditions of a line must hold
 *     passthrough size>=64M
 *     cache module=libfoo.so
 *     passthrough module=libfoo.so function=load_batch size<4K
 *     staging off function=load_batch
 *
 * An action (passthrough: the driver's; cache: through a cache, where that can be; staging on: at
 * once, off: the driver's, auto: where it was measured to win), then any of size (>=, >, <=, <, =),
 * module and function, each once, but a size may have two bounds. The first rule that fits decides,
 * for allocations among passthrough and cache, for copies among the staging ones; where none fits,
 * it is as without rules. A module is a file name without folders, and stands for the same with a
 * version after it too; a function is named as in the symbol table of its file. Both are those of
 * the caller. */
#ifndef WEIR_BASE_RULES_H
#define WEIR_BASE_RULES_H

#include <stddef.h>
#include <stdint.h>
#include "core/base/require.h"

enum { WEIR_RULES_MAX = 64, WEIR_RULE_NAME = 256 };

typedef enum rule_action {
  WEIR_RULE_NONE,
  WEIR_RULE_PASSTHROUGH,
  WEIR_RULE_CACHE,
  WEIR_RULE_STAGING_AUTO,
  WEIR_RULE_STAGING_OFF,
  WEIR_RULE_STAGING_ON
} rule_action;

typedef struct rule_entry {
  rule_action action;
  uint64_t least, most;          /* bytes, both in */
  char module[WEIR_RULE_NAME];   /* "": any */
  char function[WEIR_RULE_NAME]; /* "": any */
} rule_entry;

typedef struct rule_list {
  unsigned count;
  rule_entry rule[WEIR_RULES_MAX]; /* in the order of the file */
} rule_list;

/* Reads rules from `bytes` of text; `name` stands for its file in errors: EINVAL with file, line
 * and what was expected. *out is undefined then. */
weir_status rule_list_parse(rule_list *out, const char *name, const char *text, size_t bytes);

/* The same from a file of at most 64 KiB. Errors: EINVAL; EIO: it cannot be read. */
weir_status rule_list_read(rule_list *out, const char *path);

#endif
