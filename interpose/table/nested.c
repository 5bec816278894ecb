/* nested.c: calls that are made within a hooked call. Most are the runtime's, which calls the
 * driver, and those of another interposer: they are the call's own work. What comes from elsewhere
 * was called by a signal handler that interrupted the call, or by a callback of a tool: no event,
 * since the interrupted frame may be writing one, and a routed call may hold the caches' lock; but
 * counted, and reports have how many. The exception: calls of virtual memory that an interposer
 * makes are events too (call_enter_inner()), since it undoes outside of such calls what it did
 * within.
 *
 * Distinguished by where the wrapper returns to: in a CUDA library, or in an object that has one of
 * the functions which the wrappers call, or elsewhere. Nothing here locks or allocates. What
 * libweir's own calls into the driver are interrupted by is not distinguished, and not counted. */
#include <errno.h>
#include <stdatomic.h>
#include "interpose/elf/elf.h"
#include "interpose/process/part.h"
#include "interpose/record/within.h"
#include "interpose/table/wrap.h"

enum { KNOWN = 16 };
static struct {
  _Atomic uintptr_t start; /* 0: free */
  _Atomic size_t bytes;    /* 0: not set yet */
} known[KNOWN];            /* objects whose calls are a call's own work */

static bool holds_original(uintptr_t start, size_t bytes)
{
  for (uint32_t i = 0; i < hook_row_count; i++) {
    uintptr_t at = (uintptr_t)atomic_load_explicit(&hook_originals[i], memory_order_relaxed);
    if (at && at - start < bytes) return true;
  }
  return false;
}

static void remember_caller(uintptr_t start, size_t bytes)
{
  for (int i = 0; i < KNOWN; i++) {
    uintptr_t none = 0;
    if (!atomic_compare_exchange_strong(&known[i].start, &none, start)) continue;
    atomic_store(&known[i].bytes, bytes);
    return;
  }
}

static bool is_known(uintptr_t at, uintptr_t *start, size_t *bytes)
{
  for (int i = 0; i < KNOWN && (*start = atomic_load(&known[i].start)); i++)
    if (at - *start < (*bytes = atomic_load(&known[i].bytes))) return true;
  return false;
}

/* The object is the call's own: its mapping. */
static bool is_inner(const void *site, uintptr_t *start, size_t *bytes)
{
  bool bank = false;
  if (is_known((uintptr_t)site, start, bytes)) return true;
  if (!elf_object_span(site, start, bytes, &bank)) return false;
  if (!bank && !holds_original(*start, *bytes)) return false;
  remember_caller(*start, *bytes);
  return true;
}

bool call_leave_to_driver(hook_call *c, bool allocates, uint64_t key)
{
  if (allocates) context_refresh(c->thread);
  if (allocates && !c->thread->last_context_number) return false;
  c->thread->beneath_key = key;
  c->thread->beneath = c;
  return true;
}

static void name_copies(void)
{
  reroute_copies_know(hook_copy_entries);
}

static const process_part part = {.start = name_copies};
PROCESS_PART(part);

void call_note_nested(thread_state *t, const void *site)
{
  uintptr_t start;
  size_t bytes;
  int saved = errno;
  spool_header *h = spool_current();
  if (t->recording_suspended || is_own_address(site)) return;
  if (is_inner(site, &start, &bytes)) {
    t->inner_bytes = 0; /* a handler in between finds no half */
    atomic_signal_fence(memory_order_seq_cst);
    t->inner_start = start;
    atomic_signal_fence(memory_order_seq_cst);
    t->inner_bytes = bytes;
  } else if (h && atomic_load_explicit(&process_recording, memory_order_relaxed)) {
    atomic_fetch_add_explicit(&h->nested, 1, memory_order_relaxed);
  }
  errno = saved;
}

static bool is_by_another(const thread_state *t, const void *site)
{
  uintptr_t start;
  size_t bytes;
  bool bank = false;
  return within_is_possible() && !t->recording_suspended && !is_own_address(site) &&
         elf_object_span(site, &start, &bytes, &bank) && !bank && holds_original(start, bytes);
}

bool call_enter_inner(hook_call *c, call_outer *outer, uint16_t api, unsigned flags,
                      const void *site)
{
  thread_state *t = &thread_self;
  *outer = (call_outer){0};
  c->inner = false;
  if (!call_is_within(c, t)) return call_begin_outermost(c, t, api, flags, WEIR_BANK_DRIVER);
  if (!is_by_another(t, site)) return call_enter_from(c, api, flags, WEIR_BANK_DRIVER, site);
  call_outer around = {t->outermost, t->depth, t->beneath};
  if (!call_begin_outermost(c, t, api, flags, WEIR_BANK_DRIVER)) return false;
  *outer = around;
  c->inner = true;
  return true;
}

void call_leave_inner(hook_call *c, const call_outer *outer)
{
  call_leave(c);
  if (!outer->outermost) return;
  c->thread->depth = outer->depth;
  c->thread->outermost = outer->outermost;
  c->thread->beneath = outer->beneath;
}
