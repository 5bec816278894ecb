/* kernel_types.h: kernels with a C name get the types of their parameters, where a module of the run shows them
 * (kernel_stubs.h): a row of `name` of kind kernel_types. A name that has several types has none. */
#ifndef WEIR_REPORTS_IMPORT_KERNEL_TYPES_H
#define WEIR_REPORTS_IMPORT_KERNEL_TYPES_H

#include "reports/import/schema.h"

/* After the modules have been looked at. Errors: ENOMEM, EIO. */
weir_status wr_finish_kernel_types(const wr_db *db);

#endif
