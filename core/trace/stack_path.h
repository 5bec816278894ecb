/* stack_path.h: knowing a stack again without unwinding it.
 *
 * What an unwinder finds is a function of where it starts, of the words it reads on the way
 * (return addresses and saved frame pointers) and of the code's own tables. So if a thread comes
 * again with the same frame address, and every one of those words is where it was and what it was,
 * the stack is the one seen before: some sixty loads instead of an unwinding. The words are
 * checked from the inside out and the first difference ends the check, so no word is read that an
 * unwinder would not have read for the same inner frames.
 *
 * Learning a path takes libunwind's cursor, which is slow (some ten microseconds, and more in a
 * forked child, whose pages it is the first to write): a place is learnt when it has been seen as
 * often as pays for that, and only as often as paths learnt before have been of use. A stack
 * through a signal frame, or one the cursor and unw_backtrace do not agree on, is not learnt.
 *
 * Known limit: a frame whose address is computed by a DWARF expression over other words (a
 * function that realigns its stack) is checked by its return address alone. */
#ifndef WEIR_TRACE_STACK_PATH_H
#define WEIR_TRACE_STACK_PATH_H

#include <stdbool.h>
#include <stdint.h>

typedef struct stack_paths stack_paths; /* one thread's; mapped memory, not malloc */

/* Finds libunwind's cursor in its opened library; without it nothing is ever learnt. Once a
 * process. */
void stack_path_init(void *library, void *(*real_dlsym)(void *, const char *));

/* The id remembered for the stack of which `frame` is the innermost frame address, 0: not known. */
uint32_t stack_path_find(stack_paths *paths, const uintptr_t *frame);

/* Notes that the stack at `frame`, just unwound, has this id and these addresses. */
void stack_path_learn(stack_paths **paths, const uintptr_t *frame, uint32_t id,
                      const uint64_t *addresses, uint32_t count);

/* How many finds there have been. */
uint64_t stack_path_uses(const stack_paths *paths);

/* Forgets all (ids have changed, or code has), or gives the memory back. */
void stack_path_forget(stack_paths *paths);
void stack_path_release(stack_paths **paths);

#endif
