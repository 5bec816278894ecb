/* trampoline_aarch64.S: the exported dlsym, dlvsym, dlopen and dlmopen; see trampoline_x86_64.S.
 *
 * The filter answers in x0 and its target in x1. x30 holds the program's return address; it is signed
 * by nobody while it is on the stack here.
 */
#include "interpose/elf/entry.h"

#ifdef __aarch64__

        .text

.macro ENTRY public, own
        .globl  \public
        .globl  \own
        .hidden \own
        .type   \public, %function
        .type   \own, %function
        .p2align 5
\public:
\own:
        .cfi_startproc
        WEIR_ENTRY_CODE
        stp     x29, x30, [sp, #-48]!
        .cfi_def_cfa_offset 48
        .cfi_offset x29, -48
        .cfi_offset x30, -40
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        str     x2, [sp, #32]
.endm

.macro UNWIND
        mov     x16, x1
        mov     x17, x0
        ldr     x2, [sp, #32]
        ldp     x0, x1, [sp, #16]
        ldp     x29, x30, [sp], #48
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
.endm

.macro LEAVE public, own
        .cfi_endproc
        .size   \public, . - \public
        .size   \own, . - \own
.endm

/* void *dlsym(void *handle, const char *name) */
ENTRY dlsym, own_dlsym
        mov     x2, x30
        bl      filter_dlsym
        UNWIND
        cbz     x16, 1f
        br      x16
1:      mov     x0, x17
        ret
LEAVE dlsym, own_dlsym

/* void *dlvsym(void *handle, const char *name, const char *version) */
ENTRY dlvsym, own_dlvsym
        mov     x3, x2
        mov     x2, x30
        bl      filter_dlvsym
        UNWIND
        cbz     x16, 1f
        br      x16
1:      mov     x0, x17
        ret
LEAVE dlvsym, own_dlvsym

/* void *dlopen(const char *file, int mode) */
ENTRY dlopen, own_dlopen
        mov     w0, w1
        bl      filter_dlopen
        UNWIND
        mov     w1, w17
        br      x16
LEAVE dlopen, own_dlopen

/* void *dlmopen(long namespace, const char *file, int mode) */
ENTRY dlmopen, own_dlmopen
        mov     w1, w2
        bl      filter_dlmopen
        UNWIND
        mov     w2, w17
        br      x16
LEAVE dlmopen, own_dlmopen
#endif

        .section .note.GNU-stack, "", %progbits
