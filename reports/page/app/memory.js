/* memory.js: memory over time, the whole run, and the brush: a span dragged here, or moved by the arrow keys,
 * is what every other picture shows and every table is summed over. Each line is the most within a bin of
 * time; the band below it reaches down to the least. */
import { COLORS, RIGHT, color, leftMargin, seriesColor } from './canvas.js';
import { cleanName, make, makeDetails, makeSection, makeWide } from './dom.js';
import { formatBytes, formatMoment, formatTime } from './format.js';
import { run, runEnd } from './model.js';
import { change, chosen, watchChoice } from './state.js';

const MOST_LINES = COLORS;
let plot = null;
let hidden = new Set(); /* numbers of lines switched off */

const ALL_KINDS = 'all';

function memoryTitle({ device, kind, registered }) {
  const title = cleanName(run.index.memory_kinds[kind] ?? 'unknown');
  if (title === ALL_KINDS) return device < 0 ? 'all devices' : `device ${device}, all kinds`;
  return `${device < 0 ? 'host' : `device ${device}`}, ${title}${registered ? ', registered' : ''}`;
}

function linesOfMemory() {
  return run.index.memory.map((m, i) => ({ ...m, number: i, title: memoryTitle(m), all: run.index.memory_kinds[m.kind] === ALL_KINDS }))
    .sort((a, b) => b.peak_bytes - a.peak_bytes);
}

/* Those that are drawn: a sum of one line is no line of its own. */
function linesDrawn(lines) {
  const kinds = (device) => lines.filter((line) => !line.all && line.device === device).length;
  const devices = new Set(lines.filter((line) => line.device >= 0).map((line) => line.device)).size;
  return lines.filter((line) => !line.all || (line.device < 0 ? devices : kinds(line.device)) > 1).slice(0, MOST_LINES);
}

/* Marks on the axes: powers of two for bytes, 1, 2, 5 for time. */
const BYTE_STEPS = Array.from({ length: 52 }, (_, i) => 2 ** i);
const TIME_STEPS = Array.from({ length: 16 }, (_, i) => [1, 2, 5].map((n) => n * 10 ** i)).flat();

function axisStyle() {
  return { stroke: color('muted'), grid: { stroke: color('grid'), width: 1 }, ticks: { show: false }, font: '12px system-ui, sans-serif' };
}

function plotOptions(lines, width, select) {
  const series = lines.flatMap((line, i) => [
    { label: `${line.title}, most`, stroke: seriesColor(i), width: 1.5, show: !hidden.has(line.number), points: { show: false } },
    { label: `${line.title}, least`, stroke: 'transparent', width: 0, show: !hidden.has(line.number), points: { show: false } },
  ]);
  const alpha = (c) => c.replace('rgb(', 'rgba(').replace(')', ', 0.18)');
  return {
    width, height: 230, legend: { show: false }, padding: [8, RIGHT, 0, 0],
    cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false }, y: false },
    scales: { x: { time: false, range: [0, runEnd()] }, y: { range: (u, least, most) => [0, Math.max(most, 1) * 1.06] } },
    axes: [
      { ...axisStyle(), size: 26, gap: 4, incrs: TIME_STEPS, space: 90, values: (u, at, axis, space, step) => at.map((v) => formatMoment(v, step)) },
      { ...axisStyle(), size: leftMargin(), gap: 8, incrs: BYTE_STEPS, space: 40, values: (u, at) => at.map(formatBytes) },
    ],
    series: [{}, ...series],
    bands: lines.map((_, i) => ({ series: [2 * i + 1, 2 * i + 2], fill: alpha(seriesColor(i)) })),
    hooks: { setSelect: [select] },
  };
}

/* A drag chooses whole bins; one of less than three pixels is a click, and clears. */
function takeBrush(u) {
  if (u.quiet) return;
  const { left, width } = u.select;
  if (width < 3) change({ span: null });
  else change({ span: wholeBins(u.posToVal(left, 'x'), u.posToVal(left + width, 'x')) });
}

export function wholeBins(from, to) {
  const { width_ns: width, count } = run.index.bins;
  const first = Math.max(0, Math.min(count - 1, Math.floor(from / width)));
  const last = Math.min(count, Math.max(first + 1, Math.ceil(to / width)));
  return { from: first * width, to: Math.min(last * width, Math.max(runEnd(), (first + 1) * width)) };
}

function showBrush() {
  if (!plot) return;
  plot.quiet = true;
  if (chosen.span) {
    const [left, right] = [chosen.span.from, chosen.span.to].map((v) => plot.valToPos(v, 'x'));
    plot.setSelect({ left, width: Math.max(1, right - left), top: 0, height: plot.over.clientHeight }, false);
  } else plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
  plot.quiet = false;
}

/* ---- by keyboard ------------------------------------------------------------------------------- */

/* Arrows move the span by a hundredth of the run, a bin at least; with shift they move its end alone. */
function moveBrush(event) {
  const end = runEnd();
  const step = Math.max(end / 100, run.index.bins.width_ns);
  const span = chosen.span ?? { from: 0, to: end / 10 };
  const by = { ArrowLeft: -step, ArrowRight: step, PageDown: -10 * step, PageUp: 10 * step }[event.key];
  const length = span.to - span.from;
  let next = null;
  if (event.key === 'Home') next = { from: 0, to: length };
  else if (event.key === 'End') next = { from: end - length, to: end };
  else if (by === undefined) return;
  else if (!chosen.span) next = span;
  else if (event.shiftKey) next = { from: span.from, to: Math.min(end, Math.max(span.from + step, span.to + by)) };
  else {
    const from = Math.max(0, Math.min(end - length, span.from + by));
    next = { from, to: from + length };
  }
  event.preventDefault();
  const { width_ns: width } = run.index.bins;
  change({ span: wholeBins(Math.round(next.from / width) * width, Math.round(next.to / width) * width) });
}

/* Its ends with as many digits as it takes to tell them apart. */
export function spanText(span) {
  const step = 10 ** Math.floor(Math.log10(Math.max(span.to - span.from, 100) / 20));
  return `${formatMoment(span.from, step)} to ${formatMoment(span.to, step)} (${formatTime(span.to - span.from)})`;
}

function showBrushValue(brush) {
  brush.setAttribute('aria-valuenow', String(Math.round(((chosen.span?.from ?? 0) / runEnd()) * 100)));
  brush.setAttribute('aria-valuetext', chosen.span ? spanText(chosen.span) : 'the whole run');
}

/* ---- the section ------------------------------------------------------------------------------- */

function makeLegend(lines, redraw) {
  return make('ul', { class: 'legend', 'aria-label': 'Lines of memory over time' }, lines.map((line, i) => {
    const box = make('input', { type: 'checkbox', checked: !hidden.has(line.number), change: () => {
      if (box.checked) hidden.delete(line.number);
      else hidden.add(line.number);
      redraw();
    } });
    return make('li', {}, make('label', {}, box, make('span', { class: `swatch s${i % COLORS}` }), `${line.title}, peak ${formatBytes(line.peak_bytes)}`));
  }));
}

function memoryTable(lines) {
  return makeWide('Memory of each device and kind', make('table', { class: 'plain' },
    make('caption', {}, 'Memory of each device and kind, the whole run'),
    make('thead', {}, make('tr', {}, ['Where', 'Peak', 'At'].map((t, i) => make('th', { scope: 'col', class: i ? 'number' : null }, t)))),
    make('tbody', {}, lines.map((line) => make('tr', {}, make('th', { scope: 'row' }, line.title),
      [formatBytes(line.peak_bytes), formatTime(line.peak_ns)].map((t) => make('td', { class: 'number' }, t)))))));
}

export function drawMemory() {
  const section = makeSection('memory', 'Memory over time', 'Drag to choose a span: it filters everything below. With the keyboard: arrows move it, shift and arrows stretch it, Escape clears.');
  const all = linesOfMemory();
  const lines = linesDrawn(all);
  if (!lines.length) {
    section.append(make('p', { class: 'empty' }, 'The run had no memory that Weir knows of.'));
    return;
  }
  const holder = make('div', { class: 'plot' });
  const brush = make('div', { class: 'brush', tabindex: '0', role: 'slider', 'aria-label': 'Chosen span of time', 'aria-valuemin': '0', 'aria-valuemax': '100', 'aria-orientation': 'horizontal', keydown: moveBrush }, holder);
  const { width_ns: width, count } = run.index.bins;
  const middles = Float64Array.from({ length: count }, (_, b) => (b + 0.5) * width);
  const data = [middles, ...lines.flatMap((line) => [run.column(line.max), run.column(line.min)])];
  const redraw = () => {
    plot?.destroy();
    plot = new globalThis.uPlot(plotOptions(lines, Math.max(200, brush.clientWidth), takeBrush), data, holder);
    plot.root.querySelector('canvas').setAttribute('aria-hidden', 'true');
    showBrush();
  };
  section.append(brush, makeLegend(lines, redraw), makeDetails('Memory over time as a table', () => memoryTable(all)));
  redraw();
  showBrushValue(brush);
  let drawnWidth = brush.clientWidth;
  new ResizeObserver(() => {
    if (brush.clientWidth === drawnWidth) return;
    drawnWidth = brush.clientWidth;
    redraw();
  }).observe(brush);
  watchChoice(() => {
    showBrush();
    showBrushValue(brush);
  });
  document.addEventListener('weir-theme', redraw);
}
