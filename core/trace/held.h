/* held.h: a record that may still grow: the last one of its thread, until the next takes its place
 * after it. What repeats, a poll, becomes one record with a count instead of one each time.
 *
 * It stands in two slots of the chunk in turn, where the next records would be, with a check word
 * of its own (HELD_MARK): a reader that comes while the program lives takes neither for a
 * committed record, and stops there. Each change is written whole into the slot that does not have
 * the last one, its check last: whenever the program is killed, one of the two is whole, and the
 * reader that comes afterwards takes the newer one (spool_reader.c). Only the change under way is
 * lost.
 *
 * While one is held, the writer has no room: whoever wants a slot comes to spool_writer_roll(),
 * which commits it first. So no other record pays for this.
 *
 * HELD_GROWS is the word that shows which is newer: it must grow with each change. */
#ifndef WEIR_TRACE_HELD_H
#define WEIR_TRACE_HELD_H

#include <stdbool.h>
#include <string.h>
#include "core/trace/spool.h"

#define HELD_MARK UINT32_C(0x68656c64) /* even: the check it is mixed with is odd, and never 0 */
enum { HELD_SLOTS = 2, HELD_GROWS = 6 /* bytes */ };

static inline event_word *held_words(trace_event *slot)
{
  return (event_word *)(void *)slot;
}

/* Words 1 to 7, then the first, whose low half is the check mixed with `mark`. */
static inline void held_store(trace_event *slot, const event_word w[8], uint64_t place,
                              uint32_t mark)
{
  event_word *to = held_words(slot);
  uint64_t head = w[0] >> 32 << 32;
  for (int i = 1; i < 8; i++)
    to[i] = w[i];
  __atomic_store_n(to, head | (event_words_check(w, place) ^ mark), __ATOMIC_RELEASE);
}

/* The slot is a held record of that place. */
static inline bool held_at(const trace_event *slot, uint64_t place)
{
  return atomic_load_explicit(&slot->commit, memory_order_relaxed) ==
         (event_check(slot, place) ^ HELD_MARK);
}

/* The writer holds one. (A longjmp() out of a signal handler may have left it half begun.) */
static inline bool held_now(const spool_writer *w)
{
  return w->held_end && w->end == w->next && w->held_end - w->next >= HELD_SLOTS;
}

/* Its words (borrowed until it changes). */
static inline const event_word *held_last(const spool_writer *w)
{
  return held_words(w->next + w->held_turn);
}

/* Begins with these words; the writer has HELD_SLOTS slots and holds none. */
static inline void held_begin(spool_writer *w, const event_word words[8])
{
  w->held_turn = 0;
  held_store(w->next, words, w->place, HELD_MARK);
  w->held_end = w->end;
  atomic_signal_fence(memory_order_seq_cst);
  w->end = w->next;
}

static inline void held_change(spool_writer *w, const event_word words[8])
{
  uint32_t turn = w->held_turn ^ 1u;
  held_store(w->next + turn, words, w->place + turn, HELD_MARK);
  w->held_turn = turn;
}

/* Commits the one that is held, if any; there is room again after it. The second slot is left as if
 * it had never been used. */
static inline void held_commit(spool_writer *w)
{
  event_word words[8];
  if (held_now(w)) {
    memcpy(words, held_last(w), sizeof words);
    words[0] = words[0] >> 32 << 32;
    if (w->held_turn) held_store(w->next, words, w->place, HELD_MARK);
    w->held_turn = 0; /* who is interrupted here for good finds the first slot again */
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&w->next[1].commit, 0, memory_order_release);
    memset(w->next + 1, 0, sizeof w->next[1]);
    held_store(w->next, words, w->place, 0);
    w->next++;
    w->place++;
    w->end = w->held_end;
  }
  w->held_end = NULL;
}

#endif
