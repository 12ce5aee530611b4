// A Node program that asks a store in SQL, over node-sqlite3.
//
//   node query.js build/release/lib/tamis.so DIRECTORY
const sqlite3 = require('sqlite3');
const [extension, store] = process.argv.slice(2);

const db = new sqlite3.Database(':memory:');
const call = (method, ...rest) =>
  new Promise((resolve, reject) =>
    db[method](...rest, (error, rows) => (error ? reject(error) : resolve(rows))));

(async () => {
  await call('loadExtension', extension);
  await call('all', 'SELECT tamis_open(?)', [store]);
  await call('run', `CREATE VIRTUAL TABLE IF NOT EXISTS people USING tamis(
      name, born int64, town, key (name), index town (town))`);
  for (const person of [['ada', 1815, 'London'], ['grace', 1906, 'New York']]) {
    await call('run', 'INSERT OR REPLACE INTO people VALUES (?, ?, ?)', person);
  }
  for (const row of await call('all', 'SELECT name, born FROM people WHERE town = ?', ['London'])) {
    console.log(`${row.name} ${row.born}`);
  }
  await call('close');
})().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
