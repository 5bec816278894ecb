/* driver.c: see driver.h. */
#include "tools/weir/collect/driver.h"

#include <dlfcn.h>
#include <stddef.h>

#include "tools/weir/base/cmd.h"

char *driver_missing(void)
{
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  const char *why = driver ? NULL : dlerror();
  if (driver) (void)dlclose(driver);
  return driver ? NULL : cmd_format("%s", why ? why : "libcuda.so.1 cannot be loaded");
}
