/* plugin.c: a library with one function that calls back. Built twice, with frames of different size
 * and code of the same layout, so that one loaded where the other was unloaded has the same return
 * address and needs another way to be unwound. */
#ifndef FRAME
#define FRAME 1000 /* bytes */
#endif

int plugin_call(int (*f)(void *), void *context);

__attribute__((visibility("default"))) int plugin_call(int (*f)(void *), void *context)
{
  volatile char frame[FRAME];
  frame[0] = 1;
  int result = f(context);
  return result + frame[0] - 1;
}
