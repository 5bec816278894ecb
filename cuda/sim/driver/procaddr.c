/* procaddr.c: entry points by name, and errors by name.
 *
 * The table is generated from cudaTypedefs.h, whose types name every ABI by the CUDA version that
 * introduced it. The rule: of the rows of a name, the one with the highest version that is not
 * above the version asked for; with the per-thread flag the per-thread rows first. */
#include "cuda/sim/internal.h"

#include <stdlib.h>
#include <string.h>

/* Rows are sorted by name; the first of `name`, or NULL. */
static const struct sim_proc *first_row(const char *name)
{
  size_t low = 0, high = sim_proc_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (strcmp(sim_procs[middle].name, name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low < sim_proc_count && strcmp(sim_procs[low].name, name) == 0 ? &sim_procs[low] : NULL;
}

static void (*best_row(const struct sim_proc *row, int version, int per_thread))(void)
{
  const struct sim_proc *end = sim_procs + sim_proc_count, *best = NULL;
  for (const char *name = row->name; row < end && strcmp(row->name, name) == 0; row++)
    if (row->per_thread == per_thread && row->version <= version) best = row;
  return best ? best->function : NULL;
}

static CUresult look_up(const char *symbol, void **function, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status)
{
  const cuuint64_t known =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (!symbol || !function || version > SIM_DRIVER_VERSION || flags & ~known)
    return CUDA_ERROR_INVALID_VALUE;
  const struct sim_proc *row = first_row(symbol);
  void (*found)(void) = NULL;
  if (row && flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
    found = best_row(row, version, 1);
  if (row && !found) found = best_row(row, version, 0);
  memcpy(function, &found, sizeof found);
  if (status)
    *status = found ? CU_GET_PROC_ADDRESS_SUCCESS
              : row ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                    : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_SUCCESS;
}

/* "The API will return CUDA_SUCCESS and set the returned pfn to NULL if the requested driver
 * function is not supported ..." since 12.0; the four-argument form, which has no status, says
 * NOT_FOUND. */
SIM_ENTRY(cuGetProcAddress_v2, look_up(symbol, pfn, cudaVersion, flags, symbolStatus))

CUresult sim_cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
  CUresult error = look_up(symbol, function, version, flags, NULL);
  return error ? error : *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* Private tables are NVIDIA's own: none are here, and who asks for one cannot run on this driver.
 */
CUresult sim_cuGetExportTable(const void **table, const CUuuid *id)
{
  static _Atomic bool said;
  if (!table || !id) return CUDA_ERROR_INVALID_VALUE;
  *table = NULL;
  sim_say_once(&said,
               "weir sim: this program has NVIDIA's own cudart linked in, which needs the real "
               "driver; build it with `nvcc -cudart shared` or run it on a GPU");
  return CUDA_ERROR_NOT_FOUND;
}

/* ---- errors ---------------------------------------------------------------------------------- */

CUresult sim_cuGetErrorName(CUresult error, const char **name)
{
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  *name = NULL;
  for (const struct sim_error_name *n = sim_error_names; n->name; n++)
    if (n->value == (int)error) *name = n->name;
  return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* One sentence an error; the name serves for the others. */
static const struct {
  int value;
  const char *text;
} sentences[] = {
    {CUDA_SUCCESS, "no error"},
    {CUDA_ERROR_INVALID_VALUE, "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "initialization error"},
    {CUDA_ERROR_DEINITIALIZED, "driver shutting down"},
    {CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "invalid device context"},
    {CUDA_ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered"},
    {CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "the provided execution affinity is not supported"},
    {CUDA_ERROR_FILE_NOT_FOUND, "file not found"},
    {CUDA_ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"},
    {CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"},
    {CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"},
    {CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"},
    {CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "the primary context is in use"},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"},
    {CUDA_ERROR_ASSERT, "device-side assert triggered"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part or all of the memory is already registered"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
     "pointer does not correspond to a registered memory region"},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"},
    {CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"},
    {CUDA_ERROR_NOT_PERMITTED, "operation not permitted"},
    {CUDA_ERROR_NOT_SUPPORTED, "operation not supported"},
    {CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
     "operation failed due to a previous error during capture"},
    {CUDA_ERROR_STREAM_CAPTURE_MERGE,
     "operation would result in a merge of separate capture sequences"},
    {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not ended in the same stream as it began"},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"},
    {CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
     "dependency created on uncaptured work in another stream"},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {CUDA_ERROR_CAPTURED_EVENT,
     "operation not permitted on an event last recorded in a capturing stream"},
    {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
     "attempt to terminate a thread-local capture sequence from another thread"},
    {CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
     "the graph update was not performed because it included changes which violated constraints "
     "specific to instantiated graph update"},
    {CUDA_ERROR_UNKNOWN, "unknown error"},
};

CUresult sim_cuGetErrorString(CUresult error, const char **text)
{
  CUresult result = sim_cuGetErrorName(error, text);
  for (size_t i = 0; !result && i < sizeof sentences / sizeof *sentences; i++)
    if (sentences[i].value == (int)error) *text = sentences[i].text;
  return result;
}

/* ---- profiler: there is none to start, which its functions may say --------------------------- */

SIM_ENTRY(cuProfilerStart, sim_current() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT)
SIM_ENTRY(cuProfilerStop, sim_current() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT)
