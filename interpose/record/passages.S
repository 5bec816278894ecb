/* passages.S: the code of unseen.c's passages, WEIR_PASSAGES pieces of WEIR_PASSAGE_BYTES. Each is a
 * branch target (IBT, BTI), keeps flags, arguments and stack, and leaves by a jump.
 */
#include "interpose/record/unseen.h"

        .bss
        .globl  weir_passage_to, weir_passed, weir_passed_any
        .balign 8
        .type   weir_passage_to, %object
        .size   weir_passage_to, 8 * WEIR_PASSAGES
weir_passage_to:
        .zero   8 * WEIR_PASSAGES
        .type   weir_passed, %object
        .size   weir_passed, WEIR_PASSAGES
weir_passed:
        .zero   WEIR_PASSAGES
        .type   weir_passed_any, %object
        .size   weir_passed_any, 1
weir_passed_any:
        .zero   1

        .text
        .globl  weir_passages
        .hidden weir_passages, weir_passed, weir_passed_any, weir_passage_to
        .type   weir_passages, %function
        .balign WEIR_PASSAGE_BYTES
weir_passages:
        .cfi_startproc
        .set    n, 0
        .rept   WEIR_PASSAGES
        .balign WEIR_PASSAGE_BYTES
#if defined __x86_64__
        endbr64
        movb    $1, weir_passed + n(%rip)
        movb    $1, weir_passed_any(%rip)
        jmp     *weir_passage_to + 8 * n(%rip)
#elif defined __aarch64__
        hint    #34                     /* bti c */
        mov     w17, #1
        adrp    x16, weir_passed + n
        add     x16, x16, #:lo12:weir_passed + n
        strb    w17, [x16]
        adrp    x16, weir_passed_any
        add     x16, x16, #:lo12:weir_passed_any
        stlrb   w17, [x16]
        adrp    x16, weir_passage_to + 8 * n
        ldr     x16, [x16, #:lo12:weir_passage_to + 8 * n]
        br      x16
#else
#error "no passages for this processor"
#endif
        .set    n, n + 1
        .endr
        .balign WEIR_PASSAGE_BYTES
        .cfi_endproc
        .size   weir_passages, . - weir_passages

#ifdef __x86_64__
        .section .note.gnu.property, "a"
        .p2align 3
        .long   4, 16, 5                /* name, description sizes; NT_GNU_PROPERTY_TYPE_0 */
        .asciz  "GNU"
        .long   0xc0000002, 4, 3, 0     /* GNU_PROPERTY_X86_FEATURE_1_AND: IBT, SHSTK */
#endif

        .section .note.GNU-stack, "", %progbits
