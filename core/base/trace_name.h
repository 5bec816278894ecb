/* trace_name.h: the name of a trace, with placeholders as Nsight Systems has them.
 *
 *   %h        name of the host
 *   %p        process id of the program
 *   %r        rank among the processes that were launched together (rank.h)
 *   %j        number of the job, as Slurm, PBS, LSF, SGE, Flux or WEIR_JOB has it
 *   %q{VAR}   value of an environment variable
 *   %n        the smallest number from 1 on with which nothing is there
 *   %%        a percent sign
 *
 * So many processes can be given one name. The preload library uses it, so it is libc only. */
#ifndef WEIR_BASE_TRACE_NAME_H
#define WEIR_BASE_TRACE_NAME_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

/* Writes the name into `out`. `pid`: the program's. Errors: EINVAL with a sentence: an unknown
 * placeholder; a rank, job or variable that is not there; a name of `room` bytes or more; no free
 * number. */
weir_status trace_name_expand(char *out, size_t room, const char *pattern, uint32_t pid);

#endif
