/* text.c: the attributes of a range (domain, text, category, colour) as a number.
 *
 * A thread numbers its own names, so that a name's record comes before its first use in the same
 * thread's spool. It recognises a name by a 64-bit hash of the words, never by a pointer alone:
 * programs make texts in buffers. Of a text only what is kept of it is looked at, however long it
 * is. The table of what is known grows to NVTX_MOST_KNOWN; what does not fit it then is forgotten,
 * and written again under another number when it comes again: the import makes one name of the
 * two. */
#include <string.h>
#include <sys/mman.h>
#include <wchar.h>
#include "core/base/clock.h"
#include "interpose/nvtx/nvtx.h"

_Atomic uint32_t nvtx_handles_age;
_Atomic bool nvtx_next_is_there;

static inline uint64_t mix_word(uint64_t h, uint64_t word)
{
  h = (h ^ word) * UINT64_C(0x9fb21c651e98df25);
  return h ^ h >> 32;
}

static inline uint64_t hash_bytes(uint64_t h, const char *text, size_t bytes)
{
  uint64_t word;
  h ^= bytes * UINT64_C(0x9e3779b97f4a7c15);
  for (; bytes >= sizeof word; bytes -= sizeof word, text += sizeof word) {
    memcpy(&word, text, sizeof word);
    h = mix_word(h, word);
  }
  if (!bytes) return h;
  word = 0;
  memcpy(&word, text, bytes);
  return mix_word(h, word);
}

enum { LOOKED_AT = NVTX_MOST_TEXT + 1 /* characters that decide what is kept of a text */ };

static inline uint64_t hash_message(uint64_t h, const nvtx_message *m)
{
  switch (m->type) {
  case NVTX_MESSAGE_TYPE_ASCII:
    return m->value.ascii ? hash_bytes(h, m->value.ascii, strnlen(m->value.ascii, LOOKED_AT)) : h;
  case NVTX_MESSAGE_TYPE_UNICODE:
    return m->value.unicode ? hash_bytes(h, (const char *)m->value.unicode,
                                         wcsnlen(m->value.unicode, LOOKED_AT) * sizeof(wchar_t))
                            : h;
  case NVTX_MESSAGE_TYPE_REGISTERED:
    h = mix_word(h, atomic_load_explicit(&nvtx_handles_age, memory_order_relaxed));
    return mix_word(h, (uint64_t)(uintptr_t)m->value.registered);
  default:
    return h;
  }
}

/* ---- UTF-8 ----------------------------------------------------------------------------------- */

static size_t put_character(char *out, uint32_t c)
{
  if (c >= 0x110000 || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
  if (c < 0x80) {
    out[0] = (char)c;
    return 1;
  }
  size_t bytes = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (size_t i = bytes - 1; i; i--, c >>= 6)
    out[i] = (char)(0x80 | (c & 0x3f));
  out[0] = (char)(0xf0 << (4 - bytes) | c);
  return bytes;
}

static size_t wide_utf8(char out[NVTX_MOST_TEXT], const wchar_t *text)
{
  size_t bytes = 0;
  while (text && *text && bytes + 4 <= NVTX_MOST_TEXT)
    bytes += put_character(out + bytes, (uint32_t)*text++);
  return bytes;
}

/* No more bytes than fit, and no part of a character. */
static size_t copy_whole(char out[NVTX_MOST_TEXT], const char *text, size_t bytes)
{
  if (bytes > NVTX_MOST_TEXT) {
    bytes = NVTX_MOST_TEXT;
    while (bytes && ((unsigned char)text[bytes] & 0xc0) == 0x80)
      bytes--;
  }
  memcpy(out, text, bytes);
  return bytes;
}

size_t nvtx_utf8(char out[NVTX_MOST_TEXT], const nvtx_message *m)
{
  const nvtx_text *text;
  switch (m->type) {
  case NVTX_MESSAGE_TYPE_ASCII:
    return m->value.ascii ? copy_whole(out, m->value.ascii, strnlen(m->value.ascii, LOOKED_AT)) : 0;
  case NVTX_MESSAGE_TYPE_UNICODE:
    return wide_utf8(out, m->value.unicode);
  case NVTX_MESSAGE_TYPE_REGISTERED:
    text = nvtx_string_of(m->value.registered);
    return text ? copy_whole(out, text->text, text->bytes) : 0;
  default:
    return 0;
  }
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool write_range_name(spool_writer *w, uint32_t number, const nvtx_text *domain,
                             const nvtx_message *message, uint32_t category, uint32_t color)
{
  struct {
    range_name head;
    char text[2 * NVTX_MOST_TEXT];
  } name; /* only what is written is set */
  name.head = (range_name){.category = category, .color = color};
  if (domain) {
    memcpy(name.text, domain->text, domain->bytes);
    name.head.domain_bytes = (uint16_t)domain->bytes;
  }
  size_t text = nvtx_utf8(name.text + name.head.domain_bytes, message);
  name.head.text_bytes = (uint16_t)text;
  trace_event head = {.start = clock_ticks(), .a = number};
  return spool_writer_extended(w, WEIR_EV_RANGE_NAME, &head, &name,
                               sizeof name.head + name.head.domain_bytes + text);
}

enum { WAYS = 8 }; /* places that a hash may be in */

/* The first of them. */
static inline nvtx_known *first_known(nvtx_thread *n, uint64_t hash)
{
  nvtx_known *known = __builtin_expect(n->more != NULL, 0) ? n->more : n->known;
  uint64_t mask = __builtin_expect(n->more != NULL, 0) ? n->more_mask : NVTX_KNOWN - 1;
  uint64_t spread = hash * UINT64_C(0x9e3779b97f4a7c15) >> 40; /* low bits see few of the text's */
  return &known[spread & mask & ~(uint64_t)(WAYS - 1)];
}

/* Where all are taken one gives way. */
static void keep_name(nvtx_known place[WAYS], uint64_t hash, uint32_t name)
{
  unsigned at = 0;
  while (at < WAYS && place[at].hash)
    at++;
  if (at == WAYS) at = name % WAYS;
  place[at] = (nvtx_known){hash, name};
}

/* Once half of the places are taken there are eight times as many, where there is memory. */
static void grow_known(nvtx_thread *n)
{
  nvtx_known *was = n->more ? n->more : n->known;
  uint32_t places = n->more ? n->more_mask + 1 : NVTX_KNOWN;
  if (places >= NVTX_MOST_KNOWN || n->names < places / 2) return;
  nvtx_known *map = mmap(NULL, 8 * places * sizeof *map, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return;
  n->more = map;
  n->more_mask = 8 * places - 1;
  for (uint32_t i = 0; i < places; i++)
    if (was[i].hash) keep_name(first_known(n, was[i].hash), was[i].hash, was[i].name);
  if (was != n->known) (void)munmap(was, places * sizeof *was);
}

void nvtx_forget_names(nvtx_thread *n)
{
  if (n->more) (void)munmap(n->more, (n->more_mask + (size_t)1) * sizeof *n->more);
  n->more = NULL;
}

static __attribute__((noinline)) uint32_t new_name(nvtx_thread *n, spool_writer *w, uint64_t hash,
                                                   const nvtx_text *domain,
                                                   const nvtx_message *message, uint32_t category,
                                                   uint32_t color)
{
  if (!write_range_name(w, n->names + 1, domain, message, category, color)) return 0;
  grow_known(n);
  keep_name(first_known(n, hash), hash, ++n->names);
  return n->names;
}

uint32_t nvtx_name_of(nvtx_thread *n, spool_writer *w, nvtxDomainHandle_t handle,
                      const nvtx_message *message, uint32_t category, uint32_t color)
{
  const nvtx_text *domain = handle ? nvtx_domain_of(handle) : NULL;
  uint64_t about = (uint64_t)category << 32 | color;
  uint64_t words = (uint64_t)(domain ? domain->number : 0) << 32 | (uint32_t)message->type;
  uint64_t hash = hash_message(mix_word(about * UINT64_C(0xbf58476d1ce4e5b9), words), message) | 1;
  const nvtx_known *place = first_known(n, hash);
  for (unsigned i = 0; i < WAYS && place[i].hash; i++)
    if (place[i].hash == hash) return place[i].name;
  return new_name(n, w, hash, domain, message, category, color);
}
