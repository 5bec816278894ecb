/* fake_python.c: the memory of an interpreter that is not here, for what reads frames from outside:
 * objects, frames and the table of offsets as CPython's headers have them, MINOR 13 or 14, FREE 1
 * without the interpreter's lock. A thread's chain has two runs, the outer one of two frames,
 * and in each a call of CUDA's. Prints what python_frames.py prints: a size, and the frames of
 * its call. */
#include <cuda.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- objects --------------------------------------------------------------------------------- */

typedef struct object {
#if FREE
  uint64_t thread;
  uint16_t flags;
  uint8_t mutex, collector;
  uint32_t local;
  int64_t shared;
#else
  int64_t references;
#endif
  void *type;
} object;

typedef struct text {
  object head;
  int64_t length, hash;
  uint32_t state;
  uint8_t utf8[16]; /* of those that are not ASCII */
} text;

enum { TEXT_HEAD = (offsetof(text, state) + 4 + 7) / 8 * 8 };

typedef struct bytes {
  object head;
  int64_t count, hash;
  uint8_t data[16];
} bytes;

typedef struct copies {
  int64_t count;
  uint16_t *of[2];
} copies;

typedef struct code {
  object head;
  int64_t count;
  void *constants, *names, *exceptions;
  int flags, arguments[3], stack, first_line, sizes[5];
  uint32_t version;
  void *local_names, *local_kinds;
  text *file, *name, *qualified;
  bytes *lines;
  void *weak, *executors, *cached;
  uint64_t instrumented;
  void *monitoring;
#if FREE
  uint64_t unique;
#endif
  int first_traceable;
  void *extra;
#if FREE && MINOR >= 14
  copies *copies;
#endif
  uint16_t bytecode[16];
} code;

typedef struct frame {
  uintptr_t executable; /* its low bits are a tag */
  struct frame *previous;
  void *function, *globals, *builtins, *locals, *frame_object;
  uint16_t *instruction;
#if MINOR >= 14
  void **stack_pointer;
#if FREE
  int32_t copy;
#endif
#else
  int32_t stack_top;
#endif
  uint16_t return_offset;
  char owner;
  uint8_t visited;
  void *locals_plus[1];
} frame;

typedef struct thread {
  void *links[7];
  frame *current;
} thread;

/* ---- the table ------------------------------------------------------------------------------- */

#define AT(of, field) offsetof(of, field)
#if FREE && MINOR >= 14
#define COPY   AT(frame, copy)
#define COPIES AT(code, copies)
#else
#define COPY   0
#define COPIES 0
#endif

/* As its header has it, a row a structure; what is not read here is 0. */
uint64_t _PyRuntime[128] = {0,
                            MINOR << 16 | 3 << 24 | 0xf0,
                            FREE, /* the cookie is put there at the start */
                            0,
                            0,
                            0, /* runtime */
                            0,
                            0,
                            0,
                            0,
                            0,
                            0,
                            0,
                            0,
                            0,
                            0,
                            0,
                            0,
                            0,
#if MINOR >= 14
                            0,
                            0,
                            0, /* the same: interpreter */
#endif
                            sizeof(thread),
                            0,
                            0,
                            0,
                            AT(thread, current),
                            0,
                            0,
                            0,
                            0, /* thread */
                            sizeof(frame),
                            AT(frame, previous),
                            AT(frame, executable),
                            AT(frame, instruction),
                            AT(frame, locals_plus),
                            AT(frame, owner),
#if MINOR >= 14
                            AT(frame, stack_pointer),
                            COPY,
#endif
                            sizeof(code),
                            AT(code, file),
                            AT(code, name),
                            AT(code, qualified),
                            AT(code, lines),
                            AT(code, first_line),
                            0,
                            0,
                            0,
                            AT(code, bytecode),
#if MINOR >= 14
                            COPIES,
#endif
                            sizeof(object),
                            AT(object, type),
                            0,
                            0,
                            0,
                            0, /* object, type */
                            0,
                            0,
                            0,
                            0,
                            0,
                            0, /* tuple, list */
#if MINOR >= 14
                            0,
                            0,
                            0,
                            0, /* set */
#endif
                            0,
                            0,
                            0,
                            0,
                            0,
                            0,
                            0,
                            0, /* dict, float, long */
                            sizeof(bytes),
                            AT(bytes, count),
                            AT(bytes, data),
                            TEXT_HEAD,
                            AT(text, state),
                            AT(text, length),
                            TEXT_HEAD};

const unsigned long Py_Version = MINOR << 16 | 3 << 24 | 0xf0;
char PyCode_Type[64];

static __thread thread *mine;
void *PyGILState_GetThisThreadState(void)
{
  return mine;
}

/* ---- a program ------------------------------------------------------------------------------- */

/* A str of characters of `size` bytes: `ascii` of them come right behind the head, others behind
 * what their UTF-8 would be. */
static text *new_text(const void *characters, size_t length, unsigned size, int ascii)
{
  text *t = calloc(1, sizeof *t + (length + 1) * size);
  if (!t) abort();
  t->length = (int64_t)length;
  t->state = size | 1 << 3 | (unsigned)ascii << 4;
#if FREE
  t->state = t->state << 8 | 1; /* interned: a byte */
#else
  t->state = t->state << 2 | 1;
#endif
  memcpy((char *)t + TEXT_HEAD + (ascii ? 0 : 16), characters, length * size);
  return t;
}

/* Lines: 4 units of code of the first, 12 of the one `step` below. */
static code *new_code(text *name, text *file, int first_line, int step)
{
  static uint32_t version = 7;
  code *c = calloc(1, sizeof *c);
  bytes *lines = calloc(1, sizeof *lines);
  if (!c || !lines) abort();
  const uint8_t table[] = {0xeb, 0, 0xef, (uint8_t)(step << 1), 0xeb, 0};
  memcpy(lines->data, table, sizeof table);
  lines->count = sizeof table;
  c->head.type = PyCode_Type;
  c->first_line = first_line;
  c->version = version++;
  c->file = file;
  c->name = new_text("short", 5, 1, 1);
  c->qualified = name;
  c->lines = lines;
#if FREE && MINOR >= 14
  c->copies = calloc(1, sizeof *c->copies);
  if (!c->copies) abort();
  *c->copies = (copies){2, {c->bytecode, calloc(16, sizeof(uint16_t))}};
#endif
  return c;
}

static code *module, *outer, *inner;

static void make_codes(void)
{
  static const uint16_t file[] = {'/', 0x44b, 0x444, '.', 'p', 'y'};
  text *name = new_text(file, 6, 2, 0);
  module = new_code(new_text("<module>", 8, 1, 1), name, 1, 30);
  outer = new_code(new_text("gr\xf6\xdf"
                            "e",
                            5, 1, 0),
                   name, 10, 5);
  inner = new_code(new_text("Box.inner", 9, 1, 1), new_text("/b.py", 5, 1, 1), 100, 2);
}

static frame *enter(frame *f, code *c, frame *previous, int unit, int copy)
{
  memset(f, 0, sizeof *f);
  f->executable = (uintptr_t)c | 1;
  f->previous = previous;
  f->instruction = c->bytecode + unit;
#if FREE && MINOR >= 14
  f->instruction = c->copies->of[copy] + unit;
  f->copy = copy;
#endif
  (void)copy;
  return f;
}

static void call(const char *frames)
{
  static size_t size = 4096;
  CUdeviceptr p;
  if (cuMemAlloc(&p, ++size)) exit(1);
  printf("%zu %s\n", size, frames);
}

#define OUTER "größe|/ыф.py|15;<module>|/ыф.py|31"

void _PyEval_EvalFrameDefault(int depth, int copy);

/* Of the interpreter's own, between two runs. */
static __attribute__((noinline)) void vector_call(int depth, int copy)
{
  _PyEval_EvalFrameDefault(depth, copy);
  __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void _PyEval_EvalFrameDefault(int depth, int copy)
{
  static char none[32];
  frame shim = {.executable = (uintptr_t)none | 1, .previous = mine->current, .owner = 3};
  frame first, second;
  if (depth) {
    mine->current = enter(&first, inner, &shim, 2, copy);
    call("Box.inner|/b.py|100;" OUTER);
  } else {
    enter(&first, module, &shim, 5, copy);
    mine->current = enter(&second, outer, &first, 9, copy);
    call(OUTER);
    vector_call(1, copy);
  }
  mine->current = shim.previous;
  __asm__ volatile("" ::: "memory");
}

static CUcontext context;

static void *run(void *copy)
{
  thread t = {.current = NULL};
  mine = &t;
  if (cuCtxSetCurrent(context)) exit(1);
  for (int i = 0; i < 20; i++) /* more than what it takes to be read in the quick way */
    vector_call(0, copy != NULL);
  return NULL;
}

int main(void)
{
  pthread_t other;
  memcpy(_PyRuntime, "xdebugpy", 8);
  make_codes();
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0)) return 1;
  run(NULL);
  if (pthread_create(&other, NULL, run, &context) || pthread_join(other, NULL)) return 1;
  return fflush(stdout) != 0;
}
