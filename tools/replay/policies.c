/* policies.c: the table of policies. */
#include <string.h>
#include "tools/replay/policy.h"

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
