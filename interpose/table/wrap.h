/* wrap.h: what the generated wrappers are made of (hooks.gen.c shows the pattern). */
#ifndef WEIR_INTERPOSE_WRAP_H
#define WEIR_INTERPOSE_WRAP_H

#include "interpose/record/asked.h"
#include "interpose/record/captures.h"
#include "interpose/record/context.h"
#include "interpose/record/device_memory.h"
#include "interpose/record/extract.h"
#include "interpose/record/names.h"
#include "interpose/reroute/reroute.h"
#include "interpose/table/hooks.gen.h"
#include "interpose/table/rows.h"

extern _Atomic(void *) hook_originals[]; /* by row */

/* The original of a row, looked up when a linked program calls before anyone asked for it. */
WEIR_INLINE void *hook_original(uint32_t row)
{
  void *real = atomic_load_explicit(&hook_originals[row], memory_order_acquire);
  return __builtin_expect(real != NULL, 1) ? real : hook_row_resolve(&hook_rows[row]);
}

/* A hooked call was made within another, from `site`, which is not in the library that last did so
 * (nested.c). Keeps errno; a signal handler may be the caller. */
void call_note_nested(thread_state *t, const void *site);

/* True: this call owns the event and call_leave() must follow. `site`: where a wrapper returns to.
 */
WEIR_INLINE bool call_enter_from(hook_call *c, uint16_t api, unsigned flags, int bank,
                                 const void *site)
{
  thread_state *t = &thread_self;
  if (call_is_within(c, t)) {
    if (__builtin_expect((uintptr_t)site - t->inner_start >= t->inner_bytes, 0))
      call_note_nested(t, site);
    return false;
  }
  return call_begin_outermost(c, t, api, flags, bank);
}

/* call_enter_from() for use in a wrapper, whose own return address is the site. */
#define call_enter(c, api, flags, bank)                                                            \
  call_enter_from(c, api, flags, bank, __builtin_return_address(0))

/* A call that changes nothing of what is live, where only that is recorded: it is counted and goes
 * straight to the original, and call_passed() must follow. False: it enters as any other; so it does
 * in the modes that reroute, within another call, and when the thread has yet to see a change. */
WEIR_INLINE bool call_passes(const hook_call *c)
{
  thread_state *t = &thread_self;
  if (__builtin_expect(!t->passes, 1)) return false;
  if (__builtin_expect(t->depth ||
                           t->epoch != atomic_load_explicit(&process_epoch, memory_order_relaxed) ||
                           recording_word() != WEIR_RECORD_MEMORY,
                       0))
    return false;
  t->depth = CALL_LEFT_OUT;
  t->outermost = (uintptr_t)c;
  if (__builtin_expect(++t->passed >= RECORDING_BATCH, 0)) recording_count(t);
  return true;
}

WEIR_INLINE void call_passed(void)
{
  thread_self.depth = 0;
}

/* Such a call has entered: its event is left out at its end. */
WEIR_INLINE void call_is_left_out(const hook_call *c)
{
  thread_state *t = c->thread;
  if (__builtin_expect(t->recording == WEIR_RECORD_ALL, 1)) return;
  t->depth = CALL_LEFT_OUT;
  if (++t->passed >= RECORDING_BATCH) recording_count(t);
}

/* A tool that patches functions may patch the driver's alone, knowing that the runtime's call
 * them. A rerouted call of the runtime's would not: where the entry of the driver's is patched
 * (entry.h), the runtime's original is called, and the driver's wrapper beneath it does the
 * rerouting, for the event of the call around it. The tool then sees each block once, in the order
 * in which it would bare.
 *
 * `key` (a size, an address) distinguishes the call that is meant from the runtime's own. An
 * allocation without a context is not left to it: it is not rerouted, and the runtime allocates
 * for a context of its own. */
__attribute__((noinline)) bool call_leave_to_driver(hook_call *c, bool allocates, uint64_t key);

WEIR_INLINE bool call_goes_beneath(hook_call *c, const void *entry, bool allocates, uint64_t key)
{
  return __builtin_expect(entry_is_patched(entry), 0) && call_leave_to_driver(c, allocates, key);
}

/* Entries of the driver's copies that are staged, NULL-terminated. */
extern const void *const hook_copy_entries[];

/* In the driver's wrapper, within another call: the call around it that has left to it what to
 * do. */
WEIR_INLINE hook_call *call_around(uint64_t key)
{
  thread_state *t = &thread_self;
  hook_call *around = t->beneath;
  if (__builtin_expect(!around, 1) || t->beneath_key != key) return NULL;
  t->beneath = NULL;
  return t->depth && (uintptr_t)around == t->outermost ? around : NULL;
}

/* Calls that make memory and end it are events within another call, too, where another library has
 * one of the functions that the wrappers call, and makes them: what it does for the program's call
 * is done and undone outside of such calls as well (interpose/record/within.h). *outer: the call
 * around, which call_leave_inner() goes back to. */
typedef struct call_outer {
  uintptr_t outermost; /* 0: there is none */
  uint32_t depth;
  hook_call *beneath;
} call_outer;

bool call_enter_inner(hook_call *c, call_outer *outer, uint16_t api, unsigned flags,
                      const void *site);
void call_leave_inner(hook_call *c, const call_outer *outer);

/* Old functions are declared deprecated, and wrapping them is what we are here for. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* Any argument as a 64-bit word. */
#define W(x) ((extract_word)(x))

/* A wrapper that is not called often: made small, and apart from the others, so that what is called
 * in a loop lies together. */
#define WEIR_RARE __attribute__((cold))

/* What an out-pointer of the call holds: undefined after a failure, absent when NULL. */
#define WEIR_OUT(p) (c->status == 0 && (p) ? W(*(p)) : 0)

#define WEIR_SAME(function, type) __builtin_types_compatible_p(__typeof__(function), type)

#endif
