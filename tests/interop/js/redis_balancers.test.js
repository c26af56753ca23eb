// Nodes behind a balancer: deploy/haproxy.cfg, and the nginx configuration of docs/scaling.md.
// In: 50 clients of npm centrifuge, every fifth over HTTP streaming, and a node that drains → out: all come back without a failed attempt.
// May use the SDK, and haproxy and nginx out of Debian's packages.
// What a node does while it drains is tested in crates/server, framing through nginx in streams.test.js.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import WebSocket from 'ws';

import { inCharge } from '../children.js';
import { startHaproxy, withoutHaproxy } from '../haproxy.js';
import { startNginxWith, withoutNginx } from '../nginx.js';
import { freePort } from '../ports.js';
import { startRedis } from '../redis.js';
import { API_KEY, Log, PATIENCE_MS, eventually, start, token, within } from '../server.js';
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
  await drain(t, (nodes) => startNginxOfThePage(t, nodes));
});

/** A client may send any text as `Forwarded`; the balancer says who it is. */
const CLIENT = '127.0.0.9';
const LIES = ['x', 'for=192.0.2.7', 'for=192.0.2.7, for="[2001:db8::7]:47";proto=https'];

for (const [name, missing, startBalancer] of [
  ['HAProxy', withoutHaproxy(), startHaproxy],
  ['nginx', withoutNginx(), startNginxOfThePage],
]) {
  test(`${name}: a client cannot hide its address with the header Forwarded`, { skip: missing }, async (t) => {
    const server = await start({
      http_stream: { enabled: true },
      health: { enabled: true },
      http_server: { trusted_proxies: ['127.0.0.1'] },
    });
    t.after(() => server.stop());
    const { http } = await startBalancer(t, [server, server]);
    for (const lie of LIES) {
      const connect = JSON.stringify({ id: 1, connect: { token: token({ sub: lie }) } });
      // The client has another address than the balancer.
      const words = ['--silent', '--no-buffer', '--max-time', '20', '--interface', CLIENT, '--header', `Forwarded: ${lie}`];
      const client = inCharge(spawn('curl', [...words, '--data', connect, `${http}/connection/http_stream`]));
      t.after(() => client.kill());
      await within(once(client.stdout, 'data'), 'the answer to connect');
      const { connections } = await server.api('connections', { user: lie });
      const addresses = Object.values(connections).map(({ address }) => address.replace(/:\d+$/, ''));
      assert.deepEqual(addresses, [CLIENT]);
    }
  });
}

for (const [what, settings] of [
  ['with a port of their own for health and API', { http_server: { internal_port: String(await freePort()) }, health: { enabled: true } }],
  ['without health', {}],
  ['with health', { health: { enabled: true } }],
]) {
  test(`HAProxy: nodes ${what} are up`, { skip: withoutHaproxy() }, async (t) => {
    const server = await start(settings);
    t.after(() => server.stop());
    const balancer = await startHaproxy(t, [server, server]);
    assert.deepEqual(await balancer.checks(), Array.from({ length: 2 }, () => ({ status: 'UP', check: 'L7OK' })));
  });
}

test('HAProxy: metrics are not those of a random node', { skip: withoutHaproxy() }, async (t) => {
  const server = await start({ health: { enabled: true }, prometheus: { enabled: true } });
  t.after(() => server.stop());
  const { inside } = await startHaproxy(t, [server, server]);
  assert.equal((await fetch(`${server.http}/metrics`)).status, 200);
  const metrics = await fetch(`${inside}/metrics`);
  assert.equal(metrics.status, 404);
  assert.match(await metrics.text(), /ask each node/);
  const info = await fetch(`${inside}/api/info`, { method: 'POST', headers: { 'X-API-Key': API_KEY }, body: '{}' });
  assert.equal((await info.json()).result.nodes.length, 1);
});

/** Starts nginx with the configuration of the page, in front of two nodes. */
function startNginxOfThePage(t, [one, two]) {
  const page = readFileSync(new URL('../../../docs/scaling.md', import.meta.url), 'utf8');
  const [, snippet] = /^```\n(upstream .*?)^```$/ms.exec(page);
  const text = snippet.replace('10.0.0.11:8000', one.host).replace('10.0.0.12:8000', two.host);
  return startNginxWith(t, (port) => text.replace('443 ssl', `127.0.0.1:${port}`));
}

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
