// What happens in the store: writes and the changes of filters that they make, and a log of what else is seen.

import { $, count, counted, make } from './dom.js';

const mostNews = 100;

export class Live {
  #model;

  constructor(model) {
    this.#model = model;
    model.listen((_, news) => this.#addNews(news));
  }

  // `recent`: of the last ten seconds.
  showWork(totals, recent) {
    const behind = Math.max(0, ...this.#model.servers.map((server) => server.events_behind));
    let text = `${counted(recent.writes, 'write')} in the last 10 seconds`;
    if (recent.batches > 0) {
      text += `, ${(recent.batch_us / recent.batches / 1000).toFixed(1)} ms a batch with its waits for coordinators`;
    }
    text += `; ${count(totals.writes)} since the server started`;
    if (totals.writes_unknown > 0) text += `, ${count(totals.writes_unknown)} with an unknown outcome`;
    text += `. ${counted(recent.events, 'change')} of filters and regions taken in`;
    text += `, ${behind === 0 ? 'none is outstanding' : `at most ${count(behind)} of a server are outstanding`}`;
    if (totals.servers_without_lease > 0) {
      text += `; ${counted(totals.servers_without_lease, 'server')} without a lease, which all searches ask`;
    }
    if ($('work').textContent !== `${text}.`) $('work').textContent = `${text}.`;
  }

  #addNews(news) {
    for (const sentence of news) {
      $('quiet').hidden = true;
      $('log').prepend(make('li', '', make('time', '', new Date().toLocaleTimeString('en-GB')), sentence));
    }
    while ($('log').children.length > mostNews) $('log').lastElementChild.remove();
  }
}
