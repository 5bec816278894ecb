/* rest.c: CUPTI's version and the names of its results; and every function of its headers that the
 * software device does not do: it answers CUPTI_ERROR_NOT_SUPPORTED, and reports it once, on stderr
 * and, under Weir, in the trace.
 *
 * The functions' own types do not matter for a constant answer, so this file includes no CUPTI
 * header, and is all there is of the library where the Toolkit has none. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include "cuda/sim/cupti/version.h"

#define CUPTI_API __attribute__((visibility("default")))

uint32_t sim_cupti_version = SIM_CUPTI_VERSION;

enum {
#define R(result, number) result = (number),
#define N(name)
#include "cupti.gen.h"
#undef R
#undef N
};

static __attribute__((unused)) int not_supported(_Atomic bool *reported, const char *name)
{
  char text[200];
  if (atomic_exchange(reported, true)) return CUPTI_ERROR_NOT_SUPPORTED;
  int n = snprintf(text, sizeof text,
                   "weir sim: %s is not done by the software device: answers %d "
                   "(CUPTI_ERROR_NOT_SUPPORTED)\n",
                   name, CUPTI_ERROR_NOT_SUPPORTED);
  ssize_t written = write(STDERR_FILENO, text, (size_t)n);
  (void)written;
  text[n - 1] = 0;
  void (*note)(const char *) = NULL;
  *(void **)&note = dlsym(RTLD_DEFAULT, "weir_note");
  if (note) note(text);
  return CUPTI_ERROR_NOT_SUPPORTED;
}

CUPTI_API int cuptiGetVersion(uint32_t *version);
CUPTI_API int cuptiGetResultString(int result, const char **name);

CUPTI_API int cuptiGetVersion(uint32_t *version)
{
  if (!version) return CUPTI_ERROR_INVALID_PARAMETER;
  *version = sim_cupti_version;
  return CUPTI_SUCCESS;
}

CUPTI_API int cuptiGetResultString(int result, const char **name)
{
  if (!name) return CUPTI_ERROR_INVALID_PARAMETER;
  switch (result) {
#define N(name)
#define R(result, number)                                                                          \
  case result:                                                                                     \
    *name = #result;                                                                               \
    return CUPTI_SUCCESS;
#include "cupti.gen.h"
#undef R
#undef N
  default:
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
}

#define R(result, number)
#define N(name)                                                                                    \
  CUPTI_API int name(void);                                                                        \
  int name(void)                                                                                   \
  {                                                                                                \
    static _Atomic bool reported;                                                                  \
    return not_supported(&reported, #name);                                                        \
  }
#include "cupti.gen.h"
