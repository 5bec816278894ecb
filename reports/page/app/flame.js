/* flame.js: flame graphs: where the program stood when it allocated, waited or copied. The outermost function
 * is at the top, what it called below it, as wide as its part of the whole. A click makes one function the
 * whole width; a chosen place leaves the stacks that pass through it.
 *
 * A node: {frame, value, self, children: Map by frame, depth, parent}. A frame below 0 is no frame of the
 * program: -1 is the whole, -2 - n the CUDA function whose name is string n. */
import { Picture, color, fitText } from './canvas.js';
import { make, makeDetails, makeSection, makeWide } from './dom.js';
import { formatBytes, formatCount, formatPercent, formatTime } from './format.js';
import { chosenBins, frameFile, frameFunction, frameTitle, nameOf, run, sumCube } from './model.js';
import { chosen, watchChoice } from './state.js';

const FLAME_ROW = 20;
const DEEPEST_FLAME = 100;

const ofDevice = (row) => row.class === 'allocation' && row.direction === 0;
const ofWait = (row) => row.class === 'wait' || row.class === 'implicit wait';
const ofTransfer = (row) => row.class === 'transfer';

/* What a flame graph can be of: which rows of the cube count, by what, and how its numbers are written. That of
 * the peak is of the moment of the peak, whatever the chosen span. */
const WEIGHTS = [
  { key: 'peak_bytes', title: 'Peak, bytes', format: formatBytes },
  { key: 'alloc_bytes', title: 'Allocated, bytes', format: formatBytes, takes: ofDevice, of: (row) => row.bytes },
  { key: 'alloc_count', title: 'Allocations, number', format: formatCount, takes: ofDevice, of: (row) => row.count },
  { key: 'wait_ns', title: 'Waits, host time', format: formatTime, takes: ofWait, of: (row) => row.host },
  { key: 'transfer_bytes', title: 'Transfers, bytes', format: formatBytes, takes: ofTransfer, of: (row) => row.bytes },
  { key: 'transfer_ns', title: 'Transfers, host time', format: formatTime, takes: ofTransfer, of: (row) => row.host },
  { key: 'transfer_device_ns', title: 'Transfers, device time', format: formatTime, takes: ofTransfer, of: (row) => row.device, timed: true },
];

const flame = { weight: WEIGHTS[0], root: null, top: null, rows: [], focus: null, search: '', picture: null, said: null };

/* Those that the run has: without device times, none of these. */
function weightsOfRun() {
  return WEIGHTS.filter((weight) => !weight.timed || run.index.run.device_times);
}

/* ---- the tree ---------------------------------------------------------------------------------- */

function addStack(root, frames, value) {
  let node = root;
  node.value += value;
  for (let i = frames.length - 1; i >= 0 && node.depth < DEEPEST_FLAME; i--) {
    let child = node.children.get(frames[i]);
    if (!child) {
      child = { frame: frames[i], value: 0, self: 0, children: new Map(), depth: node.depth + 1, parent: node };
      node.children.set(frames[i], child);
    }
    child.value += value;
    node = child;
  }
  node.self += value;
}

function passesThrough(frames, place) {
  return !place || frames.some((f) => place.frames.has(f));
}

/* A site's stack, with the function called as its innermost where that is no frame of its own. */
function stackOfSite(site) {
  const { sites, stacks, frames } = run.index;
  const own = stacks[sites.stack[site]] ?? [];
  return own.length && frames.function[own[0]] === sites.api[site] ? own : [-2 - sites.api[site], ...own];
}

/* The stacks with their values, those that pass through a place. */
function flameStacks(weight, place) {
  const result = [];
  const take = (frames, value) => value > 0 && passesThrough(frames, place) && result.push({ frames, value });
  if (weight.takes) {
    for (const row of sumCube(...chosenBins())) if (weight.takes(row)) take(stackOfSite(row.site), weight.of(row));
  } else if (run.index.flames) {
    const stack = run.column(run.index.flames.stack);
    run.column(run.index.flames[weight.key]).forEach((value, i) => take(run.index.stacks[stack[i]] ?? [], value));
  }
  return result;
}

function makeTree(weight) {
  const root = { frame: -1, value: 0, self: 0, children: new Map(), depth: 0, parent: null };
  for (const { frames, value } of flameStacks(weight, chosen.place)) addStack(root, frames, value);
  return root;
}

function titleOfFrame(frame) {
  return frame >= 0 ? frameTitle(frame) : nameOf(-2 - frame);
}

function nodeTitle(node) {
  return node.frame === -1 ? 'all' : titleOfFrame(node.frame);
}

/* ---- layout ------------------------------------------------------------------------------------ */

/* Rows of {node, x, width} in pixels: what is above the top node, then what is below it. */
function layOut(width) {
  const rows = [];
  const above = [];
  for (let node = flame.top.parent; node; node = node.parent) above.unshift(node);
  for (const node of above) rows.push([{ node, x: 0, width, above: true }]);
  let row = [{ node: flame.top, x: 0, width }];
  while (row.length) {
    rows.push(row);
    const next = [];
    for (const { node, x, width: own } of row) {
      let at = x;
      const children = [...node.children.values()].sort((a, b) => b.value - a.value || a.frame - b.frame);
      for (const child of children) {
        const part = (child.value / node.value) * own;
        if (part >= 0.4) next.push({ node: child, x: at, width: part });
        at += part;
      }
    }
    row = next;
  }
  return rows;
}

function isFound(node) {
  return flame.search !== '' && node.frame !== -1 && nodeTitle(node).toLowerCase().includes(flame.search);
}

/* CUDA's own functions, functions with a file, functions without: three tints, varied by name. */
function nodeColor(node) {
  if (node.frame === -1) return color('flame-none');
  if (isFound(node)) return color('flame-found');
  const name = node.frame < 0 ? nameOf(-2 - node.frame) : frameFunction(node.frame);
  let hash = 0;
  for (let i = 0; i < Math.min(name.length, 64); i++) hash = (hash * 31 + name.charCodeAt(i)) % 997;
  if (/^(__)?cu[A-Z]|^(__)?cuda[A-Z]/.test(name)) return color(`flame-cuda${hash % 2}`);
  return node.frame >= 0 && frameFile(node.frame) ? color(`flame${hash % 4}`) : color('flame-none');
}

function drawFlamePicture(context, width, height) {
  context.clearRect(0, 0, width, height);
  flame.rows.forEach((row, depth) => {
    for (const { node, x, width: own, above } of row) {
      context.globalAlpha = above ? 0.7 : 1;
      context.fillStyle = nodeColor(node);
      context.fillRect(x, depth * FLAME_ROW, Math.max(0.5, own - 1), FLAME_ROW - 1);
      context.globalAlpha = 1;
      if (node === flame.focus) {
        context.strokeStyle = color('accent');
        context.lineWidth = 2;
        context.strokeRect(x + 1, depth * FLAME_ROW + 1, Math.max(1, own - 3), FLAME_ROW - 3);
        context.lineWidth = 1;
      }
      if (own < 24) continue;
      context.fillStyle = color(isFound(node) ? 'flame-found-ink' : 'ink');
      context.fillText(fitText(context, nodeTitle(node), own - 9), x + 4, depth * FLAME_ROW + FLAME_ROW / 2);
    }
  });
}

function redrawFlame() {
  const { picture } = flame;
  flame.rows = layOut(picture.box.clientWidth || picture.width);
  picture.height = Math.max(1, flame.rows.length) * FLAME_ROW + 2;
  picture.refresh();
}

/* ---- choices ----------------------------------------------------------------------------------- */

function sumFound(node) {
  if (isFound(node)) return node.value;
  let sum = 0;
  for (const child of node.children.values()) sum += sumFound(child);
  return sum;
}

function sayFlame() {
  const { weight, root, top } = flame;
  const when = !weight.takes ? 'at the peak of the run' : chosen.span ? 'in the chosen span' : 'the whole run';
  const parts = [`${weight.title}: ${weight.format(root.value)}${chosen.place ? ' through the chosen place' : ''}, ${when}`];
  if (top !== root) parts.push(`shown: ${nodeTitle(top)}, ${weight.format(top.value)}`);
  if (flame.search) parts.push(`found: ${weight.format(sumFound(root))} (${formatPercent(sumFound(root), root.value)})`);
  flame.said.textContent = root.value ? parts.join(' · ') : `${weight.title}: nothing${chosen.place ? ' through the chosen place' : ''}, ${when}`;
}

function rebuildFlame() {
  flame.root = makeTree(flame.weight);
  flame.top = flame.root;
  flame.focus = null;
  flame.table.replaceChildren();
  flame.details.open = false;
  redrawFlame();
  sayFlame();
}

function zoomFlame(node) {
  flame.top = node;
  flame.focus = node === flame.root ? null : node;
  redrawFlame();
  sayFlame();
}

function nodeLines(node) {
  const { weight, root } = flame;
  return [nodeTitle(node), node.frame >= 0 && frameFile(node.frame, true) !== frameFile(node.frame) ? frameFile(node.frame, true) : '',
    `${weight.format(node.value)}, ${formatPercent(node.value, root.value)} of all${node.self && node.self !== node.value ? `, ${weight.format(node.self)} in itself` : ''}`];
}

function boxAt(x, y) {
  return flame.rows[Math.floor(y / FLAME_ROW)]?.find((box) => x >= box.x && x < box.x + box.width) ?? null;
}

function boxOf(node) {
  for (let depth = 0; depth < flame.rows.length; depth++) {
    const box = flame.rows[depth].find((b) => b.node === node);
    if (box) return { ...box, y: depth * FLAME_ROW };
  }
  return null;
}

/* Arrows go to the parent, the widest child, the neighbours; Enter zooms; Backspace goes back out. */
function flameKey(event) {
  const from = flame.focus ?? flame.top;
  const box = boxOf(from);
  const row = box ? flame.rows[box.y / FLAME_ROW] : [];
  const place = row.findIndex((b) => b.node === from);
  const next = { ArrowUp: from.parent, ArrowDown: flame.rows[box ? box.y / FLAME_ROW + 1 : 0]?.find((b) => b.node.parent === from)?.node, ArrowLeft: row[place - 1]?.node, ArrowRight: row[place + 1]?.node }[event.key];
  if (event.key === 'Enter') zoomFlame(from);
  else if (event.key === 'Backspace') zoomFlame(flame.top.parent ?? flame.top);
  else if (event.key.startsWith('Arrow')) flame.focus = next ?? from;
  else return;
  event.preventDefault();
  flame.picture.refresh();
  const at = boxOf(flame.focus ?? from);
  if (at) flame.picture.say(nodeLines(at.node), at.x + Math.min(at.width / 2, 60), at.y, true);
}

/* ---- the section ------------------------------------------------------------------------------- */

function flameTable() {
  const { weight } = flame;
  const stacks = flameStacks(weight, chosen.place).sort((a, b) => b.value - a.value).slice(0, 25);
  if (!stacks.length) flame.table.replaceChildren(make('p', { class: 'empty' }, `${weight.title}: no stacks here.`));
  else flame.table.replaceChildren(make('table', { class: 'plain' },
    make('caption', {}, `${weight.title}: the first ${stacks.length} stacks, innermost function first`),
    make('thead', {}, make('tr', {}, make('th', { scope: 'col' }, 'Stack'), make('th', { scope: 'col', class: 'number' }, weight.title))),
    make('tbody', {}, stacks.map(({ frames, value }) => make('tr', {}, make('th', { scope: 'row', class: 'stack' }, frames.slice(0, 40).map(titleOfFrame).join(' ← ')), make('td', { class: 'number' }, weight.format(value)))))));
  return flame.table;
}

function weightChoice() {
  return make('fieldset', { class: 'choice' }, make('legend', { class: 'unseen' }, 'Flame graph of'), weightsOfRun().map((weight) => {
    const button = make('input', { type: 'radio', name: 'flame-weight', value: weight.key, checked: weight === flame.weight, change: () => {
      flame.weight = weight;
      rebuildFlame();
    } });
    return make('label', {}, button, make('span', {}, weight.title));
  }));
}

/* Shows the graph of `key`, as if it had been chosen. */
export function showFlame(key) {
  const button = document.querySelector(`input[name=flame-weight][value=${key}]`);
  if (!button) return;
  button.checked = true;
  flame.weight = WEIGHTS.find((w) => w.key === key);
  rebuildFlame();
}

/* The graph of which a place is the largest part; of two alike, one of bytes or of time. */
export function bestFlame(place, bytesFirst) {
  const sum = (stacks) => stacks.reduce((total, { value }) => total + value, 0);
  const part = (weight) => {
    const own = sum(flameStacks(weight, place));
    return own && own / sum(flameStacks(weight, null)) + (weight.key.endsWith(bytesFirst ? 'bytes' : 'ns') ? 0.1 : 0);
  };
  return weightsOfRun().map((w) => [w.key, part(w)]).sort((a, b) => b[1] - a[1])[0][0];
}

export function drawFlame() {
  const section = makeSection('flame', 'Stacks', 'Outermost function at the top. Click: make it the whole width. With the keyboard: arrows, Enter, Backspace.');
  flame.said = make('p', { class: 'status', 'aria-live': 'polite' });
  flame.table = makeWide('Stacks as a table');
  flame.details = makeDetails('The stacks as a table', flameTable);
  flame.details.addEventListener('toggle', () => flame.details.open && flameTable());
  flame.weight = weightsOfRun().find((weight) => flameStacks(weight, null).length) ?? WEIGHTS[0];
  const search = make('input', { type: 'search', placeholder: 'Search functions', 'aria-label': 'Search functions in the flame graph', input: () => {
    flame.search = search.value.trim().toLowerCase();
    flame.picture.refresh();
    sayFlame();
  } });
  const reset = make('button', { type: 'button', click: () => zoomFlame(flame.root) }, 'Whole graph');
  flame.picture = new Picture({ label: 'Flame graph; the table below has its stacks', keys: 'Up, down, left and right: functions. Enter: make it the whole width. Backspace: back out.', height: FLAME_ROW, draw: drawFlamePicture });
  const { canvas } = flame.picture;
  canvas.addEventListener('pointermove', (event) => {
    const box = boxAt(event.offsetX, event.offsetY);
    canvas.style.cursor = box ? 'pointer' : 'default';
    if (box) flame.picture.say(nodeLines(box.node), event.offsetX, event.offsetY);
    else flame.picture.leave();
  });
  canvas.addEventListener('click', (event) => {
    const box = boxAt(event.offsetX, event.offsetY);
    if (box) zoomFlame(box.node);
  });
  canvas.addEventListener('keydown', flameKey);
  section.append(make('div', { class: 'controls' }, weightChoice(), search, reset), flame.said, flame.picture.box, flame.details);
  rebuildFlame();
  new ResizeObserver(() => flame.picture.box.clientWidth !== flame.picture.width && redrawFlame()).observe(flame.picture.box);
  let { place, span } = chosen;
  watchChoice(() => {
    if (place === chosen.place && (span === chosen.span || !flame.weight.takes)) return;
    ({ place, span } = chosen);
    rebuildFlame();
  });
  document.addEventListener('weir-theme', () => flame.picture.refresh());
}
