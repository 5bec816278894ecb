/* loader_stubs.c: what interpose/elf/elf.c needs of the hooks' side, for a suite that links it
 * alone. */
#include "interpose/process/thread.h"

const char *weir_bank_soname(int bank)
{
  static const char *const names[WEIR_BANKS] = {"libcuda.so.1", "libcudart.so.11.0",
                                                "libcudart.so.12", "libcudart.so.13"};
  return names[bank];
}
