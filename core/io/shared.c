/* shared.c: see core/weir/shared.h.
 *
 * A shared tensor is a file without a name (memfd_create): a page that states what the tensor is,
 * and its elements. The file's size is sealed when it is made, and what is opened must be sealed
 * so: no process can shorten it under another's hands. A process has a descriptor and a mapping of
 * it with its storage; the kernel ends the memory with the last of all. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/stream/async_error.h"
#include "core/tensor/tensor.h"
#include "core/weir/shared.h"

enum { HEAD_BYTES = 4096, VERSION = 1, SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static const char magic[8] = {'W', 'E', 'I', 'R', 'S', 'H', 'M', '\n'};

/* At the file's start. */
typedef struct shared_head {
  char magic[8];
  uint32_t version, dtype, dims;
  int64_t size[WEIR_MAX_DIMS];
} shared_head;

/* A storage's context. */
typedef struct shared_block {
  int fd;
  char *at;     /* the head; elements are HEAD_BYTES after it */
  size_t bytes; /* of the mapping */
  shared_head head;
} shared_block;

static void end_shared(void *context)
{
  shared_block *b = context;
  if (b->at) (void)munmap(b->at, b->bytes);
  if (b->fd >= 0) (void)close(b->fd);
  free(b);
}

/* `fd` is stolen, also on failure. */
static weir_status new_shared(shared_block **out, int fd)
{
  *out = malloc(sizeof **out);
  if (!*out) {
    (void)close(fd);
    return fail_memory("a shared tensor");
  }
  **out = (shared_block){.fd = fd};
  return WEIR_OK;
}

static weir_status map_shared(shared_block *b, size_t bytes)
{
  void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
  if (at == MAP_FAILED)
    return weir_fail_errno(WEIR_ENOMEM, errno, "cannot map %zu bytes of shared memory", bytes);
  b->at = at;
  b->bytes = bytes;
  return WEIR_OK;
}

static weir_shape shape_of_head(const shared_head *h)
{
  return weir_shape_of((int)h->dims, h->size);
}

/* A tensor over the block, which is stolen, also on failure. */
static weir_status tensor_of_block(weir_tensor **out, shared_block *b)
{
  weir_options o = {.dtype = (weir_dtype)b->head.dtype, .device = WEIR_CPU};
  weir_status st =
      weir_tensor_over(out, b->at + HEAD_BYTES, shape_of_head(&b->head), NULL, &o, end_shared, b);
  if (st) end_shared(b);
  return st;
}

/* NULL: t's memory is not shared. */
static const shared_block *shared_block_of(const weir_tensor *t)
{
  const tensor_storage *s = t->storage;
  return s->kind == STORAGE_OVER && s->release == end_shared ? s->context : NULL;
}

/* Whether t is all of the block, as its head states. */
static bool is_whole(const weir_tensor *t, const shared_block *b)
{
  bool same = t->dense && t->data == b->at + HEAD_BYTES && t->dtype == b->head.dtype &&
              t->dims == b->head.dims;
  for (int i = 0; same && i < t->dims; i++)
    same = t->size[i] == b->head.size[i];
  return same;
}

/* ---- sharing --------------------------------------------------------------------------------- */

static weir_status make_shared(shared_block **out, const weir_tensor *t)
{
  size_t bytes = HEAD_BYTES + (size_t)t->numel * itemsize(t->dtype);
  int fd = memfd_create("weir-tensor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return weir_fail_errno(WEIR_EIO, errno, "cannot make shared memory");
  weir_status st = new_shared(out, fd);
  if (st) return st;
  shared_block *b = *out;
  if (ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, SEALS))
    st = weir_fail_errno(errno == ENOSPC || errno == ENOMEM ? WEIR_ENOMEM : WEIR_EIO, errno,
                         "cannot make %zu bytes of shared memory", bytes);
  if (!st) st = map_shared(b, bytes);
  if (st) {
    end_shared(b);
    return st;
  }
  b->head = (shared_head){.version = VERSION, .dtype = t->dtype, .dims = t->dims};
  for (int i = 0; i < 8; i++)
    b->head.magic[i] = magic[i];
  for (int i = 0; i < t->dims; i++)
    b->head.size[i] = t->size[i];
  memcpy(b->at, &b->head, sizeof b->head);
  return WEIR_OK;
}

weir_status weir_share_memory(weir_tensor **out, const weir_tensor *t)
{
  WEIR_OP(out, t);
  const shared_block *there = shared_block_of(t);
  shared_block *b = NULL;
  if (there && is_whole(t, there)) {
    *out = weir_tensor_retain((weir_tensor *)t);
    return WEIR_OK;
  }
  weir_status st = make_shared(&b, t);
  if (!st) st = tensor_of_block(out, b);
  if (!st) st = weir_copy_(*out, t, false);
  if (st) weir_tensor_drop(out);
  return st;
}

bool weir_is_shared(const weir_tensor *t)
{
  return t && shared_block_of(t);
}

static weir_status whole_block(const shared_block **out, const weir_tensor *t)
{
  *out = shared_block_of(t);
  if (!*out) return fail_invalid("the tensor is not shared: weir_share_memory() first");
  return is_whole(t, *out) ? WEIR_OK
                           : fail_invalid("a view of a shared tensor: share a copy of it");
}

weir_status weir_shared_fd(int *out, const weir_tensor *t)
{
  WEIR_REQUIRE(out, t);
  const shared_block *b;
  *out = -1;
  weir_status st = whole_block(&b, t);
  if (!st && (*out = fcntl(b->fd, F_DUPFD_CLOEXEC, 0)) < 0)
    st = weir_fail_errno(WEIR_EIO, errno, "no descriptor for a shared tensor");
  return st;
}

weir_status weir_shared_name(char *out, size_t room, const weir_tensor *t)
{
  WEIR_REQUIRE(out, t);
  const shared_block *b;
  TRY(whole_block(&b, t));
  int length = snprintf(out, room, "/proc/%ld/fd/%d", (long)getpid(), b->fd);
  return (size_t)length < room
             ? WEIR_OK
             : fail_invalid("a name of %d bytes does not fit into %zu", length + 1, room);
}

/* ---- opening --------------------------------------------------------------------------------- */

static weir_status no_shared_tensor(const char *why)
{
  return weir_fail(WEIR_ECORRUPT, "no shared tensor: %s", why);
}

/* The head is read once, into memory of ours: who else has it may change it meanwhile. */
static weir_status check_shared_head(shared_block *b, uint64_t bytes)
{
  shared_head *h = &b->head;
  int64_t numel;
  int seals = fcntl(b->fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return no_shared_tensor("it could be shortened");
  if (bytes < HEAD_BYTES || pread(b->fd, h, sizeof *h, 0) != (ssize_t)sizeof *h ||
      memcmp(h->magic, magic, sizeof magic) != 0 || h->version != VERSION)
    return no_shared_tensor("it does not begin as one");
  if (!h->dtype || h->dtype >= WEIR_DTYPES || h->dims > WEIR_MAX_DIMS)
    return no_shared_tensor("its dtype or its dimensions cannot be");
  if (shape_numel(&numel, shape_of_head(h), h->dtype) ||
      (uint64_t)numel * itemsize(h->dtype) != bytes - HEAD_BYTES)
    return no_shared_tensor("its sizes are not those of its memory");
  return WEIR_OK;
}

/* `fd` is stolen, also on failure. */
static weir_status open_shared(weir_tensor **out, int fd)
{
  struct stat s;
  shared_block *b = NULL;
  weir_status st = new_shared(&b, fd);
  if (st) return st;
  if (fstat(fd, &s) || !S_ISREG(s.st_mode))
    st = no_shared_tensor("it is no memory");
  else
    st = check_shared_head(b, (uint64_t)s.st_size);
  if (!st) st = map_shared(b, (size_t)s.st_size);
  if (!st) return tensor_of_block(out, b);
  end_shared(b);
  return st;
}

weir_status weir_shared_open(weir_tensor **out, int fd)
{
  WEIR_REQUIRE_OUT(out);
  int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return weir_fail_errno(WEIR_EINVAL, errno, "descriptor %d", fd);
  return open_shared(out, own);
}

weir_status weir_shared_open_name(weir_tensor **out, const char *name)
{
  WEIR_REQUIRE_OUT(out, name);
  int fd = open(name, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd >= 0) return open_shared(out, fd);
  return weir_fail_errno(errno == ENOENT ? WEIR_ENOENT : WEIR_EIO, errno,
                         "cannot open the shared tensor %s", name);
}
