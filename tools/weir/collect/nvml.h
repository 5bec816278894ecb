/* nvml.h: how much of each device is in use by all processes, over time, as NVML counts it.
 *
 * The collector asks, never the traced program. NVML is found by dlopen; where there is none
 * nothing is missing but these samples (table nvml_sample). A sample is taken each second, and
 * one when all programs have ended; only what has changed is kept. After MOST samples the time
 * between two is doubled, and so on: a trace of a week has some thousands. WEIR_NVML=off: never
 * asked. */
#ifndef WEIR_TOOLS_WEIR_COLLECT_NVML_H
#define WEIR_TOOLS_WEIR_COLLECT_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reports/import/import.h"

typedef struct nvml_sampler nvml_sampler;

/* Makes a sampler (new), which opens NVML at its first sample. NULL: out of memory. */
nvml_sampler *nvml_sampler_new(void);
void nvml_sampler_free(nvml_sampler *n); /* may be NULL */

/* For who keeps none of the samples: they stay a second apart. */
void nvml_sampler_steady(nvml_sampler *n);

/* Returns when the next sample is due, CLOCK_MONOTONIC in ns. UINT64_MAX: there is no NVML. */
uint64_t nvml_sampler_due(const nvml_sampler *n);

/* Where a sample goes that has changed. */
typedef weir_status (*nvml_keeper)(void *context, const importer_usage *u);

/* Takes a sample now. `last`: an answer like the one before is kept too. `is_ours`: whether a
 * process (as NVML numbers it) is one of those that are traced. */
weir_status nvml_sampler_ask(nvml_sampler *n, nvml_keeper keep, uint64_t now_ns, bool last,
                             bool (*is_ours)(void *context, unsigned pid), void *context);

#endif
