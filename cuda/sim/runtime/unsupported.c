/* unsupported.c: entry points that exist, so that every program links, and are not done.
 *
 * They answer cudaErrorNotSupported, and report it once each. The table is made by gen.py: all
 * names the runtime exports less those the other files define. The functions' own types do not
 * matter for a constant answer, so this file includes no CUDA header. */
extern int weir_rt_unsupported(int *reported, const char *name);

#define X(name)                                                                                    \
  __attribute__((visibility("default"))) int name(void);                                           \
  int name(void)                                                                                   \
  {                                                                                                \
    static int reported;                                                                           \
    return weir_rt_unsupported(&reported, #name);                                                  \
  }
#include "unsupported.gen.h"
