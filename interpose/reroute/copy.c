/* copy.c: which copies are staged (staging.h). Whatever is not plainly a copy between pageable
 * memory and one allocation of the current context, or between the memories of two devices, is the
 * driver's; so is one that failed, whose error the driver then words itself.
 */
#include "interpose/elf/entry.h"
#include "interpose/record/context.h"
#include "interpose/record/event_fill.h"
#include "interpose/reroute/access.h"
#include "interpose/reroute/places.h"
#include "interpose/reroute/poison.h"
#include "interpose/reroute/reroute.h"
#include "interpose/reroute/cache_rules.h"
#include "interpose/staging/staging.h"

/* ---- what may be staged ---------------------------------------------------------------------- */

static bool pointer_known(uint64_t at)
{
  PFN_cuPointerGetAttribute_v4000 ask = WEIR_HELPER(cuPointerGetAttribute);
  CUmemorytype type = 0;
  return !ask || ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) != CUDA_ERROR_INVALID_VALUE;
}

/* Asks the driver, of memory that the map does not have. The context of memory from a pool is not
 * known to it: that is the thread's, where the device is. */
static block_tag ask_tag(uint64_t at)
{
  PFN_cuPointerGetAttribute_v4000 ask = WEIR_HELPER(cuPointerGetAttribute);
  CUmemorytype type = 0;
  CUcontext owner = NULL;
  unsigned managed = 0;
  int device = -1;
  if (!ask || ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) != CUDA_SUCCESS || !type) return 0;
  if (ask(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at) == CUDA_SUCCESS && managed) return 0;
  if (ask(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at) != CUDA_SUCCESS || device < 0) return 0;
  if (ask(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, at) != CUDA_SUCCESS) owner = NULL;
  unsigned number = context_number((uint64_t)(uintptr_t)owner);
  context_refresh(&thread_self);
  if (!owner && (unsigned)device == thread_self.last_device)
    number = thread_self.last_context_number;
  return block_tag_make(type == CU_MEMORYTYPE_HOST ? WEIR_MEM_PINNED : WEIR_MEM_DEVICE,
                        (unsigned)device, number);
}

block_tag reroute_tag(uint64_t at)
{
  block_tag tag = pointer_tag(at);
  return tag || !process_unrecorded ? tag : ask_tag(at);
}

/* Memory that CUDA does not know of, from its first byte to its last. */
static bool pageable(uint64_t at, uint64_t bytes)
{
  return !pointer_tag(at) && !pointer_tag(at + bytes - 1) && !pointer_known(at) &&
         !pointer_known(at + bytes - 1);
}

/* All of it in one allocation of device memory, of a context that has a number. */
static bool one_allocation(uint64_t at, uint64_t bytes)
{
  PFN_cuMemGetAddressRange_v3020 ask = WEIR_HELPER(cuMemGetAddressRange_v2);
  block_tag tag = reroute_tag(at);
  CUdeviceptr base = 0;
  size_t size = 0;
  return block_tag_mem(tag) == WEIR_MEM_DEVICE && block_tag_context(tag) && ask &&
         ask(&base, &size, at) == CUDA_SUCCESS && at - base <= size &&
         bytes <= size - (at - base) && !reroute_refuses_bytes(at, bytes, true, 0);
}

static bool copy_on_device(uint64_t at, uint64_t bytes)
{
  return block_tag_context(reroute_tag(at)) == thread_self.last_context_number &&
         one_allocation(at, bytes);
}

/* By what the copy specifies of an end. */
static bool may_be(uint8_t end, enum copy_end what)
{
  return end == what || end == COPY_EITHER;
}

/* Its first bytes. */
static uint64_t copy_dst(const copy_args *a)
{
  return a->dst + a->dst_offset;
}

static uint64_t copy_src(const copy_args *a)
{
  return a->src + a->src_offset;
}

/* Bytes from the first to the last; false: too many to be true. */
static bool pitched_bytes(uint64_t pitch, const copy_args *a, uint64_t *bytes)
{
  return !__builtin_mul_overflow(pitch, a->height - 1, bytes) &&
         !__builtin_add_overflow(*bytes, a->width, bytes);
}

static bool is_stageable(const copy_args *a, bool to)
{
  uint64_t host, device;
  if (a->dimensions > 1 && (a->dst_pitch < a->width || a->src_pitch < a->width)) return false;
  if (!pitched_bytes(to ? a->src_pitch : a->dst_pitch, a, &host) ||
      !pitched_bytes(to ? a->dst_pitch : a->src_pitch, a, &device))
    return false;
  return pageable(to ? copy_src(a) : copy_dst(a), host) &&
         copy_on_device(to ? copy_dst(a) : copy_src(a), device);
}

static CUstream stream_of_copy(const hook_call *c, const copy_args *a)
{
  if (a->stream) return (CUstream)(uintptr_t)a->stream;
  return c->flags & WEIR_EVF_PTDS ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

/* The ring's events are of the thread's context, and can be recorded in its streams only. */
static bool of_context(CUstream stream)
{
  PFN_cuStreamGetCtx_v9020 ask = WEIR_HELPER(cuStreamGetCtx);
  CUcontext of = NULL;
  if ((uint64_t)(uintptr_t)stream <= WEIR_STREAM_PER_THREAD) return true;
  return ask && ask(stream, &of) == CUDA_SUCCESS &&
         (uint64_t)(uintptr_t)of == thread_self.last_context;
}

static bool wait_for_stream(CUstream stream)
{
  PFN_cuStreamSynchronize_v2000 wait = WEIR_HELPER(cuStreamSynchronize);
  if (!wait) return false;
  capture_relaxed mode = capture_relax();
  CUresult r = wait(stream);
  capture_relax_end(&mode);
  return r == CUDA_SUCCESS;
}

static bool stage_pageable(hook_call *c, const copy_args *a)
{
  if (!reroute_applies(c, REROUTE_STAGING)) return false;
  CUresult r = CUDA_SUCCESS;
  bool to = may_be(a->dst_end, COPY_DEVICE) && may_be(a->src_end, COPY_HOST) &&
            (a->dst_end == COPY_DEVICE || block_tag_mem(reroute_tag(copy_dst(a))));
  bool from = may_be(a->dst_end, COPY_HOST) && may_be(a->src_end, COPY_DEVICE);
  if (!to && !from) return false;
  if (reroute_hands_off() || reroute_is_watched()) return false;
  if (!process_reroutes_have(REROUTE_STAGING)) return false;
  context_refresh(&thread_self);
  if (!is_stageable(a, to)) return false;
  rule_action rule = reroute_rules_action(WEIR_RULES_COPY, c->site, a->width * a->height);
  if (rule == WEIR_RULE_STAGING_OFF) return false;
  CUstream stream = stream_of_copy(c, a);
  if (!of_context(stream)) return false;
  /* "A stream sync is performed before the copy is initiated" (API synchronization behavior). */
  if (a->blocking && !wait_for_stream(stream)) return false;
  staging_copy copy = {.to_device = to,
                       .always = rule == WEIR_RULE_STAGING_ON || reroute_at_places,
                       .wait = a->blocking,
                       .stream = stream,
                       .host = (char *)(uintptr_t)(to ? copy_src(a) : copy_dst(a)),
                       .host_pitch = to ? a->src_pitch : a->dst_pitch,
                       .device = to ? copy_dst(a) : copy_src(a),
                       .device_pitch = to ? a->dst_pitch : a->src_pitch,
                       .width = a->width,
                       .rows = a->height};
  if (!staging_run(&copy, thread_self.last_context_number, thread_self.last_device, &r))
    return false;
  if (r == CUDA_SUCCESS) c->flags |= WEIR_EVF_STAGED;
  return r == CUDA_SUCCESS;
}

/* ---- between devices ------------------------------------------------------------------------- */

/* The call names no other device or context than the memory's. */
static bool owned_as_stated(const copy_args *a, block_tag dst, block_tag src)
{
  if (a->owners == COPY_DEVICES)
    return a->dst_owner == block_tag_device(dst) && a->src_owner == block_tag_device(src);
  if (a->owners == COPY_CONTEXTS)
    return context_number(a->dst_owner) == block_tag_context(dst) &&
           context_number(a->src_owner) == block_tag_context(src);
  return true;
}

static bool stage_peers(hook_call *c, const copy_args *a)
{
  CUresult r;
  if (!reroute_applies(c, REROUTE_PEER)) return false;
  block_tag dst = reroute_tag(a->dst), src = reroute_tag(a->src);
  if (block_tag_device(dst) == block_tag_device(src) || !owned_as_stated(a, dst, src)) return false;
  if (reroute_hands_off() || reroute_is_watched()) return false;
  if (!process_reroutes_have(REROUTE_PEER)) return false;
  if (!one_allocation(a->dst, a->width) || !one_allocation(a->src, a->width)) return false;
  const staging_peer_copy copy = {.dst = a->dst,
                                  .src = a->src,
                                  .dst_context = block_tag_context(dst),
                                  .src_context = block_tag_context(src),
                                  .bytes = a->width,
                                  .stream = stream_of_copy(c, a),
                                  .blocking = a->blocking,
                                  .named = a->owners != COPY_NO_OWNERS};
  context_refresh(&thread_self);
  if (!staging_run_peers(&copy, &r) || r != CUDA_SUCCESS) return false;
  c->flags |= WEIR_EVF_STAGED;
  return true;
}

/* Bytes of the smallest copy that may be anything but the driver's alone. */
static uint64_t least_bytes = WEIR_STAGE_MIN;

void reroute_copies_start(void)
{
  least_bytes = process_reroutes_have(REROUTE_ACCESS) ? 0 : WEIR_STAGE_MIN;
}

static const void *const *driver_copies; /* entries, NULL-terminated */

void reroute_copies_know(const void *const *entries)
{
  driver_copies = entries;
}

/* By another tool, which knows that the runtime's copies call them, and that staging would pass
 * over. */
static bool driver_copies_are_patched(void)
{
  for (const void *const *e = driver_copies; e && *e; e++)
    if (entry_is_patched(*e)) return true;
  return false;
}

bool reroute_copy(hook_call *c, const copy_args *a)
{
  uint64_t bytes;
  if (__builtin_mul_overflow(a->width, a->height, &bytes) || bytes < least_bytes) return false;
  if (__builtin_expect(!least_bytes, 0)) {
    if (reroute_applies(c, REROUTE_ACCESS)) peer_access_at_copy(a);
    if (bytes < WEIR_STAGE_MIN) return false;
  }
  if (c->flags & WEIR_EVF_RUNTIME && driver_copies_are_patched()) return false;
  bool between = may_be(a->dst_end, COPY_DEVICE) && may_be(a->src_end, COPY_DEVICE);
  if (between && a->dimensions == 1 && stage_peers(c, a)) return true;
  return stage_pageable(c, a);
}

/* ---- poison ---------------------------------------------------------------------------------- */

static bool to_host(const copy_args *a)
{
  if (!a->width || !a->height || (a->height > 1 && a->dst_pitch < a->width)) return false;
  if (a->dst_end == COPY_HOST) return a->src_end == COPY_DEVICE;
  if (a->dst_end != COPY_EITHER || a->src_end != COPY_EITHER) return false;
  unsigned to = block_tag_mem(reroute_tag(copy_dst(a)));
  return block_tag_mem(reroute_tag(copy_src(a))) == WEIR_MEM_DEVICE &&
         (to == WEIR_MEM_PINNED || (!to && !pointer_known(copy_dst(a))));
}

/* What such a copy has brought back is looked at. Into memory that the driver knows not, a copy is
 * complete when it returns ("API synchronization behavior"). */
void reroute_look_at_copy(const hook_call *c, const copy_args *a)
{
  uint64_t dst = copy_dst(a);
  const poison_copy copy = {copy_src(a), dst, a->src_pitch, a->dst_pitch, a->width, a->height};
  if (capture_live()) return;
  poison_poll();
  if (!to_host(a)) return;
  context_refresh(&thread_self);
  if (a->blocking || c->flags & WEIR_EVF_STAGED || (!reroute_tag(dst) && !pointer_known(dst)))
    poison_check(&copy);
  else
    poison_check_later(&copy, stream_of_copy(c, a));
}
