/* stack_signs.h: ids of stacks that a rewriter (stack.h) makes of a path (stack_path.h) and a sign,
 * which is what the path does not show. A table of one thread, in mapped memory: one entry a place,
 * and what comes later takes the place of what was there. */
#ifndef WEIR_TRACE_STACK_SIGNS_H
#define WEIR_TRACE_STACK_SIGNS_H

#include <stdint.h>

typedef struct stack_signs stack_signs;

/* The id of this path with this sign; 0: not known. */
uint32_t stack_sign_find(const stack_signs *signs, uint32_t path, uint64_t sign);

void stack_sign_put(stack_signs **signs, uint32_t path, uint64_t sign, uint32_t id);

/* Forgets all, or gives the memory back. */
void stack_sign_forget(stack_signs *signs);
void stack_sign_release(stack_signs **signs);

#endif
