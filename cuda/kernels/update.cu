/* update.cu: an optimizer's step: weir_update. One launch a parameter; each element of it is read
 * and written once, by core/backend/update.h's formulas. */
#include "core/backend/update.h"
#include "cuda/kernels/op.h"

template <typename M> struct numbers_of;
template <> struct numbers_of<float> {
  typedef update_float type;
  WEIR_IN static type from(const weir_update *u) { return update_numbers_float(u); }
};
template <> struct numbers_of<double> {
  typedef update_double type;
  WEIR_IN static type from(const weir_update *u) { return update_numbers_double(u); }
};

#define WEIR_K_RULE(identifier, rule)                                                              \
  WEIR_FN void run_rule_##rule(const update_float *n, float *p, float g, float *s)                 \
  {                                                                                                \
    update_##rule##_float(n, p, g, s, s + 1, s + 2);                                               \
  }                                                                                                \
  WEIR_FN void run_rule_##rule(const update_double *n, double *p, double g, double *s)             \
  {                                                                                                \
    update_##rule##_double(n, p, g, s, s + 1, s + 2);                                              \
  }
WEIR_UPDATE_RULES(WEIR_K_RULE)
#undef WEIR_K_RULE

template <typename M, typename N> WEIR_FN void run_rule(int rule, const N *n, M *p, M g, M *s)
{
  switch (rule) {
#define WEIR_K_RULE(identifier, name)                                                              \
  case WEIR_UPDATE_##identifier:                                                                   \
    run_rule_##name(n, p, g, s);                                                                   \
    break;
    WEIR_UPDATE_RULES(WEIR_K_RULE)
#undef WEIR_K_RULE
  default:
    break;
  }
}

template <typename T, typename M> WEIR_FN void update(WEIR_PLACE_COMMA const weir_update &u)
{
  typename numbers_of<M>::type n = numbers_of<M>::from(&u);
  WEIR_EACH_THREAD
  {
    int64_t step = (int64_t)gridDim.x * WEIR_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * WEIR_THREADS + threadIdx.x; i < u.count; i += step) {
      M p = to<M>(((const T *)u.p)[i]), s[WEIR_UPDATE_STATES];
      WEIR_UNROLL for (int k = 0; k < WEIR_UPDATE_STATES; k++) s[k] =
          u.state[k] ? to<M>(((const T *)u.state[k])[i]) : (M)0;
      run_rule<M>(u.rule, &n, &p, to<M>(((const T *)u.grad)[i]), s);
      ((T *)u.p)[i] = to<T>(p);
      WEIR_UNROLL for (int k = 0; k < WEIR_UPDATE_STATES; k++) if (u.state[k])((T *)u.state[k])[i] =
          to<T>(s[k]);
    }
  }
}

#define WEIR_K_UPDATE(name, type, math)                                                            \
  WEIR_BLOCK_KERNEL(weir_update_##name, WEIR_THREADS, WEIR_GIVEN k_update a)                       \
  {                                                                                                \
    update<type, math>(WEIR_HERE_COMMA a.of);                                                      \
  }
WEIR_K_UPDATE(float16, f16, float)
WEIR_K_UPDATE(bfloat16, bf16, float)
WEIR_K_UPDATE(float32, float, float)
WEIR_K_UPDATE(float64, double, double)
