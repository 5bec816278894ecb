/* movable.h: what a tool that patches functions can move of a function's start, when it knows as
 * few instructions as such tools do: those that are the same in any place. */
#ifndef WEIR_TESTS_MOVABLE_H
#define WEIR_TESTS_MOVABLE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes of the instruction, or 0: it is not known, or not the same elsewhere. */
static inline size_t movable_instruction(const unsigned char *code)
{
#if defined __x86_64__
  if ((code[0] & 0xf8) == 0xb8) return 5; /* mov $imm32, %reg */
  if ((code[0] & 0xf8) == 0x50) return 1; /* push %reg */
  return 0;
#else
  uint32_t word;
  memcpy(&word, code, sizeof word);
  uint32_t kind = word & 0x7f800000;
  return kind == 0x52800000 || kind == 0x72800000 ? 4 : 0; /* movz, movk */
#endif
}

/* Whole instructions of at least `bytes` in all, or 0. */
static inline size_t movable_bytes(const unsigned char *code, size_t bytes)
{
  size_t all = 0;
  while (all < bytes) {
    size_t one = movable_instruction(code + all);
    if (!one) return 0;
    all += one;
  }
  return all;
}

#endif
