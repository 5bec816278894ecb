/* runtime_calls.h: what `calls` does through the CUDA runtime, as most programs call it
 * (runtime_calls.c). */
#ifndef WEIR_TOOLS_BENCH_RUNTIME_CALLS_H
#define WEIR_TOOLS_BENCH_RUNTIME_CALLS_H

#include <stdbool.h>

/* Runs the mode that the words name; false: it is none of these, or has other arguments. */
bool runtime_calls_run(int count, char **words, int *status);

#endif
