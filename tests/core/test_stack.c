/* test_stack.c: stacks are right, small numbers are the same for the same stack, and nobody else's
 * unwinding is touched. glibc's backtrace(), which unwinds by libgcc and caches nothing of its own,
 * says what is right. */
#include "core/trace/stack.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/core/support.h"

#if defined(__SANITIZE_THREAD__)
/* The names of loaded objects are read in dl_iterate_phdr(), under the loader's lock, which
 * ThreadSanitizer does not see. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void)
{
  return "race:describe\nrace:hash_bytes\nrace:write_module\nrace:find_module\nrace:set_path\n";
}
#endif

enum { MOST = 65536, TRUTH = 256, MODULES = 256 };

static char folder[256];
static spool_writer pen;
static stack_table *stacks;

static void set_up(void)
{
  void *first[1];
  memset(&pen, 0, sizeof pen);
  stack_release(&stacks);
  make_folder(folder);
  open_spool(folder, 0);
  backtrace(first, 1); /* loads libgcc: before a module map is taken */
}

static void tear_down(void)
{
  remove_folder(folder);
}

/* ---- what was recorded ----------------------------------------------------------------------- */

typedef struct module {
  module_info info;
  uint8_t build_id[64];
  char path[1200];
} module;

static struct {
  uint32_t count[MOST];                     /* frames of a stack by id, 0: not recorded */
  uint64_t (*frames)[WEIR_STACK_MAX_DEPTH]; /* by id */
  uint32_t stacks, loaded, gone;            /* records seen */
  module modules[MODULES];                  /* in order of coming */
  uint64_t gone_base;                       /* of the last gone */
  uint32_t first_stack_after;               /* modules before the first stack */
} seen;

static weir_status take_record(void *context, uint32_t thread, uint32_t tid,
                               const trace_event *head, const void *payload, size_t bytes)
{
  (void)context, (void)thread, (void)tid;
  if (head->kind == WEIR_EV_STACK) {
    ck_assert_uint_lt(head->a, MOST);
    ck_assert_uint_eq(head->bytes * 8, bytes);
    ck_assert_uint_eq(seen.count[head->a], 0); /* an id is not given twice */
    seen.count[head->a] = (uint32_t)head->bytes;
    memcpy(seen.frames[head->a], payload, bytes);
    if (!seen.stacks++) seen.first_stack_after = seen.loaded;
  } else if (head->kind == WEIR_EV_MODULE && head->a) {
    module *m = &seen.modules[seen.loaded++];
    memcpy(&m->info, payload, sizeof m->info);
    memcpy(m->build_id, (const char *)payload + sizeof m->info, m->info.build_id_bytes);
    memcpy(m->path, (const char *)payload + sizeof m->info + m->info.build_id_bytes,
           m->info.path_bytes);
  } else if (head->kind == WEIR_EV_MODULE) {
    memcpy(&seen.gone_base, payload, 8);
    seen.gone++;
  }
  return WEIR_OK;
}

/* Reads the spool of `pid` from its beginning. */
static void read_spool_of(int pid)
{
  char path[512];
  spool_reader *r;
  spool_visitor v = {.extended = take_record};
  free(seen.frames);
  memset(&seen, 0, sizeof seen);
  seen.frames = calloc(MOST, sizeof *seen.frames);
  spool_path(path, folder, pid, 0);
  ck_assert_int_eq(spool_reader_open(&r, path, false), WEIR_OK);
  ck_assert_int_eq(spool_drain(r, &v, true), WEIR_OK);
  ck_assert_uint_eq(spool_reader_damage(r).chunks, 0);
  spool_reader_close(r);
}

static void read_spool(void)
{
  read_spool_of(getpid());
}

/* ---- a stack and the truth about it ---------------------------------------------------------- */

typedef struct sight {
  uint32_t id;
  /* where capture_both_stacks() returns to: both sides are compared from there outwards */
  void *caller;
  int count; /* of truth */
  void *truth[TRUTH];
} sight;

static __attribute__((noinline)) int capture_both_stacks(void *context)
{
  sight *s = context;
  s->caller = __builtin_return_address(0);
  s->id = stack_capture(&stacks, &pen);
  s->count = backtrace(s->truth, TRUTH);
  __asm__ volatile("" ::: "memory");
  return 0;
}

/* Whether the recorded stack is the true one, cut at the depth. */
static bool is_true(const sight *s)
{
  const uint64_t *frames = seen.frames[s->id];
  const uint64_t caller = (uint64_t)(uintptr_t)s->caller;
  uint32_t count = seen.count[s->id], at = 0;
  int i = 0;
  while (at < count && frames[at] != caller)
    at++;
  while (i < s->count && s->truth[i] != s->caller)
    i++;
  if (at == count || i == s->count) return false;
  for (; i < s->count && at < count; i++, at++)
    if (frames[at] != (uint64_t)(uintptr_t)s->truth[i]) return false;
  return at == count;
}

static const char *init_stacks(unsigned depth)
{
  return stack_init(NULL, dlopen, dlsym, depth);
}

/* A stack for each `turns`: two call sites at each level, which no compiler makes one. */
static __attribute__((noinline)) int dive(int depth, unsigned turns, int (*f)(void *),
                                          void *context)
{
  int result;
  if (!depth) {
    result = f(context);
    __asm__ volatile("# bottom" ::: "memory");
  } else if (turns & 1) {
    __asm__ volatile("# to the left" ::: "memory");
    result = dive(depth - 1, turns >> 1, f, context);
    __asm__ volatile("# left" ::: "memory");
  } else {
    __asm__ volatile("# to the right" ::: "memory");
    result = dive(depth - 1, turns >> 1, f, context);
    __asm__ volatile("# right" ::: "memory");
  }
  return result;
}

/* ---- ids ------------------------------------------------------------------------------------- */

START_TEST(off_is_off)
{
  sight s;
  ck_assert_str_eq(init_stacks(0), "off");
  capture_both_stacks(&s);
  ck_assert_uint_eq(s.id, WEIR_STACK_NONE);
  read_spool();
  ck_assert_uint_eq(seen.stacks + seen.loaded, 0);
}
END_TEST

START_TEST(the_same_stack_has_the_same_id)
{
  sight s[3];
  init_stacks(32);
  for (volatile int i = 0; i < 3; i++)
    capture_both_stacks(&s[i]); /* volatile: one call site */
  ck_assert_uint_ne(s[0].id, WEIR_STACK_NONE);
  ck_assert_uint_eq(s[0].id, s[1].id);
  ck_assert_uint_eq(s[0].id, s[2].id);
  capture_both_stacks(&s[1]);
  ck_assert_uint_ne(s[0].id, s[1].id);
  read_spool();
  ck_assert_uint_eq(seen.stacks, 2);
  ck_assert(is_true(&s[0]) && is_true(&s[1]));
}
END_TEST

START_TEST(different_stacks_have_different_ids)
{
  enum { DEPTH = 11, N = 1 << DEPTH };
  static sight first[N], again[N];
  init_stacks(64);
  for (unsigned i = 0; i < N; i++)
    dive(DEPTH, i, capture_both_stacks, &first[i]);
  for (unsigned i = 0; i < N; i++)
    dive(DEPTH, i, capture_both_stacks, &again[i]);
  read_spool();
  ck_assert_uint_eq(seen.stacks, 2 * N); /* the two loops are two call sites */
  for (unsigned i = 0; i < N; i++) {
    ck_assert_uint_eq(first[i].id, i + 1);
    ck_assert(is_true(&first[i]));
    ck_assert(is_true(&again[i]));
  }
  sight s;
  for (volatile unsigned round = 0; round < 2; round++)
    for (unsigned i = 0; i < 50; i++)
      dive(DEPTH, i, capture_both_stacks, &s); /* a third, met twice */
  read_spool();
  ck_assert_uint_eq(seen.stacks, 2 * N + 50);
}
END_TEST

/* Each time that the reader asks, and once. */
START_TEST(a_stack_is_written_anew_when_the_reader_asks)
{
  enum { ROUNDS = 5 };
  sight s[ROUNDS][3];
  char path[512];
  spool_reader *r;
  init_stacks(32);
  spool_path(path, folder, getpid(), 0);
  ck_assert_int_eq(spool_reader_open(&r, path, true), WEIR_OK);
  for (volatile int i = 0; i < ROUNDS; i++) {
    for (volatile int k = 0; k < 3; k++)
      capture_both_stacks(&s[i][k]);
    ck_assert_int_eq(spool_reader_renew_stacks(r), WEIR_OK);
  }
  spool_reader_close(r);
  read_spool();
  ck_assert_uint_eq(seen.stacks, ROUNDS);
  for (uint32_t i = 0; i < ROUNDS; i++)
    for (int k = 0; k < 3; k++) {
      ck_assert_uint_eq(s[i][k].id, i + 1);
      ck_assert(is_true(&s[i][k]));
    }
}
END_TEST

/* ---- known by its words ---------------------------------------------------------------------- */

typedef struct walker {
  uint64_t rng;
  sight *sights; /* all that were had */
  unsigned had, most;
} walker;

static unsigned walker_random_below(walker *w, unsigned below)
{
  w->rng = w->rng * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return (unsigned)(w->rng >> 33) % below;
}

static void wander(walker *w, unsigned depth);

/* Frames of three kinds, so that a stack's words lie anywhere: with a frame pointer, without, and
 * of a size that differs from call to call and so often makes one frame address of two stacks. */
static __attribute__((noinline)) void with_pointer(walker *w, unsigned depth)
{
  wander(w, depth);
  __asm__ volatile("" ::: "memory");
}

static __attribute__((noinline, optimize("omit-frame-pointer"))) void
without_pointer(walker *w, unsigned depth)
{
  wander(w, depth);
  __asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void of_any_size(walker *w, unsigned depth)
{
  volatile char *room = __builtin_alloca(16 * (1 + walker_random_below(w, 4)));
  room[0] = 0;
  wander(w, depth);
  __asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void wander(walker *w, unsigned depth)
{
  if (depth == 0) {
    if (w->had < w->most) capture_both_stacks(&w->sights[w->had++]);
    return;
  }
  switch (walker_random_below(w, 4)) {
  case 0:
    with_pointer(w, depth - 1);
    break;
  case 1:
    without_pointer(w, depth - 1);
    break;
  case 2:
    of_any_size(w, depth - 1);
    break;
  default:
    with_pointer(w, depth - 1);
    break; /* another line of the same function */
  }
}

/* Nearly half are known; AddressSanitizer moves what is on the stack, so words repeat less. */
START_TEST(a_stack_known_by_its_words_is_the_true_one)
{
  enum { SIGHTS = 20000 };
  walker w = {.rng = 7, .most = SIGHTS};
  w.sights = calloc(SIGHTS, sizeof *w.sights);
  init_stacks(32);
  while (w.had < SIGHTS)
    wander(&w, 1 + walker_random_below(&w, 5));
  read_spool();
  for (unsigned i = 0; i < SIGHTS; i++)
    ck_assert_msg(is_true(&w.sights[i]), "sight %u, stack %u", i, w.sights[i].id);
#ifdef __SANITIZE_ADDRESS__
  ck_assert_uint_gt(stack_known(stacks), SIGHTS / 20);
#elif !defined(__SANITIZE_THREAD__)
  ck_assert_uint_gt(stack_known(stacks), SIGHTS / 4);
#endif
  ck_assert_uint_lt(stack_known(stacks), SIGHTS);
  free(w.sights);
}
END_TEST

/* ---- a rewriter ------------------------------------------------------------------------------ */

static struct {
  uint64_t word; /* what it puts in place of the innermost address; 0: it changes nothing */
  bool signs;
  unsigned rewritten, asked;
} rewriting;

static unsigned put_word(uint64_t *frames, unsigned count, unsigned room, bool *more,
                         spool_writer *w)
{
  (void)room, (void)w;
  rewriting.rewritten++;
  *more = rewriting.word != 0;
  if (*more) frames[0] = rewriting.word;
  return count;
}

static uint64_t sign_of_word(spool_writer *w)
{
  (void)w;
  rewriting.asked++;
  return rewriting.signs ? rewriting.word : 0;
}

/* Captures as often as it takes for a stack to be known by its words, and as often again. Returns how
 * often it was rewritten in the second half. */
static __attribute__((noinline)) unsigned rewritten_when_known(void)
{
  enum { HALF = 40 };
  sight s;
  unsigned before = 0;
  for (volatile int i = 0; i < 2 * HALF; i++) {
    if (i == HALF) before = rewriting.rewritten;
    if (rewriting.word) rewriting.word = (uint64_t)(1 + i % 4);
    uint64_t word = rewriting.word;
    capture_both_stacks(&s);
    ck_assert_uint_ne(s.id, WEIR_STACK_NONE);
    read_spool();
    if (word) ck_assert_uint_eq(seen.frames[s.id][0], word);
  }
  return rewriting.rewritten - before;
}

START_TEST(a_rewritten_stack_is_known_by_its_words_and_its_sign)
{
  static const stack_rewriter with = {put_word, sign_of_word};
  rewriting.word = 1;
  rewriting.signs = true;
  init_stacks(32);
  stack_rewrite_with(&with);
  unsigned again = rewritten_when_known();
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  ck_assert_uint_eq(again, 0);
  ck_assert_uint_gt(rewriting.asked, 0);
#endif
  rewriting.signs = false; /* where the sign is not known it is rewritten each time */
  ck_assert_uint_eq(rewritten_when_known(), 40);
  (void)again;
}
END_TEST

START_TEST(a_stack_that_a_rewriter_leaves_needs_no_sign)
{
  static const stack_rewriter with = {put_word, sign_of_word};
  init_stacks(32);
  stack_rewrite_with(&with);
  unsigned again = rewritten_when_known();
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  ck_assert_uint_eq(again, 0);
#endif
  ck_assert_uint_eq(rewriting.asked, 0);
  (void)again;
}
END_TEST

/* A forked child that makes a few calls has no use of it. */
START_TEST(a_stack_seen_a_few_times_is_not_learnt)
{
  sight s;
  init_stacks(32);
  for (volatile int i = 0; i < 4; i++)
    capture_both_stacks(&s);
  ck_assert_uint_eq(stack_known(stacks), 0);
  for (volatile int i = 0; i < 40; i++)
    capture_both_stacks(&s);
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  ck_assert_uint_gt(stack_known(stacks), 20);
#endif
}
END_TEST

START_TEST(deep_recursion_is_cut_at_the_depth)
{
  static const unsigned depths[] = {1, 8, 32, 128};
  sight a, b;
  init_stacks(depths[_i]);
  sight *both[] = {&a, &b};
  for (volatile int i = 0; i < 2; i++)
    dive(1000 + i, 0, capture_both_stacks, both[i]);
  ck_assert_uint_eq(a.id, b.id); /* the innermost frames are the same */
  ck_assert_uint_ne(a.id, WEIR_STACK_NONE);
  read_spool();
  ck_assert_uint_eq(seen.count[a.id], depths[_i]);
  if (depths[_i] > 8)
    ck_assert(is_true(&a)); /* else capture_both_stacks()'s caller may be beyond it */
}
END_TEST

START_TEST(capturing_keeps_errno)
{
  sight s;
  init_stacks(32);
  errno = 4711;
  stack_capture(&stacks, &pen);
  ck_assert_int_eq(errno, 4711);
  stack_unloading();
  stack_unloaded();
  ck_assert_int_eq(errno, 4711);
  stack_capture(&stacks, &pen);
  ck_assert_int_eq(errno, 4711);
  stack_release(&stacks);
  ck_assert_int_eq(errno, 4711);
  ck_assert_ptr_null(stacks);
  capture_both_stacks(&s);
  ck_assert_uint_ne(s.id, WEIR_STACK_NONE);
}
END_TEST

START_TEST(a_dropped_stack_is_tried_again)
{
  char path[512];
  spool_reader *r;
  spool_visitor v = {0};
  sight s[2];
  init_stacks(32);
  open_spool(folder, 1 << 20);
  for (int i = 0; i < 2; i++) {
    while (put_event(&pen, 1, 0))
      continue;
    capture_both_stacks(&s[0]);
    ck_assert_uint_eq(s[0].id, WEIR_STACK_NONE);
  }
  ck_assert_uint_gt(spool_current()->dropped_extended, 0);
  ck_assert_uint_eq(spool_current()->dropped, 2);
  spool_path(path, folder, getpid(), 1);
  ck_assert_int_eq(spool_reader_open(&r, path, true), WEIR_OK);
  ck_assert_int_eq(spool_drain(r, &v, false), WEIR_OK);
  spool_reader_close(r);
  for (int i = 0; i < 40 && !s[1].id; i++)
    capture_both_stacks(&s[1]);
  ck_assert_uint_ne(s[1].id, WEIR_STACK_NONE);
}
END_TEST

/* Our own frames: here, everything in this executable that is on top. */
static int find_text(struct dl_phdr_info *info, size_t size, void *out)
{
  uintptr_t *range = out;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
      range[0] = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
      range[1] = range[0] + info->dlpi_phdr[i].p_memsz;
    }
  return 1; /* the first is the program */
}

typedef int call_function(int (*)(void *), void *);

static void *load_call_plugin(const char *name, call_function **call)
{
  char path[1024];
  const char *build = getenv("WEIR_BUILD");
  (void)snprintf(path, sizeof path, "%s/tests/core/%s", build ? build : "build", name);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  ck_assert_msg(library != NULL, "%s", dlerror());
  *call = (call_function *)(uintptr_t)dlsym(library, "plugin_call");
  ck_assert(*call != NULL);
  return library;
}

START_TEST(our_own_frames_are_left_out)
{
  uintptr_t text[2] = {0, 0};
  call_function *call;
  sight s;
  void *library = load_call_plugin("plugin_small.so", &call);
  init_stacks(16);
  dl_iterate_phdr(find_text, text);
  stack_skip_range(text[0], text[1]);
  call(capture_both_stacks, &s);
  read_spool();
  ck_assert_uint_eq(seen.frames[s.id][0], (uint64_t)(uintptr_t)s.caller);
  ck_assert(is_true(&s));
  dlclose(library);
}
END_TEST

/* ---- libraries that come and go -------------------------------------------------------------- */

/* What is compared, by _i: in which order the two take the place (a frame too small read as too
 * large reaches beyond the stack, one too large read as too small into it), and when the unwinder
 * hears of it: after dlclose, or before it and then again when the next library has already been in
 * use. */
START_TEST(another_library_at_the_same_place_is_unwound_rightly)
{
  enum { ROUNDS = 12 };
  static sight sights[ROUNDS][3];
  static const char *const names[] = {"plugin_small.so", "plugin_large.so"};
  const bool around = _i & 2;
  void *place = NULL;
  unsigned reused = 0;
  init_stacks(32);
  for (int round = 0; round < ROUNDS; round++) {
    call_function *call;
    void *library = load_call_plugin(names[(round + _i) % 2], &call);
    reused += place == (void *)(uintptr_t)call;
    place = (void *)(uintptr_t)call;
    for (volatile int i = 0; i < 2; i++)
      call(capture_both_stacks, &sights[round][i]);
    if (around && round) stack_unloaded();
    if (around) stack_unloading();
    call(capture_both_stacks, &sights[round][2]); /* as a destructor would */
    dlclose(library);
    if (!around) stack_unloaded();
  }
  read_spool();
  ck_assert_str_eq(stack_unwinder(), "libunwind"); /* not by giving it up */
  ck_assert_uint_gt(reused, 0);
  for (int round = 0; round < ROUNDS; round++) {
    ck_assert_uint_eq(sights[round][0].id, sights[round][1].id);
    for (int i = 0; i < 3; i++)
      ck_assert_msg(is_true(&sights[round][i]), "round %d, capture %d", round, i);
    for (int before = 0; before < round; before++) /* the same addresses mean something else now */
      ck_assert_uint_ne(sights[round][0].id, sights[before][0].id);
  }
  ck_assert_uint_ge(seen.gone, ROUNDS - 1);
}
END_TEST

/* A libunwind whose cache is not found (here: one that is not libunwind's) is given up in time. */
static void *other_symbols(void *library, const char *name)
{
  static void *nothing;
  return strstr(name, "local_addr_space") ? (void *)&nothing : dlsym(library, name);
}

START_TEST(an_unwinder_that_cannot_be_flushed_is_given_up)
{
  static sight sights[4];
  static const char *const names[] = {"plugin_large.so", "plugin_small.so"};
  ck_assert_str_eq(stack_init(NULL, dlopen, other_symbols, 32), "libunwind");
  for (int round = 0; round < 4; round++) {
    call_function *call;
    void *library = load_call_plugin(names[round % 2], &call);
    call(capture_both_stacks, &sights[round]);
    dlclose(library);
    stack_unloaded();
  }
  read_spool();
  ck_assert_str_eq(stack_unwinder(), "backtrace");
  for (int round = 0; round < 4; round++)
    ck_assert(is_true(&sights[round]));
}
END_TEST

/* ---- the module map -------------------------------------------------------------------------- */

static const module *module_at(uint64_t base)
{
  for (uint32_t i = 0; i < seen.loaded; i++)
    if (seen.modules[i].info.base == base) return &seen.modules[i];
  return NULL;
}

static int check_module(struct dl_phdr_info *info, size_t size, void *context)
{
  char exe[1024] = "";
  int *count = context;
  const char *name = info->dlpi_name;
  (void)size;
  if (strstr(name, "vdso")) return 0;
  if (!*name && readlink("/proc/self/exe", exe, sizeof exe - 1) > 0) name = exe;
  const module *m = module_at(info->dlpi_addr);
  ck_assert_msg(m != NULL, "%s is not recorded", name);
  ck_assert_str_eq(m->path, name);
  ck_assert_uint_eq(m->info.path_bytes, strlen(name));
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
    ck_assert_uint_le(m->info.start, info->dlpi_addr + p->p_vaddr);
    ck_assert_uint_ge(m->info.end, info->dlpi_addr + p->p_vaddr + p->p_memsz);
  }
  ++*count;
  return 0;
}

/* The build-id readelf prints for a file, as hex. */
static void readelf_id(char out[200], const char *path)
{
  char command[1400];
  (void)snprintf(command, sizeof command,
                 "readelf -n '%s' 2>/dev/null | sed -n 's/.*Build ID: //p'", path);
  FILE *f = popen(command, "r");
  if (!fgets(out, 200, f)) out[0] = 0;
  (void)pclose(f);
  out[strcspn(out, "\n")] = 0;
}

START_TEST(the_module_map_is_the_loaders)
{
  sight s;
  int count = 0;
  char want[200], got[200] = "";
  init_stacks(32);
  capture_both_stacks(&s);
  read_spool();
  dl_iterate_phdr(check_module, &count);
  ck_assert_uint_eq(seen.loaded, (uint32_t)count);
  ck_assert_uint_eq(seen.first_stack_after, seen.loaded); /* modules come before the stack */
  const module *m = &seen.modules[1];
  for (uint32_t i = 0; i < m->info.build_id_bytes; i++)
    (void)sprintf(got + 2 * i, "%02x", m->build_id[i]);
  readelf_id(want, m->path);
  ck_assert_str_eq(got, want);
}
END_TEST

START_TEST(modules_are_recorded_as_they_come_and_go)
{
  call_function *call;
  sight s;
  init_stacks(32);
  capture_both_stacks(&s);
  read_spool();
  uint32_t before = seen.loaded;
  void *library = load_call_plugin("plugin_large.so", &call);
  struct link_map *map = library;
  uint64_t base = map->l_addr;
  for (int i = 0; i < 3; i++)
    call(capture_both_stacks, &s);
  read_spool();
  ck_assert_uint_eq(seen.loaded, before + 1);
  ck_assert_uint_eq(seen.modules[before].info.base, base);
  ck_assert_ptr_nonnull(strstr(seen.modules[before].path, "plugin_large.so"));
  dlclose(library);
  stack_unloaded();
  capture_both_stacks(&s);
  read_spool();
  ck_assert_uint_eq(seen.gone, 1);
  ck_assert_uint_eq(seen.gone_base, base);
  ck_assert_uint_eq(seen.loaded, before + 1);
}
END_TEST

START_TEST(a_forked_child_records_stacks_and_modules_anew)
{
  static module parents[MODULES];
  int status;
  sight s;
  init_stacks(32);
  capture_both_stacks(&s);
  read_spool();
  uint32_t loaded = seen.loaded;
  memcpy(parents, seen.modules, sizeof parents);
  pid_t child = fork();
  if (child == 0) {
    spool_options options = {.directory = folder};
    spool_after_fork();
    memset(&pen, 0, sizeof pen);
    if (spool_open(&options)) _exit(1);
    for (volatile int i = 0; i < 2; i++)
      capture_both_stacks(&s); /* the parent's table, stale */
    _exit(s.id == WEIR_STACK_NONE);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  read_spool_of(child);
  ck_assert_uint_eq(seen.loaded, loaded);
  ck_assert_uint_eq(seen.stacks, 1);
  ck_assert_mem_eq(seen.modules, parents, sizeof parents); /* build-ids, paths: the parent's */
}
END_TEST

/* ---- the unwinder and the rest of the process ------------------------------------------------ */

static const char *home_of(const char *symbol)
{
  Dl_info info;
  void *address = dlsym(RTLD_DEFAULT, symbol);
  return address && dladdr(address, &info) ? info.dli_fname : "";
}

START_TEST(the_unwinder_captures_nothing)
{
  sight s;
  ck_assert_str_eq(init_stacks(32), "libunwind");
  capture_both_stacks(&s);
  ck_assert_ptr_nonnull(dlopen("libunwind.so.8", RTLD_LAZY | RTLD_NOLOAD)); /* it is there */
  ck_assert_ptr_null(dlsym(RTLD_DEFAULT, "unw_backtrace"));
  ck_assert_ptr_null(strstr(home_of("_Unwind_RaiseException"), "libunwind"));
#if !SANITIZED /* a sanitizer has these names itself */
  ck_assert_ptr_nonnull(dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_GLOBAL));
  ck_assert_ptr_nonnull(strstr(home_of("_Unwind_RaiseException"), "libgcc_s"));
  ck_assert_ptr_nonnull(strstr(home_of("_Unwind_Backtrace"), "libgcc_s"));
  ck_assert_ptr_nonnull(strstr(home_of("backtrace"), "libc.so"));
#endif
}
END_TEST

START_TEST(exceptions_pass_through_plug_ins)
{
  char path[1024];
  sight s;
  const char *build = getenv("WEIR_BUILD");
  init_stacks(32);
  capture_both_stacks(&s);
  (void)snprintf(path, sizeof path, "%s/tests/core/throws.so", build ? build : "build");
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  ck_assert_msg(library != NULL, "%s", dlerror());
  int (*throw_and_catch)(int) = (int (*)(int))(uintptr_t)dlsym(library, "throw_and_catch");
  for (int i = 0; i < 100; i++)
    ck_assert_int_eq(throw_and_catch(i), 1);
}
END_TEST

static char asked[4][1100]; /* what the fake loader was asked for */
static int asks;

static void *no_library(const char *name, int flags)
{
  ck_assert_int_eq(flags & (RTLD_GLOBAL | RTLD_LAZY), RTLD_LAZY);
  (void)snprintf(asked[asks++], sizeof *asked, "%s", name);
  return NULL;
}

START_TEST(without_libunwind_backtrace_serves)
{
  sight s[2];
  ck_assert_str_eq(stack_init("/some/where", no_library, dlsym, 32), "backtrace");
  ck_assert_int_eq(asks, 2);
  ck_assert_str_eq(asked[0], "/some/where/libunwind.so.8");
  ck_assert_str_eq(asked[1], "libunwind.so.8");
  sight *both[] = {&s[0], &s[1]};
  for (volatile int i = 0; i < 2; i++)
    dive(5, 3, capture_both_stacks, both[i]);
  ck_assert_uint_eq(s[0].id, s[1].id);
  read_spool();
  ck_assert(is_true(&s[0]));
}
END_TEST

/* ---- descriptors ----------------------------------------------------------------------------- */

enum { DESCRIPTORS = 256 };

static void note_descriptors(bool open[DESCRIPTORS])
{
  for (int fd = 0; fd < DESCRIPTORS; fd++)
    open[fd] = fcntl(fd, F_GETFD) >= 0;
}

/* A program that closes what it did not open must not find an unwinder at work in its own files:
 * neither does one stay open, nor is any but the pipe of this test there to be used. */
START_TEST(the_unwinder_keeps_no_descriptor)
{
  bool before[DESCRIPTORS], after[DESCRIPTORS];
  int ends[2];
  sight s;
  note_descriptors(before);
  ck_assert_str_eq(init_stacks(32), "libunwind");
  capture_both_stacks(&s);
  note_descriptors(after);
  ck_assert_mem_eq(before, after, sizeof before);
  ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  ck_assert_int_eq(write(ends[1], "mine", 4), 4);
  note_descriptors(before);
  for (int depth = 1; depth < 40; depth++) {
    sight deep;
    dive(depth, depth, capture_both_stacks, &deep);
    ck_assert(deep.id != WEIR_STACK_NONE);
  }
  char text[8] = "";
  ck_assert_int_eq(read(ends[0], text, sizeof text), 4);
  ck_assert_str_eq(text, "mine");
  note_descriptors(after);
  ck_assert_mem_eq(before, after, sizeof before);
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

static _Atomic bool stop;

static void *capture_on(void *context)
{
  spool_writer w = {0};
  stack_table *table = NULL;
  uintptr_t missing = 0;
  (void)context;
  while (!atomic_load(&stop))
    missing += stack_capture(&table, &w) == WEIR_STACK_NONE;
  stack_release(&table);
  spool_writer_release(&w);
  return (void *)missing;
}

START_TEST(threads_capture_while_libraries_come_and_go)
{
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
#if defined(__SANITIZE_THREAD__)
  /* its mutexes cannot be had any more when libunwind's key is destroyed */
  stack_init(NULL, no_library, dlsym, 32);
#else
  init_stacks(32);
#endif
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, capture_on, NULL);
  for (int i = 0; i < 200; i++) {
    call_function *call;
    sight s;
    void *library = load_call_plugin(i % 2 ? "plugin_small.so" : "plugin_large.so", &call);
    call(capture_both_stacks, &s);
    ck_assert_uint_ne(s.id, WEIR_STACK_NONE);
    stack_unloading();
    dlclose(library);
    stack_unloaded();
  }
  atomic_store(&stop, true);
  for (int i = 0; i < THREADS; i++) {
    void *missing;
    pthread_join(threads[i], &missing);
    ck_assert_ptr_null(missing);
  }
}
END_TEST

/* ---- many threads ---------------------------------------------------------------------------- */

enum { CROWD = 400 };
static pthread_barrier_t crowd;

static void *capture_and_stay(void *context)
{
  spool_writer w = {0};
  stack_table *own = NULL;
  (void)context;
  for (int i = 0; i < 10; i++)
    if (!stack_capture(&own, &w)) return &crowd;
  pthread_barrier_wait(&crowd);
  pthread_barrier_wait(&crowd);
  stack_release(&own);
  return NULL;
}

/* Bytes of memory of this process that are nobody else's, nor a file's. */
static size_t private_bytes(void)
{
  char line[256];
  unsigned long kib = 0;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f))
    if (sscanf(line, "RssAnon: %lu", &kib) == 1) break;
  if (f) (void)fclose(f);
  return kib * 1024;
}

/* libunwind alone takes 256 KiB a thread. */
START_TEST(a_crowd_of_threads_takes_little_memory)
{
  pthread_t threads[CROWD];
  pthread_attr_t small;
  if (SANITIZED) return; /* whose shadows are not ours */
  ck_assert_str_eq(init_stacks(32), "libunwind");
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 256 << 10);
  pthread_barrier_init(&crowd, NULL, CROWD + 1);
  size_t before = private_bytes();
  for (int i = 0; i < CROWD; i++)
    ck_assert_int_eq(pthread_create(&threads[i], &small, capture_and_stay, NULL), 0);
  pthread_barrier_wait(&crowd);
  size_t each = (private_bytes() - before) / CROWD;
  pthread_barrier_wait(&crowd);
  for (int i = 0; i < CROWD; i++) {
    void *missing;
    pthread_join(threads[i], &missing);
    ck_assert_ptr_null(missing);
  }
  ck_assert_uint_gt(each, 0);
  ck_assert_msg(each < (128 << 10), "%zu bytes a thread", each);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("core/stack");
  TCase *t = tcase_create("stack");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, set_up, tear_down);
  tcase_add_test(t, off_is_off);
  tcase_add_test(t, the_same_stack_has_the_same_id);
  tcase_add_test(t, different_stacks_have_different_ids);
  tcase_add_test(t, a_stack_is_written_anew_when_the_reader_asks);
  tcase_add_test(t, a_stack_known_by_its_words_is_the_true_one);
  tcase_add_test(t, a_stack_seen_a_few_times_is_not_learnt);
  tcase_add_test(t, a_rewritten_stack_is_known_by_its_words_and_its_sign);
  tcase_add_test(t, a_stack_that_a_rewriter_leaves_needs_no_sign);
  tcase_add_loop_test(t, deep_recursion_is_cut_at_the_depth, 0, 4);
  tcase_add_test(t, capturing_keeps_errno);
  tcase_add_test(t, a_dropped_stack_is_tried_again);
  tcase_add_test(t, our_own_frames_are_left_out);
  tcase_add_loop_test(t, another_library_at_the_same_place_is_unwound_rightly, 0, 4);
  tcase_add_test(t, an_unwinder_that_cannot_be_flushed_is_given_up);
  tcase_add_test(t, the_module_map_is_the_loaders);
  tcase_add_test(t, modules_are_recorded_as_they_come_and_go);
  tcase_add_test(t, a_forked_child_records_stacks_and_modules_anew);
  tcase_add_test(t, the_unwinder_captures_nothing);
  tcase_add_test(t, exceptions_pass_through_plug_ins);
  tcase_add_test(t, without_libunwind_backtrace_serves);
  tcase_add_test(t, the_unwinder_keeps_no_descriptor);
  tcase_add_test(t, threads_capture_while_libraries_come_and_go);
  tcase_add_test(t, a_crowd_of_threads_takes_little_memory);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
