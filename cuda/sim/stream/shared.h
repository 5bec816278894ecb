/* shared.h: events shared with other processes, as event.c and shared.c deal with them. */
#ifndef WEIR_SIM_SHARED_H
#define WEIR_SIM_SHARED_H

#include "cuda/sim/internal.h"

/* Recordings are numbered from 1. */
struct sim_shared *sim_shared_new(void);
void sim_shared_ref(struct sim_shared *shared);
void sim_shared_unref(struct sim_shared *shared);
uint64_t sim_shared_record(struct sim_shared *shared);
void sim_shared_reach(struct sim_shared *shared, uint64_t number);
uint64_t sim_shared_last(const struct sim_shared *shared); /* 0: never recorded */
bool sim_shared_reached(const struct sim_shared *shared, uint64_t number);
void sim_shared_wait(struct sim_shared *shared, uint64_t number);
CUevent sim_event_new(CUcontext context, unsigned flags);

#endif
