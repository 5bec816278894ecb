/* procaddr.c: entry points by name, and errors by name.
 *
 * The table is generated from cudaTypedefs.h, whose types name every ABI by the CUDA version that
 * introduced it. The rule: of the rows of a name, the one with the highest version that is not
 * above the version asked for; with the per-thread flag the per-thread rows first. */
#include "cuda/sim/internal.h"

#include <driver_types.h>
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

static CUresult look_up_function(const char *symbol, void **function, int version, cuuint64_t flags,
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
 * function is not supported ..." since 12.0; the four-argument form, which has no status, states
 * NOT_FOUND. */
SIM_ENTRY(cuGetProcAddress_v2, look_up_function(symbol, pfn, cudaVersion, flags, symbolStatus))

CUresult sim_cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
  CUresult error = look_up_function(symbol, function, version, flags, NULL);
  return error ? error : *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* Private tables are NVIDIA's own: none are here, and who asks for one cannot run on this driver.
 */
CUresult sim_cuGetExportTable(const void **table, const CUuuid *id)
{
  static _Atomic bool reported;
  if (!table || !id) return CUDA_ERROR_INVALID_VALUE;
  *table = NULL;
  sim_print_once(&reported,
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

/* Where there is no sentence the name serves. */
CUresult sim_cuGetErrorString(CUresult error, const char **text)
{
  CUresult result = sim_cuGetErrorName(error, text);
  if (result) return result;
  if (error == CUDA_SUCCESS) *text = "no error";
#define E(name, sentence)                                                                          \
  if ((int)error == cudaError##name) *text = sentence;
#include "cuda/sim/error.def"
#undef E
  return CUDA_SUCCESS;
}

/* ---- profiler: there is none to start, which its functions may state
 * --------------------------- */

SIM_ENTRY(cuProfilerStart, sim_current() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT)
SIM_ENTRY(cuProfilerStop, sim_current() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT)
