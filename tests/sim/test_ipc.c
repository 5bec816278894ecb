/* test_ipc.c: memory and events shared with another process, which is forked before this one
 * initialises. What the other does is told by its exit status: the number of the step that failed.
 */
#include "sim.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAZY CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS

static int to_other[2], from_other[2];

/* Forks the other process; its work gets the pipe to read from and the one to write to. */
static pid_t other(int (*work)(int in, int out))
{
  ck_assert_int_eq(pipe(to_other), 0);
  ck_assert_int_eq(pipe(from_other), 0);
  pid_t child = fork();
  if (!child) {
    close(to_other[1]);
    close(from_other[0]);
    _exit(work(to_other[0], from_other[1]));
  }
  close(to_other[0]);
  close(from_other[1]);
  return child;
}

static void write_whole_message(int out, const void *what, size_t bytes)
{
  ck_assert_int_eq((int)write(out, what, bytes), (int)bytes);
}

static bool read_whole_message(int in, void *what, size_t bytes)
{
  return read(in, what, bytes) == (ssize_t)bytes;
}

static void ended_well(pid_t child)
{
  int status;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFEXITED(status));
  ck_assert_int_eq(WEXITSTATUS(status), 0);
}

static CUresult start_other(void)
{
  CUresult error = cuInit(0);
  return error ? error : cuCtxSetCurrent(primary(0));
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int uses_memory(int in, int out)
{
  CUipcMemHandle h;
  CUdeviceptr p, again;
  unsigned word = 0;
  if (start_other() || !read_whole_message(in, &h, sizeof h)) return 1;
  if (cuIpcOpenMemHandle_v2(&p, h, 0) != CUDA_ERROR_INVALID_VALUE) return 2;
  if (cuIpcOpenMemHandle_v2(&p, h, LAZY)) return 3;
  if (cuIpcOpenMemHandle_v2(&again, h, LAZY) || again != p) return 4;
  if (cuMemcpyDtoH_v2(&word, p + 396, 4) || word != 5) return 5;
  if (cuMemsetD32_v2(p, 6, 100) || cuCtxSynchronize()) return 6;
  if (cuMemsetD8_v2(p + 400, 0, 1) != CUDA_ERROR_INVALID_VALUE) return 7; /* what was exported */
  if (cuMemFree_v2(p) != CUDA_ERROR_INVALID_VALUE) return 8;
  if (cuIpcGetMemHandle(&h, p) != CUDA_ERROR_INVALID_VALUE) return 9;
  if (cuIpcCloseMemHandle(p) || cuMemcpyDtoH_v2(&word, p, 4)) return 10;
  if (cuIpcCloseMemHandle(p) || cuIpcCloseMemHandle(p) != CUDA_ERROR_INVALID_VALUE) return 11;
  write_whole_message(out, &word, 4);
  if (!read_whole_message(in, &h, sizeof h)) return 12;
  return cuIpcOpenMemHandle_v2(&p, h, LAZY) == CUDA_ERROR_INVALID_HANDLE ? 0 : 13;
}

START_TEST(memory_is_one_in_two_processes_until_it_is_freed)
{
  pid_t child = other(uses_memory);
  set_up_device0();
  CUdeviceptr before = device_bytes(100), p = device_bytes(400);
  CUipcMemHandle h, second;
  ok(cuMemsetD32_v2(p, 5, 100));
  ok(cuCtxSynchronize());
  ok(cuIpcGetMemHandle(&h, p));
  ok(cuIpcGetMemHandle(&second, p)); /* "may be called multiple times" */
  ck_assert_mem_eq(&h, &second, sizeof h);
  fails(cuIpcGetMemHandle(&second, p + 4), CUDA_ERROR_INVALID_VALUE);
  fails(cuIpcGetMemHandle(NULL, p), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr mine;
  fails(cuIpcOpenMemHandle_v2(&mine, h, LAZY), CUDA_ERROR_INVALID_CONTEXT); /* its own */
  write_whole_message(to_other[1], &h, sizeof h);
  unsigned word = 0;
  ck_assert(read_whole_message(from_other[0], &word, 4));
  ck_assert_uint_eq(word, 6);
  ok(cuMemcpyDtoH_v2(&word, p, 4));
  ck_assert_uint_eq(word, 6);
  ok(cuMemFree_v2(p));
  CUdeviceptr same = device_bytes(400);
  ok(cuIpcGetMemHandle(&second, same));
  if (same == p) ck_assert_mem_ne(&h, &second, sizeof h);
  write_whole_message(to_other[1], &h, sizeof h);
  ended_well(child);
  ok(cuMemFree_v2(before));
}
END_TEST

/* ---- pools ----------------------------------------------------------------------------------- */

#define DESCRIPTOR CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

struct exported {
  int pid, file; /* the pool, to be opened through /proc */
  CUmemPoolPtrExportData data;
};

static int uses_pool(int in, int out)
{
  struct exported e;
  char path[64];
  CUmemoryPool pool;
  CUdeviceptr p, q;
  CUstream s;
  unsigned word = 0;
  if (start_other() || cuStreamCreate(&s, 0) || !read_whole_message(in, &e, sizeof e)) return 1;
  (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", e.pid, e.file);
  int file = open(path, O_RDONLY);
  if (file < 0) return 2;
  if (cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)file, DESCRIPTOR, 0)) return 3;
  close(file);
  if (cuMemAllocFromPoolAsync(&p, 4, pool, s) != CUDA_ERROR_INVALID_VALUE) return 4;
  if (cuDeviceSetMemPool(0, pool) != CUDA_ERROR_INVALID_VALUE) return 5;
  CUmemPoolPtrExportData wrong = e.data;
  memset(&wrong, 7, 8);
  if (cuMemPoolImportPointer(&p, pool, &wrong) != CUDA_ERROR_INVALID_VALUE) return 6;
  if (cuMemPoolImportPointer(&p, pool, &e.data)) return 7;
  if (cuMemcpyDtoH_v2(&word, p + 396, 4) || word != 5) return 8;
  if (cuMemsetD32Async(p, 6, 100, s) || cuMemFreeAsync(p, s)) return 9;
  if (cuMemcpyDtoH_v2(&word, p, 4) != CUDA_ERROR_INVALID_VALUE) return 10;
  if (cuStreamSynchronize(s)) return 11;
  if (cuMemPoolImportPointer(&q, pool, &e.data) || cuMemFree_v2(q)) return 12;
  if (cuMemPoolDestroy(pool)) return 13;
  write_whole_message(out, &word, 4);
  return 0;
}

START_TEST(a_pools_memory_is_one_in_two_processes)
{
  pid_t child = other(uses_pool);
  set_up_device0();
  CUmemoryPool pool, plain;
  CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                          .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  int types = 0;
  ok(cuDeviceGetAttribute(&types, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 0));
  ck_assert_int_eq(types, DESCRIPTOR);
  ok(cuMemPoolCreate(&plain, &props));
  props.handleTypes = DESCRIPTOR;
  ok(cuMemPoolCreate(&pool, &props));
  struct exported e = {.pid = getpid()};
  fails(cuMemPoolExportToShareableHandle(&e.file, plain, DESCRIPTOR, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemPoolExportToShareableHandle(&e.file, pool, CU_MEM_HANDLE_TYPE_FABRIC, 0),
        CUDA_ERROR_INVALID_VALUE);
  ok(cuMemPoolExportToShareableHandle(&e.file, pool, DESCRIPTOR, 0));
  CUdeviceptr p, q;
  ok(cuMemAllocFromPoolAsync(&p, 400, pool, NULL));
  ok(cuMemAllocFromPoolAsync(&q, 400, plain, NULL));
  fails(cuMemPoolExportPointer(&e.data, q), CUDA_ERROR_INVALID_VALUE);
  CUipcMemHandle h;
  fails(cuIpcGetMemHandle(&h, p), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemPoolExportPointer(&e.data, p));
  ok(cuMemsetD32_v2(p, 5, 100));
  ok(cuCtxSynchronize());
  write_whole_message(to_other[1], &e, sizeof e);
  unsigned word = 0;
  ck_assert(read_whole_message(from_other[0], &word, 4));
  ended_well(child);
  ok(cuMemcpyDtoH_v2(&word, p + 4, 4));
  ck_assert_uint_eq(word, 6);
  ok(cuMemFreeAsync(p, NULL));
  ok(cuCtxSynchronize());
  close(e.file);
  e.file = open("/proc/self/exe", O_RDONLY);
  fails(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)e.file, DESCRIPTOR, 0),
        CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(only_plain_allocations_are_exported)
{
  set_up_device0();
  CUipcMemHandle h;
  CUdeviceptr p;
  unsigned can = 9;
  ok(cuMemAllocAsync(&p, 400, NULL));
  fails(cuIpcGetMemHandle(&h, p), CUDA_ERROR_INVALID_VALUE);
  ok(cuPointerGetAttribute(&can, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p));
  ck_assert_uint_eq(can, 0);
  ok(cuMemAllocManaged(&p, 400, CU_MEM_ATTACH_GLOBAL));
  fails(cuIpcGetMemHandle(&h, p), CUDA_ERROR_INVALID_VALUE);
  fails(cuIpcGetMemHandle(&h, (CUdeviceptr)(uintptr_t)pinned_bytes(4)), CUDA_ERROR_INVALID_VALUE);
  p = device_bytes(4);
  ok(cuPointerGetAttribute(&can, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p));
  ck_assert_uint_eq(can, 1);
  memset(&h, 7, sizeof h);
  fails(cuIpcOpenMemHandle_v2(&p, h, LAZY), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

static int exports_and_ends(int in, int out)
{
  CUipcMemHandle h;
  CUipcEventHandle g;
  CUevent e;
  CUdeviceptr p;
  (void)in;
  if (start_other() || cuMemAlloc_v2(&p, 400) || cuIpcGetMemHandle(&h, p)) return 1;
  if (cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING)) return 2;
  if (cuIpcGetEventHandle(&g, e)) return 3;
  write_whole_message(out, &h, sizeof h);
  write_whole_message(out, &g, sizeof g);
  return 0;
}

START_TEST(handles_of_a_process_that_ended_are_dead)
{
  pid_t child = other(exports_and_ends);
  set_up_device0();
  CUipcMemHandle h;
  CUipcEventHandle g;
  CUdeviceptr p;
  CUevent e;
  ck_assert(read_whole_message(from_other[0], &h, sizeof h) &&
            read_whole_message(from_other[0], &g, sizeof g));
  ended_well(child);
  fails(cuIpcOpenMemHandle_v2(&p, h, LAZY), CUDA_ERROR_MAP_FAILED);
  fails(cuIpcOpenEventHandle(&e, g), CUDA_ERROR_MAP_FAILED);
}
END_TEST

static int exports_and_waits(int in, int out)
{
  CUipcMemHandle h;
  CUdeviceptr p;
  char byte;
  if (start_other() || cuMemAlloc_v2(&p, 4 << 20) || cuIpcGetMemHandle(&h, p)) return 1;
  if (cuMemsetD8_v2(p, 3, 4 << 20) || cuCtxSynchronize()) return 2;
  write_whole_message(out, &h, sizeof h);
  return read_whole_message(in, &byte, 1) ? 0 : 3;
}

START_TEST(a_context_that_ends_closes_what_it_opened)
{
  pid_t child = other(exports_and_waits);
  set_up_device0();
  CUipcMemHandle h;
  CUdeviceptr p;
  CUcontext c;
  ck_assert(read_whole_message(from_other[0], &h, sizeof h));
  ok(cuCtxCreate_v2(&c, 0, 0));
  ok(cuIpcOpenMemHandle_v2(&p, h, LAZY));
  unsigned char byte = 0;
  ok(cuMemcpyDtoH_v2(&byte, p + (4 << 20) - 1, 1));
  ck_assert_uint_eq(byte, 3);
  ok(cuCtxDestroy_v2(c));
  ok(cuCtxSetCurrent(primary(0)));
  fails(cuIpcCloseMemHandle(p), CUDA_ERROR_INVALID_VALUE);
  ok(cuIpcOpenMemHandle_v2(&p, h, LAZY));
  ok(cuIpcCloseMemHandle(p));
  write_whole_message(to_other[1], "x", 1);
  ended_well(child);
}
END_TEST

/* ---- events ---------------------------------------------------------------------------------- */

/* Waits for the first recording, then makes one of its own that it holds back. */
static int uses_event(int in, int out)
{
  CUipcEventHandle h;
  CUevent e;
  CUstream s;
  char byte;
  if (start_other() || !read_whole_message(in, &h, sizeof h) || cuIpcOpenEventHandle(&e, h))
    return 1;
  if (cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) || cuEventQuery(e) != CUDA_ERROR_NOT_READY)
    return 2;
  if (cuStreamWaitEvent(s, e, 0) || cuStreamQuery(s) != CUDA_ERROR_NOT_READY) return 3;
  write_whole_message(out, "w", 1);
  if (cuStreamSynchronize(s) || cuEventQuery(e)) return 4;
  if (weir_sim_hold(s) || cuEventRecord(e, s)) return 5;
  write_whole_message(out, "r", 1);
  if (!read_whole_message(in, &byte, 1) || weir_sim_release(s) || cuStreamSynchronize(s)) return 6;
  float ms;
  if (cuEventElapsedTime_v2(&ms, e, e) != CUDA_ERROR_INVALID_HANDLE) return 7;
  return cuEventDestroy_v2(e) ? 8 : 0;
}

START_TEST(an_event_orders_streams_of_two_processes)
{
  pid_t child = other(uses_event);
  set_up_device0();
  CUevent e;
  CUstream s;
  CUipcEventHandle h;
  char byte;
  ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  ok(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
  ok(cuIpcGetEventHandle(&h, e));
  CUevent mine;
  fails(cuIpcOpenEventHandle(&mine, h), CUDA_ERROR_INVALID_CONTEXT);
  ok(cuEventQuery(e)); /* never recorded */
  ok(weir_sim_hold(s));
  ok(cuEventRecord(e, s));
  fails(cuEventQuery(e), CUDA_ERROR_NOT_READY);
  write_whole_message(to_other[1], &h, sizeof h);
  ck_assert(read_whole_message(from_other[0], &byte, 1));
  ok(weir_sim_release(s));
  ck_assert(read_whole_message(from_other[0], &byte, 1));
  fails(cuEventQuery(e), CUDA_ERROR_NOT_READY); /* the other's recording */
  ok(cuStreamWaitEvent(s, e, 0));
  fails(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
  write_whole_message(to_other[1], "x", 1);
  ok(cuStreamSynchronize(s));
  ok(cuEventSynchronize(e));
  ended_well(child);
  ok(cuEventDestroy_v2(e));
}
END_TEST

static int records_and_is_killed(int in, int out)
{
  CUipcEventHandle h;
  CUevent e;
  if (start_other() || !read_whole_message(in, &h, sizeof h) || cuIpcOpenEventHandle(&e, h))
    return 1;
  if (weir_sim_hold(NULL) || cuEventRecord(e, NULL)) return 2;
  write_whole_message(out, "r", 1);
  (void)raise(SIGKILL);
  return 3;
}

START_TEST(nobody_waits_for_a_process_that_was_killed)
{
  pid_t child = other(records_and_is_killed);
  set_up_device0();
  CUevent e;
  CUipcEventHandle h;
  char byte;
  ok(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
  ok(cuIpcGetEventHandle(&h, e));
  write_whole_message(to_other[1], &h, sizeof h);
  ck_assert(read_whole_message(from_other[0], &byte, 1));
  ck_assert_int_eq(waitpid(child, NULL, 0), child);
  ok(cuEventSynchronize(e));
}
END_TEST

START_TEST(only_interprocess_events_are_exported)
{
  set_up_device0();
  CUevent e;
  CUipcEventHandle h;
  fails(cuEventCreate(&e, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
  ok(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
  fails(cuIpcGetEventHandle(&h, e), CUDA_ERROR_INVALID_VALUE);
  fails(cuIpcGetEventHandle(&h, (CUevent)&h), CUDA_ERROR_INVALID_HANDLE);
  ok(cuEventDestroy_v2(e));
}
END_TEST

int main(void)
{
  const TTest *const bare[] = {memory_is_one_in_two_processes_until_it_is_freed,
                               a_pools_memory_is_one_in_two_processes,
                               only_plain_allocations_are_exported,
                               handles_of_a_process_that_ended_are_dead,
                               a_context_that_ends_closes_what_it_opened,
                               an_event_orders_streams_of_two_processes,
                               nobody_waits_for_a_process_that_was_killed,
                               only_interprocess_events_are_exported,
                               NULL};
  return run_groups("sim_ipc", NULL, NULL, bare);
}
