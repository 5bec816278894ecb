/* inflate.c: see inflate.h. Written from RFC 1951 and RFC 1952.
 *
 * A Huffman code is two tables: codes of up to FAST bits are looked up at once by the next bits of
 * the input, longer ones are found by their length, in the order of the canonical code. Input ends
 * in zeros that are counted: whoever has used more bits than there were has met a cut file. Nothing
 * is written beyond `room`, and no distance reaches before the first byte. */
#include "core/io/inflate.h"

#include <pthread.h>
#include <string.h>

enum { LONGEST = 15, FAST = 10, LITERALS = 288, DISTANCES = 30, LENGTHS = 19 };

typedef struct huffman {
  uint16_t fast[1 << FAST];    /* symbol << 4 | length, by the next FAST bits; 0: a longer code */
  uint16_t count[LONGEST + 1]; /* codes of each length */
  uint16_t symbol[LITERALS];   /* in the order of their codes */
} huffman;

typedef struct inflater {
  const unsigned char *in, *in_end; /* borrowed */
  unsigned char *out;               /* borrowed: its start */
  size_t at, room;                  /* bytes written; bytes there are */
  uint64_t bits;                    /* next bit of the input lowest */
  unsigned have;                    /* bits in `bits` */
  unsigned beyond;                  /* bytes of zeros taken after the end */
} inflater;

/* At least 48 bits are there afterwards. */
static void refill_bits(inflater *z)
{
  while (z->have <= 48) {
    uint64_t byte = 0;
    if (z->in < z->in_end)
      byte = *z->in++;
    else
      z->beyond++;
    z->bits |= byte << z->have;
    z->have += 8;
  }
}

/* n <= 16 bits that are there. */
static unsigned take_bits(inflater *z, unsigned n)
{
  unsigned v = (unsigned)(z->bits & ((UINT64_C(1) << n) - 1));
  z->bits >>= n;
  z->have -= n;
  return v;
}

static bool used_too_much(const inflater *z)
{
  return z->beyond * 8 > z->have;
}

/* ---- codes ----------------------------------------------------------------------------------- */

static unsigned reversed(unsigned code, unsigned length)
{
  unsigned out = 0;
  for (unsigned i = 0; i < length; i++)
    out |= (code >> i & 1) << (length - 1 - i);
  return out;
}

/* Of `n` lengths, 0: the symbol has no code. false: there are more codes than fit, or too few for
 * anything but a single code of one bit. */
static bool make_code(huffman *h, const uint8_t *length, unsigned n)
{
  uint16_t next[LONGEST + 2] = {0}, place[LONGEST + 2] = {0};
  int left = 1;
  memset(h->count, 0, sizeof h->count);
  memset(h->fast, 0, sizeof h->fast);
  for (unsigned i = 0; i < n; i++)
    h->count[length[i]]++;
  unsigned used = n - h->count[0];
  h->count[0] = 0;
  for (unsigned l = 1; l <= LONGEST; l++) {
    left = left * 2 - h->count[l];
    if (left < 0) return false;
    next[l + 1] = (uint16_t)((next[l] + h->count[l]) << 1);
    place[l + 1] = (uint16_t)(place[l] + h->count[l]);
  }
  if (left && !(used == 1 && h->count[1] == 1) && used) return false;
  for (unsigned i = 0; i < n; i++) {
    unsigned l = length[i];
    if (!l) continue;
    h->symbol[place[l]++] = (uint16_t)i;
    unsigned code = reversed(next[l]++, l);
    for (unsigned at = code; l <= FAST && at < 1 << FAST; at += 1u << l)
      h->fast[at] = (uint16_t)(i << 4 | l);
  }
  return true;
}

/* The next symbol; -1: the bits are no code. At least LONGEST bits must be there. */
static int decode_symbol(inflater *z, const huffman *h)
{
  unsigned hit = h->fast[z->bits & ((1 << FAST) - 1)];
  if (hit) {
    (void)take_bits(z, hit & 15);
    return (int)(hit >> 4);
  }
  int code = 0, first = 0, index = 0;
  for (unsigned l = 1; l <= LONGEST; l++) {
    int count = h->count[l];
    code |= (int)(z->bits >> (l - 1) & 1);
    if (code - count < first) {
      (void)take_bits(z, l);
      return h->symbol[index + code - first];
    }
    index += count;
    first = (first + count) << 1;
    code <<= 1;
  }
  return -1;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static bool stored_block(inflater *z)
{
  (void)take_bits(z, z->have % 8);
  refill_bits(z);
  unsigned length = take_bits(z, 16), check = take_bits(z, 16);
  if (length != (~check & 0xffff) || used_too_much(z)) return false;
  z->in -= z->have / 8 - z->beyond; /* whole bytes that were taken in advance */
  z->bits = 0;
  z->have = z->beyond = 0;
  if (length > (size_t)(z->in_end - z->in) || length > z->room - z->at) return false;
  if (length) memcpy(z->out + z->at, z->in, length);
  z->in += length;
  z->at += length;
  return true;
}

/* Bytes once more from `distance` before; the two may overlap. */
static bool copy_back(inflater *z, size_t length, size_t distance)
{
  if (distance > z->at || length > z->room - z->at) return false;
  unsigned char *to = z->out + z->at;
  const unsigned char *from = to - distance;
  if (distance >= length)
    memcpy(to, from, length);
  else
    for (size_t i = 0; i < length; i++)
      to[i] = from[i];
  z->at += length;
  return true;
}

/* A length's symbol was read: its rest, the distance, the copy. */
static bool match(inflater *z, unsigned symbol, const huffman *distances)
{
  static const uint16_t length_base[] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                         15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                         67, 83, 99, 115, 131, 163, 195, 227, 258};
  static const uint8_t length_more[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                        2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
  static const uint16_t base[DISTANCES] = {
      1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
      193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
  if (symbol >= sizeof length_more) return false;
  size_t length = length_base[symbol] + take_bits(z, length_more[symbol]);
  int d = decode_symbol(z, distances);
  if (d < 0 || d >= DISTANCES) return false;
  size_t distance = base[d] + take_bits(z, d < 4 ? 0 : (unsigned)d / 2 - 1);
  return copy_back(z, length, distance);
}

static bool coded_block(inflater *z, const huffman *literals, const huffman *distances)
{
  for (;;) {
    refill_bits(z); /* 15 + 5 + 15 + 13 bits at most */
    int symbol = decode_symbol(z, literals);
    if (symbol < 0 || used_too_much(z)) return false;
    if (symbol == 256) return true;
    if (symbol > 256) {
      if (!match(z, (unsigned)symbol - 257, distances)) return false;
    } else {
      if (z->at == z->room) return false;
      z->out[z->at++] = (unsigned char)symbol;
    }
  }
}

/* `n` lengths, themselves coded by `code`. */
static bool read_lengths(inflater *z, const huffman *code, uint8_t *length, unsigned n)
{
  for (unsigned at = 0; at < n;) {
    refill_bits(z);
    int symbol = decode_symbol(z, code);
    if (symbol < 0 || used_too_much(z)) return false;
    if (symbol < 16) {
      length[at++] = (uint8_t)symbol;
      continue;
    }
    if (symbol == 16 && !at) return false;
    uint8_t value = symbol == 16 ? length[at - 1] : 0;
    unsigned times = symbol == 16   ? 3 + take_bits(z, 2)
                     : symbol == 17 ? 3 + take_bits(z, 3)
                                    : 11 + take_bits(z, 7);
    if (times > n - at) return false;
    memset(length + at, value, times);
    at += times;
  }
  return true;
}

/* Codes that stand at the block's start. */
static bool dynamic_block(inflater *z, huffman *literals, huffman *distances)
{
  static const uint8_t order[LENGTHS] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                         11, 4,  12, 3, 13, 2, 14, 1, 15};
  uint8_t length[LITERALS + 32] = {0};
  refill_bits(z);
  unsigned lits = 257 + take_bits(z, 5), dists = 1 + take_bits(z, 5), n = 4 + take_bits(z, 4);
  if (lits > 286 || dists > DISTANCES) return false;
  for (unsigned i = 0; i < n; i++) {
    refill_bits(z);
    length[order[i]] = (uint8_t)take_bits(z, 3);
  }
  if (!make_code(literals, length, LENGTHS)) return false;
  memset(length, 0, sizeof length);
  if (!read_lengths(z, literals, length, lits + dists) || !length[256]) return false;
  return make_code(distances, length + lits, dists) && make_code(literals, length, lits) &&
         coded_block(z, literals, distances);
}

static bool fixed_block(inflater *z, huffman *literals, huffman *distances)
{
  uint8_t length[LITERALS];
  for (unsigned i = 0; i < LITERALS; i++)
    length[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  if (!make_code(literals, length, LITERALS)) return false;
  memset(length, 5, 32);
  return make_code(distances, length, 32) && coded_block(z, literals, distances);
}

bool inflate_all(unsigned char *out, size_t room, const unsigned char *in, size_t bytes)
{
  inflater z = {.in = in, .in_end = in + bytes, .out = out, .room = room};
  huffman literals, distances;
  bool last = false, good = true;
  while (good && !last) {
    refill_bits(&z);
    last = take_bits(&z, 1);
    unsigned kind = take_bits(&z, 2);
    good = !used_too_much(&z) && (kind == 0   ? stored_block(&z)
                                  : kind == 1 ? fixed_block(&z, &literals, &distances)
                                  : kind == 2 ? dynamic_block(&z, &literals, &distances)
                                              : false);
  }
  return good && !used_too_much(&z) && z.at == room && z.in == z.in_end && z.have / 8 == z.beyond;
}

/* ---- the sum --------------------------------------------------------------------------------- */

static uint32_t crc_table[8][256];

static void fill_crc_table(void)
{
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int k = 0; k < 8; k++)
      c = c & 1 ? UINT32_C(0xedb88320) ^ c >> 1 : c >> 1;
    crc_table[0][i] = c;
  }
  for (int t = 1; t < 8; t++)
    for (int i = 0; i < 256; i++)
      crc_table[t][i] = crc_table[0][crc_table[t - 1][i] & 255] ^ crc_table[t - 1][i] >> 8;
}

uint32_t crc32_of(uint32_t crc, const void *data, size_t bytes)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  const unsigned char *p = data;
  (void)pthread_once(&once, fill_crc_table);
  crc = ~crc;
  for (; bytes >= 8; p += 8, bytes -= 8) {
    uint32_t low =
        crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
    crc = crc_table[7][low & 255] ^ crc_table[6][low >> 8 & 255] ^ crc_table[5][low >> 16 & 255] ^
          crc_table[4][low >> 24] ^ crc_table[3][p[4]] ^ crc_table[2][p[5]] ^ crc_table[1][p[6]] ^
          crc_table[0][p[7]];
  }
  for (; bytes; bytes--)
    crc = crc_table[0][(crc ^ *p++) & 255] ^ crc >> 8;
  return ~crc;
}
