/* embed.c: a library with a runtime linked into it, whose symbols it exports without meaning to. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

int cudaMalloc(void **p, size_t bytes)
{
  *p = (void *)(uintptr_t)(0xe000000u + bytes);
  return 0;
}

void embed_run(void)
{
  void *p = NULL;

  cudaMalloc(&p, 7);
  printf("embedded %p\n", p);
}
