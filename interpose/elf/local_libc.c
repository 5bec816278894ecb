/* local_libc.c: the string functions that the library uses, for itself alone (hidden).
 *
 * A sanitizer's runtime stands in for these too, and asks dlsym for the originals while it sets
 * itself up. That dlsym is ours: were it to call a stand-in that is not set up yet, the program
 * would die before main. So whatever may run inside a look-up, and with it all the rest, calls
 * these. Short ones matter most here: names, frames, records of 64 bytes. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LOCAL __attribute__((visibility("hidden")))

/* Where the C library defines these as macros (glibc from 2.43 on), a definition would be
 * expanded. */
#undef memchr
#undef memcmp
#undef memcpy
#undef memmove
#undef memset
#undef strchr
#undef strcmp
#undef strlen
#undef strncmp
#undef strrchr

typedef uint64_t __attribute__((may_alias, aligned(1))) word; /* anywhere in memory */

LOCAL void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
  char *t = to;
  const char *f = from;

  for (; bytes >= sizeof(word); bytes -= sizeof(word), t += sizeof(word), f += sizeof(word))
    *(word *)(void *)t = *(const word *)(const void *)f;
  while (bytes--)
    *t++ = *f++;
  return to;
}

LOCAL void *memset(void *to, int value, size_t bytes)
{
  char *t = to;
  const word eight = (unsigned char)value * UINT64_C(0x0101010101010101);

  for (; bytes >= sizeof(word); bytes -= sizeof(word), t += sizeof(word))
    *(word *)(void *)t = eight;
  while (bytes--)
    *t++ = (char)value;
  return to;
}

LOCAL int memcmp(const void *a, const void *b, size_t bytes)
{
  const unsigned char *p = a, *q = b;

  for (; bytes >= sizeof(word); bytes -= sizeof(word), p += sizeof(word), q += sizeof(word))
    if (*(const word *)(const void *)p != *(const word *)(const void *)q) break;
  for (; bytes; bytes--, p++, q++)
    if (*p != *q) return *p - *q;
  return 0;
}

LOCAL size_t strnlen(const char *text, size_t most)
{
  size_t n = 0;

  while (n < most && text[n])
    n++;
  return n;
}

/* Eight bytes at once: names of ranges are measured each time. An aligned word is in one page, so
 * that what it has beyond the text can be read. */
LOCAL size_t strlen(const char *text)
{
  typedef uint64_t __attribute__((may_alias)) text_word;
  const uint64_t ones = UINT64_C(0x0101010101010101), tops = UINT64_C(0x8080808080808080);
  const uintptr_t skipped = (uintptr_t)text % sizeof(text_word);
  const text_word *at = (const text_word *)(const void *)(text - skipped);
  uint64_t word = *at | ((UINT64_C(1) << 8 * skipped) - 1), zero; /* what comes before is not 0 */
  while (!(zero = (word - ones) & ~word & tops))
    word = *++at;
  return (size_t)((const char *)at - text) + (size_t)__builtin_ctzll(zero) / 8;
}

LOCAL int strncmp(const char *a, const char *b, size_t most)
{
  for (; most; most--, a++, b++)
    if (*a != *b || !*a) return (unsigned char)*a - (unsigned char)*b;
  return 0;
}

LOCAL int strcmp(const char *a, const char *b)
{
  return strncmp(a, b, SIZE_MAX);
}

LOCAL char *strchr(const char *text, int c)
{
  for (; *text != (char)c; text++)
    if (!*text) return NULL;
  return (char *)(uintptr_t)text;
}

LOCAL char *strrchr(const char *text, int c)
{
  const char *found = NULL;

  for (; (text = strchr(text, c)); text++) {
    found = text;
    if (!c) break;
  }
  return (char *)(uintptr_t)found;
}
