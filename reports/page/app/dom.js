/* dom.js: elements. Text is set as text, never parsed: whatever a program calls its functions, none of it
 * becomes markup. What cannot be seen, or turns the direction of what follows, is shown as a sign. */

const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
const LONGEST = 300;

/* A name as it is shown: its end is what tells names apart, so what is too long loses its middle. */
export function cleanName(name, longest = LONGEST) {
  const text = String(name);
  const cut = text.length <= longest ? text
    : `${text.slice(0, Math.ceil(longest / 2) - 1)}…${text.slice(-Math.floor(longest / 2))}`;
  return cut.replace(UNSEEN, '\ufffd');
}

/* make('a', {href: '#x', click: f}, 'text', element, null): a function is a listener, null and false are left out. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === false || value === undefined) continue;
    if (typeof value === 'function') element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/* A section with its heading; `note` says in a line what it shows. */
export function makeSection(id, title, note) {
  const heading = make('h2', { id: `${id}-title` }, title);
  const noted = make('p', { class: 'note', hidden: !note }, note ?? '');
  const section = make('section', { id, 'aria-labelledby': `${id}-title` }, make('div', { class: 'section-head' }, heading, noted));
  document.querySelector('main').append(section);
  return section;
}

/* What may be wider than its place scrolls within it, also by the keyboard. */
export function makeWide(label, ...children) {
  return make('div', { class: 'wide', tabindex: '0', role: 'region', 'aria-label': label }, ...children);
}

/* What a picture shows, as a table that is made when it is opened. */
export function makeDetails(title, fill) {
  let filled = false;
  const details = make('details', {
    toggle: () => {
      if (details.open && !filled) details.append(fill());
      filled = filled || details.open;
    },
  }, make('summary', {}, title));
  return details;
}
