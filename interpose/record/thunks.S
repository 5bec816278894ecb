/* thunks.S: the code of unwrapped.c's thunks, THUNKS pieces of THUNK_BYTES. Each is an entry
 * (elf/entry.h), keeps flags, arguments and stack, and leaves by a jump.
 */
#include "interpose/elf/entry.h"
#include "interpose/record/unwrapped.h"

        .bss
        .globl  thunk_targets, thunk_taken, thunk_any_taken
        .balign 8
        .type   thunk_targets, %object
        .size   thunk_targets, 8 * THUNKS
thunk_targets:
        .zero   8 * THUNKS
        .type   thunk_taken, %object
        .size   thunk_taken, THUNKS
thunk_taken:
        .zero   THUNKS
        .type   thunk_any_taken, %object
        .size   thunk_any_taken, 1
thunk_any_taken:
        .zero   1

        .text
        .globl  thunk_code
        .hidden thunk_code, thunk_taken, thunk_any_taken, thunk_targets
        .type   thunk_code, %function
        .balign THUNK_BYTES
thunk_code:
        .cfi_startproc
        .set    n, 0
        .rept   THUNKS
        .balign THUNK_BYTES
        WEIR_ENTRY_CODE
#if defined __x86_64__
        movb    $1, thunk_taken + n(%rip)
        movb    $1, thunk_any_taken(%rip)
        jmp     *thunk_targets + 8 * n(%rip)
#elif defined __aarch64__
        mov     w17, #1
        adrp    x16, thunk_taken + n
        add     x16, x16, #:lo12:thunk_taken + n
        strb    w17, [x16]
        adrp    x16, thunk_any_taken
        add     x16, x16, #:lo12:thunk_any_taken
        stlrb   w17, [x16]
        adrp    x16, thunk_targets + 8 * n
        ldr     x16, [x16, #:lo12:thunk_targets + 8 * n]
        br      x16
#else
#error "no thunks for this processor"
#endif
        .set    n, n + 1
        .endr
        .balign THUNK_BYTES
        .cfi_endproc
        .size   thunk_code, . - thunk_code

#ifdef __x86_64__
        .section .note.gnu.property, "a"
        .p2align 3
        .long   4, 16, 5                /* name, description sizes; NT_GNU_PROPERTY_TYPE_0 */
        .asciz  "GNU"
        .long   0xc0000002, 4, 2, 0     /* GNU_PROPERTY_X86_FEATURE_1_AND: SHSTK; not IBT (elf/entry.h) */
#endif

        .section .note.GNU-stack, "", %progbits
