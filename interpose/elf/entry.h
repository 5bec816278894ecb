/* entry.h: how every function begins that a program can get from this library.
 *
 * Other tools in a process patch functions: they write a jump of 5 to 16 bytes over the first
 * instructions, and keep those in a place of their own, from where the function goes on (UCX's
 * memory hooks, for one). Their decoders know few instructions, and must refuse what depends on
 * its own place. What a compiler puts first is sometimes known to them and sometimes not, so each
 * function that is exported, or handed out by dlsym() and its kin, is an entry: instructions that
 * do nothing, that every such decoder knows, and that mean the same in any place; then a jump to
 * the function's body.
 *
 * x86-64: 4 times mov $8, %eax, 20 bytes, on a boundary of 32. A function may be given in al how
 * many vector registers its variable arguments take at most; 8, all of them, is right for each.
 * aarch64: 4 times mov x16, 0, 16 bytes; x16 is any call's to lose.
 *
 * No landing pad (endbr64, bti) is there: the decoders do not know them. The library is therefore
 * not marked as having them, and the processor asks for none (the notes in the *.S files have
 * it). */
#ifndef WEIR_INTERPOSE_ENTRY_H
#define WEIR_INTERPOSE_ENTRY_H

/* clang-format off */
#if defined __x86_64__
#define WEIR_ENTRY_CODE .rept 4; .byte 0xb8, 8, 0, 0, 0; .endr
#define WEIR_ENTRY_JUMP "jmp "
#define WEIR_ENTRY_WORD 0x0008b800000008b8 /* its first 8 bytes */
#elif defined __aarch64__
#define WEIR_ENTRY_CODE .rept 4; mov x16, 0; .endr
#define WEIR_ENTRY_JUMP "b "
#define WEIR_ENTRY_WORD 0xd2800010d2800010
#else
#error "no entry for this processor"
#endif
/* clang-format on */

#ifndef __ASSEMBLER__
#include <stdbool.h>
#include <stdint.h>

#define WEIR_TEXT_OF(...) #__VA_ARGS__
#define WEIR_TEXT(...)    WEIR_TEXT_OF(__VA_ARGS__)

#define WEIR_ENTRY_AT(name, scope, body)                                                           \
  __asm__(".pushsection .text\n.p2align 5\n" scope #name "\n.type " #name ", %function\n" #name    \
          ":\n.cfi_startproc\n" WEIR_TEXT(WEIR_ENTRY_CODE) "\n" WEIR_ENTRY_JUMP #body              \
                                                           "\n.cfi_endproc\n.size " #name          \
                                                           ", . - " #name "\n.popsection\n")

/* `name` is the entry of `body`, a function of the same type in this file, marked WEIR_BODY. The
 * one is exported; the other is for this library, which may take its address. */
#define WEIR_ENTRY(name, body)                                                                     \
  _Static_assert(__builtin_types_compatible_p(__typeof__(name), __typeof__(body)), #name);         \
  WEIR_ENTRY_AT(name, ".globl ", body)
#define WEIR_ENTRY_OWN(name, body)                                                                 \
  extern __attribute__((visibility("hidden"))) __typeof__(body) name;                              \
  WEIR_ENTRY_AT(name, ".hidden " #name "\n.globl ", body)

/* What only an entry calls. */
#define WEIR_BODY static __attribute__((used))

/* Whether another tool has written over the entry. */
static inline bool entry_is_patched(const void *entry)
{
  return __atomic_load_n((const uint64_t *)entry, __ATOMIC_RELAXED) != WEIR_ENTRY_WORD;
}
#endif

#endif
