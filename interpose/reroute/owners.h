/* owners.h: other libraries in the process that have functions of CUDA's names: quotas, savers of
 * memory, loggers. Where one of these stands between the program and CUDA for something that strict
 * and relaxed reroute, it is called at each call, as without us, and nothing of that kind is
 * rerouted (process_reroutes): a block out of a cache would pass it over. */
#ifndef WEIR_INTERPOSE_REROUTE_OWNERS_H
#define WEIR_INTERPOSE_REROUTE_OWNERS_H

/* Looks for them among what was loaded at the start, once. Under the lock of cache.c, which
 * reroute_make_way() takes. */
void owners_find(void);

/* A look-up of that function of CUDA's has given an address in no library of CUDA's, which a
 * library hands out in the place of CUDA's own: that library owns it, too. */
void owner_of_look_up(const char *name, const void *address);

#endif
