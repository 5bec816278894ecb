/* rows.h: wrapped functions that hand out functions or names, and record no event. */
#ifndef WEIR_INTERPOSE_ROWS_H
#define WEIR_INTERPOSE_ROWS_H

#include "interpose/record/cuda_headers.h"
#include "interpose/process/thread.h"

/* Every exported name there is, and where it is wrapped. */
typedef struct weir_name {
  const char *name;
  uint16_t api;
  uint16_t row[WEIR_BANKS]; /* index + 1 in weir_rows, by bank; 0: not wrapped */
} weir_name;

/* One ABI of a driver function as cuGetProcAddress knows it. */
typedef struct weir_abi {
  const char *name;   /* without suffix */
  uint32_t version;   /* CUDA version it came with */
  uint8_t per_thread; /* the per-thread default stream spelling */
  int16_t row;        /* in weir_rows, -1: not wrapped */
  uint16_t api;
} weir_abi;

#define WEIR_NAME_SLOTS 4096u
extern const weir_name weir_names[];
extern const uint16_t weir_name_slots[WEIR_NAME_SLOTS]; /* FNV-1a, linear probing; index + 1 */
extern const weir_abi weir_abis[];                      /* by name, per_thread, version */
extern const uint32_t weir_abi_count;

/* The record of an exact name, or NULL. */
const weir_name *weir_name_find(const char *name);

/* Bodies of the wrappers; `real` is the original. */
CUresult weir_s_cuGetProcAddress(int bank, bool per_thread,
                                 CUresult (*real)(const char *, void **, int, cuuint64_t),
                                 const char *symbol, void **function, int version,
                                 cuuint64_t flags);
CUresult weir_s_cuGetProcAddress_v2(int bank, bool per_thread,
                                    CUresult (*real)(const char *, void **, int, cuuint64_t,
                                                     CUdriverProcAddressQueryResult *),
                                    const char *symbol, void **function, int version,
                                    cuuint64_t flags, CUdriverProcAddressQueryResult *status);
cudaError_t
weir_s_cudaGetDriverEntryPoint(int bank, bool per_thread,
                               cudaError_t (*real)(const char *, void **, unsigned long long,
                                                   enum cudaDriverEntryPointQueryResult *),
                               const char *symbol, void **function, unsigned long long flags,
                               enum cudaDriverEntryPointQueryResult *status);
cudaError_t weir_s_cudaGetDriverEntryPointByVersion(
    int bank, bool per_thread,
    cudaError_t (*real)(const char *, void **, unsigned int, unsigned long long,
                        enum cudaDriverEntryPointQueryResult *),
    const char *symbol, void **function, unsigned int version, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *status);
void weir_s___cudaRegisterFunction(int bank, bool per_thread,
                                   void (*real)(void **, const char *, char *, const char *, int,
                                                uint3 *, uint3 *, dim3 *, dim3 *, int *),
                                   void **module, const char *stub, char *symbol, const char *name,
                                   int threads, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid,
                                   int *warp);
cudaError_t weir_s___cudaGetKernel(int bank, bool per_thread,
                                   cudaError_t (*real)(cudaKernel_t *, const void *),
                                   cudaKernel_t *kernel, const void *stub);
cudaError_t weir_s_cudaGetKernel(int bank, bool per_thread,
                                 cudaError_t (*real)(cudaKernel_t *, const void *),
                                 cudaKernel_t *kernel, const void *stub);
cudaError_t weir_s_cudaGetFuncBySymbol(int bank, bool per_thread,
                                       cudaError_t (*real)(cudaFunction_t *, const void *),
                                       cudaFunction_t *function, const void *stub);

/* ---- names of kernels (names.c) -------------------------------------------------------------- */

/* A host stub was registered as the kernel `name` (static string of the program). */
void weir_name_stub(uint64_t stub, const char *name);

/* The handle runs what the stub runs. */
void weir_name_like_stub(uint64_t handle, uint64_t stub);

#endif
