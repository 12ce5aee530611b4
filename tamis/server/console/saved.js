// How many servers and regions the searches of this server asked, of those that there were.

import { $, count, counted, make, percent } from './dom.js';

const windowMs = 10000;
const reasons = [
  ['regions_asked', 'asked', 'asked'],
  ['regions_excluded_by_filter', 'filter', 'excluded by filter'],
  ['regions_excluded_by_cells', 'cells', 'excluded by cells of a range'],
  ['regions_excluded_by_range', 'range', 'excluded by range of values'],
  ['regions_excluded_by_key', 'key', 'excluded by key'],
];

function difference(later, earlier) {
  const result = {};
  for (const [name, value] of Object.entries(later)) result[name] = value - (earlier[name] ?? 0);
  return result;
}

// [[part, class, name]]: a bar, and the same in words.
function bar(parts, whole, words) {
  const element = make('div', 'bar');
  element.setAttribute('role', 'img');
  element.setAttribute('aria-label', words);
  for (const [part, className] of parts) {
    const piece = make('span', `c-${className}`);
    piece.style.width = `${whole === 0 ? 0 : 100 * part / whole}%`;
    element.append(piece);
  }
  return element;
}

function show(element, sums) {
  const heading = element.firstElementChild;
  if (sums.searches === 0) {
    element.replaceChildren(heading, make('p', 'measure', 'No search.'));
    return;
  }
  const servers = `${counted(sums.searches, 'search', 'searches')}: ${count(sums.servers_asked)} of ` +
    `${counted(sums.servers_total, 'server')} asked, ${percent(sums.servers_total - sums.servers_asked, sums.servers_total)} % spared`;
  const regions = `${count(sums.regions_asked)} of ${counted(sums.regions_total, 'region')} asked`;
  const list = make('ul', 'legend measure');
  for (const [name, className, text] of reasons) {
    if (sums[name]) list.append(make('li', '', make('span', `swatch c-${className}`), `${count(sums[name])} ${text}`));
  }
  element.replaceChildren(
    heading,
    make('p', 'measure', servers),
    bar([[sums.servers_asked, 'asked']], sums.servers_total, servers),
    make('p', 'measure', regions),
    bar(reasons.map(([name, className]) => [sums[name], className]), sums.regions_total, regions),
    list);
}

export class Saved {
  #samples = [];  // {time, totals}, the oldest just outside of the window

  // onTotals(totals, those of the last seconds): also once a second.
  constructor(model, onTotals) {
    this.onTotals = onTotals;
    model.listen((name) => {
      if (name === 'hello') this.#samples = [];
      if (model.totals === null || !['totals', 'whole'].includes(name)) return;
      this.#samples.push({ time: Date.now(), totals: model.totals });
      this.#show();
    });
    setInterval(() => this.#show(), 1000);
  }

  #show() {
    if (this.#samples.length === 0) return;
    const { totals } = this.#samples.at(-1);
    const begun = Date.now() - windowMs;
    while (this.#samples.length > 1 && this.#samples[1].time <= begun) this.#samples.shift();
    const base = this.#samples[0];
    const recent = base.time <= begun || this.#samples.length > 1 ? difference(totals, base.totals) : difference(totals, totals);
    if (totals.searches > 0) {
      $('saved-sentence').replaceChildren(
        `Searches asked ${count(totals.servers_asked)} of the ${counted(totals.servers_total, 'server')} that a search without ` +
        'filters asks: ',
        make('strong', '', `${percent(totals.servers_total - totals.servers_asked, totals.servers_total)} % of the requests to ` +
          'servers were saved.'));
    }
    show($('saved-start'), totals);
    show($('saved-now'), recent);
    this.onTotals(totals, recent);
  }
}
