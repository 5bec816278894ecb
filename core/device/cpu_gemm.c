/* cpu_gemm.c: matrix products on the cpu. */
#include "core/device/cpu.h"

weir_status weir_cpu_gemm(void *self, void *stream, const weir_gemm *g)
{
  (void)self, (void)stream;
  if (g->dtype >= WEIR_UINT8 && g->dtype <= WEIR_INT64) return weir_cpu_gemm_int(g);
  return weir_cpu_not_for("addmm_impl", g->dtype);
}
