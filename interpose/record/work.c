/* work.c: see work.h. A slot is claimed once and for all by the compare-and-swap of its stream; one
 * whose stream is gone can be noted again by a stream of the same handle. When a stream finds no
 * slot, all that is known is that something is under way. */
#include "interpose/record/work.h"

#include <stddef.h>
#include <stdio.h>
#include "core/trace/event.h"
#include "interpose/process/process.h"
#include "interpose/record/unwrapped.h"

work_slot work_slots[WEIR_WORK_SLOTS];
_Atomic uint32_t work_age = 1;
static _Atomic uint32_t lost_age; /* in which a stream found no slot; 0: never */
static _Atomic bool blind;        /* something unseen may have started work */
static _Atomic uint64_t claimed[WEIR_WORK_SLOTS / 64]; /* bitmap of slots */
static _Atomic uint64_t claimed_words;                 /* bitmap of the words that are not 0 */

static work_slot *slot_of_work(unsigned context, uint64_t stream, bool claim)
{
  for (unsigned i = 0, at = work_home(context, stream); i < WEIR_WORK_PROBES; i++, at++) {
    work_slot *s = &work_slots[at % WEIR_WORK_SLOTS];
    uint64_t held = atomic_load_explicit(&s->stream, memory_order_acquire);
    if (!held && !claim) return NULL;
    if (!held) {
      /* The context is there before anybody can take the slot for its stream's. */
      uint32_t none = 0;
      if (!atomic_compare_exchange_strong(&s->context, &none, context) && none != context) continue;
      if (atomic_compare_exchange_strong(&s->stream, &held, stream)) {
        unsigned n = at % WEIR_WORK_SLOTS;
        atomic_fetch_or(&claimed[n / 64], UINT64_C(1) << n % 64);
        atomic_fetch_or(&claimed_words, UINT64_C(1) << n / 64);
        return s;
      }
    }
    if (held == stream && atomic_load_explicit(&s->context, memory_order_relaxed) == context)
      return s;
  }
  return NULL;
}

/* The first claimed slot from `i` on, -1: none. */
static inline int next_claimed(int i)
{
  _Static_assert(WEIR_WORK_SLOTS / 64 < 64, "one word tells of all");
  uint64_t words = atomic_load_explicit(&claimed_words, memory_order_acquire) >> i / 64 << i / 64;
  for (; words; words &= words - 1) {
    int w = __builtin_ctzll(words);
    uint64_t left = atomic_load_explicit(&claimed[w], memory_order_acquire);
    if (w == i / 64) left = left >> i % 64 << i % 64;
    if (left) return w * 64 + __builtin_ctzll(left);
  }
  return -1;
}

void work_note_slow(unsigned context, uint64_t stream)
{
  work_slot *s = slot_of_work(context, stream, true);
  uint32_t age = atomic_load(&work_age);
  atomic_store(s ? &s->age : &lost_age, age);
}

uint32_t work_wait_begins(void)
{
  return atomic_fetch_add(&work_age, 1);
}

static void clear_if_waited(_Atomic uint32_t *age, uint32_t waited)
{
  uint32_t seen = atomic_load(age);
  while (seen && (int32_t)(seen - waited) <= 0 && !atomic_compare_exchange_weak(age, &seen, 0))
    ;
}

void work_waited(unsigned context, uint32_t waited)
{
  for (int i = next_claimed(0); i >= 0; i = next_claimed(i + 1)) {
    work_slot *s = &work_slots[i];
    if (atomic_load_explicit(&s->context, memory_order_relaxed) == context)
      clear_if_waited(&s->age, waited);
  }
}

void work_forget_context(unsigned context)
{
  work_waited(context, atomic_load(&work_age));
}

bool work_busy(unsigned context, uint64_t stream)
{
  work_slot *s = slot_of_work(context, stream, false);
  return s && atomic_load(&s->age);
}

void work_forget_stream(unsigned context, uint64_t stream)
{
  work_slot *s = slot_of_work(context, stream, false);
  if (s) atomic_store(&s->age, 0);
}

void work_note_unknown(const char *why)
{
  char text[160];
  if (atomic_exchange(&blind, true)) return;
  (void)snprintf(text, sizeof text, "frees wait for the device from here on: %s", why);
  weir_note(text);
}

/* What nobody wrapped was called: it is reported once, and remembered. */
static bool has_unknown_work(void)
{
  char text[96];
  if (!atomic_load(&blind)) {
    const char *name = unwrapped_called();
    if (!name) return false;
    if (unwrapped_overflowed()) {
      work_note_unknown("more unknown functions were looked up than can be watched");
      return true;
    }
    (void)snprintf(text, sizeof text, "%s, which Weir does not know, was called", name);
    work_note_unknown(text);
  }
  return true;
}

int work_list(unsigned context, void **streams, int room)
{
  int n = 0;
  if (has_unknown_work() || atomic_load(&lost_age)) return -1;
  for (int i = next_claimed(0); i >= 0; i = next_claimed(i + 1)) {
    const work_slot *s = &work_slots[i];
    if (atomic_load_explicit(&s->context, memory_order_relaxed) != context) continue;
    if (!atomic_load(&s->age)) continue;
    uint64_t stream = atomic_load_explicit(&s->stream, memory_order_relaxed);
    if (stream == WEIR_STREAM_PER_THREAD || n == room) return -1;
    streams[n++] = (void *)(uintptr_t)stream;
  }
  return n;
}
