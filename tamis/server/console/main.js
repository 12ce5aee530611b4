// Puts the parts of the console together.

import { onTokenNeeded } from './api.js';
import { askForToken } from './dialogs.js';
import { $, make } from './dom.js';
import { Feed } from './feed.js';
import { Model } from './model.js';
import { Query } from './query.js';
import { Regions } from './regions.js';
import { Saved } from './saved.js';

const mostNews = 100;

onTokenNeeded(askForToken);
const model = new Model();
new Saved(model);
const regions = new Regions(model, (error) => query.showProblem(error));
const query = new Query(model, (searches) => regions.showOutcomes(searches));

model.listen((name, news) => {
  if (model.hello) {
    $('store').textContent = model.hello.store;
    document.title = `${model.hello.store} - Tamis console`;
  }
  for (const sentence of news) {
    const time = make('time', '', new Date().toLocaleTimeString('en-GB'));
    $('quiet').hidden = true;
    $('log').prepend(make('li', '', time, sentence));
  }
  while ($('log').children.length > mostNews) $('log').lastElementChild.remove();
});

const feed = new Feed(model, (state, why) => {
  const isLive = state === 'live';
  $('connection').textContent = isLive
    ? `live, ${model.hello.may_write ? 'reading and writing' : 'reading only'}, version ${model.hello.version}`
    : `not connected: ${why}; trying again`;
  $('connection').classList.toggle('lost', !isLive);
});
await feed.start();
