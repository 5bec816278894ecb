/* cupti_client.h: a client of CUPTI that wants what Weir's wants, and throws it away. */
#ifndef WEIR_TOOLS_BENCH_CUPTI_CLIENT_H
#define WEIR_TOOLS_BENCH_CUPTI_CLIENT_H

#include <stdbool.h>

/* In a program that has a context. False: there is no CUPTI, or none was built in. */
bool cupti_client_start(bool kernels);

#endif
