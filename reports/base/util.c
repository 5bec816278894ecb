/* util.c: see util.h. */
#include "reports/base/util.h"
#include "core/base/map.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool wr_grow_more(void *array, size_t *capacity, size_t need, size_t size)
{
  size_t wanted = *capacity ? *capacity * 2 : 16;
  while (wanted < need)
    wanted *= 2;
  void *grown = realloc(*(void **)array, wanted * size);
  if (!grown) return false;
  *(void **)array = grown;
  *capacity = wanted;
  return true;
}

size_t wr_utf8_length(const unsigned char *s, size_t left)
{
  if (s[0] < 0x80) return 1;
  size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
  if (s[0] < 0xc2 || s[0] > 0xf4 || n > left) return 0;
  for (size_t i = 1; i < n; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  if (s[0] == 0xe0 && s[1] < 0xa0) return 0; /* overlong */
  if (s[0] == 0xed && s[1] > 0x9f) return 0; /* surrogate */
  if (s[0] == 0xf0 && s[1] < 0x90) return 0;
  if (s[0] == 0xf4 && s[1] > 0x8f) return 0; /* past U+10FFFF */
  return n;
}

char *wr_text(const char *text, size_t bytes, bool printable)
{
  bytes = text ? strnlen(text, bytes) : 0;
  char *copy = malloc(bytes + 1);
  if (!copy) return NULL;
  for (size_t i = 0; i < bytes;) {
    size_t n = wr_utf8_length((const unsigned char *)text + i, bytes - i);
    unsigned char c = (unsigned char)text[i];
    bool control = printable && (c < 0x20 || c == 0x7f ||
                                 (n == 2 && c == 0xc2 && (unsigned char)text[i + 1] < 0xa0));
    if (!n || control) {
      memset(copy + i, '?', n ? n : 1);
      i += n ? n : 1;
      continue;
    }
    memcpy(copy + i, text + i, n);
    i += n;
  }
  copy[bytes] = '\0';
  return copy;
}

char *wr_vformat(const char *format, va_list args)
{
  char *text = NULL;
  return vasprintf(&text, format, args) < 0 ? NULL : text;
}

char *wr_format(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  char *text = wr_vformat(format, args);
  va_end(args);
  return text;
}

int wr_open_regular(const char *path, uint64_t most, struct stat *file)
{
  /* Asked before the opening, which does something to many a device, and again of what is open.
   */
  if (stat(path, file)) return -1;
  bool fit = S_ISREG(file->st_mode);
  int fd = fit ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
  if (fit && fd < 0) return -1;
  fit = fit && !fstat(fd, file) && S_ISREG(file->st_mode) && file->st_size > 0;
  bool large = fit && (uint64_t)file->st_size > most;
  if (fit && !large) return fd;
  if (fd >= 0) close(fd);
  errno = large ? EFBIG : EINVAL;
  return -1;
}

const char *wr_file_name(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

const char *wr_short_path(const char *path)
{
  const char *part = wr_file_name(path);
  if (part < path + 2) return part;
  for (part--; part > path && part[-1] != '/';)
    part--;
  return part;
}

uint64_t wr_hash_text(uint64_t hash, const char *text)
{
  for (; text && *text; text++)
    hash = hash_mix(hash, (unsigned char)*text);
  return hash_mix(hash, text ? 0x100 : 0x101);
}
