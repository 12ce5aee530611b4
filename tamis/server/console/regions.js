// Servers and regions: the map of cells, its legend, the tables that say the same, and the operations.

import { post } from './api.js';
import { Cells } from './cells.js';
import { confirm } from './dialogs.js';
import { $, button, bytes, count, counted, make } from './dom.js';

const rowsOfPage = 100;

// The colours of each choice: name of the colour, text, mark.
const legends = {
  outcome: [
    ['hit', 'asked, had rows', 'dot'],
    ['in_vain', 'asked in vain', 'line'],
    ['unknown', 'asked, filter not known', 'cross'],
    ['filter', 'excluded by filter'],
    ['cells', 'excluded by cells of a range'],
    ['range', 'excluded by range of values'],
    ['key', 'excluded by key'],
    ['not_asked', 'not asked, the limit was reached'],
    ['none', 'not of the last query'],
  ],
  size: [
    ['size0', 'smallest fifth'], ['size1', 'second fifth'], ['size2', 'third fifth'], ['size3', 'fourth fifth'],
    ['size4', 'largest fifth'],
  ],
  filter: [
    ['known', 'filter is known, the region can be excluded'],
    ['asked_always', 'filter is not known, or there is no index: each search asks', 'line'],
  ],
};

const byKey = (a, b) => (a.table < b.table ? -1 : a.table > b.table ? 1 : a.start < b.start ? -1 : a.start > b.start ? 1 : 0);

export class Regions {
  #model;
  #cells;
  #outcomes = new Map();  // of the last query, by number of the region
  #rows = new Map();  // of the table of servers, by state and name
  #sorted = { version: -1, table: '', regions: [] };
  #page = 0;
  #pending = false;
  #onProblem;

  constructor(model, onProblem) {
    this.#model = model;
    this.#onProblem = onProblem;
    this.#cells = new Cells($('cells'), (region) => this.#showChosen(region));
    model.listen((name) => {
      if (name === 'totals' && model.version === this.#sorted.version) return;
      this.#pending = true;
      requestAnimationFrame(() => { if (this.#pending) this.show(); });
    });
    for (const id of ['table', 'colour']) $(id).addEventListener('change', () => this.show());
    $('region-list').addEventListener('toggle', () => this.#showTable());
    $('regions-previous').addEventListener('click', () => { this.#page -= 1; this.#showTable(); });
    $('regions-next').addEventListener('click', () => { this.#page += 1; this.#showTable(); });
    $('split').addEventListener('click', () => this.#split());
    $('move').addEventListener('click', () => this.#move());
  }

  get cells() { return this.#cells; }

  // The `searches` of a statement. A region that several searches met has the outcome that stands first in the legend.
  showOutcomes(searches) {
    this.#outcomes = new Map();
    for (const [outcome] of legends.outcome.toReversed()) {
      for (const search of searches) {
        for (const id of search.regions?.[outcome] ?? []) this.#outcomes.set(id, outcome);
      }
    }
    $('colour').value = 'outcome';
    this.show();
  }

  show() {
    this.#pending = false;
    document.body.classList.toggle('operator', this.#model.hello?.can_operate === true);
    this.#showTables();
    const regions = this.#regions();
    const colourOf = this.#colours(regions);
    const columns = this.#model.servers.map(({ name, state }) => ({ name, state, regions: [] }));
    const byName = new Map(columns.map((column) => [column.name, column]));
    for (const region of regions) {
      if (!byName.has(region.server)) {
        const column = { name: region.server || 'no server', state: region.server ? 'gone' : 'waiting', regions: [] };
        byName.set(region.server, column);
        columns.push(column);
      }
      byName.get(region.server).regions.push(region);
    }
    this.#cells.show(columns, colourOf);
    this.#showLegend(regions, colourOf);
    this.#showServers();
    this.#showChosen(this.#cells.chosen());
    this.#showTable();
  }

  // Sorting many regions takes longer than all else, so it is done when they have changed.
  #regions() {
    const table = $('table').value;
    const { version } = this.#model;
    if (this.#sorted.version !== version || this.#sorted.table !== table) {
      const regions = [...this.#model.regions.values()].filter((region) => !table || region.table === table).sort(byKey);
      this.#sorted = { version, table, regions };
    }
    return this.#sorted.regions;
  }

  #colours(regions) {
    const choice = $('colour').value;
    const marks = new Map(legends[choice].map(([name, , mark]) => [name, mark]));
    const named = (name) => [name, marks.get(name)];
    if (choice === 'filter') return ({ known }) => named(known ? 'known' : 'asked_always');
    if (choice === 'outcome') return ({ id }) => named(this.#outcomes.get(id) ?? 'none');
    const sizes = regions.map((region) => region.bytes).sort((a, b) => a - b);
    const bounds = [1, 2, 3, 4].map((fifth) => sizes[Math.floor(fifth * sizes.length / 5)]);
    return (region) => named(`size${bounds.filter((bound) => region.bytes >= bound).length}`);
  }

  #showTables() {
    const select = $('table');
    const names = this.#model.tables.map((table) => table.name);
    const shown = [...select.options].slice(1).map((option) => option.value);
    if (names.join('\n') === shown.join('\n')) return;
    const chosen = select.value;
    select.replaceChildren(select.options[0], ...names.map((name) => new Option(name, name)));
    select.value = names.includes(chosen) ? chosen : '';
  }

  #showLegend(regions, colourOf) {
    const counts = new Map();
    for (const region of regions) {
      const [name] = colourOf(region);
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    const shown = legends[$('colour').value].filter(([name]) => counts.has(name));
    $('legend').replaceChildren(...shown.map(([name, text, mark]) => {
      const item = make('li', '', make('span', `swatch c-${name}`), `${count(counts.get(name))} ${text}`);
      if (mark) item.append(` (${{ dot: '●', line: '╱', cross: '×' }[mark]})`);
      return item;
    }));
    $('cells-summary').textContent =
      `${counted(this.#model.servers.length, 'server')} with ${counted(regions.length, 'region')}: ` +
      shown.map(([name, text]) => `${count(counts.get(name))} ${text}`).join(', ');
  }

  // ---- Servers

  // Rows stay while their servers' states do, so that a button is there as long as it is clicked or has the focus.
  #showServers() {
    const rows = this.#model.servers.map((server) => {
      const key = `${server.state} ${this.#model.hello?.can_operate} ${server.name}`;
      const row = this.#rows.get(key) ?? this.#serverRow(server);
      const texts = [count(server.regions), count(server.searches), bytes(server.filter_bytes), count(server.events_behind)];
      texts.forEach((text, i) => { row.cells[i + 2].textContent = text; });
      return [key, row];
    });
    this.#rows = new Map(rows);
    const body = $('server-table').tBodies[0];
    if (body.rows.length === rows.length && rows.every(([, row], i) => body.rows[i] === row)) return;
    const focused = body.contains(document.activeElement) && document.activeElement.getAttribute('aria-label');
    body.replaceChildren(...rows.map(([, row]) => row));
    if (focused) body.querySelector(`button[aria-label="${CSS.escape(focused)}"]`)?.focus();
  }

  #serverRow(server) {
    const name = make('th', '', server.name);
    name.scope = 'row';
    const operations = make('td', 'operations');
    const offer = (verb, text, explanation) => operations.append(button(text, `${text} ${server.name}`, () =>
      this.#operate(`/v1/servers/${encodeURIComponent(server.name)}/${verb}`, {}, `${text} ${server.name}?`, explanation, text)));
    if (server.state === 'live') {
      offer('pause', 'Pause', 'It answers nothing until it is resumed. When its session has expired, others take its regions.');
      offer('kill', 'Kill', 'It loses its memory and nothing else; others take its regions, and no answer changes.');
    } else {
      offer('resume', 'Resume', 'A paused server goes on; a killed one is started again, empty.');
      if (server.state === 'paused') offer('kill', 'Kill', 'It loses its memory and nothing else; others take its regions.');
    }
    const numbers = [1, 2, 3, 4].map(() => make('td', 'number'));
    return make('tr', '', name, make('td', `state-${server.state}`, server.state), ...numbers, operations);
  }

  async #operate(path, body, heading, text, yes) {
    if (!await confirm(heading, text, yes)) return;
    try {
      await post(path, body);
    } catch (error) {
      this.#onProblem(error);
    }
  }

  // ---- The chosen region

  #showChosen(region) {
    const text = region ? this.#sentence(region) : 'No region is chosen.';
    if ($('chosen-text').textContent !== text) $('chosen-text').textContent = text;
    const operates = Boolean(region) && this.#model.hello?.can_operate === true;
    $('chosen-operations').hidden = !operates;
    if (!operates) return;
    $('split').textContent = `Split region ${region.id}`;
    const others = this.#model.servers.filter(({ name, state }) => state === 'live' && name !== region.server);
    const names = others.map(({ name }) => name);
    const shown = [...$('target').options].map((option) => option.value);
    if (names.join('\n') !== shown.join('\n')) $('target').replaceChildren(...names.map((name) => new Option(name, name)));
    $('move').textContent = `Move region ${region.id} to`;
  }

  #sentence(region) {
    return `Region ${region.id} of table ${region.table} on ${region.server || 'no server'}, from ` +
      `${region.text || 'the first key'}, ${bytes(region.bytes)}; filter ${region.known ? 'known' : 'not known'}; last query: ` +
      `${this.#outcomeText(region)}.`;
  }

  #outcomeText(region) {
    const outcome = this.#outcomes.get(region.id) ?? 'none';
    return legends.outcome.find(([name]) => name === outcome)[1];
  }

  #split() {
    const { id } = this.#cells.chosen();
    this.#operate(`/v1/regions/${id}/split`, {}, `Split region ${id}?`,
      'It becomes two near its middle. The upper half is indexed anew in the background.', 'Split');
  }

  #move() {
    const { id, server } = this.#cells.chosen();
    const target = $('target').value;
    this.#operate(`/v1/regions/${id}/move`, { server: target }, `Move region ${id} to ${target}?`,
      `It is closed on ${server} and opened on ${target}; meanwhile its requests wait.`, 'Move');
  }

  // ---- Regions as a table

  #showTable() {
    if (!$('region-list').open) return;
    const regions = this.#regions();
    const pages = Math.max(1, Math.ceil(regions.length / rowsOfPage));
    this.#page = Math.max(0, Math.min(this.#page, pages - 1));
    const first = this.#page * rowsOfPage;
    $('region-table').tBodies[0].replaceChildren(...regions.slice(first, first + rowsOfPage).map((region) => {
      const id = make('th', '', region.id);
      id.scope = 'row';
      return make('tr', '', id, make('td', '', region.table), make('td', '', region.server), make('td', '', region.text || 'first'),
        make('td', 'number', bytes(region.bytes)), make('td', '', region.known ? 'known' : 'not known'),
        make('td', '', this.#outcomeText(region)));
    }));
    $('regions-page').textContent = `Page ${this.#page + 1} of ${count(pages)}`;
    $('regions-previous').disabled = this.#page === 0;
    $('regions-next').disabled = this.#page + 1 === pages;
  }
}
