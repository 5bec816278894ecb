/* reduce.c: reductions (weir_reduce): how outputs and elements are spread over threads.
 *
 * Neighbouring threads take what lies side by side: elements of one output where the reduced
 * dimensions are the inner ones, else outputs. An output has up to 256 threads (lanes), and where
 * there are few outputs several blocks, whose accumulators lie for a moment in memory of the
 * allocator, in the stream's order. Without that memory one block does it all. */
#include "cuda/backend/launch.h"

/* Kernels of a row, by accumulator: for integers, float32 and shorter, float64, complex64. */
#define KERNELS_OF(name)                                                                           \
  WEIR_KERNEL_##name##_integer, WEIR_KERNEL_##name##_float32, WEIR_KERNEL_##name##_float64
#define KERNELS_sum     KERNELS_OF(sum), WEIR_KERNEL_sum_complex64
#define KERNELS_product KERNELS_OF(product), WEIR_KERNEL_product_complex64
#define KERNELS_max     KERNELS_OF(max)
#define KERNELS_min     KERNELS_OF(min)
/* There are none for integers: computes reports it. */
#define KERNELS_var   WEIR_KERNEL_var_float32, WEIR_KERNEL_var_float32, WEIR_KERNEL_var_float64
#define KERNELS_norm  WEIR_KERNEL_norm_float32, WEIR_KERNEL_norm_float32, WEIR_KERNEL_norm_float64
#define KERNELS_truth WEIR_KERNEL_truth, WEIR_KERNEL_truth, WEIR_KERNEL_truth, WEIR_KERNEL_truth

static const struct row {
  const char *name;
  uint16_t computes; /* the set of dtypes that it has kernels for */
  uint8_t kernel[4];
} rows[WEIR_REDUCE_COUNT] = {
#define ROW(name, text, gives, computes, order, empty, host, device, ...)                          \
  {text, WEIR_DTYPES_##computes, {KERNELS_##device}},
    WEIR_REDUCE_OPS(ROW)
#undef ROW
};

/* -1: there is none. */
static int kernel_of(const weir_reduce *r)
{
  bool complex = r->compute == WEIR_COMPLEX64;
  int column = complex ? 3 : r->compute == WEIR_FLOAT64 ? 2 : k_is_real(r->compute);
  return rows[r->op].computes >> r->compute & 1 ? rows[r->op].kernel[column] : -1;
}

/* ---- dimensions ------------------------------------------------------------------------------ */

/* The other result: places, or the mean. */
static const weir_operand *second_of(const weir_reduce *r)
{
  return r->op == WEIR_REDUCE_VAR || r->op == WEIR_REDUCE_STD ? &r->mean : &r->index;
}

/* Takes dimension d: as a part of the last one taken (from `begin` on) where all strides allow. */
static void take_dim(k_reduce *a, const weir_reduce *r, int d, int begin, bool kept)
{
  const weir_operand *second = second_of(r);
  int64_t n = r->size[d], in = r->in.stride[d], out = r->out.stride[d], index = second->stride[d];
  if (n == 1) return;
  int last = a->dims - 1;
  if (last >= begin && a->in_stride[last] == in * n &&
      (!kept ||
       (a->out_stride[last] == out * n && (!second->data || a->index_stride[last] == index * n))))
    a->length[last] *= n;
  else
    a->length[last = a->dims++] = n;
  a->in_stride[last] = in;
  a->out_stride[last] = kept ? out : 0;
  a->index_stride[last] = kept ? index : 0;
}

static void take_all(k_reduce *a, const weir_reduce *r)
{
  for (int d = 0; d < r->kept; d++)
    take_dim(a, r, d, 0, true);
  a->kept = a->dims;
  for (int d = r->kept; d < r->dims && r->each; d++)
    take_dim(a, r, d, a->kept, false);
  a->small = r->outputs <= INT32_MAX && r->each <= INT32_MAX;
  for (int d = 0; d < a->dims && a->small; d++)
    a->size[d] = k_divisor_of(a->length[d]);
}

/* ---- spreading ------------------------------------------------------------------------------- */

static int64_t magnitude(int64_t x)
{
  return x < 0 ? -x : x;
}

/* Threads for an output with `each` elements, each taking some 4. */
static int lanes_for(int64_t each, int most)
{
  int lanes = 1;
  while (lanes < most && (int64_t)lanes * 4 < each)
    lanes *= 2;
  return lanes;
}

static int64_t blocks_of(const k_reduce *a)
{
  int64_t group = WEIR_THREADS / a->lanes;
  return (a->outputs + group - 1) / group;
}

static void spread_blocks(cuda_device_state *d, k_reduce *a)
{
  int last = a->dims - 1, kept = a->kept - 1;
  int64_t busy = 2 * (int64_t)cuda_processors(d);
  a->across = a->kept > 0 &&
              (a->dims == a->kept || magnitude(a->in_stride[kept]) < magnitude(a->in_stride[last]));
  a->lanes = a->across ? 1 : lanes_for(a->each, WEIR_THREADS);
  /* 32 outputs side by side are read in whole lines of memory */
  while (a->across && a->lanes < WEIR_THREADS / 32 && blocks_of(a) < busy &&
         a->each > (int64_t)a->lanes * 8)
    a->lanes *= 2;
}

/* Blocks an output is shared by. */
static int64_t parts_of(cuda_device_state *d, const k_reduce *a)
{
  int64_t blocks = blocks_of(a), busy = 4 * (int64_t)cuda_processors(d);
  if (blocks * 2 > busy) return 1;
  int64_t parts = busy / blocks, most = a->each / ((int64_t)a->lanes * 16);
  if (parts > most) parts = most;
  return parts > 1024 ? 1024 : parts > 1 ? parts : 1;
}

static weir_status launch_reduction(cuda_device_state *d, void *stream, int kernel,
                                    const k_reduce *a, int64_t parts, const char *what)
{
  launch_grid grid = {(uint32_t)blocks_of(a), (uint32_t)parts, 1};
  return cuda_launch(d, stream, (enum kernel_id)kernel, grid, a, what);
}

static weir_status in_two(cuda_device_state *d, void *stream, int kernel, k_reduce *a,
                          int64_t parts, const char *what)
{
  void *room;
  uint64_t bytes = (uint64_t)(a->outputs * parts) * WEIR_PART_BYTES;
  if (cuda_core_calls->allocate(&room, bytes, d->index, stream))
    return launch_reduction(d, stream, kernel, a, 1, what);
  k_reduce second = *a;
  a->parts = room;
  second.in = room;
  second.parts_in = (int32_t)parts;
  second.across = 0;
  second.lanes = lanes_for(parts, WEIR_THREADS);
  weir_status st = launch_reduction(d, stream, kernel, a, parts, what);
  if (!st) st = launch_reduction(d, stream, kernel, &second, 1, what);
  weir_status given_back = cuda_core_calls->release(room);
  return st ? st : given_back;
}

weir_status cuda_reduce(void *self, void *stream, const weir_reduce *r)
{
  cuda_device_state *d = self;
  int kernel = kernel_of(r);
  if (kernel < 0) return cuda_no_kernel(rows[r->op].name, r->compute);
  if (!r->outputs) return WEIR_OK;
  k_reduce a = {.out = r->out.data,
                .index = second_of(r)->data,
                .in = r->in.data,
                .elements = r->in.data,
                .p = r->p,
                .op = (int32_t)r->op,
                .compute = (int32_t)r->compute,
                .in_dtype = (int32_t)r->in.dtype,
                .out_dtype = (int32_t)r->out.dtype,
                .outputs = r->outputs,
                .each = r->each};
  take_all(&a, r);
  spread_blocks(d, &a);
  int64_t parts = parts_of(d, &a);
  if (parts > 1) return in_two(d, stream, kernel, &a, parts, rows[r->op].name);
  return launch_reduction(d, stream, kernel, &a, 1, rows[r->op].name);
}
