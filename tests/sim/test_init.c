/* test_init.c: initialisation, devices, visibility, entry points by name, errors by name. */
#include "sim.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(nothing_works_before_cuInit)
{
  CUdevice d;
  int n;
  fails(cuDeviceGet(&d, 0), CUDA_ERROR_NOT_INITIALIZED);
  fails(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
  fails(cuMemAlloc_v2(NULL, 0), CUDA_ERROR_NOT_INITIALIZED);
  fails(cuStreamSynchronize(NULL), CUDA_ERROR_NOT_INITIALIZED);
  ok(cuDriverGetVersion(&n));
  ck_assert_int_eq(n, 13000);
  fails(cuInit(1), CUDA_ERROR_INVALID_VALUE);
  ok(cuInit(0));
  ok(cuInit(0));
  ok(cuDeviceGetCount(&n));
  ck_assert_int_eq(n, 4);
}
END_TEST

START_TEST(null_out_pointers_are_errors_not_crashes)
{
  ok(cuInit(0));
  fails(cuDeviceGetCount(NULL), CUDA_ERROR_INVALID_VALUE);
  fails(cuDeviceGet(NULL, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuDeviceGetName(NULL, 5, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuDeviceTotalMem_v2(NULL, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuDevicePrimaryCtxRetain(NULL, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuCtxGetCurrent(NULL), CUDA_ERROR_INVALID_VALUE);
  fails(cuDriverGetVersion(NULL), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(devices_describe_themselves)
{
  ok(cuInit(0));
  CUdevice d;
  fails(cuDeviceGet(&d, 4), CUDA_ERROR_INVALID_DEVICE);
  fails(cuDeviceGet(&d, -1), CUDA_ERROR_INVALID_DEVICE);
  ok(cuDeviceGet(&d, 3));
  char name[64], bus[32];
  ok(cuDeviceGetName(name, sizeof name, d));
  ck_assert_str_eq(name, "Weir Software Device");
  ok(cuDeviceGetName(name, 5, d));
  ck_assert_str_eq(name, "Weir");
  size_t total;
  ok(cuDeviceTotalMem_v2(&total, d));
  ck_assert_uint_eq(total, (size_t)8 << 30);
  CUuuid a, b;
  ok(cuDeviceGetUuid_v2(&a, 0));
  ok(cuDeviceGetUuid_v2(&b, 3));
  ck_assert_int_ne(memcmp(&a, &b, sizeof a), 0);
  ok(cuDeviceGetPCIBusId(bus, sizeof bus, d));
  CUdevice found;
  ok(cuDeviceGetByPCIBusId(&found, bus));
  ck_assert_int_eq(found, d);
  fails(cuDeviceGetByPCIBusId(&found, "0000:77:00.0"), CUDA_ERROR_INVALID_DEVICE);
  int v;
  ok(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_WARP_SIZE, d));
  ck_assert_int_eq(v, 32);
  ok(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, d));
  ck_assert_int_eq(v, 1);
  fails(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_MAX, d), CUDA_ERROR_INVALID_VALUE);
  ok(cuDeviceCanAccessPeer(&v, 0, 1));
  ck_assert_int_eq(v, 1);
  ok(cuDeviceCanAccessPeer(&v, 1, 1));
  ck_assert_int_eq(v, 0);
  fails(cuDeviceCanAccessPeer(&v, 0, 9), CUDA_ERROR_INVALID_DEVICE);
}
END_TEST

/* How many devices CUDA_VISIBLE_DEVICES leaves, and the bus ids' last digits in order. */
static void visible(const char *list, int count, const char *order)
{
  pid_t child = fork();
  if (!child) {
    setenv("CUDA_VISIBLE_DEVICES", list, 1);
    int n = 0;
    CUresult error = cuInit(0);
    if (error != (count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE)) _exit(1);
    if (count && (cuDeviceGetCount(&n) || n != count)) _exit(2);
    for (int i = 0; i < n; i++) {
      char bus[32];
      cuDeviceGetPCIBusId(bus, sizeof bus, i);
      if (bus[6] != order[i]) _exit(3);
    }
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  ck_assert_msg(status == 0, "CUDA_VISIBLE_DEVICES=%s: %d", list, WEXITSTATUS(status));
}

START_TEST(visible_devices_choose_order_and_hide)
{
  visible("0,1,2,3", 4, "0123");
  visible("3,1", 2, "31");
  visible("2", 1, "2");
  visible("", 0, "");
  visible("-1", 0, "");
  visible("NoDevFiles", 0, "");
  visible("1,9,0", 1, "1");
  visible("1,x,0", 1, "1");
  visible("1,1,0", 1, "1");
  visible(" 1 , 0 ", 2, "10");
  visible("0,-1,1", 1, "0");
}
END_TEST

START_TEST(visible_devices_by_uuid_prefix)
{
  visible("GPU-57454952-0000-4000-8000-73696d000002", 1, "2");
  visible("GPU-57454952-0000-4000-8000-73696d000003,0", 2, "30");
  visible("GPU-57454952", 0, ""); /* fits four */
  visible("GPU-57454952-0000-4000-8000-73696d000009,0", 0, "");
}
END_TEST

START_TEST(no_device_is_an_error_of_cuInit)
{
  setenv("WEIR_SIM_DEVICES", "0", 1);
  fails(cuInit(0), CUDA_ERROR_NO_DEVICE);
  int n;
  fails(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
}
END_TEST

/* ---- cuGetProcAddress ---- */

static void *check_entry_point(const char *name, int version, cuuint64_t flags,
                               CUdriverProcAddressQueryResult want)
{
  void *p = (void *)1;
  CUdriverProcAddressQueryResult status = 99;
  ok(cuGetProcAddress_v2(name, &p, version, flags, &status));
  ck_assert_int_eq((int)status, (int)want);
  ck_assert_int_eq(p != NULL, want == CU_GET_PROC_ADDRESS_SUCCESS);
  void *q = (void *)1;
  ok(cuGetProcAddress_v2(name, &q, version, flags, NULL));
  ck_assert_ptr_eq(p, q);
  return p;
}

#define FOUND(name, version, flags, function)                                                      \
  ck_assert_ptr_eq(check_entry_point(name, version, flags, CU_GET_PROC_ADDRESS_SUCCESS),           \
                   (void *)(uintptr_t)&function)

START_TEST(the_highest_abi_not_above_the_version)
{
  FOUND("cuMemAlloc", 3020, 0, cuMemAlloc_v2);
  FOUND("cuMemAlloc", 13000, 0, cuMemAlloc_v2);
  FOUND("cuMemAlloc", 3010, 0, cuMemAlloc);
  FOUND("cuMemAlloc", 2000, 0, cuMemAlloc);
  check_entry_point("cuMemAlloc", 1000, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  FOUND("cuMemPrefetchAsync", 8000, 0, cuMemPrefetchAsync);
  FOUND("cuMemPrefetchAsync", 12020, 0, cuMemPrefetchAsync_v2);
  FOUND("cuCtxSynchronize", 12090, 0, cuCtxSynchronize);
  FOUND("cuCtxSynchronize", 13000, 0, cuCtxSynchronize_v2);
  FOUND("cuGetProcAddress", 11030, 0, cuGetProcAddress);
  FOUND("cuGetProcAddress", 12000, 0, cuGetProcAddress_v2);
  FOUND("cuMemcpyBatchAsync", 12080, 0, cuMemcpyBatchAsync);
  FOUND("cuMemcpyBatchAsync", 13000, 0, cuMemcpyBatchAsync_v2);
  check_entry_point("cuNoSuchThing", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  check_entry_point("cuMemAlloc_v2", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  check_entry_point("", 0, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}
END_TEST

START_TEST(the_per_thread_flag_prefers_those_variants)
{
  FOUND("cuMemcpyHtoD", 7000, 2, cuMemcpyHtoD_v2_ptds);
  FOUND("cuMemcpyHtoD", 7000, 0, cuMemcpyHtoD_v2);
  FOUND("cuMemcpyHtoD", 7000, 1, cuMemcpyHtoD_v2);
  FOUND("cuStreamSynchronize", 7000, 2, cuStreamSynchronize_ptsz);
  FOUND("cuLaunchKernel", 7000, 2, cuLaunchKernel_ptsz);
  FOUND("cuMemAlloc", 7000, 2, cuMemAlloc_v2);     /* has none */
  FOUND("cuMemcpyHtoD", 3020, 2, cuMemcpyHtoD_v2); /* not yet */
}
END_TEST

START_TEST(bad_look_ups_are_refused)
{
  void *p;
  fails(cuGetProcAddress_v2("cuInit", &p, 13010, 0, NULL), CUDA_ERROR_INVALID_VALUE);
  fails(cuGetProcAddress_v2(NULL, &p, 13000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
  fails(cuGetProcAddress_v2("cuInit", NULL, 13000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
  fails(cuGetProcAddress_v2("cuInit", &p, 13000, 8, NULL), CUDA_ERROR_INVALID_VALUE);
  ok(cuGetProcAddress("cuInit", &p, 11030, 0));
  ck_assert_ptr_eq(p, (void *)(uintptr_t)&cuInit);
  fails(cuGetProcAddress("cuNoSuchThing", &p, 11030, 0), CUDA_ERROR_NOT_FOUND);
  ck_assert_ptr_null(p);
}
END_TEST

START_TEST(every_name_of_the_header_is_exported)
{
  void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  ck_assert_ptr_nonnull(self);
  static const char *const some[] = {
      "cuMemcpy3DPeerAsync_ptsz", "cuGraphLaunch",          "cuMemCreate",
      "cuTexRefSetAddress2D_v2",  "cuStreamGetCtx_v2_ptsz", "cuLaunch"};
  for (size_t i = 0; i < sizeof some / sizeof *some; i++)
    ck_assert_msg(dlsym(self, some[i]) != NULL, "%s", some[i]);
  int n = 0;
  for (const char *const *u = weir_sim_unsupported(); *u; u++, n++)
    ck_assert_msg(dlsym(self, *u) != NULL, "%s", *u);
  ck_assert_int_gt(n, 100);
}
END_TEST

/* The driver as the dynamic linker sees it: `command` run on its file. */
static FILE *inspect(const char *command)
{
  Dl_info info;
  char line[1200];
  ck_assert_int_ne(dladdr((void *)(uintptr_t)&cuInit, &info), 0);
  ck_assert_int_lt(snprintf(line, sizeof line, command, info.dli_fname), (int)sizeof line);
  FILE *f = popen(line, "r");
  ck_assert_ptr_nonnull(f);
  return f;
}

START_TEST(nothing_else_is_exported)
{
  FILE *f = inspect("nm -D --defined-only --format=posix '%s'");
  char name[256], rest[256];
  int n = 0;
  while (fscanf(f, "%255s%255[^\n]", name, rest) == 2) {
    n++;
    bool ours = strncmp(name, "weir_sim_", 9) == 0 || strncmp(name, "cudbg", 5) == 0 ||
                (strncmp(name, "cu", 2) == 0 && name[2] >= 'A' && name[2] <= 'Z');
    ck_assert_msg(ours, "%s", name);
  }
  ck_assert_int_eq(pclose(f), 0);
  ck_assert_int_gt(n, 600);
}
END_TEST

START_TEST(libc_is_all_it_needs)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  FILE *f = inspect("readelf -d '%s'");
  char line[512];
  bool soname = false;
  while (fgets(line, sizeof line, f)) {
    soname |= strstr(line, "soname: [libcuda.so.1]") != NULL;
    if (strstr(line, "(NEEDED)")) ck_assert_msg(strstr(line, "[libc.so") != NULL, "%s", line);
  }
  ck_assert_int_eq(pclose(f), 0);
  ck_assert(soname);
#endif
}
END_TEST

START_TEST(what_is_not_done_says_so)
{
  set_up_device0();
  CUmemGenericAllocationHandle h;
  fails(cuMulticastCreate(&h, NULL), CUDA_ERROR_NOT_SUPPORTED);
  fails(cuMemRangeGetAttribute(&h, 0, 0, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
  bool listed = false;
  for (const char *const *u = weir_sim_unsupported(); *u; u++) {
    listed |= strcmp(*u, "cuMulticastCreate") == 0;
    ck_assert_str_ne(*u, "cuMemAlloc_v2");
  }
  ck_assert(listed);
}
END_TEST

START_TEST(errors_have_names_and_sentences)
{
  const char *s;
  ok(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &s));
  ck_assert_str_eq(s, "CUDA_ERROR_OUT_OF_MEMORY");
  ok(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &s));
  ck_assert_str_eq(s, "out of memory");
  ok(cuGetErrorString(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, &s));
  ck_assert_ptr_nonnull(s);
  fails(cuGetErrorName((CUresult)12345, &s), CUDA_ERROR_INVALID_VALUE);
  ck_assert_ptr_null(s);
  fails(cuGetErrorString(CUDA_SUCCESS, NULL), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(the_private_tables_are_refused_with_a_sentence)
{
  set_up_device0();
  int out[2];
  ck_assert_int_eq(pipe(out), 0);
  int old = dup(STDERR_FILENO);
  dup2(out[1], STDERR_FILENO);
  const void *table = &table;
  CUuuid id = {{1}};
  CUresult first = cuGetExportTable(&table, &id), second = cuGetExportTable(&table, &id);
  dup2(old, STDERR_FILENO);
  close(out[1]);
  char text[1024];
  ssize_t n = read(out[0], text, sizeof text - 1);
  ck_assert_int_gt(n, 0);
  text[n] = 0;
  fails(first, CUDA_ERROR_NOT_FOUND);
  fails(second, CUDA_ERROR_NOT_FOUND);
  ck_assert_ptr_null(table);
  char *said = strstr(text, "-cudart shared");
  ck_assert_ptr_nonnull(said);
  ck_assert_ptr_null(strstr(said + 1, "-cudart shared"));
}
END_TEST

/* ---- fork ---- */

/* At exit LeakSanitizer waits for the allocator's locks, which a thread that only the parent has
 * may have held when the child was forked: it asks this whether to look for leaks. */
static bool leaks_are_ignored;
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
  return leaks_are_ignored;
}

START_TEST(a_child_of_an_initialised_process_is_told_so)
{
  set_up_device0();
  CUdeviceptr p = device_bytes(100);
  CUstream s;
  ok(cuStreamCreate(&s, 0));
  ok(weir_sim_hold(s));
  pid_t child = fork();
  if (!child) {
    CUdevice d;
    CUcontext c;
    bool right = cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                 cuDeviceGet(&d, 0) == CUDA_ERROR_NOT_INITIALIZED &&
                 cuCtxGetCurrent(&c) == CUDA_ERROR_NOT_INITIALIZED &&
                 cuMemFree_v2(p) == CUDA_ERROR_NOT_INITIALIZED &&
                 cuStreamSynchronize(s) == CUDA_ERROR_NOT_INITIALIZED &&
                 weir_sim_release(s) == CUDA_ERROR_NOT_INITIALIZED;
    leaks_are_ignored = true;
    exit(right ? 0 : 1); /* with exit handlers */
  }
  int status;
  waitpid(child, &status, 0);
  ck_assert_int_eq(status, 0);
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(s));
}
END_TEST

START_TEST(a_child_forked_before_cuInit_can_initialise)
{
  int version;
  ok(cuDriverGetVersion(&version));
  pid_t child = fork();
  if (!child) {
    CUdeviceptr p;
    set_up_device0();
    _exit(cuMemAlloc_v2(&p, 100) || cuMemsetD8_v2(p, 1, 100) || cuCtxSynchronize());
  }
  int status;
  waitpid(child, &status, 0);
  ck_assert_int_eq(status, 0);
}
END_TEST

/* ---- exit ---- */

static CUresult forever(void *stream)
{
  return cuStreamSynchronize(stream);
}

START_TEST(exit_with_work_that_never_ends_is_an_ordinary_exit)
{
  pid_t child = fork();
  if (!child) {
    set_up_device0();
    CUstream s;
    ok(cuStreamCreate(&s, 0));
    CUdeviceptr p = device_bytes(1 << 20);
    ok(weir_sim_hold(s));
    ok(cuMemsetD8Async(p, 1, 1 << 20, s));
    struct call waits;
    call_blocked(&waits, "cuStreamSynchronize", forever, s);
    exit(7);
  }
  int status;
  waitpid(child, &status, 0);
  ck_assert(WIFEXITED(status));
  ck_assert_int_eq(WEXITSTATUS(status), 7);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {nothing_works_before_cuInit,
                                null_out_pointers_are_errors_not_crashes,
                                devices_describe_themselves,
                                visible_devices_choose_order_and_hide,
                                visible_devices_by_uuid_prefix,
                                no_device_is_an_error_of_cuInit,
                                the_highest_abi_not_above_the_version,
                                the_per_thread_flag_prefers_those_variants,
                                bad_look_ups_are_refused,
                                every_name_of_the_header_is_exported,
                                nothing_else_is_exported,
                                libc_is_all_it_needs,
                                what_is_not_done_says_so,
                                errors_have_names_and_sentences,
                                the_private_tables_are_refused_with_a_sentence,
                                a_child_of_an_initialised_process_is_told_so,
                                a_child_forked_before_cuInit_can_initialise,
                                exit_with_work_that_never_ends_is_an_ordinary_exit,
                                NULL};
  return run_tests("sim_init", tests, NULL);
}
