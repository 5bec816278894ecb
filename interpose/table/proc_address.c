/* proc_address.c: cuGetProcAddress and its kin hand out our wrappers.
 *
 * The key is (name, version, per-thread stream or not): of the ABIs a name has had, the one asked
 * for is the highest that is not newer than the version asked with. The real function answers
 * first; its answer is exchanged only when it is a success and an address. The probe for "" is
 * passed as it is. A version above all that we know may mean an ABI that we do not: the driver is
 * then asked for the newest version that we know, too, and only if both answers are one is it ours.
 */
#include <string.h>
#include "interpose/elf/elf.h"
#include "interpose/process/process.h"
#include "interpose/record/unwrapped.h"
#include "interpose/table/hooks.gen.h"
#include "interpose/table/rows.h"

/* Asks the real function once more, for another version. NULL when it fails. */
typedef struct asker {
  void *(*ask)(const struct asker *a, const char *name, uint32_t version);
  void (*real)(void);
  uint64_t flags;
} asker;

/* First of the abis of this name and stream kind, or NULL. */
static const hook_abi *first_abi(const char *name, unsigned per_thread)
{
  uint32_t low = 0, high = hook_abi_count;
  while (low < high) {
    uint32_t mid = (low + high) / 2;
    int d = strcmp(hook_abis[mid].name, name);
    if (d < 0 || (d == 0 && hook_abis[mid].per_thread < per_thread))
      low = mid + 1;
    else
      high = mid;
  }
  if (low == hook_abi_count || strcmp(hook_abis[low].name, name) != 0) return NULL;
  return hook_abis[low].per_thread == per_thread ? &hook_abis[low] : NULL;
}

/* The highest abi of the name not newer than `version`; a function without a per-thread spelling
 * has one for both. */
static const hook_abi *best_abi(const char *name, uint32_t version, bool per_thread)
{
  const hook_abi *a = first_abi(name, per_thread), *best = NULL;
  if (!a && per_thread) a = first_abi(name, 0), per_thread = false;
  for (; a && a < hook_abis + hook_abi_count && strcmp(a->name, name) == 0 &&
         a->per_thread == per_thread;
       a++)
    if (a->version <= version) best = a;
  return best;
}

/* What the asker gets in place of `real`. */
static void *replace_entry(const asker *a, const char *name, uint32_t version, void *real)
{
  const hook_abi *abi =
      best_abi(name, version, a->flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  if (abi && version > WEIR_ABI_NEWEST && a->ask(a, name, WEIR_ABI_NEWEST) != real) abi = NULL;
  if (abi && abi->row >= 0) return hook_row_bind_answer(&hook_rows[abi->row], real);
  if (abi) {
    coverage_add(abi->api, WEIR_COVER_PASSED);
    return real;
  }
  /* A spelling with its suffix, which some drivers take, or a name there is no version of. */
  const hook_row *row = hook_row_find(WEIR_BANK_DRIVER, name);
  if (row && !first_abi(name, 0)) return hook_row_bind_answer(row, real);
  uint16_t api = first_abi(name, 0) ? 0 : hook_api_find(name);
  if (api)
    coverage_add(api, WEIR_COVER_PASSED);
  else
    coverage_add_unknown(name);
  return api ? real : unwrapped_watch(name, real);
}

static bool is_wrapper(const void *address)
{
  for (uint32_t i = 0; i < hook_row_count && hook_rows[i].bank == WEIR_BANK_DRIVER; i++)
    if (hook_rows[i].wrapper == address) return true;
  return false;
}

/* Exchanges *function after a success, unless the look-up beneath has done so already. */
static void wrap_answer(const asker *a, const char *name, uint32_t version, void **function)
{
  if (!name || !*name || !function || !*function || is_wrapper(*function)) return;
  *function = replace_entry(a, name, version, *function);
}

typedef CUresult (*fn_v1)(const char *, void **, int, cuuint64_t);
typedef CUresult (*fn_v2)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
typedef cudaError_t (*fn_entry)(const char *, void **, unsigned long long,
                                enum cudaDriverEntryPointQueryResult *);
typedef cudaError_t (*fn_entry_by)(const char *, void **, unsigned int, unsigned long long,
                                   enum cudaDriverEntryPointQueryResult *);

static void *ask_v1(const asker *a, const char *name, uint32_t version)
{
  void *p = NULL;
  return ((fn_v1)a->real)(name, &p, (int)version, a->flags) == CUDA_SUCCESS ? p : NULL;
}

static void *ask_v2(const asker *a, const char *name, uint32_t version)
{
  void *p = NULL;
  return ((fn_v2)a->real)(name, &p, (int)version, a->flags, NULL) == CUDA_SUCCESS ? p : NULL;
}

CUresult handle_cuGetProcAddress(int bank, bool per_thread, fn_v1 real, const char *symbol,
                                 void **function, int version, cuuint64_t flags)
{
  (void)bank, (void)per_thread;
  CUresult r = real(symbol, function, version, flags);
  asker a = {ask_v1, (void (*)(void))real, flags};
  if (r == CUDA_SUCCESS) wrap_answer(&a, symbol, (uint32_t)version, function);
  return r;
}

CUresult handle_cuGetProcAddress_v2(int bank, bool per_thread, fn_v2 real, const char *symbol,
                                    void **function, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status)
{
  (void)bank, (void)per_thread;
  CUresult r = real(symbol, function, version, flags, status);
  asker a = {ask_v2, (void (*)(void))real, flags};
  if (r == CUDA_SUCCESS) wrap_answer(&a, symbol, (uint32_t)version, function);
  return r;
}

/* The runtime's way to a driver function. It asks the driver beneath, mostly through our wrapper,
 * and then the answer is ours already; else it is exchanged here. Flags have the driver's values;
 * without any, the spelling called decides which stream is meant. */
static uint64_t entry_flags(unsigned long long flags, bool per_thread)
{
  bool given =
      flags & (CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  return !given && per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : flags;
}

/* A newer runtime's default version can't be asked for again: only one we know is exchanged. */
static void *no_entry_point(const asker *a, const char *name, uint32_t version)
{
  (void)a, (void)name, (void)version;
  return NULL;
}

static void *ask_entry_by(const asker *a, const char *name, uint32_t version)
{
  void *p = NULL;
  return ((fn_entry_by)a->real)(name, &p, version, a->flags, NULL) == cudaSuccess ? p : NULL;
}

/* The version a runtime without one in the call looks its symbols up with: its own. */
static uint32_t runtime_version(int bank)
{
  typedef cudaError_t (*fn)(int *);
  static const uint32_t lowest[WEIR_BANKS] = {0, 11000, 12000, 13000};
  fn ask = (fn)(uintptr_t)elf_symbol(cuda_library_soname(bank), "cudaRuntimeGetVersion");
  int version = 0;
  return ask && ask(&version) == cudaSuccess && version > 0 ? (uint32_t)version : lowest[bank];
}

cudaError_t handle_cudaGetDriverEntryPoint(int bank, bool per_thread, fn_entry real,
                                           const char *symbol, void **function,
                                           unsigned long long flags,
                                           enum cudaDriverEntryPointQueryResult *status)
{
  cudaError_t r = real(symbol, function, flags, status);
  asker a = {no_entry_point, NULL, entry_flags(flags, per_thread)};
  if (r == cudaSuccess && function && *function && !is_wrapper(*function))
    wrap_answer(&a, symbol, runtime_version(bank), function);
  return r;
}

cudaError_t handle_cudaGetDriverEntryPointByVersion(int bank, bool per_thread, fn_entry_by real,
                                                    const char *symbol, void **function,
                                                    unsigned int version, unsigned long long flags,
                                                    enum cudaDriverEntryPointQueryResult *status)
{
  (void)bank;
  cudaError_t r = real(symbol, function, version, flags, status);
  asker a = {ask_entry_by, (void (*)(void))real, entry_flags(flags, per_thread)};
  if (r == cudaSuccess) wrap_answer(&a, symbol, version, function);
  return r;
}
