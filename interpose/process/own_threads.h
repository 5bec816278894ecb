/* own_threads.h: threads that the library starts, in every mode.
 *
 * They take no signal but those that a fault of their own raises: what handlers there are, and what
 * is waited for by sigwait(), are other threads' business. They are detached, and must not keep
 * alive a program whose last thread has gone: who waits does so for WEIR_OWN_THREAD_NS at most, and
 * then either needs no thread any more or asks whether it is alone. */
#ifndef WEIR_INTERPOSE_OWN_THREADS_H
#define WEIR_INTERPOSE_OWN_THREADS_H

#include <stdbool.h>

#define WEIR_OWN_THREAD_NS 200000000

/* Starts a thread of the library's own in run(). False: it could not be started. */
bool own_thread_start(void (*run)(void));

/* Whether the main thread and all others of the program have ended: then the calling thread, one of
 * the library's own, is to return soon. */
bool own_threads_are_alone(void);

#endif
