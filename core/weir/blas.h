/* blas.h: who multiplies matrices. Included by weir.h.
 *
 * Weir has kernels of its own on every device. Where a library that does nothing else is installed
 * it is opened at run time: OpenBLAS, MKL or BLIS (else the system's cblas, where it is asked for)
 * on the cpu, cuBLAS on CUDA devices. float16, bfloat16 and integers are always Weir's on the cpu.
 * Factorisations (linalg.h) go by the same statement: by the LAPACK that OpenBLAS and MKL have,
 * where asked for also by liblapack.so.3; small matrices are Weir's own unless it is asked for.
 *
 * So do convolutions with windows on the cpu in float32, and in bfloat16 and float16 where the
 * processor has instructions for them: by oneDNN 3 (libdnnl.so.3, a build on OpenMP or without
 * threads), AUTO for the shapes where it is quicker, VENDOR for all that it has kernels for. What
 * it has none for is Weir's own, as is all in the child of a fork after its first use.
 */
#ifndef WEIR_BLAS_H
#define WEIR_BLAS_H

#include "core/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_blas {
  WEIR_BLAS_AUTO = 0,    /* the library where there is one that is made for this machine */
  WEIR_BLAS_BUILTIN = 1, /* Weir's own */
  WEIR_BLAS_VENDOR = 2   /* the library; a product, a factorisation or, on the cpu, a convolution
                          * without one is an error (ENOTSUP) */
} weir_blas;

/* For all devices and threads, from the next product on. Errors: EINVAL (none of these). */
WEIR_PUBLIC weir_status weir_set_blas(weir_blas which);
/* What was set; until then the environment's WEIR_BLAS (auto, builtin, vendor; else auto). */
WEIR_PUBLIC weir_blas weir_get_blas(void);
/* The library that float32 products on the cpu are done by now, as it was opened
 * ("libopenblas.so.0"; borrowed, static), or "builtin". */
WEIR_PUBLIC const char *weir_cpu_blas_name(void);
/* The LAPACK that larger factorisations on the cpu are done by now, or "builtin". */
WEIR_PUBLIC const char *weir_cpu_lapack_name(void);

#ifdef __cplusplus
}
#endif

#endif
