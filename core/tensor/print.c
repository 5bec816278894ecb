/* print.c: a tensor as text, in torch's form, to the character.
 *
 * The rules are those of PyTorch's printing (torch.set_printoptions documents the options; the rest
 * is what its output shows, which the tests compare with):
 *   - All numbers of a tensor are as wide as its widest, found among those that are finite and not
 *     0. Floating point is written as whole numbers with a point where all are whole; else with
 *     `precision` digits. It has an exponent where the largest is beyond 1e8 or more than 1000
 * times the smallest, or the smallest is below 1e-4.
 *   - More than `threshold` elements are summarised: of each dimension with more than 2 edgeitems,
 *     the first and the last edgeitems. Widths are those of what is shown.
 *   - The device follows where it is another kind than the default device, or not the current CUDA
 *     device; the dtype where it does not show (neither the default dtype, nor int64, nor bool, nor
 *     complex64 with a default of other than float64).
 * One thing differs: a dtype is weir.float64.
 *
 * Only what is shown is fetched from a device. */
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/lock.h"
#include "core/stream/async_error.h"
#include "core/tensor/loop.h"

enum { NUMBER_BYTES = 512, PRECISION_MOST = 100 };

static const weir_print_options at_first = {4, 1000, 3, 80, 0};
static weir_print_options now = {4, 1000, 3, 80, 0};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* How the numbers of a tensor, or the real or the imaginary ones, are written. */
typedef struct format {
  bool floating, whole, exponent;
  int precision, width; /* digits; characters */
} format;

typedef struct printer {
  FILE *f;
  weir_print_options o;
  const weir_tensor *shown; /* on the cpu, dense; the elements that are printed */
  bool cut[WEIR_MAX_DIMS];  /* "..." in the middle of this dimension */
  bool summarised;
  format real, imag;
  int per_line; /* numbers */
} printer;

weir_status weir_set_print_options(const weir_print_options *options)
{
  weir_print_options o = options ? *options : at_first;
  if (o.precision < 0 || o.precision > PRECISION_MOST || o.threshold < 0 || o.edgeitems < 0 ||
      o.linewidth < 1 || o.sci_mode < -1 || o.sci_mode > 1)
    return fail_invalid("print options: precision is 0 to %d, threshold and edgeitems from 0, "
                        "linewidth from 1, sci_mode -1, 0 or 1; got %d, %d, %d, %d, %d",
                        PRECISION_MOST, o.precision, o.threshold, o.edgeitems, o.linewidth,
                        o.sci_mode);
  HOLD_LOCK(&lock);
  now = o;
  return WEIR_OK;
}

/* ---- one number ------------------------------------------------------------------------------ */

/* Its characters, without padding. */
static int write_element(char *to, const format *f, weir_scalar v, double part)
{
  if (!f->floating)
    return v.dtype == WEIR_BOOL ? snprintf(to, NUMBER_BYTES, "%s", v.i ? "True" : "False")
                                : snprintf(to, NUMBER_BYTES, "%lld", (long long)v.i);
  if (isnan(part)) return snprintf(to, NUMBER_BYTES, "nan"); /* C writes its sign, too */
  if (f->exponent) return snprintf(to, NUMBER_BYTES, "%.*e", f->precision, part);
  if (f->whole) return snprintf(to, NUMBER_BYTES, isinf(part) ? "%.0f" : "%.0f.", part);
  return snprintf(to, NUMBER_BYTES, "%.*f", f->precision, part);
}

static weir_scalar element_number(const weir_tensor *t, int64_t i)
{
  weir_dtype dtype = t->dtype;
  return scalar_at(t->data + i * (int64_t)itemsize(dtype), dtype);
}

/* ---- how all are written --------------------------------------------------------------------- */

static void widen(format *f, weir_scalar v, double part)
{
  char text[NUMBER_BYTES];
  int n = write_element(text, f, v, part);
  if (n > f->width) f->width = n;
}

static format format_of(const weir_tensor *t, const weir_print_options *o, bool imaginary)
{
  weir_dtype dtype = t->dtype;
  format f = {!dtype_is_integral_or_bool(dtype), true, false, o->precision, 1};
  double least = INFINITY, most = 0;
  for (int64_t i = 0; i < t->numel; i++) {
    weir_scalar v = element_number(t, i);
    double part = imaginary ? v.imag : v.f;
    if (f.floating && (!isfinite(part) || part == 0)) continue;
    least = fmin(least, fabs(part));
    most = fmax(most, fabs(part));
    f.whole &= part == ceil(part);
  }
  if (f.floating && most > 0)
    f.exponent = o->sci_mode ? o->sci_mode > 0 : most / least > 1000 || most > 1e8 || least < 1e-4;
  for (int64_t i = 0; i < t->numel; i++) {
    weir_scalar v = element_number(t, i);
    double part = imaginary ? v.imag : v.f;
    if (!f.floating || (isfinite(part) && part != 0)) widen(&f, v, part);
  }
  return f;
}

/* ---- the elements ---------------------------------------------------------------------------- */

static void pad(FILE *f, int count)
{
  if (count > 0) (void)fprintf(f, "%*s", count, "");
}

static void put_element(const printer *p, int64_t i)
{
  char text[NUMBER_BYTES];
  weir_scalar v = element_number(p->shown, i);
  pad(p->f, p->real.width - write_element(text, &p->real, v, v.f));
  (void)fputs(text, p->f);
  if (p->shown->dtype != WEIR_COMPLEX64) return;
  (void)write_element(text, &p->imag, v, v.imag);
  if (text[0] != '-') (void)fputc('+', p->f);
  (void)fprintf(p->f, "%sj", text);
}

/* Between items: how many of a line are there already, and where the next line begins. */
static void between(const printer *p, int done, int indent)
{
  if (!done) return;
  if (done % p->per_line)
    (void)fputs(", ", p->f);
  else
    (void)fprintf(p->f, ",\n%*s", indent + 1, "");
}

static void put_vector(printer *p, int dim, int64_t from, int indent)
{
  int64_t size = p->shown->size[dim];
  int done = 0;
  int wide = p->real.width + 2;
  if (p->shown->dtype == WEIR_COMPLEX64) wide += p->imag.width + 1;
  p->per_line = p->o.linewidth - indent < wide ? 1 : (p->o.linewidth - indent) / wide;
  (void)fputc('[', p->f);
  for (int64_t i = 0; i < size; i++) {
    between(p, done++, indent);
    if (p->cut[dim] && i == size / 2) {
      (void)fputs(" ...", p->f);
      between(p, done++, indent);
    }
    put_element(p, from + i);
  }
  if (p->cut[dim] && !size) (void)fputs("...", p->f);
  (void)fputc(']', p->f);
}

static void put_slices(printer *p, int dim, int64_t from, int indent)
{
  const weir_tensor *t = p->shown;
  int inner = t->dims - dim - 1; /* dimensions in a slice: as many new lines between two */
  if (!inner) {
    put_vector(p, dim, from, indent);
    return;
  }
  (void)fputc('[', p->f);
  for (int64_t i = 0; i < t->size[dim]; i++) {
    for (int cut = p->cut[dim] && i == t->size[dim] / 2; cut >= 0; cut--) {
      if (i) {
        (void)fputc(',', p->f);
        for (int line = 0; line < inner; line++)
          (void)fputc('\n', p->f);
        pad(p->f, indent + 1);
      }
      if (cut) (void)fputs("...", p->f);
    }
    put_slices(p, dim + 1, from + i * t->stride[dim], indent + 1);
  }
  if (p->cut[dim] && !t->size[dim]) (void)fputs("...", p->f);
  (void)fputc(']', p->f);
}

/* ---- what is shown of it --------------------------------------------------------------------- */

/* Copies t to `to`, of each dimension from `dim` on what `to` has room for: the ends. */
static weir_status copy_ends(const printer *p, weir_tensor *to, const weir_tensor *t, int dim)
{
  weir_status st = WEIR_OK;
  while (dim < t->dims && !p->cut[dim])
    dim++;
  if (dim == t->dims) return weir_copy_(to, t, false);
  int64_t half = to->size[dim] / 2;
  for (int end = 0; end < 2 && !st; end++) {
    WEIR_TENSOR a = NULL, b = NULL;
    st = weir_narrow(&a, to, dim, end ? half : 0, half);
    if (!st) st = weir_narrow(&b, t, dim, end ? t->size[dim] - half : 0, half);
    if (!st) st = copy_ends(p, a, b, dim + 1);
  }
  return st;
}

static weir_status take_shown(printer *p, weir_tensor **out, const weir_tensor *t)
{
  weir_shape s = weir_tensor_shape(t);
  p->summarised = t->numel > p->o.threshold;
  for (int i = 0; i < t->dims; i++) {
    p->cut[i] = p->summarised && t->size[i] > 2 * (int64_t)p->o.edgeitems;
    if (p->cut[i]) s.size[i] = 2 * (int64_t)p->o.edgeitems;
  }
  weir_status st = tensor_new(out, t->dtype, WEIR_CPU, false, s);
  return st ? st : copy_ends(p, *out, t, 0);
}

/* ---- what follows ---------------------------------------------------------------------------- */

/* "(0, 3)" */
static void size_text(char *to, size_t room, const weir_tensor *t)
{
  size_t n = (size_t)snprintf(to, room, "size=(");
  for (int i = 0; i < t->dims; i++)
    n += (size_t)snprintf(to + n, room - n, i ? ", %lld" : "%lld", (long long)t->size[i]);
  (void)snprintf(to + n, room - n, t->dims == 1 ? ",)" : ")");
}

static bool dtype_shows(const weir_tensor *t)
{
  weir_dtype dtype = t->dtype, usual = weir_get_default_dtype();
  if (dtype == usual) return true;
  if (!t->numel) return false;
  if (dtype == WEIR_COMPLEX64) return usual != WEIR_FLOAT64;
  return dtype == WEIR_INT64 || dtype == WEIR_BOOL;
}

static bool device_shows(const weir_tensor *t)
{
  weir_device d = device_of_tensor(t), current;
  if (d.type != weir_get_default_device().type) return false;
  (void)weir_current_device(&current);
  return d.type != WEIR_DEVICE_CUDA || weir_device_equal(d, current);
}

/* A suffix goes onto the last line, as long as it fits; *used: characters there. */
static void put_suffix(const printer *p, int *used, int indent, const char *text)
{
  int n = (int)strlen(text);
  if (*used + n + 2 > p->o.linewidth) {
    (void)fprintf(p->f, ",\n%*s%s", indent, "", text);
    *used = indent + n;
  } else {
    (void)fprintf(p->f, ", %s", text);
    *used += n + 2;
  }
}

static void put_suffixes(const printer *p, const weir_tensor *t, int used, int indent)
{
  char text[256], device[WEIR_DEVICE_TEXT];
  if (!device_shows(t)) {
    (void)snprintf(text, sizeof text, "device='%s'", device_format(device, device_of_tensor(t)));
    put_suffix(p, &used, indent, text);
  }
  if (t->numel ? !p->o.edgeitems : t->dims != 1) {
    size_text(text, sizeof text, t);
    put_suffix(p, &used, indent, text);
  }
  if (!dtype_shows(t)) {
    (void)snprintf(text, sizeof text, "dtype=weir.%s", weir_dtype_name(t->dtype));
    put_suffix(p, &used, indent, text);
  }
}

/* What there is so far, of which the last line is `used`: torch counts one character more of it,
 * and two of the first. */
static int last_line(const char *text)
{
  const char *line = strrchr(text, '\n');
  return (int)(line ? strlen(line) + 1 : strlen(text) + 2);
}

static void put_tensor(printer *p, const weir_tensor *t, char **text)
{
  static const char prefix[] = "tensor(";
  int indent = (int)sizeof prefix - 1;
  (void)fputs(prefix, p->f);
  if (!t->numel)
    (void)fputs("[]", p->f);
  else if (!t->dims)
    put_element(p, 0);
  else
    put_slices(p, 0, 0, indent);
  if (fflush(p->f)) return; /* fclose() reports it again */
  put_suffixes(p, t, last_line(*text), indent);
  (void)fputc(')', p->f);
}

static weir_status print_to(char **out, printer *p, const weir_tensor *t)
{
  size_t bytes;
  char *text = NULL;
  locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  p->f = plain ? open_memstream(&text, &bytes) : NULL;
  if (p->f) {
    locale_t before = uselocale(plain); /* numbers have a point */
    put_tensor(p, t, &text);
    (void)uselocale(before);
  }
  if (plain) freelocale(plain);
  bool bad = !p->f || ferror(p->f);
  if ((p->f && fclose(p->f)) || bad || !text) {
    free(text);
    return weir_fail(WEIR_ENOMEM, "no memory for a tensor's text");
  }
  *out = text;
  return WEIR_OK;
}

weir_status weir_tensor_to_string(char **out, const weir_tensor *t)
{
  WEIR_OP(out, t);
  printer p = {0};
  WEIR_TENSOR shown = NULL;
  pthread_mutex_lock(&lock);
  p.o = now;
  pthread_mutex_unlock(&lock);
  TRY(take_shown(&p, &shown, t));
  p.shown = shown;
  p.real = format_of(shown, &p.o, false);
  if (t->dtype == WEIR_COMPLEX64) p.imag = format_of(shown, &p.o, true);
  return print_to(out, &p, t);
}
