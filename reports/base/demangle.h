/* demangle.h: the names of C++ as they are written in its source, by libstdc++ where it is
 * there. */
#ifndef WEIR_REPORTS_DEMANGLE_H
#define WEIR_REPORTS_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct wr_demangler {
  bool sought;   /* the library is, when the first name of C++'s comes */
  void *library; /* libstdc++, or NULL: then no name is */
  char *(*demangle)(const char *, char *, size_t *, int *);
} wr_demangler;

void wr_demangler_open(wr_demangler *d);
void wr_demangler_close(wr_demangler *d);

/* New, to be freed; NULL: it is no name of C++'s, or out of memory. */
char *wr_demangle(wr_demangler *d, const char *name);

/* The function alone of a name as written in C++: "void a::(anonymous namespace)::b<int>(float*)"
 * is b. A part of `name`; *length bytes. All of it where it has no such form. */
const char *wr_function_name(const char *name, size_t *length);

#endif
