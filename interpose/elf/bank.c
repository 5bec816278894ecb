/* bank.c: see bank.h. */
#include "interpose/elf/bank.h"

#include <stddef.h>

const char *cuda_library_soname(int bank)
{
  static const char *const sonames[WEIR_BANKS] = {"libcuda.so.1", "libcudart.so.11.0",
                                                  "libcudart.so.12", "libcudart.so.13"};
  return bank >= 0 && bank < WEIR_BANKS ? sonames[bank] : NULL;
}
