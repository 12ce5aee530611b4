// Completion of the names of tables and columns in the query field, as a list under it: arrow keys choose, Enter or Tab takes,
// Escape closes.

import { $, counted, make } from './dom.js';

const mostNames = 8;
const isPlain = /^[A-Za-z_][A-Za-z0-9_]*$/;

export class Completion {
  #model;
  #field = $('sql');
  #list = $('names');
  #names = [];
  #chosen = -1;

  constructor(model) {
    this.#model = model;
    this.#field.addEventListener('input', () => this.#offer(1));
    this.#field.addEventListener('blur', () => this.close());
    this.#field.addEventListener('click', () => this.close());
  }

  // True when the key was for the list.
  onKey(event) {
    if (event.ctrlKey && event.key === ' ') {
      this.#offer(0);
      if (this.#names.length > 0) this.#choose(0);
      return true;
    }
    if (this.#names.length === 0) return false;
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {  // to the next, to the one before
      const step = event.key === 'ArrowDown' ? 1 : -1;
      const length = this.#names.length;
      this.#choose((Math.max(this.#chosen, step < 0 ? 0 : -1) + step + length) % length);
      return true;
    }
    if (event.key === 'Escape') {
      this.close();
      return true;
    }
    if (!['Enter', 'Tab'].includes(event.key) || event.ctrlKey || this.#chosen < 0) return false;
    this.#take(this.#chosen);
    return true;
  }

  #word() {
    return /[A-Za-z0-9_]*$/.exec(this.#field.value.slice(0, this.#field.selectionStart))[0];
  }

  // Columns of tables that the statement names come first.
  #candidates() {
    const text = this.#field.value.toLowerCase();
    const named = (table) => text.includes(table.name.toLowerCase());
    const tables = this.#model.tables.toSorted((a, b) => named(b) - named(a));
    const all = new Map();
    for (const table of tables) all.set(table.name, 'table');
    for (const table of tables) {
      for (const column of table.columns) if (!all.has(column)) all.set(column, `column of ${table.name}`);
    }
    return [...all];
  }

  #offer(least) {
    const word = this.#word().toLowerCase();
    this.#names = word.length < least ? [] : this.#candidates()
      .filter(([name]) => name.toLowerCase().startsWith(word) && name.toLowerCase() !== word).slice(0, mostNames);
    this.#list.replaceChildren(...this.#names.map(([name, kind], i) => {
      const item = make('li', '', name, make('small', '', kind));
      item.id = `name-${i}`;
      item.setAttribute('role', 'option');
      item.setAttribute('aria-selected', 'false');
      item.addEventListener('mousedown', (event) => {
        event.preventDefault();
        this.#take(i);
      });
      return item;
    }));
    this.#list.hidden = this.#names.length === 0;
    $('names-status').textContent = this.#list.hidden ? '' :
      `${counted(this.#names.length, 'name')}, arrow keys choose: ${this.#names.map(([name]) => name).join(', ')}`;
    this.#field.removeAttribute('aria-activedescendant');
    this.#chosen = -1;
  }

  #choose(index) {
    this.#list.children[this.#chosen]?.setAttribute('aria-selected', 'false');
    this.#chosen = index;
    this.#list.children[index].setAttribute('aria-selected', 'true');
    this.#field.setAttribute('aria-activedescendant', `name-${index}`);
  }

  #take(index) {
    const [name] = this.#names[index];
    const text = isPlain.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
    const end = this.#field.selectionStart;
    this.#field.setRangeText(text, end - this.#word().length, end, 'end');
    this.close();
  }

  close() {
    this.#names = [];
    this.#offer(Infinity);
  }
}
