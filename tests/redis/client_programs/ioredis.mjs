// usage: node ioredis.mjs PORT EVERY_COMMAND
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import Redis from 'ioredis';

const redis = new Redis({port: Number(process.argv[2]), host: '127.0.0.1'});
const item = Buffer.from([0, 13, 10, 255]);
const call = (...words) => redis.call(...words);
const rows = [
  [['BF.RESERVE', 'b', '0.01', '1000'], 'OK'], [['BF.ADD', 'b', item], 1], [['BF.ADD', 'b', item], 0],
  [['BF.MADD', 'b', 'x', 'y', 'x'], [1, 1, 0]], [['BF.MEXISTS', 'b', item, 'absent'], [1, 0]],
  [['BF.INSERT', 'i', 'CAPACITY', '100', 'ITEMS', 'x'], [1]], [['BF.CARD', 'b'], 3],
  [['BF.INFO', 'b', 'ITEMS'], [3]], [['BF.EXISTS', 'none', 'x'], 0],
  [['CF.RESERVE', 'c', '1000'], 'OK'], [['CF.ADD', 'c', item], 1], [['CF.ADDNX', 'c', item], 0],
  [['CF.INSERT', 'c', 'ITEMS', 'x', 'y'], [1, 1]], [['CF.INSERTNX', 'c', 'ITEMS', 'x', 'z'], [0, 1]],
  [['CF.MEXISTS', 'c', item, 'absent'], [1, 0]], [['CF.COUNT', 'c', 'x'], 1], [['CF.DEL', 'c', 'x'], 1],
  [['TAMIS.RESERVE', 't', '0.01', '1000', 'GUARD'], 'OK'], [['TAMIS.ADD', 't', 'x', item], [1, 1]],
  [['TAMIS.CHECK', 't', 'x'], [-1]], [['TAMIS.TRUST', 't'], 'OK'],
  [['TAMIS.CHECK', 't', 'x', item, 'absent'], [1, 1, 0]], [['TAMIS.COUNT', 't'], 2],
  [['TAMIS.DEL', 't', 'x'], [1]], [['TAMIS.CHECK', 'none', 'x'], [-1]],
];
await call('FLUSHALL');
for (const [words, reply] of rows) assert.deepEqual(await call(...words), reply, String(words));
await call('FLUSHALL');
const pipeline = redis.pipeline();
for (const [words] of rows) pipeline.call(...words);
const replies = await pipeline.exec();
rows.forEach(([words, reply], i) => assert.deepEqual(replies[i], [null, reply], String(words)));
await assert.rejects(call('BF.RESERVE', 'b', '0.01', '1000'), /item exists/);
// Chunks are bytes.
let at = '0';
for (;;) {
  const [next, data] = await redis.callBuffer('BF.SCANDUMP', 'b', at);
  if (Number(next) === 0) break;
  at = String(next);
  assert.equal(await call('BF.LOADCHUNK', 'copy', at, data), 'OK');
}
assert.equal(await call('BF.EXISTS', 'copy', item), 1);
assert.equal(await call('BF.EXISTS', 'copy', 'absent'), 0);
for (const line of readFileSync(process.argv[3], 'utf8').trim().split('\n')) {
  const [expected, ...words] = line.split(' ');
  const got = await call(...words).then(() => 'ok', () => 'error');
  assert.equal(got, expected, line);
}
await redis.quit();
