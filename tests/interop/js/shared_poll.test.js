// npm centrifuge, as published, in JSON and in Protobuf: keys that the server polls from a backend.
// In: a server, a backend that answers polls → out: the values that the SDK reports, and what the backend was asked.
// May use the SDK's public interface and the server API only; never looks at bytes.
// The suite of the SDK itself has more cases; the dialogues are tested in crates/node/tests/it/shared_poll.rs.

import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { describe, test } from 'node:test';

import { HttpBackend, seconds } from '../backends.js';
import { startRedis } from '../redis.js';
import { Log, eventually, start } from '../server.js';
import { ENCODINGS, connect, next, sdk } from './clients.js';

const SECRET = 'interop-poll-secret';

/** A backend with values by key, and the settings of a server that polls it. */
async function prices(t, more = {}) {
  const values = new Map();
  const item = ({ key }) => (values.has(key) ? [{ key, ...values.get(key) }] : []);
  const backend = await HttpBackend.start(t, {
    '/poll': ({ body }) => ({ result: { items: body.items.flatMap(item) } }),
  });
  const poll = { proxy_name: 'prices', refresh_interval: '100ms' };
  const kind = { subscription_type: 'shared_poll', allow_subscribe_for_client: true };
  const settings = {
    client: { insecure: true },
    prometheus: { enabled: true },
    shared_poll: { hmac_secret_key: SECRET },
    proxies: [{ name: 'prices', endpoint: backend.url('/poll') }],
    channel: {
      namespaces: [
        { name: 'compared', ...kind, shared_poll: poll },
        { name: 'counted', ...kind, shared_poll: { ...poll, mode: 'versioned', publish_enabled: true } },
      ],
    },
    ...more,
  };
  return { backend, values, settings };
}

/** A signature of the backend for the anonymous user. */
function signature(channel, keys) {
  const [from, to] = [seconds(), seconds(3600)];
  const digest = createHash('sha256').update(keys.join('\0')).digest('hex');
  const text = [from, to, '', channel, digest].join('\0');
  return `${from}:${to}:${createHmac('sha256', SECRET).update(text).digest('hex')}`;
}

/** A subscription that tracks these keys, with a log of the updates. */
async function tracking(t, server, encoding, channel, keys) {
  const client = sdk(t, server, encoding);
  await connect(client);
  const getSignature = async (context) => ({ keys: context.keys, signature: signature(channel, context.keys) });
  const subscription = client.newSharedPollSubscription(channel, { getSignature });
  const updates = new Log(subscription, 'update');
  const subscribed = next(subscription, 'subscribed');
  subscription.subscribe();
  await subscribed;
  subscription.track(keys);
  const price = (key, expected) =>
    updates.find((update) => update.key === key && !update.removed && encoding.value(update.data).p === expected, `${key} ${expected}`);
  return { client, subscription, updates, price };
}

for (const encoding of ENCODINGS) {
  describe(`shared polls with npm centrifuge in ${encoding.name}`, () => {
    for (const namespace of ['compared', 'counted']) {
      test(`values of ${namespace} come, change, go, and come again after a reconnect`, async (t) => {
        const { values, settings } = await prices(t);
        const server = await start(settings);
        t.after(() => server.stop());
        const channel = `${namespace}:${encoding.name}`;
        values.set('A', { data: { p: 1 }, version: 1 });
        const { client, updates, price } = await tracking(t, server, encoding, channel, ['A', 'B']);
        await price('A', 1);
        values.set('A', { data: { p: 2 }, version: 2 });
        values.set('B', { data: { p: 7 }, version: 1 });
        await price('A', 2);
        await price('B', 7);
        client.disconnect();
        values.set('A', { data: { p: 3 }, version: 3 });
        const returned = next(client, 'connected');
        client.connect();
        await returned;
        await price('A', 3);
        values.set('B', { removed: true });
        await updates.find((update) => update.key === 'B' && update.removed, 'the removal');
      });
    }
  });
}

test('a key is polled once in an interval, however many clients track it', async (t) => {
  const { backend, values, settings } = await prices(t);
  const server = await start(settings);
  t.after(() => server.stop());
  values.set('A', { data: { p: 1 }, version: 1 });
  const open = () => tracking(t, server, ENCODINGS[0], 'counted:many', ['A']);
  const clients = await Promise.all(Array.from({ length: 20 }, open));
  await Promise.all(clients.map(({ price }) => price('A', 1)));
  const before = backend.at('/poll').length;
  const calls = await backend.count('/poll', before + 10);
  assert.ok(calls.every(({ body }) => body.items.length === 1), 'one key');
  const page = await (await fetch(`${server.http}/metrics`)).text();
  assert.match(page, /fanwire_proxy_[a-z_]+\{[^}]*type="shared_poll_refresh"[^}]*\} [1-9]/);
});

test('a value that is published reaches the clients of both nodes', async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const { settings } = await prices(t, { engine: { type: 'redis', redis: { address: redis.address } } });
  const nodes = await Promise.all([start(settings), start(settings)]);
  for (const node of nodes) {
    t.after(() => node.stop());
    await eventually(async () => (await node.api('info')).nodes.length === 2, 'both nodes to know each other');
  }
  const open = (node) => tracking(t, node, ENCODINGS[0], 'counted:both', ['A']);
  const clients = await Promise.all(nodes.map(open));
  // A client has tracked its key when its value arrives; publishing it again does no harm.
  await eventually(async () => {
    await nodes[0].api('shared_poll_publish', { channel: 'counted:both', key: 'A', data: { p: 9 }, version: 5 });
    return clients.every(({ updates }) => updates.items.length > 0);
  }, 'both clients to have the value');
  for (const { updates, price } of clients) {
    await price('A', 9);
    assert.equal(updates.items.length, 1, 'once');
  }
});
