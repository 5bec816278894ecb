/* version.h: what version of CUPTI this is. */
#ifndef WEIR_SIM_CUPTI_VERSION_H
#define WEIR_SIM_CUPTI_VERSION_H

#include <stdint.h>

#define SIM_CUPTI_VERSION 130001 /* of CUDA 13.0 Update 1 and 2 */

extern uint32_t sim_cupti_version; /* that it states it is; a fault may change it */

#endif
