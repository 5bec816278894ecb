/* asked.h: calls that ask, counted.
 *
 * A program asks for a device's properties or for free memory a million times: an event each would
 * cost more than the answers, and none shows nothing. So calls are counted by thread, function and
 * return address, one in 64 is timed, and a place that has asked 64 times is recorded: one CALL
 * event, which has its stack, and ASKED records, which add up to its calls (core/trace/event.h). A
 * place that asks less often leaves nothing in a trace.
 *
 * A thread's places are in a table of its own: counting reads no clock and takes no lock. What is
 * not recorded yet is an eighth of a place's calls at most, and no more than 4096; a killed program
 * loses that. While only memory is recorded none is added to a record. Calls that the runtime and the driver make themselves are known by their return
 * address, and not counted. */
#ifndef WEIR_INTERPOSE_ASKED_H
#define WEIR_INTERPOSE_ASKED_H

#include "interpose/record/record.h"

enum { ASKED_PLACES = 256 /* of a thread; further ones are counted together */ };

/* What each call reads. */
typedef struct asked_slot {
  uintptr_t from; /* return address; 0: free */
  uint32_t left;  /* calls until one is timed, which is that one too */
  uint16_t api;   /* core/trace/api.def */
} asked_slot;

/* The rest of a table (asked.c) follows. */
typedef struct asked_table {
  asked_slot slot[ASKED_PLACES + 1]; /* the last: of all places for which there was no room */
} asked_table;

_Static_assert(ASKED_PLACES == 1 << 8, "a home is eight bits");

WEIR_INLINE unsigned asked_home(uint16_t api, uintptr_t from)
{
  return ((uint32_t)from + api) * UINT32_C(0x9e3779b1) >> 24;
}

/* Finds the place of a call that is to be timed, or has no place yet, and counts it. NULL: it need
 * not be timed. Keeps errno. */
asked_slot *asked_look(uint16_t api, uintptr_t from);

/* Counts a call that asks. NULL: that is all; else the call is timed, and asked_end() follows. */
WEIR_INLINE asked_slot *asked_begin(uint16_t api, const void *from)
{
  asked_table *a = thread_self.asked;
  uintptr_t at = (uintptr_t)from;
  if (__builtin_expect(a != NULL, 1)) {
    asked_slot *s = &a->slot[asked_home(api, at)];
    if (__builtin_expect(s->from == at && s->api == api && s->left > 1, 1)) {
      s->left--;
      return NULL;
    }
  }
  return asked_look(api, at);
}

/* What is known of a call when it returns. */
typedef struct asked_answer {
  uint64_t start;  /* ticks when the real function was called */
  uint32_t status; /* CUresult or cudaError_t */
  uint16_t api;    /* core/trace/api.def */
  uint8_t flags;   /* WEIR_EVF_* */
  uint8_t bank;    /* enum cuda_library */
} asked_answer;

/* Takes the time of a call, and records its place when it is time to. Keeps errno. */
void asked_end(asked_slot *s, const asked_answer *answer);

#endif
