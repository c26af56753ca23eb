// A rolling update as Kubernetes does it: a new node, then an old one goes, with the probes, times and hook of deploy/kubernetes.yaml.
// In: three nodes with Redis, clients of npm centrifuge on a node that is ready → out: no refusal, no loss, no storm.
// May use Node, the SDK and Redis. FANWIRE_ROLLOUT is the number of clients; from 1,000 on the times are those of the manifest.
// The times are those of the chart (deploy/helm/fanwire/values.yaml); what a node does while it drains is tested elsewhere.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import WebSocket from 'ws';

import { startRedis } from '../redis.js';
import { eventually, start, token, within } from '../server.js';
import { ENCODINGS } from './clients.js';

const CLIENTS = Number(process.env.FANWIRE_ROLLOUT ?? 0);
const IS_FULL = CLIENTS >= 1_000;
const MANIFEST = readFileSync(new URL('../../../deploy/kubernetes.yaml', import.meta.url), 'utf8');
const seconds = (pattern) => Number(pattern.exec(MANIFEST)?.[1] ?? assert.fail(`no ${pattern} in the manifest`));
const PRE_STOP_S = IS_FULL ? seconds(/preStop: { sleep: { seconds: (\d+)/) : 1;
const DRAIN_S = IS_FULL ? seconds(/drain_interval: (\d+)s/) : 4;
const GRACE_S = seconds(/terminationGracePeriodSeconds: (\d+)/);
const READINESS_S = IS_FULL ? seconds(/readinessProbe:[^]*?periodSeconds: (\d+)/) : 0.25;
const NODES = 3;
const WINDOW_S = IS_FULL ? 5 : 1;

const skip = CLIENTS === 0 && 'at length only, with FANWIRE_ROLLOUT=5000: it takes minutes';

test(`clients stay through a rollout of ${NODES} nodes`, { skip }, async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const service = new Service();
  const pods = [];
  for (let i = 0; i < NODES; i += 1) pods.push(await pod(t, redis, service));

  const clients = await connectAll(t, service);
  const publisher = publish(t, service);
  const connects = [];
  for (const { client } of clients) client.on('connected', () => connects.push(Date.now()));

  for (const old of pods.splice(0, NODES)) {
    pods.push(await pod(t, redis, service));
    const own = await old.server.connections();
    const from = connects.length;
    await terminate(old, service);
    // So many may come, when the drain is even; with few clients and a busy machine, just not nearly all at once.
    const allowed = IS_FULL ? (own / DRAIN_S) * 1.5 : own * 0.75;
    await eventually(() => connects.length - from >= own || undefined, `${own} clients to come back`, 30_000);
    const most = busiest(connects.slice(from));
    assert.ok(most <= allowed, `${most} connects in a second for ${own} clients over ${DRAIN_S} s`);
    t.diagnostic(`${own} clients left, at most ${most} connects in a second, ${Math.round(own / DRAIN_S)} on average`);
  }

  const published = await publisher.end();
  assert.equal(service.refused, 0, 'connections that no node took');
  for (const { client, offsets, wrong } of clients) {
    await eventually(() => (offsets.at(-1) === published ? true : undefined), `publication ${published}; the last is ${offsets.at(-1)}`, 30_000);
    assert.deepEqual(offsets, Array.from({ length: published }, (_, i) => i + 1), 'each publication once, in order');
    assert.deepEqual(wrong, []);
    client.disconnect();
  }
  await Promise.all(pods.map(({ server }) => server.stop('SIGKILL')));
});

/** The nodes that are ready, as EndpointSlices have them: clients get one of them. */
class Service {
  ready = new Set();
  refused = 0;

  get url() {
    const all = [...this.ready];
    return all[Math.floor(Math.random() * all.length)].server.websocket;
  }

  /** A WebSocket that goes where the service leads, whatever address the SDK has. */
  get socket() {
    const service = this;
    return class extends WebSocket {
      constructor(_, protocols) {
        super(service.url, protocols);
        this.once('error', () => (service.refused += 1));
      }
    };
  }
}

/** Starts a node and waits until the kubelet calls it ready; from then on it asks again and again. */
async function pod(t, redis, service) {
  const server = await start({
    engine: { type: 'redis', redis: { address: redis.address } },
    health: { enabled: true },
    shutdown: { drain_interval: `${DRAIN_S}s`, timeout: '30s' },
    channel: { namespaces: [{ name: 'news', history_size: 10_000, history_ttl: '600s', force_recovery: true, allow_subscribe_for_client: true }] },
    websocket: { compression_verify: false },
  });
  t.after(() => server.stop('SIGKILL'));
  const one = { server };
  const ask = async () => {
    const answer = await fetch(`${server.http}/health/ready`).catch(() => undefined);
    return answer?.status === 200;
  };
  await eventually(async () => (await ask()) || undefined, 'a node that is ready');
  service.ready.add(one);
  one.probe = setInterval(async () => {
    if (!(await ask())) service.ready.delete(one);
  }, READINESS_S * 1_000);
  t.after(() => clearInterval(one.probe));
  return one;
}

/** A pod is deleted: the service forgets it and its hook runs; then SIGTERM, and SIGKILL when it takes too long. */
async function terminate(one, service) {
  const begun = Date.now();
  clearInterval(one.probe);
  service.ready.delete(one);
  // The kubelet's hook, which does nothing but last.
  await eventually(() => Date.now() - begun >= PRE_STOP_S * 1_000 || undefined, 'the end of the hook', GRACE_S * 1_000);
  const exit = once(one.server.child, 'exit');
  one.server.child.kill('SIGTERM');
  await within(exit, 'the end of a pod', GRACE_S * 1_000 - (Date.now() - begun));
  await one.server.stop();
}

async function connectAll(t, service) {
  const [{ Centrifuge }] = ENCODINGS;
  const clients = [];
  for (let number = 0; number < CLIENTS; number += 1) {
    const client = new Centrifuge('ws://service/connection/websocket', {
      websocket: service.socket,
      token: token({ sub: `user${number}` }),
    });
    t.after(() => client.disconnect());
    const subscription = client.newSubscription('news:all');
    const [offsets, wrong] = [[], []];
    subscription.on('publication', ({ data }) => offsets.push(data.number));
    subscription.on('subscribed', ({ wasRecovering, recovered }) => {
      if (wasRecovering && !recovered) wrong.push('not recovered');
    });
    const subscribed = new Promise((resolve) => subscription.once('subscribed', resolve));
    subscription.subscribe();
    client.connect();
    clients.push({ client, offsets, wrong, subscribed });
    if (number % 100 === 99) await Promise.all(clients.slice(-100).map((one) => one.subscribed));
  }
  await Promise.all(clients.map((one) => one.subscribed));
  return clients;
}

/** Publishes one message after the other, four a second, through a node that is ready. */
function publish(t, service) {
  let number = 0;
  let last = Promise.resolve();
  const timer = setInterval(() => {
    number += 1;
    const data = { number };
    last = last.then(() => [...service.ready][0].server.api('publish', { channel: 'news:all', data }));
  }, IS_FULL ? 1_000 : 250);
  t.after(() => clearInterval(timer));
  return {
    async end() {
      clearInterval(timer);
      await last;
      return number;
    },
  };
}

/** The most of `times` in a second, on average over some seconds: this process stops for tenths of one with so many clients. */
function busiest(times) {
  let [most, first] = [0, 0];
  for (let last = 0; last < times.length; last += 1) {
    while (times[last] - times[first] >= WINDOW_S * 1_000) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return Math.round(most / WINDOW_S);
}
