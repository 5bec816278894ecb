/* policy.c: the counting driver below all policies. */
#include "tools/replay/policy.h"

#define PAGE        (2 * RP_MIB)
#define ADDRESS_END (UINT64_C(1) << 62)

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
