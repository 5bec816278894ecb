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
 * the caller.
 *
 * A file of *fixes* is written in the same way. Its lines are proofs, and the actions of
 * reroutes.def (or "relaxed": a free that does not wait), each at one place, which the proof line
 * before it is of:
 *
 *     proof gain=1.52ms..1.71ms pairs=12 driver=13.0 date=2026-05-04 card=NVIDIA H100 80GB HBM3
 *     # cudaMalloc in step, train.cu:42
 *     fix device module=train function=step at=9f3c01ab+0x1a2b,9f3c01ab+0x2210
 *     end
 *
 * at: frames of the stack, innermost first, each the build-id of its file in hexadecimal and the
 * return address as the file has it. module: the file's name of the first frame; function: of the
 * place, without blanks: for messages, and to find the place in another build. card: the rest of its
 * line. A call that no line fits is the driver's. Without the last line, end, the file was cut
 * short, and is refused. */
#ifndef WEIR_BASE_RULES_H
#define WEIR_BASE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "core/base/require.h"

enum {
  WEIR_RULES_MAX = 64,
  WEIR_RULE_NAME = 256,
  WEIR_RULE_FRAMES = 8,
  WEIR_RULE_ID = 32, /* bytes of a build-id */
  WEIR_RULE_WORD = 128
};

typedef enum rule_action {
  WEIR_RULE_NONE,
  WEIR_RULE_PASSTHROUGH,
  WEIR_RULE_CACHE,
  WEIR_RULE_STAGING_AUTO,
  WEIR_RULE_STAGING_OFF,
  WEIR_RULE_STAGING_ON,
  WEIR_RULE_FIX
} rule_action;

typedef struct rule_frame {
  uint8_t id[WEIR_RULE_ID];
  unsigned id_bytes;
  uint64_t offset; /* of the return address, from the file's load bias */
} rule_frame;

static inline bool rule_frames_same(const rule_frame *a, const rule_frame *b, unsigned count)
{
  for (unsigned i = 0; i < count; i++)
    if (a[i].offset != b[i].offset || a[i].id_bytes != b[i].id_bytes ||
        memcmp(a[i].id, b[i].id, a[i].id_bytes) != 0)
      return false;
  return true;
}

typedef struct rule_proof { /* texts: "" not there */
  char gain[WEIR_RULE_WORD], pairs[WEIR_RULE_WORD], date[WEIR_RULE_WORD];
  char driver[WEIR_RULE_WORD], card[WEIR_RULE_WORD];
} rule_proof;

typedef struct rule_entry {
  rule_action action;
  uint64_t least, most;          /* bytes, both in */
  char module[WEIR_RULE_NAME];   /* "": any */
  char function[WEIR_RULE_NAME]; /* "": any */
  unsigned line;                 /* of the file, from 1 */
  /* of a fix: */
  unsigned fix; /* one bit of reroutes.h, or REROUTE_RELAXED */
  unsigned frames;
  rule_frame frame[WEIR_RULE_FRAMES]; /* innermost first */
  unsigned proof;                     /* index; there is always one */
} rule_entry;

typedef struct rule_list {
  unsigned count;
  rule_entry rule[WEIR_RULES_MAX]; /* in the order of the file */
  bool ended;                      /* of fixes: the last line was read */
  unsigned proofs;
  rule_proof proof[WEIR_RULES_MAX];
} rule_list;

/* Reads rules from `bytes` of text; `name` stands for its file in errors: EINVAL with file, line
 * and what was expected. *out is undefined then. */
weir_status rule_list_parse(rule_list *out, const char *name, const char *text, size_t bytes);

/* The same from a file of at most 64 KiB. Errors: EINVAL; EIO: it cannot be read. */
weir_status rule_list_read(rule_list *out, const char *path);

/* The same two of a file of fixes, which has at least one. */
weir_status fix_list_parse(rule_list *out, const char *name, const char *text, size_t bytes);
weir_status fix_list_read(rule_list *out, const char *path);

#endif
