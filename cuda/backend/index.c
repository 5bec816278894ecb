/* index.c: elements chosen by index tensors, and places (weir_indexing, weir_places): which kernel
 * does it, in which order, and what becomes of an index that is out of bounds.
 *
 * A kernel that meets one notes it in page-locked host memory that the device has mapped, one note
 * a device: the context stays whole. Whoever waits for the device next finds the note, reports it
 * and takes it away. */
#include "core/backend/half.h"
#include "cuda/backend/launch.h"

/* ---- notes ----------------------------------------------------------------------------------- */

static weir_status fault_of(cuda_device_state *d, k_index_fault **out)
{
  k_index_fault *none = NULL;
  *out = atomic_load(&d->fault);
  if (*out) return WEIR_OK;
  void *at = NULL;
  CUresult r;
  WEIR_CUDA_WITHIN(d, r,
                   weir_cuda.cuMemHostAlloc(&at, sizeof **out,
                                            CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
  if (r) return driver_fail(r, "page-locked memory for what kernels of cuda:%d note", d->index);
  memset(at, 0, sizeof **out);
  *out = at;
  if (atomic_compare_exchange_strong(&d->fault, &none, *out)) return WEIR_OK;
  *out = none; /* another thread was quicker */
  WEIR_CUDA_WITHIN(d, r, weir_cuda.cuMemFreeHost(at));
  return driver_fail(r, "cuMemFreeHost on cuda:%d", d->index);
}

weir_status cuda_index_fault(cuda_device_state *d, weir_status st)
{
  k_index_fault *f = atomic_load_explicit(&d->fault, memory_order_relaxed);
  if (__builtin_expect(st || !f || !__atomic_load_n(&f->noted, __ATOMIC_ACQUIRE), 1)) return st;
  long long index = f->index, size = f->size;
  int dim = f->dim;
  uint32_t noted = 1; /* one of those who wait reports it */
  if (!__atomic_compare_exchange_n(&f->noted, &noted, 0u, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE))
    return st;
  __atomic_store_n(&f->taken, 0u, __ATOMIC_RELEASE);
  return cuda_fail_as(WEIR_EINVAL, "index %lld is out of bounds for dimension %d with size %lld",
                      index, dim, size);
}

void cuda_index_close(cuda_device_state *d)
{
  k_index_fault *f = atomic_exchange(&d->fault, NULL);
  CUresult r = CUDA_SUCCESS;
  if (f) WEIR_CUDA_WITHIN(d, r, weir_cuda.cuMemFreeHost(f));
  (void)r; /* the context ends anyway */
}

/* ---- the argument ---------------------------------------------------------------------------- */

/* A number as the bits of an element. */
static uint64_t element_bits(const weir_number *n, weir_dtype dtype)
{
  k_number as = k_number_of(n, dtype);
  float f = (float)as.d;
  uint64_t bits = (uint64_t)as.i;
  switch (dtype) {
  case WEIR_FLOAT16:
    return float_to_float16(f);
  case WEIR_BFLOAT16:
    return float_to_bfloat16(f);
  case WEIR_FLOAT32:
    return float_bits(f);
  default: /* float64, complex64: as they lie in the union */
    memcpy(&bits, &as, sizeof bits);
    return bits;
  }
}

/* Dimension `from` of the request as dimension `to` of the argument. */
static void take_dim(k_indexing *a, int to, const weir_indexing *r, int from)
{
  a->length[to] = r->size[from];
  if (a->small) a->size[to] = k_divisor_of(r->size[from]);
  a->self_stride[to] = r->self.stride[from];
  a->values_stride[to] = r->values.data ? r->values.stride[from] : 0;
  for (int i = 0; i < r->indices; i++)
    a->index[i].stride[to] = r->index[i].at.stride[from];
}

static void take_indices(k_indexing *a, const weir_indexing *r)
{
  for (int i = 0; i < r->indices; i++) {
    const weir_indices *n = &r->index[i];
    a->index[i].at = n->at.data;
    a->index[i].size = n->size;
    a->index[i].step = n->step;
    a->index[i].wide = n->at.dtype == WEIR_INT64;
    a->index[i].dim = n->dim;
  }
}

/* Dimensions that self itself has come first: those after them are walked through. */
static void take_ordered(k_indexing *a, const weir_indexing *r)
{
  enum { THREADS_WANTED = 1 << 14 };
  int to = 0;
  a->walked = 1;
  for (int pass = 0; pass < 2; pass++)
    for (int d = 0; d < r->dims; d++) {
      if ((r->self.stride[d] != 0) != (pass == 0)) continue;
      take_dim(a, to++, r, d);
      if (pass) a->walked *= r->size[d];
    }
  int64_t apart = r->count / a->walked;
  for (a->shares = 1; a->shares * apart < THREADS_WANTED && a->shares < a->walked;)
    a->shares *= 2;
}

static enum kernel_id index_kernel(const weir_indexing *r)
{
  int64_t bytes = k_bytes(r->dtype);
  int by = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
  switch (r->op) {
  case WEIR_INDEX_READ:
    return (enum kernel_id)(WEIR_KERNEL_index_read_1 + by);
  case WEIR_INDEX_SET:
    return (enum kernel_id)(WEIR_KERNEL_index_set_1 + by);
  case WEIR_INDEX_ADD:
    return WEIR_KERNEL_index_add;
  case WEIR_INDEX_MUL:
    return WEIR_KERNEL_index_mul;
  case WEIR_INDEX_MAX:
    return WEIR_KERNEL_index_max;
  default:
    return WEIR_KERNEL_index_min;
  }
}

weir_status cuda_index(void *self, void *stream, const weir_indexing *r)
{
  cuda_device_state *d = self;
  k_index_fault *fault;
  if (r->dtype == WEIR_COMPLEX64 && (r->op == WEIR_INDEX_MAX || r->op == WEIR_INDEX_MIN))
    return cuda_no_kernel("index", r->dtype);
  weir_status st = fault_of(d, &fault);
  if (st) return st;
  k_indexing a = {.self = r->self.data,
                  .values = r->values.data,
                  .fault = fault,
                  .dtype = (int32_t)r->dtype,
                  .dims = r->dims,
                  .indices = r->indices,
                  .wrap = r->wrap,
                  .small = r->count <= INT32_MAX,
                  .count = r->count};
  take_indices(&a, r);
  if (!r->values.data) a.number = element_bits(&r->values.number, r->dtype);
  if (r->ordered && r->op != WEIR_INDEX_READ)
    take_ordered(&a, r);
  else
    for (int i = 0; i < r->dims; i++)
      take_dim(&a, i, r, i);
  int64_t threads = a.shares ? r->count / a.walked * a.shares : r->count;
  return cuda_launch(d, stream, index_kernel(r), cuda_blocks(d, threads, WEIR_THREADS), &a,
                     "index");
}

weir_status cuda_places(void *self, void *stream, const weir_places *p)
{
  cuda_device_state *d = self;
  k_places a = {.of = *p, .chunks = (p->count + WEIR_PLACES_CHUNK - 1) / WEIR_PLACES_CHUNK};
  launch_grid grid = cuda_blocks(d, a.chunks, 1);
  if (p->out) return cuda_launch(d, stream, WEIR_KERNEL_places_write, grid, &a, "nonzero");
  weir_status st = cuda_launch(d, stream, WEIR_KERNEL_places_count, grid, &a, "nonzero");
  return st ? st
            : cuda_launch(d, stream, WEIR_KERNEL_places_scan, (launch_grid){1, 1, 1}, &a,
                          "nonzero");
}
