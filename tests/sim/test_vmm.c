/* test_vmm.c: virtual memory management: reservations, physical memory, mappings, access. */
#include "sim.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRANULE ((size_t)2 << 20)

static CUmemAllocationProp on_device(int device)
{
  return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
}

static CUmemGenericAllocationHandle physical(int device, size_t bytes)
{
  CUmemAllocationProp prop = on_device(device);
  CUmemGenericAllocationHandle h;
  ok(cuMemCreate(&h, bytes, &prop, 0));
  return h;
}

static CUdeviceptr addresses(size_t bytes)
{
  CUdeviceptr p;
  ok(cuMemAddressReserve(&p, bytes, 0, 0, 0));
  return p;
}

static CUresult give_access(CUdeviceptr p, size_t bytes, int device, unsigned flags)
{
  CUmemAccessDesc to = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, (CUmemAccess_flags)flags};
  return cuMemSetAccess(p, bytes, &to, 1);
}

/* Mapped and accessible to its own device. */
static CUdeviceptr mapped(size_t bytes)
{
  CUdeviceptr p = addresses(bytes);
  CUmemGenericAllocationHandle h = physical(0, bytes);
  ok(cuMemMap(p, bytes, 0, h, 0));
  ok(cuMemRelease(h));
  ok(give_access(p, bytes, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  return p;
}

static size_t free_now(void)
{
  size_t bytes;
  ok(cuMemGetInfo_v2(&bytes, NULL));
  return bytes;
}

START_TEST(a_device_says_it_can)
{
  int can = 0;
  ok(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
  ck_assert_int_eq(can, 1);
  ok(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
                          0));
  ck_assert_int_eq(can, 1);
  size_t bytes = 0;
  CUmemAllocationProp prop = on_device(1);
  ok(cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  ck_assert_uint_eq(bytes, GRANULE);
  ok(cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  ck_assert_uint_eq(bytes, GRANULE);
  fails(cuMemGetAllocationGranularity(NULL, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemGetAllocationGranularity(&bytes, NULL, 0), CUDA_ERROR_INVALID_VALUE);
  prop.location.id = 4;
  fails(cuMemGetAllocationGranularity(&bytes, &prop, 0), CUDA_ERROR_INVALID_DEVICE);
}
END_TEST

START_TEST(a_reservation_is_aligned_and_freed_as_it_was_made)
{
  CUdeviceptr p, q;
  ok(cuMemAddressReserve(&p, 3 * GRANULE, 0, 0, 0));
  ck_assert_uint_eq(p % GRANULE, 0);
  ok(cuMemAddressReserve(&q, GRANULE, 64 * GRANULE, 0, 0));
  ck_assert_uint_eq(q % (64 * GRANULE), 0);
  fails(cuMemAddressReserve(&q, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemAddressReserve(&q, 100, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemAddressReserve(&q, GRANULE, 3 * GRANULE, 0, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemAddressReserve(&q, GRANULE, 0, 0, 1), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemAddressReserve(NULL, GRANULE, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemAddressReserve(&q, (size_t)1 << 62, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
  fails(cuMemAddressFree(p, GRANULE), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemAddressFree(p + GRANULE, 2 * GRANULE), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemAddressFree(p, 3 * GRANULE));
  fails(cuMemAddressFree(p, 3 * GRANULE), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemAddressReserve(&q, 3 * GRANULE, 0, p, 0)); /* the hint is free now */
  ck_assert_uint_eq(q, p);
}
END_TEST

START_TEST(what_cannot_be_made_is_refused)
{
  CUmemGenericAllocationHandle h;
  CUmemAllocationProp prop = on_device(0);
  fails(cuMemCreate(&h, 0, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemCreate(&h, GRANULE / 2, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemCreate(&h, GRANULE, &prop, 1), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemCreate(&h, GRANULE, NULL, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemCreate(NULL, GRANULE, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  prop.location.id = 9;
  fails(cuMemCreate(&h, GRANULE, &prop, 0), CUDA_ERROR_INVALID_DEVICE);
  prop = on_device(0);
  prop.type = CU_MEM_ALLOCATION_TYPE_INVALID;
  fails(cuMemCreate(&h, GRANULE, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  prop = on_device(0);
  prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
  fails(cuMemCreate(&h, GRANULE, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
  prop = on_device(0);
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
  fails(cuMemCreate(&h, GRANULE, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
  fails(cuMemRelease((CUmemGenericAllocationHandle)(uintptr_t)&h), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(memory_counts_when_it_is_created_and_until_nothing_names_it)
{
  ok(weir_sim_set_memory(0, 16 * GRANULE));
  CUmemAllocationProp prop = on_device(0);
  CUmemGenericAllocationHandle h = physical(0, 10 * GRANULE), other;
  ck_assert_uint_eq(free_now(), 6 * GRANULE);
  fails(cuMemCreate(&other, 7 * GRANULE, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  fails(cuMemCreate(&other, 7 * GRANULE, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
  CUdeviceptr a = addresses(10 * GRANULE);
  ok(cuMemMap(a, 10 * GRANULE, 0, h, 0));
  ok(cuMemRelease(h)); /* the mapping keeps it */
  fails(cuMemRelease(h), CUDA_ERROR_INVALID_VALUE);
  ck_assert_uint_eq(free_now(), 6 * GRANULE);
  fails(cuMemAddressFree(a, 10 * GRANULE), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemRetainAllocationHandle(&other, (void *)(a + 3 * GRANULE + 5)));
  ck_assert(other == h);
  ok(cuMemUnmap(a, 10 * GRANULE));
  ck_assert_uint_eq(free_now(), 6 * GRANULE); /* the retained handle keeps it */
  ok(cuMemRelease(h));
  ck_assert_uint_eq(free_now(), 16 * GRANULE);
  ok(cuMemAddressFree(a, 10 * GRANULE));
  fails(cuMemRetainAllocationHandle(&other, (void *)a), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(one_memory_at_two_places_is_one_memory)
{
  CUdeviceptr a = addresses(2 * GRANULE), b = addresses(2 * GRANULE);
  CUmemGenericAllocationHandle h = physical(0, 2 * GRANULE);
  ok(cuMemMap(a, 2 * GRANULE, 0, h, 0));
  ok(cuMemMap(b, 2 * GRANULE, 0, h, 0));
  ok(give_access(a, 2 * GRANULE, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  ok(give_access(b, 2 * GRANULE, 0, CU_MEM_ACCESS_FLAGS_PROT_READ));
  ok(cuMemsetD32_v2(a, 77, 2 * GRANULE / 4));
  unsigned last = 0;
  ok(cuMemcpyDtoH_v2(&last, b + 2 * GRANULE - 4, 4));
  ck_assert_uint_eq(last, 77);
  ok(cuMemUnmap(a, 2 * GRANULE));
  ok(cuMemcpyDtoH_v2(&last, b, 4));
  ck_assert_uint_eq(last, 77);
  fails(cuMemcpyDtoH_v2(&last, a, 4), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemUnmap(b, 2 * GRANULE));
  ok(cuMemMap(a, 2 * GRANULE, 0, h, 0)); /* what it held stays while the handle lives */
  ok(give_access(a, 2 * GRANULE, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  ok(cuMemcpyDtoH_v2(&last, a, 4));
  ck_assert_uint_eq(last, 77);
  ok(cuMemUnmap(a, 2 * GRANULE));
  ok(cuMemRelease(h));
}
END_TEST

START_TEST(mappings_are_made_and_unmade_whole)
{
  CUdeviceptr a = addresses(8 * GRANULE);
  CUmemGenericAllocationHandle h = physical(0, 2 * GRANULE);
  fails(cuMemMap(a, 2 * GRANULE, GRANULE, h, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemMap(a, 3 * GRANULE, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemMap(a + 4096, GRANULE, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemMap(a, GRANULE / 2, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemMap(a + 7 * GRANULE, 2 * GRANULE, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemMap(device_bytes(4 * GRANULE), GRANULE, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemMap(a, GRANULE, 0, h, 1), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemMap(a, 2 * GRANULE, 0, h, 0));
  fails(cuMemMap(a + GRANULE, 2 * GRANULE, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemMap(a + 2 * GRANULE, 2 * GRANULE, 0, h, 0));
  ok(cuMemMap(a + 5 * GRANULE, GRANULE, 0, h, 0));
  fails(cuMemUnmap(a, GRANULE), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemUnmap(a + GRANULE, 3 * GRANULE), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemUnmap(a, 6 * GRANULE), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemUnmap(a, 0), CUDA_ERROR_INVALID_VALUE);
  fails(give_access(a, 6 * GRANULE, 0, 3), CUDA_ERROR_INVALID_VALUE);
  fails(give_access(a, GRANULE, 0, 3), CUDA_ERROR_INVALID_VALUE);
  ok(give_access(a, 4 * GRANULE, 0, 3));
  ok(cuMemUnmap(a, 4 * GRANULE));
  ok(cuMemUnmap(a + 5 * GRANULE, GRANULE));
  fails(cuMemUnmap(a, 4 * GRANULE), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemFree_v2(mapped(GRANULE)), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemRelease(h));
}
END_TEST

START_TEST(access_is_what_was_given)
{
  CUdeviceptr a = addresses(GRANULE);
  CUmemGenericAllocationHandle h = physical(0, GRANULE);
  CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, there = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  unsigned long long flags = 9;
  fails(cuMemGetAccess(&flags, &here, a), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemMap(a, GRANULE, 0, h, 0));
  ok(cuMemGetAccess(&flags, &here, a + 5));
  ck_assert_uint_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  ok(give_access(a, GRANULE, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  ok(give_access(a, GRANULE, 1, CU_MEM_ACCESS_FLAGS_PROT_READ));
  ok(cuMemGetAccess(&flags, &here, a));
  ck_assert_uint_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  ok(cuMemGetAccess(&flags, &there, a));
  ck_assert_uint_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
  unsigned mine = 9;
  ok(cuPointerGetAttribute(&mine, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, a));
  ck_assert_uint_eq(mine, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
  fails(give_access(a, GRANULE, 4, 3), CUDA_ERROR_INVALID_DEVICE);
  fails(give_access(a, GRANULE, 0, 2), CUDA_ERROR_INVALID_VALUE);
  CUmemAccessDesc host = {{CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  fails(cuMemSetAccess(a, GRANULE, &host, 1), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemSetAccess(a, GRANULE, NULL, 1), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemUnmap(a, GRANULE));
  ok(cuMemMap(a, GRANULE, 0, h, 0)); /* "all mappings start with no accessibility setup" */
  ok(cuMemGetAccess(&flags, &here, a));
  ck_assert_uint_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  ok(cuMemUnmap(a, GRANULE));
  ok(cuMemRelease(h));
}
END_TEST

START_TEST(memory_without_access_is_an_illegal_address)
{
  CUdeviceptr a = addresses(GRANULE);
  CUmemGenericAllocationHandle h = physical(0, GRANULE);
  ok(cuMemMap(a, GRANULE, 0, h, 0));
  ok(cuMemsetD8_v2(a, 1, GRANULE));
  fails(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(memory_of_read_only_access_is_not_written)
{
  CUdeviceptr a = addresses(GRANULE);
  CUmemGenericAllocationHandle h = physical(0, GRANULE);
  ok(cuMemMap(a, GRANULE, 0, h, 0));
  ok(give_access(a, GRANULE, 0, CU_MEM_ACCESS_FLAGS_PROT_READ));
  unsigned word = 3;
  ok(cuMemcpyDtoH_v2(&word, a, 4));
  ck_assert_uint_eq(word, 0);
  ok(cuMemsetD8_v2(a, 1, GRANULE));
  fails(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(another_devices_memory_needs_access_for_this_device)
{
  CUdeviceptr a = addresses(GRANULE);
  CUmemGenericAllocationHandle h = physical(1, GRANULE);
  ok(cuMemMap(a, GRANULE, 0, h, 0));
  ok(give_access(a, GRANULE, 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  CUdeviceptr b = device_bytes(GRANULE);
  /* a copy between peers names both contexts; one between addresses is this device's */
  ok(cuMemcpyPeer(b, primary(0), a, primary(1), GRANULE));
  ok(cuCtxSynchronize());
  ok(cuMemcpyDtoD_v2(b, a, GRANULE));
  fails(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(unmapping_does_not_wait_and_the_work_faults)
{
  CUdeviceptr a = mapped(GRANULE);
  ok(weir_sim_hold(NULL));
  ok(cuMemsetD8Async(a, 1, GRANULE, NULL));
  ok(cuMemUnmap(a, GRANULE));
  ok(weir_sim_release(NULL));
  fails(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(a_copy_may_span_neighbouring_mappings_but_no_gap)
{
  CUdeviceptr a = addresses(8 * GRANULE);
  CUmemGenericAllocationHandle h[4];
  for (int i = 0; i < 4; i++) {
    h[i] = physical(0, GRANULE);
    ok(cuMemMap(a + (CUdeviceptr)(i < 3 ? i : 4) * GRANULE, GRANULE, 0, h[i], 0));
  }
  ok(give_access(a, 3 * GRANULE, 0, 3));
  ok(give_access(a + 4 * GRANULE, GRANULE, 0, 3));
  char *host = pinned_bytes(3 * GRANULE), *back = pinned_bytes(3 * GRANULE);
  pattern(host, 3 * GRANULE, 5);
  ok(cuMemcpyHtoD_v2(a, host, 3 * GRANULE));
  ok(cuMemcpyDtoH_v2(back, a, 3 * GRANULE));
  ck_assert_mem_eq(host, back, 3 * GRANULE);
  fails(cuMemcpyDtoH_v2(back, a + GRANULE, 3 * GRANULE), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemsetD8_v2(a + 3 * GRANULE, 0, 1), CUDA_ERROR_INVALID_VALUE);
  ok(cuCtxSynchronize());
}
END_TEST

START_TEST(a_pointer_into_a_mapping_says_what_it_is)
{
  CUdeviceptr a = addresses(8 * GRANULE), base = 0, start = 0;
  CUmemGenericAllocationHandle h = physical(1, 2 * GRANULE);
  ok(cuMemMap(a + 2 * GRANULE, 2 * GRANULE, 0, h, 0));
  CUdeviceptr p = a + 3 * GRANULE + 8;
  size_t bytes = 0, range = 0;
  ok(cuMemGetAddressRange_v2(&base, &bytes, p));
  ck_assert_uint_eq(base, a + 2 * GRANULE);
  ck_assert_uint_eq(bytes, 2 * GRANULE);
  ok(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p));
  ok(cuPointerGetAttribute(&range, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p));
  ck_assert_uint_eq(start, a);
  ck_assert_uint_eq(range, 8 * GRANULE);
  ok(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, p));
  ok(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, p));
  ck_assert_uint_eq(base, a + 2 * GRANULE);
  ck_assert_uint_eq(bytes, 2 * GRANULE);
  int device = -1;
  unsigned type = 0, yes = 0;
  ok(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
  ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
  ok(cuPointerGetAttribute(&yes, CU_POINTER_ATTRIBUTE_MAPPED, p));
  ck_assert_int_eq(device, 1);
  ck_assert_uint_eq(type, CU_MEMORYTYPE_DEVICE);
  ck_assert_uint_eq(yes, 1);
  ok(cuPointerGetAttribute(&yes, CU_POINTER_ATTRIBUTE_MAPPED, a)); /* reserved only */
  ck_assert_uint_eq(yes, 0);
  fails(cuPointerGetAttribute(&yes, CU_POINTER_ATTRIBUTE_MAPPED, (CUdeviceptr)(uintptr_t)&yes),
        CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* More mappings than the kernel allows a process: neighbours are one to it. */
START_TEST(many_pages_are_mapped_one_by_one)
{
  enum { PAGES = 4000, HANDLE_BYTES = 2 << 20 };
  static CUmemGenericAllocationHandle h[PAGES];
  ok(weir_sim_set_memory(0, (size_t)PAGES * HANDLE_BYTES));
  CUdeviceptr a = addresses((size_t)PAGES * HANDLE_BYTES);
  for (size_t i = 0; i < PAGES; i++) {
    h[i] = physical(0, HANDLE_BYTES);
    ok(cuMemMap(a + i * HANDLE_BYTES, HANDLE_BYTES, 0, h[i], 0));
    ok(give_access(a + i * HANDLE_BYTES, HANDLE_BYTES, 0, 3));
  }
  FILE *f = fopen("/proc/self/maps", "r");
  int lines = 0;
  for (int c; (c = getc(f)) != EOF;)
    lines += c == '\n';
  ck_assert_int_eq(fclose(f), 0);
  ck_assert_int_lt(lines, PAGES / 4);
  ok(cuMemUnmap(a, (size_t)PAGES * HANDLE_BYTES));
  for (size_t i = 0; i < PAGES; i++)
    ok(cuMemRelease(h[i]));
  ck_assert_uint_eq(free_now(), (size_t)PAGES * HANDLE_BYTES);
}
END_TEST

START_TEST(memory_is_empty_again_for_its_next_owner)
{
  ok(weir_sim_set_memory(0, 4 * GRANULE));
  CUdeviceptr a = mapped(4 * GRANULE);
  ok(cuMemsetD8_v2(a, 0xff, 4 * GRANULE));
  ok(cuCtxSynchronize());
  ok(cuMemUnmap(a, 4 * GRANULE));
  CUdeviceptr b = device_bytes(4 * GRANULE); /* the same pages, in the device's own range */
  unsigned char byte = 1;
  ok(cuMemcpyDtoH_v2(&byte, b + GRANULE, 1));
  ck_assert_uint_eq(byte, 0);
}
END_TEST

START_TEST(a_context_ends_without_the_mappings)
{
  CUdeviceptr a = mapped(GRANULE);
  ok(cuMemsetD8_v2(a, 7, GRANULE));
  ok(cuDevicePrimaryCtxReset_v2(0));
  ok(cuCtxSetCurrent(primary(0)));
  unsigned char byte = 1;
  ok(cuMemcpyDtoH_v2(&byte, a + 5, 1));
  ck_assert_uint_eq(byte, 7);
}
END_TEST

/* ---- between processes ----------------------------------------------------------------------- */

static void send_file(int socket, int file)
{
  char byte = 0;
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct iovec io = {&byte, 1};
  struct msghdr m = {
      .msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  struct cmsghdr *c = CMSG_FIRSTHDR(&m);
  ck_assert_ptr_nonnull(c);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(c), &file, sizeof file);
  ck_assert_int_eq((int)sendmsg(socket, &m, 0), 1);
}

static int receive_file(int socket)
{
  char byte;
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct iovec io = {&byte, 1};
  struct msghdr m = {
      .msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  if (recvmsg(socket, &m, 0) != 1) return -1;
  struct cmsghdr *c = CMSG_FIRSTHDR(&m);
  int file = -1;
  if (c) memcpy(&file, CMSG_DATA(c), sizeof file);
  return file;
}

/* The other process: reads 5, writes 6. Its exit status says how far it came. */
static int importer(int socket)
{
  int file = receive_file(socket);
  CUmemGenericAllocationHandle h;
  CUmemAllocationProp prop;
  CUdeviceptr p;
  unsigned char byte = 0;
  setenv("CUDA_VISIBLE_DEVICES", "3,2", 1);
  if (cuInit(0) || cuCtxSetCurrent(primary(1))) return 1;
  if (cuMemImportFromShareableHandle(&h, (void *)(intptr_t)file,
                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
    return 2;
  close(file);
  if (cuMemGetAllocationPropertiesFromHandle(&prop, h) || prop.location.id != 1) return 3;
  if (cuMemAddressReserve(&p, GRANULE, 0, 0, 0) || cuMemMap(p, GRANULE, 0, h, 0) ||
      cuMemRelease(h) || give_access(p, GRANULE, 1, 3))
    return 4;
  if (cuMemcpyDtoH_v2(&byte, p + 100, 1) || byte != 5) return 5;
  if (cuMemsetD8_v2(p, 6, GRANULE) || cuCtxSynchronize()) return 6;
  return cuMemUnmap(p, GRANULE) ? 7 : 0;
}

START_TEST(an_exported_memory_is_the_same_in_another_process)
{
  int pair[2], status;
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  pid_t child = fork(); /* before this process initialises */
  if (!child) _exit(importer(pair[1]));
  set_up_device0();
  CUmemAllocationProp prop = on_device(2);
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle h, again;
  ok(cuMemCreate(&h, GRANULE, &prop, 0));
  CUdeviceptr a = addresses(GRANULE);
  ok(cuMemMap(a, GRANULE, 0, h, 0));
  ok(cuCtxSetCurrent(primary(2)));
  ok(give_access(a, GRANULE, 2, 3));
  ok(cuMemsetD8_v2(a, 5, GRANULE));
  ok(cuCtxSynchronize());
  int file = -1;
  ok(cuMemExportToShareableHandle(&file, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  send_file(pair[0], file);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFEXITED(status));
  ck_assert_int_eq(WEXITSTATUS(status), 0);
  unsigned char byte = 0;
  ok(cuMemcpyDtoH_v2(&byte, a + 100, 1));
  ck_assert_uint_eq(byte, 6);
  ok(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)file,
                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  ok(cuMemRelease(again));
  close(file);
}
END_TEST

/* A program that may write no large file has device memory all the same, but not of the kind that
 * is shared. */
START_TEST(without_a_file_for_it_there_is_memory_but_no_mapping)
{
  struct rlimit small = {1 << 20, 1 << 20};
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
  set_up_device0();
  int can = 9;
  ok(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
  ck_assert_int_eq(can, 0);
  CUmemGenericAllocationHandle h;
  CUmemAllocationProp prop = on_device(0);
  fails(cuMemCreate(&h, GRANULE, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
  CUgraph g;
  CUgraphNode n;
  CUDA_MEM_ALLOC_NODE_PARAMS node = {.bytesize = 4};
  node.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  node.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  ok(cuGraphCreate(&g, 0));
  fails(cuGraphAddMemAllocNode(&n, g, NULL, 0, &node), CUDA_ERROR_NOT_SUPPORTED);
  CUdeviceptr p = device_bytes(4 * GRANULE);
  CUipcMemHandle ipc;
  fails(cuIpcGetMemHandle(&ipc, p), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemsetD8_v2(p, 5, 4 * GRANULE));
  ok(cuMemFree_v2(p));
  unsigned char byte = 1;
  ok(cuMemcpyDtoH_v2(&byte, device_bytes(4 * GRANULE) + 9, 1));
  ck_assert_uint_eq(byte, 0);
}
END_TEST

START_TEST(only_what_was_to_be_exported_is)
{
  CUmemGenericAllocationHandle h = physical(0, GRANULE);
  const CUmemAllocationHandleType fd = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  int file = -1;
  fails(cuMemExportToShareableHandle(&file, h, fd, 0), CUDA_ERROR_INVALID_VALUE);
  CUmemAllocationProp prop = on_device(0), said;
  prop.requestedHandleTypes = fd;
  ok(cuMemCreate(&h, GRANULE, &prop, 0));
  ok(cuMemGetAllocationPropertiesFromHandle(&said, h));
  ck_assert_mem_eq(&said, &prop, sizeof said);
  fails(cuMemExportToShareableHandle(NULL, h, fd, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemExportToShareableHandle(&file, h, fd, 1), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemExportToShareableHandle(&file, h, CU_MEM_HANDLE_TYPE_FABRIC, 0),
        CUDA_ERROR_NOT_SUPPORTED);
  fails(cuMemImportFromShareableHandle(&h, (void *)(intptr_t)-1, fd), CUDA_ERROR_INVALID_VALUE);
  file = open("/proc/self/exe", O_RDONLY);
  fails(cuMemImportFromShareableHandle(&h, (void *)(intptr_t)file, fd), CUDA_ERROR_INVALID_VALUE);
  close(file);
}
END_TEST

START_TEST(memory_that_may_be_compressed_says_so)
{
  int can = 0;
  CUmemAllocationProp prop = on_device(0), said;
  CUmemGenericAllocationHandle h;
  ok(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, 0));
  ck_assert_int_eq(can, 1);
  prop.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
  ok(cuMemCreate(&h, GRANULE, &prop, 0));
  ok(cuMemGetAllocationPropertiesFromHandle(&said, h));
  ck_assert_int_eq(said.allocFlags.compressionType, CU_MEM_ALLOCATION_COMP_GENERIC);
  ok(cuMemRelease(h));
  prop.allocFlags.compressionType = 7;
  fails(cuMemCreate(&h, GRANULE, &prop, 0), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* As NVIDIA's sample memMapIPCDrv ends: what belongs to no context needs none. */
START_TEST(a_destroyed_context_does_not_hold_up_what_belongs_to_none)
{
  CUcontext base, c;
  ok(cuCtxGetCurrent(&base));
  ok(cuCtxCreate_v2(&c, 0, 0));
  CUdeviceptr p = mapped(GRANULE), q;
  ok(cuCtxPushCurrent_v2(base));
  ok(cuCtxDestroy_v2(c));
  ok(cuCtxPopCurrent_v2(NULL)); /* c is current, destroyed */
  fails(cuMemAlloc_v2(&q, 100), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  unsigned long long flags = 0;
  CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  ok(cuMemGetAccess(&flags, &here, p));
  ck_assert_uint_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  q = mapped(GRANULE);
  ok(cuMemUnmap(q, GRANULE));
  ok(cuMemAddressFree(q, GRANULE));
  ok(cuMemUnmap(p, GRANULE));
  ok(cuMemAddressFree(p, GRANULE));
  weir_sim_set_fail("cuStreamSynchronize:1=700");
  ok(cuCtxSetCurrent(base));
  fails(cuStreamSynchronize(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
  fails(cuMemAddressReserve(&q, GRANULE, 0, 0, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {a_device_says_it_can,
                                a_reservation_is_aligned_and_freed_as_it_was_made,
                                what_cannot_be_made_is_refused,
                                memory_counts_when_it_is_created_and_until_nothing_names_it,
                                one_memory_at_two_places_is_one_memory,
                                mappings_are_made_and_unmade_whole,
                                access_is_what_was_given,
                                memory_without_access_is_an_illegal_address,
                                memory_of_read_only_access_is_not_written,
                                another_devices_memory_needs_access_for_this_device,
                                unmapping_does_not_wait_and_the_work_faults,
                                a_copy_may_span_neighbouring_mappings_but_no_gap,
                                a_pointer_into_a_mapping_says_what_it_is,
                                many_pages_are_mapped_one_by_one,
                                memory_is_empty_again_for_its_next_owner,
                                a_context_ends_without_the_mappings,
                                only_what_was_to_be_exported_is,
                                a_destroyed_context_does_not_hold_up_what_belongs_to_none,
                                memory_that_may_be_compressed_says_so,
                                NULL};
  const TTest *const bare[] = {an_exported_memory_is_the_same_in_another_process,
                               without_a_file_for_it_there_is_memory_but_no_mapping, NULL};
  return run_groups("sim_vmm", tests, set_up_device0, bare);
}
