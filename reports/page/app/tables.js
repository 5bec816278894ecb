/* tables.js: transfers, allocations, waits, launches and all other calls, by place: the sums of the cube over
 * the chosen bins, for the chosen place; copies by both ends; and what was live when these bins end. Host time
 * is how long calls took, device time how long devices worked on them. */
import { cleanName, make, makeSection, makeWide } from './dom.js';
import { formatBytes, formatCount, formatSpeed, formatTime } from './format.js';
import { DIRECTIONS, MEMORIES, byPlace, chosenBins, chosenEnd, chosenRoutes, frameFile, frameFunction, isChosenSite, liveAtChosenEnd, run, siteApi, siteFrame, sitePlace, siteTitle, sumCube } from './model.js';
import { change, chosen, watchChoice } from './state.js';
import { Table } from './table.js';

/* A place that chooses itself. */
export function placeButton(site) {
  const frame = siteFrame(site);
  if (frame < 0) return siteTitle(site);
  return make('button', { type: 'button', class: 'place', title: frameFile(frame, true), click: () => change({ place: sitePlace(site) }) },
    make('bdi', { class: 'function' }, frameFunction(frame)), ' ', make('bdi', { class: 'file' }, frameFile(frame)));
}

const COLUMNS = {
  place: { key: 'place', title: 'Place', value: (row) => siteTitle(row.site), show: (_, row) => placeButton(row.site) },
  api: { key: 'api', title: 'Call', value: (row) => siteApi(row.site), show: (value) => value },
  direction: { key: 'direction', title: 'Direction', value: (row) => DIRECTIONS[row.direction] ?? '', show: (value) => value },
  memory: { key: 'memory', title: 'Memory', value: (row) => MEMORIES[row.direction] ?? '', show: (value) => value },
  kind: { key: 'kind', title: 'Kind', value: (row) => (row.class === 'wait' ? 'explicit' : 'implicit'), show: (value) => value },
  class: { key: 'class', title: 'Kind', value: (row) => row.class, show: (value) => value },
  count: { key: 'count', title: 'Calls', number: true, sum: true, value: (row) => row.count, show: formatCount },
  bytes: { key: 'bytes', title: 'Bytes', number: true, sum: true, value: (row) => row.bytes, show: formatBytes },
  host: { key: 'host', title: 'Host time', number: true, sum: true, value: (row) => row.host, show: formatTime },
  device: { key: 'device', title: 'Device time', number: true, sum: true, value: (row) => row.device, show: (value) => (value ? formatTime(value) : '–') },
  mean: { key: 'mean', title: 'Mean host time', number: true, value: (row) => row.host / row.count, show: formatTime },
  speed: { key: 'speed', title: 'Speed, device time', number: true, value: (row) => (row.device ? row.bytes / row.device : 0), show: (_, row) => formatSpeed(row.bytes, row.device) },
};

/* Which table has which classes of the cube; together all of them. The host time of implicit waits is in their
 * own calls' tables too. */
const TABLES = [
  { id: 'transfers', title: 'Transfers', classes: ['transfer'], columns: ['place', 'api', 'direction', 'count', 'bytes', 'host'], timed: ['device', 'speed'], sortBy: 'bytes', wide: true },
  { id: 'allocations', title: 'Allocations', classes: ['allocation'], columns: ['place', 'api', 'memory', 'count', 'bytes', 'host'], sortBy: 'bytes' },
  { id: 'waits', title: 'Waits', classes: ['wait', 'implicit wait'], columns: ['place', 'api', 'kind', 'count', 'host', 'mean'], sortBy: 'host' },
  { id: 'launches', title: 'Launches', classes: ['launch', 'graph'], columns: ['place', 'api', 'class', 'count', 'host'], timed: ['device'], sortBy: 'host' },
  { id: 'others', title: 'Frees, memsets, others', classes: ['free', 'memset'], columns: ['place', 'api', 'class', 'count', 'bytes', 'host'], sortBy: 'host' },
];

/* A class that no table is for, as of a later version, goes where all others are. */
function classesOf(table) {
  if (table.id !== 'others') return new Set(table.classes);
  const named = new Set(TABLES.filter((t) => t !== table).flatMap((t) => t.classes));
  return new Set(run.index.classes.filter((c) => !named.has(c)));
}

function makeTable(table) {
  const columns = [...table.columns, ...(run.index.run.device_times ? table.timed ?? [] : [])].map((key) => COLUMNS[key]);
  return new Table({ id: `table-${table.id}`, caption: `${table.title} by place`, quiet: true, columns, sortBy: table.sortBy, nothing: `No ${table.title.toLowerCase()} here.` });
}

export function drawTables() {
  const made = TABLES.map((table) => ({ table: makeTable(table), classes: classesOf(table), wide: table.wide }));
  const section = makeSection('tables', 'By place', 'Sums over the chosen span. A click on a place chooses it everywhere; on a heading, sorts.');
  section.append(make('div', { class: 'grid' }, made.map(({ table, wide }, i) => make('div', { class: wide ? 'whole' : 'half' }, make('h3', {}, TABLES[i].title), table.box))));
  const fill = () => {
    const rows = byPlace(sumCube(...chosenBins()).filter((row) => isChosenSite(row.site)));
    for (const { table, classes } of made) table.setRows(rows.filter((row) => classes.has(row.class)));
  };
  fill();
  watchChoice(fill);
}

/* ---- what was not freed, what goes from where to where ------------------------------------------ */

export function drawLeaks() {
  const section = makeSection('leaks', 'Never freed', 'Device memory');
  const [heading, note] = [section.querySelector('h2'), section.querySelector('.note')];
  const table = new Table({ id: 'table-leaks', caption: 'Blocks that were not freed, by place', sortBy: 'bytes', nothing: 'Nothing of the chosen place was live then.',
    columns: [COLUMNS.place, { ...COLUMNS.count, key: 'blocks', title: 'Blocks', value: (row) => row.blocks }, COLUMNS.bytes] });
  section.append(table.box);
  const fill = () => {
    heading.textContent = chosen.span ? 'Not freed by the end of the span' : 'Never freed';
    note.textContent = chosen.span ? `Device memory that was live ${formatTime(chosenEnd())} into the run.` : 'Device memory that was live at the end of the run.';
    table.setRows(liveAtChosenEnd().filter((row) => isChosenSite(row.site)));
  };
  fill();
  watchChoice(fill);
}

function placeTitle(place) {
  return place === 'host' || place === null ? 'host' : `device ${place}`;
}

/* Sums by (from, to), as a square of cells, darker the more bytes they have; `ends`: of the whole run, so that
 * cells stay where they are. */
function fillMatrix(table, ends, rows) {
  const sums = new Map();
  for (const r of rows) {
    const key = `${placeTitle(r.src)}>${placeTitle(r.dst)}`;
    const sum = sums.get(key) ?? { bytes: 0, count: 0 };
    sums.set(key, { bytes: sum.bytes + r.bytes, count: sum.count + r.count });
  }
  const most = Math.max(1, ...[...sums.values()].map((s) => s.bytes));
  const cell = (from, to) => {
    const sum = sums.get(`${from}>${to}`);
    const td = make('td', { class: 'number heat' }, sum ? [formatBytes(sum.bytes), make('small', {}, `${formatCount(sum.count)} ×`)] : '–');
    if (sum) td.style.setProperty('--heat', `${Math.round(4 + 32 * (sum.bytes / most))}%`);
    return td;
  };
  table.tBodies[0].replaceChildren(...ends.map((from) => make('tr', {}, make('th', { scope: 'row' }, from), ends.map((to) => cell(from, to)))));
}

export function drawMatrix() {
  const all = run.index.matrix ?? [];
  const section = makeSection('matrix-section', 'From where to where', 'Copies of the chosen span, by both ends and the kind of memory.');
  if (!all.length) {
    section.append(make('p', { class: 'empty' }, 'The run copied nothing.'));
    return;
  }
  const text = (key, title, value) => ({ key, title, value, show: (v) => v });
  const table = new Table({ id: 'table-matrix', caption: 'Copies by direction and memory kind', sortBy: 'bytes', nothing: 'No copies here.',
    columns: [text('from', 'From', (r) => `${placeTitle(r.src)}, ${cleanName(r.src_memory)}`), text('to', 'To', (r) => `${placeTitle(r.dst)}, ${cleanName(r.dst_memory)}`),
      COLUMNS.count, COLUMNS.bytes, COLUMNS.host, ...(run.index.run.device_times ? [COLUMNS.device, COLUMNS.speed] : [])] });
  const ends = [...new Set(all.flatMap((r) => [placeTitle(r.src), placeTitle(r.dst)]))].sort((a, b) => (a === 'host' ? -1 : b === 'host' ? 1 : a.localeCompare(b, 'en', { numeric: true })));
  const square = make('table', { class: 'matrix', id: 'matrix' }, make('caption', {}, 'Bytes and copies, from row to column'),
    make('thead', {}, make('tr', {}, make('th', { scope: 'col' }, 'From \\ to'), ends.map((to) => make('th', { scope: 'col', class: 'number' }, to)))), make('tbody'));
  section.append(make('div', { class: 'grid' }, make('div', { class: 'half' }, makeWide('Copies from where to where', square)), make('div', { class: 'half' }, table.box)));
  const fill = () => {
    const rows = chosenRoutes();
    fillMatrix(square, ends, rows);
    table.setRows(rows);
  };
  fill();
  watchChoice(fill);
}
