/* layout.c: where the interpreter of a version has what. From 3.13 on it says so itself, in the
 * table at the start of _PyRuntime that debuggers and profilers read (_Py_DebugOffsets). 3.11 and
 * 3.12 have no table: theirs are the offsets of their published headers, the same in all releases of
 * a minor version. What is read by them is checked: a code object must be of type code. */
#include <string.h>
#include "interpose/python/python.h"

static const python_layout before_tables[] = {
    {.minor = 11,
     .current = 56,
     .current_in = 8,
     .code = 32,
     .previous = 48,
     .instruction = 56,
     .owner = 69,
     .entry = 68,
     .line = 72,
     .file = 112,
     .name = 120,
     .qualified = 128,
     .lines = 136,
     .bytecode = 184,
     .version = -1,
     .ascii = 48,
     .compact = 72},
    {.minor = 12,
     .current = 56,
     .current_in = 0,
     .code = 0,
     .previous = 8,
     .instruction = 56,
     .owner = 70,
     .entry = -1,
     .line = 68,
     .file = 112,
     .name = 120,
     .qualified = 128,
     .lines = 136,
     .bytecode = 192,
     .version = 92,
     .ascii = 40,
     .compact = 56},
};

/* Words of 3.13's table. */
enum {
  TABLE_COOKIE,
  TABLE_VERSION,
  TABLE_FREE_THREADED,
  TABLE_CURRENT = 23,
  TABLE_PREVIOUS = 29,
  TABLE_CODE,
  TABLE_INSTRUCTION,
  TABLE_OWNER = 33,
  TABLE_FILE = 35,
  TABLE_NAME,
  TABLE_QUALIFIED,
  TABLE_LINES,
  TABLE_LINE,
  TABLE_BYTECODE = 43,
  TABLE_ASCII = 70,
  TABLE_WORDS = 71
};

/* Whether what is read of a frame and of a code object, in front of its bytecode, holds it all. */
static bool fits(const python_layout *at)
{
  const uint16_t in_frame[] = {at->code, at->previous, at->instruction, at->owner};
  const uint16_t in_code[] = {at->file, at->name, at->qualified, at->lines, at->line};
  bool good = at->bytecode <= PYTHON_CODE_BYTES;
  for (size_t i = 0; i < sizeof in_frame / sizeof *in_frame; i++)
    good = good && in_frame[i] + (i == 3 ? 1 : 8) <= PYTHON_FRAME_BYTES;
  for (size_t i = 0; i < sizeof in_code / sizeof *in_code; i++)
    good = good && in_code[i] + 8 <= at->bytecode;
  return good;
}

static bool read_table(python_layout *at, const void *runtime, unsigned long version)
{
  uint64_t t[TABLE_WORDS];
  if (!runtime || !python_read(t, (uintptr_t)runtime, sizeof t)) return false;
  if (memcmp(&t[TABLE_COOKIE], "xdebugpy", 8) != 0 || t[TABLE_VERSION] != version) return false;
  if (t[TABLE_FREE_THREADED]) return false; /* its bytecode is a thread's own */
  for (int i = TABLE_CURRENT; i < TABLE_WORDS; i++)
    if (t[i] > INT16_MAX) return false;
  *at = (python_layout){.minor = 13,
                        .current = (uint16_t)t[TABLE_CURRENT],
                        .current_in = -1,
                        .code = (uint16_t)t[TABLE_CODE],
                        .previous = (uint16_t)t[TABLE_PREVIOUS],
                        .instruction = (uint16_t)t[TABLE_INSTRUCTION],
                        .owner = (uint16_t)t[TABLE_OWNER],
                        .entry = -1,
                        .line = (uint16_t)t[TABLE_LINE],
                        .file = (uint16_t)t[TABLE_FILE],
                        .name = (uint16_t)t[TABLE_NAME],
                        .qualified = (uint16_t)t[TABLE_QUALIFIED],
                        .lines = (uint16_t)t[TABLE_LINES],
                        .bytecode = (uint16_t)t[TABLE_BYTECODE],
                        .version = 92, /* of which the table says nothing */
                        .ascii = (uint16_t)t[TABLE_ASCII],
                        .compact = (uint16_t)(t[TABLE_ASCII] + 16)};
  return fits(at);
}

bool python_layout_of(python_layout *at, unsigned long version, const void *runtime)
{
  unsigned minor = version >> 16 & 0xff;
  if (version >> 24 != 3 || (version >> 4 & 15) != 15) return false; /* no release */
  if (minor == 13) return read_table(at, runtime, version);
  for (size_t i = 0; i < sizeof before_tables / sizeof *before_tables; i++) {
    *at = before_tables[i];
    if (at->minor == minor) return true;
  }
  return false;
}
