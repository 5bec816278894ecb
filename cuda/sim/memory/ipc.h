/* ipc.h: memory shared with other processes, as ipc.c, memory.c and pool_place.c deal with it. */
#ifndef WEIR_SIM_IPC_H
#define WEIR_SIM_IPC_H

#include "cuda/sim/internal.h"

/* Memory: the end of a range that was exported, or that is another process's. Lock held. */
void sim_export_end(struct sim_range *range);
void sim_import_end(struct sim_range *range);
bool sim_range_exports(const struct sim_range *range); /* cuIpcGetMemHandle would take it */
/* What another process needs to map the range, CU_IPC_HANDLE_SIZE bytes, zeroed before; lock held.
 */
CUresult sim_range_export(struct sim_range *range, uint64_t pool, void *out);
/* Maps what process `pid` exported of its pool of that number, as memory of `pool`. */
CUresult sim_range_import(CUcontext context, const void *exported, int pid, uint64_t number,
                          CUmemoryPool pool, CUdeviceptr *p);
/* Frees the range that begins there and is of that kind, once its context's work is done. */
CUresult sim_range_free(uintptr_t start, enum sim_kind kind);

#endif
