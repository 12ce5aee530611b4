// The query field: runs a statement, shows its rows by pages, its explanation or its error, and keeps a history.

import { request } from './api.js';
import { Completion } from './completion.js';
import { $, count, counted, make } from './dom.js';

const mostRows = 10000;  // that the page keeps
const rowsOfPage = 50;
const historyKey = 'tamis-history';
const mostStatements = 30;

// Integers that a number of JavaScript cannot hold are kept whole.
function parseAnswer(text) {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, (key, value, context) => (typeof value === 'number' && /^-?\d+$/.test(context?.source ?? '') &&
    !Number.isSafeInteger(value) ? BigInt(context.source) : value));
}

function cellOf(value) {
  if (value === null) return make('td', 'null', 'NULL');
  const cell = make('td', ['number', 'bigint'].includes(typeof value) ? 'number' : '', String(value));
  cell.title = cell.textContent;
  return cell;
}

// Answers to a change that may have been made.
const statusesOfUnknown = [499, 500, 502, 504];

function mayChange(sql) {
  return !/^\s*(select|values)\b/i.test(sql) && /\b(insert|replace|update|delete)\b/i.test(sql);
}

function unknownText(error) {
  const why = error.name === 'AbortError' ? 'The statement was cancelled.' : error.message;
  return `${why} Read the rows before you repeat the statement.`;
}

export class Query {
  #completion;
  #onSearches;
  #running = null;  // AbortController
  #columns = [];
  #rows = [];
  #page = 0;

  // onSearches(searches): of a statement that has ended.
  constructor(model, onSearches) {
    this.#completion = new Completion(model);
    this.#onSearches = onSearches;
    model.listen((name) => { if (['tables', 'whole'].includes(name)) this.#suggest(model); });
    $('run').addEventListener('click', () => this.run());
    $('cancel').addEventListener('click', () => this.#running?.abort());
    $('previous').addEventListener('click', () => this.#showPage(this.#page - 1));
    $('next').addEventListener('click', () => this.#showPage(this.#page + 1));
    $('forget').addEventListener('click', () => this.#keep([]));
    $('sql').addEventListener('keydown', (event) => {
      const isForList = this.#completion.onKey(event);
      if (!isForList && event.key === 'Enter' && (event.ctrlKey || event.metaKey)) this.run();
      else if (!isForList) return;
      event.preventDefault();
    });
    this.#showHistory();
  }

  async run() {
    const sql = $('sql').value.trim();
    if (!sql || this.#running) return;
    this.#completion.close();
    this.#remember(sql);
    this.#running = new AbortController();
    this.#setRunning(true);
    this.#columns = [];
    this.#rows = [];
    this.#page = 0;
    $('problem').hidden = true;
    $('explain').textContent = '';
    $('outcome').textContent = 'running';
    const begun = performance.now();
    try {
      const answer = await this.#receive(sql);
      this.#showPage(0);
      $('outcome').textContent = this.#outcome(answer, performance.now() - begun);
      $('explain').textContent = answer.explain;
      this.#onSearches(answer.searches);
    } catch (error) {
      this.#showPage(0);
      const cancelled = error.name === 'AbortError';
      const unknown = mayChange(sql) && (error.status === undefined || statusesOfUnknown.includes(error.status));
      $('outcome').textContent = unknown ? 'outcome unknown' : cancelled ? 'cancelled' : 'failed';
      if (unknown) {
        this.showProblem({ title: 'The change may have been made', status: error.status, message: unknownText(error) });
      } else if (!cancelled) this.showProblem(error);
    }
    this.#running = null;
    this.#setRunning(false);
  }

  showProblem(error) {
    const box = $('problem');
    const status = error.status ? ` (${error.status})` : '';
    box.replaceChildren(make('strong', '', `${error.title ?? 'Error'}${status}`), make('div', '', error.message));
    box.hidden = false;
  }

  // A document, not a stream: a browser may drop the last record of a stream that the server ends with an error.
  async #receive(sql) {
    const body = { sql, max_rows: mostRows, explain: true, explain_regions: true };
    const response = await request('POST', '/v1/sql', { body, signal: this.#running.signal });
    const answer = parseAnswer(await response.text());
    this.#columns = answer.columns;
    this.#rows = answer.rows;
    return answer;
  }

  #outcome(answer, ms) {
    const time = `in ${count(Math.round(ms))} ms`;
    if (answer.changes !== undefined) return `${counted(answer.changes, 'row')} changed ${time}`;
    const more = answer.more_rows ? `the first ${count(mostRows)} rows, there are more,` : counted(answer.row_count, 'row');
    return `${more} ${time}`;
  }

  #setRunning(running) {
    $('run').disabled = running;
    $('cancel').disabled = !running;
    if (running && document.activeElement === $('run')) $('cancel').focus();
    if (!running && (document.activeElement === $('cancel') || document.activeElement === document.body)) $('run').focus();
  }

  #showPage(page) {
    this.#page = page;
    const first = page * rowsOfPage;
    const shown = this.#rows.slice(first, first + rowsOfPage);
    $('result').hidden = this.#columns.length === 0;
    $('pager').hidden = this.#rows.length <= rowsOfPage;
    if (this.#columns.length === 0) return;
    const isNumber = (value) => ['number', 'bigint'].includes(typeof value);
    const head = make('tr', '', ...this.#columns.map((name, i) => {
      const cell = make('th', isNumber(this.#rows[0]?.[i]) ? 'number' : '', name);
      cell.scope = 'col';
      return cell;
    }));
    const table = make('table', '', make('caption', 'visually-hidden', 'Rows of the answer'), make('thead', '', head),
      make('tbody', '', ...shown.map((row) => make('tr', '', ...row.map(cellOf)))));
    $('result').replaceChildren(table);
    $('result').scrollTop = 0;
    $('page').textContent = `Rows ${count(first + 1)} to ${count(first + shown.length)} of ${count(this.#rows.length)}`;
    $('previous').disabled = page === 0;
    $('next').disabled = first + rowsOfPage >= this.#rows.length;
  }

  #suggest(model) {
    if ($('sql').value !== '' || model.tables.length === 0) return;
    const [{ name }] = model.tables;
    $('sql').value = `SELECT * FROM "${name.replaceAll('"', '""')}" LIMIT 10`;
  }

  // ---- History, in this browser only

  #statements() {
    try {
      return JSON.parse(localStorage.getItem(historyKey)) ?? [];
    } catch {
      return [];
    }
  }

  #remember(sql) {
    this.#keep([sql, ...this.#statements().filter((other) => other !== sql)].slice(0, mostStatements));
  }

  #keep(statements) {
    try {
      localStorage.setItem(historyKey, JSON.stringify(statements));
    } catch { /* the browser keeps nothing: there is no history */ }
    this.#showHistory();
  }

  #showHistory() {
    $('statements').replaceChildren(...this.#statements().map((sql) => {
      const item = make('button', '', sql);
      item.type = 'button';
      item.addEventListener('click', () => {
        $('sql').value = sql;
        $('sql').focus();
      });
      return make('li', '', item);
    }));
  }
}
