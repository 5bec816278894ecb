/* pending.h: work in streams whose end is not known yet, and of which a wait shows the end.
 *
 * Two sorts of work are kept: copies into page-locked memory of the host that are hashed when their
 * end is known, and *writers*, which may write any memory of the host (functions that streams
 * call, graphs): while one is under way the source of an asynchronous copy may still change. Of a
 * stream's writers the last is kept. While there is any work, all events are shown. A wait
 * *covers* work whose stream it waits for. It may cover more (a stream that waited for an event
 * of another; the legacy stream): then the driver is asked whether the other stream has ended all
 * its work, and where it has not, the copy is given up, since the program may know its end, and use
 * the memory, from now on.
 *
 * One lock. It is held while a copy is hashed: a second thread that learns of the same end has to
 * wait before it may write the memory. */
#ifndef WEIR_INTERPOSE_PENDING_H
#define WEIR_INTERPOSE_PENDING_H

#include "interpose/content/content.h"
#include "interpose/record/event_fill.h"

/* A copy into `region`, whose event is to come and which is to be hashed: announced, or the record
 * has the reason why it is not kept. False: it is not kept. `site`: its (record/copy_sites.h);
 * `print`: as content_hash() has it. */
bool pending_copy(const hook_call *c, const event_fields *e, const content_region *region,
                  unsigned site, bool print);

/* Work that may write memory of the host was put into the event's stream. */
void pending_writer(const hook_call *c, const event_fields *e);

/* Whether anything that is under way may write the region, as far as it is kept here. */
bool pending_may_write(const content_region *region);

/* The memory is written by something else, or is gone. */
void pending_drop_region(thread_state *t, uint64_t at, uint64_t bytes, hash_outcome why);

/* All work is gone (a device was reset), or all of a stream's, whose handle ends. */
void pending_drop_all(thread_state *t);
void pending_drop_stream(thread_state *t, uint64_t stream);

/* The program has waited for the event's stream, its context, or the event object. */
void pending_waited(const hook_call *c, const event_fields *e);

/* An event object was recorded in the event's stream. */
void pending_recorded(const event_fields *e);

/* From now on streams may be ordered among each other: one waits for an event of another, or work
 * went into the legacy stream. */
void pending_linked(bool by_wait);

/* In a forked child: nothing of the parent's is under way here. */
void pending_forked(void);

#endif
