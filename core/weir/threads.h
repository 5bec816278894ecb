/* threads.h: how many threads calculate on the cpu. Included by weir.h.
 *
 * Elementwise work, reductions, random numbers, large copies and matrix products are shared among
 * threads where there is enough to share. Results do not depend on how many there are (but for the
 * products of a BLAS library and the convolutions of oneDNN, which have their own rules). The first
 * large piece of work starts the threads; a forked child starts its own. */
#ifndef WEIR_THREADS_H
#define WEIR_THREADS_H

#include "core/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From the next operation on. Also what a BLAS library is given. As torch.set_num_threads().
 * Errors: EINVAL (less than one). */
WEIR_PUBLIC weir_status weir_set_num_threads(int threads);
/* WEIR_NUM_THREADS where that is a number above 0, else the cores this process may run on
 * (sched_getaffinity), until it is set. As torch.get_num_threads(). */
WEIR_PUBLIC int weir_get_num_threads(void);

#ifdef __cplusplus
}
#endif

#endif
