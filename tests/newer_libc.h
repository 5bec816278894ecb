/* newer_libc.h: what glibc 2.43 does to searches in strings and arrays, for machines with an older
 * one.
 *
 * There they are macros, as C23 asks: what is searched in const memory is const. A source that
 * defines such a function, or drops const from its result, does not compile. `make lint-clang`
 * includes this file before all others. */
#ifndef WEIR_TESTS_NEWER_LIBC_H
#define WEIR_TESTS_NEWER_LIBC_H

#ifndef __cplusplus
#include <stdlib.h>
#include <string.h>

#ifndef strchr
#define KEEPS_CONST(pointer, type, call)                                                           \
  _Generic(0 ? (pointer) : (void *)1, const void * : (type)(call), default : (call))
#define memchr(memory, c, bytes) KEEPS_CONST(memory, const void *, memchr(memory, c, bytes))
#define strchr(text, c)          KEEPS_CONST(text, const char *, strchr(text, c))
#define strrchr(text, c)         KEEPS_CONST(text, const char *, strrchr(text, c))
#define strpbrk(text, any)       KEEPS_CONST(text, const char *, strpbrk(text, any))
#define strstr(text, part)       KEEPS_CONST(text, const char *, strstr(text, part))
#define bsearch(key, base, count, size, compare)                                                   \
  KEEPS_CONST(base, const void *, bsearch(key, base, count, size, compare))
#endif
#endif

#endif
