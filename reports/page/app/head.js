/* head.js: the top of the page: what ran, when and on what, what Weir could not see, and the sums of the
 * whole run. A sum of time says whose time it is: the host's (how long calls took) or the device's. */
import { cleanName, make, makeDetails, makeWide } from './dom.js';
import { formatBytes, formatCount, formatCounted, formatPercent, formatTime } from './format.js';
import { run, runEnd } from './model.js';

const FIRST_NOTES = 4;

function fact(title, value, detail) {
  return make('div', { class: 'fact' }, make('dt', {}, title), make('dd', {}, value, detail ? make('small', {}, detail) : null));
}

function deviceTitle(device) {
  const capacity = device.capacity_bytes ? `, ${formatBytes(device.capacity_bytes)}` : '';
  return `${device.ordinal}: ${cleanName(device.name || 'unnamed', 80)}${capacity}`;
}

function runFacts() {
  const { run: about } = run.index;
  const started = about.start_ms ? new Date(about.start_ms).toISOString().replace('T', ' ').slice(0, 19) : 'unknown';
  const processes = about.processes ?? [];
  return make('p', { class: 'about' }, [
    formatTime(about.duration_ns), formatCounted(processes.length, 'process', 'processes'), `started ${started} UTC`,
    about.mode ? `mode ${cleanName(about.mode, 40)}` : null, about.weir ? `weir ${cleanName(about.weir, 40)}` : null,
  ].filter(Boolean).join(' · '));
}

/* What is worth a place at the top: [title, value, detail], those with nothing to say left out. */
function totalFacts(t) {
  const n = (key) => Number(t[key] ?? 0);
  const copies = (d) => (n(`${d}_calls`) ? [formatBytes(n(`${d}_bytes`)), formatCounted(n(`${d}_calls`), 'copy', 'copies')] : null);
  const waited = n('sync_explicit_ns') + n('sync_implicit_ns');
  const waits = n('sync_explicit_calls') + n('sync_implicit_calls');
  return [
    ['Device memory, peak', ...(n('alloc_calls') ? [formatBytes(n('peak_bytes')), `at ${formatTime(n('peak_at_ns'))}`] : [])],
    ['Allocated in all', ...(n('alloc_calls') ? [formatBytes(n('alloc_bytes')), formatCounted(n('alloc_calls'), 'allocation', 'allocations')] : [])],
    ['Never freed', ...(n('live_at_exit_blocks') ? [formatBytes(n('live_at_exit_bytes')), formatCounted(n('live_at_exit_blocks'), 'block', 'blocks')] : [])],
    ['Page-locked, peak', ...(n('pinned_peak_bytes') ? [formatBytes(n('pinned_peak_bytes')), formatCounted(n('pinned_alloc_calls'), 'allocation', 'allocations')] : [])],
    ['Host → device', ...(copies('h2d') ?? [])],
    ['Device → host', ...(copies('d2h') ?? [])],
    ['Device → device', ...(copies('d2d') ?? [])],
    ['Peer → peer', ...(copies('p2p') ?? [])],
    ['Waits, host time', ...(waits ? [formatTime(waited), `${formatCount(waits)} waits, ${formatPercent(waited, n('thread_time_ns') || runEnd())} of the threads' time`] : [])],
    ['Kernel launches', ...(n('launches') ? [formatCount(n('launches')), '']  : [])],
    ['Failed calls', ...(n('failed_calls') ? [formatCount(n('failed_calls')), ''] : [])],
    ['Events lost', ...(n('dropped') ? [formatCount(n('dropped')), ''] : [])],
  ].filter(([, value]) => value !== undefined);
}

function totalText(key, value) {
  if (value === null) return '–';
  if (typeof value !== 'number') return cleanName(value);
  if (key.endsWith('_bytes')) return formatBytes(value);
  if (key.endsWith('_ns')) return formatTime(value);
  return formatCount(value);
}

function allTotals() {
  const rows = Object.entries(run.index.totals).map(([key, value]) => make('tr', {},
    make('th', { scope: 'row' }, make('code', {}, cleanName(key))), make('td', { class: 'number' }, totalText(key, value))));
  return makeWide('All totals', make('table', { class: 'plain' },
    make('caption', {}, 'All totals of the run, named as in weir report --format json'),
    make('thead', {}, make('tr', {}, make('th', { scope: 'col' }, 'Name'), make('th', { scope: 'col', class: 'number' }, 'Value'))),
    make('tbody', {}, rows)));
}

/* The names of the source files that the page has lines of. */
function quotedFiles() {
  const { sources, frames, strings, findings } = run.index;
  const names = (sources ?? []).map((s) => strings[frames.file[s.frame]]);
  for (const finding of findings?.findings ?? []) names.push(...(finding.sites ?? []).filter((site) => site.source).map((site) => site.file));
  return [...new Set(names)].map((name) => cleanName(name, 200)).sort();
}

function runNotes() {
  const { run: about } = run.index;
  const notes = [...(about.notes ?? [])];
  if (!about.finished) notes.unshift('The run has not ended, or its end was not seen: this is what is known of it.');
  if (about.host_times_only_note) notes.push(about.host_times_only_note);
  else if (!about.device_times) notes.push('All times are host times: the run was not asked for device times (weir run --device-times=copies).');
  const files = quotedFiles();
  if (files.length) notes.push(`Lines of these source files are quoted here: ${files.join(', ')}.`);
  const list = (some, title) => make('ul', { 'aria-label': title }, some.map((note) => make('li', {}, cleanName(note, 2000))));
  const [first, more] = [notes.slice(0, FIRST_NOTES), notes.slice(FIRST_NOTES)];
  return notes.length ? make('div', { class: 'notes' }, list(first, 'Notes'), more.length ? makeDetails(`${formatCounted(more.length, 'note', 'notes')} more`, () => list(more, 'Further notes')) : null) : null;
}

export function drawHead() {
  const { run: about, totals } = run.index;
  const command = cleanName(about.command || 'unknown command', 600);
  document.title = `${cleanName(command, 60)}: weir report`;
  document.getElementById('command').textContent = command;
  document.getElementById('about').append(runFacts(),
    make('p', { class: 'about' }, about.devices.length ? `devices ${about.devices.map(deviceTitle).join(' · ')}` : 'no device'));
  const notes = runNotes();
  if (notes) document.getElementById('about').append(notes);
  document.getElementById('totals').append(make('h2', { class: 'unseen' }, 'Totals of the run'),
    make('dl', { class: 'facts' }, totalFacts(totals).map((f) => fact(...f))), makeDetails('All totals', allTotals));
}
