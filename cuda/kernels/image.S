/* image.S: a fat binary as an object of the library; the build names both. */
        .section .rodata
        .balign 64
        .globl WEIR_IMAGE
        .hidden WEIR_IMAGE
        .type WEIR_IMAGE, @object
WEIR_IMAGE:
        .incbin WEIR_IMAGE_FILE
        .size WEIR_IMAGE, . - WEIR_IMAGE
        .section .note.GNU-stack, "", %progbits
