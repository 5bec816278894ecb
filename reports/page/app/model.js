/* model.js: the run, as the page holds it: an index (JSON) and columns (numbers).
 *
 * A frame is a function with a file and line; a stack is frames, innermost first; a site is a stack and the
 * CUDA function called there; its frame is the innermost in the program: the place, by which tables group. The
 * cube has the sums of every (bin of time, site, class, direction): all tables, and flame graphs but that of
 * the peak, are made of it. Class "implicit wait" is laid over others: its time is in theirs too. */
import { cleanName } from './dom.js';
import { columnReader, unpackColumns } from './columns.js';
import { chosen } from './state.js';

/* Of transfers; allocations have the memory that they are of in the same column of the cube. */
export const DIRECTIONS = ['', 'host → device', 'device → host', 'device → device', 'peer → peer', 'host → host', 'other'];
export const MEMORIES = { 0: 'device', 7: 'page-locked host', 8: 'imported', 9: 'registered host' };

export const run = {
  index: null,  /* the parsed JSON */
  column: null, /* column(n): its numbers */
};

/* What a page has none of, as of a run without memory or copies. */
const ABSENT = {
  strings: [], frames: { function: [], file: [], line: [] }, stacks: [], sites: { stack: [], frame: [], api: [] }, sources: [], classes: [],
  memory: [], peak: null, other_peaks: [], cube: null, changes: null, lanes: [], ops: null, lane_bins: null, flames: null, matrix: [], findings: null, columns: [],
};

export function readIndex(text) {
  run.index = { ...ABSENT, ...JSON.parse(text) };
  if (!String(run.index.schema).startsWith('weir-page/1')) throw new Error(`this page's data is of another format: ${run.index.schema}`);
}

export async function readColumns(text) {
  const list = run.index.columns;
  const size = list.reduce((most, c) => Math.max(most, c.offset + c.bytes), 0);
  run.column = columnReader(list, await unpackColumns(text, size));
}

export function nameOf(string) {
  return string < 0 || string === null || string === undefined ? '' : cleanName(run.index.strings[string] ?? '');
}

/* ---- places ------------------------------------------------------------------------------------ */

/* "train.cu:222"; the whole path with `whole`. */
export function frameFile(frame, whole = false) {
  const { file, line } = run.index.frames;
  if (!(file[frame] >= 0)) return '';
  const path = nameOf(file[frame]);
  return `${whole ? path : path.slice(path.lastIndexOf('/') + 1)}${line[frame] ? `:${line[frame]}` : ''}`;
}

export function frameFunction(frame) {
  return nameOf(run.index.frames.function[frame]) || 'unknown function';
}

export function frameTitle(frame) {
  const file = frameFile(frame);
  return file ? `${frameFunction(frame)}  ${file}` : frameFunction(frame);
}

export function siteFrame(site) {
  return run.index.sites.frame[site] ?? -1;
}

export function siteApi(site) {
  return nameOf(run.index.sites.api[site]);
}

export function siteTitle(site) {
  const frame = siteFrame(site);
  return frame >= 0 ? frameTitle(frame) : siteApi(site) || 'unknown place';
}

export function siteStack(site) {
  return run.index.stacks[run.index.sites.stack[site]] ?? [];
}

/* Sites are chosen by the line that calls: by their frame. */
export function sitePlace(site) {
  return { title: siteTitle(site), frames: new Set([siteFrame(site)]) };
}

export function isChosenSite(site) {
  return !chosen.place || chosen.place.frames.has(siteFrame(site));
}

let sourceOf = null;

/* The line of source of a frame, where the exporter had it at hand; else null. */
export function frameSource(frame) {
  sourceOf ??= new Map((run.index.sources ?? []).map((s) => [s.frame, s.text]));
  return sourceOf.get(frame) ?? null;
}

/* The frames that a finding's site {function, file, line} means: no path, only what it says itself. */
export function framesNamed({ function: name, file, line }) {
  const { frames, strings } = run.index;
  const known = String(name).replace(/ \((changed since|removed)\)$/, '');
  const found = [];
  for (let f = 0; f < frames.function.length; f++) {
    if (strings[frames.function[f]] !== known || (line ?? 0) !== (frames.line[f] ?? 0)) continue;
    const path = frames.file[f] >= 0 ? strings[frames.file[f]] : null;
    if ((path ?? null) === (file ?? null) || (path && file && (path.endsWith(`/${file}`) || file.endsWith(`/${path}`)))) found.push(f);
  }
  return found;
}

/* ---- time -------------------------------------------------------------------------------------- */

export function runEnd() {
  return Math.max(run.index.run.duration_ns, 1);
}

export function shownSpan() {
  return chosen.span ?? { from: 0, to: runEnd() };
}

/* The bins that tables are summed over: [first, last). */
export function chosenBins() {
  const { count, width_ns: width } = run.index.bins;
  if (!chosen.span) return [0, count];
  const first = Math.min(count - 1, Math.max(0, Math.floor(chosen.span.from / width)));
  return [first, Math.min(count, Math.max(first + 1, Math.ceil(chosen.span.to / width - 1e-9)))];
}

/* The first i with sorted[i] >= value, of [low, high). */
export function lowerBound(sorted, value, low = 0, high = sorted.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* ---- the cube ---------------------------------------------------------------------------------- */

const groups = new Map();

/* Which rows of the cube add up to one: those of a site, class and direction; `routes`: and route, of copies. */
function cubeGroups(routes) {
  if (groups.has(routes)) return groups.get(routes);
  const { cube } = run.index;
  if (!cube) return { list: [], of: [] };
  const [site, kind, direction, route] = [cube.site, cube.class, cube.direction, cube.route].map(run.column);
  const numbers = new Map();
  const list = [];
  const of = new Uint32Array(site.length);
  for (let i = 0; i < site.length; i++) {
    const from = routes ? route[i] : 0;
    const key = ((from * run.index.sites.stack.length + site[i]) * 64 + kind[i]) * 16 + direction[i];
    let n = numbers.get(key);
    if (n === undefined) {
      n = list.length;
      numbers.set(key, n);
      list.push({ site: site[i], class: run.index.classes[kind[i]], direction: direction[i], route: from });
    }
    of[i] = n;
  }
  groups.set(routes, { list, of });
  return groups.get(routes);
}

/* Rows {site, class, direction, route, count, bytes, host, device} over bins [first, last), all sites. */
export function sumCube(first, last, routes = false) {
  const { list, of } = cubeGroups(routes);
  const { cube } = run.index;
  if (!cube) return [];
  const bin = run.column(cube.bin);
  const [count, bytes, host, device] = [cube.count, cube.bytes, cube.host_ns, cube.device_ns].map(run.column);
  const sums = list.map(() => [0, 0, 0, 0]);
  const end = lowerBound(bin, last);
  for (let i = lowerBound(bin, first); i < end; i++) {
    const sum = sums[of[i]];
    sum[0] += count[i];
    sum[1] += bytes[i];
    sum[2] += host[i];
    sum[3] += device[i];
  }
  return list.map((group, n) => ({ ...group, count: sums[n][0], bytes: sums[n][1], host: sums[n][2], device: sums[n][3] }))
    .filter((row) => row.count > 0);
}

/* Copies by both ends and kinds of memory: rows of the matrix, with sums of the chosen bins and place. */
export function chosenRoutes() {
  const sums = new Map();
  for (const row of sumCube(...chosenBins(), true)) {
    if (!row.route || !isChosenSite(row.site)) continue;
    const sum = sums.get(row.route);
    if (!sum) sums.set(row.route, { ...run.index.matrix[row.route - 1], count: row.count, bytes: row.bytes, host: row.host, device: row.device });
    else for (const number of ['count', 'bytes', 'host', 'device']) sum[number] += row[number];
  }
  return [...sums.values()];
}

/* When the chosen bins end, as far as bins of what was allocated and freed tell moments apart. */
export function chosenEnd() {
  const width = run.index.changes?.bins.width_ns ?? 1;
  return Math.min(runEnd(), Math.ceil((chosenBins()[1] * run.index.bins.width_ns) / width) * width);
}

/* Device memory that was live then: [{site, blocks, bytes}], a row a place. */
export function liveAtChosenEnd() {
  const { changes, classes } = run.index;
  if (!changes) return [];
  const [bin, site, kind, count, bytes] = [changes.bin, changes.site, changes.class, changes.count, changes.bytes].map(run.column);
  const last = chosen.span ? Math.ceil((chosenBins()[1] * run.index.bins.width_ns) / changes.bins.width_ns) : changes.bins.count;
  const freed = classes.indexOf('free');
  const rows = new Map();
  const end = lowerBound(bin, last);
  for (let i = 0; i < end; i++) {
    const row = rows.get(site[i]) ?? { site: site[i], blocks: 0, bytes: 0 };
    const sign = kind[i] === freed ? -1 : 1;
    row.blocks += sign * count[i];
    row.bytes += sign * bytes[i];
    rows.set(site[i], row);
  }
  return [...rows.values()].filter((row) => row.blocks > 0);
}

/* The same rows, those of one place, function called, class and direction as one. */
export function byPlace(rows) {
  const { frame, api } = run.index.sites;
  const merged = new Map();
  for (const row of rows) {
    const key = `${frame[row.site]} ${api[row.site]} ${row.direction} ${row.class}`;
    const sum = merged.get(key);
    if (!sum) merged.set(key, { ...row });
    else for (const number of ['count', 'bytes', 'host', 'device']) sum[number] += row[number];
  }
  return [...merged.values()];
}
