/* calls.c: a program linked with a runtime; built for several ways of calling (see loader.mk). Five
 * cudaMalloc: three by name, two by pointer. */
#include <stddef.h>
#include <stdio.h>

int cudaMalloc(void **p, size_t bytes);
int (*by_pointer)(void **, size_t) = cudaMalloc;

int main(void)
{
  for (size_t i = 1; i <= 5; i++) {
    void *p = NULL;
    int error = i <= 3 ? cudaMalloc(&p, i) : by_pointer(&p, i);
    printf("%d %p\n", error, p);
  }
  return 0;
}
