// usage: node node_redis.mjs PORT EVERY_COMMAND
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {createClient} from 'redis';

for (const RESP of [2, 3]) {
  const client = createClient({url: `redis://127.0.0.1:${process.argv[2]}`, RESP});
  client.on('error', (error) => { throw error; });
  await client.connect();
  await client.sendCommand(['FLUSHALL']);
  const {bf, cf} = client;
  assert.equal(await bf.reserve('b', 0.01, 1000, {EXPANSION: 2}), 'OK');
  assert.equal(await bf.add('b', 'x'), true);
  assert.equal(await bf.add('b', 'x'), false);
  assert.deepEqual(await bf.mAdd('b', ['x', 'y']), [false, true]);
  assert.deepEqual(await bf.insert('i', ['x', 'y'], {CAPACITY: 100, ERROR: 0.1}), [true, true]);
  assert.equal(await bf.exists('b', 'x'), true);
  assert.deepEqual(await bf.mExists('b', ['x', 'absent']), [true, false]);
  assert.equal(await bf.card('b'), 2);
  assert.equal((await bf.info('b'))['Number of items inserted'], 2);
  await assert.rejects(bf.reserve('b', 0.01, 1000), /item exists/);
  const dump = await bf.scanDump('b', 0);
  assert.equal(dump.iterator, 1);
  assert.equal(await cf.reserve('c', 1000, {BUCKETSIZE: 4}), 'OK');
  assert.equal(await cf.add('c', 'x'), true);
  assert.equal(await cf.addNX('c', 'x'), false);
  assert.deepEqual(await cf.insert('c', ['y', 'z']), [true, true]);
  assert.deepEqual((await cf.insertNX('c', ['y', 'new'])).map(Number), [0, 1]);
  assert.equal(await cf.exists('c', 'x'), true);
  assert.equal(await cf.count('c', 'x'), 1);
  assert.equal(await cf.del('c', 'x'), true);
  assert.equal((await cf.info('c'))['Number of items inserted'], 3);
  const call = (...words) => client.sendCommand(words);
  assert.equal(await call('TAMIS.RESERVE', 't', '0.01', '1000', 'GUARD'), 'OK');
  assert.deepEqual(await call('TAMIS.ADD', 't', 'x', Buffer.from([0, 13, 10, 255])), [1, 1]);
  assert.deepEqual(await call('TAMIS.CHECK', 't', 'x'), [-1]);
  assert.equal(await call('TAMIS.TRUST', 't'), 'OK');
  const both = await Promise.all([call('TAMIS.CHECK', 't', 'x', 'absent'),
    call('TAMIS.CHECK', 't', Buffer.from([0, 13, 10, 255])), call('TAMIS.CHECK', 'none', 'x')]);
  assert.deepEqual(both, [[1, 0], [1], [-1]]);
  const replies = await client.multi().addCommand(['TAMIS.DEL', 't', 'x']).bf.exists('b', 'y').exec();
  assert.deepEqual(replies, [[1], true]);
  for (const line of readFileSync(process.argv[3], 'utf8').trim().split('\n')) {
    const [expected, ...words] = line.split(' ');
    const got = await call(...words).then(() => 'ok', () => 'error');
    assert.equal(got, expected, line);
  }
  await client.close();
}
