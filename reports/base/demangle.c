/* demangle.c: see demangle.h. */
#include "reports/base/demangle.h"
#include <dlfcn.h>
#include <string.h>

void wr_demangler_open(wr_demangler *d)
{
  d->library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
  void *function = d->library ? dlsym(d->library, "__cxa_demangle") : NULL;
  memcpy(&d->demangle, &function, sizeof(function));
}

void wr_demangler_close(wr_demangler *d)
{
  if (d->library) dlclose(d->library);
  *d = (wr_demangler){0};
}

char *wr_demangle(const wr_demangler *d, const char *name)
{
  int status = 0;
  if (!name || strncmp(name, "_Z", 2) != 0 || !d->demangle) return NULL;
  return d->demangle(name, NULL, NULL, &status);
}
