/* callers.h: the stacks of history, as small numbers for the whole process.
 *
 * A stack is captured before a pool's lock is taken and interned under a lock of its own; the
 * thread carries its token through the call. The table lives while somebody holds it and begins
 * anew after the last one let go: a token of an earlier table is none. Memory is bounded
 * (CALLERS_BYTES); what finds no room has no stack and is counted. */
#ifndef WEIR_MEMORY_CALLERS_H
#define WEIR_MEMORY_CALLERS_H

#include "core/memory/names.h"
#include "core/memory/pool.h"

enum { CALLERS_DEPTH = 96, CALLERS_BYTES = 64 << 20 };

/* For who records, and for who reads what was recorded. */
void callers_hold(void);
void callers_release(void);

/* A token for the caller's stack; 0: none. Host memory is asked of p's source. No lock held. */
uint64_t weir_callers_capture(const mem_pool *p);
/* The stack's number if the token is of the table that is in use; 0: none. */
uint32_t callers_id(uint64_t token);
/* Its addresses (borrowed while held), innermost first; returns how many. */
unsigned callers_frames(uint32_t id, const uint64_t **frames);
/* How many of the innermost are the allocator's own. */
unsigned callers_own(uint32_t id, code_names *names);

typedef struct callers_figures {
  uint64_t stacks, bytes, lost; /* interned; host memory in use; captured and found no room */
  const char *unwinder;         /* "libunwind", "backtrace", "off" (static) */
} callers_figures;
callers_figures callers_count(void);

/* "inner (object+0x12) < outer (...)", at most `most` frames, cut at `room`. Returns its length. */
size_t callers_text(char *out, size_t room, uint32_t id, unsigned most, code_names *names);

#endif
