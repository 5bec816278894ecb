/* stack_memory.h: libunwind reads the program's memory without a descriptor.
 *
 * Whether a word can be read libunwind finds out by writing it into a pipe that it keeps open, and
 * whose ends it reads, writes and closes by number from then on. A program that closes what it did
 * not open, as daemons do, gets these numbers for files of its own, and then loses bytes to the
 * unwinder and is given others. So the pipe goes, and words are read by a function of ours. */
#ifndef WEIR_TRACE_STACK_MEMORY_H
#define WEIR_TRACE_STACK_MEMORY_H

/* For a libunwind opened just now, of which `space` is the local address space: sets it up, takes
 * its pipe away and gives it our way of reading. A copy that the program had set up for itself is
 * left as it is. */
void stack_memory_init(void *library, void **space, void *(*real_dlsym)(void *, const char *));

/* Before each capture: memory that was readable in the last one need not be any more. */
void stack_memory_begin(void);

#endif
