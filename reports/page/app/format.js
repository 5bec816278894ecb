/* format.js: numbers as the text reports write them: three significant digits, powers of 1024 for bytes,
 * of 1000 for speeds. */

/* What lies right between two is the even one, as printf() has it: toFixed() takes the larger. */
export function fixed(value, digits) {
  const scaled = value * 10 ** digits;
  const between = scaled % 1 === 0.5 && Number.isInteger(value * 2 ** (digits + 1));
  return (between ? (2 * Math.round(scaled / 2)) / 10 ** digits : value).toFixed(digits);
}

function significant(value, unit) {
  return `${fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0)} ${unit}`;
}

export function formatBytes(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  let value = bytes / 1024;
  let unit = 0;
  while (value >= 1023.5 && unit < 5) {
    value /= 1024;
    unit++;
  }
  return significant(value, units[unit]);
}

export function formatTime(ns) {
  if (ns < 1000) return `${Math.round(ns)} ns`;
  if (ns < 999.5e3) return significant(ns / 1e3, 'µs');
  if (ns < 999.5e6) return significant(ns / 1e6, 'ms');
  if (ns < 600e9) return significant(ns / 1e9, 's');
  return significant(ns / 60e9, 'min');
}

export function formatCount(n) {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ',');
}

export function formatCounted(n, one, more) {
  return `${formatCount(n)} ${n === 1 ? one : more}`;
}

export function formatSpeed(bytes, ns) {
  if (!ns) return '–';
  const speed = bytes / ns;
  if (speed >= 0.9995) return significant(speed, 'GB/s');
  if (speed >= 0.9995e-3) return significant(speed * 1e3, 'MB/s');
  return significant(speed * 1e6, 'kB/s');
}

export function formatPercent(part, whole) {
  if (!whole) return '–';
  const value = (100 * part) / whole;
  return `${fixed(value, value < 9.95 ? 1 : 0)} %`;
}

/* A moment on an axis whose ticks lie `step` apart: no more digits than tell two ticks apart. */
export function formatMoment(ns, step) {
  const [unit, name] = ns === 0 || Math.max(ns, step) < 1e3 ? [1, 'ns'] : Math.max(ns, step) < 1e6 ? [1e3, 'µs']
    : Math.max(ns, step) < 1e9 ? [1e6, 'ms'] : [1e9, 's'];
  if (ns === 0) return '0';
  const digits = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
  return `${(ns / unit).toFixed(Math.min(digits, 9))} ${name}`;
}
