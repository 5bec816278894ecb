/* relay.h: the events of a walk, taken by several listeners at the same time, each in a thread of
 * its own.
 *
 * The walk copies events into a ring of batches; each listener takes every batch, in order, when it
 * gets to it. So a walk lasts as long as its slowest part, where there are processors. What a
 * listener's take_some() touches is its own: neither the database nor what another listener has. */
#ifndef WEIR_REPORTS_EVENTS_RELAY_H
#define WEIR_REPORTS_EVENTS_RELAY_H

#include "reports/events/listen.h"

typedef struct wr_relay wr_relay;

/* A thread for each listener, of which there are at most WR_LISTENERS. NULL: it cannot be had, and
 * nothing was taken. The listeners stay where they are until it is closed. */
wr_relay *wr_relay_open(const wr_listener listeners[], size_t count);

/* Passes events to all listeners, which take them later. False: one of them has failed. */
bool wr_relay_send(wr_relay *x, const wr_event events[], size_t count);

/* Waits until all events that were sent are taken, and frees. Returns the status of the first of
 * the listeners that failed, with its message. */
weir_status wr_relay_close(wr_relay *x);

#endif
