/* cpu/update.c: an optimizer's step on the cpu: update.h's formulas over blocks of elements, which
 * threads share. A state that a rule does without is a block of the thread's own; float16 and
 * bfloat16 are converted block by block. No bit depends on how many threads there are. */
#include "core/backend/cpu/cpu.h"
#include "core/backend/threads.h"
#include "core/backend/update.h"

enum { OPERANDS = 2 + WEIR_UPDATE_STATES, BLOCK = 512 };

#define UPDATE_LOOPS(rule, M)                                                                      \
  static void rule##_##M(const void *numbers, void *operand[OPERANDS], int64_t n)                  \
  {                                                                                                \
    const update_##M *u = numbers;                                                                 \
    M *restrict p = operand[0], *restrict a = operand[2], *restrict b = operand[3],                \
                *restrict c = operand[4];                                                          \
    const M *restrict g = operand[1];                                                              \
    for (int64_t i = 0; i < n; i++)                                                                \
      update_##rule##_##M(u, &p[i], g[i], &a[i], &b[i], &c[i]);                                    \
  }
#define UPDATE_RULE(identifier, rule)                                                              \
  UPDATE_LOOPS(rule, float)                                                                        \
  UPDATE_LOOPS(rule, double)
WEIR_UPDATE_RULES(UPDATE_RULE)
#undef UPDATE_RULE

typedef void (*update_loop)(const void *numbers, void *operand[OPERANDS], int64_t n);

static const update_loop loops[WEIR_UPDATE_RULE_COUNT][2] = {
#define UPDATE_RULE(identifier, rule) {rule##_float, rule##_double},
    WEIR_UPDATE_RULES(UPDATE_RULE)
#undef UPDATE_RULE
};

typedef struct update_work {
  const weir_update *u;
  weir_dtype wide; /* FLOAT32, FLOAT64 */
  update_float of_float;
  update_double of_double;
} update_work;

/* Elements of an operand, NULL where there is none. */
static char *operand_at(const weir_update *u, int k, int64_t at)
{
  void *data = k == 0 ? u->p : k == 1 ? (void *)u->grad : u->state[k - 2];
  return data ? (char *)data + at * (int64_t)cpu_dtype_bytes(u->dtype) : NULL;
}

static void update_block(const update_work *w, int64_t at, int64_t n, double room[OPERANDS][BLOCK])
{
  const weir_update *u = w->u;
  void *operand[OPERANDS];
  cpu_cast cast = cpu_level_in_use()->cast[w->wide][u->dtype];
  for (int k = 0; k < OPERANDS; k++) {
    char *data = operand_at(u, k, at);
    operand[k] = data && w->wide == u->dtype ? data : (char *)room[k];
    if (data && w->wide != u->dtype) cast(room[k], data, n);
  }
  bool is_double = w->wide == WEIR_FLOAT64;
  loops[u->rule][is_double](is_double ? (const void *)&w->of_double : &w->of_float, operand, n);
  cast = cpu_level_in_use()->cast[u->dtype][w->wide];
  for (int k = 0; k < OPERANDS && w->wide != u->dtype; k++) {
    char *data = k == 1 ? NULL : operand_at(u, k, at);
    if (data) cast(data, room[k], n);
  }
}

static void update_part(void *arg, int64_t from, int64_t to)
{
  _Alignas(64) double room[OPERANDS][BLOCK] = {{0}};
  for (int64_t at = from; at < to; at += BLOCK)
    update_block(arg, at, to - at < BLOCK ? to - at : BLOCK, room);
}

weir_status cpu_update(void *self, void *stream, const weir_update *u)
{
  (void)self, (void)stream;
  update_work w = {.u = u,
                   .wide = cpu_kernel_dtype(u->dtype),
                   .of_float = update_numbers_float(u),
                   .of_double = update_numbers_double(u)};
  parallel_for(u->count, CPU_GRAIN, update_part, &w);
  return WEIR_OK;
}
