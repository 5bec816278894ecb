/* patched.c: a program that patches functions, as tools and communication libraries do: it writes a
 * jump over the first instructions, and what it wrote over goes on from another place.
 *
 * `patched near|far`: with a jump of 5 bytes (aarch64: 4) or of 12 (16). Prints which functions
 * could be patched, how many calls of each came to its hook, and whether the memory was right.
 * `patched near|far driver`: the driver's functions alone are patched, and the runtime's called:
 * each must come to the driver's, with the same block. Ends with 77 where the system does not
 * let code be changed. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/interpose/movable.h"

#define CODE(function) ((void *)(uintptr_t)(function))

enum { TO_HOOK = 128, TURNS = 5, NOT_ALLOWED = 77 };

static size_t page_bytes;

/* ---- patching -------------------------------------------------------------------------------- */

static size_t put_jump(unsigned char *at, const void *target)
{
#if defined __x86_64__
  static const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp *0(%rip) */
#else
  static const unsigned char jump[] = {0x51, 0, 0, 0x58, 0x20, 2, 0x1f, 0xd6}; /* ldr x17; br x17 */
#endif
  memcpy(at, jump, sizeof jump);
  memcpy(at + sizeof jump, &target, sizeof target);
  return sizeof jump + sizeof target;
}

/* The bytes of a jump from `at` to `target`, which is near. */
static size_t near_jump(unsigned char *bytes, const void *at, const void *target)
{
  intptr_t distance = (intptr_t)((uintptr_t)target - (uintptr_t)at);
#if defined __x86_64__
  int32_t offset = (int32_t)(distance - 5);
  bytes[0] = 0xe9;
  memcpy(bytes + 1, &offset, sizeof offset);
  return 5;
#else
  uint32_t word = 0x14000000u | ((uint32_t)(distance / 4) & 0x3ffffffu);
  memcpy(bytes, &word, sizeof word);
  return sizeof word;
#endif
}

static size_t far_jump(unsigned char *bytes, const void *target)
{
#if defined __x86_64__
  static const unsigned char load[] = {0x48, 0xb8}, jump[] = {0xff, 0xe0}; /* movabs, jmp *%rax */
  memcpy(bytes, load, 2);
  memcpy(bytes + 2, &target, sizeof target);
  memcpy(bytes + 10, jump, 2);
  return 12;
#else
  return put_jump(bytes, target);
#endif
}

/* A page for code, which a near jump from `code` gets to (NULL: anywhere). */
static unsigned char *page_near(const void *code)
{
#if defined __x86_64__
  const intptr_t step = 1 << 20; /* of 2 GiB, with room for the library itself */
#else
  const intptr_t step = 1 << 16; /* of 128 MiB */
#endif
  const uintptr_t from = (uintptr_t)code & ~(uintptr_t)0xffff;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS, steps = code ? 1800 : 0;
  for (int away = -steps; away <= steps; away++) {
    void *hint = code ? (void *)(from + (uintptr_t)(away * step)) : NULL;
    void *got = mmap(hint, page_bytes, PROT_READ | PROT_WRITE,
                     flags | (code ? MAP_FIXED_NOREPLACE : 0), -1, 0);
    if (got != MAP_FAILED && (!code || got == hint)) return got;
    if (got != MAP_FAILED) (void)munmap(got, page_bytes);
  }
  (void)fputs("there is no room near the function\n", stderr);
  exit(1);
}

static void change_code(unsigned char *at, const unsigned char *bytes, size_t n)
{
  unsigned char *start = (unsigned char *)((uintptr_t)at & ~(uintptr_t)(page_bytes - 1));
  size_t length = (size_t)(at + n - start);
  if (mprotect(start, length, PROT_READ | PROT_WRITE | PROT_EXEC)) exit(NOT_ALLOWED);
  memcpy(at, bytes, n);
  if (mprotect(start, length, PROT_READ | PROT_EXEC)) exit(NOT_ALLOWED);
  __builtin___clear_cache((char *)at, (char *)at + n);
}

/* Where the function goes on now; NULL: its first instructions can't be moved. */
static void *patch(void *function, const void *hook, bool is_near)
{
  unsigned char jump[16], *code = function, *page = page_near(is_near ? function : NULL);
  size_t n = is_near ? near_jump(jump, code, page + TO_HOOK) : far_jump(jump, hook);
  size_t moved = movable_bytes(code, n);
  if (!moved) return NULL;
  memcpy(page, code, moved);
  (void)put_jump(page + moved, code + moved);
  (void)put_jump(page + TO_HOOK, hook);
  if (mprotect(page, page_bytes, PROT_READ | PROT_EXEC)) exit(NOT_ALLOWED);
  __builtin___clear_cache((char *)page, (char *)page + page_bytes);
  change_code(code, jump, n);
  return page;
}

/* ---- hooks ----------------------------------------------------------------------------------- */

/* X(result, function, parameters, arguments). Volatile, as a compiler takes dlsym() for a
 * function that calls none of the program's. */
#define FUNCTIONS(X)                                                                               \
  X(cudaError_t, cudaMalloc, (void **p, size_t n), (p, n))                                         \
  X(cudaError_t, cudaMallocManaged, (void **p, size_t n, unsigned flags), (p, n, flags))           \
  X(cudaError_t, cudaMallocAsync, (void **p, size_t n, cudaStream_t s), (p, n, s))                 \
  X(cudaError_t, cudaFreeAsync, (void *p, cudaStream_t s), (p, s))                                 \
  X(cudaError_t, cudaFree, (void *p), (p))                                                         \
  X(CUresult, cuMemAlloc_v2, (CUdeviceptr * p, size_t n), (p, n))                                  \
  X(CUresult, cuMemAllocManaged, (CUdeviceptr * p, size_t n, unsigned flags), (p, n, flags))       \
  X(CUresult, cuMemAllocPitch_v2,                                                                  \
    (CUdeviceptr * p, size_t * pitch, size_t width, size_t rows, unsigned element),                \
    (p, pitch, width, rows, element))                                                              \
  X(CUresult, cuMemHostAlloc, (void **p, size_t n, unsigned flags), (p, n, flags))                 \
  X(CUresult, cuMemcpyHtoD_v2, (CUdeviceptr p, const void *from, size_t n), (p, from, n))          \
  X(CUresult, cuMemcpyDtoH_v2, (void *p, CUdeviceptr from, size_t n), (p, from, n))                \
  X(CUresult, cuMemFreeHost, (void *p), (p))                                                       \
  X(CUresult, cuMemFree_v2, (CUdeviceptr p), (p))                                                  \
  X(void *, dlsym, (void *library, const char *name), (library, name))

#define HOOK(result, function, parameters, arguments)                                              \
  static result(*moved_##function) parameters;                                                     \
  static unsigned called_##function;                                                               \
  static volatile unsigned seen_##function;                                                        \
  static result hook_##function parameters                                                         \
  {                                                                                                \
    seen_##function++;                                                                             \
    return moved_##function arguments;                                                             \
  }
FUNCTIONS(HOOK)

/* The hook is called once by a call, or the call does not count. */
#define CALL(function, ...)                                                                        \
  (before = seen_##function, error |= (int)function(__VA_ARGS__),                                  \
   called_##function += seen_##function == before + 1)

static int error;

static bool memory_is_right(void *p)
{
  unsigned char bytes[64] = {0};
  error |= (int)cudaMemset(p, 7, sizeof bytes);
  error |= (int)cudaMemcpy(bytes, p, sizeof bytes, cudaMemcpyDeviceToHost);
  for (size_t i = 0; i < sizeof bytes; i++)
    if (bytes[i] != 7) return false;
  return true;
}

static bool use_memory(void)
{
  unsigned before;
  void *p;
  CUdeviceptr d;
  bool right = true;
  CALL(cudaMalloc, &p, 1 << 20);
  right = right && memory_is_right(p);
  CALL(cudaFree, p);
  CALL(cudaMallocManaged, &p, 1 << 16, cudaMemAttachGlobal);
  right = right && memory_is_right(p);
  CALL(cudaFree, p);
  CALL(cudaMallocAsync, &p, 1 << 20, NULL);
  right = right && memory_is_right(p);
  CALL(cudaFreeAsync, p, NULL);
  CALL(cuMemAlloc_v2, &d, 1 << 20);
  right = right && memory_is_right((void *)(uintptr_t)d);
  CALL(cuMemFree_v2, d);
  CALL(cuMemAllocManaged, &d, 1 << 16, CU_MEM_ATTACH_GLOBAL);
  CALL(cuMemFree_v2, d);
  before = seen_dlsym;
  right = right && dlsym(RTLD_DEFAULT, "cudaFree") == CODE(cudaFree);
  called_dlsym += seen_dlsym == before + 1;
  return right;
}

/* As CALL, of a call of the runtime's that comes to the driver's function. */
#define COMES_TO(function, call)                                                                   \
  (before = seen_##function, error |= (int)(call),                                                 \
   called_##function += seen_##function == before + 1)

static bool use_runtime(void)
{
  static unsigned char big[4 << 20]; /* what is staged where it may be */
  unsigned before;
  size_t pitch;
  void *p;
  bool right = true;
  COMES_TO(cuMemAlloc_v2, cudaMalloc(&p, 1 << 20));
  right = right && memory_is_right(p);
  COMES_TO(cuMemFree_v2, cudaFree(p));
  COMES_TO(cuMemAllocPitch_v2, cudaMallocPitch(&p, &pitch, 1000, 64));
  right = right && memory_is_right(p);
  COMES_TO(cuMemFree_v2, cudaFree(p));
  COMES_TO(cuMemHostAlloc, cudaHostAlloc(&p, 1 << 16, cudaHostAllocDefault));
  memset(p, 7, 1 << 16);
  COMES_TO(cuMemFreeHost, cudaFreeHost(p));
  COMES_TO(cuMemAlloc_v2, cudaMalloc(&p, sizeof big));
  memset(big, 7, sizeof big);
  COMES_TO(cuMemcpyHtoD_v2, cudaMemcpy(p, big, sizeof big, cudaMemcpyHostToDevice));
  memset(big, 0, sizeof big);
  COMES_TO(cuMemcpyDtoH_v2, cudaMemcpy(big, p, sizeof big, cudaMemcpyDeviceToHost));
  right = right && big[0] == 7 && big[sizeof big - 1] == 7;
  COMES_TO(cuMemFree_v2, cudaFree(p));
  return right;
}

int main(int argc, char **argv)
{
  bool is_near = argc > 1 && strcmp(argv[1], "near") == 0, right = true;
  bool driver = argc > 2 && strcmp(argv[2], "driver") == 0;
  page_bytes = (size_t)sysconf(_SC_PAGESIZE);
  if (cudaFree(NULL) || cudaDeviceSynchronize()) return 1;
#define PATCH(result, function, parameters, arguments)                                             \
  {                                                                                                \
    void *found = dlsym(RTLD_DEFAULT, #function), *moved;                                          \
    if (driver && strncmp(#function, "cuMem", 5) != 0) found = NULL;                               \
    moved = found == CODE(function) ? patch(found, CODE(hook_##function), is_near) : NULL;         \
    memcpy(&moved_##function, &moved, sizeof moved);                                               \
    if (found && !moved) printf("%s is not patched\n", #function);                                 \
  }
  FUNCTIONS(PATCH)
#undef PATCH
  for (int i = 0; i < TURNS; i++)
    right = (driver ? use_runtime() : use_memory()) && right;
#define REPORT(result, function, parameters, arguments)                                            \
  if (called_##function) printf("%s %u\n", #function, called_##function);
  FUNCTIONS(REPORT)
  printf("memory %s, errors %d\n", right ? "right" : "wrong", error);
  return 0;
}
