/* test_hooks.c: the wrappers and extractors over fake CUDA libraries: every row records exactly its
 * call, and what an event says follows from the arguments by CUDA's documentation. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "core/trace/api.h"
#include "interpose/process/part.h"
#include "interpose/process/recording.h"
#include "interpose/record/cuda_headers.h"
#include "interpose/record/pointers.h"
#include "tests/interpose/hooks_rig.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* The wrapper of a function, typed. */
#define D(fn)      ((__typeof__(&fn))(uintptr_t)rig_wrapper(WEIR_BANK_DRIVER, #fn))
#define R(fn)      ((__typeof__(&fn))(uintptr_t)rig_wrapper(WEIR_BANK_RT13, #fn))
#define R12(fn)    ((__typeof__(&fn))(uintptr_t)rig_wrapper(WEIR_BANK_RT12, #fn))
#define P(address) ((void *)(uintptr_t)(address))
#define DEVICE_A   UINT64_C(0x7f0000000000)
#define DEVICE_B   UINT64_C(0x7f4000000000)
#define CTX_B      UINT64_C(0xc0ffee11)

typedef uint64_t (*any_fn)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                           uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                           uint64_t, uint64_t);

static uint64_t call_zero(void *wrapper)
{
  return ((any_fn)(uintptr_t)wrapper)(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

static bool is_question(const char *name)
{
  return api_row(hook_api_find(name))->category == WEIR_API_QUERY;
}

/* Look-ups hand out functions or names and record nothing; what only asks is counted. */
static bool records(const char *name)
{
  static const char *const quiet[] = {"cuGetProcAddress",       "cuGetProcAddress_v2",
                                      "__cudaRegisterFunction", "__cudaGetKernel",
                                      "cudaGetKernel",          "cudaGetFuncBySymbol"};
  if (is_question(name)) return false;
  for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++)
    if (strcmp(name, quiet[i]) == 0) return false;
  return strncmp(name, "cudaGetDriverEntryPoint", 23) != 0;
}

/* The fake has some that answer the hooks' own questions, and count nothing. */
static bool counted(const char *name)
{
  static const char *const own[] = {"cuPointerGetAttribute", "cuMemGetInfo_v2",
                                    "cuDeviceGetName",       "cuDeviceTotalMem_v2",
                                    "cudaGetDevice",         "cudaRuntimeGetVersion"};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (strcmp(name, own[i]) == 0) return false;
  return true;
}

/* The thread goes to another device, by a driver call beneath some other call. */
static void on_device(int device, uint64_t context)
{
  thread_self.depth++;
  D(cuCtxSetCurrent)((CUcontext)P(context));
  thread_self.depth--;
  for (int b = 0; b < WEIR_BANKS; b++)
    rig_fake[b]->device = device;
  rig_fake[0]->context = context;
}

/* A device block at `address`, made by the driver's cuMemAlloc. */
static void device_block(uint64_t address, size_t bytes)
{
  CUdeviceptr p = 0;
  rig_fake[0]->give = address;
  ck_assert_int_eq(D(cuMemAlloc_v2)(&p, bytes), CUDA_SUCCESS);
  ck_assert_uint_eq(p, address);
  rig_read();
}

static void pinned_block(uint64_t address, size_t bytes)
{
  void *p = NULL;
  rig_fake[0]->give = address;
  ck_assert_int_eq(D(cuMemHostAlloc)(&p, bytes, 0), CUDA_SUCCESS);
  rig_read();
}

/* ---- the table ------------------------------------------------------------------------------- */

START_TEST(every_row_called_with_nothing_records_one_event_with_its_number_and_status)
{
  for (uint32_t i = 0; i < hook_row_count; i++) {
    const hook_row *row = &hook_rows[i];
    for (int status = 0; status < 2; status++) {
      rig_fake[row->bank]->status = status;
      void *wrapper = rig_wrapper(row->bank, row->name);
      uint64_t calls = rig_fake[row->bank]->calls;
      call_zero(wrapper);
      const rig_log *l = rig_read();
      ck_assert_msg(rig_fake[row->bank]->calls == calls + counted(row->name), "%s: called %d times",
                    row->name, (int)(rig_fake[row->bank]->calls - calls));
      ck_assert_msg(l->events == records(row->name), "%s: %u events", row->name, l->events);
      if (!l->events) continue;
      const trace_event *e = &l->event[0];
      ck_assert_str_eq(api_row(e->api)->name, row->name);
      ck_assert_uint_eq(e->api, row->api);
      ck_assert_msg(e->status == status, "%s", row->name);
      ck_assert_msg(!!(e->flags & WEIR_EVF_RUNTIME) == (row->bank != 0), "%s", row->name);
      bool ptds = strstr(row->name, "_ptds") || strstr(row->name, "_ptsz");
      ck_assert_msg(!!(e->flags & WEIR_EVF_PTDS) == ptds, "%s", row->name);
      ck_assert_uint_eq(rig_covered[row->api], WEIR_COVER_LOOKED_UP | WEIR_COVER_CALLED);
    }
    rig_fake[row->bank]->status = 0;
  }
}
END_TEST

/* And a place's first 64 calls are one event, that of the last of them. */
START_TEST(every_question_is_counted_by_its_place)
{
  enum { CALLS = 64 };
  int questions = 0;
  for (uint32_t i = 0; i < hook_row_count; i++) {
    const hook_row *row = &hook_rows[i];
    if (!is_question(row->name) || (row->bank && row->bank != WEIR_BANK_RT13)) continue;
    void *wrapper = rig_wrapper(row->bank, row->name);
    rig_fake[row->bank]->status = 1;
    for (int n = 1; n <= CALLS; n++) {
      ck_assert_uint_eq(rig_read()->events, 0);
      call_zero(wrapper);
    }
    const trace_event *e = rig_one();
    ck_assert_msg(e->api == row->api && e->kind == WEIR_EV_CALL, "%s", row->name);
    if (counted(row->name)) ck_assert_msg(e->status == 1, "%s", row->name);
    ck_assert_msg(!!(e->flags & WEIR_EVF_RUNTIME) == (row->bank != 0), "%s", row->name);
    rig_fake[row->bank]->status = 0;
    questions++;
  }
  ck_assert_int_gt(questions, 30);
}
END_TEST

/* Told "not ready" one behind the other: one event; anything else between them ends it. */
START_TEST(polls_that_repeat_are_one_event_with_a_count)
{
  enum { POLLS = 1000 };
  cudaError_t (*query)(cudaEvent_t) =
      (cudaError_t(*)(cudaEvent_t))(uintptr_t)rig_wrapper(WEIR_BANK_RT13, "cudaEventQuery");
  cudaEvent_t one = (cudaEvent_t)P(0x111), other = (cudaEvent_t)P(0x222);
  (void)rig_read();
  rig_fake[WEIR_BANK_RT13]->status = 600;
  for (int i = 0; i < POLLS; i++)
    ck_assert_int_eq(query(i < POLLS - 10 ? one : other), 600);
  ck_assert_uint_eq(rig_read()->events, 1); /* the second is held */
  rig_fake[WEIR_BANK_RT13]->status = 0;
  ck_assert_int_eq(query(other), 0);
  rig_log *log = rig_read();
  ck_assert_uint_eq(log->events, 2);
  ck_assert_uint_eq(log->event[0].a, 0x222);
  ck_assert_uint_eq(log->event[0].bytes, 9);
  ck_assert_uint_ge(log->event[0].b, event_duration(&log->event[0]));
  ck_assert_uint_eq(log->event[1].bytes, 0);
  ck_assert_uint_ge(log->event[1].start, log->event[0].start + log->event[0].b);
}
END_TEST

/* `other` ticks of work between two questions, and so many in pauses; the second is answered so. */
static unsigned flags_of_question(uint64_t pauses, uint64_t other, int status)
{
  cudaError_t (*query)(cudaStream_t) =
      (cudaError_t(*)(cudaStream_t))(uintptr_t)rig_wrapper(WEIR_BANK_RT13, "cudaStreamQuery");
  rig_fake[WEIR_BANK_RT13]->status = 600;
  (void)query((cudaStream_t)P(0x111));
  (void)rig_read();
  thread_self.questioned = clock_ticks() - pauses - other;
  thread_self.paused = pauses;
  rig_fake[WEIR_BANK_RT13]->status = (unsigned)status;
  (void)query((cudaStream_t)P(0x111));
  rig_fake[WEIR_BANK_RT13]->status = 0;
  rig_log *log = rig_read();
  return log->events ? log->event[log->events - 1].flags : 0;
}

/* A pause of minutes, so that nothing that the test itself takes counts. */
START_TEST(a_question_after_a_pause_and_nothing_else_has_a_flag)
{
  const uint64_t minutes = UINT64_C(1) << 38;
  ck_assert_uint_ne(flags_of_question(minutes, 0, 0) & WEIR_EVF_PAUSED, 0);
  ck_assert_uint_eq(flags_of_question(0, minutes, 0) & WEIR_EVF_PAUSED, 0);
  ck_assert_uint_eq(flags_of_question(minutes, minutes / 8, 0) & WEIR_EVF_PAUSED, 0);
  ck_assert_uint_eq(flags_of_question(minutes, 0, 600) & WEIR_EVF_PAUSED, 0);
  ck_assert_uint_eq(thread_self.paused, 0);
}
END_TEST

/* What an event's kind must be by the category its line gives it. */
START_TEST(every_row_records_the_kind_of_its_category)
{
  static const uint8_t kind[] = {
      [WEIR_API_ALLOC] = WEIR_EV_ALLOC,     [WEIR_API_FREE] = WEIR_EV_FREE,
      [WEIR_API_COPY] = WEIR_EV_COPY,       [WEIR_API_MEMSET] = WEIR_EV_MEMSET,
      [WEIR_API_SYNC] = WEIR_EV_SYNC,       [WEIR_API_EVENT] = WEIR_EV_EVENT,
      [WEIR_API_HOSTREG] = WEIR_EV_HOSTREG, [WEIR_API_MODULE] = WEIR_EV_CALL,
      [WEIR_API_OTHER] = WEIR_EV_CALL};
  for (uint32_t i = 0; i < hook_row_count; i++) {
    const hook_row *row = &hook_rows[i];
    if (!records(row->name)) continue;
    call_zero(rig_wrapper(row->bank, row->name));
    const trace_event *e = rig_one();
    unsigned c = api_row(row->api)->category;
    ck_assert_uint_eq(api_row(row->api)->how, WEIR_API_WRAPPED);
    if (c < sizeof kind && kind[c])
      ck_assert_msg(e->kind == kind[c], "%s: kind %u", row->name, e->kind);
    if (c == WEIR_API_LAUNCH)
      ck_assert_msg(e->kind == (strstr(row->name, "HostFunc") ? WEIR_EV_CALL : WEIR_EV_LAUNCH),
                    "%s", row->name);
  }
}
END_TEST

START_TEST(a_stream_argument_of_0_is_the_default_stream_of_the_variant)
{
  for (uint32_t i = 0; i < hook_row_count; i++) {
    const hook_row *row = &hook_rows[i];
    unsigned c = api_row(row->api)->category;
    bool streams = c == WEIR_API_COPY || c == WEIR_API_MEMSET ||
                   strncmp(row->name, "cuStreamSynch", 13) == 0 ||
                   strncmp(row->name, "cudaStreamSynch", 15) == 0 ||
                   strncmp(row->name, "cuMemAllocAsync", 15) == 0 ||
                   (c == WEIR_API_LAUNCH && records(row->name)) ||
                   (c == WEIR_API_EVENT && strstr(row->name, "EventRecord"));
    if (!streams) continue;
    call_zero(rig_wrapper(row->bank, row->name));
    const trace_event *e = rig_one();
    uint64_t want = e->flags & WEIR_EVF_PTDS ? WEIR_STREAM_PER_THREAD : WEIR_STREAM_LEGACY;
    ck_assert_msg(e->stream == want, "%s: stream %llu", row->name, (unsigned long long)e->stream);
  }
}
END_TEST

START_TEST(what_nothing_loaded_has_answers_that_the_symbol_was_not_found)
{
  for (int b = 0; b < WEIR_BANKS; b++)
    rig_absent[b] = true;
  for (uint32_t i = 0; i < hook_row_count; i++) {
    if (strcmp(hook_rows[i].name, "__cudaRegisterFunction") == 0) continue;
    ck_assert_msg((uint32_t)call_zero(hook_rows[i].wrapper) ==
                      CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND,
                  "%s", hook_rows[i].name);
  }
  ck_assert_uint_eq(rig_read()->events, 0);
}
END_TEST

START_TEST(a_row_called_through_an_export_finds_its_original)
{
  for (uint32_t i = 0; i < hook_row_count; i++) {
    const hook_row *row = &hook_rows[i];
    uint64_t calls = rig_fake[row->bank]->calls;
    call_zero(row->wrapper);
    ck_assert_msg(rig_fake[row->bank]->calls == calls + counted(row->name), "%s", row->name);
    ck_assert_ptr_eq(atomic_load(row->real), rig_original(row->bank, row->name));
  }
}
END_TEST

static CUresult inner_status;
static void inner(void)
{
  rig_fake[1]->inside = rig_fake[3]->inside = NULL;
  inner_status = D(cuCtxSynchronize)();
}

START_TEST(calls_beneath_a_call_are_part_of_its_event)
{
  void *p;
  rig_fake[3]->inside = inner;
  R(cudaMalloc)(&p, 64);
  ck_assert_str_eq(rig_fake[0]->last, "cuCtxSynchronize");
  ck_assert_str_eq(api_row(rig_one()->api)->name, "cudaMalloc");
  ck_assert_uint_eq(thread_self.depth, 0);
}
END_TEST

START_TEST(without_a_spool_calls_go_through_unrecorded)
{
  CUdeviceptr p = 0;
  atomic_store(&process_recording, false);
  rig_fake[0]->give = DEVICE_A;
  ck_assert_int_eq(D(cuMemAlloc_v2)(&p, 64), CUDA_SUCCESS);
  ck_assert_uint_eq(p, DEVICE_A);
  ck_assert_uint_eq(rig_read()->events, 0);
}
END_TEST

static void set_errno(void)
{
  errno = E2BIG;
}

START_TEST(errno_is_what_the_function_left)
{
  rig_fake[0]->inside = set_errno;
  errno = 0;
  D(cuCtxSynchronize)();
  ck_assert_int_eq(errno, E2BIG);
}
END_TEST

START_TEST(banks_of_one_name_keep_their_originals_apart)
{
  void *p = NULL;
  rig_fake[2]->give = 0x1000000;
  rig_fake[3]->give = 0x2000000;
  R12(cudaMalloc)(&p, 8);
  ck_assert_ptr_eq(p, P(0x1000000));
  R(cudaMalloc)(&p, 8);
  ck_assert_ptr_eq(p, P(0x2000000));
  ck_assert_ptr_ne(rig_wrapper(WEIR_BANK_RT12, "cudaMalloc"),
                   rig_wrapper(WEIR_BANK_RT13, "cudaMalloc"));
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

START_TEST(allocations_say_where_how_much_and_what)
{
  void *p = NULL;
  size_t pitch = 0;
  rig_fake[3]->give = DEVICE_A;
  rig_fake[3]->pitch = 512;
  R(cudaMalloc)(&p, 1000);
  const trace_event *e = rig_one();
  ck_assert_uint_eq(e->a, DEVICE_A);
  ck_assert_uint_eq(e->bytes, 1000);
  ck_assert_uint_eq(e->mem, WEIR_MEM_DEVICE);
  ck_assert_uint_eq(e->device, 0);
  ck_assert_uint_eq(e->flags, WEIR_EVF_RUNTIME);
  R(cudaMallocPitch)(&p, &pitch, 100, 7);
  e = rig_one();
  ck_assert_uint_eq(e->bytes, 512 * 7);
  ck_assert_uint_eq(e->b, 512);
  struct cudaPitchedPtr pp;
  R(cudaMalloc3D)(&pp, (struct cudaExtent){100, 7, 3});
  e = rig_one();
  ck_assert_uint_eq(e->bytes, 512 * 7 * 3);
  ck_assert_uint_eq(e->a, DEVICE_A);
  R(cudaMallocManaged)(&p, 64, cudaMemAttachGlobal);
  ck_assert_uint_eq(rig_one()->mem, WEIR_MEM_MANAGED);
  R(cudaMallocHost)(&p, 64);
  e = rig_one();
  ck_assert_uint_eq(e->mem, WEIR_MEM_PINNED);
  ck_assert_uint_eq(e->device, WEIR_DEVICE_NONE);
  ck_assert_uint_eq(e->flags, WEIR_EVF_RUNTIME | WEIR_EVF_IMPLICIT_SYNC);
  R(cudaMallocAsync)(&p, 64, (cudaStream_t)0x55);
  e = rig_one();
  ck_assert_uint_eq(e->stream, 0x55);
  ck_assert_uint_eq(e->flags, WEIR_EVF_RUNTIME | WEIR_EVF_ASYNC);
}
END_TEST

START_TEST(a_failed_allocation_has_no_address)
{
  CUdeviceptr p;
  rig_fake[0]->status = CUDA_ERROR_OUT_OF_MEMORY;
  ck_assert_int_eq(D(cuMemAlloc_v2)(&p, 77), CUDA_ERROR_OUT_OF_MEMORY);
  const trace_event *e = rig_one();
  ck_assert_uint_eq(e->a, 0);
  ck_assert_uint_eq(e->bytes, 77);
  ck_assert_uint_eq(e->status, CUDA_ERROR_OUT_OF_MEMORY);
  ck_assert_uint_eq(pointer_tag(0xdeaddeaddead), 0);
}
END_TEST

START_TEST(a_free_knows_its_block_and_waits_unless_it_is_from_a_pool)
{
  void *p;
  device_block(DEVICE_A, 4096);
  D(cuMemFree_v2)(DEVICE_A);
  const trace_event *e = rig_one();
  ck_assert_uint_eq(e->mem, WEIR_MEM_DEVICE);
  ck_assert_uint_eq(e->bytes, 4096);
  ck_assert_uint_eq(e->flags, WEIR_EVF_IMPLICIT_SYNC);
  ck_assert_uint_eq(pointer_tag(DEVICE_A), 0);
  rig_fake[3]->give = DEVICE_A;
  R(cudaMallocAsync)(&p, 4096, NULL);
  rig_read();
  R(cudaFree)(p);
  ck_assert_uint_eq(rig_one()->flags, WEIR_EVF_RUNTIME);
  R(cudaFree)(NULL);
  e = rig_one();
  ck_assert_uint_eq(e->flags, WEIR_EVF_RUNTIME);
  ck_assert_uint_eq(e->mem, WEIR_MEM_UNKNOWN);
  pinned_block(0x10000, 100);
  D(cuMemFreeHost)(P(0x10000));
  e = rig_one();
  ck_assert_uint_eq(e->mem, WEIR_MEM_PINNED);
  ck_assert_uint_eq(e->device, WEIR_DEVICE_NONE);
}
END_TEST

static block_tag tag_inside;
static void look_inside(void)
{
  tag_inside = pointer_tag(DEVICE_A);
}

START_TEST(a_block_is_out_before_its_free_is_forwarded_and_back_when_that_fails)
{
  device_block(DEVICE_A, 4096);
  rig_fake[0]->inside = look_inside;
  rig_fake[0]->status = 1;
  D(cuMemFree_v2)(DEVICE_A);
  ck_assert_uint_eq(tag_inside, 0);
  ck_assert_uint_eq(block_tag_mem(pointer_tag(DEVICE_A + 4095)), WEIR_MEM_DEVICE);
  ck_assert_uint_eq(rig_one()->flags, 0);
}
END_TEST

/* Physical memory under `handle`, at `place`, made by cuMemCreate. */
static const trace_event *physical_memory_at(uint64_t handle, CUmemLocationType type, int id)
{
  CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {type, id}};
  CUmemGenericAllocationHandle h = 0;
  rig_fake[0]->give = handle;
  ck_assert_int_eq(D(cuMemCreate)(&h, 2 << 20, &prop, 0), CUDA_SUCCESS);
  return rig_one();
}

/* The call has freed the memory under `handle`: as the event itself, or as a further item. */
static void one_freed(uint64_t handle, unsigned mem)
{
  const rig_log *l = rig_read();
  ck_assert_uint_ge(l->events, 1);
  ck_assert_uint_le(l->events, 2);
  const trace_event *e = &l->event[l->events - 1];
  ck_assert_uint_eq(e->kind, WEIR_EV_FREE);
  ck_assert_uint_eq(!!(e->flags & WEIR_EVF_BATCH), l->events == 2);
  ck_assert_uint_eq(e->a, handle);
  ck_assert_uint_eq(e->bytes, 2 << 20);
  ck_assert_uint_eq(e->mem, mem);
}

START_TEST(physical_memory_lives_until_its_last_handle_and_its_last_mapping)
{
  const trace_event *e = physical_memory_at(0x77, CU_MEM_LOCATION_TYPE_DEVICE, 1);
  ck_assert_uint_eq(e->kind, WEIR_EV_ALLOC);
  ck_assert_uint_eq(e->a, 0x77);
  ck_assert_uint_eq(e->bytes, 2 << 20);
  ck_assert_uint_eq(e->mem, WEIR_MEM_PHYSICAL);
  ck_assert_uint_eq(e->device, 1);
  D(cuMemMap)(DEVICE_A, 2 << 20, 0, 0x77, 0);
  ck_assert_uint_eq(rig_one()->kind, WEIR_EV_CALL);
  D(cuMemMap)(DEVICE_B, 2 << 20, 0, 0x77, 0);
  ck_assert_uint_eq(rig_one()->kind, WEIR_EV_CALL);
  ck_assert_uint_eq(pointer_tag(DEVICE_B + 5000), block_tag_make(WEIR_MEM_DEVICE, 1, 0));
  D(cuMemRelease)(0x77);
  ck_assert_uint_eq(rig_one()->kind, WEIR_EV_CALL); /* it is still mapped */
  D(cuMemUnmap)(DEVICE_A, 2 << 20);
  ck_assert_uint_eq(rig_one()->kind, WEIR_EV_CALL);
  ck_assert_uint_eq(pointer_tag(DEVICE_A), 0);
  CUmemGenericAllocationHandle h = 0;
  rig_fake[0]->give = 0x78;
  D(cuMemRetainAllocationHandle)(&h, P(DEVICE_B + 12345));
  ck_assert_uint_eq(rig_one()->kind, WEIR_EV_CALL);
  D(cuMemUnmap)(DEVICE_B, 2 << 20);
  ck_assert_uint_eq(rig_one()->kind, WEIR_EV_CALL);
  D(cuMemRelease)(0x78);
  one_freed(0x77, WEIR_MEM_PHYSICAL);
  D(cuMemRelease)(0x78);
  ck_assert_uint_eq(rig_one()->kind, WEIR_EV_CALL); /* nothing is known under it any more */
}
END_TEST

START_TEST(a_handle_that_comes_back_is_other_memory_than_what_is_still_mapped)
{
  physical_memory_at(0x77, CU_MEM_LOCATION_TYPE_DEVICE, 0);
  D(cuMemMap)(DEVICE_A, 2 << 20, 0, 0x77, 0);
  D(cuMemRelease)(0x77);
  rig_read();
  physical_memory_at(0x77, CU_MEM_LOCATION_TYPE_DEVICE, 0);
  D(cuMemUnmap)(DEVICE_A, 2 << 20);
  one_freed(0x77, WEIR_MEM_PHYSICAL);
  D(cuMemRelease)(0x77);
  one_freed(0x77, WEIR_MEM_PHYSICAL);
}
END_TEST

START_TEST(a_release_or_an_unmapping_that_fails_changes_nothing)
{
  physical_memory_at(0x77, CU_MEM_LOCATION_TYPE_DEVICE, 0);
  D(cuMemMap)(DEVICE_A, 2 << 20, 0, 0x77, 0);
  rig_fake[0]->status = CUDA_ERROR_INVALID_VALUE;
  D(cuMemRelease)(0x77);
  D(cuMemUnmap)(DEVICE_A, 2 << 20);
  rig_fake[0]->status = CUDA_SUCCESS;
  ck_assert_uint_eq(pointer_tag(DEVICE_A), block_tag_make(WEIR_MEM_DEVICE, 0, 0));
  D(cuMemRelease)(0x77);
  rig_read();
  D(cuMemUnmap)(DEVICE_A, 2 << 20);
  one_freed(0x77, WEIR_MEM_PHYSICAL);
}
END_TEST

START_TEST(physical_memory_of_the_host_is_pinned_and_what_is_imported_tells_its_size_when_mapped)
{
  const trace_event *e = physical_memory_at(0x77, CU_MEM_LOCATION_TYPE_HOST_NUMA, 0);
  ck_assert_uint_eq(e->mem, WEIR_MEM_PINNED);
  ck_assert_uint_eq(e->device, WEIR_DEVICE_NONE);
  D(cuMemRelease)(0x77);
  one_freed(0x77, WEIR_MEM_PINNED);
  CUmemGenericAllocationHandle h = 0;
  rig_fake[0]->give = 0x99;
  D(cuMemImportFromShareableHandle)(&h, P(3), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  ck_assert_uint_eq(rig_one()->kind, WEIR_EV_CALL);
  D(cuMemMap)(DEVICE_A, 2 << 20, 0, 0x99, 0);
  e = rig_one();
  ck_assert_uint_eq(e->kind, WEIR_EV_ALLOC);
  ck_assert_uint_eq(e->a, 0x99);
  ck_assert_uint_eq(e->bytes, 2 << 20);
  ck_assert_uint_eq(e->mem, WEIR_MEM_IMPORTED);
  D(cuMemMap)(DEVICE_B, 2 << 20, 0, 0x99, 0);
  ck_assert_uint_eq(rig_one()->kind, WEIR_EV_CALL); /* it counts once */
  D(cuMemRelease)(0x99);
  rig_read();
  D(cuMemUnmap)(DEVICE_B, 2 << 20);
  rig_read();
  D(cuMemUnmap)(DEVICE_A, 2 << 20);
  one_freed(0x99, WEIR_MEM_IMPORTED);
}
END_TEST

static void hands_over(const char *name, uint64_t address)
{
  const trace_event *e = rig_one();
  ck_assert_uint_eq(e->kind, WEIR_EV_CALL);
  ck_assert_str_eq(api_row(e->api)->name, name);
  ck_assert_uint_eq(e->a, address);
}

/* What another process or device may use from then on. Other questions about an address are
 * none. */
START_TEST(a_call_that_hands_memory_over_is_an_event)
{
  CUpointer_attribute asked[2] = {CU_POINTER_ATTRIBUTE_BUFFER_ID, CU_POINTER_ATTRIBUTE_P2P_TOKENS};
  uint64_t answer[2] = {0, 0};
  void *data[2] = {&answer[0], &answer[1]};
  CUipcMemHandle handle;
  unsigned on = 1;
  device_block(DEVICE_A, 4096);
  D(cuIpcGetMemHandle)(&handle, DEVICE_A);
  hands_over("cuIpcGetMemHandle", DEVICE_A);
  D(cuMemGetHandleForAddressRange)(&on, DEVICE_A, 512, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
  ck_assert_uint_eq(rig_one()->bytes, 512);
  D(cuPointerSetAttribute)(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, DEVICE_A + 8);
  hands_over("cuPointerSetAttribute", DEVICE_A + 8);
  D(cuPointerGetAttribute)(answer, CU_POINTER_ATTRIBUTE_P2P_TOKENS, DEVICE_A);
  hands_over("cuPointerGetAttribute", DEVICE_A);
  D(cuPointerGetAttributes)(2, asked, data, DEVICE_A);
  hands_over("cuPointerGetAttributes", DEVICE_A);
  D(cuPointerGetAttribute)(answer, CU_POINTER_ATTRIBUTE_BUFFER_ID, DEVICE_A);
  D(cuPointerGetAttributes)(1, asked, data, DEVICE_A);
  ck_assert_uint_eq(rig_read()->events, 0);
}
END_TEST

START_TEST(many_mappings_go_with_one_call_and_outlive_a_reset)
{
  enum { MANY = 1000 };
  for (uint64_t i = 0; i < MANY; i++) { /* not in order of address */
    physical_memory_at(0x1000 + i, CU_MEM_LOCATION_TYPE_DEVICE, 0);
    D(cuMemMap)(DEVICE_A + (i * 7 % MANY << 21), 2 << 20, 0, 0x1000 + i, 0);
    D(cuMemRelease)(0x1000 + i);
    rig_read();
  }
  D(cuDevicePrimaryCtxReset_v2)(0);
  rig_read();
  ck_assert_uint_eq(block_tag_mem(pointer_tag(DEVICE_A + 77)), WEIR_MEM_DEVICE);
  D(cuMemUnmap)(DEVICE_A, (uint64_t)MANY << 21);
  const rig_log *l = rig_read();
  ck_assert_uint_eq(l->events, 1 + MANY);
  ck_assert_uint_eq(l->event[0].kind, WEIR_EV_CALL);
  for (unsigned i = 1; i < l->events; i++) {
    ck_assert_uint_eq(l->event[i].kind, WEIR_EV_FREE);
    ck_assert(l->event[i].flags & WEIR_EVF_BATCH);
  }
  ck_assert_uint_eq(pointer_tag(DEVICE_A + 77), 0);
}
END_TEST

/* `e` is of imported memory. */
static void one_imported(const trace_event *e, unsigned kind, uint64_t at, size_t bytes)
{
  ck_assert_uint_eq(e->kind, kind);
  ck_assert_uint_eq(e->a, at);
  ck_assert_uint_eq(e->bytes, bytes);
  ck_assert_uint_eq(e->mem, WEIR_MEM_IMPORTED);
}

START_TEST(memory_of_another_process_counts_from_the_first_open_to_the_last_close)
{
  CUdeviceptr p = 0;
  void *q = NULL;
  CUipcMemHandle h = {{0}};
  cudaIpcMemHandle_t r = {{0}};
  rig_fake[0]->give = rig_fake[3]->give = DEVICE_A;
  rig_fake[0]->range = 12345;
  D(cuIpcOpenMemHandle_v2)(&p, h, 1);
  one_imported(rig_one(), WEIR_EV_ALLOC, DEVICE_A, 12345);
  ck_assert_uint_eq(block_tag_mem(pointer_tag(DEVICE_A + 12344)), WEIR_MEM_DEVICE);
  R(cudaIpcOpenMemHandle)(&q, r, 1);
  ck_assert_uint_eq(rig_one()->kind, WEIR_EV_CALL);
  rig_fake[0]->status = CUDA_ERROR_INVALID_VALUE;
  D(cuIpcCloseMemHandle)(DEVICE_A);
  ck_assert_uint_eq(rig_one()->kind, WEIR_EV_CALL);
  rig_fake[0]->status = CUDA_SUCCESS;
  D(cuIpcCloseMemHandle)(DEVICE_A);
  ck_assert_uint_eq(rig_one()->kind, WEIR_EV_CALL);
  rig_fake[0]->status = CUDA_ERROR_INVALID_VALUE;
  D(cuIpcCloseMemHandle)(DEVICE_A);
  ck_assert_uint_eq(rig_one()->kind, WEIR_EV_FREE);
  ck_assert_uint_eq(block_tag_mem(pointer_tag(DEVICE_A)), WEIR_MEM_DEVICE);
  rig_fake[0]->status = CUDA_SUCCESS;
  R(cudaIpcCloseMemHandle)(q);
  one_imported(rig_one(), WEIR_EV_FREE, DEVICE_A, 12345);
  ck_assert_uint_eq(pointer_tag(DEVICE_A), 0);
}
END_TEST

START_TEST(external_memory_and_a_shared_pools_is_imported_until_it_is_freed)
{
  CUdeviceptr p = 0;
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC desc = {.size = 777};
  CUmemPoolPtrExportData data = {{0}};
  rig_fake[0]->give = DEVICE_A;
  D(cuExternalMemoryGetMappedBuffer)(&p, (CUexternalMemory)P(7), &desc);
  one_imported(rig_one(), WEIR_EV_ALLOC, DEVICE_A, 777);
  D(cuMemFree_v2)(DEVICE_A);
  ck_assert_uint_eq(rig_one()->kind, WEIR_EV_FREE);
  rig_fake[0]->range = 512;
  D(cuMemPoolImportPointer)(&p, (CUmemoryPool)P(9), &data);
  one_imported(rig_one(), WEIR_EV_ALLOC, DEVICE_A, 512);
  D(cuMemFreeAsync)(DEVICE_A, NULL);
  ck_assert_uint_eq(rig_one()->flags, WEIR_EVF_ASYNC);
  ck_assert_uint_eq(pointer_tag(DEVICE_A), 0);
}
END_TEST

START_TEST(mipmaps_of_external_memory_are_imported_until_they_are_destroyed)
{
  CUmipmappedArray levels = NULL;
  CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC desc = {
      .arrayDesc = {8, 4, 0, CU_AD_FORMAT_FLOAT, 2, 0}, .numLevels = 2};
  rig_fake[0]->give = 0xa44a2;
  D(cuExternalMemoryGetMappedMipmappedArray)(&levels, (CUexternalMemory)P(7), &desc);
  one_imported(rig_one(), WEIR_EV_ALLOC, 0xa44a2, 8 * (8 * 4 + 4 * 2));
  D(cuMipmappedArrayDestroy)((CUmipmappedArray)P(0xa44a2));
  ck_assert_uint_eq(rig_one()->kind, WEIR_EV_FREE);
  ck_assert_uint_eq(pointer_tag(0xa44a2), 0);
}
END_TEST

/* An object for many devices, and arrays that are mapped piece by piece: the memory in them is that
 * which cuMemCreate made. */
START_TEST(multicast_objects_and_sparse_arrays_have_no_bytes_of_their_own)
{
  CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmulticastObjectProp many = {.numDevices = 2, .size = 1 << 20};
  CUmemGenericAllocationHandle memory = 0, object = 0;
  CUDA_ARRAY3D_DESCRIPTOR sparse = {8, 8, 2, CU_AD_FORMAT_UNORM_INT16X4, 4, CUDA_ARRAY3D_SPARSE};
  CUarrayMapInfo piece = {.memOperationType = CU_MEM_OPERATION_TYPE_MAP};
  CUarray array = NULL;
  uint64_t live = 0;
  rig_fake[0]->give = 0x77;
  D(cuMemCreate)(&memory, 1 << 20, &prop, 0);
  rig_fake[0]->give = 0x78;
  D(cuMulticastCreate)(&object, &many);
  D(cuMulticastAddDevice)(0x78, 0);
  D(cuMulticastBindMem)(0x78, 0, 0x77, 0, 1 << 20, 0);
  D(cuMemMap)(DEVICE_A, 1 << 20, 0, 0x78, 0);
  rig_fake[0]->give = 0xa44a3;
  D(cuArray3DCreate_v2)(&array, &sparse);
  sparse.Flags = CUDA_ARRAY3D_DEFERRED_MAPPING;
  rig_fake[0]->give = 0xa44a4;
  D(cuArray3DCreate_v2)(&array, &sparse);
  D(cuMemMapArrayAsync)(&piece, 1, NULL);
  const rig_log *l = rig_read();
  for (unsigned i = 0; i < l->events; i++)
    if (l->event[i].kind == WEIR_EV_ALLOC) live += l->event[i].bytes;
  ck_assert_uint_eq(live, 1 << 20);
  D(cuMemUnmap)(DEVICE_A, 1 << 20);
  D(cuMulticastUnbind)(0x78, 0, 0, 1 << 20);
  D(cuMemRelease)(0x78);
  ck_assert_uint_eq(rig_read()->events, 3);
  D(cuMemRelease)(0x77);
  ck_assert_uint_eq(rig_one()->kind, WEIR_EV_FREE);
}
END_TEST

/* The one fact on a device's memory among what was recorded, of `free` bytes; 0: there is none. */
static void one_sample(size_t free_bytes)
{
  const rig_log *l = rig_read();
  unsigned found = 0;
  for (unsigned i = 0; i < l->events; i++) {
    if (l->event[i].kind != WEIR_EV_CACHE) continue;
    found++;
    ck_assert_uint_eq(l->event[i].cache_fact, WEIR_CACHE_DEVICE);
    ck_assert_uint_eq(l->event[i].b, free_bytes);
    ck_assert_uint_eq(l->event[i].bytes, 1 << 20);
    ck_assert_uint_eq(l->event[i].device, 0);
  }
  ck_assert_uint_eq(found, free_bytes ? 1 : 0);
}

START_TEST(the_driver_is_asked_what_is_in_use_at_waits_where_memory_is_short_and_in_no_capture)
{
  CUdeviceptr p = 0;
  rig_fake[0]->total = 1 << 20;
  rig_fake[0]->free = 1000;
  D(cuCtxSynchronize)(); /* its first wait */
  one_sample(1000);
  D(cuCtxSynchronize)(); /* second, but nothing is new */
  one_sample(0);
  rig_fake[0]->free = 900;
  D(cuStreamSynchronize)(NULL); /* third */
  D(cuEventSynchronize)(NULL);  /* fourth */
  one_sample(900);
  rig_fake[0]->free = 800;
  D(cuMemAlloc_v2)(&p, 64);
  D(cuMemFree_v2)(p);
  one_sample(0);
  rig_fake[0]->status = CUDA_ERROR_OUT_OF_MEMORY;
  D(cuMemAlloc_v2)(&p, 64);
  rig_fake[0]->status = CUDA_SUCCESS;
  one_sample(800);
  rig_fake[0]->free = 700;
  D(cuStreamBeginCapture_v2)((CUstream)P(9), CU_STREAM_CAPTURE_MODE_GLOBAL);
  for (int i = 0; i < 4; i++) /* to the eighth */
    D(cuStreamSynchronize)(NULL);
  one_sample(0);
}
END_TEST

static void take_100(void)
{
  rig_fake[0]->free -= 100;
}

/* The fact of that kind among what was recorded since; NULL: none. */
static const trace_event *cache_fact_read(cache_fact fact)
{
  const rig_log *l = rig_read();
  for (unsigned i = 0; i < l->events; i++)
    if (l->event[i].kind == WEIR_EV_CACHE && l->event[i].cache_fact == fact) return &l->event[i];
  return NULL;
}

static void expect_taken(taken_by what, uint64_t handle, int64_t bytes)
{
  const trace_event *e = cache_fact_read(WEIR_CACHE_TAKEN);
  ck_assert_ptr_nonnull(e);
  ck_assert_uint_eq(e->a, handle);
  ck_assert_uint_eq(e->b, what);
  ck_assert_int_eq((int64_t)e->bytes, bytes);
  ck_assert_uint_eq(e->device, 0);
  ck_assert_uint_eq(e->mem, what == WEIR_TAKEN_CODE ? WEIR_MEM_CODE : WEIR_MEM_CONTEXT);
}

static void begin_with_free_memory(void)
{
  rig_fake[0]->total = 1 << 20;
  rig_fake[0]->free = 100000;
  D(cuCtxSynchronize)();
  (void)rig_read();
}

START_TEST(what_loading_code_and_making_contexts_takes_of_the_device_is_recorded)
{
  CUmodule m = NULL;
  CUlibrary l = NULL;
  CUcontext x = NULL;
  CUdeviceptr p = 0;
  size_t bytes = 0;
  begin_with_free_memory();
  rig_fake[0]->give = 0x77;
  rig_fake[0]->inside = take_100;
  D(cuModuleLoadData)(&m, "image");
  expect_taken(WEIR_TAKEN_CODE, 0x77, 100);
  D(cuLibraryLoadFromFile)(&l, "file", NULL, NULL, 0, NULL, NULL, 0);
  expect_taken(WEIR_TAKEN_CODE, 0x77, 100);
  D(cuModuleGetGlobal_v2)(&p, &bytes, (CUmodule)P(9), "variable");
  expect_taken(WEIR_TAKEN_CODE, 9, 100);
  D(cuCtxCreate_v2)(&x, 0, 0);
  expect_taken(WEIR_TAKEN_CONTEXT, 0x77, 100);
  D(cuCtxCreate_v2)(&x, 0, 1); /* of another device than was asked about */
  ck_assert_ptr_null(cache_fact_read(WEIR_CACHE_TAKEN));
  rig_fake[0]->status = 1;
  D(cuModuleLoadData)(&m, "image");
  ck_assert_ptr_null(cache_fact_read(WEIR_CACHE_TAKEN));
  rig_fake[0]->status = 0;
  D(cuModuleUnload)((CUmodule)P(9));
  expect_taken(WEIR_TAKEN_CODE, 9, 100);
}
END_TEST

START_TEST(code_is_measured_in_no_capture_and_no_more_after_16_in_vain)
{
  CUmodule m = NULL;
  begin_with_free_memory();
  rig_fake[0]->inside = take_100;
  D(cuStreamBeginCapture_v2)((CUstream)P(9), CU_STREAM_CAPTURE_MODE_GLOBAL);
  D(cuModuleLoadData)(&m, "image");
  ck_assert_ptr_null(cache_fact_read(WEIR_CACHE_TAKEN));
  D(cuStreamEndCapture)((CUstream)P(9), NULL);
  D(cuModuleLoadData)(&m, "image");
  ck_assert_ptr_nonnull(cache_fact_read(WEIR_CACHE_TAKEN));
  rig_fake[0]->inside = NULL;
  for (int i = 0; i < 15; i++)
    D(cuModuleLoadData)(&m, "image");
  rig_fake[0]->inside = take_100;
  D(cuModuleLoadData)(&m, "image");
  ck_assert_ptr_nonnull(cache_fact_read(WEIR_CACHE_TAKEN));
  rig_fake[0]->inside = NULL;
  for (int i = 0; i < 16; i++)
    D(cuModuleLoadData)(&m, "image");
  rig_fake[0]->inside = take_100;
  D(cuModuleLoadData)(&m, "image");
  ck_assert_ptr_null(cache_fact_read(WEIR_CACHE_TAKEN));
}
END_TEST

/* As arrays that malloc puts next to each other. */
START_TEST(memory_that_shares_a_page_with_registered_memory_is_pageable)
{
  char *host = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  device_block(DEVICE_A, 8192);
  D(cuMemHostRegister_v2)(host + 16, 6000, 1);
  rig_one();
  D(cuMemcpyHtoD_v2)(DEVICE_A, host + 6015, 1);
  ck_assert_uint_eq(rig_one()->mem, WEIR_MEM_DEVICE | WEIR_MEM_PINNED << 4);
  D(cuMemcpyHtoD_v2)(DEVICE_A, host + 6016, 100);
  ck_assert_uint_eq(rig_one()->mem, WEIR_MEM_DEVICE | WEIR_MEM_PAGEABLE << 4);
  D(cuMemcpyHtoD_v2)(DEVICE_A, host, 16);
  ck_assert_uint_eq(rig_one()->mem, WEIR_MEM_DEVICE | WEIR_MEM_PAGEABLE << 4);
  D(cuMemHostUnregister)(host + 16);
  rig_one();
  munmap(host, 8192);
}
END_TEST

START_TEST(registered_host_memory_is_pinned_until_it_is_unregistered)
{
  char *host = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  device_block(DEVICE_A, 8192);
  D(cuMemHostRegister_v2)(host, 8192, 1);
  const trace_event *e = rig_one();
  ck_assert_uint_eq(e->kind, WEIR_EV_HOSTREG);
  ck_assert_uint_eq(e->bytes, 8192);
  D(cuMemcpyHtoD_v2)(DEVICE_A, host + 8191, 1);
  ck_assert_uint_eq(rig_one()->mem, WEIR_MEM_DEVICE | WEIR_MEM_PINNED << 4);
  D(cuMemHostUnregister)(host);
  ck_assert_uint_eq(rig_one()->bytes, 0);
  D(cuMemcpyHtoD_v2)(DEVICE_A, host + 8191, 1);
  ck_assert_uint_eq(rig_one()->mem, WEIR_MEM_DEVICE | WEIR_MEM_PAGEABLE << 4);
  munmap(host, 8192);
}
END_TEST

START_TEST(arrays_are_counted_in_elements)
{
  cudaArray_t a;
  struct cudaChannelFormatDesc d = {32, 32, 0, 0, cudaChannelFormatKindFloat};
  rig_fake[3]->give = 0xa44a1;
  R(cudaMallocArray)(&a, &d, 16, 4, 0);
  const trace_event *e = rig_one();
  ck_assert_uint_eq(e->bytes, 8 * 16 * 4);
  ck_assert_uint_eq(e->mem, WEIR_MEM_ARRAY);
  struct cudaMemcpy3DParms p = {.dstArray = a,
                                .srcPtr = {P(0x1000), 128, 16, 4},
                                .extent = {16, 4, 1},
                                .kind = cudaMemcpyHostToDevice};
  R(cudaMemcpy3D)(&p);
  e = rig_one();
  ck_assert_uint_eq(e->bytes, 8 * 16 * 4);
  ck_assert_uint_eq(e->copy_kind, WEIR_COPY_HTOD);
  ck_assert_uint_eq(e->mem, WEIR_MEM_ARRAY | WEIR_MEM_PAGEABLE << 4);
  p.dstArray = (cudaArray_t)P(0xbeef0); /* made by a way unseen: the driver says four floats */
  R(cudaMemcpy3D)(&p);
  ck_assert_uint_eq(rig_one()->bytes, 16 * 16 * 4);
  CUDA_ARRAY3D_DESCRIPTOR d3 = {8, 8, 2, CU_AD_FORMAT_UNORM_INT16X4, 4, 0};
  CUarray ca;
  D(cuArray3DCreate_v2)(&ca, &d3);
  ck_assert_uint_eq(rig_one()->bytes, 8 * 8 * 8 * 2);
  R(cudaFreeArray)(a);
  ck_assert_uint_eq(rig_one()->mem, WEIR_MEM_ARRAY);
}
END_TEST

/* ---- copies ---------------------------------------------------------------------------------- */

START_TEST(explicit_kinds_are_believed)
{
  static const uint8_t want[] = {WEIR_COPY_HTOH, WEIR_COPY_HTOD, WEIR_COPY_DTOH, WEIR_COPY_DTOD};
  for (int kind = 0; kind < 4; kind++) {
    R(cudaMemcpy)(P(0x1000), P(0x2000), 10, (enum cudaMemcpyKind)kind);
    const trace_event *e = rig_one();
    ck_assert_uint_eq(e->copy_kind, want[kind]);
    ck_assert_uint_eq(e->bytes, 10);
    ck_assert_uint_eq(e->a, 0x1000);
    ck_assert_uint_eq(e->b, 0x2000);
    ck_assert_uint_eq(e->stream, WEIR_STREAM_LEGACY);
    ck_assert_uint_eq(e->device, kind == 1 || kind == 3 ? 0 : WEIR_DEVICE_NONE);
    ck_assert_uint_eq(e->src_device, kind >= 2 ? 0 : WEIR_DEVICE_NONE);
    ck_assert_uint_eq(!!(e->flags & WEIR_EVF_IMPLICIT_SYNC), kind != 3);
  }
}
END_TEST

START_TEST(default_copies_go_by_what_the_pointers_point_to)
{
  static char page[64];
  device_block(DEVICE_A, 1 << 20);
  pinned_block(0x40000, 4096);
  const struct {
    uint64_t dst, src;
    uint8_t copy, mem;
  } t[] = {
      {DEVICE_A + 5, (uint64_t)page, WEIR_COPY_HTOD, WEIR_MEM_DEVICE | WEIR_MEM_PAGEABLE << 4},
      {(uint64_t)page, DEVICE_A + 5, WEIR_COPY_DTOH, WEIR_MEM_PAGEABLE | WEIR_MEM_DEVICE << 4},
      {0x40010, DEVICE_A, WEIR_COPY_DTOH, WEIR_MEM_PINNED | WEIR_MEM_DEVICE << 4},
      {DEVICE_A, DEVICE_A + 64, WEIR_COPY_DTOD, WEIR_MEM_DEVICE | WEIR_MEM_DEVICE << 4},
      {0x40010, (uint64_t)page, WEIR_COPY_HTOH, WEIR_MEM_PINNED | WEIR_MEM_PAGEABLE << 4},
  };
  for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
    for (int way = 0; way < 3; way++) {
      if (way == 0) R(cudaMemcpy)(P(t[i].dst), P(t[i].src), 8, cudaMemcpyDefault);
      if (way == 1) D(cuMemcpy)(t[i].dst, t[i].src, 8);
      CUDA_MEMCPY2D m = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                         .srcDevice = t[i].src,
                         .WidthInBytes = 8,
                         .Height = 1,
                         .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                         .dstDevice = t[i].dst};
      if (way == 2) D(cuMemcpy2D_v2)(&m);
      const trace_event *e = rig_one();
      ck_assert_uint_eq(e->copy_kind, t[i].copy);
      ck_assert_uint_eq(e->mem, t[i].mem);
      ck_assert_uint_eq(e->bytes, 8);
    }
  }
}
END_TEST

START_TEST(the_driver_is_asked_about_memory_that_came_by_an_unknown_way)
{
  fake_state *f = rig_fake[0];
  f->ask_low = 0x7e0000000000, f->ask_high = 0x7e0000001000;
  f->ask_type = CU_MEMORYTYPE_DEVICE, f->ask_device = 1;
  D(cuMemcpy)(0x7e0000000010, 0x1000, 8);
  const trace_event *e = rig_one();
  ck_assert_uint_eq(e->copy_kind, WEIR_COPY_HTOD);
  ck_assert_uint_eq(e->device, 1);
  f->ask_type = CU_MEMORYTYPE_HOST;
  D(cuMemcpy)(0x7e0000000010, 0x1000, 8);
  e = rig_one();
  ck_assert_uint_eq(e->copy_kind, WEIR_COPY_HTOH);
  ck_assert_uint_eq(e->mem, WEIR_MEM_PINNED | WEIR_MEM_PAGEABLE << 4);
  f->ask_managed = 1;
  D(cuMemcpy)(0x7e0000000010, 0x1000, 8);
  e = rig_one();
  ck_assert_uint_eq(e->copy_kind, WEIR_COPY_HTOD);
  ck_assert_uint_eq(e->mem & 15, WEIR_MEM_MANAGED);
}
END_TEST

START_TEST(copies_between_two_devices_are_peer_copies)
{
  device_block(DEVICE_A, 4096);
  on_device(1, CTX_B);
  device_block(DEVICE_B, 4096);
  R(cudaMemcpy)(P(DEVICE_A), P(DEVICE_B), 100, cudaMemcpyDeviceToDevice);
  const trace_event *e = rig_one();
  ck_assert_uint_eq(e->copy_kind, WEIR_COPY_PTOP);
  ck_assert_uint_eq(e->device, 0);
  ck_assert_uint_eq(e->src_device, 1);
  ck_assert_uint_eq(e->flags & WEIR_EVF_IMPLICIT_SYNC, 0);
  R(cudaMemcpyPeer)(P(DEVICE_B), 1, P(DEVICE_A), 0, 100);
  ck_assert_uint_eq(rig_one()->copy_kind, WEIR_COPY_PTOP);
  R(cudaMemcpyPeer)(P(DEVICE_B), 1, P(DEVICE_B + 512), 1, 100);
  ck_assert_uint_eq(rig_one()->copy_kind, WEIR_COPY_DTOD);
  D(cuMemcpyPeerAsync)(0x500, (CUcontext)P(0xc0ffee00), 0x600, (CUcontext)P(CTX_B), 3, NULL);
  e = rig_one();
  ck_assert_uint_eq(e->copy_kind, WEIR_COPY_PTOP);
  ck_assert_uint_eq(e->device, 0);
  ck_assert_uint_eq(e->src_device, 1);
  struct cudaMemcpy3DPeerParms p = {.srcPtr = {P(DEVICE_A), 64, 64, 4},
                                    .srcDevice = 0,
                                    .dstPtr = {P(DEVICE_B), 64, 64, 4},
                                    .dstDevice = 1,
                                    .extent = {32, 4, 2}};
  R(cudaMemcpy3DPeer)(&p);
  e = rig_one();
  ck_assert_uint_eq(e->copy_kind, WEIR_COPY_PTOP);
  ck_assert_uint_eq(e->bytes, 32 * 4 * 2);
}
END_TEST

START_TEST(bytes_of_a_2d_or_3d_copy_are_payload)
{
  R(cudaMemcpy2D)(P(1), 1024, P(2), 512, 100, 7, cudaMemcpyHostToDevice);
  ck_assert_uint_eq(rig_one()->bytes, 700);
  CUDA_MEMCPY3D d = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                     .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                     .srcPitch = 512,
                     .WidthInBytes = 100,
                     .Height = 7,
                     .Depth = 3};
  D(cuMemcpy3D_v2)(&d);
  const trace_event *e = rig_one();
  ck_assert_uint_eq(e->bytes, 2100);
  ck_assert_uint_eq(e->copy_kind, WEIR_COPY_HTOD);
  CUDA_MEMCPY2D_v1 old = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .WidthInBytes = 100,
                          .Height = 7};
  D(cuMemcpy2D)(&old);
  e = rig_one();
  ck_assert_uint_eq(e->bytes, 700);
  ck_assert_uint_eq(e->copy_kind, WEIR_COPY_DTOD);
  D(cuMemsetD2D32_v2)(DEVICE_A, 4096, 5, 1 << 20, 1 << 12);
  ck_assert_uint_eq(rig_one()->bytes, UINT64_C(1) << 34);
}
END_TEST

START_TEST(copies_wait_as_the_manual_says)
{
  device_block(DEVICE_A, 4096);
  pinned_block(0x40000, 4096);
  const struct {
    uint64_t dst, src;
    int kind, waits_sync, waits_async;
  } t[] = {
      {DEVICE_A, 0x1000, 1, 1, 1},  {DEVICE_A, 0x40000, 1, 1, 0},      {0x1000, DEVICE_A, 2, 1, 1},
      {0x40000, DEVICE_A, 2, 1, 0}, {DEVICE_A, DEVICE_A + 8, 3, 0, 0}, {0x40000, 0x1000, 0, 1, 1},
  };
  for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
    enum cudaMemcpyKind k = (enum cudaMemcpyKind)t[i].kind;
    R(cudaMemcpy)(P(t[i].dst), P(t[i].src), 8, k);
    ck_assert_int_eq(!!(rig_one()->flags & WEIR_EVF_IMPLICIT_SYNC), t[i].waits_sync);
    R(cudaMemcpyAsync)(P(t[i].dst), P(t[i].src), 8, k, (cudaStream_t)P(0x77));
    const trace_event *e = rig_one();
    ck_assert_int_eq(!!(e->flags & WEIR_EVF_IMPLICIT_SYNC), t[i].waits_async);
    ck_assert(e->flags & WEIR_EVF_ASYNC);
    ck_assert_uint_eq(e->stream, 0x77);
    R(cudaMemcpy)(P(t[i].dst), P(t[i].src), 0, k);
    e = rig_one();
    ck_assert_uint_eq(e->bytes, 0);
    ck_assert_uint_eq(e->flags & WEIR_EVF_IMPLICIT_SYNC, 0);
  }
}
END_TEST

START_TEST(symbol_copies_classify_the_other_end)
{
  device_block(DEVICE_A, 4096);
  R(cudaMemcpyToSymbol)(P(0x9000), P(0x1000), 12, 4, cudaMemcpyHostToDevice);
  const trace_event *e = rig_one();
  ck_assert_uint_eq(e->copy_kind, WEIR_COPY_HTOD);
  ck_assert_uint_eq(e->bytes, 12);
  R(cudaMemcpyToSymbol)(P(0x9000), P(DEVICE_A), 12, 4, cudaMemcpyDefault);
  ck_assert_uint_eq(rig_one()->copy_kind, WEIR_COPY_DTOD);
  R(cudaMemcpyFromSymbolAsync)(P(0x1000), P(0x9000), 12, 4, cudaMemcpyDefault, NULL);
  ck_assert_uint_eq(rig_one()->copy_kind, WEIR_COPY_DTOH);
}
END_TEST

START_TEST(memsets_wait_only_for_host_and_managed_memory)
{
  void *p;
  device_block(DEVICE_A, 4096);
  pinned_block(0x40000, 4096);
  rig_fake[3]->give = DEVICE_B;
  R(cudaMallocManaged)(&p, 4096, 1);
  rig_read();
  R(cudaMemset)(P(DEVICE_A), 7, 100);
  const trace_event *e = rig_one();
  ck_assert_uint_eq(e->b, 7);
  ck_assert_uint_eq(e->flags, WEIR_EVF_RUNTIME);
  R(cudaMemset)(P(0x40000), 7, 100);
  ck_assert_uint_eq(rig_one()->flags, WEIR_EVF_RUNTIME | WEIR_EVF_IMPLICIT_SYNC);
  R(cudaMemset)(p, 7, 100);
  ck_assert_uint_eq(rig_one()->flags, WEIR_EVF_RUNTIME | WEIR_EVF_IMPLICIT_SYNC);
  R(cudaMemsetAsync)(p, 7, 100, NULL);
  ck_assert_uint_eq(rig_one()->flags, WEIR_EVF_RUNTIME | WEIR_EVF_ASYNC);
  D(cuMemsetD32_v2)(DEVICE_A, 1, 25);
  ck_assert_uint_eq(rig_one()->bytes, 100);
}
END_TEST

/* ---- the rest -------------------------------------------------------------------------------- */

START_TEST(explicit_default_stream_handles_stay)
{
  D(cuStreamSynchronize)(CU_STREAM_PER_THREAD);
  const trace_event *e = rig_one();
  ck_assert_uint_eq(e->stream, WEIR_STREAM_PER_THREAD);
  ck_assert_uint_eq(e->sync_type, WEIR_SYNC_STREAM);
  D(cuStreamSynchronize_ptsz)(CU_STREAM_LEGACY);
  e = rig_one();
  ck_assert_uint_eq(e->stream, WEIR_STREAM_LEGACY);
  ck_assert(e->flags & WEIR_EVF_PTDS);
  D(cuStreamWaitEvent)((CUstream)P(9), (CUevent)P(8), 0);
  e = rig_one();
  ck_assert_uint_eq(e->sync_type, WEIR_SYNC_STREAM_WAIT);
  ck_assert_uint_eq(e->a, 8);
  D(cuEventQuery)((CUevent)P(8));
  ck_assert_uint_eq(rig_one()->sync_type, WEIR_SYNC_QUERY);
}
END_TEST

/* The name written for a handle in the last log, or "". */
static const char *name_of(const rig_log *l, uint64_t handle)
{
  for (unsigned n = 0; n < l->names; n++)
    if (l->name[n].kind == WEIR_NAME_KERNEL && l->name[n].handle == handle) return l->name[n].text;
  return "";
}

START_TEST(a_launch_carries_grid_threads_stream_and_its_kernels_name_once)
{
  rig_fake[0]->function_name = "saxpy";
  for (int i = 0; i < 2; i++) {
    D(cuLaunchKernel)
    ((CUfunction)P(0xf00), 1000000, 65535, 3, 8, 8, 2, 0, (CUstream)P(0x44), NULL, NULL);
    const rig_log *l = rig_read();
    ck_assert_uint_eq(l->events, 1);
    const trace_event *e = &l->event[0];
    ck_assert_uint_eq(e->a, 0xf00);
    ck_assert_uint_eq(e->b, 1000000 | UINT64_C(65535) << 32 | UINT64_C(3) << 48);
    ck_assert_uint_eq(e->bytes, UINT64_C(1000000) * 65535 * 3 * 128);
    ck_assert_uint_eq(e->stream, 0x44);
    ck_assert_str_eq(name_of(l, 0xf00), i == 0 ? "saxpy" : "");
  }
}
END_TEST

START_TEST(a_registered_stub_and_the_handle_made_of_it_have_the_kernels_name)
{
  typedef void (*reg_fn)(void **, const char *, char *, const char *, int, void *, void *, void *,
                         void *, int *);
  typedef cudaError_t (*get_fn)(cudaKernel_t *, const void *);
  typedef cudaError_t (*launch_fn)(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t);
  static const char stub[] = "stub";
  reg_fn reg = (reg_fn)(uintptr_t)rig_wrapper(WEIR_BANK_RT13, "__cudaRegisterFunction");
  reg(NULL, stub, NULL, "_Z5saxpyv", 0, NULL, NULL, NULL, NULL, NULL);
  cudaKernel_t k;
  rig_fake[3]->give = 0xabcd00;
  ((get_fn)(uintptr_t)rig_wrapper(WEIR_BANK_RT13, "__cudaGetKernel"))(&k, stub);
  ck_assert_uint_eq(rig_read()->events, 0);
  launch_fn go = (launch_fn)(uintptr_t)rig_wrapper(WEIR_BANK_RT13, "__cudaLaunchKernel_ptsz");
  go(k, (dim3){2, 1, 1}, (dim3){32, 1, 1}, NULL, 0, NULL);
  rig_log *l = rig_read();
  ck_assert_uint_eq(l->events, 1);
  ck_assert_uint_eq(l->event[0].bytes, 64);
  ck_assert_uint_eq(l->event[0].stream, WEIR_STREAM_PER_THREAD);
  ck_assert_str_eq(name_of(l, 0xabcd00), "_Z5saxpyv");
  R(cudaLaunchKernel)(stub, (dim3){2, 1, 1}, (dim3){32, 1, 1}, NULL, 0, NULL);
  l = rig_read();
  ck_assert_str_eq(name_of(l, (uint64_t)(uintptr_t)stub), "_Z5saxpyv");
}
END_TEST

START_TEST(a_function_given_out_again_under_another_name_is_named_again)
{
  CUfunction f;
  rig_fake[0]->give = 0xf00d;
  static const char *const names[] = {"one", "one", "two"};
  static const unsigned wrote[] = {1, 0, 1};
  D(cuCtxSynchronize)();
  rig_read();
  for (int i = 0; i < 3; i++) {
    D(cuModuleGetFunction)(&f, NULL, names[i]);
    const rig_log *l = rig_read();
    ck_assert_uint_eq(l->names, wrote[i]);
    ck_assert_uint_eq(l->event[0].a, 0xf00d);
  }
}
END_TEST

START_TEST(devices_are_named_once_with_their_memory_and_their_bus)
{
  D(cuCtxSynchronize)();
  on_device(1, CTX_B);
  D(cuCtxSynchronize)();
  D(cuCtxSynchronize)();
  const rig_log *l = rig_read();
  ck_assert_uint_eq(l->names, 4);
  ck_assert_str_eq(l->name[0].text, "Fake One");
  ck_assert_str_eq(l->name[1].text, "0000:1A:00.0");
  ck_assert_str_eq(l->name[2].text, "Fake Two");
  ck_assert_uint_eq(l->name[2].more, UINT64_C(2) << 30);
  ck_assert_str_eq(l->name[3].text, "0000:3B:00.0");
  ck_assert_uint_eq(l->event[0].device, 0);
  ck_assert_uint_eq(l->event[1].device, 1);
  ck_assert_uint_ne(l->event[0].stack >> 24, l->event[1].stack >> 24);
}
END_TEST

START_TEST(work_queued_into_a_capture_is_marked)
{
  rig_fake[0]->capturing = 0x66;
  D(cuMemsetD8Async)(DEVICE_A, 0, 1, (CUstream)P(0x66));
  ck_assert_uint_eq(rig_one()->flags, WEIR_EVF_ASYNC);
  ck_assert_uint_eq(rig_fake[0]->asked, 0);
  D(cuStreamBeginCapture_v2)((CUstream)P(0x66), CU_STREAM_CAPTURE_MODE_GLOBAL);
  ck_assert_uint_eq(rig_one()->flags, 0); /* it begins the capture: nothing of it is in there */
  D(cuMemsetD8Async)(DEVICE_A, 0, 1, (CUstream)P(0x66));
  ck_assert_uint_eq(rig_one()->flags, WEIR_EVF_ASYNC | WEIR_EVF_CAPTURE);
  D(cuMemsetD8Async)(DEVICE_A, 0, 1, NULL);
  ck_assert_uint_eq(rig_one()->flags, WEIR_EVF_ASYNC);
  CUgraph g;
  D(cuStreamEndCapture)((CUstream)P(0x66), &g);
  rig_read();
  D(cuMemsetD8Async)(DEVICE_A, 0, 1, (CUstream)P(0x66));
  ck_assert_uint_eq(rig_one()->flags, WEIR_EVF_ASYNC);
}
END_TEST

START_TEST(a_reset_forgets_the_devices_blocks_and_a_destroyed_context_its_own)
{
  device_block(DEVICE_A, 4096);
  on_device(1, CTX_B);
  device_block(DEVICE_B, 4096);
  D(cuCtxDestroy_v2)((CUcontext)P(CTX_B));
  const trace_event *e = rig_one();
  ck_assert_uint_eq(e->kind, WEIR_EV_RESET);
  ck_assert_uint_eq(e->a, CTX_B);
  ck_assert_uint_eq(e->bytes, 1);
  ck_assert_uint_eq(e->device, 1);
  ck_assert_uint_eq(pointer_tag(DEVICE_B), 0);
  ck_assert_uint_ne(pointer_tag(DEVICE_A), 0);
  on_device(0, 0xc0ffee00);
  R(cudaDeviceReset)();
  e = rig_one();
  ck_assert_uint_eq(e->kind, WEIR_EV_RESET);
  ck_assert_uint_eq(e->device, 0);
  ck_assert_uint_eq(e->bytes, 0);
  ck_assert_uint_eq(pointer_tag(DEVICE_A), 0);
}
END_TEST

START_TEST(a_reset_leaves_a_context_that_the_program_made)
{
  CUcontext made;
  device_block(DEVICE_A, 4096);
  rig_fake[0]->give = CTX_B;
  on_device(0, CTX_B);
  D(cuCtxCreate_v2)(&made, 0, 0);
  unsigned own = rig_one()->stack >> 24;
  device_block(DEVICE_B, 4096);
  on_device(0, 0xc0ffee00);
  R(cudaDeviceReset)();
  const trace_event *e = rig_one();
  ck_assert_uint_ne(e->a, 0);
  ck_assert_uint_ne(e->a, own);
  ck_assert_uint_eq(pointer_tag(DEVICE_A), 0);
  ck_assert_uint_ne(pointer_tag(DEVICE_B), 0);
  on_device(0, CTX_B);
  D(cuCtxSynchronize)();
  ck_assert_uint_eq(rig_one()->stack >> 24, own);
}
END_TEST

START_TEST(the_last_release_of_a_primary_context_is_a_reset)
{
  device_block(DEVICE_A, 4096);
  rig_fake[0]->active = 1;
  D(cuDevicePrimaryCtxRelease_v2)(0);
  ck_assert_uint_eq(rig_one()->kind, WEIR_EV_CONTEXT);
  ck_assert_uint_ne(pointer_tag(DEVICE_A), 0);
  rig_fake[0]->active = 0;
  D(cuDevicePrimaryCtxRelease_v2)(0);
  ck_assert_uint_eq(rig_one()->kind, WEIR_EV_RESET);
  ck_assert_uint_eq(pointer_tag(DEVICE_A), 0);
}
END_TEST

START_TEST(a_context_handle_that_comes_back_is_asked_for_its_device_again)
{
  D(cuCtxSynchronize)();
  ck_assert_uint_eq(rig_one()->device, 0);
  rig_fake[0]->context = 0;
  D(cuCtxDestroy_v2)((CUcontext)P(0xc0ffee00));
  rig_read();
  on_device(1, 0xc0ffee00);
  D(cuCtxSynchronize)();
  ck_assert_uint_eq(rig_one()->device, 1);
  CUcontext made;
  on_device(0, 0xc0ffee00); /* destroyed where nobody saw it, and made again */
  rig_fake[0]->give = 0xc0ffee00;
  D(cuCtxCreate_v2)(&made, 0, 0);
  ck_assert_uint_eq(rig_one()->device, 0);
  D(cuCtxSynchronize)();
  ck_assert_uint_eq(rig_one()->device, 0);
}
END_TEST

START_TEST(a_context_changed_unseen_is_noticed_within_a_few_events)
{
  D(cuEventQuery)(NULL);
  ck_assert_uint_eq(rig_one()->device, 0);
  rig_fake[0]->device = 1;
  rig_fake[0]->context = CTX_B;
  for (int i = 0; i <= 16; i++)
    D(cuEventQuery)(NULL);
  const rig_log *l = rig_read();
  ck_assert_uint_eq(l->event[l->events - 1].device, 1);
  rig_fake[0]->device = 0;
  rig_fake[0]->context = 0xc0ffee00;
  CUdeviceptr p; /* what is not frequent always asks */
  D(cuMemAlloc_v2)(&p, 8);
  ck_assert_uint_eq(rig_one()->device, 0);
}
END_TEST

static void *sync_many_times(void *arg)
{
  CUresult (*sync)(void) = (CUresult(*)(void))(uintptr_t)arg;
  for (int i = 0; i < 500; i++)
    sync();
  spool_writer_release(&thread_self.writer);
  return NULL;
}

START_TEST(threads_record_each_its_own)
{
  pthread_t t[4];
  void *sync = rig_wrapper(WEIR_BANK_DRIVER, "cuCtxSynchronize");
  for (int i = 0; i < 4; i++)
    ck_assert_int_eq(pthread_create(&t[i], NULL, sync_many_times, sync), 0);
  for (int i = 0; i < 4; i++)
    pthread_join(t[i], NULL);
  ck_assert_uint_eq(rig_read()->events, 2000);
}
END_TEST

/* ---- calls that are left out ----------------------------------------------------------------- */

static void steer(uint32_t recording)
{
  atomic_store(&spool_steering_now()->recording, recording);
}

/* Whether what is live cannot change by it. */
static bool may_be_left_out(uint8_t kind)
{
  return kind != WEIR_EV_ALLOC && kind != WEIR_EV_FREE && kind != WEIR_EV_HOSTREG &&
         kind != WEIR_EV_RESET && kind != WEIR_EV_STREAM;
}

/* And it is forwarded once, with the answer that the original gave. */
START_TEST(every_row_is_recorded_or_counted_while_only_memory_is)
{
  uint8_t kind[WEIR_SPOOL_MAX_APIS] = {0};
  uint64_t passed = 0;
  for (uint32_t i = 0; i < hook_row_count; i++) {
    call_zero(rig_wrapper(hook_rows[i].bank, hook_rows[i].name));
    const rig_log *l = rig_read();
    if (l->events) kind[hook_rows[i].api] = l->event[0].kind;
  }
  steer(WEIR_RECORD_MEMORY);
  for (uint32_t i = 0; i < hook_row_count; i++) {
    const hook_row *row = &hook_rows[i];
    uint64_t calls = rig_fake[row->bank]->calls;
    call_zero(rig_wrapper(row->bank, row->name));
    recording_count(&thread_self);
    const rig_log *l = rig_read();
    uint64_t more = atomic_load(&spool_current()->unrecorded) - passed;
    ck_assert_msg(rig_fake[row->bank]->calls == calls + counted(row->name), "%s", row->name);
    ck_assert_msg(l->events + more == records(row->name), "%s: %u events, %u counted", row->name,
                  l->events, (unsigned)more);
    ck_assert_msg(!more || may_be_left_out(kind[row->api]), "%s was left out", row->name);
    passed += more;
  }
  ck_assert_uint_gt(passed, 200);
  ck_assert_uint_eq(spool_current()->unrecorded_spans, 1);
  ck_assert_uint_eq(thread_self.depth, 0);
}
END_TEST

/* What is asked until it is there is one event, of the calls of one window. */
START_TEST(polls_of_two_windows_are_two_events)
{
  rig_fake[0]->status = 600;
  for (int window = 0; window < 2; window++) {
    steer(WEIR_RECORD_ALL);
    for (int i = 0; i < 5; i++)
      D(cuEventQuery)(P(0x77));
    steer(WEIR_RECORD_MEMORY);
    for (int i = 0; i < 7; i++)
      D(cuEventQuery)(P(0x77));
  }
  rig_fake[0]->status = 0;
  const rig_log *l = rig_read();
  ck_assert_uint_eq(l->events, 2);
  for (unsigned i = 0; i < 2; i++)
    ck_assert_uint_eq(l->event[i].bytes, 4);
  recording_count(&thread_self);
  ck_assert_uint_eq(spool_current()->unrecorded, 14);
}
END_TEST

/* A number that a damaged file has is none of those that mean something. */
START_TEST(a_word_that_means_nothing_has_all_recorded)
{
  steer(0xdeadbeef);
  D(cuCtxSynchronize)();
  D(cuCtxSynchronize)();
  ck_assert_uint_eq(rig_read()->events, 2);
  ck_assert_uint_eq(spool_current()->unrecorded + spool_current()->unrecorded_spans, 0);
}
END_TEST

static void *sync_and_end(void *arg)
{
  CUresult (*sync)(void) = (CUresult(*)(void))(uintptr_t)arg;
  for (int i = 0; i < 900; i++)
    sync();
  process_parts_thread_ends();
  spool_writer_release(&thread_self.writer);
  return NULL;
}

START_TEST(threads_that_are_steered_count_what_they_leave_out)
{
  enum { THREADS_STEERED = 4 };
  pthread_t t[THREADS_STEERED];
  void *sync = rig_wrapper(WEIR_BANK_DRIVER, "cuCtxSynchronize");
  for (int i = 0; i < THREADS_STEERED; i++)
    ck_assert_int_eq(pthread_create(&t[i], NULL, sync_and_end, sync), 0);
  for (uint32_t i = 0; i < 20000; i++)
    steer(i % 2);
  steer(WEIR_RECORD_ALL);
  for (int i = 0; i < THREADS_STEERED; i++)
    pthread_join(t[i], NULL);
  ck_assert_uint_eq(rig_read()->events + spool_current()->unrecorded, THREADS_STEERED * 900);
}
END_TEST

#define TESTS(X)                                                                                   \
  X(every_row_called_with_nothing_records_one_event_with_its_number_and_status)                    \
  X(polls_that_repeat_are_one_event_with_a_count)                                                  \
  X(a_question_after_a_pause_and_nothing_else_has_a_flag)                                          \
  X(every_question_is_counted_by_its_place)                                                        \
  X(every_row_records_the_kind_of_its_category)                                                    \
  X(a_stream_argument_of_0_is_the_default_stream_of_the_variant)                                   \
  X(what_nothing_loaded_has_answers_that_the_symbol_was_not_found)                                 \
  X(a_row_called_through_an_export_finds_its_original)                                             \
  X(calls_beneath_a_call_are_part_of_its_event)                                                    \
  X(without_a_spool_calls_go_through_unrecorded)                                                   \
  X(errno_is_what_the_function_left)                                                               \
  X(banks_of_one_name_keep_their_originals_apart)                                                  \
  X(allocations_say_where_how_much_and_what)                                                       \
  X(a_failed_allocation_has_no_address)                                                            \
  X(a_free_knows_its_block_and_waits_unless_it_is_from_a_pool)                                     \
  X(a_block_is_out_before_its_free_is_forwarded_and_back_when_that_fails)                          \
  X(physical_memory_lives_until_its_last_handle_and_its_last_mapping)                              \
  X(a_handle_that_comes_back_is_other_memory_than_what_is_still_mapped)                            \
  X(a_release_or_an_unmapping_that_fails_changes_nothing)                                          \
  X(physical_memory_of_the_host_is_pinned_and_what_is_imported_tells_its_size_when_mapped)         \
  X(a_call_that_hands_memory_over_is_an_event)                                                     \
  X(many_mappings_go_with_one_call_and_outlive_a_reset)                                            \
  X(memory_of_another_process_counts_from_the_first_open_to_the_last_close)                        \
  X(external_memory_and_a_shared_pools_is_imported_until_it_is_freed)                              \
  X(mipmaps_of_external_memory_are_imported_until_they_are_destroyed)                              \
  X(multicast_objects_and_sparse_arrays_have_no_bytes_of_their_own)                                \
  X(the_driver_is_asked_what_is_in_use_at_waits_where_memory_is_short_and_in_no_capture)           \
  X(what_loading_code_and_making_contexts_takes_of_the_device_is_recorded)                         \
  X(code_is_measured_in_no_capture_and_no_more_after_16_in_vain)                                   \
  X(memory_that_shares_a_page_with_registered_memory_is_pageable)                                  \
  X(registered_host_memory_is_pinned_until_it_is_unregistered)                                     \
  X(arrays_are_counted_in_elements)                                                                \
  X(explicit_kinds_are_believed)                                                                   \
  X(default_copies_go_by_what_the_pointers_point_to)                                               \
  X(the_driver_is_asked_about_memory_that_came_by_an_unknown_way)                                  \
  X(copies_between_two_devices_are_peer_copies)                                                    \
  X(bytes_of_a_2d_or_3d_copy_are_payload)                                                          \
  X(copies_wait_as_the_manual_says)                                                                \
  X(symbol_copies_classify_the_other_end)                                                          \
  X(memsets_wait_only_for_host_and_managed_memory)                                                 \
  X(explicit_default_stream_handles_stay)                                                          \
  X(a_launch_carries_grid_threads_stream_and_its_kernels_name_once)                                \
  X(a_registered_stub_and_the_handle_made_of_it_have_the_kernels_name)                             \
  X(a_function_given_out_again_under_another_name_is_named_again)                                  \
  X(devices_are_named_once_with_their_memory_and_their_bus)                                        \
  X(work_queued_into_a_capture_is_marked)                                                          \
  X(a_reset_forgets_the_devices_blocks_and_a_destroyed_context_its_own)                            \
  X(a_reset_leaves_a_context_that_the_program_made)                                                \
  X(the_last_release_of_a_primary_context_is_a_reset)                                              \
  X(a_context_handle_that_comes_back_is_asked_for_its_device_again)                                \
  X(a_context_changed_unseen_is_noticed_within_a_few_events)                                       \
  X(threads_record_each_its_own)                                                                   \
  X(every_row_is_recorded_or_counted_while_only_memory_is)                                         \
  X(polls_of_two_windows_are_two_events)                                                           \
  X(a_word_that_means_nothing_has_all_recorded)                                                    \
  X(threads_that_are_steered_count_what_they_leave_out)

int main(void)
{
  Suite *s = suite_create("hooks");
  TCase *c = tcase_create("hooks");
  tcase_set_timeout(c, 60);
  tcase_add_checked_fixture(c, rig_setup, rig_teardown);
#define ADD(test) tcase_add_test(c, test);
  TESTS(ADD)
  suite_add_tcase(s, c);
  return rig_run(s);
}
