/* main.js: opens the page: first what the index has (what ran, findings), then, after that is painted, the
 * columns and what is made of them, each section when it comes near the window. Escape, or the button of the
 * bar at the top, clears what is chosen.
 *
 * weirPage is for those who drive the page by program (tests): ready, all() and settled() are promises. */
import { forgetColors } from './canvas.js';
import { make } from './dom.js';
import { drawFindings } from './findings.js';
import { bestFlame, drawFlame, showFlame } from './flame.js';
import { formatTime } from './format.js';
import { drawHead } from './head.js';
import { drawMemory, spanText } from './memory.js';
import { chosenBins, readColumns, readIndex, run } from './model.js';
import { drawPeak } from './peak.js';
import { change, chosen, settled, watchChoice } from './state.js';
import { drawLeaks, drawMatrix, drawTables } from './tables.js';
import { drawTimeline } from './timeline.js';

const SECTIONS = [
  ['memory', 'Memory', drawMemory], ['peak', 'Peak', drawPeak], ['flame', 'Stacks', drawFlame], ['timeline', 'Timeline', drawTimeline],
  ['tables', 'By place', drawTables], ['matrix-section', 'Copies', drawMatrix], ['leaks', 'Never freed', drawLeaks],
];

function painted() {
  return new Promise((resolve) => {
    requestAnimationFrame(() => setTimeout(resolve, 0));
  });
}

/* ---- what is chosen ---------------------------------------------------------------------------- */

function choiceText() {
  const { width_ns: width } = run.index.bins;
  const [first, last] = chosenBins();
  const summed = { from: first * width, to: last * width };
  const rounded = chosen.span && (Math.abs(summed.from - chosen.span.from) > 1 || summed.to - chosen.span.to > 1) && summed.to - summed.from > 1.01 * (chosen.span.to - chosen.span.from);
  const span = chosen.span ? `${spanText(chosen.span)}${rounded ? `, tables: ${formatTime(summed.to - summed.from)} in whole bins` : ''}` : `Whole run, ${formatTime(run.index.run.duration_ns)}`;
  return { span, place: chosen.place ? chosen.place.title : 'all places' };
}

function drawBar() {
  const bar = document.getElementById('chosen');
  const clear = (title, what) => make('button', { type: 'button', class: 'clear', click: () => {
    text.focus(); /* the button goes */
    change(what);
  } }, title);
  const clearSpan = clear('Whole run', { span: null });
  const clearPlace = clear('All places', { place: null });
  const span = make('span', { class: 'chosen-span' });
  const place = make('bdi', { class: 'chosen-place' });
  const text = make('p', { id: 'choice', role: 'status', 'aria-live': 'polite', tabindex: '-1' }, span, ' · ', place);
  bar.append(text, clearSpan, clearPlace);
  const show = () => {
    const now = choiceText();
    span.textContent = now.span;
    place.textContent = now.place;
    clearSpan.hidden = !chosen.span;
    clearPlace.hidden = !chosen.place;
    document.getElementById('bar').classList.toggle('active', Boolean(chosen.span || chosen.place));
  };
  show();
  watchChoice(show);
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') document.querySelectorAll('.tip').forEach((tip) => { tip.hidden = true; });
    if (event.key === 'Escape' && (chosen.span || chosen.place)) change({ span: null, place: null });
  });
}

function drawLinks() {
  /* What lies above is drawn first, or it would push the section away once it is. */
  const links = [['findings', 'Findings'], ...SECTIONS].map(([id, title]) => make('li', {},
    make('a', { href: `#${id}`, click: () => drawers.has(id) && drawSections(id) }, title)));
  document.getElementById('links').append(make('ul', {}, links));
}

/* ---- light and dark ---------------------------------------------------------------------------- */

function redrawTheme() {
  forgetColors();
  document.dispatchEvent(new Event('weir-theme'));
}

function drawThemeButton() {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const now = () => document.documentElement.dataset.theme ?? (dark.matches ? 'dark' : 'light');
  const button = document.getElementById('theme');
  const show = () => {
    button.textContent = now() === 'dark' ? 'Light' : 'Dark';
    button.setAttribute('aria-label', now() === 'dark' ? 'Use light colours' : 'Use dark colours');
    redrawTheme();
  };
  button.hidden = false;
  button.addEventListener('click', () => {
    document.documentElement.dataset.theme = now() === 'dark' ? 'light' : 'dark';
    show();
  });
  dark.addEventListener('change', show);
  show();
}

/* ---- sections ---------------------------------------------------------------------------------- */

const drawers = new Map(); /* id: draws that section, once */

async function followFinding(place, finding) {
  await change({ place, span: null });
  await drawSections('flame');
  showFlame(bestFlame(place, !finding.saving_ns));
  document.getElementById('flame').scrollIntoView({ block: 'start' });
  document.getElementById('flame-title').focus();
}

/* Draws the sections down to `id`, or all, in the order of the page. */
async function drawSections(id = null) {
  for (const [own, draw] of drawers) {
    draw();
    if (own === id) break;
  }
  await settled();
}

function prepareSections() {
  const main = document.querySelector('main');
  const watcher = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) if (isIntersecting) drawers.get(target.dataset.section)();
  }, { rootMargin: '600px' });
  for (const [id, title, draw] of SECTIONS) {
    const place = make('div', { class: 'coming', 'data-section': id, id }, make('h2', {}, title));
    main.append(place);
    drawers.set(id, () => {
      if (!place.isConnected) return;
      watcher.unobserve(place);
      place.removeAttribute('id');
      draw();
      place.replaceWith(main.lastElementChild);
      document.getElementById(`${id}-title`).tabIndex = -1;
    });
    watcher.observe(place);
  }
  const { dataset } = document.documentElement;
  let theme = null;
  window.addEventListener('beforeprint', () => {
    theme = dataset.theme ?? null;
    dataset.theme = 'light'; /* ink on paper */
    drawSections();
    redrawTheme();
  });
  window.addEventListener('afterprint', () => {
    if (theme) dataset.theme = theme;
    else delete dataset.theme;
    redrawTheme();
  });
}

function failed(text) {
  document.getElementById('failed').textContent = text;
  document.getElementById('failed').hidden = false;
}

async function openPage() {
  readIndex(document.getElementById('weir-index').textContent);
  drawThemeButton();
  drawHead();
  drawFindings(followFinding);
  if (!globalThis.DecompressionStream) {
    failed('This browser cannot unpack the page\u2019s data (it has no DecompressionStream): use one of 2023 or later. What is above needs none.');
    return;
  }
  await painted();
  await readColumns(document.getElementById('weir-columns').textContent);
  drawLinks();
  drawBar();
  prepareSections();
  drawers.get('memory')();
}

const ready = openPage().catch((error) => {
  failed(`This page cannot be shown: ${error.message}`);
});

globalThis.weirPage = { ready, all: drawSections, settled, change, chosen };
