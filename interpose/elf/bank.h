/* bank.h: the libraries of CUDA that are wrapped. A *bank* is one of them: the driver is one, each
 * major of the runtime another, since a program may hold two runtimes whose functions of one name
 * differ. */
#ifndef WEIR_INTERPOSE_BANK_H
#define WEIR_INTERPOSE_BANK_H

enum cuda_library {
  WEIR_BANK_DRIVER = 0, /* libcuda.so.1 */
  WEIR_BANK_RT11 = 1,   /* libcudart.so.11.0 */
  WEIR_BANK_RT12 = 2,   /* libcudart.so.12 */
  WEIR_BANK_RT13 = 3,   /* libcudart.so.13 */
  WEIR_BANKS = 4
};

/* The soname that a bank's symbols live in: "libcuda.so.1", "libcudart.so.13", ...; NULL: no bank.
 */
const char *cuda_library_soname(int bank);

#endif
