/* interpolate.c: images, sequences and volumes of other sizes. One request, weir_resample, on
 * planes of three axes; `area` is adaptive averaging. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "core/ops/ops.h"

/* torch's names, and how many axes a mode is for; 0: any. */
static const struct mode_row {
  const char *name;
  int axes;
  weir_resample_kind kind;
} mode_rows[] = {[WEIR_INTERPOLATE_NEAREST] = {"nearest", 0, WEIR_RESAMPLE_NEAREST},
                 [WEIR_INTERPOLATE_NEAREST_EXACT] = {"nearest-exact", 0, WEIR_RESAMPLE_EXACT},
                 [WEIR_INTERPOLATE_LINEAR] = {"linear", 1, WEIR_RESAMPLE_LINEAR},
                 [WEIR_INTERPOLATE_BILINEAR] = {"bilinear", 2, WEIR_RESAMPLE_LINEAR},
                 [WEIR_INTERPOLATE_BICUBIC] = {"bicubic", 2, WEIR_RESAMPLE_CUBIC},
                 [WEIR_INTERPOLATE_TRILINEAR] = {"trilinear", 3, WEIR_RESAMPLE_LINEAR},
                 [WEIR_INTERPOLATE_AREA] = {"area", 0, WEIR_RESAMPLE_NEAREST}};

/* ---- what is refused ------------------------------------------------------------------------- */

static bool says_size(const weir_interpolate_options *o)
{
  return o->size[0] || o->size[1] || o->size[2];
}

static bool says_scale(const weir_interpolate_options *o)
{
  return o->scale[0] != 0 || o->scale[1] != 0 || o->scale[2] != 0;
}

static weir_status check_mode(const weir_tensor *a, const weir_interpolate_options *o)
{
  if ((unsigned)o->mode > WEIR_INTERPOLATE_AREA)
    return fail_invalid("interpolate: no mode %d", (int)o->mode);
  const struct mode_row *m = &mode_rows[o->mode];
  bool whole = !m->axes;
  if (whole && o->align_corners)
    return fail_invalid("align_corners option can only be set with the interpolating modes: linear "
                        "| bilinear | bicubic | trilinear");
  if (says_size(o) && says_scale(o))
    return fail_invalid("only one of size or scale_factor should be defined");
  if (!says_size(o) && !says_scale(o))
    return fail_invalid("either size or scale_factor should be defined");
  bool cubic = o->mode == WEIR_INTERPOLATE_BICUBIC;
  if (a->dims < 3 || a->dims > 5 || (cubic && a->dims != 4))
    return fail_unsupported(
        "Input Error: Only 3D, 4D and 5D input Tensors supported (got %dD) for the modes: nearest "
        "| linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got %s)",
        a->dims, m->name);
  if (m->axes && m->axes != a->dims - 2)
    return fail_unsupported("Got %dD input, but %s mode needs %dD input", a->dims, m->name,
                            m->axes + 2);
  return WEIR_OK;
}

/* "H: 8, W: 8". */
static const char *sizes_of(text_buffer *out, const int64_t *size, int axes)
{
  static const char names[] = "DHW";
  size_t at = 0;
  for (int i = 3 - axes; i < 3; i++) {
    int n = snprintf(out->at + at, sizeof out->at - at, "%s%c: %lld", at ? ", " : "", names[i],
                     (long long)size[i]);
    at += n > 0 ? (size_t)n : 0;
  }
  return out->at;
}

static weir_status check_resample(const weir_tensor *a, const weir_resample *r)
{
  text_buffer x, y;
  int axes = a->dims - 2;
  weir_dtype d = a->dtype;
  bool nearest = r->kind == WEIR_RESAMPLE_NEAREST || r->kind == WEIR_RESAMPLE_EXACT;
  for (int i = 3 - axes; i < 3; i++)
    if (r->in[i] < 1 || r->out[i] < 1)
      return fail_invalid(
          "Input and output sizes should be greater than 0, but got input (%s)%s output (%s)",
          sizes_of(&x, r->in, axes), axes == 1 ? " and" : "", sizes_of(&y, r->out, axes));
  if (!a->size[1])
    return fail_invalid("Non-empty %dD data tensor expected but got a tensor with sizes %s",
                        a->dims, shape_format(&x, shape_of_tensor(a)));
  if (!dtype_is_floating(d) && (d != WEIR_UINT8 || !nearest))
    return not_implemented(nearest ? "compute_indices_weights_nearest"
                                   : (r->kind == WEIR_RESAMPLE_CUBIC
                                          ? "compute_indices_weights_cubic"
                                          : "compute_indices_weights_linear"),
                           device_of_tensor(a), d);
  return WEIR_OK;
}

/* ---- the work -------------------------------------------------------------------------------- */

/* Sizes and scales, the first axes of fewer than three being of one place. Errors: EINVAL. */
static weir_status fill_resample(weir_resample *r, const weir_tensor *a,
                                 const weir_interpolate_options *o)
{
  int axes = a->dims - 2;
  for (int i = 0; i < 3; i++)
    r->in[i] = r->out[i] = 1;
  for (int i = 0; i < axes; i++) {
    int at = 3 - axes + i;
    r->in[at] = a->size[2 + i];
    r->out[at] = o->size[i];
    if (!says_scale(o)) continue;
    double out = floor((double)r->in[at] * o->scale[i]);
    if (!(out >= -0x1p60 && out <= 0x1p60))
      return fail_invalid("interpolate: scale_factor=%g gives no size", o->scale[i]);
    r->out[at] = (int64_t)out;
    r->scale[at] = o->recompute_scale_factor || o->scale[i] <= 0 ? 0 : 1 / o->scale[i];
  }
  return WEIR_OK;
}

static __attribute__((cold)) weir_status record_resample(weir_tensor **out, const weir_tensor *a,
                                                         const weir_resample *q, int axes)
{
  record r = {.kind = RECORD_RESAMPLE, .inputs = 1, .in = &a};
  int64_t *n = r.n;
  for (int i = 0; i < 3; i++) {
    *n++ = q->in[i];
    *n++ = q->out[i];
    memcpy(n++, &q->scale[i], sizeof q->scale[i]);
  }
  *n++ = q->kind;
  *n++ = q->align;
  *n++ = q->back;
  *n = axes;
  return record_made(out, &r, WEIR_OK);
}

int resample_of_record(weir_resample *r, const int64_t *n)
{
  *r = (weir_resample){.planes = 0};
  for (int i = 0; i < 3; i++) {
    r->in[i] = *n++;
    r->out[i] = *n++;
    memcpy(&r->scale[i], n++, sizeof r->scale[i]);
  }
  r->kind = (weir_resample_kind)*n++;
  r->align = *n++;
  r->back = *n++;
  return (int)*n;
}

static weir_status resample_enqueue(weir_resample *r, const weir_tensor *from,
                                    const weir_tensor *to)
{
  compute_target t;
  TRY(compute_target_of(&t, device_of_tensor(to)));
  if (!t.compute->resample) return compute_target_lacks(&t, "interpolate");
  r->from = from->data;
  r->to = to->data;
  return compute_target_done(&t, t.compute->resample(t.self, t.stream, r), "interpolate");
}

weir_status resample_run(weir_tensor **out, const weir_tensor *a, weir_resample *r, int axes)
{
  CALC(c);
  weir_shape shape = shape_of_tensor(a);
  r->planes = sizes_product(a->size, 0, a->dims - axes);
  for (int i = 0; i < axes; i++)
    shape.size[a->dims - axes + i] = (r->back ? r->in : r->out)[3 - axes + i];
  weir_tensor *dense = c_contiguous(c, a);
  c_do(c, tensor_new_beside(out, a, shape));
  r->dtype = a->dtype;
  if (!c->st && (*out)->numel) c->st = resample_enqueue(r, dense, *out);
  if (c->st) weir_tensor_drop(out);
  return c->st || !recorded(a) ? c->st : record_resample(out, a, r, axes);
}

static weir_status average_area(weir_tensor **out, const weir_tensor *a, const weir_resample *r)
{
  const int64_t *size = r->out + (5 - a->dims);
  if (r->out[0] < 0 || r->out[1] < 0 || r->out[2] < 0) return refused_average_size(r->out, a->dims);
  if (a->dims == 3) return weir_adaptive_avg_pool1d(out, a, size);
  return a->dims == 4 ? weir_adaptive_avg_pool2d(out, a, size)
                      : weir_adaptive_avg_pool3d(out, a, size);
}

weir_status weir_interpolate(weir_tensor **out, const weir_tensor *a,
                             const weir_interpolate_options *options)
{
  WEIR_OP(out, a, options);
  WEIR_CASTS_WHERE(options->mode == WEIR_INTERPOLATE_AREA ? AUTOCAST_NONE : AUTOCAST_RESAMPLING, a);
  weir_resample r = {.align = options->align_corners};
  TRY(check_mode(a, options));
  TRY(fill_resample(&r, a, options));
  r.kind = mode_rows[options->mode].kind;
  if (options->mode == WEIR_INTERPOLATE_AREA) return average_area(out, a, &r);
  weir_status st = check_resample(a, &r);
  return st ? st : resample_run(out, a, &r, a->dims - 2);
}
