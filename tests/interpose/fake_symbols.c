/* fake_symbols.c: every symbol of a fake library, weak: fake_cuda.c has those that do more. */
#include "interpose/table/hooks.gen.h"
#include "tests/interpose/fake_cuda.h"

#define WEAK(symbol)                                                                               \
  __attribute__((visibility("default"), weak)) int symbol(void);                                   \
  int symbol(void)                                                                                 \
  {                                                                                                \
    return fake_answer(#symbol);                                                                   \
  }

#ifdef FAKE_DRIVER
WEIR_DRIVER_SYMBOLS(WEAK)
#else
WEIR_RUNTIME_SYMBOLS(WEAK)
#endif
