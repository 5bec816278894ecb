/* frame.c: a frame as a number, and the record that names it.
 *
 * A code object can be freed and another take its place, so a frame is known by its code object's
 * version (3.12 and later), or else by what its name, its file and its line table hold, as well as
 * by where it and its instruction are. What is new is named once a process, by whoever sees it
 * first, while the thread is in it: its code object is alive then. The place in the table is the
 * number; the numbers are where no program can have code. */
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include "core/base/clock.h"
#include "core/trace/event.h"
#include "interpose/python/python.h"

enum {
  PLACES = 1 << 16,
  PROBES = 64,
  FUNCTION_ROOM = 256,
  FILE_ROOM = 1024,
  CHARACTERS_MOST = 1000,
  LINES_ROOM = 512
};

static _Atomic uint64_t *_Atomic places; /* mapped; hash of a frame, 0: none */

void python_frames_forget(void)
{
  void *p = (void *)atomic_load_explicit(&places, memory_order_acquire);
  if (p) (void)madvise(p, PLACES * sizeof(uint64_t), MADV_DONTNEED);
}

static _Atomic uint64_t *table(void)
{
  _Atomic uint64_t *t = atomic_load_explicit(&places, memory_order_acquire), *none = NULL;
  if (t) return t;
  void *p =
      mmap(NULL, PLACES * sizeof *t, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return NULL;
  if (atomic_compare_exchange_strong(&places, &none, p)) return p;
  munmap(p, PLACES * sizeof *t);
  return none;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static size_t put_utf8(char *out, uint32_t c)
{
  if (c < 0x80) {
    out[0] = (char)c;
    return 1;
  }
  unsigned more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  static const uint8_t heads[] = {0, 0xc0, 0xe0, 0xf0};
  for (unsigned i = more; i; i--, c >>= 6)
    out[i] = (char)(0x80 | (c & 0x3f));
  out[0] = (char)(heads[more] | c);
  return more + 1;
}

/* What a str's state holds after how it is interned: 3 bits how many bytes a character has, whether
 * its characters come after its head, whether all are ASCII. How it is interned takes 2 bits or, in
 * builds without the interpreter's lock, 1 byte or 2, and is at most 3: of a str that can be read,
 * whose characters come after its head, what follows is not 0 and shows which. */
static unsigned text_state(const python_interpreter *in, const uint8_t *head)
{
  uint32_t word;
  memcpy(&word, head + in->at.state, sizeof word);
  return word >> ((word & 0xff) > 3 ? 2 : (word & 0xffff) > 3 ? 8 : 16) & 31;
}

/* A str as UTF-8, cut to `room` bytes. Returns its bytes; 0: it cannot be read. */
static size_t read_python_text(const python_interpreter *in, uintptr_t str, char *out, size_t room)
{
  uint8_t head[PYTHON_TEXT_BYTES], raw[CHARACTERS_MOST];
  if (!python_read(head, str, in->at.state + 4u)) return 0;
  uint64_t length = python_word(head, in->at.length);
  unsigned state = text_state(in, head), size = state & 7;
  bool compact = state >> 3 & 1, ascii = state >> 4 & 1;
  if (!compact || (size != 1 && size != 2 && size != 4)) return 0;
  if (length > sizeof raw / size) length = sizeof raw / size;
  if (!python_read(raw, str + (ascii ? in->at.ascii : in->at.compact), length * size)) return 0;
  size_t used = 0;
  for (size_t i = 0; i < length && used + 4 <= room; i++) {
    uint32_t c = raw[i * size];
    if (size >= 2) c |= (uint32_t)raw[i * size + 1] << 8;
    if (size == 4) c |= (uint32_t)raw[i * size + 2] << 16 | (uint32_t)raw[i * size + 3] << 24;
    used += put_utf8(out + used, c > 0x10ffff ? '?' : c);
  }
  return used;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* The bytes of a line table, one after the other. */
typedef struct line_reader {
  uintptr_t from;
  uint64_t left;
  unsigned at, has;
  uint8_t bytes[LINES_ROOM];
} line_reader;

/* -1: there is none, or it cannot be read. */
static int peek_byte(line_reader *r)
{
  if (r->at == r->has) {
    r->has = (unsigned)(r->left < sizeof r->bytes ? r->left : sizeof r->bytes);
    if (!r->has || !python_read(r->bytes, r->from, r->has)) return -1;
    r->from += r->has;
    r->left -= r->has;
    r->at = 0;
  }
  return r->bytes[r->at];
}

static int next_byte(line_reader *r)
{
  int byte = peek_byte(r);
  r->at += byte >= 0;
  return byte;
}

/* A number of 6 bits a byte, the lowest bit its sign. */
static int next_signed(line_reader *r)
{
  uint32_t n = 0;
  int byte;
  for (unsigned shift = 0; (byte = next_byte(r)) >= 0 && shift < 30; shift += 6) {
    n |= (uint32_t)(byte & 63) << shift;
    if (!(byte & 64)) break;
  }
  return n & 1 ? -(int)(n >> 1) : (int)(n >> 1);
}

enum { LINE_NONE = 15, LINE_LONG = 14, LINE_NO_COLUMNS = 13, LINE_ONE = 10 };

/* The line of an instruction: the table has an entry for each run of code units, with the step from
 * the line of the entry before. 0: it has none. */
static unsigned find_line(line_reader *r, unsigned line, uint64_t unit)
{
  for (int head; (head = next_byte(r)) >= 0 && head & 0x80;) {
    unsigned kind = (unsigned)head >> 3 & 15, units = (head & 7) + 1u;
    if (kind == LINE_LONG || kind == LINE_NO_COLUMNS)
      line += (unsigned)next_signed(r);
    else if (kind >= LINE_ONE && kind < LINE_NO_COLUMNS)
      line += kind - LINE_ONE;
    if (unit < units) return kind == LINE_NONE ? 0 : line;
    unit -= units;
    for (int more; (more = peek_byte(r)) >= 0 && !(more & 0x80);)
      (void)next_byte(r); /* columns */
  }
  return 0;
}

static unsigned line_of_code(const python_interpreter *in, const python_frame *f)
{
  uint32_t first;
  uint64_t count;
  uintptr_t bytes = python_word(f->head, in->at.lines);
  memcpy(&first, f->head + in->at.line, sizeof first);
  if (!f->start || f->instruction < f->start || f->instruction - f->start > UINT32_MAX)
    return first;
  if (!python_read(&count, bytes + in->at.bytes_count, sizeof count)) return first;
  line_reader r = {.from = bytes + in->at.bytes_start, .left = count};
  unsigned line = find_line(&r, first, (f->instruction - f->start) / 2);
  return line ? line : first;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static uint64_t mix_frame(uint64_t hash, uint64_t word)
{
  hash = (hash ^ word) * UINT64_C(0x9fb21c651e98df25);
  return hash ^ hash >> 29;
}

/* Four lanes, so that the multiplications overlap. */
static uint64_t mix_lanes(uint64_t hash, const uint8_t *bytes, size_t count)
{
  const uint64_t k = UINT64_C(0x9fb21c651e98df25);
  uint64_t lane[4] = {hash, ~hash, hash << 1, ~hash << 1};
  for (; count; count -= sizeof lane, bytes += sizeof lane) {
    uint64_t word[4];
    memcpy(word, bytes, sizeof word);
    for (unsigned i = 0; i < 4; i++)
      lane[i] = (lane[i] ^ word[i]) * k;
  }
  hash = mix_frame(lane[0], lane[1] << 17 | lane[1] >> 47);
  return mix_frame(mix_frame(hash, lane[2] << 31 | lane[2] >> 33), lane[3] << 47 | lane[3] >> 17);
}

static uint64_t mix_bytes(uint64_t hash, const uint8_t *bytes, size_t count)
{
  uint64_t word;
  hash = mix_frame(hash, count);
  if (count >= 4 * sizeof word) {
    size_t whole = count - count % (4 * sizeof word);
    hash = mix_lanes(hash, bytes, whole);
    bytes += whole;
    count -= whole;
  }
  for (; count >= sizeof word; count -= sizeof word, bytes += sizeof word) {
    memcpy(&word, bytes, sizeof word);
    hash = mix_frame(hash, word);
  }
  word = 0;
  memcpy(&word, bytes, count);
  return mix_frame(hash, word);
}

/* Where the characters of a str are and how many bytes they take, cut to `most`. Those of a subclass
 * lie elsewhere and name nothing (read_python_text()): 0 bytes. */
static python_piece characters_of(const python_interpreter *in, uintptr_t str, const uint8_t *head,
                                  uint8_t *to, size_t most)
{
  unsigned state = text_state(in, head), compact = state >> 3 & 1;
  uint64_t length = python_word(head, in->at.length), bytes = compact * length * (state & 7);
  if (length > most || bytes > most) bytes = most;
  return (python_piece){to, str + (state >> 4 & 1 ? in->at.ascii : in->at.compact), bytes};
}

/* Of all that names a frame, as far as a name has it: of two code objects that come to the same
 * place one after the other any part may differ, and everything else be the same. */
static uint64_t hash_content(const python_interpreter *in, const python_frame *f, bool loads)
{
  enum { NAME, FILE_NAME, LINES, PARTS };
  uint8_t head[PARTS][PYTHON_TEXT_BYTES];
  uint8_t name[FUNCTION_ROOM], file[FILE_ROOM], lines[LINES_ROOM];
  uintptr_t at[PARTS] = {python_word(f->head, in->at.qualified), python_word(f->head, in->at.file),
                         python_word(f->head, in->at.lines)};
  const python_piece heads[PARTS] = {{head[NAME], at[NAME], in->at.state + 4u},
                                     {head[FILE_NAME], at[FILE_NAME], in->at.state + 4u},
                                     {head[LINES], at[LINES], in->at.bytes_count + 8u}};
  if (!python_read_pieces(loads, heads, PARTS)) return 0;
  uint64_t line_bytes = python_word(head[LINES], in->at.bytes_count), hash = 1;
  if (line_bytes > sizeof lines) line_bytes = sizeof lines;
  const python_piece content[PARTS] = {
      characters_of(in, at[NAME], head[NAME], name, sizeof name),
      characters_of(in, at[FILE_NAME], head[FILE_NAME], file, sizeof file),
      {lines, at[LINES] + in->at.bytes_start, line_bytes}};
  if (!python_read_pieces(loads, content, PARTS)) return 0;
  for (unsigned i = 0; i < PARTS; i++)
    hash = mix_bytes(hash, content[i].to, content[i].bytes);
  return hash;
}

/* Code objects without a version, as they were when the main thread last looked at them. */
enum { KNOWN = 256, PARTS = 3 };

typedef struct known_code {
  uintptr_t code;
  uint64_t sign;
  size_t bytes[PARTS];
  uint8_t content[FUNCTION_ROOM + FILE_ROOM + LINES_ROOM]; /* the parts, one after the other */
} known_code;

static known_code *known_codes(void)
{
  static known_code *known; /* mapped */
  if (known) return known;
  void *p =
      mmap(NULL, KNOWN * sizeof *known, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? NULL : (known = p);
}

static bool is_known(const known_code *k, uintptr_t code, const python_piece parts[PARTS])
{
  const uint8_t *content = k->content;
  if (k->code != code) return false;
  for (unsigned i = 0; i < PARTS; content += parts[i++].bytes)
    if (k->bytes[i] != parts[i].bytes ||
        memcmp(content, (const void *)parts[i].from, parts[i].bytes) != 0)
      return false;
  return true;
}

static void remember_code(known_code *k, uintptr_t code, const python_piece parts[PARTS])
{
  uint8_t *content = k->content;
  k->code = code;
  k->sign = mix_frame(1, code);
  for (unsigned i = 0; i < PARTS; content += parts[i++].bytes) {
    k->bytes[i] = parts[i].bytes;
    memcpy(content, (const void *)parts[i].from, parts[i].bytes);
    k->sign = mix_bytes(k->sign, content, parts[i].bytes);
  }
}

static python_piece characters_there(const python_interpreter *in, uintptr_t str, size_t most)
{
  return characters_of(in, str, (const uint8_t *)str, NULL, most);
}

uint64_t python_code_sign(const python_interpreter *in, uintptr_t code)
{
  const uint8_t *head = (const uint8_t *)code;
  uint32_t version = 0, line;
  if (in->at.version >= 0) memcpy(&version, head + in->at.version, sizeof version);
  if (version) return version;
  known_code *k = known_codes();
  if (!k) return 0;
  k += (code >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 56;
  uintptr_t lines = python_word(head, in->at.lines);
  size_t line_bytes = python_word((const uint8_t *)lines, in->at.bytes_count);
  const python_piece parts[PARTS] = {
      characters_there(in, python_word(head, in->at.qualified), FUNCTION_ROOM),
      characters_there(in, python_word(head, in->at.file), FILE_ROOM),
      {.from = lines + in->at.bytes_start,
       .bytes = line_bytes > LINES_ROOM ? LINES_ROOM : line_bytes}};
  memcpy(&line, head + in->at.line, sizeof line);
  if (!is_known(k, code, parts)) remember_code(k, code, parts);
  return mix_frame(k->sign, line) | 1;
}

static uint64_t hash_frame(const python_interpreter *in, const python_frame *f, bool loads)
{
  uint32_t version = 0;
  uint64_t hash = mix_frame(mix_frame(1, f->code), f->instruction - f->start);
  hash = mix_frame(mix_frame(hash, python_word(f->head, in->at.lines)),
                   python_word(f->head, in->at.qualified));
  hash = mix_frame(mix_frame(hash, python_word(f->head, in->at.file)),
                   python_word(f->head, in->at.line) & UINT32_MAX);
  if (in->at.version >= 0) memcpy(&version, f->head + in->at.version, sizeof version);
  hash = mix_frame(hash, version ? version : hash_content(in, f, loads));
  return hash ? hash : 1;
}

static void write_frame_name(const python_interpreter *in, const python_frame *f, uint64_t number,
                             spool_writer *w)
{
  struct {
    python_frame_info info;
    char text[FUNCTION_ROOM + FILE_ROOM];
  } p;
  trace_event head = {.start = clock_ticks(), .a = number};
  size_t function =
      read_python_text(in, python_word(f->head, in->at.qualified), p.text, FUNCTION_ROOM);
  size_t file =
      read_python_text(in, python_word(f->head, in->at.file), p.text + function, FILE_ROOM);
  p.info = (python_frame_info){.line = line_of_code(in, f),
                               .function_bytes = (uint16_t)function,
                               .file_bytes = (uint16_t)file};
  (void)spool_writer_extended(w, WEIR_EV_PYTHON_FRAME, &head, &p, sizeof p.info + function + file);
}

uint64_t python_frame_number(const python_interpreter *in, const python_frame *f, bool loads,
                             spool_writer *w)
{
  _Atomic uint64_t *t = table();
  uint64_t hash = hash_frame(in, f, loads);
  for (unsigned i = 0; t && i < PROBES; i++) {
    uint64_t place = (hash + i) & (PLACES - 1);
    uint64_t there = atomic_load_explicit(&t[place], memory_order_relaxed);
    if (!there && atomic_compare_exchange_strong(&t[place], &there, hash))
      write_frame_name(in, f, WEIR_PYTHON_FRAME_FIRST + place, w);
    else if (there != hash)
      continue;
    return WEIR_PYTHON_FRAME_FIRST + place;
  }
  return 0;
}
