/* kernel_stubs.h: what the host's functions that launch kernels show of them. nvcc names such a function, which is local, for
 * the kernel as C++ names it, "__device_stub__Z4axpyifPKfPf", even where the kernel has a C name ("axpy"): so the
 * types of its parameters are in the table of symbols of a file that is not stripped. */
#ifndef WEIR_REPORTS_KERNEL_STUBS_H
#define WEIR_REPORTS_KERNEL_STUBS_H

#include <stddef.h>
#include "core/base/status.h"

/* `name`: as C++ names the kernel, "_Z4axpyifPKfPf"; until it returns. Another status ends the look. */
typedef weir_status (*wr_stub_fn)(void *context, const char *name);

/* Each stub in the file at `path`; one that cannot be read has none. */
weir_status wr_kernel_stubs_each(const char *path, wr_stub_fn take, void *context);

/* The C name that a name as C++ has it is of: in "_Z4axpyifPKfPf" "axpy". NULL: it is none of a plain function. */
const char *wr_stub_plain_name(const char *name, size_t *length);

#endif
