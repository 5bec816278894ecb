/* table.js: a table that can be sorted, shows its first rows until asked for all, and ends with the sums of
 * all of them.
 *
 * A column: {key, title, number: its cells are numbers, value(row): what is sorted and summed, show(value,
 * row): text or an element, sum: whether the last line has its sum}. */
import { make, makeWide } from './dom.js';
import { formatCount } from './format.js';

const FIRST_ROWS = 10;
const MOST_ROWS = 2000;

export class Table {
  constructor({ id, caption, columns, sortBy, nothing, quiet = false }) {
    Object.assign(this, { id, columns, sortBy, nothing, rows: [], descending: true, all: false });
    this.caption = make('caption', { class: quiet ? 'unseen' : null }, caption); /* quiet: a heading above says it */
    this.heads = columns.map((column) => make('th', { scope: 'col', class: column.number ? 'number' : null },
      make('button', { type: 'button', click: () => this.sort(column.key) }, column.title)));
    this.body = make('tbody');
    this.foot = make('tfoot');
    this.more = make('button', { type: 'button', class: 'more', click: () => {
      this.all = !this.all;
      this.show();
    } });
    this.empty = make('p', { class: 'empty' }, nothing);
    this.holder = makeWide(caption, make('table', { id, class: 'data' }, this.caption, make('thead', {}, make('tr', {}, this.heads)), this.body, this.foot));
    this.box = make('div', { class: 'table' }, this.holder, this.more, this.empty);
  }

  sort(key) {
    this.descending = this.sortBy === key ? !this.descending : this.columns.find((c) => c.key === key).number === true;
    this.sortBy = key;
    this.show();
  }

  setRows(rows) {
    this.rows = rows;
    this.show();
  }

  sorted() {
    const { value } = this.columns.find((c) => c.key === this.sortBy);
    const sign = this.descending ? -1 : 1;
    const keyed = this.rows.map((row) => ({ row, key: value(row) }));
    keyed.sort((a, b) => sign * (typeof a.key === 'string' ? a.key.localeCompare(b.key) : a.key - b.key));
    return keyed.map(({ row }) => row);
  }

  /* The keyboard stays at the place that it was at, or goes to what is chosen. */
  focusAgain(text) {
    const buttons = [...this.body.querySelectorAll('button')];
    (buttons.find((button) => button.textContent === text) ?? buttons[0] ?? document.getElementById('choice')).focus({ preventScroll: true });
  }

  show() {
    const { columns, rows } = this;
    this.holder.hidden = !rows.length;
    this.empty.hidden = rows.length > 0;
    this.more.hidden = rows.length <= FIRST_ROWS;
    this.more.textContent = this.all ? `Show the first ${FIRST_ROWS}` : `Show ${rows.length > MOST_ROWS ? `${formatCount(MOST_ROWS)} of ${formatCount(rows.length)}` : `all ${formatCount(rows.length)}`}`;
    this.heads.forEach((head, i) => {
      if (columns[i].key === this.sortBy) head.setAttribute('aria-sort', this.descending ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
    const focused = this.body.contains(document.activeElement) ? document.activeElement.textContent : null;
    const cell = (column, content) => make('td', { class: column.number ? 'number' : null }, content);
    this.body.replaceChildren(...this.sorted().slice(0, this.all ? MOST_ROWS : FIRST_ROWS).map((row) => make('tr', {},
      columns.map((column, i) => (i ? cell(column, column.show(column.value(row), row)) : make('th', { scope: 'row' }, column.show(column.value(row), row)))))));
    if (focused !== null) this.focusAgain(focused);
    const sum = (column) => rows.reduce((total, row) => total + column.value(row), 0);
    this.foot.replaceChildren(make('tr', {}, columns.map((column, i) => (i ? cell(column, column.sum ? column.show(sum(column), null) : '') : make('th', { scope: 'row' }, 'Sum')))));
  }
}
