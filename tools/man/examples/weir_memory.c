#include <stdio.h>
#include <stdlib.h>
#include <weir.h>

int main(void)
{
  weir_device gpu = WEIR_CUDA_AT(0);
  void *block;
  char *table;
  if (!weir_cuda_is_available()) return 0;
  if (weir_malloc(&block, 1 << 20, gpu, NULL)) goto failed;
  printf("%llu bytes allocated\n", (unsigned long long)weir_memory_allocated(gpu));
  if (weir_free(block) || weir_memory_summary(&table, gpu, true)) goto failed;
  puts(table);
  free(table);
  if (weir_memory_empty_cache(gpu)) goto failed;
  return weir_memory_reserved(gpu) ? 1 : 0;
failed:
  (void)fprintf(stderr, "%s\n", weir_error_message());
  return 1;
}
