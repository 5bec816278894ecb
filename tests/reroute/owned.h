/* owned.h: see owned.c. */
#ifndef WEIR_TESTS_REROUTE_OWNED_H
#define WEIR_TESTS_REROUTE_OWNED_H

#include <stdbool.h>

/* `driver_first`: with a context that the driver made, before the runtime is initialised. */
__attribute__((visibility("default"))) void owned_work(bool driver_first);

#endif
