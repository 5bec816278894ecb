/* access.c: see access.h. Four tables, all lock-free: of handles, what they are and which of their
 * parameters hold words (a *layout*); of sets, their numbers by the hash of their words; of a
 * kernel and a set, whether the bytes of its parameters were always the same; and guesses, two words
 * each, from the hash of a launch to the number of its set and the hash of all its bytes.
 *
 * A handle's layout holds for an *age*: code that goes begins a new one, in which the driver is
 * asked again, and so does a handle that is handed out anew. A stale layout would have parameters
 * read that are not there. */
#include "interpose/record/access.h"

#include <string.h>
#include <sys/mman.h>
#include "core/base/pages.h"
#include "interpose/elf/elf.h"
#include "interpose/record/hash_table.h"

enum {
  MOST_BYTES = 32764, /* of all parameters of a kernel, by CUDA's documentation */
  MOST_PARTS = 512,   /* parameters; of a kernel with more nothing is known */
  MOST_WORDS = 512,   /* in a set */
  MOST_SETS = 65536,  /* in a spool */
  GUESSES = 4096,
  RECENT = 256,
  ARENA_BYTES = 64 << 10
};

/* The 8-byte words of a parameter, and the bytes after them. */
typedef struct layout_part {
  uint16_t index; /* of the parameter */
  uint16_t words;
  uint32_t rest; /* bytes, fewer than 8 */
} layout_part;

typedef struct access_layout {
  uint64_t handle, age; /* whose it is, and the age it was asked in */
  uint32_t count;
  layout_part part[];
} access_layout;

/* Room for the longest. */
typedef struct whole_layout {
  uint64_t handle, age;
  uint32_t count;
  layout_part part[MOST_PARTS];
} whole_layout;

typedef struct word_set {
  unsigned count, parameters; /* parameters: and one more; 0: it is not known how many there are */
  bool overflows;             /* there are more words: the set is not known */
  access_word word[MOST_WORDS]; /* ascending, those of one address by their parameters */
} word_set;

/* What a launch is handed: parameters by a layout, or a buffer of words. */
typedef struct launch_words {
  const access_layout *layout; /* NULL: a buffer */
  const void *const *args;
  const char *buffer;
  size_t words; /* in the buffer */
} launch_words;

bool access_wanted;

/* x: the layout, 0: not known; y: access_handle, and from bit 2 on the age it was asked in, 0: it
 * was not. */
static hash_table handles;
static _Atomic uint64_t layout_age = 1;
static _Atomic(const access_layout *) recent[RECENT]; /* by handle: what was found last */
static hash_table sets;                               /* x: number, y: 1 */
static hash_table bytes_of; /* of a kernel and a set; x: hash of the parameters, y: steadiness */
static _Atomic uint32_t set_count;
static _Atomic uint64_t guesses[GUESSES]; /* 40 bits of the hash, 24 of the number; 0: none */
static _Atomic uint64_t steady[GUESSES];  /* hash of all bytes; where they vary, that of the guess
                                             inverted */

typedef enum steadiness { STEADY = 1, VARIES = 2 } steadiness;

/* ---- handles --------------------------------------------------------------------------------- */

static inline unsigned place_of_recent(uint64_t handle)
{
  return (unsigned)(handle * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

void access_met(uint64_t handle, access_handle what)
{
  if (!access_wanted || !handle) return;
  hash_table_put(&handles, handle, 0, what);
  atomic_store_explicit(&recent[place_of_recent(handle)], NULL, memory_order_release);
}

void access_forget_all(void)
{
  atomic_fetch_add(&layout_age, 1);
}

void access_forked(void)
{
  atomic_store(&set_count, 0);
}

/* ---- layouts --------------------------------------------------------------------------------- */

typedef CUresult param_info_fn(void *handle, size_t index, size_t *offset, size_t *size);

static CUresult function_param(void *handle, size_t index, size_t *offset, size_t *size)
{
  return WEIR_HELPER(cuFuncGetParamInfo)((CUfunction)handle, index, offset, size);
}

static CUresult kernel_param(void *handle, size_t index, size_t *offset, size_t *size)
{
  return WEIR_HELPER(cuKernelGetParamInfo)((CUkernel)handle, index, offset, size);
}

/* "CUDA_ERROR_INVALID_VALUE if paramIndex is out of range": the parameter after the last. False:
 * the driver does not know, or there are more than are read. */
static bool ask_layout(void *handle, param_info_fn *ask, whole_layout *out)
{
  size_t offset, bytes, all = 0;
  out->count = 0;
  for (size_t i = 0;; i++) {
    CUresult r = ask(handle, i, &offset, &bytes);
    if (r == CUDA_ERROR_INVALID_VALUE) return true;
    if (r != CUDA_SUCCESS || bytes > MOST_BYTES || (all += bytes) > MOST_BYTES) return false;
    if (out->count == MOST_PARTS) return false;
    out->part[out->count++] = (layout_part){(uint16_t)i, (uint16_t)(bytes / sizeof(uint64_t)),
                                            (uint32_t)(bytes % sizeof(uint64_t))};
  }
}

static bool function_layout(uint64_t function, whole_layout *out)
{
  return function && WEIR_HELPER(cuFuncGetParamInfo) &&
         ask_layout((void *)(uintptr_t)function, function_param, out);
}

static bool kernel_layout(uint64_t kernel, whole_layout *out)
{
  return kernel && WEIR_HELPER(cuKernelGetParamInfo) &&
         ask_layout((void *)(uintptr_t)kernel, kernel_param, out);
}

/* The function of a stub, by the runtime that has just launched it. The question must leave no
 * error of its own for the program's cudaGetLastError(). */
static uint64_t function_of_stub(const hook_call *c, uint64_t stub)
{
  typedef cudaError_t error_fn(void);
  typedef cudaError_t find_fn(cudaFunction_t *, const void *);
  const char *runtime = cuda_library_soname(c->bank);
  error_fn *peek = (error_fn *)(uintptr_t)elf_symbol(runtime, "cudaPeekAtLastError");
  error_fn *take = (error_fn *)(uintptr_t)elf_symbol(runtime, "cudaGetLastError");
  find_fn *find = (find_fn *)(uintptr_t)elf_symbol(runtime, "cudaGetFuncBySymbol");
  cudaFunction_t function = NULL;
  if (!peek || !take || !find || peek() != cudaSuccess) return 0;
  if (find(&function, (const void *)(uintptr_t)stub) == cudaSuccess)
    return (uint64_t)(uintptr_t)function;
  (void)take();
  return 0;
}

static bool find_layout(const hook_call *c, uint64_t handle, access_handle what, whole_layout *out)
{
  switch (what) {
  case WEIR_HANDLE_STUB:
    return c->bank != WEIR_BANK_DRIVER && function_layout(function_of_stub(c, handle), out);
  case WEIR_HANDLE_KERNEL:
    return kernel_layout(handle, out);
  case WEIR_HANDLE_FUNCTION:
    return function_layout(handle, out);
  default:
    return false;
  }
}

/* Layouts are never given back: a launch in another thread may be reading one. */
typedef struct layout_arena {
  _Atomic size_t used;
  char bytes[];
} layout_arena;

static _Atomic(layout_arena *) layout_arenas;

static const access_layout *keep_layout(const whole_layout *w)
{
  const size_t room = ARENA_BYTES - sizeof(layout_arena);
  const size_t align = _Alignof(access_layout);
  size_t bytes = offsetof(whole_layout, part) + w->count * sizeof w->part[0];
  size_t taken = (bytes + align - 1) / align * align;
  layout_arena *a = atomic_load(&layout_arenas);
  for (;;) {
    if (a) {
      size_t at = atomic_fetch_add(&a->used, taken);
      if (at <= room - taken) return memcpy(a->bytes + at, w, bytes);
    }
    layout_arena *fresh = pages_alloc(ARENA_BYTES);
    if (!fresh) return NULL;
    if (atomic_compare_exchange_strong(&layout_arenas, &a, fresh))
      a = fresh;
    else
      munmap(fresh, ARENA_BYTES);
  }
}

__attribute__((noinline)) static const access_layout *
find_new_layout(const hook_call *c, uint64_t handle, access_handle what, uint64_t age)
{
  whole_layout w;
  if (what == WEIR_HANDLE_UNMET) return NULL;
  w.handle = handle;
  w.age = age;
  const access_layout *l = find_layout(c, handle, what, &w) ? keep_layout(&w) : NULL;
  hash_table_put(&handles, handle, (uint64_t)(uintptr_t)l, age << 2 | what);
  return l;
}

/* Out of line: what was found last is at hand. */
__attribute__((noinline)) static const access_layout *search_layout(const hook_call *c,
                                                                    uint64_t handle, uint64_t age)
{
  const hash_entry *e = hash_table_find(&handles, handle);
  uint64_t y = e ? atomic_load_explicit(&e->y, memory_order_acquire) : 0;
  const access_layout *l =
      y >> 2 == age
          ? (const access_layout *)(uintptr_t)atomic_load_explicit(&e->x, memory_order_relaxed)
          : find_new_layout(c, handle, (access_handle)(y & 3), age);
  if (l) atomic_store_explicit(&recent[place_of_recent(handle)], l, memory_order_release);
  return l;
}

/* NULL: not known. A handle that is handed out anew has no layout of this age until it is asked. */
static inline const access_layout *layout_of(const hook_call *c, uint64_t handle)
{
  _Static_assert(RECENT == 1 << 8, "eight bits are a place");
  const access_layout *l =
      atomic_load_explicit(&recent[place_of_recent(handle)], memory_order_acquire);
  uint64_t age = atomic_load_explicit(&layout_age, memory_order_acquire);
  if (__builtin_expect(l && l->handle == handle && l->age == age, 1)) return l;
  return search_layout(c, handle, age);
}

/* ---- words ----------------------------------------------------------------------------------- */

static inline uint64_t load_word(const void *at)
{
  uint64_t word;
  memcpy(&word, at, sizeof word);
  return word;
}

static inline uint64_t mix_word(uint64_t hash, uint64_t word)
{
  return ((hash << 29 | hash >> 35) ^ word) * UINT64_C(0x9fb21c651e98df25);
}

static inline uint64_t finish_hash(uint64_t hash)
{
  hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
  return hash ^ hash >> 32;
}

/* What makes the hashes of a launch: `sum` of what may point into blocks, whose bounds are `low` and
 * `span`, `all` of all bytes of the parameters. */
typedef struct word_hash {
  uint64_t sum, all, low, span;
} word_hash;

static inline uint64_t add_product(uint64_t sum, uint64_t word)
{
  word *= UINT64_C(0x9fb21c651e98df25);
  return (sum << 29 | sum >> 35) + (word ^ word >> 32);
}

/* In `sum` a word counts as 0 where no block can be. Each is multiplied apart from those before it,
 * so that the products are under way at the same time. */
static inline void hash_word(word_hash *h, const void *at)
{
  uint64_t word = load_word(at);
  h->all = add_product(h->all, word);
  h->sum = add_product(h->sum, word - h->low < h->span ? word : 0);
}

/* Fewer bytes than a word. */
static inline void hash_rest(word_hash *h, const char *at, uint32_t bytes)
{
  uint32_t four = 0;
  uint64_t rest = 0;
  if (__builtin_expect(bytes == sizeof four, 1)) {
    memcpy(&four, at, sizeof four);
    rest = four;
  } else {
    for (uint32_t i = 0; i < bytes; i++)
      rest = rest << 8 | (unsigned char)at[i];
  }
  h->all = add_product(h->all, rest);
}

static inline word_hash hash_begin(const hook_call *c, uint64_t function)
{
  uint64_t blocks = atomic_load_explicit(&pointer_blocks_added, memory_order_relaxed);
  uint64_t low = atomic_load_explicit(&pointer_blocks_low, memory_order_relaxed);
  return (word_hash){.sum = mix_word(function ^ (uint64_t)c->thread->epoch << 48, blocks),
                     .all = function,
                     .low = low,
                     .span =
                         atomic_load_explicit(&pointer_blocks_high, memory_order_relaxed) - low};
}

static void hash_run(word_hash *h, const char *at, size_t words)
{
  for (size_t i = 0; i < words; i++)
    hash_word(h, at + i * sizeof(uint64_t));
}

/* False: a parameter is not there. */
static inline bool hash_parameters(word_hash *hash, const access_layout *layout,
                                   const void *const *args)
{
  word_hash h = *hash; /* in registers */
  const layout_part *p = layout->part, *end = p + layout->count;
  for (; p != end; p++) {
    const char *arg = args[p->index];
    if (__builtin_expect(!arg, 0)) return false;
    if (p->words) hash_word(&h, arg);
    for (unsigned i = 1; __builtin_expect(i < p->words, 0); i++)
      hash_word(&h, arg + i * sizeof(uint64_t));
    if (p->rest) hash_rest(&h, arg + p->words * sizeof(uint64_t), p->rest);
  }
  *hash = h;
  return true;
}

/* Of a parameter a word counts once; of a buffer, whose parameters are not known, too. */
static void add_word(word_set *s, access_word w)
{
  unsigned at = s->count;
  if (!w.word || !pointer_tag(w.word)) return;
  while (at && (s->word[at - 1].word > w.word ||
                (s->word[at - 1].word == w.word && s->word[at - 1].parameter > w.parameter)))
    at--;
  if (at && s->word[at - 1].word == w.word && s->word[at - 1].parameter == w.parameter) return;
  if (s->count == MOST_WORDS) {
    s->overflows = true;
    return;
  }
  memmove(&s->word[at + 1], &s->word[at], (s->count++ - at) * sizeof w);
  s->word[at] = w;
}

static void gather_words(const launch_words *l, word_set *s)
{
  s->count = 0;
  s->overflows = false;
  s->parameters = l->layout ? l->layout->count + 1 : 0;
  if (!l->layout)
    for (size_t i = 0; i < l->words; i++)
      add_word(s, (access_word){.word = load_word(l->buffer + i * sizeof(uint64_t))});
  for (uint32_t p = 0; l->layout && p < l->layout->count; p++) {
    const layout_part *of = &l->layout->part[p];
    const char *arg = l->args[of->index];
    for (unsigned i = 0; arg && i < of->words; i++)
      add_word(s, (access_word){load_word(arg + i * sizeof(uint64_t)), of->index, (uint16_t)i, 0});
  }
}

/* ---- sets ------------------------------------------------------------------------------------ */

/* A set of no words is one, too: of a launch that is handed no block. 0: there is no room. */
static uint32_t write_set(hook_call *c, const word_set *s, uint64_t key)
{
  if (atomic_load_explicit(&set_count, memory_order_relaxed) >= MOST_SETS) return 0;
  uint32_t number = atomic_fetch_add(&set_count, 1) + 1;
  trace_event head = {
      .start = c->end, .access_fact = WEIR_ACCESS_SET, .a = number, .b = s->parameters};
  if (!spool_writer_extended(&c->thread->writer, WEIR_EV_ACCESS, &head, s->word,
                             s->count * sizeof s->word[0]))
    return 0;
  return hash_table_put(&sets, key, number, 1) ? number : 0;
}

static uint32_t number_set(hook_call *c, const word_set *s)
{
  uint64_t key = mix_word(c->thread->epoch, (uint64_t)s->parameters << 32 | s->count);
  if (s->overflows) return 0;
  for (unsigned i = 0; i < s->count; i++)
    key = mix_word(mix_word(key, s->word[i].word),
                   (uint64_t)s->word[i].parameter << 16 | s->word[i].part);
  key = finish_hash(key);
  const hash_entry *e = hash_table_find(&sets, key);
  if (e && atomic_load_explicit(&e->y, memory_order_acquire))
    return (uint32_t)atomic_load_explicit(&e->x, memory_order_relaxed);
  return write_set(c, s, key);
}

static uint32_t find_words_set(hook_call *c, const launch_words *l)
{
  word_set s;
  gather_words(l, &s);
  return number_set(c, &s);
}

/* ---- whether all parameters are what they were ------------------------------------------------ */

/* A kernel has the set again, with other bytes in its parameters. False: the record did not fit. */
static bool write_varies(hook_call *c, uint64_t function, uint32_t set)
{
  trace_event head = {.start = c->end, .access_fact = WEIR_ACCESS_VARIES, .a = set};
  return spool_writer_extended(&c->thread->writer, WEIR_EV_ACCESS, &head, &function,
                               sizeof function);
}

/* What `steady` has from now on for launches of this hash: 0 where nothing is known. */
static uint64_t compare_bytes(hook_call *c, uint64_t function, uint32_t set, uint64_t hash,
                              uint64_t all)
{
  uint64_t key = finish_hash(mix_word(mix_word(c->thread->epoch, function), set));
  const hash_entry *e = hash_table_find(&bytes_of, key);
  if (!e) return hash_table_put(&bytes_of, key, all, STEADY) ? all : 0;
  if (atomic_load_explicit(&e->y, memory_order_acquire) == VARIES) return ~hash;
  if (atomic_load_explicit(&e->x, memory_order_relaxed) == all) return all;
  if (!write_varies(c, function, set)) return 0;
  return hash_table_put(&bytes_of, key, all, VARIES) ? ~hash : 0;
}

/* Out of line: most launches have the bytes of the last one of their guess, or those vary. */
__attribute__((noinline)) static void note_bytes(hook_call *c, uint64_t function, uint32_t set,
                                                 uint64_t hash, uint64_t all)
{
  atomic_store_explicit(&steady[hash >> 52], compare_bytes(c, function, set, hash, all),
                        memory_order_relaxed);
}

static inline void see_bytes(hook_call *c, uint64_t function, uint32_t set, uint64_t hash,
                             uint64_t all)
{
  uint64_t known = atomic_load_explicit(&steady[hash >> 52], memory_order_relaxed);
  if (__builtin_expect(known != all && known != ~hash, 0)) note_bytes(c, function, set, hash, all);
}

/* ---- guesses --------------------------------------------------------------------------------- */

enum { NUMBER_BITS = 24 };

__attribute__((noinline)) static uint32_t find_and_guess(hook_call *c, uint64_t hash,
                                                         const launch_words *l)
{
  uint32_t set = find_words_set(c, l);
  if (set)
    atomic_store_explicit(&guesses[hash >> 52], hash << NUMBER_BITS | set, memory_order_relaxed);
  return set;
}

/* 0: there is no guess. */
static inline uint32_t guess_set(uint64_t hash)
{
  uint64_t guess = atomic_load_explicit(&guesses[hash >> 52], memory_order_relaxed);
  bool same = (guess ^ hash << NUMBER_BITS) >> NUMBER_BITS == 0;
  return same ? (uint32_t)guess & ((1u << NUMBER_BITS) - 1) : 0;
}

/* ---- launches -------------------------------------------------------------------------------- */

/* The buffer that `extra` names; false: it names none, or one that no kernel takes. */
static bool read_extra(const void *const *extra, launch_words *out)
{
  enum { MOST_PAIRS = 4 };
  const size_t *bytes = NULL;
  for (int i = 0; i < 2 * MOST_PAIRS && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) out->buffer = extra[i + 1];
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = extra[i + 1];
  }
  if (!bytes || (*bytes && !out->buffer) || *bytes > MOST_BYTES) return false;
  out->words = *bytes / sizeof(uint64_t);
  return true;
}

__attribute__((noinline)) static uint32_t find_buffer_set(hook_call *c, uint64_t function,
                                                          const void *const *extra)
{
  launch_words l = {0};
  if (!read_extra(extra, &l)) return 0;
  word_hash h = hash_begin(c, function);
  hash_run(&h, l.buffer, l.words);
  uint64_t hash = finish_hash(h.sum);
  uint32_t set = guess_set(hash);
  return set ? set : find_and_guess(c, hash, &l);
}

uint32_t access_find_set(hook_call *c, uint64_t function, uint64_t args, uint64_t extra)
{
  const void *const *parameters = (const void *const *)(uintptr_t)args;
  if (!args && extra) return find_buffer_set(c, function, (const void *const *)(uintptr_t)extra);
  const access_layout *layout = layout_of(c, function);
  if (!layout || (!args && layout->count)) return 0;
  word_hash h = hash_begin(c, function);
  if (!hash_parameters(&h, layout, parameters)) return 0;
  uint64_t hash = finish_hash(h.sum), all = finish_hash(h.all);
  uint32_t set = guess_set(hash);
  if (__builtin_expect(!set, 0))
    set = find_and_guess(c, hash, &(launch_words){.layout = layout, .args = parameters});
  if (set) see_bytes(c, function, set, hash, all);
  return set;
}

uint32_t access_find_node_set(hook_call *c, const CUDA_KERNEL_NODE_PARAMS_v2 *k)
{
  whole_layout w;
  launch_words l = {.args = (const void *const *)k->kernelParams};
  if (!access_wanted) return 0;
  if (!k->kernelParams && k->extra)
    return read_extra((const void *const *)k->extra, &l) ? find_words_set(c, &l) : 0;
  uint64_t function = (uint64_t)(uintptr_t)k->func, kernel = (uint64_t)(uintptr_t)k->kern;
  if (!(function ? function_layout(function, &w) : kernel_layout(kernel, &w))) return 0;
  l.layout = (const access_layout *)(const void *)&w;
  for (uint32_t p = 0; p < w.count; p++)
    if (!l.args || !l.args[w.part[p].index]) return 0;
  return find_words_set(c, &l);
}
