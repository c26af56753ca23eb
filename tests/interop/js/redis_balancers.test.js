// Two nodes behind a balancer, one of which drains: deploy/haproxy.cfg, and the nginx configuration of docs/scaling.md.
// In: 50 clients of npm centrifuge, every fifth over HTTP streaming → out: all come back without a failed attempt.
// May use the SDK, and haproxy and nginx out of Debian's packages.
// What a node does while it drains is tested in crates/server, framing through nginx in streams.test.js.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import WebSocket from 'ws';

import { startHaproxy, withoutHaproxy } from '../haproxy.js';
import { startNginxWith, withoutNginx } from '../nginx.js';
import { startRedis } from '../redis.js';
import { Log, PATIENCE_MS, eventually, start } from '../server.js';
import { ENCODINGS, connect, sdk, subscribe } from './clients.js';

const CLIENTS = 50;
/** Long enough that the draining node is the one with the fewest connections for most clients. */
const DRAIN = '2s';
const [JSON_SDK] = ENCODINGS;

test('HAProxy: 50 clients of a draining node come back without a failed attempt', async (t) => {
  const missing = withoutHaproxy();
  if (missing) return t.skip(missing);
  await drain(t, (nodes) => startHaproxy(t, nodes));
});

test('nginx: 50 clients of a draining node come back without a failed attempt', async (t) => {
  const missing = withoutNginx();
  if (missing) return t.skip(missing);
  const page = readFileSync(new URL('../../../docs/scaling.md', import.meta.url), 'utf8');
  const [, snippet] = /^```\n(upstream .*?)^```$/ms.exec(page);
  const blocks = ([one, two], port) =>
    snippet.replace('10.0.0.11:8000', one.host).replace('10.0.0.12:8000', two.host).replace('443 ssl', `127.0.0.1:${port}`);
  await drain(t, (nodes) => startNginxWith(t, (port) => blocks(nodes, port)));
});

async function drain(t, startBalancer) {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const nodes = await Promise.all([node(t, redis), node(t, redis)]);
  await eventually(async () => (await nodes[0].api('info')).nodes.length === 2, 'both nodes to know each other');
  const balancer = await startBalancer(nodes);
  const clients = Array.from({ length: CLIENTS }, (_, number) => client(t, balancer, number));
  await Promise.all(clients.map(connect));
  const publications = await Promise.all(clients.map(async (one) => (await subscribe(one, 'all')).publications));
  const own = await nodes[0].connections();
  assert.ok(own > CLIENTS / 4, `${own} connections of the first node`);

  const failed = clients.map((one) => new Log(one, 'error'));
  const moved = clients.map((one) => new Log(one, 'connected'));
  const stopped = nodes[0].stop();
  const movedCount = () => moved.filter(({ items }) => items.length > 0).length;
  await eventually(() => movedCount() === own, `${own} clients to come back`, 3 * PATIENCE_MS);
  assert.deepEqual(failed.flatMap(({ items }) => items.map(({ error }) => error)), []);
  assert.ok(moved.every(({ items }) => items.length <= 1), 'no client moves twice');
  assert.equal(await stopped, 0);
  assert.equal(await nodes[1].connections(), CLIENTS);

  for (const [number, one] of clients.entries()) {
    if (isStream(number)) await one.publish('all', { number });
  }
  await Promise.all(publications.map((log) => log.count(CLIENTS / 5)));
}

async function node(t, redis) {
  const made = await start({
    client: { insecure: true },
    http_stream: { enabled: true },
    health: { enabled: true },
    shutdown: { drain_interval: DRAIN },
    channel: { without_namespace: { history_size: 100, history_ttl: '60s', force_recovery: true } },
    engine: { type: 'redis', redis: { address: redis.address } },
  });
  t.after(() => made.stop());
  return made;
}

const isStream = (number) => number % 5 === 0;

function client(t, balancer, number) {
  const stream = { transport: 'http_stream', endpoint: `${balancer.http}/connection/http_stream` };
  const socket = { transport: 'websocket', endpoint: balancer.websocket };
  const endpoints = [isStream(number) ? stream : socket];
  return sdk(t, { websocket: endpoints }, JSON_SDK, {
    emulationEndpoint: `${balancer.http}/emulation`,
    websocket: WebSocket,
    fetch,
    readableStream: ReadableStream,
  });
}
