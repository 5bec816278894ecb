/* text.c: what is said of a range (domain, text, category, colour) as a number.
 *
 * A thread numbers what it says itself, so that a name's record comes before its first use in the
 * same thread's spool. It knows again what it said by a 64-bit hash of the words, never by a pointer
 * alone: programs make texts in buffers. What does not fit its table any more is forgotten, and
 * written again under another number when it comes again: the import makes one name of the two. */
#include <string.h>
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

static inline uint64_t hash_message(uint64_t h, const nvtx_message *m)
{
  switch (m->type) {
  case NVTX_MESSAGE_TYPE_ASCII:
    return m->value.ascii ? hash_bytes(h, m->value.ascii, strlen(m->value.ascii)) : h;
  case NVTX_MESSAGE_TYPE_UNICODE:
    return m->value.unicode ? hash_bytes(h, (const char *)m->value.unicode,
                                         wcslen(m->value.unicode) * sizeof(wchar_t))
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
    return m->value.ascii
               ? copy_whole(out, m->value.ascii, strnlen(m->value.ascii, NVTX_MOST_TEXT + 1))
               : 0;
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

static bool write_name(spool_writer *w, uint32_t number, const nvtx_text *domain,
                       const nvtx_message *message, uint32_t category, uint32_t color)
{
  struct {
    range_name head;
    char text[2 * NVTX_MOST_TEXT];
  } name = {.head = {.category = category, .color = color}};
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

static __attribute__((noinline)) uint32_t new_name(nvtx_thread *n, spool_writer *w, uint64_t hash,
                                                   const nvtx_text *domain,
                                                   const nvtx_message *message, uint32_t category,
                                                   uint32_t color)
{
  unsigned at = hash % NVTX_KNOWN;
  if (n->known[at].hash && !n->known[at ^ 1].hash) at ^= 1;
  if (!write_name(w, n->names + 1, domain, message, category, color)) return 0;
  n->known[at].hash = hash;
  n->known[at].name = ++n->names;
  return n->names;
}

uint32_t nvtx_name_of(nvtx_thread *n, spool_writer *w, nvtxDomainHandle_t handle,
                      const nvtx_message *message, uint32_t category, uint32_t color)
{
  const nvtx_text *domain = handle ? nvtx_domain_of(handle) : NULL;
  uint64_t about = (uint64_t)category << 32 | color;
  uint64_t words = (uint64_t)(domain ? domain->number : 0) << 32 | (uint32_t)message->type;
  uint64_t hash = hash_message(mix_word(about * UINT64_C(0xbf58476d1ce4e5b9), words), message) | 1;
  unsigned at = hash % NVTX_KNOWN;
  if (n->known[at].hash == hash) return n->known[at].name;
  if (n->known[at ^ 1].hash == hash) return n->known[at ^ 1].name;
  return new_name(n, w, hash, domain, message, category, color);
}
