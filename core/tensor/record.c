/* record.c: see record.h. */
#include "core/tensor/record.h"

const recorder *tensor_recorder;

__thread bool thread_grad_off __attribute__((tls_model("initial-exec")));

bool recorded_any(const weir_tensor *const *list, int count)
{
  for (int i = 0; i < count; i++)
    if (list[i] && recorded(list[i])) return true;
  return false;
}

weir_status check_unrecorded(const char *function, const weir_tensor *self,
                             const weir_tensor *const *list, int count)
{
  return recorded_any(list, count) ? tensor_recorder->refuse(function, self) : WEIR_OK;
}
