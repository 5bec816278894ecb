/* layout.c: where the interpreter of a version has what. From 3.13 on it has a table of that, in
 * the table at the start of _PyRuntime that debuggers and profilers read (_Py_DebugOffsets). 3.11
 * and 3.12 have no table: theirs are the offsets of their published headers, the same in all
 * releases of a minor version. What is read by them is checked: a code object must be of type
 * code.
 *
 * A build without the interpreter's lock has larger objects, and from 3.14 on a copy of a code
 * object's bytecode for each thread: its table has the place. */
#include <string.h>
#include "interpose/python/python.h"

/* What 3.11 and 3.12 have at the same places. */
#define BEFORE_TABLES                                                                              \
  .type = 8, .current = 56, .copy = -1, .frame_bytes = 72, .file = 112, .name = 120,               \
  .qualified = 128, .lines = 136, .copies = -1, .bytes_count = 16, .bytes_start = 32,              \
  .length = 16, .state = 32

static const python_layout before_tables[] = {
    {.minor = 11,
     BEFORE_TABLES,
     .current_in = 8,
     .code = 32,
     .previous = 48,
     .instruction = 56,
     .owner = 69,
     .entry = 68,
     .line = 72,
     .bytecode = 184,
     .version = -1,
     .function = 128,
     .ascii = 48,
     .compact = 72},
    {.minor = 12,
     BEFORE_TABLES,
     .current_in = 0,
     .code = 0,
     .previous = 8,
     .instruction = 56,
     .owner = 70,
     .entry = -1,
     .line = 68,
     .bytecode = 192,
     .version = 92,
     .function = -1,
     .ascii = 40,
     .compact = 56},
};

/* A table is words: three of its own, and a group for each structure, its size first. Versions have
 * more or fewer groups, and words at the end of them. */
enum { TABLE_COOKIE, TABLE_VERSION, TABLE_FREE_THREADED, TABLE_MOST = 84 };

typedef struct table_form {
  uint8_t minor, thread, frame, code, object, bytes, text; /* where groups begin */
  bool copies; /* whether a frame's group and a code object's end with the word for the copies */
} table_form;

static const table_form forms[] = {{13, 19, 28, 34, 44, 64, 67, false},
                                   {14, 22, 31, 39, 50, 74, 77, true}};

/* Whether what is read of a frame and of a code object, in front of its bytecode, holds it all. */
static bool fits(const python_layout *at)
{
  const int in_frame[] = {at->code + 8, at->previous + 8, at->instruction + 8, at->owner + 1,
                          at->copy + 4};
  const int in_code[] = {at->file, at->name, at->qualified, at->lines,
                         at->line, at->type, at->version,   at->copies};
  bool good = at->bytecode <= PYTHON_CODE_BYTES && at->state <= PYTHON_TEXT_BYTES - 4 &&
              at->length <= PYTHON_TEXT_BYTES - 8 && at->bytes_count <= PYTHON_TEXT_BYTES - 8;
  for (size_t i = 0; i < sizeof in_frame / sizeof *in_frame; i++)
    good = good && in_frame[i] <= at->frame_bytes;
  for (size_t i = 0; i < sizeof in_code / sizeof *in_code; i++)
    good = good && in_code[i] + 8 <= at->bytecode;
  return good && at->frame_bytes <= PYTHON_FRAME_BYTES;
}

static void read_groups(python_layout *at, const table_form *f, const uint64_t *t)
{
  const uint64_t *frame = t + f->frame, *code = t + f->code, *text = t + f->text;
  bool copies = f->copies && t[TABLE_FREE_THREADED];
  *at = (python_layout){.minor = f->minor,
                        .type = (uint16_t)t[f->object + 1],
                        .current = (uint16_t)t[f->thread + 4],
                        .current_in = -1,
                        .previous = (uint16_t)frame[1],
                        .code = (uint16_t)frame[2],
                        .instruction = (uint16_t)frame[3],
                        .owner = (uint16_t)frame[5],
                        .entry = -1,
                        .copy = copies ? (int16_t)frame[7] : -1,
                        .frame_bytes = (uint16_t)(frame[5] | 7) + 1,
                        .file = (uint16_t)code[1],
                        .name = (uint16_t)code[2],
                        .qualified = (uint16_t)code[3],
                        .lines = (uint16_t)code[4],
                        .line = (uint16_t)code[5],
                        .version = (int16_t)(code[5] + 24), /* which the table does not have */
                        .function = -1,
                        .bytecode = (uint16_t)code[9],
                        .copies = copies ? (int16_t)code[10] : -1,
                        .bytes_count = (uint16_t)t[f->bytes + 1],
                        .bytes_start = (uint16_t)t[f->bytes + 2],
                        .state = (uint16_t)text[1],
                        .length = (uint16_t)text[2],
                        .ascii = (uint16_t)text[3],
                        .compact = (uint16_t)(text[3] + 16)};
}

static bool read_table(python_layout *at, const table_form *f, const void *runtime,
                       unsigned long version)
{
  uint64_t t[TABLE_MOST];
  unsigned words = f->text + 4u;
  if (!runtime || !python_read(t, (uintptr_t)runtime, words * sizeof *t)) return false;
  if (memcmp(&t[TABLE_COOKIE], "xdebugpy", 8) != 0 || t[TABLE_VERSION] != version) return false;
  for (unsigned i = f->thread; i < words; i++)
    if (t[i] > INT16_MAX - 24) return false;
  read_groups(at, f, t);
  return fits(at);
}

bool python_layout_of(python_layout *at, unsigned long version, const void *runtime)
{
  unsigned minor = version >> 16 & 0xff;
  if (version >> 24 != 3 || (version >> 4 & 15) != 15) return false; /* no release */
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (forms[i].minor == minor) return read_table(at, &forms[i], runtime, version);
  for (size_t i = 0; i < sizeof before_tables / sizeof *before_tables; i++) {
    *at = before_tables[i];
    if (at->minor == minor) return true;
  }
  return false;
}
