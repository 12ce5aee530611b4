// What the page knows of the store, from the events of GET /v1/events.

export class Model {
  hello = null;
  tables = [];
  servers = [];
  totals = null;
  trouble = null;
  regions = new Map();  // by number: {id, table, server, start, text, bytes, known}
  version = 0;          // of the tables and regions
  isComplete = false;   // what a stream begins with has come
  #unseen = new Set();  // regions of before, that the stream has not told yet; the first "totals" ends what it begins with
  #listeners = [];

  // listener(name of the event, sentences about what happened)
  listen(listener) { this.#listeners.push(listener); }

  apply(name, data) {
    const news = [];
    if (['hello', 'tables', 'whole'].includes(name)) ++this.version;
    if (name === 'hello') {
      this.#unseen = new Set(this.regions.keys());
      this.hello = data;
      this.hello.begun = Date.now() - data.uptime_ms;
    } else if (name === 'tables') {
      this.#applyTables(data.tables, news);
    } else if (name === 'servers') {
      this.#applyServers(data.servers, news);
    } else if (name === 'regions') {
      this.#applyRegions(data, news);
    } else if (name === 'totals') {
      this.totals = data;
      this.isComplete = true;
      if (this.#unseen.size > 0) this.#applyRegions({ put: [], removed: [...this.#unseen] }, news);
    } else if (name === 'trouble') {
      this.trouble = data.detail;
      news.push(data.detail === null ? 'The store answers again.' : `The store does not answer: ${data.detail}`);
    } else if (name === 'whole') {
      Object.assign(this, data);
      this.isComplete = true;
    }
    for (const listener of this.#listeners) listener(name, news);
  }

  // All of it, for another tab.
  whole() {
    const { hello, tables, servers, totals, trouble, regions } = this;
    return { hello, tables, servers, totals, trouble, regions };
  }

  #applyTables(tables, news) {
    const names = new Set(tables.map((table) => table.name));
    for (const [id, region] of this.regions) if (!names.has(region.table)) this.regions.delete(id);
    if (this.isComplete) {
      const before = new Set(this.tables.map((table) => table.name));
      for (const name of names) if (!before.has(name)) news.push(`Table ${name} was made.`);
      for (const name of before) if (!names.has(name)) news.push(`Table ${name} was dropped.`);
    }
    this.tables = tables;
  }

  #applyServers(servers, news) {
    const before = new Map(this.servers.map((server) => [server.name, server.state]));
    for (const { name, state } of servers) {
      const was = before.get(name);
      if (this.isComplete && was !== state) news.push(`Server ${name} is ${state}${was ? `, it was ${was}` : ''}.`);
    }
    this.servers = servers;
  }

  #applyRegions({ table, put, removed }, news) {
    const isNews = this.isComplete && put.some(([id]) => !this.regions.has(id));
    const isKnown = isNews && [...this.regions.values()].some((region) => region.table === table);
    for (const id of removed) {
      if (this.isComplete) news.push(`Region ${id} of table ${this.regions.get(id)?.table} is gone.`);
      this.regions.delete(id);
      this.#unseen.delete(id);
    }
    ++this.version;
    for (const [id, server, start, text, size, known] of put) {
      const was = this.regions.get(id);
      this.#unseen.delete(id);
      if (this.isComplete && !was) {
        news.push(`Region ${id} of table ${table} was ${isKnown ? 'split off' : 'made'}, from ${text || 'the first key'}, on ${server || 'no server'}.`);
      } else if (this.isComplete && was.server !== server) {
        news.push(`Region ${id} of table ${table} moved from ${was.server || 'no server'} to ${server || 'no server'}.`);
      }
      this.regions.set(id, { id, table, server, start, text, bytes: size, known: known === 1 });
    }
  }
}
