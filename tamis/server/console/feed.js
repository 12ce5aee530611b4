// The events of the server. A browser has few connections to one server, so one tab has the stream and hands its events
// on to the others; which one, a lock decides. Without locks (no HTTPS, not this machine) a tab has a stream while it is
// seen.

import { parts, request } from './api.js';

export class Feed {
  #model;
  #onState;
  #channel = new BroadcastChannel('tamis-events');
  #leads = false;
  #state = { state: 'lost', why: 'connecting' };
  #isAsked = false;  // by a tab that has no events yet

  // onState('live' or 'lost', why)
  constructor(model, onState) {
    this.#model = model;
    this.#onState = onState;
    this.#channel.onmessage = ({ data }) => this.#take(data);
  }

  async start() {
    if (!navigator.locks) return this.#runWhileSeen();
    this.#channel.postMessage({ ask: true });
    await navigator.locks.request('tamis-events', async () => {
      this.#leads = true;
      await this.#run();
    });
  }

  #take({ ask, name, data, state, why }) {
    if (this.#leads) {
      if (ask) this.#isAsked = true;
      return this.#handOnAll();
    }
    if (name) this.#model.apply(name, data);
    if (state) this.#onState(state, why);
  }

  #handOnAll() {
    if (!this.#isAsked || !this.#model.isComplete) return;
    this.#isAsked = false;
    this.#channel.postMessage({ name: 'whole', data: this.#model.whole(), ...this.#state });
  }

  #tell(state, why = '') {
    this.#state = { state, why };
    this.#onState(state, why);
    this.#channel.postMessage({ state, why });
  }

  async #run(signal) {
    for (let pause = 250; !signal?.aborted; pause = Math.min(2 * pause, 10000)) {
      let why = 'the stream has ended';
      try {
        const response = await request('GET', '/v1/events', { accept: 'text/event-stream', signal });
        for await (const event of parts(response, '\n\n')) {
          const found = /^event: (\w+)\ndata: (.*)$/.exec(event);
          if (!found) continue;  // a comment
          const [, name, text] = found;
          const data = JSON.parse(text);
          this.#model.apply(name, data);
          if (this.#leads) this.#channel.postMessage({ name, data });
          if (name === 'hello') this.#tell('live');
          this.#handOnAll();
          pause = 250;
        }
      } catch (error) {
        why = error.message;
      }
      if (signal?.aborted) return;
      this.#tell('lost', why);
      await new Promise((resolve) => { setTimeout(resolve, pause); });
    }
  }

  #runWhileSeen() {
    let stop = null;
    const look = () => {
      if (document.visibilityState === 'visible' && stop === null) {
        stop = new AbortController();
        this.#run(stop.signal);
      } else if (document.visibilityState !== 'visible' && stop !== null) {
        stop.abort();
        stop = null;
      }
    };
    document.addEventListener('visibilitychange', look);
    look();
  }
}
