/* ranges.c: ranges and marks become records, a RANGE each for the beginning and for the end.
 *
 * Push and pop are of a thread and of a domain: a pop ends the range of its domain that was pushed
 * last, and leaves other domains' ranges alone. The thread keeps what it has open, so that a pop's
 * record has the number of the push that it ends; a record that is lost then harms no other range.
 * A pop without a push (one too many, or of a range that another thread or a fork's parent pushed)
 * is not recorded. What is nested more than NVTX_MOST_OPEN deep is counted only.
 *
 * While only memory is recorded (process/recording.h) a range that begins is left out with its end;
 * one that began before ends in the trace.
 *
 * Start and end go by a number that is the process's: any thread may end a range. */
#include <string.h>
#include <sys/mman.h>
#include "core/base/clock.h"
#include "interpose/nvtx/nvtx.h"
#include "interpose/process/part.h"
#include "interpose/process/recording.h"

static __thread nvtx_thread *own __attribute__((tls_model("initial-exec")));
static _Atomic uint64_t started; /* ranges, in this process and its parents */

#define LEFT_OUT (UINT64_C(1) << 63) /* in the number of a range whose start is not recorded */

enum {
  MARK_EX,
  MARK_A,
  MARK_W,
  START_EX,
  START_A,
  START_W,
  END,
  PUSH_EX,
  PUSH_A,
  PUSH_W,
  POP,
  DOMAIN_MARK,
  DOMAIN_START,
  DOMAIN_END,
  DOMAIN_PUSH,
  DOMAIN_POP
};

static nvtx_thread *begin_thread(const thread_state *t)
{
  if (!own) {
    void *m = mmap(NULL, sizeof *own, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED) return NULL;
    own = m;
  } else {
    nvtx_forget_names(own);
    memset(own, 0, sizeof *own);
  }
  own->epoch = t->epoch;
  return own;
}

static inline nvtx_thread *nvtx_thread_of(const thread_state *t)
{
  nvtx_thread *n = own;
  return __builtin_expect(n && n->epoch == t->epoch, 1) ? n : begin_thread(t);
}

static void end_thread_ranges(void)
{
  if (own) nvtx_forget_names(own);
  if (own) munmap(own, sizeof *own);
  own = NULL;
}

static const process_part part = {.thread_ends = end_thread_ranges};
PROCESS_PART(part);

/* ---- records --------------------------------------------------------------------------------- */

typedef struct range_fields {
  uint64_t time, number, payload; /* ticks; of the range; by its type */
  uint32_t name, domain;          /* of its RANGE_NAME; number, 0: none */
  uint8_t what, payload_type;     /* range_fact, nvtxPayloadType_t */
} range_fields;

static inline void write_range_record(spool_writer *writer, const range_fields *r)
{
  trace_event *slot = spool_writer_slots(writer, 1);
  if (__builtin_expect(!slot, 0)) return;
  const event_word w[8] = {(uint64_t)WEIR_EV_RANGE << 32,
                           r->time,
                           0,
                           (uint64_t)WEIR_DEVICE_NONE << 32 | (uint64_t)WEIR_DEVICE_NONE << 40 |
                               (uint64_t)r->what << 48 | (uint64_t)r->payload_type << 56,
                           r->name,
                           r->payload,
                           r->number,
                           r->domain};
  event_word *to = (event_word *)(void *)slot;
  to[1] = w[1], to[2] = w[2], to[3] = w[3], to[4] = w[4], to[5] = w[5], to[6] = w[6], to[7] = w[7];
  __atomic_store_n(to, w[0] | event_words_check(w, writer->place), __ATOMIC_RELEASE);
  writer->next++;
  writer->place++;
}

/* The attributes of a range or mark. */
typedef struct range_words {
  nvtxDomainHandle_t domain;
  nvtx_message message;
  uint32_t category, color;
  uint64_t payload;
  int32_t payload_type;
} range_words;

/* Attributes of any version: what is beyond `size` is not there. */
static range_words event_words(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
  range_words x = {.domain = domain};
  if (!a || a->size < offsetof(nvtxEventAttributes_t, message) + sizeof(a->message)) return x;
  x.category = a->category;
  x.color = a->colorType == NVTX_COLOR_ARGB ? a->color : 0;
  x.message = (nvtx_message){a->messageType, a->message};
  if (a->payloadType < NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 || a->payloadType > NVTX_PAYLOAD_TYPE_FLOAT)
    return x;
  x.payload_type = a->payloadType;
  x.payload =
      a->payloadType >= NVTX_PAYLOAD_TYPE_UNSIGNED_INT32 ? a->payload.uiValue : a->payload.ullValue;
  return x;
}

static inline uint32_t domain_number(nvtxDomainHandle_t domain)
{
  const nvtx_text *d = domain ? nvtx_domain_of(domain) : NULL;
  return d ? d->number : 0;
}

static void record_words(unsigned what, uint64_t number, const range_words *x, uint64_t time)
{
  thread_state *t = &thread_self;
  if (recording_is_partial() || !nvtx_record_begin(t)) return;
  nvtx_thread *n = nvtx_thread_of(t);
  if (n) {
    range_fields r = {
        .time = time,
        .number = number,
        .payload = x->payload,
        .what = (uint8_t)what,
        .payload_type = (uint8_t)x->payload_type,
        .name = nvtx_name_of(n, &t->writer, x->domain, &x->message, x->category, x->color)};
    write_range_record(&t->writer, &r);
  }
  nvtx_record_end(t);
}

static void count_deeper(nvtx_thread *n)
{
  spool_header *h = spool_current();
  n->deeper++;
  if (h) atomic_fetch_add_explicit(&h->deep_ranges, 1, memory_order_relaxed);
}

/* All calls are to be recorded in ranges of that name. */
static bool is_window(const range_words *x)
{
  char text[NVTX_MOST_TEXT];
  if (__builtin_expect(!recording_range, 1)) return false;
  size_t bytes = nvtx_utf8(text, &x->message);
  return bytes == strlen(recording_range) && !memcmp(text, recording_range, bytes);
}

/* Of a range that is left out of the trace only its domain is kept, so that a pop finds its own. */
static void push_unrecorded(nvtx_thread *n, uint32_t domain)
{
  n->stack[n->open].domain = domain;
  n->stack[n->open].opens = false;
  n->stack[n->open++].push = 0;
}

static void record_push(const range_words *x)
{
  thread_state *t = &thread_self;
  const bool opens = is_window(x);
  if (opens) recording_window(true);
  bool left_out = recording_is_partial(), kept = false;
  uint64_t time = left_out ? 0 : clock_ticks();
  if (!nvtx_record_begin(t)) {
    if (opens) recording_window(false); /* nobody would see its end */
    return;
  }
  nvtx_thread *n = nvtx_thread_of(t);
  if (n && n->open == NVTX_MOST_OPEN) {
    count_deeper(n);
  } else if (n && left_out) {
    push_unrecorded(n, domain_number(x->domain));
  } else if (n) {
    range_fields r = {
        .time = time,
        .number = ++n->pushes,
        .payload = x->payload,
        .what = WEIR_RANGE_PUSH,
        .payload_type = (uint8_t)x->payload_type,
        .name = nvtx_name_of(n, &t->writer, x->domain, &x->message, x->category, x->color)};
    r.domain = domain_number(x->domain);
    n->stack[n->open].domain = r.domain;
    n->stack[n->open].opens = kept = opens;
    n->stack[n->open++].push = n->pushes;
    write_range_record(&t->writer, &r);
  }
  nvtx_record_end(t);
  if (opens && !kept) recording_window(false);
}

/* The number of the range that a pop ends, which is open no more; 0: none. *closes: with a window. */
static uint64_t pop_number(nvtx_thread *n, uint32_t domain, bool *closes)
{
  uint32_t i = n->open;
  if (n->deeper) {
    n->deeper--;
    return 0;
  }
  while (i && n->stack[i - 1].domain != domain)
    i--;
  if (!i) return 0;
  uint64_t push = n->stack[i - 1].push;
  *closes = n->stack[i - 1].opens;
  for (n->open--; i <= n->open; i++)
    n->stack[i - 1] = n->stack[i];
  return push;
}

static void record_pop(nvtxDomainHandle_t domain)
{
  thread_state *t = &thread_self;
  if (!nvtx_record_begin(t)) return;
  nvtx_thread *n = nvtx_thread_of(t);
  uint32_t number = domain_number(domain);
  bool closes = false;
  uint64_t push = n ? pop_number(n, number, &closes) : 0;
  if (push) {
    range_fields r = {
        .time = clock_ticks(), .number = push, .domain = number, .what = WEIR_RANGE_POP};
    write_range_record(&t->writer, &r);
  }
  nvtx_record_end(t);
  if (closes) recording_window(false);
}

/* Started ranges that are windows, by their numbers. */
enum { MOST_WINDOWS = 64 };
static _Atomic uint64_t window_ids[MOST_WINDOWS];

static void remember_window(nvtxRangeId_t id)
{
  for (int i = 0; i < MOST_WINDOWS && id; i++) {
    uint64_t none = 0;
    if (atomic_compare_exchange_strong(&window_ids[i], &none, id)) return;
  }
  recording_window(false);
}

static void end_window(nvtxRangeId_t id)
{
  for (int i = 0; i < MOST_WINDOWS && id && recording_range; i++) {
    uint64_t same = id;
    if (!atomic_compare_exchange_strong(&window_ids[i], &same, 0)) continue;
    recording_window(false);
    return;
  }
}

static void record_end(nvtxRangeId_t id)
{
  thread_state *t = &thread_self;
  if (id & LEFT_OUT || !nvtx_record_begin(t)) return;
  range_fields r = {.time = clock_ticks(), .number = id, .what = WEIR_RANGE_END};
  write_range_record(&t->writer, &r);
  nvtx_record_end(t);
  end_window(id);
}

/* 0: a range whose end cannot be known. */
static nvtxRangeId_t new_range(void)
{
  if (atomic_load_explicit(&nvtx_next_is_there, memory_order_relaxed)) return 0;
  if (recording_is_partial()) return LEFT_OUT;
  return atomic_fetch_add_explicit(&started, 1, memory_order_relaxed) + 1;
}

/* ---- NVTX's functions ------------------------------------------------------------------------ */

#define HOOK(index) nvtx_range_hooks[index]

/* Bare, a push and a pop answer that nobody keeps levels, and so do ours without a next tool. */
#define PUSH(name, index, type, parameters, arguments, words)                                      \
  static int NVTX_API name parameters                                                              \
  {                                                                                                \
    type next = NVTX_NEXT(HOOK(index), type);                                                      \
    const range_words x = words;                                                                   \
    record_push(&x);                                                                               \
    return next ? next arguments : NVTX_NO_PUSH_POP_TRACKING;                                      \
  }

#define MARK(name, index, type, parameters, arguments, words)                                      \
  static void NVTX_API name parameters                                                             \
  {                                                                                                \
    type next = NVTX_NEXT(HOOK(index), type);                                                      \
    const range_words x = words;                                                                   \
    record_words(WEIR_RANGE_MARK, 0, &x, clock_ticks());                                           \
    if (next) next arguments;                                                                      \
  }

#define START(name, index, type, parameters, arguments, words)                                     \
  static nvtxRangeId_t NVTX_API name parameters                                                    \
  {                                                                                                \
    type next = NVTX_NEXT(HOOK(index), type);                                                      \
    uint64_t time = clock_ticks();                                                                 \
    const range_words x = words;                                                                   \
    const bool opens = is_window(&x);                                                              \
    if (opens) recording_window(true);                                                             \
    nvtxRangeId_t id = next ? next arguments : new_range();                                        \
    record_words(WEIR_RANGE_START, id, &x, time);                                                  \
    if (opens) remember_window(id);                                                                \
    return id;                                                                                     \
  }

#define WORDS_A                                                                                    \
  {                                                                                                \
    .message = nvtx_ascii(text)                                                                    \
  }
#define WORDS_W                                                                                    \
  {                                                                                                \
    .message = nvtx_unicode(text)                                                                  \
  }
#define WORDS_EX event_words(NULL, a)
#define WORDS_IN event_words(domain, a)

#define FOUR(WHAT, f, index, index_in)                                                             \
  WHAT(f##_ex, index, nvtx##f##Ex_impl_fntype, (const nvtxEventAttributes_t *a), (a), WORDS_EX)    \
  WHAT(f##_a, (index) + 1, nvtx##f##A_impl_fntype, (const char *text), (text), WORDS_A)            \
  WHAT(f##_w, (index) + 2, nvtx##f##W_impl_fntype, (const wchar_t *text), (text), WORDS_W)         \
  WHAT(f##_in, index_in, nvtxDomain##f##Ex_impl_fntype,                                            \
       (nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a), (domain, a), WORDS_IN)

FOUR(MARK, Mark, MARK_EX, DOMAIN_MARK)
FOUR(START, RangeStart, START_EX, DOMAIN_START)
FOUR(PUSH, RangePush, PUSH_EX, DOMAIN_PUSH)

static void NVTX_API end_range(nvtxRangeId_t id)
{
  nvtxRangeEnd_impl_fntype next = NVTX_NEXT(HOOK(END), nvtxRangeEnd_impl_fntype);
  record_end(id);
  if (next) next(id);
}

static void NVTX_API end_range_in(nvtxDomainHandle_t domain, nvtxRangeId_t id)
{
  nvtxDomainRangeEnd_impl_fntype next = NVTX_NEXT(HOOK(DOMAIN_END), nvtxDomainRangeEnd_impl_fntype);
  record_end(id);
  if (next) next(domain, id);
}

static int NVTX_API pop_range(void)
{
  nvtxRangePop_impl_fntype next = NVTX_NEXT(HOOK(POP), nvtxRangePop_impl_fntype);
  record_pop(NULL);
  return next ? next() : NVTX_NO_PUSH_POP_TRACKING;
}

static int NVTX_API pop_range_in(nvtxDomainHandle_t domain)
{
  nvtxDomainRangePop_impl_fntype next = NVTX_NEXT(HOOK(DOMAIN_POP), nvtxDomainRangePop_impl_fntype);
  record_pop(domain);
  return next ? next(domain) : NVTX_NO_PUSH_POP_TRACKING;
}

#define ROW(place, which, id_, f)                                                                  \
  [place] = {.module = NVTX_CB_MODULE_##which,                                                     \
             .id = NVTX_CBID_##which##_##id_,                                                      \
             .function = (NvtxFunctionPointer)(f)}
nvtx_hook nvtx_range_hooks[] = {ROW(MARK_EX, CORE, MarkEx, Mark_ex),
                                ROW(MARK_A, CORE, MarkA, Mark_a),
                                ROW(MARK_W, CORE, MarkW, Mark_w),
                                ROW(START_EX, CORE, RangeStartEx, RangeStart_ex),
                                ROW(START_A, CORE, RangeStartA, RangeStart_a),
                                ROW(START_W, CORE, RangeStartW, RangeStart_w),
                                ROW(END, CORE, RangeEnd, end_range),
                                ROW(PUSH_EX, CORE, RangePushEx, RangePush_ex),
                                ROW(PUSH_A, CORE, RangePushA, RangePush_a),
                                ROW(PUSH_W, CORE, RangePushW, RangePush_w),
                                ROW(POP, CORE, RangePop, pop_range),
                                ROW(DOMAIN_MARK, CORE2, DomainMarkEx, Mark_in),
                                ROW(DOMAIN_START, CORE2, DomainRangeStartEx, RangeStart_in),
                                ROW(DOMAIN_END, CORE2, DomainRangeEnd, end_range_in),
                                ROW(DOMAIN_PUSH, CORE2, DomainRangePushEx, RangePush_in),
                                ROW(DOMAIN_POP, CORE2, DomainRangePop, pop_range_in),
                                {0}};
