/* copy.c: copies of elements: between strides, dtypes and devices.
 *
 * On one device a copy is one run of bytes, where both sides are dense in the same order and of one
 * dtype, or else a COPY loop. Between devices only runs of bytes travel, so that such a copy has up
 * to three steps: the source is made dense in a temporary on its device, the bytes travel, and a
 * temporary on the other device is spread over the destination. Steps that change nothing are left
 * out. Elements that a source repeats (expanded dimensions) travel once, and casts are made on the
 * side that has fewer bytes to send; of a non_blocking copy with page-locked memory they are made
 * on the device, because what the host does is done at once.
 *
 * Streams. A copy between the host and a device runs in the device's current stream. Between two
 * devices it runs in the destination's current stream, after all that is now in the source's and
 * before all that comes there (in torch's it is the source's, with the same order seen from
 * outside: aten/src/ATen/native/cuda/Copy.cu). Temporaries are
 * freed in the order of the streams they were made for, which by these rules is after their last
 * use.
 *
 * Whether the host waits. A copy with the host is complete when the function returns, unless it is
 * non_blocking. Then from pageable memory everything has been read, and to it everything has been
 * written; of page-locked memory the copy is only enqueued, and the allocator is notified of which
 * stream uses the block, so that it is not handed out again before the copy is done. Copies on and
 * between devices never wait. */
#include <string.h>
#include "core/stream/async_error.h"
#include "core/tensor/calc.h"
#include "core/tensor/loop.h"
#include "core/tensor/record.h"

/* ---- on one device --------------------------------------------------------------------------- */

static bool on_host(const weir_tensor *t)
{
  return t->storage->device.type == WEIR_DEVICE_CPU;
}

static uint64_t bytes_of_copy(const weir_tensor *t)
{
  return (uint64_t)t->numel * itemsize(t->dtype);
}

/* Both are one run of bytes, element by element. */
static bool one_run(const weir_tensor *to, const weir_tensor *from)
{
  return to->dense && from->dense && to->dtype == from->dtype && to->numel == from->numel;
}

/* Two runs of bytes, one of them the place's. */
static weir_status enqueue_copy(const device_place *p, enum weir_copy_way way,
                                const weir_tensor *to, const weir_tensor *from)
{
  const weir_backend *b = p->backend;
  return op_done(p->stream, "copy_",
                 b->copy(b->self, p->native, way, to->data, from->data, bytes_of_copy(from)));
}

static weir_status run_within(const weir_tensor *to, const weir_tensor *from)
{
  device_place p;
  if (on_host(to)) {
    memmove(to->data, from->data, bytes_of_copy(to));
    return WEIR_OK;
  }
  weir_status st = device_place_of(&p, device_of_tensor(to));
  return st ? st : enqueue_copy(&p, WEIR_COPY_WITHIN, to, from);
}

/* `from` broadcasts to `to`, is on the same device, and they do not overlap. */
static weir_status copy_within(const weir_tensor *to, const weir_tensor *from)
{
  if (!to->numel) return WEIR_OK;
  return one_run(to, from) ? run_within(to, from) : loop_copy(to, from);
}

/* ---- runs of bytes between devices ----------------------------------------------------------- */

/* Page-locked memory of ours is not to be reused before the stream is through with it. Other memory
 * is its owner's to keep. */
static weir_status keep_until_done(const weir_tensor *host, const device_place *p)
{
  const tensor_storage *s = host->storage;
  if (s->kind != STORAGE_PINNED) return WEIR_OK;
  weir_status st = weir_record_stream(s->data, p->stream);
  return st ? async_sync(p->stream, "copy_") : WEIR_OK;
}

static weir_status with_host(const weir_tensor *to, const weir_tensor *from, bool non_blocking)
{
  device_place p;
  const weir_tensor *host = on_host(from) ? from : to, *device = on_host(from) ? to : from;
  enum weir_copy_way way = host == from ? WEIR_COPY_TO_DEVICE : WEIR_COPY_TO_HOST;
  TRY(device_place_of(&p, device_of_tensor(device)));
  if (!non_blocking)
    return async_copy(p.stream, "copy_", way, to->data, from->data, bytes_of_copy(from));
  weir_status st = enqueue_copy(&p, way, to, from);
  return st ? st : keep_until_done(host, &p);
}

/* The copy is the destination's, whose stream waits for the source's; what comes to the source then
 * waits for it, or the host does, for the source's memory may be reused there at once. */
static weir_status device_to_device(const weir_tensor *to, const weir_tensor *from)
{
  device_place p, s;
  TRY(device_place_of(&p, device_of_tensor(to)));
  TRY(device_place_of(&s, device_of_tensor(from)));
  TRY(weir_stream_wait_stream(p.stream, s.stream));
  const weir_backend *b = p.backend;
  weir_status st = op_done(
      p.stream, "copy_",
      b->copy_peer(b->self, p.native, to->data, s.backend, from->data, bytes_of_copy(from)));
  if (!st && weir_stream_wait_stream(s.stream, p.stream)) st = async_sync(p.stream, "copy_");
  return st;
}

static weir_status travel(const weir_tensor *to, const weir_tensor *from, bool non_blocking)
{
  if (!to->numel) return WEIR_OK;
  return on_host(from) || on_host(to) ? with_host(to, from, non_blocking)
                                      : device_to_device(to, from);
}

/* ---- between devices ------------------------------------------------------------------------- */

static bool slower(const weir_tensor *t, int a, int b)
{
  return t->stride[a] > t->stride[b];
}

/* The order of dimensions in which t's strides fall. */
static void order_of(const weir_tensor *t, int *order)
{
  for (int i = 0; i < t->dims; i++) {
    int at = i;
    for (; at && slower(t, i, order[at - 1]); at--)
      order[at] = order[at - 1];
    order[at] = i;
  }
}

/* *out shows t, which has elements, in an order of `dims` dimensions; what t repeats it shows once.
 */
static weir_status view_in_order(weir_tensor **out, const weir_tensor *t, const int *order,
                                 int dims)
{
  weir_shape s = {.count = dims};
  int64_t stride[WEIR_MAX_DIMS];
  int more = dims - t->dims;
  for (int i = 0; i < dims; i++) {
    int d = order[i] - more;
    bool once = d < 0 || !t->stride[d];
    s.size[i] = once ? 1 : t->size[d];
    stride[i] = once ? 0 : t->stride[d];
  }
  return tensor_view(out, t, s, stride, 0);
}

/* The dtype of the bytes that travel. */
static weir_dtype travelling(const weir_tensor *to, const weir_tensor *from, bool non_blocking)
{
  weir_dtype a = to->dtype, b = from->dtype;
  if (a == b) return a;
  if (non_blocking && on_host(from) && from->dense && storage_pinned(from->storage)) return b;
  if (non_blocking && on_host(to) && to->dense && storage_pinned(to->storage)) return a;
  return itemsize(a) * (uint64_t)to->numel <= itemsize(b) * (uint64_t)from->numel ? a : b;
}

/* *out: `t` itself where it is dense, of `dtype` and has as many elements as `like`; else a
 * temporary of like's shape. */
static weir_status dense_for(weir_tensor **out, weir_tensor *t, weir_dtype dtype,
                             const weir_tensor *like)
{
  if (t->dense && t->dtype == dtype && t->numel == like->numel) {
    *out = weir_tensor_retain(t);
    return WEIR_OK;
  }
  return tensor_new(out, dtype, device_of_tensor(t), false, weir_tensor_shape(like));
}

/* `to` and `from` have their dimensions in one order; `from` broadcasts. */
static weir_status copy_across(weir_tensor *to, weir_tensor *from, bool non_blocking)
{
  weir_dtype dtype = travelling(to, from, non_blocking);
  CALC(c);
  weir_tensor *sent = c_call(c, dense_for, from, dtype, from);
  weir_tensor *taken = c_call(c, dense_for, to, dtype, from);
  if (!c->st && sent != from) c->st = copy_within(sent, from);
  c_do(c, travel(taken, sent, non_blocking));
  return c->st || taken == to ? c->st : copy_within(to, taken);
}

static weir_status copy_between(weir_tensor *to, const weir_tensor *from, bool non_blocking)
{
  int order[WEIR_MAX_DIMS];
  CALC(c);
  if (!to->numel) return WEIR_OK;
  if (one_run(to, from)) return travel(to, from, non_blocking);
  order_of(to, order);
  weir_tensor *a = c_call(c, view_in_order, to, order, to->dims);
  weir_tensor *b = c_call(c, view_in_order, from, order, to->dims);
  return c->st ? c->st : copy_across(a, b, non_blocking);
}

/* ---- checked --------------------------------------------------------------------------------- */

static weir_status broadcasts(const weir_tensor *to, const weir_tensor *from)
{
  text_buffer want, have;
  weir_shape shape = weir_tensor_shape(to);
  if (to->dims == from->dims && !memcmp(to->size, from->size, to->dims * sizeof *to->size))
    return WEIR_OK;
  TRY(shape_broadcast(&shape, from->size, from->dims));
  if (shape.count == to->dims && !memcmp(shape.size, to->size, to->dims * sizeof *to->size))
    return WEIR_OK;
  return fail_invalid("output with shape %s doesn't match the broadcast shape %s",
                      shape_format(&have, weir_tensor_shape(to)), shape_format(&want, shape));
}

static weir_status copy_any(weir_tensor *t, const weir_tensor *src, bool twice, bool non_blocking)
{
  if (!weir_device_equal(device_of_tensor(t), device_of_tensor(src)))
    return copy_between(t, src, non_blocking);
  if (!twice) return copy_within(t, src);
  CALC(c);
  weir_tensor *copy = c_call(c, tensor_new_beside, src, weir_tensor_shape(src));
  c_do(c, copy_within(copy, src));
  return c->st ? c->st : copy_within(t, copy);
}

weir_status weir_copy_(weir_tensor *t, const weir_tensor *src, bool non_blocking)
{
  WEIR_OP_ON(t, src);
  bool twice;
  grad_node *node = NULL;
  if (t == src) return WEIR_OK;
  weir_status st = broadcasts(t, src);
  if (!st) st = overlap_check(&twice, t, src);
  bool records = recorded(t) || recorded(src);
  if (!st && records) {
    record r = {.kind = RECORD_COPY, .in_place = true, .inputs = 2, .out = {t}};
    r.in = (const weir_tensor *[]){t, src};
    st = tensor_recorder->before(&node, &r);
  }
  if (st) return st;
  st = copy_any(t, src, twice, non_blocking);
  if (!st) tensor_changes(t);
  if (records) tensor_recorder->after(node, t, !st);
  return st;
}

/* The elements in host memory that is not aligned to them. */
static weir_status read_unaligned(void *out, size_t bytes, weir_dtype dtype, const weir_tensor *t)
{
  CALC(c);
  weir_tensor *to = c_call(c, tensor_new, dtype, WEIR_CPU, false, weir_tensor_shape(t));
  c_do(c, weir_copy_(to, t, false));
  if (!c->st) memcpy(out, to->data, bytes);
  return c->st;
}

weir_status weir_tensor_read(void *out, size_t bytes, weir_dtype dtype, const weir_tensor *t)
{
  WEIR_OP_ON(t);
  WEIR_UNRECORDED;
  tensor_storage *s;
  CALC(c);
  if (!weir_dtype_size(dtype)) return fail_invalid("%d is not a dtype", (int)dtype);
  uint64_t need = (uint64_t)t->numel * weir_dtype_size(dtype);
  if (need != bytes)
    return fail_invalid("%lld elements of %s are %llu bytes, not %zu", (long long)t->numel,
                        weir_dtype_name(dtype), (unsigned long long)need, bytes);
  if (bytes) WEIR_REQUIRE(out);
  if (bytes && (uintptr_t)out % host_alignment(dtype)) return read_unaligned(out, bytes, dtype, t);
  c->st = storage_over(&s, out, bytes, WEIR_CPU, NULL, NULL);
  weir_tensor *to = c_call(c, tensor_make, s, dtype, weir_tensor_shape(t), NULL, 0);
  return c->st ? c->st : weir_copy_(to, t, false);
}
