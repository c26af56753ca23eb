// npm centrifuge, as published, in JSON and in Protobuf: subscriptions to maps.
// In: one server with a persistent and an ephemeral map → out: the state and the events that the SDK reports.
// May use the SDK's public interface and the server API only; never looks at bytes.
// The dialogues behind them are tested in crates/node/tests/it/maps/.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { Log, start } from '../server.js';
import { ENCODINGS, connect, next, sdk } from './clients.js';

const KEYS = 250;

let server;

before(async () => {
  const map = { allow_publish_for_client: true, allow_remove_for_client: true };
  const deltas = { allowed_delta_types: ['fossil'], delta_publish: true };
  server = await start({
    client: { insecure: true },
    channel: {
      namespaces: [
        { name: 'kept', subscription_type: 'map', map: { ...map, mode: 'persistent' }, ...deltas },
        { name: 'short', subscription_type: 'map', map: { ...map, mode: 'ephemeral', key_ttl: '60s' } },
      ],
    },
  });
});

after(() => server?.stop());

const key = (n) => `key ${String(n).padStart(3, '0')}`;
const set = (channel, n, value) => server.api('map_publish', { channel, key: key(n), data: { n, value } });

/** A subscription, and its entries as a program keeps them: `sync` replaces them, `update` changes one. */
function mirrored(client, encoding, channel, options) {
  const subscription = client.newMapSubscription(channel, options);
  const entries = new Map();
  const put = (entry) => entries.set(entry.key, encoding.value(entry.data));
  subscription.on('sync', (context) => {
    entries.clear();
    context.entries.forEach(put);
  });
  subscription.on('update', (update) => {
    if (update.removed) entries.delete(update.key);
    else put(update);
  });
  const updates = new Log(subscription, 'update');
  return { subscription, entries, updates };
}

for (const encoding of ENCODINGS) {
  describe(`maps with npm centrifuge in ${encoding.name}`, () => {
    for (const [namespace, options] of [['kept', { delta: 'fossil' }], ['short', {}]]) {
      test(`a map of ${namespace} is read in pages, stays current and comes back`, async (t) => {
        const channel = `${namespace}:${encoding.name}`;
        for (let n = 0; n < KEYS; n += 1) await set(channel, n, 'first');
        const client = sdk(t, server, encoding);
        await connect(client);
        const { subscription, entries, updates } = mirrored(client, encoding, channel, options);
        const synchronised = next(subscription, 'sync');
        subscription.subscribe();
        await synchronised;
        assert.equal(entries.size, KEYS, 'all pages');

        await set(channel, 7, 'second');
        await server.api('map_remove', { channel, key: key(8) });
        await updates.find((update) => update.key === key(8), 'the removal');
        assert.deepEqual(entries.get(key(7)), { n: 7, value: 'second' });
        assert.equal(entries.size, KEYS - 1);
        await subscription.publish(key(9), encoding.payload({ n: 9, value: 'mine' }));
        await updates.find((update) => update.key === key(9), 'its own change');
        await subscription.remove(key(10));
        await updates.find((update) => update.key === key(10), 'its own removal');

        client.disconnect();
        await set(channel, 7, 'third');
        await server.api('map_remove', { channel, key: key(11) });
        const returned = next(subscription, 'subscribed');
        client.connect();
        const { recovered } = await returned;
        assert.equal(recovered, namespace === 'kept');
        await set(channel, 12, 'last');
        await updates.find((update) => update.key === key(12), 'a change after the return');
        assert.deepEqual(entries.get(key(7)), { n: 7, value: 'third' });
        assert.equal(entries.has(key(11)), false);
        assert.equal(entries.size, KEYS - 3);
      });
    }
  });
}
