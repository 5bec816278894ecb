#include <stdio.h>
#include <weir.h>

int main(void)
{
  weir_status st = weir_trace_start("memory.spool"); /* then: weir report memory.spool */
  weir_tensor *t = NULL;
  weir_module_path_push("net");
  if (!st) st = weir_empty(&t, weir_shape(1024, 1024), NULL);
  if (!st) st = weir_tensor_set_name(t, "net.weight");
  weir_module_path_pop();
  weir_tensor_release(t);
  if (!st) st = weir_trace_stop();
  if (st) (void)fprintf(stderr, "%s\n", weir_error_message());
  return st ? 1 : 0;
}
