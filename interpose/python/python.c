/* python.c: Python frames in a stack.
 *
 * A stack through the interpreter has a C frame for each call of its loop, and the interpreter's
 * other functions between them. The loop's frames are replaced, each by the run of Python frames
 * that it executes, and the others are left out. Where there are more loops than runs the stack is
 * none that we understand: then the whole chain stands where the interpreter's innermost frame was.
 *
 * The interpreter is found by the symbols it exports, at the first stack that might go through it,
 * and looked for again when libraries have come. Its function is called, and its memory read, only
 * for a stack that goes through it: it cannot be unloaded then. */
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/base/clock.h"
#include "core/base/trylock.h"
#include "core/trace/event.h"
#include "core/trace/stack.h"
#include "interpose/elf/elf.h"
#include "interpose/elf/objects.h"
#include "interpose/process/settings.h"
#include "interpose/process/part.h"
#include "interpose/python/python.h"

static struct {
  trylock guard;
  _Atomic bool found;
  _Atomic uint64_t looked_at; /* the loader's count of objects, when none was found */
  python_interpreter interpreter;
  bool
      everywhere; /* asked for: in every thread of every program, and a note where there are none */
} python;

/* ---- the interpreter ------------------------------------------------------------------------- */

#define OLD 1UL /* before 3.11 */

typedef struct search {
  python_interpreter *found;
  unsigned long version; /* of one that cannot be read; 0: none, OLD: one without a number */
} search;

static const void *dynamic_of(const struct dl_phdr_info *info)
{
  for (unsigned i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
      return (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
  return NULL;
}

static void set_span(python_interpreter *in, const struct dl_phdr_info *info)
{
  in->start = UINTPTR_MAX;
  for (unsigned i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    uintptr_t start = info->dlpi_addr + p->p_vaddr;
    if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
    if (start < in->start) in->start = start;
    if (start + p->p_memsz > in->end) in->end = start + p->p_memsz;
  }
}

static int visit_object(struct dl_phdr_info *info, size_t size, void *context)
{
  (void)size;
  search *s = context;
  elf_object o;
  python_interpreter in = {.end = 0};
  const ElfW(Dyn) *dynamic = dynamic_of(info);
  if (!dynamic || !elf_object_read(&o, info->dlpi_addr, dynamic)) return 0;
  const unsigned long *version = elf_object_symbol(&o, "Py_Version", NULL, WEIR_FIT_DEFAULT);
  size_t bytes = 0;
  const void *loop = elf_object_range(&o, "_PyEval_EvalFrameDefault", &bytes);
  *(void **)&in.thread =
      elf_object_symbol(&o, "PyGILState_GetThisThreadState", NULL, WEIR_FIT_FUNCTION);
  in.code_type = elf_object_symbol(&o, "PyCode_Type", NULL, WEIR_FIT_DEFAULT);
  if (!in.thread || !in.code_type) return 0;
  in.loop_start = (uintptr_t)loop;
  in.loop_end = in.loop_start + bytes;
  set_span(&in, info);
  const void *runtime = elf_object_symbol(&o, "_PyRuntime", NULL, WEIR_FIT_DEFAULT);
  if (!version || !python_layout_of(&in.at, *version, runtime)) {
    s->version = version ? *version : OLD;
    return 0;
  }
  s->found->at = in.at;
  s->found->start = in.start;
  s->found->end = in.end;
  s->found->loop_start = in.loop_start;
  s->found->loop_end = in.loop_end;
  s->found->code_type = in.code_type;
  s->found->thread = in.thread;
  atomic_store_explicit(&s->found->walks, 0, memory_order_relaxed);
  return 1;
}

static void say_unreadable(unsigned long version, spool_writer *w)
{
  char text[128], number[32] = "before 3.11";
  trace_event head = {.start = clock_ticks()};
  if (version != OLD)
    (void)snprintf(number, sizeof number, "%lu.%lu", version >> 24 & 0xff, version >> 16 & 0xff);
  int n =
      snprintf(text, sizeof text,
               "Python %s: its frames are not read; those of releases 3.11 to 3.14 are.", number);
  (void)spool_writer_extended(w, WEIR_EV_NOTE, &head, text, (size_t)n);
}

/* Whether there is none, as far as has been loaded. */
static bool no_interpreter(void)
{
  return atomic_load_explicit(&python.looked_at, memory_order_relaxed) == object_loads_now().adds;
}

/* NULL: there is none, or somebody else is looking. */
static python_interpreter *interpreter(spool_writer *w)
{
  if (atomic_load_explicit(&python.found, memory_order_acquire)) return &python.interpreter;
  uint64_t now = object_loads_now().adds;
  if (atomic_load_explicit(&python.looked_at, memory_order_relaxed) == now) return NULL;
  if (!trylock_take(&python.guard, spool_fork_epoch())) return NULL;
  search s = {.found = &python.interpreter};
  bool found = atomic_load_explicit(&python.found, memory_order_acquire) ||
               objects_visit(visit_object, &s) != 0;
  if (!found && s.version && python.everywhere) say_unreadable(s.version, w);
  atomic_store_explicit(&python.looked_at, now, memory_order_relaxed);
  atomic_store_explicit(&python.found, found, memory_order_release);
  trylock_leave(&python.guard);
  return found ? &python.interpreter : NULL;
}

/* ---- a stack --------------------------------------------------------------------------------- */

static bool is_interpreters(const python_interpreter *in, uint64_t address)
{
  return address - 1 >= in->start && address - 1 < in->end;
}

static bool is_loop(const python_interpreter *in, uint64_t address)
{
  return address - 1 >= in->loop_start && address - 1 < in->loop_end;
}

/* What is being put together. */
typedef struct merged {
  uint64_t frames[WEIR_STACK_MAX_DEPTH];
  unsigned count, room;
} merged;

static void push_frames(merged *m, const uint64_t *frames, unsigned count)
{
  for (unsigned i = 0; i < count && m->count < m->room; i++)
    m->frames[m->count++] = frames[i];
}

/* With `-X perf` each call of the loop goes through a piece of code of its own, made for one
 * function of the program and in no object: its frame has what the Python frame has. */
static bool is_trampoline(const python_interpreter *in, const uint64_t *frames, unsigned at)
{
  find_object_result found;
  return at && is_loop(in, frames[at - 1]) && objects.find_object &&
         objects.find_object((void *)(uintptr_t)(frames[at] - 1), &found) != 0;
}

static unsigned count_of_frames(const uint8_t *runs, unsigned first)
{
  unsigned n = 0;
  while (runs[first++])
    n++;
  return n;
}

static void merge(merged *m, const python_interpreter *in, const uint64_t *frames, unsigned count,
                  const uint64_t *chain, unsigned chain_count, const uint8_t *runs)
{
  unsigned loops = 0, used = 0, run = 0;
  for (unsigned i = 0; i < count; i++)
    loops += is_loop(in, frames[i]);
  bool known = loops && loops <= count_of_frames(runs, 0);
  for (unsigned i = 0; i < count; i++) {
    if (!is_interpreters(in, frames[i])) {
      if (!is_trampoline(in, frames, i)) push_frames(m, &frames[i], 1);
      continue;
    }
    if (known && !is_loop(in, frames[i])) continue;
    unsigned n = known ? runs[run++] : chain_count - used;
    push_frames(m, chain + used, n);
    used += n;
  }
  push_frames(m, chain + used, chain_count - used); /* beyond what was unwound */
}

/* Asked of the kernel once a thread. */
static bool is_main_thread(void)
{
  static __thread uint8_t answer __attribute__((tls_model("initial-exec")));
  if (!answer) answer = gettid() == getpid() ? 1 : 2;
  return answer == 1;
}

static unsigned put_python_frames(uint64_t *frames, unsigned count, unsigned room, bool *more,
                                  spool_writer *w)
{
  uint64_t chain[PYTHON_FRAMES_MOST];
  uint8_t runs[PYTHON_FRAMES_MOST + 1];
  unsigned at = 0;
  if (!python.everywhere && !is_main_thread()) return count;
  python_interpreter *in = interpreter(w);
  while (in && at < count && !is_interpreters(in, frames[at]))
    at++;
  *more = in ? at < count : !no_interpreter();
  if (!in || at == count) return count;
  const void *thread = in->thread();
  unsigned n = thread ? python_chain(in, thread, is_main_thread(), w, chain, runs) : 0;
  if (!n) return count;
  merged m = {.room = room < WEIR_STACK_MAX_DEPTH ? room : WEIR_STACK_MAX_DEPTH};
  merge(&m, in, frames, count, chain, n, runs);
  memcpy(frames, m.frames, m.count * sizeof *frames);
  return m.count;
}

static uint64_t sign_python_frames(spool_writer *w)
{
  python_interpreter *in = interpreter(w);
  const void *thread = in ? in->thread() : NULL;
  return thread ? python_chain_sign(in, thread, is_main_thread(), w) : 0;
}

/* ---- the process ----------------------------------------------------------------------------- */

static const stack_rewriter frames_of_python = {put_python_frames, sign_python_frames};

/* Whether the program is an interpreter, by its file: python, python3.12, python3.13t. */
static bool is_python_program(void)
{
  char path[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  if (n <= 0) return false;
  path[n] = 0;
  const char *slash = strrchr(path, '/');
  return slash && !strncmp(slash + 1, "python", strlen("python"));
}

/* What WEIR_PYTHON has; false: no frames are read. */
static bool read_option(const char *text)
{
  bool on = false;
  if (text && strcmp(text, "auto") != 0) {
    process_bad_option("WEIR_PYTHON", option_bool(&on, "WEIR_PYTHON", text));
    python.everywhere = on;
    return on;
  }
  return is_python_program();
}

static void start_python(void)
{
  int saved = errno;
  if (read_option(getenv("WEIR_PYTHON")) && python_can_read())
    stack_rewrite_with(&frames_of_python);
  errno = saved;
}

static void forget_interpreter(void)
{
  atomic_store_explicit(&python.found, false, memory_order_release);
  atomic_store_explicit(&python.looked_at, 0, memory_order_relaxed);
}

static const process_part part = {
    .start = start_python, .forked = python_frames_forget, .unloaded = forget_interpreter};
PROCESS_PART(part);
