/* version.c: which libweir this is. */
#include "core/weir.h"

const char *weir_version(void)
{
  return WEIR_VERSION;
}
