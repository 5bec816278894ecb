/* compiler.h: what GCC and clang state differently, once.
 *
 *   WEIR_IVDEP      before a loop: its rounds do not depend on one another through memory
 *   WEIR_UNROLL(n)  before a loop of few rounds: written out
 *   WEIR_ASAN       1: built with AddressSanitizer; else 0. WEIR_TSAN: with ThreadSanitizer
 *   CMPLX, CMPLXL   C11's, which glibc's complex.h (include it first) has for GCC alone
 */
#ifndef WEIR_BASE_COMPILER_H
#define WEIR_BASE_COMPILER_H

#define WEIR_PRAGMA(text) _Pragma(#text)

#if defined(__clang__)
/* A loop that calls the C library stays a loop. */
#pragma clang diagnostic ignored "-Wpass-failed"
#define WEIR_IVDEP     WEIR_PRAGMA(clang loop vectorize(assume_safety))
#define WEIR_UNROLL(n) WEIR_PRAGMA(clang loop unroll_count(n))
#else
#define WEIR_IVDEP     WEIR_PRAGMA(GCC ivdep)
#define WEIR_UNROLL(n) WEIR_PRAGMA(GCC unroll n)
#endif

#ifndef CMPLX
#define CMPLX(x, y)  __builtin_complex((double)(x), (double)(y))
#define CMPLXL(x, y) __builtin_complex((long double)(x), (long double)(y))
#endif

#if defined(__clang__)
#if __has_feature(address_sanitizer)
#define WEIR_ASAN 1
#elif __has_feature(thread_sanitizer)
#define WEIR_TSAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define WEIR_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define WEIR_TSAN 1
#endif
#ifndef WEIR_ASAN
#define WEIR_ASAN 0
#endif
#ifndef WEIR_TSAN
#define WEIR_TSAN 0
#endif

#endif
