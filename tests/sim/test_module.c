/* test_module.c: images, functions, variables, launches and their twins. */
#include "sim.h"

#include <elf.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- twins ----------------------------------------------------------------------------------- */

static void axpy(void *const *arg, const struct weir_twin_thread *t)
{
  int n = *(int *)arg[0];
  float a = *(float *)arg[1], *x = *(float **)arg[2], *y = *(float **)arg[3];
  int i = (int)(t->block_index[0] * t->block[0] + t->thread_index[0]);
  if (i < n) y[i] += a * x[i];
}
static const uint32_t axpy_sizes[] = {4, 4, 8, 8};
EXPORT const struct weir_twin weir_twin_axpy = {1, 4, axpy_sizes, axpy, "axpy", NULL, 0};

/* Marks every thread of a 3-D grid once; sums block indices in shared memory. */
static void mark_grid_threads(void *const *arg, const struct weir_twin_thread *t)
{
  uint32_t *out = *(uint32_t **)arg[0], *sum = t->shared;
  size_t block =
      (t->block_index[2] * t->grid[1] + t->block_index[1]) * t->grid[0] + t->block_index[0];
  size_t thread =
      (t->thread_index[2] * t->block[1] + t->thread_index[1]) * t->block[0] + t->thread_index[0];
  out[block * t->block[0] * t->block[1] * t->block[2] + thread] += ++*sum;
}
static const uint32_t mark_sizes[] = {8};
EXPORT const struct weir_twin weir_twin_mark = {1,      1,    mark_sizes, mark_grid_threads,
                                                "mark", NULL, 0};

static void crash(void *const *arg, const struct weir_twin_thread *t)
{
  (void)t;
  **(volatile int **)arg[0] = 1;
}
EXPORT const struct weir_twin weir_twin_crash = {1, 1, mark_sizes, crash, "crash", NULL, 0};

static void trap(void *const *arg, const struct weir_twin_thread *t)
{
  (void)t;
  weir_sim_trap(*(int *)arg[0]);
}
static const uint32_t trap_sizes[] = {4};
EXPORT const struct weir_twin weir_twin_trap = {1, 1, trap_sizes, trap, "trap", NULL, 0};

struct mixed {
  char c[3];
};
static void mixed(void *const *arg, const struct weir_twin_thread *t)
{
  (void)t;
  double *out = *(double **)arg[2];
  out[0] = *(char *)arg[0];
  out[1] = *(double *)arg[1];
  out[2] = ((struct mixed *)arg[3])->c[2];
}
static const uint32_t mixed_sizes[] = {1, 8, 8, 3};
EXPORT const struct weir_twin weir_twin_mixed = {1, 4, mixed_sizes, mixed, "mixed", NULL, 0};

static const char ptx[] = "// made by hand\n"
                          ".version 8.0\n.target sm_80\n.address_size 64\n"
                          ".visible .global .align 4 .f32 table[6];\n"
                          ".const .align 8 .u64 limit;\n"
                          ".visible .entry axpy(.param .u32 n)\n{ ret; }\n"
                          ".visible .entry mark(.param .u64 p)\n{ ret; }\n"
                          ".visible .entry crash(.param .u64 p) { ret; }\n"
                          ".visible .entry trap(.param .u32 p) { ret; }\n"
                          ".visible .entry mixed(.param .u8 p) { ret; }\n"
                          ".visible .entry twinless()\n{ ret; }\n"
                          ".func helper() { ret; }\n";

static CUmodule load_ptx_module(void)
{
  CUmodule m;
  ok(cuModuleLoadData(&m, ptx));
  return m;
}

static CUfunction function(const char *name)
{
  CUfunction f;
  ok(cuModuleGetFunction(&f, load_ptx_module(), name));
  return f;
}

static CUresult launch(CUfunction f, unsigned grid, unsigned block, CUstream s, void **arguments)
{
  return cuLaunchKernel(f, grid, 1, 1, block, 1, 1, 0, s, arguments, NULL);
}

/* ---- images ---------------------------------------------------------------------------------- */

START_TEST(what_is_no_image_is_refused)
{
  CUmodule m;
  fails(cuModuleLoadData(&m, "hello, this is no code"), CUDA_ERROR_INVALID_IMAGE);
  fails(cuModuleLoadData(&m, NULL), CUDA_ERROR_INVALID_VALUE);
  fails(cuModuleLoadData(NULL, ptx), CUDA_ERROR_INVALID_VALUE);
  fails(cuModuleLoad(&m, "/nonexistent/file.cubin"), CUDA_ERROR_FILE_NOT_FOUND);
  fails(cuModuleUnload((CUmodule)&m), CUDA_ERROR_INVALID_HANDLE);
  CUlibrary l;
  fails(cuLibraryLoadData(&l, "no code", NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_INVALID_IMAGE);
}
END_TEST

START_TEST(functions_are_found_by_whole_names)
{
  CUmodule m = load_ptx_module();
  CUfunction f, g;
  const char *name;
  ok(cuModuleGetFunction(&f, m, "twinless"));
  ok(cuModuleGetFunction(&g, m, "twinless"));
  ck_assert_ptr_eq(f, g);
  ok(cuFuncGetName(&name, f));
  ck_assert_str_eq(name, "twinless");
  fails(cuModuleGetFunction(&f, m, "twin"), CUDA_ERROR_NOT_FOUND);
  fails(cuModuleGetFunction(&f, m, "less"), CUDA_ERROR_NOT_FOUND);
  fails(cuModuleGetFunction(&f, m, "helper"), CUDA_ERROR_NOT_FOUND);
  fails(cuModuleGetFunction(&f, m, ""), CUDA_ERROR_NOT_FOUND);
  fails(cuModuleGetFunction(&f, (CUmodule)&m, "axpy"), CUDA_ERROR_INVALID_HANDLE);
  ok(cuModuleUnload(m));
  fails(cuModuleGetFunction(&f, m, "axpy"), CUDA_ERROR_INVALID_HANDLE);
  fails(launch(g, 1, 1, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

/* A fat binary as far as its header: what is inside is compressed for all we know. */
START_TEST(an_opaque_fat_binary_is_believed)
{
  struct {
    uint32_t magic;
    uint16_t version, header;
    uint64_t bytes;
    char inside[32];
  } fat = {0xBA55ED50, 1, 16, 32, "xxxx"};
  struct {
    int magic, version;
    const void *data;
    void *more;
  } wrapper = {0x466243b1, 1, &fat, NULL};
  CUmodule m, n;
  CUfunction f;
  ok(cuModuleLoadFatBinary(&m, &fat));
  ok(cuModuleLoadData(&n, &wrapper));
  ok(cuModuleGetFunction(&f, m, "anything"));
  ok(cuModuleGetFunction(&f, n, "anything"));
  ok(launch(f, 1, 1, NULL, NULL)); /* without a twin: skipped */
  ok(cuCtxSynchronize());
}
END_TEST

/* The smallest ELF file with one initialised and one zero object. */
struct cubin {
  Elf64_Ehdr head;
  Elf64_Shdr section[5]; /* null, symbols, strings, data, zeros */
  Elf64_Sym symbol[3];
  char strings[64];
  uint32_t data[2];
};

static void make_cubin(struct cubin *c)
{
  memset(c, 0, sizeof *c);
  memcpy(c->head.e_ident, ELFMAG, SELFMAG);
  c->head.e_ident[EI_CLASS] = ELFCLASS64;
  c->head.e_shoff = offsetof(struct cubin, section);
  c->head.e_shentsize = sizeof(Elf64_Shdr);
  c->head.e_shnum = 5;
  memcpy(c->strings, "\0first\0zeros\0.text.kern", 24);
  c->section[1] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
                               .sh_offset = offsetof(struct cubin, symbol),
                               .sh_size = sizeof c->symbol,
                               .sh_link = 2};
  c->section[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
                               .sh_offset = offsetof(struct cubin, strings),
                               .sh_size = sizeof c->strings};
  c->section[3] = (Elf64_Shdr){.sh_type = SHT_PROGBITS,
                               .sh_offset = offsetof(struct cubin, data),
                               .sh_size = sizeof c->data};
  c->section[4] = (Elf64_Shdr){.sh_type = SHT_NOBITS, .sh_size = 100};
  c->symbol[1] = (Elf64_Sym){.st_name = 1, .st_info = STT_OBJECT, .st_shndx = 3, .st_size = 8};
  c->symbol[2] = (Elf64_Sym){.st_name = 7, .st_info = STT_OBJECT, .st_shndx = 4, .st_size = 100};
  c->data[0] = 42;
  c->data[1] = 43;
}

START_TEST(a_cubin_tells_its_variables_and_functions)
{
  struct cubin c;
  make_cubin(&c);
  CUmodule m;
  CUfunction f;
  CUdeviceptr p, q;
  size_t bytes;
  ok(cuModuleLoadData(&m, &c));
  ok(cuModuleGetFunction(&f, m, "kern"));
  fails(cuModuleGetFunction(&f, m, "ker"), CUDA_ERROR_NOT_FOUND);
  ok(cuModuleGetGlobal_v2(&p, &bytes, m, "first"));
  ck_assert_uint_eq(bytes, 8);
  uint32_t v[2];
  ok(cuMemcpyDtoH_v2(v, p, 8));
  ck_assert_uint_eq(v[1], 43);
  ok(cuModuleGetGlobal_v2(&q, &bytes, m, "zeros"));
  ck_assert_uint_eq(bytes, 100);
  ok(cuMemcpyDtoH_v2(v, q + 92, 8));
  ck_assert_uint_eq(v[1], 0);
  fails(cuModuleGetGlobal_v2(&p, &bytes, m, "kern"), CUDA_ERROR_NOT_FOUND);
  char path[] = "/tmp/weir-cubin-XXXXXX";
  int fd = mkstemp(path);
  ck_assert_int_eq(write(fd, &c, sizeof c), sizeof c);
  ok(cuModuleLoad(&m, path));
  ok(cuModuleGetFunction(&f, m, "kern"));
  ck_assert_int_eq(ftruncate(fd, sizeof c - 100), 0);
  fails(cuModuleLoad(&m, path), CUDA_ERROR_INVALID_IMAGE);
  close(fd);
  unlink(path);
}
END_TEST

/* ---- variables ------------------------------------------------------------------------------- */

START_TEST(variables_have_storage_of_their_module)
{
  CUmodule m = load_ptx_module(), n = load_ptx_module();
  CUdeviceptr p, q, again;
  size_t bytes;
  ok(cuModuleGetGlobal_v2(&p, &bytes, m, "table"));
  ck_assert_uint_eq(bytes, 24);
  ok(cuModuleGetGlobal_v2(&again, NULL, m, "table"));
  ck_assert_uint_eq(p, again);
  ok(cuModuleGetGlobal_v2(&q, NULL, n, "table"));
  ck_assert_uint_ne(p, q);
  ok(cuModuleGetGlobal_v2(NULL, &bytes, m, "limit"));
  ck_assert_uint_eq(bytes, 8);
  ok(cuMemsetD8_v2(p, 1, 24));
  fails(cuMemsetD8_v2(p, 1, 25), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
  fails(cuModuleGetGlobal_v2(&p, &bytes, m, "nothing"), CUDA_ERROR_NOT_FOUND);
  fails(cuModuleGetGlobal_v2(NULL, NULL, m, "table"), CUDA_ERROR_INVALID_VALUE);
  ok(cuModuleUnload(m));
  fails(cuMemsetD8_v2(p, 1, 24), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(a_variable_can_be_defined_from_outside)
{
  int initial[3] = {1, 2, 3}, got[3];
  CUmodule m = load_ptx_module(), n = load_ptx_module();
  CUdeviceptr p;
  size_t bytes;
  ok(weir_sim_define_global(m, "mine", sizeof initial, initial));
  ok(cuModuleGetGlobal_v2(&p, &bytes, m, "mine"));
  ck_assert_uint_eq(bytes, sizeof initial);
  ok(cuMemcpyDtoH_v2(got, p, sizeof got));
  ck_assert_int_eq(got[2], 3);
  fails(cuModuleGetGlobal_v2(&p, &bytes, n, "mine"), CUDA_ERROR_NOT_FOUND);
  ok(weir_sim_define_global(NULL, "any", 10, NULL));
  ok(cuModuleGetGlobal_v2(&p, &bytes, n, "any"));
  ck_assert_uint_eq(bytes, 10);
  CUlibrary l;
  ok(cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0));
  ok(weir_sim_define_global(l, "of_library", 16, NULL));
  ok(cuLibraryGetGlobal(&p, &bytes, l, "of_library"));
  ck_assert_uint_eq(bytes, 16);
}
END_TEST

/* ---- launches -------------------------------------------------------------------------------- */

START_TEST(a_launch_runs_every_thread_on_its_arguments)
{
  enum { N = 1000 };
  float x[N], y[N];
  for (int i = 0; i < N; i++) {
    x[i] = (float)i;
    y[i] = 1;
  }
  CUdeviceptr dx = device_bytes(sizeof x), dy = device_bytes(sizeof y);
  ok(cuMemcpyHtoD_v2(dx, x, sizeof x));
  ok(cuMemcpyHtoD_v2(dy, y, sizeof y));
  int n = N;
  float a = 2;
  void *arguments[] = {&n, &a, &dx, &dy};
  CUstream s;
  ok(cuStreamCreate(&s, 0));
  ok(weir_sim_hold(s));
  ok(launch(function("axpy"), 8, 128, s, arguments));
  n = 0; /* copied at the launch */
  a = 100;
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(s));
  ok(cuMemcpyDtoH_v2(y, dy, sizeof y));
  for (int i = 0; i < N; i++)
    ck_assert_float_eq(y[i], 1 + 2 * (float)i);
}
END_TEST

START_TEST(grids_blocks_and_shared_memory_are_three_dimensional)
{
  enum { THREADS = 2 * 3 * 4, BLOCKS = 3 * 2 * 2 };
  uint32_t out[BLOCKS * THREADS];
  CUdeviceptr p = device_bytes(sizeof out);
  ok(cuMemsetD8_v2(p, 0, sizeof out));
  void *arguments[] = {&p};
  ok(cuLaunchCooperativeKernel(function("mark"), 3, 2, 2, 2, 3, 4, 4, NULL, arguments));
  ok(cuMemcpyDtoH_v2(out, p, sizeof out));
  for (uint32_t i = 0; i < BLOCKS * THREADS; i++)
    ck_assert_uint_eq(out[i], i % THREADS + 1); /* zero again at each block */
}
END_TEST

START_TEST(a_parameter_buffer_is_unpacked_by_alignment)
{
  double out[3] = {0};
  CUdeviceptr p = device_bytes(sizeof out);
  char buffer[32] = {0};
  double d = 2.5;
  buffer[0] = 7;
  memcpy(buffer + 8, &d, 8);
  memcpy(buffer + 16, &p, 8);
  buffer[24 + 2] = 'c';
  size_t bytes = 27;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  CUfunction f = function("mixed");
  ok(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
  ok(cuMemcpyDtoH_v2(out, p, sizeof out));
  ck_assert_double_eq(out[0], 7);
  ck_assert_double_eq(out[1], 2.5);
  ck_assert_double_eq(out[2], 'c');
  bytes = 20;
  fails(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), CUDA_ERROR_INVALID_VALUE);
  size_t offset, size;
  ok(cuFuncGetParamInfo(f, 2, &offset, &size));
  ck_assert_uint_eq(offset, 16);
  ck_assert_uint_eq(size, 8);
  fails(cuFuncGetParamInfo(f, 4, &offset, &size), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(illegal_launches_are_refused)
{
  CUfunction f = function("twinless"), g = function("axpy");
  fails(launch(f, 0, 1, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
  fails(launch(f, 1, 0, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
  fails(launch(f, 1, 1025, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
  fails(cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
  fails(cuLaunchKernel(f, 1, 1, 1, 32, 32, 2, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
  fails(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 50000, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
  ok(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
  ok(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 50000, NULL, NULL, NULL));
  fails(launch(NULL, 1, 1, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
  fails(launch(g, 1, 1, NULL, NULL), CUDA_ERROR_INVALID_VALUE); /* arguments missing */
  CUstream s;
  ok(cuCtxSetCurrent(primary(1)));
  ok(cuStreamCreate(&s, 0));
  fails(launch(f, 1, 1, s, NULL), CUDA_ERROR_INVALID_HANDLE); /* of another context */
}
END_TEST

/* What weir_note() is given, where there is a Weir. */
static char notes[2048];
EXPORT void weir_note(const char *text);
EXPORT void weir_note(const char *text)
{
  strncat(notes, text, sizeof notes - strlen(notes) - 2);
  strcat(notes, "\n");
}

START_TEST(a_kernel_without_a_twin_is_skipped_and_said_once)
{
  int out[2];
  ck_assert_int_eq(pipe(out), 0);
  CUfunction f = function("twinless"), g = function("twinless");
  CUdeviceptr p = device_bytes(100);
  int old = dup(STDERR_FILENO);
  dup2(out[1], STDERR_FILENO);
  CUresult first = launch(f, 1, 1, NULL, NULL), second = launch(g, 1, 1, NULL, NULL);
  dup2(old, STDERR_FILENO);
  close(out[1]);
  char text[512];
  ssize_t n = read(out[0], text, sizeof text - 1);
  text[n < 0 ? 0 : n] = 0;
  ok(first);
  ok(second);
  ck_assert_str_eq(text, notes); /* "the trace and the program's stderr say so once" */
  ck_assert_ptr_eq(strstr(text, "weir sim: kernel twinless has no host twin: skipped\n"), text);
  ck_assert_ptr_nonnull(
      strstr(text, "\nweir sim: memory that a skipped kernel should have written "));
  ck_assert_int_eq(strchr(strchr(text, '\n') + 1, '\n')[1], 0); /* twice nothing */
  ok(cuMemsetD8_v2(p, 1, 100));
  ok(cuCtxSynchronize());
}
END_TEST

static void answer_801(void)
{
  CUdeviceptr p;
  fails(cuMemHostRegister_v2(NULL, 0, 0x8000), CUDA_ERROR_INVALID_VALUE);
  fails(cuGraphicsMapResources(0, NULL, NULL), CUDA_ERROR_NOT_SUPPORTED);
  fails(cuGraphicsMapResources(0, NULL, NULL), CUDA_ERROR_NOT_SUPPORTED);
  CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                              .requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC};
  CUmemGenericAllocationHandle h;
  fails(cuMemCreate(&h, 2 << 20, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
  fails(cuMemCreate(&h, 2 << 20, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
  weir_sim_set_fail("cuMemAlloc_v2:1=801");
  fails(cuMemAlloc_v2(&p, 4), CUDA_ERROR_NOT_SUPPORTED); /* a test's own fault is no news */
}

START_TEST(what_answers_801_is_said_once_by_name)
{
  static const char told[] =
      "weir sim: cuGraphicsMapResources is not done by the software device: answers 801 "
      "(CUDA_ERROR_NOT_SUPPORTED)\n"
      "weir sim: cuMemCreate does not do what it was asked: answers 801 "
      "(CUDA_ERROR_NOT_SUPPORTED)\n";
  int out[2];
  ck_assert_int_eq(pipe(out), 0);
  int old = dup(STDERR_FILENO);
  dup2(out[1], STDERR_FILENO);
  answer_801();
  dup2(old, STDERR_FILENO);
  close(out[1]);
  char text[1024];
  ssize_t n = read(out[0], text, sizeof text - 1);
  text[n < 0 ? 0 : n] = 0;
  ck_assert_str_eq(text, told);
  ck_assert_str_eq(notes, told);
}
END_TEST

START_TEST(a_link_finds_no_compiler)
{
  CUlinkState state;
  fails(cuLinkCreate_v2(0, NULL, NULL, &state), CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
  fails(cuLinkCreate_v2(0, NULL, NULL, &state), CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
  ck_assert_str_eq(notes,
                   "weir sim: cuLinkCreate: the software device has no compiler: answers 221 "
                   "(CUDA_ERROR_JIT_COMPILER_NOT_FOUND)\n");
  fails(cuLinkCreate_v2(1, NULL, NULL, &state), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(where_nothing_is_recycled_a_skipped_kernel_is_all_that_is_said)
{
  CUfunction f = function("twinless");
  setenv("WEIR_MODE", "observe", 1); /* nothing is recycled */
  ok(launch(f, 1, 1, NULL, NULL));
  ck_assert_str_eq(notes, "weir sim: kernel twinless has no host twin: skipped\n");
}
END_TEST

START_TEST(libraries_have_kernels_for_every_context)
{
  CUlibrary l;
  CUkernel k;
  CUfunction f0, f1;
  CUmodule m;
  ok(cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0));
  ok(cuLibraryGetKernel(&k, l, "axpy"));
  fails(cuLibraryGetKernel(&k, l, "nothing"), CUDA_ERROR_NOT_FOUND);
  ok(cuLibraryGetKernel(&k, l, "axpy"));
  ok(cuKernelGetFunction(&f0, k));
  ok(cuCtxSetCurrent(primary(1)));
  ok(cuKernelGetFunction(&f1, k));
  ck_assert_ptr_ne(f0, f1);
  float x = 3, y = 1, a = 2;
  int n = 1;
  CUdeviceptr dx = device_bytes(4), dy = device_bytes(4);
  ok(cuMemcpyHtoD_v2(dx, &x, 4));
  ok(cuMemcpyHtoD_v2(dy, &y, 4));
  void *arguments[] = {&n, &a, &dx, &dy};
  ok(launch((CUfunction)k, 1, 1, NULL, arguments)); /* a kernel where a function is asked for */
  CUlaunchConfig config = {
      .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
  ok(cuLaunchKernelEx(&config, f1, arguments, NULL));
  ok(cuLaunchKernelEx_ptsz(&config, f1, arguments, NULL));
  ok(cuCtxSynchronize());
  ok(cuMemcpyDtoH_v2(&y, dy, 4));
  ck_assert_float_eq(y, 19);
  ok(cuLibraryGetModule(&m, l));
  fails(cuModuleUnload(m), CUDA_ERROR_NOT_PERMITTED);
  ok(cuLibraryUnload(l));
  fails(cuLibraryGetKernel(&k, l, "axpy"), CUDA_ERROR_INVALID_HANDLE);
  fails(launch((CUfunction)k, 1, 1, NULL, arguments), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

/* ---- faults ---------------------------------------------------------------------------------- */

START_TEST(a_twin_that_faults_poisons_its_context_only)
{
  CUfunction f = function("crash");
  CUdeviceptr gone = device_bytes(4 << 20), p = device_bytes(100);
  ok(cuMemFree_v2(gone));
  void *arguments[] = {&gone};
  ok(launch(f, 1, 1, NULL, arguments));
  fails(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  fails(cuMemFree_v2(p), CUDA_ERROR_ILLEGAL_ADDRESS);
  fails(launch(f, 1, 1, NULL, arguments), CUDA_ERROR_ILLEGAL_ADDRESS);
  ok(cuCtxSetCurrent(primary(1)));
  CUdeviceptr q = device_bytes(100);
  ok(cuMemsetD8_v2(q, 0, 100));
  ok(cuCtxSynchronize());
  ok(cuDevicePrimaryCtxReset_v2(0));
  ok(cuCtxSetCurrent(primary(0)));
  p = device_bytes(100);
  ok(cuMemsetD8_v2(p, 0, 100));
  ok(cuCtxSynchronize());
}
END_TEST

#if !defined(__SANITIZE_ADDRESS__) /* which takes stacks apart itself */
static int deeper(volatile int *n)
{
  volatile char frame[4096];
  frame[0] = (char)++*n;
  return *n < 0 ? 0 : deeper(n) + frame[0];
}

static void overrun(void *const *arg, const struct weir_twin_thread *t)
{
  (void)arg, (void)t;
  volatile int n = 0;
  deeper(&n);
}
EXPORT const struct weir_twin weir_twin_overrun = {1, 0, NULL, overrun, "overrun", NULL, 0};

START_TEST(a_twin_that_overruns_its_stack_is_a_fault)
{
  CUmodule m;
  CUfunction f;
  ok(cuModuleLoadData(&m, ".version 8.0\n.target sm_80\n.visible .entry overrun() { ret; }\n"));
  ok(cuModuleGetFunction(&f, m, "overrun"));
  ok(launch(f, 1, 1, NULL, NULL));
  fails(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST
#endif

/* Runs `after` in a child that has initialised and launched, so that the fault handler is there. */
static int child_after_a_launch(void (*before)(void), void (*after)(void))
{
  pid_t pid = fork();
  if (!pid) {
    if (before) before();
    set_up_device0();
    uint32_t zero = 0;
    CUdeviceptr p = device_bytes(4);
    ok(cuMemcpyHtoD_v2(p, &zero, 4));
    after();
    _exit(0);
  }
  int status;
  waitpid(pid, &status, 0);
  return status;
}

static int *volatile nowhere = (int *)16;

static void fault(void)
{
  *nowhere = 1;
}

static void own_handler(int signal)
{
  _exit(signal == SIGSEGV ? 42 : 1);
}
static void own_action(int signal, siginfo_t *info, void *context)
{
  (void)context;
  _exit(signal == SIGSEGV && info->si_addr == (void *)nowhere ? 43 : 1);
}
static void set_handler(void)
{
  (void)signal(SIGSEGV, own_handler);
}
static void set_action(void)
{
  struct sigaction a = {.sa_sigaction = own_action, .sa_flags = SA_SIGINFO};
  (void)sigaction(SIGSEGV, &a, NULL);
}
static void set_default(void)
{
  (void)signal(SIGSEGV, SIG_DFL);
}

static void launch_blocking(void)
{
  int error = CUDA_ERROR_ASSERT;
  void *arguments[] = {&error};
  if (launch(function("trap"), 1, 1, NULL, arguments) != CUDA_ERROR_ASSERT) _exit(1);
}

static void ask_to_block(void)
{
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
}

START_TEST(a_blocking_launch_returns_its_own_error)
{
  ck_assert_int_eq(child_after_a_launch(ask_to_block, launch_blocking), 0);
}
END_TEST

START_TEST(the_programs_own_faults_stay_its_own)
{
  ck_assert_int_eq(WEXITSTATUS(child_after_a_launch(set_handler, fault)), 42);
  ck_assert_int_eq(WEXITSTATUS(child_after_a_launch(set_action, fault)), 43);
  int status = child_after_a_launch(set_default, fault);
  ck_assert(WIFSIGNALED(status));
  ck_assert_int_eq(WTERMSIG(status), SIGSEGV);
}
END_TEST

START_TEST(a_twin_can_trap)
{
  int error = CUDA_ERROR_ASSERT;
  void *arguments[] = {&error};
  ck_assert_int_eq(weir_sim_trap(1), -1); /* not in a kernel */
  ok(launch(function("trap"), 1, 1, NULL, arguments));
  fails(cuStreamSynchronize(NULL), CUDA_ERROR_ASSERT);
  fails(cuCtxSynchronize(), CUDA_ERROR_ASSERT);
}
END_TEST

static _Atomic int called;
static void never(void *unused)
{
  (void)unused;
  atomic_store(&called, 1);
}

START_TEST(work_behind_a_fault_is_not_done_but_ends)
{
  CUstream s;
  CUevent e;
  ok(cuStreamCreate(&s, 0));
  ok(cuEventCreate(&e, 0));
  int error = 0;
  void *arguments[] = {&error};
  CUfunction f = function("trap");
  ok(weir_sim_hold(s));
  ok(launch(f, 1, 1, s, arguments));
  ok(cuLaunchHostFunc(s, never, NULL));
  ok(cuEventRecord(e, s));
  ok(weir_sim_release(s));
  fails(cuEventSynchronize(e), CUDA_ERROR_ILLEGAL_ADDRESS);
  ck_assert_int_eq(called, 0);
}
END_TEST

START_TEST(occupancy_follows_the_limits)
{
  CUfunction f = function("axpy");
  int blocks, block, grid;
  ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 1024, 0));
  ck_assert_int_eq(blocks, 2);
  ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 32, 0));
  ck_assert_int_eq(blocks, 32);
  ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 32, 48 << 10));
  ck_assert_int_eq(blocks, 3);
  fails(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 0, 0), CUDA_ERROR_INVALID_VALUE);
  ok(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 0));
  ck_assert_int_eq(block, 1024);
  ok(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 200));
  ck_assert_int_le(block, 200);
  int v;
  ok(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
  ck_assert_int_eq(v, 1024);
  fails(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NUM_REGS, 1), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {
    what_is_no_image_is_refused,
    functions_are_found_by_whole_names,
    an_opaque_fat_binary_is_believed,
    a_cubin_tells_its_variables_and_functions,
    variables_have_storage_of_their_module,
    a_variable_can_be_defined_from_outside,
    a_launch_runs_every_thread_on_its_arguments,
    grids_blocks_and_shared_memory_are_three_dimensional,
    a_parameter_buffer_is_unpacked_by_alignment,
    illegal_launches_are_refused,
    a_kernel_without_a_twin_is_skipped_and_said_once,
    what_answers_801_is_said_once_by_name,
    where_nothing_is_recycled_a_skipped_kernel_is_all_that_is_said,
    a_link_finds_no_compiler,
    libraries_have_kernels_for_every_context,
    a_twin_that_faults_poisons_its_context_only,
    a_twin_can_trap,
    work_behind_a_fault_is_not_done_but_ends,
#if !defined(__SANITIZE_ADDRESS__)
    a_twin_that_overruns_its_stack_is_a_fault,
#endif
    occupancy_follows_the_limits,
    NULL
  };
  const TTest *const bare[] = {a_blocking_launch_returns_its_own_error,
                               the_programs_own_faults_stay_its_own, NULL};
  return run_groups("sim_module", tests, set_up_device0, bare);
}
