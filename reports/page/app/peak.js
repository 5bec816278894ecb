/* peak.js: who held device memory, over time: live bytes stacked by site, those that held most at the peak
 * below; within a site's area its blocks, where the page has them and they are tall enough to see. */
import { AXIS, Picture, RIGHT, color, drawByteAxis, drawTimeAxis, leftMargin, seriesColor } from './canvas.js';
import { make, makeDetails, makeSection, makeWide } from './dom.js';
import { formatBytes, formatCounted, formatPercent, formatTime } from './format.js';
import { run, runEnd, shownSpan, siteFrame, sitePlace, siteTitle } from './model.js';
import { change, chosen, watchChoice } from './state.js';

const PEAK_HEIGHT = 320;
const PEAK_TOP = 10;
const MOST_BLOCKS = 4000; /* of one area within the view: beyond these they are too thin to tell apart */

let held = null;  /* what of the index is shown: peak, or one of other_peaks */
let areas = null; /* [{site, bytes: a value each bin, color}], the lowest first; the last is the rest, site -1 */
let focus = { area: 0, x: null };

function makeAreas() {
  const list = held.sites.map((site, i) => ({ site, bytes: run.column(held.columns[i]), number: i }));
  const rest = run.column(held.rest);
  if (rest.some((v) => v > 0)) list.push({ site: -1, bytes: rest, number: -1 });
  return list;
}

function areaColor(area) {
  return area.number < 0 ? color('rest') : seriesColor(area.number);
}

function areaTitle(area) {
  return area.site < 0 ? 'all other places' : siteTitle(area.site);
}

/* The bin that is at x. */
function binAt(x, view) {
  const { width_ns: width, count } = run.index.bins;
  const at = view.from + ((x - view.left) / (view.right - view.left)) * (view.to - view.from);
  return Math.max(0, Math.min(count - 1, Math.floor(at / width)));
}

function pictureView(width) {
  return { ...shownSpan(), left: leftMargin(), right: width - RIGHT, top: PEAK_TOP, bottom: PEAK_HEIGHT - AXIS };
}

/* The most that lies in one bin between the bins of the view. */
function mostBytes(view) {
  let most = 1;
  for (let b = binAt(view.left, view); b <= binAt(view.right - 0.01, view); b++) {
    let sum = 0;
    for (const area of areas) sum += area.bytes[b];
    most = Math.max(most, sum);
  }
  return most;
}

/* ---- blocks ------------------------------------------------------------------------------------ */

let blocksOfFrame = null;

/* The blocks of a place that are live between two moments, as {start, end, bytes}. */
function blocksAt(site, from, to) {
  const { blocks } = held;
  if (!blocks?.count) return [];
  const [start, end, bytes, device] = [blocks.start, blocks.end, blocks.bytes, blocks.device].map(run.column);
  if (!blocksOfFrame) {
    blocksOfFrame = new Map();
    run.column(blocks.site).forEach((s, i) => {
      const frame = siteFrame(s);
      if (device[i] !== held.device) return;
      if (blocksOfFrame.has(frame)) blocksOfFrame.get(frame).push(i);
      else blocksOfFrame.set(frame, [i]);
    });
  }
  return (blocksOfFrame.get(siteFrame(site)) ?? []).filter((i) => start[i] < to && (end[i] > from || end[i] === 0))
    .map((i) => ({ start: start[i], end: end[i] || runEnd(), bytes: bytes[i] }));
}

/* Lines between the blocks of an area, in one column of pixels; `list`: its blocks within the view. */
function drawBlocks(context, list, x, low, scale, at) {
  let y = low;
  for (const block of list) {
    if (block.start > at || block.end <= at) continue;
    const tall = block.bytes * scale;
    y -= tall;
    if (tall >= 4) context.fillRect(x, Math.round(y), 1, 1);
  }
}

/* ---- the picture ------------------------------------------------------------------------------- */

function drawAreas(context, view, most) {
  const columns = Math.floor(view.right - view.left);
  const height = view.bottom - view.top;
  const level = new Float64Array(columns);
  for (const area of areas) {
    const dim = chosen.place && !(area.site >= 0 && chosen.place.frames.has(run.index.sites.frame[area.site]));
    context.globalAlpha = dim ? 0.25 : 0.85;
    context.fillStyle = areaColor(area);
    context.beginPath();
    context.moveTo(view.left, view.bottom - (level[0] / most) * height);
    for (let i = 0; i < columns; i++) context.lineTo(view.left + i, view.bottom - (level[i] / most) * height);
    for (let i = columns - 1; i >= 0; i--) {
      level[i] += area.bytes[binAt(view.left + i, view)];
      context.lineTo(view.left + i, view.bottom - (level[i] / most) * height);
    }
    context.fill();
    context.globalAlpha = 1;
  }
}

function drawAllBlocks(context, view, most) {
  const scale = (view.bottom - view.top) / most;
  const { width_ns: width } = run.index.bins;
  const lists = areas.map((area) => (area.site < 0 ? [] : blocksAt(area.site, view.from, view.to)));
  context.fillStyle = color('paper');
  for (let i = 0; i < Math.floor(view.right - view.left); i++) {
    const bin = binAt(view.left + i, view);
    let level = 0;
    areas.forEach((area, n) => {
      const dense = lists[n].length > MOST_BLOCKS;
      if (!dense && area.bytes[bin] * scale >= 4) drawBlocks(context, lists[n], view.left + i, view.bottom - level * scale, scale, (bin + 0.5) * width);
      level += area.bytes[bin];
    });
  }
}

function drawPeakMark(context, view) {
  const { at_ns: at } = held;
  if (at < view.from || at > view.to) return;
  const x = Math.round(view.left + ((at - view.from) / (view.to - view.from)) * (view.right - view.left)) + 0.5;
  context.strokeStyle = color('ink');
  context.setLineDash([3, 3]);
  context.beginPath();
  context.moveTo(x, view.top - 6);
  context.lineTo(x, view.bottom);
  context.stroke();
  context.setLineDash([]);
  context.fillStyle = color('ink');
  context.textAlign = x > view.right - 60 ? 'right' : 'left';
  context.fillText('peak', x + (x > view.right - 60 ? -4 : 4), view.top);
  context.textAlign = 'left';
}

function drawPeakPicture(context, width) {
  const view = pictureView(width);
  const most = mostBytes(view) * 1.06;
  context.clearRect(0, 0, width, PEAK_HEIGHT);
  drawTimeAxis(context, view);
  drawByteAxis(context, { ...view, most, format: formatBytes });
  drawAreas(context, view, most);
  drawAllBlocks(context, view, most);
  drawPeakMark(context, view);
}

/* ---- what is at a point ------------------------------------------------------------------------ */

function areaAt(x, y, width) {
  const view = pictureView(width);
  if (x < view.left || x > view.right || y > view.bottom) return null;
  const bin = binAt(x, view);
  const wanted = ((view.bottom - y) / (view.bottom - view.top)) * mostBytes(view) * 1.06;
  let level = 0;
  for (const area of areas) {
    if (wanted < level + area.bytes[bin]) return { area, bin, within: wanted - level };
    level += area.bytes[bin];
  }
  return null;
}

function areaLines({ area, bin, within }) {
  const { width_ns: width } = run.index.bins;
  const at = (bin + 0.5) * width;
  let all = 0;
  for (const other of areas) all += other.bytes[bin];
  const lines = [areaTitle(area), `${formatBytes(area.bytes[bin])} live at ${formatTime(at)}, ${formatPercent(area.bytes[bin], all)} of ${formatBytes(all)}`];
  if (within === undefined || area.site < 0) return lines;
  let level = 0;
  for (const block of blocksAt(area.site, at, at + 1)) {
    if (within < level + block.bytes) return [...lines, `a block of ${formatBytes(block.bytes)}, from ${formatTime(block.start)} to ${formatTime(block.end)}`];
    level += block.bytes;
  }
  return lines;
}

function chooseArea(area) {
  if (area && area.site >= 0) change({ place: sitePlace(area.site) });
}

/* Up and down: the areas; left and right: moments; Enter chooses. */
function peakKey(picture, event) {
  const view = pictureView(picture.width);
  const { width_ns: width } = run.index.bins;
  focus.x ??= view.left + ((Math.min(Math.max(held.at_ns, view.from), view.to) - view.from) / (view.to - view.from)) * (view.right - view.left);
  const step = Math.max(8, (width / (view.to - view.from)) * (view.right - view.left));
  if (event.key === 'ArrowUp') focus.area = Math.min(areas.length - 1, focus.area + 1);
  else if (event.key === 'ArrowDown') focus.area = Math.max(0, focus.area - 1);
  else if (event.key === 'ArrowLeft') focus.x = Math.max(view.left, focus.x - step);
  else if (event.key === 'ArrowRight') focus.x = Math.min(view.right - 1, focus.x + step);
  else if (event.key === 'Enter') return chooseArea(areas[focus.area]);
  else return undefined;
  event.preventDefault();
  const bin = binAt(focus.x, view);
  let level = 0;
  for (let i = 0; i < focus.area; i++) level += areas[i].bytes[bin];
  level += areas[focus.area].bytes[bin] / 2;
  const y = view.bottom - (level / (mostBytes(view) * 1.06)) * (view.bottom - view.top);
  return picture.say(areaLines({ area: areas[focus.area], bin }), focus.x, y, true);
}

function peakTable() {
  const { bins } = run.index;
  const bin = Math.min(bins.count - 1, Math.floor(held.at_ns / bins.width_ns));
  let all = 0;
  for (const area of areas) all += area.bytes[bin];
  return makeWide('Live bytes by place', make('table', { class: 'plain' },
    make('caption', {}, `Live bytes by place in the bin of the peak of device ${held.device}, ${formatTime(held.at_ns)}`),
    make('thead', {}, make('tr', {}, ['Place', 'Bytes', 'Share'].map((t, i) => make('th', { scope: 'col', class: i ? 'number' : null }, t)))),
    make('tbody', {}, areas.map((area) => make('tr', {}, make('th', { scope: 'row' }, areaTitle(area)),
      make('td', { class: 'number' }, formatBytes(area.bytes[bin])), make('td', { class: 'number' }, formatPercent(area.bytes[bin], all)))))));
}

function peakLegend() {
  return make('ul', { class: 'legend', 'aria-label': 'Places in the picture' }, areas.slice(0, 12).map((area) => make('li', {},
    make('button', { type: 'button', class: 'plain-button', disabled: area.site < 0, click: () => chooseArea(area) },
      make('span', { class: `swatch ${area.number < 0 ? 'rest' : `s${area.number % 10}`}` }), areaTitle(area)))));
}

function blocksNote() {
  const { blocks } = held;
  if (!blocks?.all) return '';
  if (blocks.count === blocks.all) return ` Its ${formatCounted(blocks.all, 'block is', 'blocks are')} all in this page.`;
  return ` Of ${formatCounted(blocks.all, 'block', 'blocks')} the page has the ${formatCounted(blocks.count, 'largest one', 'largest')}; ${formatBytes(blocks.bytes_left_out ?? 0)} of smaller ones are in the areas, without lines of their own.`;
}

/* Shows the memory of one device: peak, or one of other_peaks. */
function holdPeak(peak, picture, parts) {
  held = peak;
  blocksOfFrame = null;
  areas = makeAreas();
  focus = { area: 0, x: null };
  parts.note.textContent = `Device ${held.device}: live bytes by the place that allocated them.${blocksNote()} A click chooses a place.`;
  parts.legend.replaceChildren(peakLegend());
  parts.table.replaceChildren(makeDetails('The peak as a table', peakTable));
  picture.canvas.setAttribute('aria-label', `Live bytes of device ${held.device} over time, stacked by place; the table below has the peak`);
  picture.refresh();
}

function deviceChoice(peaks, take) {
  if (peaks.length < 2) return null;
  return make('fieldset', { class: 'choice' }, make('legend', { class: 'unseen' }, 'Memory of'), peaks.map((peak, i) => make('label', {},
    make('input', { type: 'radio', name: 'peak-device', checked: i === 0, change: () => take(peak) }), make('span', {}, `Device ${peak.device}`))));
}

function followPeakPointer(picture) {
  const { canvas } = picture;
  canvas.addEventListener('pointermove', (event) => {
    const found = areaAt(event.offsetX, event.offsetY, picture.width);
    canvas.style.cursor = found && found.area.site >= 0 ? 'pointer' : 'default';
    if (found) picture.say(areaLines(found), event.offsetX, event.offsetY);
    else picture.leave();
  });
  canvas.addEventListener('click', (event) => chooseArea(areaAt(event.offsetX, event.offsetY, picture.width)?.area));
  canvas.addEventListener('keydown', (event) => peakKey(picture, event));
}

export function drawPeak() {
  const { peak, other_peaks: others } = run.index;
  const section = makeSection('peak', 'Who held device memory', ' ');
  const note = section.querySelector('.note');
  const peaks = [peak, ...others].filter((p) => p?.sites?.length || p?.blocks?.all);
  if (!peaks.length) {
    note.textContent = 'The run allocated no device memory.';
    return;
  }
  const picture = new Picture({ label: '', keys: 'Up and down: places. Left and right: moments. Enter: choose the place.', height: PEAK_HEIGHT, draw: drawPeakPicture });
  const parts = { note, legend: make('div'), table: make('div') };
  followPeakPointer(picture);
  const choice = deviceChoice(peaks, (p) => holdPeak(p, picture, parts));
  if (choice) section.append(make('div', { class: 'controls' }, choice));
  section.append(picture.box, parts.legend, parts.table);
  holdPeak(peaks[0], picture, parts);
  watchChoice(() => {
    focus.x = null;
    picture.refresh();
  });
  document.addEventListener('weir-theme', () => picture.refresh());
}
