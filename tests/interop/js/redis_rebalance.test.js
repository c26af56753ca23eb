// A node that is added gets its share of the clients (cluster.rebalance).
// In: clients of npm centrifuge on one node with Redis, HAProxy, a second node → out: half of them there, nothing lost, each moved once.
// May use the SDK, Redis, and haproxy out of Debian's packages. FANWIRE_REBALANCE is the number of clients.
// When a node begins and ends is tested in crates/cluster, which clients leave in crates/node.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import WebSocket from 'ws';

import { startHaproxy, withoutHaproxy } from '../haproxy.js';
import { freePort } from '../ports.js';
import { startRedis } from '../redis.js';
import { eventually, start } from '../server.js';
import { checkAll, followAll, publishInTurn } from './followers.js';

const CLIENTS = Number(process.env.FANWIRE_REBALANCE ?? 200);
/** A node that has just started does not count for 10 s, and HAProxy checks it before. */
const LIMIT_MS = 60_000;
/** Clients a second. More of them are not back before the node accepts clients again. */
const EVACUATION_RATE = 500;

test(`half of ${CLIENTS} clients go to a node that is added, and all when the other one is evacuated`, { skip: withoutHaproxy() }, async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const port = await freePort();
  const full = await node(t, redis, 0);
  const balancer = await startHaproxy(t, [full, { host: `127.0.0.1:${port}` }], CLIENTS + 500);
  const clients = await followAll(t, CLIENTS, balancer.websocket, { websocket: WebSocket });
  const publisher = publishInTurn(t, () => full);
  const moves = clients.map(({ client }) => new Moves(client));
  assert.equal(await full.connections(), CLIENTS);

  const begun = performance.now();
  const added = await node(t, redis, port);
  const isOver = (line) => line.includes('no more clients are sent to other nodes');
  await eventually(() => full.lines.some(isOver), 'the end of the rebalance', LIMIT_MS);
  const counts = await eventually(async () => {
    const both = [await full.connections(), await added.connections()];
    return both[0] + both[1] === CLIENTS && both;
  }, 'all clients', LIMIT_MS);
  const took = performance.now() - begun;

  assert.ok(took <= LIMIT_MS && counts.every((count) => count >= CLIENTS * 0.45), `${counts} after ${took} ms`);
  assert.deepEqual(moves.filter(({ pauses }) => pauses.length > 1), [], 'no client moves twice');
  assert.deepEqual(new Set(moves.flatMap(({ codes }) => codes)), new Set([3001]));
  const pauses = moves.flatMap((one) => one.pauses).sort((one, other) => one - other);
  const p99 = pauses[Math.floor(pauses.length * 0.99)];
  t.diagnostic(`${counts} clients after ${(took / 1_000).toFixed(1)} s; ${pauses.length} moved, away for ${Math.round(p99)} ms at p99`);

  const [{ uid }] = (await full.api('info')).nodes;
  await added.api('evacuate', { node: uid, rate: EVACUATION_RATE });
  await eventually(async () => (await added.connections()) === CLIENTS, 'all clients on the other node', LIMIT_MS);
  await checkAll(clients, await publisher.end());
});

/** The codes with which a client left its node, and how long each time until it was connected again, in milliseconds. */
class Moves {
  codes = [];
  pauses = [];

  constructor(client) {
    let left;
    client.on('connecting', ({ code }) => {
      this.codes.push(code);
      left = performance.now();
    });
    client.on('connected', () => this.pauses.push(performance.now() - left));
  }
}

async function node(t, redis, port) {
  const server = await start({
    http_server: { port },
    engine: { type: 'redis', redis: { address: redis.address } },
    health: { enabled: true },
    cluster: { rebalance: { enabled: true, min_age: '0s' } },
    channel: { namespaces: [{ name: 'news', history_size: 10_000, history_ttl: '600s', force_recovery: true, allow_subscribe_for_client: true }] },
    websocket: { compression_verify: false },
  });
  t.after(() => server.stop('SIGKILL'));
  return server;
}
