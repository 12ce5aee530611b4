// Puts the parts of the console together.

import { onTokenNeeded } from './api.js';
import { askForToken } from './dialogs.js';
import { $ } from './dom.js';
import { Feed } from './feed.js';
import { Live } from './live.js';
import { Model } from './model.js';
import { Query } from './query.js';
import { Regions } from './regions.js';
import { Saved } from './saved.js';

onTokenNeeded(askForToken);
const model = new Model();
const live = new Live(model);
new Saved(model, (totals, recent) => live.showWork(totals, recent));
const regions = new Regions(model, (error) => query.showProblem(error));
const query = new Query(model, (searches) => regions.showOutcomes(searches));

model.listen((name) => {
  if (name !== 'hello' && name !== 'whole') return;
  $('store').textContent = model.hello.store;
  document.title = `${model.hello.store} - Tamis console`;
});

const feed = new Feed(model, (state, why) => {
  const isLive = state === 'live';
  if (isLive && !model.hello) return;  // of another tab; what it knows follows
  $('connection').textContent = isLive
    ? `live, ${model.hello.may_write ? 'reading and writing' : 'reading only'}, version ${model.hello.version}`
    : `not connected: ${why}; trying again`;
  $('connection').classList.toggle('lost', !isLive);
});
await feed.start();
