// npm centrifuge, as published, in JSON and in Protobuf: history, positions and recovery of what was missed.
// In: one server with Centrifugo's keys for history → out: the events the SDK reports.
// May use the SDK's public interface and the server API only; never looks at bytes.
// The rules by themselves are tested in crates/node; everything without history in sdk.test.js.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { Log, eventually, start, token } from '../server.js';
import { ENCODINGS, connect, next, sdk, subscribe } from './clients.js';

const open = {
  allow_subscribe_for_client: true,
  allow_publish_for_subscriber: true,
  allow_history_for_subscriber: true,
  history_size: 100,
  history_ttl: '300s',
};

let server;

before(async () => {
  server = await start({
    channel: {
      without_namespace: { allow_subscribe_for_client: true },
      namespaces: [
        { name: 'recovery', ...open, force_recovery: true },
        { name: 'smallhistory', ...open, history_size: 2, force_recovery: true },
        { name: 'wide', ...open, history_size: 1000, force_recovery: true },
        { name: 'positioned', ...open, force_positioning: true, allow_recovery: true },
        { name: 'wished', ...open, allow_history_for_client: true },
        { name: 'cache', ...open, force_recovery: true, force_recovery_mode: 'cache' },
        { name: 'auto', ...open, force_recovery: true, force_recovery_mode: 'cache', auto_cache_recover: true },
      ],
    },
  });
});

after(() => server?.stop());

for (const encoding of ENCODINGS) {
  describe(`npm centrifuge in ${encoding.name}`, () => {
    const name = (channel) => `${channel}-${encoding.name}`;
    const numbers = (items) => items.map((item) => encoding.value(item.data).n);
    const someone = (t, claims = {}) => sdk(t, server, encoding, { token: token({ sub: '42', ...claims }) });

    test('a page of history is what was asked for', async (t) => {
      const client = someone(t);
      await connect(client);
      const channel = name('recovery:pages');
      const { subscription } = await subscribe(client, channel);
      await publish(channel, 1, 6);
      const all = await subscription.history({ limit: -1 });
      assert.deepEqual(numbers(all.publications), [1, 2, 3, 4, 5, 6]);
      assert.deepEqual(all.publications.map((item) => item.offset), [1, 2, 3, 4, 5, 6]);
      assert.equal(all.offset, 6);
      assert.match(all.epoch, /^[a-zA-Z]{8}$/);
      const pages = [
        [{ limit: 2 }, [1, 2]],
        [{ limit: 2, reverse: true }, [6, 5]],
        [{ limit: 2, since: { offset: 2, epoch: all.epoch } }, [3, 4]],
        [{ limit: 2, since: { offset: 3, epoch: all.epoch }, reverse: true }, [2, 1]],
        [{ limit: 10, since: { offset: 6, epoch: all.epoch } }, []],
        [{}, []],
      ];
      for (const [options, expected] of pages) {
        const page = await subscription.history(options);
        assert.deepEqual(numbers(page.publications), expected, JSON.stringify(options));
        assert.equal(page.offset, 6);
      }
      const foreign = { limit: 1, since: { offset: 1, epoch: 'foreign' } };
      await assert.rejects(subscription.history(foreign), { code: 112 });
    });

    test('history is 108 where there is none and 103 without permission', async (t) => {
      const client = someone(t);
      await connect(client);
      const { subscription } = await subscribe(client, name('plain'));
      await assert.rejects(subscription.history({ limit: 1 }), { code: 108 });
      await assert.rejects(client.history(name('recovery:foreign'), { limit: 1 }), { code: 103 });
    });

    test('a first subscription learns its position', async (t) => {
      const client = someone(t);
      await connect(client);
      const channel = name('recovery:first');
      await publish(channel, 1, 3);
      const subscription = client.newSubscription(channel);
      const subscribed = next(subscription, 'subscribed');
      subscription.subscribe();
      const { recoverable, positioned, wasRecovering, recovered, streamPosition } = await subscribed;
      assert.deepEqual(
        { recoverable, positioned, wasRecovering, recovered, offset: streamPosition.offset },
        { recoverable: true, positioned: true, wasRecovering: false, recovered: false, offset: 3 },
      );
    });

    test('what was published while a client was away is recovered, again and again', async (t) => {
      const client = someone(t);
      await connect(client);
      const channel = name('recovery:away');
      const { subscription, publications } = await subscribe(client, channel);
      for (let round = 0; round < 5; round += 1) {
        await publish(channel, round * 10 + 1, round * 10 + 3);
        await publications.count(round * 10 + 3);
        const disconnected = next(client, 'disconnected');
        client.disconnect();
        await disconnected;
        await publish(channel, round * 10 + 4, round * 10 + 10);
        const subscribed = next(subscription, 'subscribed');
        client.connect();
        const { wasRecovering, recovered } = await subscribed;
        assert.deepEqual({ wasRecovering, recovered }, { wasRecovering: true, recovered: true });
        await publications.count(round * 10 + 10);
      }
      const items = await publications.count(50);
      assert.deepEqual(numbers(items), [...Array(50).keys()].map((n) => n + 1));
      assert.deepEqual(items.map((item) => item.offset), numbers(items));
    });

    test('what another client published between unsubscribe and subscribe is recovered', async (t) => {
      const [client, other] = [someone(t), someone(t)];
      await Promise.all([connect(client), connect(other)]);
      const channel = name('recovery:unsubscribed');
      const { subscription, publications } = await subscribe(client, channel);
      const publisher = (await subscribe(other, channel)).subscription;
      subscription.unsubscribe();
      for (const n of [1, 2, 3]) await publisher.publish(encoding.payload({ n }));
      const subscribed = next(subscription, 'subscribed');
      subscription.subscribe();
      assert.equal((await subscribed).recovered, true);
      await publisher.publish(encoding.payload({ n: 4 }));
      const items = await publications.count(4);
      assert.deepEqual(numbers(items), [1, 2, 3, 4]);
      assert.equal(items[0].info.user, '42');
    });

    test('more than is kept is not recovered, and live publications go on', async (t) => {
      const client = someone(t);
      await connect(client);
      const channel = name('smallhistory:lost');
      const { subscription, publications } = await subscribe(client, channel);
      await publish(channel, 1, 1);
      await publications.count(1);
      client.disconnect();
      await publish(channel, 2, 6);
      const subscribed = next(subscription, 'subscribed');
      client.connect();
      const { wasRecovering, recovered, streamPosition } = await subscribed;
      assert.deepEqual({ wasRecovering, recovered }, { wasRecovering: true, recovered: false });
      assert.equal(streamPosition.offset, 6);
      await publish(channel, 7, 7);
      assert.deepEqual(numbers(await publications.count(2)), [1, 7]);
    });

    test('a client that knows a position from elsewhere recovers from it', async (t) => {
      const channel = name('recovery:since');
      await publish(channel, 1, 4);
      const { epoch } = await server.api('history', { channel });
      const client = someone(t);
      await connect(client);
      const { publications } = await subscribe(client, channel, { since: { offset: 2, epoch } });
      assert.deepEqual(numbers(await publications.count(2)), [3, 4]);
    });

    test('a position from the future or of a foreign epoch is not recovered, and 112 to getState', async (t) => {
      const channel = name('recovery:impossible');
      await publish(channel, 1, 3);
      const { epoch } = await server.api('history', { channel });
      const impossible = [{ offset: 2 ** 40, epoch }, { offset: 1, epoch: 'foreign' }];
      for (const since of impossible) {
        const client = someone(t);
        await connect(client);
        const subscription = client.newSubscription(channel, { since });
        const subscribed = next(subscription, 'subscribed');
        subscription.subscribe();
        const { wasRecovering, recovered, streamPosition } = await subscribed;
        assert.deepEqual({ wasRecovering, recovered }, { wasRecovering: true, recovered: false });
        assert.deepEqual(streamPosition, { offset: 3, epoch });
      }
      const states = [...impossible, { offset: 1, epoch }];
      const client = someone(t);
      await connect(client);
      const { publications } = await subscribe(client, channel, { getState: async () => states.shift() });
      assert.deepEqual(numbers(await publications.count(2)), [2, 3]);
      assert.deepEqual(states, []);
    });

    test('getState is called once, not after a recovery, and again when recovery is impossible', async (t) => {
      const client = someone(t);
      await connect(client);
      const channel = name('smallhistory:state');
      let calls = 0;
      const getState = async () => {
        calls += 1;
        const { offset, epoch } = await server.api('history', { channel });
        return { offset, epoch };
      };
      const { subscription, publications } = await subscribe(client, channel, { getState });
      assert.equal(calls, 1);
      await awayWhile(client, subscription, () => publish(channel, 1, 2));
      await publications.count(2);
      assert.equal(calls, 1, 'recovery made it needless');
      await awayWhile(client, subscription, () => publish(channel, 3, 7));
      assert.equal(calls, 2, 'error 112 made it needed');
      await publish(channel, 8, 8);
      assert.deepEqual(numbers(await publications.count(3)), [1, 2, 8]);
    });

    test('recovery is the client\'s wish where it may read history', async (t) => {
      const client = someone(t);
      await connect(client);
      for (const channel of [name('wished:channel'), name('positioned:channel')]) {
        const { subscription, publications } = await subscribe(client, channel, {
          recoverable: true,
          positioned: true,
        });
        const { recovered } = await awayWhile(client, subscription, () => publish(channel, 1, 3));
        assert.equal(recovered, true);
        assert.deepEqual(numbers(await publications.count(3)), [1, 2, 3]);
      }
    });

    test('recovery is the client\'s wish in insecure mode, too', async (t) => {
      const insecure = await start({
        client: { insecure: true },
        channel: { without_namespace: { history_size: 10, history_ttl: '60s', force_positioning: true } },
      });
      t.after(() => insecure.stop());
      const client = sdk(t, insecure, encoding);
      await connect(client);
      const wish = { recoverable: true, positioned: true };
      const { subscription, publications } = await subscribe(client, 'wished', wish);
      const { recovered } = await awayWhile(client, subscription, async () => {
        for (const n of [1, 2, 3]) await insecure.api('publish', { channel: 'wished', data: { n } });
      });
      assert.equal(recovered, true);
      assert.deepEqual(numbers(await publications.count(3)), [1, 2, 3]);
    });

    test('a positioned subscription knows its position and does not recover', async (t) => {
      const client = someone(t);
      await connect(client);
      const channel = name('positioned:only');
      const { subscription } = await subscribe(client, channel);
      const again = await awayWhile(client, subscription, () => publish(channel, 1, 3));
      const { positioned, recoverable, wasRecovering, streamPosition } = again;
      assert.deepEqual(
        { positioned, recoverable, wasRecovering, offset: streamPosition.offset },
        { positioned: true, recoverable: false, wasRecovering: false, offset: 3 },
      );
    });

    test('an invalidated state is not recovered', async (t) => {
      const user = name('invalid');
      const client = someone(t, { sub: user });
      await connect(client);
      const channel = name('recovery:invalid');
      const { subscription } = await subscribe(client, channel);
      await publish(channel, 1, 2);
      const subscribed = next(subscription, 'subscribed');
      await server.api('disconnect', { user, disconnect: { code: 3014, reason: 'state invalidated' } });
      const { wasRecovering, recovered, streamPosition } = await subscribed;
      assert.deepEqual({ wasRecovering, recovered }, { wasRecovering: true, recovered: false });
      assert.equal(streamPosition.offset, 2);
    });

    test('a subscription of the server recovers after a reconnect', async (t) => {
      const channel = name('recovery:server');
      const client = someone(t, { channels: [channel] });
      const publications = new Log(client, 'publication');
      const first = next(client, 'subscribed');
      await connect(client);
      assert.equal((await first).recoverable, true);
      await publish(channel, 1, 1);
      await publications.count(1);
      const disconnected = next(client, 'disconnected');
      client.disconnect();
      await disconnected;
      await publish(channel, 2, 4);
      const subscribed = next(client, 'subscribed');
      client.connect();
      const { wasRecovering, recovered } = await subscribed;
      assert.deepEqual({ wasRecovering, recovered }, { wasRecovering: true, recovered: true });
      await publish(channel, 5, 5);
      assert.deepEqual(numbers(await publications.count(5)), [1, 2, 3, 4, 5]);
    });

    test('a cache brings the newest publication only, in auto mode at the first subscribe', async (t) => {
      const client = someone(t);
      await connect(client);
      const channel = name('cache:channel');
      const { subscription, publications } = await subscribe(client, channel);
      const { recovered } = await awayWhile(client, subscription, () => publish(channel, 1, 5));
      assert.equal(recovered, true);
      assert.deepEqual(numbers(await publications.count(1)), [5]);
      const auto = name('auto:channel');
      await publish(auto, 1, 3);
      const first = await subscribe(client, auto);
      assert.deepEqual(numbers(await first.publications.count(1)), [3]);
    });

    test('removed history is not recovered', async (t) => {
      const client = someone(t);
      await connect(client);
      const channel = name('recovery:removed');
      const { subscription } = await subscribe(client, channel);
      const { wasRecovering, recovered, streamPosition } = await awayWhile(client, subscription, async () => {
        await publish(channel, 1, 3);
        await server.api('history_remove', { channel });
      });
      assert.deepEqual({ wasRecovering, recovered }, { wasRecovering: true, recovered: false });
      assert.equal(streamPosition.offset, 3);
    });

    test('300 missed publications are recovered in one reply and 301 are not', async (t) => {
      const client = someone(t);
      await connect(client);
      const channel = name('wide:limit');
      const { subscription, publications } = await subscribe(client, channel);
      const full = await awayWhile(client, subscription, () => publish(channel, 1, 300));
      assert.equal(full.recovered, true);
      assert.equal((await publications.count(300)).at(-1).offset, 300);
      const more = await awayWhile(client, subscription, () => publish(channel, 301, 601));
      assert.equal(more.recovered, false);
    });

    test('a subscriber whose stream was lost is told 2500 and subscribes again by itself', async (t) => {
      const small = await start({
        client: { insecure: true },
        channel: {
          history_memory_max: 1_048_576,
          without_namespace: { ...open, history_size: 10, force_recovery: true },
        },
      });
      t.after(() => small.stop());
      const client = sdk(t, small, encoding);
      await connect(client);
      const { subscription, publications } = await subscribe(client, 'lost');
      const { epoch } = await small.api('publish', { channel: 'lost', data: { n: 1 } });
      await publications.count(1);
      const subscribing = next(subscription, 'subscribing');
      const subscribed = next(subscription, 'subscribed');
      let round = 0;
      await eventually(async () => {
        round += 1;
        // Many between two looks: a stream that is looked at is in use, and outlives some that are not.
        const channels = [...Array(3000).keys()].map((n) => `other-${round}-${n}`);
        await small.api('broadcast', { channels, data: 'x'.repeat(1000) });
        return (await small.api('history', { channel: 'lost' })).epoch !== epoch;
      }, 'loss of the stream');
      await small.api('publish', { channel: 'lost', data: { n: 2 } });
      assert.equal((await subscribing).code, 2500);
      const { wasRecovering, recovered } = await subscribed;
      assert.deepEqual({ wasRecovering, recovered }, { wasRecovering: true, recovered: false });
      await small.api('publish', { channel: 'lost', data: { n: 3 } });
      assert.deepEqual(numbers(await publications.count(2)), [1, 3]);
    });
  });
}

/** Publishes `{n}` for every number from `first` to `last`, in order. */
async function publish(channel, first, last) {
  for (let n = first; n <= last; n += 1) {
    const { offset } = await server.api('publish', { channel, data: { n } });
    assert.ok(offset > 0);
  }
}

/** Disconnects, does `work`, connects again and returns the context of the subscription's return. */
async function awayWhile(client, subscription, work) {
  const disconnected = next(client, 'disconnected');
  client.disconnect();
  await disconnected;
  await work();
  const subscribed = next(subscription, 'subscribed');
  client.connect();
  return subscribed;
}
