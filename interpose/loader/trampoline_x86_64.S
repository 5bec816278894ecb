/* trampoline_x86_64.S: the exported dlsym, dlvsym, dlopen and dlmopen.
 *
 * Each keeps the argument registers, gives the filter in lookup.c what it needs, and then returns the
 * filter's answer (rax, when its target in rdx is 0) or jumps to the target with stack and arguments
 * as they came, so that the real function takes the program, not us, for its caller. Calls and
 * returns pair (shadow stacks). The stack is on a 16-byte boundary at each call.
 */
#include "interpose/elf/entry.h"

#ifdef __x86_64__

        .text

/* EXPORT public, own: one entry with two names; `own` can't be interposed. */
.macro ENTRY public, own
        .globl  \public
        .globl  \own
        .hidden \own
        .type   \public, @function
        .type   \own, @function
        .p2align 5
\public:
\own:
        .cfi_startproc
        WEIR_ENTRY_CODE
.endm

.macro LEAVE public, own
        .cfi_endproc
        .size   \public, . - \public
        .size   \own, . - \own
.endm

.macro KEEP register
        pushq   \register
        .cfi_adjust_cfa_offset 8
.endm

.macro RESTORE register
        popq    \register
        .cfi_adjust_cfa_offset -8
.endm

.macro ROOM bytes
        subq    $\bytes, %rsp
        .cfi_adjust_cfa_offset \bytes
.endm

.macro UNROOM bytes
        addq    $\bytes, %rsp
        .cfi_adjust_cfa_offset -\bytes
.endm

/* void *dlsym(void *handle, const char *name) */
ENTRY dlsym, own_dlsym
        KEEP    %rdi
        KEEP    %rsi
        ROOM    8
        movq    24(%rsp), %rdx          /* the program's return address */
        call    filter_dlsym
        UNROOM  8
        RESTORE %rsi
        RESTORE %rdi
        testq   %rdx, %rdx
        jz      1f
        jmp     *%rdx
1:      ret
LEAVE dlsym, own_dlsym

/* void *dlvsym(void *handle, const char *name, const char *version) */
ENTRY dlvsym, own_dlvsym
        KEEP    %rdi
        KEEP    %rsi
        KEEP    %rdx
        movq    %rdx, %rcx
        movq    24(%rsp), %rdx
        call    filter_dlvsym
        movq    %rdx, %rcx
        RESTORE %rdx
        RESTORE %rsi
        RESTORE %rdi
        testq   %rcx, %rcx
        jz      1f
        jmp     *%rcx
1:      ret
LEAVE dlvsym, own_dlvsym

/* void *dlopen(const char *file, int mode) */
ENTRY dlopen, own_dlopen
        KEEP    %rdi
        movl    %esi, %edi
        call    filter_dlopen
        RESTORE %rdi
        movl    %eax, %esi
        jmp     *%rdx
LEAVE dlopen, own_dlopen

/* void *dlmopen(long namespace, const char *file, int mode) */
ENTRY dlmopen, own_dlmopen
        KEEP    %rdi
        KEEP    %rsi
        ROOM    8
        movl    %edx, %esi
        call    filter_dlmopen
        UNROOM  8
        RESTORE %rsi
        RESTORE %rdi
        movq    %rdx, %rcx
        movl    %eax, %edx
        jmp     *%rcx
LEAVE dlmopen, own_dlmopen

        .section .note.gnu.property, "a"
        .p2align 3
        .long   4, 16, 5                /* name, description sizes; NT_GNU_PROPERTY_TYPE_0 */
        .asciz  "GNU"
        .long   0xc0000002, 4, 2, 0     /* GNU_PROPERTY_X86_FEATURE_1_AND: SHSTK; not IBT (elf/entry.h) */
#endif

        .section .note.GNU-stack, "", %progbits
