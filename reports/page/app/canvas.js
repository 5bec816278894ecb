/* canvas.js: what all pictures drawn here share: a canvas in the size and density of its place, the colours
 * of the theme, the axis of time, and what is said of the thing under the pointer or the keyboard's focus:
 * in a tip beside it, and to a screen reader.
 *
 * All pictures over time have the same margins, so that one moment is above the other. */
import { make } from './dom.js';
import { formatMoment } from './format.js';

export const RIGHT = 14;
export const AXIS = 22; /* height of the axis of time */
export const TEXT_FONT = '12px system-ui, sans-serif';
export const COLORS = 10; /* --c0 to --c9 */

export function leftMargin() {
  return window.innerWidth < 640 ? 88 : 132;
}

const resolved = new Map();

/* The colour that a variable of the style sheet has in the theme now. */
export function color(name) {
  if (!resolved.has(name)) {
    const probe = make('span');
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    resolved.set(name, getComputedStyle(probe).color);
    probe.remove();
  }
  return resolved.get(name);
}

export function forgetColors() {
  resolved.clear();
}

export function seriesColor(n) {
  return color(`c${n % COLORS}`);
}

/* ---- a picture --------------------------------------------------------------------------------- */

/* draw(context, width, height) is called when the picture is seen, resized or asked to refresh. */
export class Picture {
  constructor({ label, keys, height, draw }) {
    this.draw = draw;
    this.height = height;
    this.drawn = false;
    this.width = 0;
    this.tip = make('div', { class: 'tip', hidden: true, 'aria-hidden': 'true' });
    this.said = make('p', { class: 'unseen', 'aria-live': 'polite' });
    /* A picture takes keys of its own: a screen reader passes them on to an application, not to an image. */
    this.canvas = make('canvas', { role: 'application', 'aria-roledescription': 'picture', 'aria-label': label, 'aria-description': keys, tabindex: '0' });
    this.box = make('div', { class: 'picture' }, this.canvas, this.tip, this.said);
    this.canvas.addEventListener('pointerleave', () => this.leave());
    this.canvas.addEventListener('blur', () => this.leave());
    new ResizeObserver(() => this.width !== this.box.clientWidth && this.drawn && this.refresh()).observe(this.box);
  }

  refresh() {
    const density = window.devicePixelRatio || 1;
    this.drawn = true;
    this.width = this.box.clientWidth;
    this.canvas.width = Math.max(1, Math.round(this.width * density));
    this.canvas.height = Math.max(1, Math.round(this.height * density));
    this.canvas.style.height = `${this.height}px`;
    const context = this.canvas.getContext('2d');
    context.setTransform(density, 0, 0, density, 0, 0);
    context.font = TEXT_FONT;
    context.textBaseline = 'middle';
    this.draw(context, this.width, this.height);
  }

  /* Says lines of what is at (x, y); also aloud where the keyboard asked. */
  say(lines, x, y, aloud = false) {
    this.tip.replaceChildren(...lines.filter(Boolean).map((line, i) => make('div', { class: i ? null : 'first' }, line)));
    this.tip.hidden = false;
    const left = Math.min(x + 14, this.width - this.tip.offsetWidth - 4);
    const above = y + 18 + this.tip.offsetHeight > this.height + 40;
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${above ? Math.max(0, y - this.tip.offsetHeight - 10) : y + 18}px`;
    if (aloud) this.said.textContent = lines.filter(Boolean).join(', ');
  }

  leave() {
    this.tip.hidden = true;
  }
}

/* ---- drawing ----------------------------------------------------------------------------------- */

/* `text` in at most `width` pixels: its end is left out. */
export function fitText(context, text, width) {
  if (width < 14) return '';
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 1 ? `${text.slice(0, low)}…` : '';
}

/* The same; its beginning is left out: names of lanes differ in their ends. */
export function fitTail(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  const backwards = fitText(context, [...text].reverse().join(''), width);
  return backwards && `…${[...backwards.slice(0, -1)].reverse().join('')}`;
}

/* A step of 1, 2 or 5 times a power of ten, about `pieces` of which make `length`. */
export function niceStep(length, pieces) {
  const raw = Math.max(length / Math.max(pieces, 1), 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= raw * 0.999);
}

/* The axis of time below a picture, and its grid up to `top`. */
export function drawTimeAxis(context, { from, to, left, right, top, bottom }) {
  const step = niceStep(to - from, (right - left) / 90);
  context.textAlign = 'center';
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    const x = Math.round(left + ((at - from) / (to - from)) * (right - left)) + 0.5;
    context.strokeStyle = color('grid');
    context.beginPath();
    context.moveTo(x, top);
    context.lineTo(x, bottom);
    context.stroke();
    context.fillStyle = color('muted');
    if (x > left + 10 && x < right - 20) context.fillText(formatMoment(at, step), x, bottom + AXIS / 2 + 1);
  }
  context.fillStyle = color('muted');
  context.textAlign = 'left';
}

/* Grid and numbers of an axis of bytes: steps are powers of two. */
export function drawByteAxis(context, { most, left, right, top, bottom, format }) {
  const step = 2 ** Math.ceil(Math.log2(Math.max(most, 1) / Math.max(1, (bottom - top) / 44)));
  for (let at = 0; at <= most; at += Math.max(step, 1)) {
    const y = Math.round(bottom - (at / most) * (bottom - top)) + 0.5;
    context.strokeStyle = color('grid');
    context.beginPath();
    context.moveTo(left, y);
    context.lineTo(right, y);
    context.stroke();
    context.fillStyle = color('muted');
    context.textAlign = 'right';
    if (y > top + 4 || at === 0) context.fillText(format(at), left - 8, y);
  }
  context.textAlign = 'left';
}
