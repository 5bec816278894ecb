/* columns.js: the page's numbers. They are one gzip member in base64, which holds a column after the other;
 * each is decoded when it is first asked for. A column is a typed array: Uint32Array where its values fit,
 * else Float64Array (all are whole numbers below 2^53, but those of encoding f64).
 *
 *   v   LEB128    zv  zigzag LEB128    dv  a first value, then zigzag differences    u8 u32 f64  plain */

const PIECE = 1 << 20; /* characters of base64 at a time: a multiple of 4 */

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/* What is no base64 ends the reader's side too. */
async function feedPieces(writer, text) {
  try {
    for (let at = 0; at < text.length; at += PIECE) await writer.write(fromBase64(text.slice(at, at + PIECE)));
    await writer.close();
  } catch (error) {
    await writer.abort(error);
    throw error;
  }
}

/* The text, decoded and unpacked: `size` bytes, or it throws. */
export async function unpackColumns(text, size) {
  const packed = text.trim();
  const result = new Uint8Array(size);
  if (!packed) {
    if (size) throw new Error('the page has no data');
    return result;
  }
  const stream = new DecompressionStream('gzip');
  const fed = feedPieces(stream.writable.getWriter(), packed);
  fed.catch(() => {}); /* the reader sees the same error */
  const reader = stream.readable.getReader();
  let filled = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (filled + value.length > size) throw new Error('the page has more data than it says');
    result.set(value, filled);
    filled += value.length;
  }
  await fed;
  if (filled !== size) throw new Error('the page has less data than it says');
  return result;
}

/* Reads `count` LEB128 numbers and gives each to `map`. */
function readVarints(bytes, count, map) {
  let values = new Uint32Array(count);
  let wide = false;
  let at = 0;
  for (let i = 0; i < count; i++) {
    let byte = bytes[at++];
    let number = byte & 127;
    for (let scale = 128; byte > 127; scale *= 128) {
      byte = bytes[at++];
      number += (byte & 127) * scale;
    }
    const value = map(number);
    if (!wide && !(value >= 0 && value < 4294967296)) {
      values = Float64Array.from(values);
      wide = true;
    }
    values[i] = value;
  }
  if (at > bytes.length) throw new Error('a column of the page ends too early');
  return values;
}

const unzigzag = (n) => (n % 2 ? -(n + 1) / 2 : n / 2);

function readDifferences(bytes, count) {
  let value = 0;
  let first = true;
  return readVarints(bytes, count, (n) => {
    value = first ? n : value + unzigzag(n);
    first = false;
    return value;
  });
}

function readPlain(bytes, count, type) {
  const size = count * type.BYTES_PER_ELEMENT;
  if (size > bytes.length) throw new Error('a column of the page ends too early');
  return new type(bytes.slice(0, size).buffer); /* every machine with a browser is little endian */
}

/* How a column's bytes become numbers, by the name of its encoding. */
const decoders = {
  v: (bytes, count) => readVarints(bytes, count, (n) => n),
  zv: (bytes, count) => readVarints(bytes, count, unzigzag),
  dv: readDifferences,
  u8: (bytes, count) => readPlain(bytes, count, Uint8Array),
  u32: (bytes, count) => readPlain(bytes, count, Uint32Array),
  f64: (bytes, count) => readPlain(bytes, count, Float64Array),
};

/* A function that gives column n, decoded once. */
export function columnReader(list, bytes) {
  const decoded = new Map();
  return (n) => {
    if (!decoded.has(n)) {
      const { offset, bytes: size, count, encoding } = list[n];
      decoded.set(n, decoders[encoding](bytes.subarray(offset, offset + size), count));
    }
    return decoded.get(n);
  };
}
