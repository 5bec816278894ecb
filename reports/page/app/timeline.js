/* timeline.js: what each stream of each device, and each host thread, did and when. It shows the chosen span;
 * zooming it chooses one. From afar a lane has the part of each bin that was busy; from near, single
 * operations, of which the page has the longest: what is left out still counts in the bins. */
import { AXIS, Picture, RIGHT, color, drawTimeAxis, fitTail, fitText, leftMargin } from './canvas.js';
import { cleanName, make, makeDetails, makeSection, makeWide } from './dom.js';
import { formatBytes, formatCount, formatCounted, formatMoment, formatPercent, formatSpeed, formatTime } from './format.js';
import { laneBins, laneOps, opAt, opsWithin } from './lanes.js';
import { frameFile, frameFunction, frameSource, nameOf, run, runEnd, shownSpan, siteApi, sitePlace, siteStack, siteTitle } from './model.js';
import { change, chosen, watchChoice } from './state.js';

const LANE = 26;
const FIRST_LANES = 24;
const MOST_LANES = 500;
const NARROWEST = 200; /* ns: a span is never zoomed narrower */

const timeline = { shown: 0, focus: { lane: 0, op: -1 }, picture: null, details: null };

function lanesOfRun() {
  return run.index.lanes;
}

function laneTitle(lane) {
  return cleanName(lane.title, 120);
}

function classColor(kind) {
  return color(`class-${run.index.classes[kind].replace(/ /g, '-')}`);
}

function viewOf(width) {
  return { ...shownSpan(), left: leftMargin(), right: width - RIGHT, top: 4, bottom: timeline.shown * LANE + 4 };
}

function xOf(at, view) {
  return view.left + ((at - view.from) / (view.to - view.from)) * (view.right - view.left);
}

function timeOf(x, view) {
  return view.from + ((x - view.left) / (view.right - view.left)) * (view.to - view.from);
}

/* ---- drawing ----------------------------------------------------------------------------------- */

/* Bars as high as the part of a bin that was busy. */
function drawLaneBins(context, lane, y, view) {
  const { bin, busy } = laneBins(lane);
  const { width_ns: width } = run.index.bins;
  context.fillStyle = color('busy');
  for (let i = 0; i < bin.length; i++) {
    const [from, to] = [bin[i] * width, (bin[i] + 1) * width];
    if (to < view.from || from > view.to) continue;
    const x = Math.max(view.left, xOf(from, view));
    const tall = Math.max(1, Math.min(1, busy[i] / width) * (LANE - 6));
    context.fillRect(x, y + LANE - 3 - tall, Math.max(0.6, Math.min(view.right, xOf(to, view)) - x), tall);
  }
}

/* Operations narrower than a pixel are drawn once a pixel. */
function drawLaneOps(context, lane, y, view) {
  const { start, duration, kind, site } = laneOps();
  const [from, to] = opsWithin(lane, view.from, view.to);
  let last = -1;
  for (let i = from; i < to; i++) {
    if (start[i] + duration[i] < view.from) continue;
    const x = Math.max(view.left, xOf(start[i], view));
    const end = Math.min(view.right, Math.max(x + 0.8, xOf(start[i] + duration[i], view)));
    if (end - x < 1 && Math.floor(x) === last) continue;
    last = end - x < 1 ? Math.floor(x) : -1;
    context.globalAlpha = chosen.place && !chosen.place.frames.has(run.index.sites.frame[site[i]]) ? 0.2 : 1;
    context.fillStyle = classColor(kind[i]);
    context.fillRect(x, y + 4, Math.max(0.8, end - x - (end - x > 3 ? 1 : 0)), LANE - 8);
    if (end - x > 60 && context.globalAlpha === 1) {
      context.fillStyle = color('on-class');
      context.fillText(fitText(context, opName(i), end - x - 9), x + 4, y + LANE / 2);
    }
    if (timeline.focus.op === i) {
      context.strokeStyle = color('ink');
      context.strokeRect(x - 1, y + 2.5, Math.max(3, end - x + 1), LANE - 5);
    }
    context.globalAlpha = 1;
  }
}

function drawLanes(context, width, height) {
  const view = viewOf(width);
  context.clearRect(0, 0, width, height);
  drawTimeAxis(context, view);
  for (let lane = 0; lane < timeline.shown; lane++) {
    const y = view.top + lane * LANE;
    context.fillStyle = color(lane === timeline.focus.lane && document.activeElement === timeline.picture.canvas ? 'ink' : 'muted');
    context.textAlign = 'right';
    context.fillText(fitTail(context, laneTitle(lanesOfRun()[lane]), view.left - 12), view.left - 8, y + LANE / 2);
    context.textAlign = 'left';
    context.strokeStyle = color('grid');
    context.strokeRect(view.left, y + LANE - 0.5, view.right - view.left, 0);
    drawLaneBins(context, lane, y, view);
    const [from, to] = opsWithin(lane, view.from, view.to);
    if (to - from <= 40 * (view.right - view.left)) drawLaneOps(context, lane, y, view);
  }
}

/* ---- an operation ------------------------------------------------------------------------------ */

function opName(i) {
  const { kind, bytes, site, name: kernel } = laneOps();
  const name = run.index.classes[kind[i]];
  if (kernel[i]) return nameOf(kernel[i]);
  return bytes[i] ? `${name} ${formatBytes(bytes[i])}` : `${name} ${siteTitle(site[i])}`;
}

function timeKind(lane) {
  return lanesOfRun()[lane].kind === 'device' ? 'device time' : 'host time';
}

function opLines(i) {
  const { lane, start, duration, kind, bytes, site, name } = laneOps();
  const moved = run.index.classes[kind[i]] === 'transfer' && bytes[i] ? `, ${formatSpeed(bytes[i], duration[i])}` : '';
  return [`${run.index.classes[kind[i]]}${name[i] ? ` ${nameOf(name[i])}` : ''}${bytes[i] ? `, ${formatBytes(bytes[i])}` : ''}`, siteTitle(site[i]),
    `${formatTime(duration[i])} ${timeKind(lane[i])}${moved}, at ${formatMoment(start[i], Math.max(1, (shownSpan().to - shownSpan().from) / 1000))}`];
}

function stackList(site) {
  return make('ol', { class: 'frames', tabindex: '0', 'aria-label': 'Stack, innermost function first' }, siteStack(site).slice(0, 60).map((frame) => {
    const source = frameSource(frame);
    return make('li', {}, make('bdi', { class: 'function' }, frameFunction(frame)), ' ', make('bdi', { class: 'file' }, frameFile(frame, true)), source ? make('code', {}, cleanName(source.trim(), 200)) : null);
  }));
}

/* Below the picture: one operation, with its stack. */
function showOp(i) {
  const { lane, site, event } = laneOps();
  timeline.focus = { lane: lane[i], op: i };
  timeline.details.replaceChildren(
    make('h3', {}, opLines(i)[0]),
    make('p', {}, `${opLines(i)[2]} · ${laneTitle(lanesOfRun()[lane[i]])}${siteApi(site[i]) ? ` · ${siteApi(site[i])}` : ''}${event[i] ? ` · event ${event[i]}` : ''}`),
    stackList(site[i]),
    make('button', { type: 'button', click: () => change({ place: sitePlace(site[i]) }) }, 'Choose this place'));
  timeline.details.hidden = false;
  timeline.picture.refresh();
}

/* ---- zoom -------------------------------------------------------------------------------------- */

/* The span becomes `factor` times as long around `at`; as long as the run, none is chosen. */
function zoomTimeline(factor, at) {
  const { from, to } = shownSpan();
  const length = Math.max(NARROWEST, (to - from) * factor);
  if (length >= runEnd()) return change({ span: null });
  const start = Math.max(0, Math.min(runEnd() - length, at - ((at - from) / (to - from)) * length));
  return change({ span: { from: start, to: start + length } });
}

function panTimeline(by) {
  const { from, to } = shownSpan();
  const start = Math.max(0, Math.min(runEnd() - (to - from), from + by));
  if (to - from < runEnd()) change({ span: { from: start, to: start + (to - from) } });
}

/* Moves the view so that the operation is in it. */
function revealOp(i) {
  const { start, duration } = laneOps();
  const { from, to } = shownSpan();
  if (start[i] >= from && start[i] + duration[i] <= to) return;
  const length = Math.max(to - from, duration[i] * 1.2);
  const begin = Math.max(0, Math.min(runEnd() - length, start[i] + duration[i] / 2 - length / 2));
  if (length < runEnd()) change({ span: { from: begin, to: begin + length } });
}

function stepOp(by) {
  const { first } = laneOps();
  const { lane, op } = timeline.focus;
  const [from, to] = opsWithin(lane, shownSpan().from, shownSpan().to);
  const next = op >= first[lane] && op < first[lane + 1] ? op + by : by > 0 ? from : to - 1;
  if (next < first[lane] || next >= first[lane + 1]) return;
  timeline.focus.op = next;
  revealOp(next);
  sayFocus();
}

function sayFocus() {
  const { picture, focus } = timeline;
  const view = viewOf(picture.width);
  picture.refresh();
  const lines = focus.op >= 0 && laneOps().lane[focus.op] === focus.lane ? opLines(focus.op) : [];
  const x = lines.length ? Math.max(view.left, Math.min(view.right, xOf(laneOps().start[focus.op], view))) : view.left;
  picture.say([laneTitle(lanesOfRun()[focus.lane]), ...lines], x, view.top + focus.lane * LANE + LANE / 2, true);
}

/* Left and right: the operation before, after; with shift: pan. Up and down: lanes. + and -: zoom. */
function timelineKey(event) {
  const { from, to } = shownSpan();
  const { focus } = timeline;
  const center = focus.op >= 0 ? Math.max(from, Math.min(to, laneOps().start[focus.op])) : (from + to) / 2;
  const actions = {
    ArrowLeft: () => (event.shiftKey ? panTimeline((from - to) / 5) : stepOp(-1)),
    ArrowRight: () => (event.shiftKey ? panTimeline((to - from) / 5) : stepOp(1)),
    ArrowUp: () => moveLane(-1), ArrowDown: () => moveLane(1),
    '+': () => zoomTimeline(0.5, center), '=': () => zoomTimeline(0.5, center), '-': () => zoomTimeline(2, center),
    Enter: () => focus.op >= 0 && showOp(focus.op),
  };
  if (!actions[event.key] || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  actions[event.key]();
}

function moveLane(by) {
  timeline.focus = { lane: Math.max(0, Math.min(timeline.shown - 1, timeline.focus.lane + by)), op: -1 };
  sayFocus();
}

/* ---- by pointer -------------------------------------------------------------------------------- */

function opUnder(event) {
  const view = viewOf(timeline.picture.width);
  const lane = Math.floor((event.offsetY - view.top) / LANE);
  if (event.offsetX < view.left || lane < 0 || lane >= timeline.shown) return { lane: -1, op: -1 };
  return { lane, op: opAt(lane, timeOf(event.offsetX, view), ((view.to - view.from) / (view.right - view.left)) * 1.5) };
}

function binLines(lane, at) {
  const { bin, busy, count } = laneBins(lane);
  const { width_ns: width } = run.index.bins;
  const i = bin.indexOf(Math.floor(at / width));
  return [laneTitle(lanesOfRun()[lane]), i < 0 ? `idle at ${formatTime(at)}` : `${formatCounted(count[i], 'operation', 'operations')} in ${formatTime(width)} at ${formatTime(at)}: busy ${formatPercent(Math.min(busy[i], width), width)}`];
}

function hover(event) {
  const { picture } = timeline;
  const { lane, op } = opUnder(event);
  picture.canvas.style.cursor = op >= 0 ? 'pointer' : 'grab';
  if (lane < 0) picture.leave();
  else picture.say(op >= 0 ? opLines(op) : binLines(lane, timeOf(event.offsetX, viewOf(picture.width))), event.offsetX, event.offsetY);
}

/* A drag moves the view; a click shows an operation; the wheel zooms with ctrl, or where it is a pinch. */
function followPointer(canvas) {
  let grabbed = null;
  canvas.addEventListener('pointerdown', (event) => {
    grabbed = { x: event.offsetX, span: shownSpan(), moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!grabbed) return hover(event);
    const view = viewOf(timeline.picture.width);
    const by = ((grabbed.x - event.offsetX) / (view.right - view.left)) * (view.to - view.from);
    grabbed.moved ||= Math.abs(event.offsetX - grabbed.x) > 3;
    if (grabbed.moved && chosen.span) panTimeline(grabbed.span.from + by - shownSpan().from);
    return undefined;
  });
  canvas.addEventListener('pointerup', (event) => {
    const { op } = opUnder(event);
    if (grabbed && !grabbed.moved && op >= 0) showOp(op);
    grabbed = null;
  });
  canvas.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const delta = event.deltaY || event.deltaX;
    zoomTimeline(delta > 0 ? 1.25 : 0.8, timeOf(event.offsetX, viewOf(timeline.picture.width)));
  }, { passive: false });
  canvas.addEventListener('dblclick', (event) => zoomTimeline(0.25, timeOf(event.offsetX, viewOf(timeline.picture.width))));
}

/* ---- the section ------------------------------------------------------------------------------- */

function leftOut() {
  const { ops } = run.index;
  const lanes = lanesOfRun().length - timeline.shown;
  const parts = [];
  if (ops.count < ops.all) parts.push(`The page has the ${formatCount(ops.count)} longest of ${formatCount(ops.all)} operations, those of ${formatTime(ops.shortest_kept_ns)} or more; the shading behind counts all.`);
  else parts.push(`All ${formatCounted(ops.all, 'operation', 'operations')}.`);
  if (lanes > 0) parts.push(`${formatCounted(lanes, 'lane', 'lanes')} more not shown.`);
  return parts.join(' ');
}

function laneTable() {
  return makeWide('Lanes of the timeline', make('table', { class: 'plain' },
    make('caption', {}, 'Lanes of the timeline, the whole run; lanes of streams by device time, lanes of threads by host time'),
    make('thead', {}, make('tr', {}, ['Lane', 'Operations', 'Busy', 'Of the run'].map((t, i) => make('th', { scope: 'col', class: i ? 'number' : null }, t)))),
    make('tbody', {}, lanesOfRun().slice(0, MOST_LANES).map((lane, n) => {
      const { busy, count } = laneBins(n);
      const sum = (c) => c.reduce((a, b) => a + b, 0);
      return make('tr', {}, make('th', { scope: 'row' }, laneTitle(lane)), [formatCount(sum(count)), `${formatTime(sum(busy))} ${timeKind(n)}`, formatPercent(sum(busy), runEnd())].map((t) => make('td', { class: 'number' }, t)));
    }))));
}

function classLegend() {
  const used = new Set(run.column(run.index.ops.class));
  return make('ul', { class: 'legend', 'aria-label': 'Kinds of operations' }, run.index.classes.filter((_, i) => used.has(i)).map((name) => make('li', {}, make('span', { class: `swatch class-${name}` }), name)),
    make('li', {}, make('span', { class: 'swatch busy' }), 'part of a bin that was busy'));
}

export function drawTimeline() {
  const section = makeSection('timeline', 'Timeline', 'Shows the chosen span. Drag moves it, double click or ctrl and wheel zoom; a click tells an operation and its stack. With the keyboard: arrows, shift and arrows, +, -, Enter.');
  const lanes = lanesOfRun();
  if (!lanes.length || !run.index.ops) {
    section.append(make('p', { class: 'empty' }, 'Nothing ran on a device, and no call took time.'));
    return;
  }
  timeline.shown = Math.min(lanes.length, FIRST_LANES);
  timeline.picture = new Picture({ label: 'Timeline of streams and threads; the table below has each lane', keys: 'Left and right: operations. Up and down: lanes. Plus and minus: zoom. With shift, left and right: earlier, later. Enter: the operation with its stack.', height: timeline.shown * LANE + 4 + AXIS, draw: drawLanes });
  const { picture } = timeline;
  const said = make('p', { class: 'status' }, leftOut());
  const button = (title, label, click) => make('button', { type: 'button', 'aria-label': label, click }, title);
  const center = () => (shownSpan().from + shownSpan().to) / 2;
  const controls = make('div', { class: 'controls' }, button('+', 'Zoom in', () => zoomTimeline(0.5, center())), button('−', 'Zoom out', () => zoomTimeline(2, center())),
    button('←', 'Earlier', () => panTimeline((shownSpan().from - shownSpan().to) / 2)), button('→', 'Later', () => panTimeline((shownSpan().to - shownSpan().from) / 2)));
  if (lanes.length > timeline.shown) {
    const more = button(`Show all ${formatCount(lanes.length)} lanes`, null, () => {
      timeline.shown = Math.min(lanes.length, MOST_LANES);
      picture.height = timeline.shown * LANE + 4 + AXIS;
      picture.canvas.focus();
      more.remove();
      said.textContent = leftOut();
      picture.refresh();
    });
    controls.append(more);
  }
  timeline.details = make('div', { class: 'operation', hidden: true, 'aria-live': 'polite' });
  picture.canvas.addEventListener('keydown', timelineKey);
  followPointer(picture.canvas);
  section.append(make('div', { class: 'controls' }, controls, said), picture.box, classLegend(), timeline.details, makeDetails('The lanes as a table', laneTable));
  picture.refresh();
  watchChoice(() => picture.refresh());
  document.addEventListener('weir-theme', () => picture.refresh());
}
