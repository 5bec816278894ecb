/* stack_signs.c: see stack_signs.h. */
#include "core/trace/stack_signs.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

enum { ENTRY_BITS = 11 };

typedef struct signed_stack {
  uint64_t sign;
  uint32_t path, id; /* id 0: the entry is empty */
} signed_stack;

struct stack_signs {
  signed_stack entry[1 << ENTRY_BITS];
};

static size_t place_of(uint32_t path, uint64_t sign)
{
  return (sign ^ (uint64_t)path << 32) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - ENTRY_BITS);
}

uint32_t stack_sign_find(const stack_signs *signs, uint32_t path, uint64_t sign)
{
  if (!signs) return 0;
  const signed_stack *e = &signs->entry[place_of(path, sign)];
  return e->sign == sign && e->path == path ? e->id : 0;
}

void stack_sign_put(stack_signs **signs, uint32_t path, uint64_t sign, uint32_t id)
{
  if (!*signs) {
    void *p =
        mmap(NULL, sizeof **signs, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return;
    *signs = p;
  }
  (*signs)->entry[place_of(path, sign)] = (signed_stack){sign, path, id};
}

void stack_sign_forget(stack_signs *signs)
{
  if (signs) memset(signs, 0, sizeof *signs);
}

void stack_sign_release(stack_signs **signs)
{
  if (*signs) munmap(*signs, sizeof **signs);
  *signs = NULL;
}
