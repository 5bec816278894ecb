/* policy.c: the table of policies, and the counting driver below them. */
#include "tools/replay/policy.h"
#include <string.h>

#define PAGE        (2 * RP_MIB)
#define ADDRESS_END (UINT64_C(1) << 62)

/* A policy is one row here; its functions are in a file of its own. */
const rp_policy *const rp_policies[] = {
    &rp_weir,     &rp_weir_segments, &rp_pytorch, &rp_pytorch_expandable,
    &rp_rmm_pool, &rp_malloc,        NULL};

const rp_policy *rp_policy_find(const char *name)
{
  for (const rp_policy *const *p = rp_policies; *p; p++)
    if (!strcmp((*p)->name, name)) return *p;
  return NULL;
}

uint64_t rp_driver_reserve(rp_driver *driver, uint64_t bytes)
{
  uint64_t size = rp_round(bytes, PAGE), address = driver->next ? driver->next : PAGE;
  if (size > ADDRESS_END - address) return 0;
  driver->next = address + size;
  return address;
}

uint64_t rp_driver_take(rp_driver *driver, uint64_t bytes)
{
  if (bytes > driver->capacity - driver->reserved) return 0;
  uint64_t address = rp_driver_reserve(driver, bytes);
  if (address) driver->reserved += bytes;
  return address;
}

void rp_driver_give(rp_driver *driver, uint64_t bytes)
{
  driver->reserved -= bytes;
}
