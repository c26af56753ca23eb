// Maps on two nodes with one Redis, under `kill -9` of a node or of the Redis, and npm centrifuge on both nodes.
// In: changes without a pause, a kill in each round → out: after each round every client has the state of the server.
// May use the SDK's public interface and the server API only; never looks into the Redis.
// The engine's own random faults are in crates/redis/tests/it/map_soak.rs. FANWIRE_MAP_KILLS=20 makes twenty rounds.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { balance } from '../balancer.js';
import { startRedis } from '../redis.js';
import { eventually, start } from '../server.js';
import { ENCODINGS, connect, next, sdk } from './clients.js';

const ROUNDS = Number(process.env.FANWIRE_MAP_KILLS ?? 2);
const KEYS = 300;
const LANES = 4;
const BOARDS = ['kept:board', 'short:board'];

function settings({ address }) {
  const kept = { mode: 'persistent', stream_size: 2000 };
  const deltas = { allowed_delta_types: ['fossil'], delta_publish: true };
  return {
    engine: { type: 'redis', redis: { address, io_timeout: '1s' } },
    health: { enabled: true },
    client: { insecure: true },
    channel: {
      namespaces: [
        { name: 'kept', subscription_type: 'map', map: kept, ...deltas },
        { name: 'short', subscription_type: 'map', map: { mode: 'ephemeral', key_ttl: '600s' } },
      ],
    },
  };
}

/** A client of a board, and its entries as a program keeps them. */
async function mirror(t, balancer, encoding, channel) {
  const client = sdk(t, balancer, encoding);
  await connect(client);
  const delta = channel.startsWith('kept') ? { delta: 'fossil' } : {};
  const options = { ...delta, minResubscribeDelay: 50, maxResubscribeDelay: 200 };
  const subscription = client.newMapSubscription(channel, options);
  const board = { channel, entries: new Map(), recovered: 0, synchronised: 0 };
  const put = (entry) => board.entries.set(entry.key, encoding.value(entry.data));
  subscription.on('subscribed', ({ recovered }) => (board.recovered += recovered ? 1 : 0));
  subscription.on('sync', ({ entries }) => {
    board.synchronised += 1;
    board.entries.clear();
    entries.forEach(put);
  });
  subscription.on('update', (update) => {
    if (update.removed) board.entries.delete(update.key);
    else put(update);
  });
  const synchronised = next(subscription, 'sync');
  subscription.subscribe();
  await synchronised;
  return board;
}

/**
 * Changes all boards until it is stopped, a few keys at once: `key N` is only set, `passing N` is set and removed. What fails, because a
 * node or the Redis is gone, counts as neither done nor not done.
 */
function pour(nodes) {
  const load = { acknowledged: 0, offsets: new Map() };
  let [tried, isOver] = [0, false];
  const change = async () => {
    const n = (tried += 1);
    const channel = BOARDS[n % BOARDS.length];
    const number = Math.floor(Math.random() * KEYS);
    const key = n % 3 === 0 ? `passing ${number}` : `key ${number}`;
    const method = n % 9 === 0 ? 'map_remove' : 'map_publish';
    const data = method === 'map_publish' ? { data: { n, text: 'x'.repeat(60) } } : {};
    const reply = await nodes[(n >> 1) % nodes.length].apiReply(method, { channel, key, ...data }).catch(() => undefined);
    if (!reply?.result) return;
    load.acknowledged += 1;
    if (key.startsWith('key') && reply.result.offset) load.offsets.set(key, Math.max(reply.result.offset, load.offsets.get(key) ?? 0));
  };
  const lane = async () => {
    while (!isOver) await change();
  };
  const lanes = Promise.all(Array.from({ length: LANES }, lane));
  load.stop = () => {
    isOver = true;
    return lanes;
  };
  load.more = (count) => {
    const enough = load.acknowledged + count;
    return eventually(() => load.acknowledged >= enough, `${count} changes`);
  };
  return load;
}

/** Waits until a client has the newest change, and compares all entries with those of the server. */
async function compare(node, boards, round) {
  for (const channel of BOARDS) {
    const mark = { channel, key: 'last', data: { round } };
    await eventually(async () => (await node.apiReply('map_publish', mark)).result, 'Redis to be back');
    const { entries } = await node.api('map_read_state', { channel, limit: -1 });
    const expect = new Map(entries.map(({ key, data }) => [key, data]));
    for (const board of boards.filter((one) => one.channel === channel)) {
      await eventually(() => board.entries.get('last')?.round === round, `the last change of ${channel}`);
      assert.deepEqual(sorted(board.entries), sorted(expect), `${channel} in round ${round}`);
    }
  }
}

const sorted = (entries) => [...entries].sort(([one], [other]) => (one < other ? -1 : 1));

/** No change that was acknowledged is missing: the Redis syncs each write. */
async function assertKept(node, { offsets }) {
  const { entries } = await node.api('map_read_state', { channel: BOARDS[0], limit: -1 });
  const stored = new Map(entries.map(({ key, offset }) => [key, offset]));
  for (const [key, offset] of offsets) assert.ok(stored.get(key) >= offset, `${key} has ${stored.get(key)}, not ${offset}`);
}

describe('maps of two nodes', () => {
  test('a client has the state of the server after a node or the Redis was killed', async (t) => {
    const redis = await startRedis('--appendonly', 'yes', '--appendfsync', 'always');
    t.after(() => redis.stop());
    const nodes = await Promise.all([start(settings(redis)), start(settings(redis))]);
    t.after(() => Promise.all(nodes.map((node) => node.stop())));
    const balancers = await Promise.all(nodes.map((node) => balance(t, node)));
    const boards = [];
    for (const balancer of balancers) {
      for (const encoding of ENCODINGS) {
        for (const channel of BOARDS) boards.push(await mirror(t, balancer, encoding, channel));
      }
    }
    for (let round = 1; round <= ROUNDS; round += 1) {
      const load = pour(nodes);
      t.after(load.stop);
      await load.more(100);
      if (round % 2 === 0) {
        await redis.kill();
        await redis.start();
      } else {
        const killed = Math.floor(Math.random() * nodes.length);
        balancers[killed].target = nodes[1 - killed];
        await nodes[killed].stop('SIGKILL');
        nodes[killed] = await start(settings(redis));
        balancers[killed].target = nodes[killed];
      }
      await load.more(100);
      await load.stop();
      await compare(nodes[0], boards, round);
      await assertKept(nodes[1], load);
    }
    const count = (what) => boards.reduce((sum, board) => sum + board[what], 0);
    t.diagnostic(`${ROUNDS} kills: ${count('recovered')} recoveries, ${count('synchronised')} states were read again`);
    assert.ok(count('synchronised') > boards.length, 'kills had an effect');
  });
});
