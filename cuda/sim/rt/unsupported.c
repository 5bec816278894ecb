/* unsupported.c: entry points that exist, so that every program links, and are not done.
 *
 * They answer cudaErrorNotSupported. The table is made by unsupported.py: all names the runtime
 * exports less those the other files define. The functions' own types do not matter for a constant
 * answer, so this file includes no CUDA header.
 */
extern int weir_rt_unsupported(void);

#define X(name)                                                                                    \
  __attribute__((visibility("default"))) int name(void);                                           \
  int name(void)                                                                                   \
  {                                                                                                \
    return weir_rt_unsupported();                                                                  \
  }
#include "unsupported.def"
