/* extract_import.c: memory of another process or API that the program opens: its size and device
 * are the owner's to count, so it is of a kind of its own. The pointer map has it as what it is for
 * copies: device memory.
 *
 * "If the memory handle has already been opened by the current context, the reference count on the
 * handle is incremented by 1 and the existing device pointer is returned" (cuIpcOpenMemHandle): the
 * first open is the allocation, the close of the last the free, others are just calls. The count is
 * in the block's tag, where an array has the bytes of its elements. */
#include "interpose/record/extract.h"

#include <pthread.h>
#include "interpose/record/event_fill.h"
#include "interpose/record/imported.h"
#include "interpose/record/subscriber.h"

#define ONE_OPEN (UINT32_C(1) << WEIR_TAG_ELEMENT)

static pthread_mutex_t opens = PTHREAD_MUTEX_INITIALIZER; /* over the counts */

void imported_forked(void)
{
  pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
  opens = unlocked;
}

/* The driver's word on how much there is, unless a capture is live; 0: not known. */
static uint64_t query_bytes(uint64_t ptr)
{
  PFN_cuMemGetAddressRange_v3020 ask = WEIR_HELPER(cuMemGetAddressRange_v2);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  if (!ask || !capture_step_begin()) return 0;
  if (ask(&base, &bytes, ptr) != CUDA_SUCCESS) bytes = 0;
  capture_step_end();
  return base == ptr ? bytes : 0;
}

static void commit_import(hook_call *c, pointer_block b)
{
  event_fields e = event_begin_here(c, WEIR_EV_ALLOC);
  if (b.start) {
    record_subscriber_now()->allocated(b.start);
    pointer_block_add(b);
  }
  e.a = b.start;
  e.bytes = b.bytes;
  e.mem = WEIR_MEM_IMPORTED;
  e.device = block_tag_device(b.tag);
  event_commit(c, &e);
}

/* Freed like any other: cuMemFree, cuMemFreeAsync. bytes 0: the driver is asked. */
void extract_import(hook_call *c, extract_word ptr, extract_word bytes, extract_word pool)
{
  unsigned device = extract_device_of(c, ptr);
  block_tag tag = block_tag_make(WEIR_MEM_DEVICE, device, c->thread->last_context_number);
  if (pool) tag |= WEIR_TAG_POOL;
  commit_import(c, (pointer_block){ptr, ptr && !bytes ? query_bytes(ptr) : bytes, tag});
}

void extract_ipc_open(hook_call *c, extract_word ptr)
{
  driver_note_use(c, WEIR_EV_ALLOC);
  context_refresh(c->thread);
  pthread_mutex_lock(&opens);
  pointer_block b = pointer_block_at(ptr);
  bool again = b.tag >= ONE_OPEN;
  if (again) pointer_block_add((pointer_block){ptr, b.bytes, b.tag + ONE_OPEN});
  pthread_mutex_unlock(&opens);
  if (again) {
    extract_call(c, ptr, 0, 0, WEIR_NO_STREAM);
    return;
  }
  b.tag = block_tag_make(WEIR_MEM_DEVICE, c->thread->last_device, c->thread->last_context_number);
  b.tag |= ONE_OPEN;
  b.bytes = ptr ? query_bytes(ptr) : 0;
  commit_import(c, b);
}

/* Before the close, since another can be given the address at once. What is put back when that
 * fails stays in `held`: the block, or with tag 0 and bytes 1 that it was one open of several. */
void extract_ipc_close_before(hook_call *c, extract_word ptr)
{
  pthread_mutex_lock(&opens);
  c->held = pointer_block_remove(ptr);
  if (c->held.tag >= 2 * ONE_OPEN) {
    pointer_block_add((pointer_block){ptr, c->held.bytes, c->held.tag - ONE_OPEN});
    c->held = (pointer_block){ptr, 1, 0};
  }
  pthread_mutex_unlock(&opens);
}

static void put_import_back(pointer_block held)
{
  pthread_mutex_lock(&opens);
  pointer_block b = held.tag ? held : pointer_block_at(held.start);
  if (!held.tag) b.tag += ONE_OPEN;
  pointer_block_add(b);
  pthread_mutex_unlock(&opens);
}

void extract_ipc_close(hook_call *c, extract_word ptr)
{
  pointer_block held = c->held;
  bool last = held.tag || !held.bytes;
  if (c->status != 0 && (held.tag || held.bytes)) put_import_back(held);
  if (!last) {
    extract_call(c, ptr, 0, 0, WEIR_NO_STREAM);
    return;
  }
  event_fields e = event_begin(c, WEIR_EV_FREE);
  e.a = ptr;
  e.bytes = held.bytes;
  e.mem = WEIR_MEM_IMPORTED;
  e.device = held.tag ? block_tag_device(held.tag) : c->thread->last_device;
  event_commit(c, &e);
}
