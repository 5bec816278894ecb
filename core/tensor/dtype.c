/* dtype.c: the dtypes and the tensor types, by name.
 *
 * A tensor type is a dtype on a kind of device ("weir.cuda.FloatTensor"): PyTorch's older way to
 * name both. Everything here is a table made of WEIR_DTYPE_MAP. */
#include <string.h>
#include "core/base/require.h"
#include "core/tensor/tensor.h"

typedef struct row {
  const char *name, *type[2]; /* the tensor type on the cpu, and on cuda */
  uint8_t bytes;
} row;

static const row rows[WEIR_DTYPES] = {[WEIR_DTYPE_NONE] = {"none", {"none", "none"}, 0},
#define ROW(id, value, text, size, type)                                                           \
  [WEIR_##id] = {text, {"weir." type, "weir.cuda." type}, size},
                                      WEIR_DTYPE_MAP(ROW)
#undef ROW
};

static bool is_dtype(weir_dtype dtype)
{
  return (unsigned)dtype > WEIR_DTYPE_NONE && (unsigned)dtype < WEIR_DTYPES;
}

const char *weir_dtype_name(weir_dtype dtype)
{
  return (unsigned)dtype < WEIR_DTYPES ? rows[dtype].name : "unknown dtype";
}

size_t weir_dtype_size(weir_dtype dtype)
{
  return is_dtype(dtype) ? rows[dtype].bytes : 0;
}

bool weir_dtype_is_floating_point(weir_dtype dtype)
{
  return dtype == WEIR_FLOAT16 || dtype == WEIR_BFLOAT16 || dtype == WEIR_FLOAT32 ||
         dtype == WEIR_FLOAT64;
}

bool weir_dtype_is_complex(weir_dtype dtype)
{
  return dtype == WEIR_COMPLEX64;
}

const char *weir_type_name(weir_dtype dtype, weir_device_type device)
{
  return is_dtype(dtype) ? rows[dtype].type[device == WEIR_DEVICE_CUDA] : "unknown type";
}

/* ---- from text ------------------------------------------------------------------------------- */

/* What is after `prefix`, or NULL. */
static const char *after_prefix(const char *text, const char *prefix)
{
  size_t n = strlen(prefix);
  return strncmp(text, prefix, n) ? NULL : text + n;
}

static const char *without_library(const char *text)
{
  const char *rest = after_prefix(text, "weir.");
  if (!rest) rest = after_prefix(text, "torch.");
  return rest ? rest : text;
}

static weir_dtype dtype_called(const char *name)
{
  static const struct {
    const char *name;
    weir_dtype dtype;
  } aliases[] = {{"float", WEIR_FLOAT32},   {"double", WEIR_FLOAT64}, {"half", WEIR_FLOAT16},
                 {"byte", WEIR_UINT8},      {"char", WEIR_INT8},      {"short", WEIR_INT16},
                 {"int", WEIR_INT32},       {"long", WEIR_INT64},     {"bool", WEIR_BOOL},
                 {"cfloat", WEIR_COMPLEX64}};
  for (int i = 1; i < WEIR_DTYPES; i++)
    if (!strcmp(rows[i].name, name)) return (weir_dtype)i;
  for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
    if (!strcmp(aliases[i].name, name)) return aliases[i].dtype;
  return WEIR_DTYPE_NONE;
}

weir_status weir_dtype_parse(weir_dtype *out, const char *text)
{
  WEIR_REQUIRE(out, text);
  weir_dtype dtype = dtype_called(without_library(text));
  if (!dtype)
    return weir_fail(WEIR_EINVAL,
                     "invalid dtype: '%s'; valid: "
#define NAME(id, value, name, size, type) name ", "
                     WEIR_DTYPE_MAP(NAME)
#undef NAME
                         "float, double, half, byte, char, short, int, long, cfloat",
                     text);
  *out = dtype;
  return WEIR_OK;
}

static weir_status no_type(const char *text)
{
  return weir_fail(WEIR_EINVAL,
                   "invalid type: '%s'; valid:"
#define NAME(id, value, name, size, type) " weir." type
                   WEIR_DTYPE_MAP(NAME)
#undef NAME
                       ", and the same of weir.cuda",
                   text);
}

weir_status weir_type_parse(weir_dtype *dtype, weir_device *device, const char *text)
{
  WEIR_REQUIRE(dtype, device, text);
  const char *name = without_library(text);
  if (name == text) return no_type(text);
  const char *cuda = after_prefix(name, "cuda.");
  if (cuda) name = cuda;
  for (int i = 1; i < WEIR_DTYPES; i++)
    if (!strcmp(after_prefix(rows[i].type[0], "weir."), name)) {
      *dtype = (weir_dtype)i;
      *device = cuda ? WEIR_CUDA : WEIR_CPU;
      return WEIR_OK;
    }
  return no_type(text);
}

/* ---- promotion --------------------------------------------------------------------------------
 * torch.promote_types(), complex64 with float64 excepted: there is no complex128 here. */

/* Order of the signed integers; uint8 is next to int8. */
static int signed_rank(weir_dtype dtype)
{
  return dtype == WEIR_UINT8 ? WEIR_INT8 : (int)dtype;
}

static weir_dtype wider_integer(weir_dtype a, weir_dtype b)
{
  if (signed_rank(a) != signed_rank(b)) return signed_rank(a) > signed_rank(b) ? a : b;
  return WEIR_INT16; /* uint8 and int8 */
}

static weir_dtype wider_float(weir_dtype a, weir_dtype b)
{
  if (a == WEIR_FLOAT64 || b == WEIR_FLOAT64) return WEIR_FLOAT64;
  return WEIR_FLOAT32; /* also of float16 and bfloat16 */
}

weir_status weir_promote_types(weir_dtype *out, weir_dtype a, weir_dtype b)
{
  WEIR_REQUIRE(out);
  *out = WEIR_DTYPE_NONE;
  if (!is_dtype(a) || !is_dtype(b))
    return weir_fail(WEIR_EINVAL, "%d is not a dtype", (int)(is_dtype(a) ? b : a));
  bool fa = weir_dtype_is_floating_point(a), fb = weir_dtype_is_floating_point(b);
  if (a == b || b == WEIR_BOOL)
    *out = a;
  else if (a == WEIR_BOOL)
    *out = b;
  else if ((a == WEIR_COMPLEX64 && b == WEIR_FLOAT64) || (b == WEIR_COMPLEX64 && a == WEIR_FLOAT64))
    return weir_fail(WEIR_ENOTSUP, "complex64 and float64 promote to complex128, which is no "
                                   "dtype here");
  else if (a == WEIR_COMPLEX64 || b == WEIR_COMPLEX64)
    *out = WEIR_COMPLEX64;
  else if (fa && fb)
    *out = wider_float(a, b);
  else if (fa || fb)
    *out = fa ? a : b;
  else
    *out = wider_integer(a, b);
  return WEIR_OK;
}
