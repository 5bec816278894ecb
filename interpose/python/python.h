/* python.h: what the files of this folder share.
 *
 * Words: a chain is a thread's Python frames, innermost first. A run of them is what one call of
 * the interpreter's loop (_PyEval_EvalFrameDefault) executes: calls from Python to Python add no C
 * frame. */
#ifndef WEIR_INTERPOSE_PYTHON_H
#define WEIR_INTERPOSE_PYTHON_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/trace/spool.h"

enum {
  PYTHON_FRAMES_MOST = 128,
  PYTHON_FRAME_BYTES = 96,
  PYTHON_CODE_BYTES = 256,
  PYTHON_TEXT_BYTES = 64
};

/* Offsets in bytes; -1: there is none. */
typedef struct python_layout {
  uint16_t minor;     /* of 3.minor */
  uint16_t type;      /* object */
  uint16_t current;   /* thread state: the innermost frame, or what points to it: */
  int16_t current_in; /* there; -1: it is the frame itself */
  uint16_t code, previous, instruction, owner; /* frame */
  int16_t entry;        /* frame: whether it is the last of its run; -1: a shim comes after it */
  int16_t copy;         /* frame: which of its code object's copies of the bytecode it runs */
  uint16_t frame_bytes; /* of a frame, as far as it is read */
  uint16_t line, file, name, qualified, lines, bytecode; /* code object */
  int16_t version;  /* code object: a number that no other had or will have, or 0; -1: there is */
  int16_t function; /* function object, to which a frame's first word points: the like */
  int16_t copies;   /* code object: the array of copies of its bytecode */
  uint16_t bytes_count, bytes_start; /* bytes: how many, and they */
  uint16_t length, state;            /* str */
  uint16_t ascii, compact;           /* sizes of a str's heads, after which the characters are */
} python_layout;

typedef struct python_interpreter {
  python_layout at;
  uintptr_t start, end;           /* of the object's mapping */
  uintptr_t loop_start, loop_end; /* _PyEval_EvalFrameDefault */
  const void *code_type;          /* PyCode_Type */
  void *(*thread)(void);          /* PyGILState_GetThisThreadState */
  _Atomic unsigned walks;         /* one after the other that found what the layout has (chain.c) */
} python_interpreter;

/* A frame of a chain. */
typedef struct python_frame {
  uintptr_t code, instruction;
  uintptr_t start;                 /* of the bytecode that it runs; 0: not known */
  uint8_t head[PYTHON_CODE_BYTES]; /* of the code object */
} python_frame;

/* Fills `at`; false: a version that is not known, or its table has what cannot be. `runtime`:
 * _PyRuntime, NULL none. */
bool python_layout_of(python_layout *at, unsigned long version, const void *runtime);

/* Copies memory of this process, which may be gone: then false. */
bool python_read(void *to, uintptr_t from, size_t bytes);

/* A piece of memory to be copied; 0 bytes: none. */
typedef struct python_piece {
  void *to;
  uintptr_t from;
  size_t bytes;
} python_piece;

/* Reads several pieces at once; by loads, without the kernel, where `loads`: all are certain to be
 * there. False: some of it cannot be read. */
enum { PYTHON_PIECES_MOST = 3 };
bool python_read_pieces(bool loads, const python_piece *pieces, unsigned count);

/* Whether that works here, where nobody forbids it. */
bool python_can_read(void);

/* The chain of this thread as numbers (frame.c), and how many of them each run has, 0 after the
 * last. Returns how many frames. */
unsigned python_chain(python_interpreter *in, const void *thread, bool main_thread, spool_writer *w,
                      uint64_t numbers[PYTHON_FRAMES_MOST], uint8_t runs[PYTHON_FRAMES_MOST + 1]);

/* What python_chain() would have, as a number; 0: it cannot be read. */
uint64_t python_chain_sign(python_interpreter *in, const void *thread, bool main_thread,
                           spool_writer *w);

/* A frame as a number of the process, in place of a return address; names it once. 0: none left.
 * `loads`: as for python_read_pieces(). */
uint64_t python_frame_number(const python_interpreter *in, const python_frame *f, bool loads,
                             spool_writer *w);

/* What tells this code object from others that were where it is: by loads, so for the main thread
 * alone. 0: not known. */
uint64_t python_code_sign(const python_interpreter *in, uintptr_t code);

/* The table of numbers is of the parent: in a child nothing is named yet. */
void python_frames_forget(void);

static inline uint64_t python_word(const uint8_t *head, unsigned offset)
{
  uint64_t word;
  __builtin_memcpy(&word, head + offset, sizeof word);
  return word;
}

#endif
