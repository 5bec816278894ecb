/* findings.js: what the run wastes, first what saves most. Each finding names its places, with their lines of
 * source where they are at hand, and leads to their stacks: a click chooses these places. */
import { cleanName, make, makeSection } from './dom.js';
import { formatBytes, formatCount, formatPercent, formatTime } from './format.js';
import { framesNamed, frameSource, run, runEnd } from './model.js';

const FIRST_FINDINGS = 6;

function siteText({ function: name, file, line }) {
  const path = file ? `${cleanName(file)}${line ? `:${line}` : ''}` : '';
  return { name: cleanName(name || 'unknown function'), path };
}

/* What calls the site's function: the place that has most of the cost, or those with most. */
function callersOf({ called_from: callers, more_callers: more }) {
  if (!callers?.length) return null;
  const words = callers.map((caller) => {
    const { name, path } = siteText(caller);
    return `${name} ${path}${callers.length > 1 || more ? ` (${Math.round(caller.share * 100)} %)` : ''}`;
  });
  return make('bdi', { class: 'file' }, ` ← ${words.join(', ')}`);
}

function siteLines(site) {
  const { name, path } = siteText(site);
  const source = framesNamed(site).map(frameSource).find((text) => text !== null);
  return make('li', {},
    make('bdi', { class: 'function' }, name), ' ', make('bdi', { class: 'file' }, path), callersOf(site),
    source === undefined ? null : make('pre', {}, make('span', { class: 'line-number', 'aria-hidden': 'true' }, `${site.line ?? ''} `),
      make('code', {}, cleanName(source.trim(), 400))));
}

function savingText(finding) {
  const parts = [];
  const interval = Number.isFinite(finding.low_ns) && Number.isFinite(finding.high_ns)
    ? `${formatTime(finding.low_ns)} to ${formatTime(finding.high_ns)}, ` : '';
  const most = finding.at_most_ns ? ` and up to ${formatTime(finding.at_most_ns)}` : '';
  if (finding.saving_ns) parts.push(`${formatTime(finding.saving_ns)} (${interval}${formatPercent(finding.saving_ns, runEnd())} of the run)${most}`);
  if (finding.saving_bytes) parts.push(formatBytes(finding.saving_bytes));
  return parts.length ? `saves ${most ? 'at least' : 'up to'} ${parts.join(' and ')}` : 'saves no time by itself';
}

function factsOf(finding, number) {
  const parts = [savingText(finding)];
  if (number > 1 && finding.added_ns < finding.saving_ns * 0.95)
    parts.push(`${formatTime(finding.added_ns)} of it once those above are done`);
  parts.push(finding.count === 1 ? 'once' : `${formatCount(finding.count)} times`);
  if (finding.device !== null && finding.device !== undefined) parts.push(`device ${finding.device}`);
  if (finding.range) parts.push(`in range ${cleanName(finding.range, 120)}`);
  const kernels = (finding.kernel_names ?? []).map((name) => cleanName(name, 120));
  if (kernels.length) parts.push(`kernel${kernels.length > 1 ? 's' : ''} ${kernels.join(', ')}${finding.more_kernels ? ` and ${finding.more_kernels} more` : ''}`);
  return parts.join(' · ');
}

const CERTAINTIES = ['certain', 'likely', 'possible'];

/* What is about the same calls of the same line. */
function alsoLine(finding) {
  return make('p', { class: 'also' }, `also: ${cleanName(finding.title, 300)} (${finding.certainty}) · ${savingText(finding)}. ${cleanName(finding.fix ?? '', 1000)}`);
}

function findingCard(finding, number, under, follow) {
  const certainty = CERTAINTIES.includes(finding.certainty) ? finding.certainty : 'possible';
  const sites = finding.sites ?? [];
  const frames = sites.flatMap(framesNamed);
  const title = cleanName(finding.title, 300);
  const first = sites.length ? siteText(sites[0]) : null;
  const place = { title: first ? `${first.name}  ${first.path.slice(first.path.lastIndexOf('/') + 1)}${sites.length > 1 ? ` and ${sites.length - 1} more` : ''}` : title, frames: new Set(frames) };
  return make('li', { class: 'finding' },
    make('div', { class: 'finding-head' },
      make('h3', {}, `${number}. ${title}`),
      make('span', { class: `chip ${certainty}` }, certainty)),
    make('p', { class: 'saving' }, factsOf(finding, number)),
    make('ul', { class: 'sites' }, sites.map(siteLines)),
    make('p', { class: 'fix' }, cleanName(finding.fix ?? '', 1000)),
    under.map(alsoLine),
    frames.length ? make('button', { type: 'button', class: 'follow', click: () => follow(place, finding), 'aria-label': `Show the stacks of finding ${number}` }, 'Show its stacks') : null);
}

/* follow(place, finding) is called when the reader asks for a finding's stacks. */
export function drawFindings(follow) {
  const section = makeSection('findings', 'Findings');
  const note = section.querySelector('.note');
  note.hidden = false;
  const findings = run.index.findings?.findings ?? null;
  if (!findings?.length) {
    note.textContent = findings ? 'No rule found a waste that is worth a line.' : 'This page was made without findings.';
    return;
  }
  note.textContent = 'What is worth mending first. A saving is what the host or a device could have done meanwhile, never more.';
  const leads = findings.filter((f) => !f.under);
  const list = make('ol', { class: 'findings' }, leads.map((f, i) => findingCard(f, i + 1, findings.filter((other) => other.under && findings[other.under - 1] === f), follow)));
  const rest = [...list.children].slice(FIRST_FINDINGS);
  section.append(list);
  if (!rest.length) return;
  for (const card of rest) card.hidden = true;
  const more = make('button', { type: 'button', class: 'more', click: () => {
    for (const card of rest) card.hidden = false;
    rest[0].querySelector('button')?.focus();
    more.remove();
  } }, `Show all ${leads.length} findings`);
  section.append(more);
}
