/* demangle.c: see demangle.h. */
#include "reports/base/demangle.h"
#include <dlfcn.h>
#include <string.h>

void wr_demangler_open(wr_demangler *d)
{
  *d = (wr_demangler){0};
}

static void open_library(wr_demangler *d)
{
  d->sought = true;
  d->library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
  void *function = d->library ? dlsym(d->library, "__cxa_demangle") : NULL;
  memcpy(&d->demangle, &function, sizeof(function));
}

void wr_demangler_close(wr_demangler *d)
{
  if (d->library) dlclose(d->library);
  *d = (wr_demangler){0};
}

char *wr_demangle(wr_demangler *d, const char *name)
{
  int status = 0;
  if (!name || strncmp(name, "_Z", 2) != 0) return NULL;
  if (!d->sought) open_library(d);
  return d->demangle ? d->demangle(name, NULL, NULL, &status) : NULL;
}

/* After a bracket that `at` opens: at its end, and over all within. */
static const char *skip_brackets(const char *at)
{
  for (size_t depth = 0; *at; at++) {
    if (strchr("<([{", *at)) depth++;
    if (strchr(">)]}", *at) && at[-1] != '-' && --depth == 0) return at + 1;
  }
  return at;
}

const char *wr_function_name(const char *name, size_t *length)
{
  static const char unnamed[] = "(anonymous namespace)", made[] = "operator";
  const char *begin = name, *at = name;
  if (!strncmp(at, unnamed, sizeof unnamed - 1)) at += sizeof unnamed - 1;
  while (*at && *at != '(') {
    if (at == begin && !strncmp(at, made, sizeof made - 1) && strchr("(<>[+-*/%&|^~!=,", at[8])) {
      at += sizeof made - 1;
      at += !strncmp(at, "()", 2) ? 2 : strcspn(at, "(");
    } else if (*at == '<') {
      const char *behind = skip_brackets(at);
      if (strncmp(behind, "::", 2) != 0 && *behind != ' ') break;
      at = behind;
    } else if (*at == ' ' || !strncmp(at, "::", 2)) {
      at += *at == ' ' ? 1 : 2;
      begin = at;
    } else {
      at++;
    }
    if (!strncmp(at, unnamed, sizeof unnamed - 1)) at += sizeof unnamed - 1;
  }
  if (at == begin) begin = name, at = name + strlen(name);
  *length = (size_t)(at - begin);
  return begin;
}
