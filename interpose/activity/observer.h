/* observer.h: the life of our client, for the program's (clients.c), and its callback in a driver
 * call (correlate.c). */
#ifndef WEIR_INTERPOSE_ACTIVITY_OBSERVER_H
#define WEIR_INTERPOSE_ACTIVITY_OBSERVER_H

#include <stdbool.h>
#include "interpose/activity/library.h"

/* Devices are or may be observed in this process. False: the program's calls into CUPTI are nothing
 * to us. */
bool observer_is_wanted(void);

/* The program becomes a client: ours is gone when this returns. */
void observer_yield(void);

/* Ours is, or is about to be, a client that can have no other client with it. */
bool observer_is_alone(void);

/* Ours was one of several at some time since this was asked last. */
bool observer_has_shared(void);

/* The program's client may have gone: our thread asks clients_are_gone() and comes back. */
void observer_wake(void);

/* Which callbacks ours is to have; and the callback. */
void correlate_enable(const cupti_library *l, CUpti_SubscriberHandle subscriber, bool kernels);
void CUPTIAPI correlate_call(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                             const void *data);

#endif
