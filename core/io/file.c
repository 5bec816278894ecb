/* file.c: see file.h.
 *
 * To the cpu, bytes are read straight into the tensor. To a device they go through two pieces of
 * page-locked memory in turns: while one is copied the other is filled; where memory cannot be
 * locked, through plain memory. Nothing is mapped: a mapped file that somebody shortens is a
 * SIGBUS.
 *
 * A new file is made next to the old one, with the old one's mode, and is on the disk before it
 * takes its name: after a crash there is the old file or the new one. */
#include "core/io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/stream/async_error.h"

enum { PIECE = 8 << 20, ONE_READ = 1 << 30 };

/* ---- reading --------------------------------------------------------------------------------- */

/* No format of tensors begins so: where the length of a .safetensors header has these bytes, the
 * header's { follows where gzip has a flag of 0, 2 or 4 (RFC 1952). */
static bool is_gzip(int fd)
{
  unsigned char head[9];
  return pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head &&
         !memcmp(head, "\x1f\x8b\x08", 3) && head[8] < 8;
}

weir_status file_open(tensor_file *out, const char *path)
{
  struct stat s;
  *out = (tensor_file){.fd = -1, .path = path};
  if (!path || !*path) return fail_invalid("a file's name is needed");
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0)
    return weir_fail_errno(errno == ENOENT ? WEIR_ENOENT : WEIR_EIO, errno, "cannot open %s", path);
  if (fstat(fd, &s) || !S_ISREG(s.st_mode)) {
    close(fd);
    return fail_invalid("%s is not a regular file", path);
  }
  out->fd = fd;
  out->bytes = (uint64_t)s.st_size;
  return is_gzip(fd)
             ? file_end(out,
                        fail_unsupported("%s is compressed by gzip: decompress it first", path))
             : WEIR_OK;
}

weir_status file_read(const tensor_file *f, void *to, uint64_t at, uint64_t bytes)
{
  if (f->memory) {
    if (at > f->bytes || bytes > f->bytes - at)
      return weir_fail(WEIR_ECORRUPT, "%s: an entry ends at byte %llu, before byte %llu", f->path,
                       (unsigned long long)f->bytes, (unsigned long long)at + bytes);
    memcpy(to, (const char *)f->memory + at, bytes);
    return WEIR_OK;
  }
  at += f->base;
  for (uint64_t done = 0; done < bytes;) {
    uint64_t left = bytes - done;
    ssize_t n =
        pread(f->fd, (char *)to + done, left < ONE_READ ? left : ONE_READ, (off_t)(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return weir_fail_errno(WEIR_EIO, errno, "cannot read %s", f->path);
    if (n == 0)
      return weir_fail(WEIR_ECORRUPT, "%s ends at byte %llu, before byte %llu", f->path,
                       (unsigned long long)at + done, (unsigned long long)at + bytes);
    done += (uint64_t)n;
  }
  return WEIR_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

static weir_status no_file_memory(void)
{
  return weir_fail(WEIR_ENOMEM, "no host memory left for a file's name");
}

/* Where the file is to be: through symbolic links, so that these stay. */
static weir_status find_target(tensor_file *f, mode_t *mode)
{
  struct stat s;
  bool there = stat(f->path, &s) == 0;
  *mode = there ? s.st_mode & 0777 : 0;
  if (there && !S_ISREG(s.st_mode)) return fail_invalid("%s is not a regular file", f->path);
  f->target = there ? realpath(f->path, NULL) : strdup(f->path);
  return f->target ? WEIR_OK : no_file_memory();
}

weir_status file_begin(tensor_file *out, const char *path)
{
  static _Atomic unsigned serial;
  mode_t mode;
  *out = (tensor_file){.fd = -1, .path = path};
  if (!path || !*path) return fail_invalid("a file's name is needed");
  weir_status st = find_target(out, &mode);
  for (int tries = 0; !st && out->fd < 0; tries++) {
    free(out->beside);
    if (asprintf(&out->beside, "%s.%ld-%u.part", out->target, (long)getpid(), ++serial) < 0) {
      out->beside = NULL;
      st = no_file_memory();
      break;
    }
    out->fd = open(out->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (out->fd < 0 && (errno != EEXIST || tries == 100))
      st = weir_fail_errno(errno == ENOENT   ? WEIR_ENOENT
                           : errno == ENOSPC ? WEIR_ENOSPC
                                             : WEIR_EIO,
                           errno, "cannot make %s", out->beside);
  }
  if (!st && mode) (void)fchmod(out->fd, mode);
  return st ? file_end(out, st) : WEIR_OK;
}

static weir_status write_failed(const tensor_file *f)
{
  bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  return weir_fail_errno(full ? WEIR_ENOSPC : WEIR_EIO, errno, "cannot write %s after %llu bytes",
                         f->path, (unsigned long long)f->bytes);
}

weir_status file_write(tensor_file *f, const void *from, uint64_t bytes)
{
  for (uint64_t done = 0; done < bytes;) {
    uint64_t left = bytes - done;
    ssize_t n = write(f->fd, (const char *)from + done, left < ONE_READ ? left : ONE_READ);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return write_failed(f);
    done += (uint64_t)n;
    f->bytes += (uint64_t)n;
  }
  return WEIR_OK;
}

weir_status file_end(tensor_file *f, weir_status st)
{
  bool made = f->target && f->beside && f->fd >= 0;
  if (made && !st && fsync(f->fd)) st = write_failed(f);
  if (f->fd >= 0 && close(f->fd) && made && !st) st = write_failed(f);
  if (made && !st && rename(f->beside, f->target))
    st = weir_fail_errno(WEIR_EIO, errno, "cannot put %s in its place", f->target);
  if (made && st) (void)unlink(f->beside);
  free(f->target);
  free(f->beside);
  *f = (tensor_file){.fd = -1};
  return st;
}

/* ---- elements -------------------------------------------------------------------------------- */

/* Makes of bytes from a file elements of ours: this machine's byte order, and bools that are 0 or
 * 1, whatever stood there. */
static void settle_file(void *data, uint64_t bytes, const file_array *array)
{
  unsigned char *at = data, *end = at + bytes;
  size_t item = array->foreign ? array->item : itemsize(array->dtype);
  if (array->dtype == WEIR_COMPLEX64) item = 4;
  if (array->dtype == WEIR_BOOL)
    for (; at < end; at++)
      *at = *at != 0;
  else if (array->swapped && item == 2)
    for (uint16_t v; at < end; at += 2)
      memcpy(&v, at, 2), v = __builtin_bswap16(v), memcpy(at, &v, 2);
  else if (array->swapped && item == 4)
    for (uint32_t v; at < end; at += 4)
      memcpy(&v, at, 4), v = __builtin_bswap32(v), memcpy(at, &v, 4);
  else if (array->swapped && item == 8)
    for (uint64_t v; at < end; at += 8)
      memcpy(&v, at, 8), v = __builtin_bswap64(v), memcpy(at, &v, 8);
}

static weir_status read_piece(const tensor_file *f, const file_array *array, void *to,
                              uint64_t offset, uint64_t bytes)
{
  weir_status st = file_read(f, to, array->at + offset, bytes);
  if (!st) settle_file(to, bytes, array);
  return st;
}

static weir_status to_host(const tensor_file *f, const file_array *array, weir_tensor *t,
                           uint64_t bytes)
{
  weir_status st = WEIR_OK;
  for (uint64_t at = 0; !st && at < bytes; at += PIECE)
    st = read_piece(f, array, t->data + at, at, bytes - at < PIECE ? bytes - at : PIECE);
  return st;
}

static weir_status to_device(const tensor_file *f, const file_array *array, weir_tensor *t,
                             uint64_t bytes)
{
  device_place place;
  weir_tensor *half[2] = {NULL, NULL};
  weir_device cpu = WEIR_CPU;
  weir_status st = device_place_of(&place, device_of_tensor(t));
  for (int i = 0; !st && i < 2 && (uint64_t)i * PIECE < bytes; i++) {
    weir_shape size = weir_shape((int64_t)(bytes < PIECE ? bytes : PIECE));
    if (tensor_new(&half[i], WEIR_UINT8, cpu, true, size))
      st = tensor_new(&half[i], WEIR_UINT8, cpu, false, size);
  }
  for (uint64_t at = 0, n; !st && at < bytes; at += n) {
    void *stage = half[at / PIECE % 2]->data;
    n = bytes - at < PIECE ? bytes - at : PIECE;
    st = read_piece(f, array, stage, at, n);
    if (!st && at) st = async_sync(place.stream, "load");
    if (!st)
      st = op_done(place.stream, "load",
                   place.backend->copy(place.backend->self, place.native, WEIR_COPY_TO_DEVICE,
                                       t->data + at, stage, n));
  }
  if (half[0]) {
    weir_status done = async_sync(place.stream, "load");
    if (!st) st = done;
  }
  weir_tensor_release(half[0]);
  weir_tensor_release(half[1]);
  return st;
}

/* The strides of an array whose first dimension is innermost. */
static void fortran_strides(int64_t *strides, weir_shape shape)
{
  int64_t next = 1;
  for (int i = 0; i < shape.count; i++) {
    strides[i] = next;
    next *= shape.size[i] ? shape.size[i] : 1;
  }
}

weir_status file_tensor(weir_tensor **out, const tensor_file *f, const file_array *array,
                        const weir_options *options)
{
  weir_options o = options ? *options : (weir_options){.dtype = WEIR_DTYPE_NONE};
  weir_tensor *read = NULL, *turned = NULL;
  int64_t numel, strides[WEIR_MAX_DIMS];
  *out = NULL;
  o.device = device_resolve(o.device);
  weir_status st = shape_numel(&numel, array->shape, array->dtype);
  if (!st && o.pin_memory && o.device.type != WEIR_DEVICE_CPU)
    st = fail_invalid("only dense CPU tensors can be pinned");
  if (!st) st = tensor_new(&read, array->dtype, o.device, o.pin_memory, array->shape);
  if (st) return st;
  uint64_t bytes = (uint64_t)numel * itemsize(array->dtype);
  st = (o.device.type == WEIR_DEVICE_CPU ? to_host : to_device)(f, array, read, bytes);
  if (!st && array->fortran && array->shape.count > 1) {
    fortran_strides(strides, array->shape);
    st = tensor_view(&turned, read, array->shape, strides, 0);
    weir_tensor_release(read);
    read = turned;
  }
  if (!st && o.dtype && o.dtype != array->dtype) {
    st = weir_to_dtype(&turned, read, o.dtype);
    weir_tensor_release(read);
    read = turned;
    if (!st && o.pin_memory) {
      st = weir_pin_memory(&turned, read);
      weir_tensor_release(read);
      read = turned;
    }
  }
  if (st) {
    weir_tensor_release(read);
    return st;
  }
  *out = read;
  return WEIR_OK;
}

weir_status file_dense(weir_tensor **out, const weir_tensor *t, bool fortran)
{
  WEIR_TENSOR turned = NULL, here = NULL;
  int back[WEIR_MAX_DIMS], dims = weir_tensor_dim(t);
  *out = NULL;
  for (int i = 0; i < dims; i++)
    back[i] = dims - 1 - i;
  weir_status st = fortran ? weir_permute(&turned, t, back) : WEIR_OK;
  if (!st) st = weir_cpu(&here, turned ? turned : t);
  return st ? st : weir_contiguous(out, here);
}

weir_status file_put(tensor_file *f, const weir_tensor *t, bool fortran)
{
  WEIR_TENSOR dense = NULL;
  weir_status st = file_dense(&dense, t, fortran);
  return st ? st : file_write(f, dense->data, (uint64_t)dense->numel * itemsize(dense->dtype));
}
