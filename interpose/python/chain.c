/* chain.c: a thread's frames, read where they lie.
 *
 * The thread is ours and in a call, so nothing changes its chain; but where the interpreter shuts
 * down, a thread that does not hold the lock can lose its state and the memory of its frames to
 * the one that shuts it down. So the kernel copies, and fails where it cannot: some us a frame.
 * One copy takes a frame, and the code object of the one before it. The main thread, which is the
 * one that shuts down, loads its own frames itself, once the kernel's copies have shown that they
 * are as the layout has. */
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "interpose/python/python.h"

enum { OWNED_BY_C = 3 /* a shim: the end of a run, no code of the program's */ };

bool python_read(void *to, uintptr_t from, size_t bytes)
{
  struct iovec local = {to, bytes}, remote = {(void *)from, bytes};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

bool python_can_read(void)
{
  uint64_t from = 42, to = 0;
  return python_read(&to, (uintptr_t)&from, sizeof to) && to == from;
}

/* How memory is read: by the kernel, or by loads. */
static bool read_memory(bool loads, void *to, uintptr_t from, size_t bytes)
{
  if (!loads) return python_read(to, from, bytes);
  memcpy(to, (const void *)from, bytes);
  return true;
}

bool python_read_pieces(bool loads, const python_piece *pieces, unsigned count)
{
  struct iovec local[PYTHON_PIECES_MOST], remote[PYTHON_PIECES_MOST];
  size_t bytes = 0;
  for (unsigned i = 0; i < count; i++) {
    const python_piece *p = &pieces[i];
    if (loads && p->bytes) memcpy(p->to, (const void *)p->from, p->bytes);
    local[i] = (struct iovec){p->to, p->bytes};
    remote[i] = (struct iovec){(void *)p->from, p->bytes};
    bytes += p->bytes;
  }
  return loads || process_vm_readv(getpid(), local, count, remote, count, 0) == (ssize_t)bytes;
}

/* The code object of one frame, as far as its bytecode, and the frame after it, where there are
 * such (0: none). False: not all. */
static bool read_code_and_frame(const python_interpreter *in, bool loads, python_frame *f,
                                uint8_t next[PYTHON_FRAME_BYTES], uintptr_t from)
{
  const python_piece two[] = {{f->head, f->code, f->code ? in->at.bytecode : 0},
                              {next, from, from ? in->at.frame_bytes : 0}};
  return python_read_pieces(loads, two, 2);
}

static uintptr_t innermost(const python_interpreter *in, const void *thread, bool loads)
{
  uint64_t at = 0;
  if (!read_memory(loads, &at, (uintptr_t)thread + in->at.current, sizeof at)) return 0;
  if (in->at.current_in >= 0 &&
      !read_memory(loads, &at, at + (unsigned)in->at.current_in, sizeof at))
    return 0;
  return at;
}

static bool is_code(const python_interpreter *in, const python_frame *f)
{
  return python_word(f->head, in->at.type) == (uint64_t)(uintptr_t)in->code_type;
}

/* The interpreter's own pieces of code have one text for name and file. */
static bool is_interpreters_own(const python_interpreter *in, const python_frame *f)
{
  return python_word(f->head, in->at.file) == python_word(f->head, in->at.name);
}

/* Where the bytecode begins that a frame runs. The array of copies can be replaced by one that
 * another thread makes: the kernel reads it. 0: it cannot be read. */
static uintptr_t bytecode_of(const python_interpreter *in, const python_frame *f, int32_t copy)
{
  uintptr_t start = 0;
  if (in->at.copies < 0) return f->code + in->at.bytecode;
  uintptr_t array = python_word(f->head, (unsigned)in->at.copies);
  if (!array || copy < 0) return 0;
  return python_read(&start, array + 8 + 8 * (uintptr_t)copy, sizeof start) ? start : 0;
}

static uint64_t mix_word(uint64_t hash, uint64_t word)
{
  hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ hash >> 29;
}

typedef struct chain {
  const python_interpreter *in;
  spool_writer *writer;
  uint64_t *numbers;
  uint8_t *runs;
  unsigned count, run, in_run;
  bool loads; /* how memory is read */
} chain;

static void end_frame_run(chain *c)
{
  if (!c->in_run) return;
  c->runs[c->run++] = (uint8_t)c->in_run;
  c->in_run = 0;
}

static void take_frame(chain *c, const python_frame *f)
{
  uint64_t number = python_frame_number(c->in, f, c->loads, c->writer);
  if (!number) return;
  c->numbers[c->count++] = number;
  c->in_run++;
}

/* Whether every frame but the interpreter's own is one of a code object's, to the end. */
static bool walk_chain(chain *c, const void *thread)
{
  bool loads = c->loads;
  const python_layout *l = &c->in->at;
  uint8_t frame[PYTHON_FRAME_BYTES];
  python_frame f = {.code = 0};
  uintptr_t at = innermost(c->in, thread, loads);
  bool more = at && read_code_and_frame(c->in, loads, &f, frame, at);
  while (more && c->count < PYTHON_FRAMES_MOST) {
    bool shim = l->entry < 0 && frame[l->owner] >= OWNED_BY_C;
    bool last = l->entry >= 0 && frame[l->entry];
    int32_t copy = 0;
    if (l->copy >= 0) memcpy(&copy, frame + l->copy, sizeof copy);
    f.code = shim ? 0 : python_word(frame, l->code) & ~UINT64_C(3);
    f.instruction = python_word(frame, l->instruction);
    at = python_word(frame, l->previous);
    if (f.code || at) more = read_code_and_frame(c->in, loads, &f, frame, at);
    if (!more || (f.code && !is_code(c->in, &f))) return false;
    if (f.code && !is_interpreters_own(c->in, &f)) {
      f.start = bytecode_of(c->in, &f, copy);
      take_frame(c, &f);
    }
    if (shim || last) end_frame_run(c);
    if (!at) return true;
  }
  return more;
}

enum { WALKS_BEFORE_LOADS = 16 };

unsigned python_chain(python_interpreter *in, const void *thread, bool main_thread, spool_writer *w,
                      uint64_t numbers[PYTHON_FRAMES_MOST], uint8_t runs[PYTHON_FRAMES_MOST + 1])
{
  chain c = {.in = in, .writer = w, .numbers = numbers, .runs = runs};
  unsigned walks = atomic_load_explicit(&in->walks, memory_order_relaxed);
  c.loads = main_thread && walks >= WALKS_BEFORE_LOADS;
  bool whole = walk_chain(&c, thread);
  if (walks < WALKS_BEFORE_LOADS)
    atomic_store_explicit(&in->walks, whole && c.count ? walks + 1 : 0, memory_order_relaxed);
  end_frame_run(&c);
  runs[c.run] = 0;
  return c.count;
}

/* Of a function that is called often: as long as it has this number its code is the same. Of code
 * that is being freed the function may be gone. */
static uint32_t function_version(const python_layout *l, const uint8_t *frame, uintptr_t code)
{
  uint32_t version = 0;
  int64_t references = (int64_t)python_word((const uint8_t *)code, 0);
  uintptr_t function = python_word(frame, 0);
  if (l->function >= 0 && function && references > 0)
    memcpy(&version, (const void *)(function + (unsigned)l->function), sizeof version);
  return version;
}

/* Frames that python_chain() can have, and shims between them. */
enum { LINKS_SIGNED = 2 * PYTHON_FRAMES_MOST };

/* The frames as they lie, by loads. */
static uint64_t sign_by_loads(const python_interpreter *in, const void *thread)
{
  const python_layout *l = &in->at;
  uintptr_t at = innermost(in, thread, true);
  uint64_t sign = 1;
  for (unsigned i = 0; at && i < LINKS_SIGNED; i++) {
    const uint8_t *frame = (const uint8_t *)at;
    bool shim = l->entry < 0 && frame[l->owner] >= OWNED_BY_C;
    uintptr_t code = shim ? 0 : python_word(frame, l->code) & ~UINT64_C(3);
    uint64_t instruction = python_word(frame, l->instruction);
    at = python_word(frame, l->previous);
    sign = mix_word(sign, shim || (l->entry >= 0 && frame[l->entry]));
    if (!code) continue;
    if (python_word((const uint8_t *)code, l->type) != (uintptr_t)in->code_type) return 0;
    uint64_t own = function_version(l, frame, code);
    if (!own) own = python_code_sign(in, code);
    if (!own) return 0;
    sign = mix_word(mix_word(sign, instruction), own);
  }
  return sign ? sign : 1;
}

static uint64_t sign_by_numbers(python_interpreter *in, const void *thread, bool main_thread,
                                spool_writer *w)
{
  uint64_t numbers[PYTHON_FRAMES_MOST], sign = 1;
  uint8_t runs[PYTHON_FRAMES_MOST + 1];
  unsigned count = python_chain(in, thread, main_thread, w, numbers, runs);
  for (unsigned i = 0; i < count; i++)
    sign = mix_word(sign, numbers[i]);
  for (unsigned i = 0; count && runs[i]; i++)
    sign = mix_word(sign, runs[i]);
  return count ? sign : 0;
}

uint64_t python_chain_sign(python_interpreter *in, const void *thread, bool main_thread,
                           spool_writer *w)
{
  bool loads =
      main_thread && atomic_load_explicit(&in->walks, memory_order_relaxed) >= WALKS_BEFORE_LOADS;
  return loads && in->at.copies < 0 ? sign_by_loads(in, thread)
                                    : sign_by_numbers(in, thread, main_thread, w);
}
