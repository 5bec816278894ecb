/* clang_complex.h: what glibc's complex.h has for GCC only; put before all when clang builds. */
#ifndef WEIR_TESTS_IO_CLANG_COMPLEX_H
#define WEIR_TESTS_IO_CLANG_COMPLEX_H

#define CMPLX(x, y)  __builtin_complex((double)(x), (double)(y))
#define CMPLXF(x, y) __builtin_complex((float)(x), (float)(y))

#endif
