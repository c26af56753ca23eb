// npm centrifuge, as published, in JSON and in Protobuf: tag filters of subscriptions.
// In: one server that allows filters → out: the publications the SDK reports.
// May use the SDK's public interface and the server API only; never looks at bytes.
// The operators by themselves are tested in crates/policy/src/filter.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { start } from '../server.js';
import { ENCODINGS, connect, next, sdk, subscribe } from './clients.js';

let server;

before(async () => {
  const history = { history_size: 100, history_ttl: '300s', force_recovery: true };
  server = await start({
    client: { insecure: true },
    channel: {
      namespaces: [
        { name: 'tagged', allow_tags_filter: true },
        { name: 'kept', allow_tags_filter: true, ...history },
        { name: 'cache', allow_tags_filter: true, ...history, force_recovery_mode: 'cache', auto_cache_recover: true },
        { name: 'plain' },
      ],
    },
  });
});

after(() => server?.stop());

/** Prices of a ticker that begins with A, or anything urgent. */
const FILTER = {
  op: 'or',
  nodes: [
    {
      op: 'and',
      nodes: [
        { key: 'ticker', cmp: 'sw', val: 'A' },
        { op: 'not', nodes: [{ key: 'price', cmp: 'lt', val: '10.5' }] },
        { key: 'market', cmp: 'in', vals: ['L', 'NY'] },
      ],
    },
    { key: 'urgent', cmp: 'ex' },
  ],
};

const PUBLICATIONS = [
  [{ ticker: 'AAPL', price: '10.50', market: 'NY' }, true],
  [{ ticker: 'AAPL', price: '9.99', market: 'NY' }, false],
  [{ ticker: 'GOOG', price: '100', market: 'NY' }, false],
  [{ ticker: 'GOOG', urgent: '' }, true],
  [{}, false],
  [{ ticker: 'A', price: '18446744073709551616', market: 'L' }, true],
  [{ ticker: 'A', price: '11', market: 'F' }, false],
];

for (const encoding of ENCODINGS) {
  describe(`npm centrifuge in ${encoding.name}`, () => {
    const name = (channel) => `${channel}-${encoding.name}`;
    const someone = async (t) => {
      const client = sdk(t, server, encoding);
      await connect(client);
      return client;
    };
    const values = (publications) => publications.map(({ data }) => encoding.value(data));

    /** Publishes everything, then something that every filter of these tests wants. */
    async function publishAll(channel) {
      for (const [index, [tags]] of PUBLICATIONS.entries()) {
        await server.api('publish', { channel, data: index, tags });
      }
      await server.api('publish', { channel, data: 'end', tags: { urgent: 'yes' } });
    }

    const matching = [...PUBLICATIONS.keys()].filter((index) => PUBLICATIONS[index][1]);
    const everything = [...PUBLICATIONS.keys()];

    test('a filter lets through what matches and spares others nothing', async (t) => {
      const channel = name('tagged:prices');
      const [ada, bob] = [await someone(t), await someone(t)];
      const chosen = (await subscribe(ada, channel, { tagsFilter: FILTER })).publications;
      const all = (await subscribe(bob, channel)).publications;
      await publishAll(channel);
      await chosen.find(({ data }) => encoding.value(data) === 'end', 'the end');
      await all.find(({ data }) => encoding.value(data) === 'end', 'the end');
      assert.deepEqual(values(chosen.items), [...matching, 'end']);
      assert.deepEqual(values(all.items), [...everything, 'end']);
      assert.deepEqual(chosen.items[0].tags, PUBLICATIONS[0][0]);
    });

    test('a filter that is changed counts from the next subscribe', async (t) => {
      const channel = name('tagged:changed');
      const client = await someone(t);
      const { subscription, publications } = await subscribe(client, channel, { tagsFilter: FILTER });
      const gone = next(subscription, 'unsubscribed');
      subscription.unsubscribe();
      await gone;
      subscription.setTagsFilter({ key: 'ticker', cmp: 'eq', val: 'GOOG' });
      const subscribed = next(subscription, 'subscribed');
      subscription.subscribe();
      await subscribed;
      await publishAll(channel);
      await server.api('publish', { channel, data: 'last', tags: { ticker: 'GOOG' } });
      await publications.find(({ data }) => encoding.value(data) === 'last', 'the last');
      assert.deepEqual(values(publications.items), [2, 3, 'last']);
    });

    test('recovery brings what matches, and what does not counts as seen', async (t) => {
      const channel = name('kept:prices');
      const client = await someone(t);
      const { subscription, publications } = await subscribe(client, channel, { tagsFilter: FILTER });
      await publishAll(channel);
      await publications.count(matching.length + 1);
      const disconnected = next(client, 'disconnected');
      client.disconnect();
      await disconnected;
      await publishAll(channel);
      const resubscribed = next(subscription, 'subscribed');
      client.connect();
      const { wasRecovering, recovered } = await resubscribed;
      assert.deepEqual({ wasRecovering, recovered }, { wasRecovering: true, recovered: true });
      await publishAll(channel);
      await publications.count(3 * (matching.length + 1));
      const round = [...matching, 'end'];
      assert.deepEqual(values(publications.items), [...round, ...round, ...round]);
    });

    test('the cache gives the newest match', async (t) => {
      const channel = name('cache:prices');
      await publishAll(channel);
      await server.api('publish', { channel, data: 'unseen', tags: { ticker: 'GOOG' } });
      const { publications } = await subscribe(await someone(t), channel, { tagsFilter: FILTER });
      await server.api('publish', { channel, data: 'live', tags: { urgent: 'yes' } });
      await publications.count(2);
      assert.deepEqual(values(publications.items), ['end', 'live']);
    });

    test('a filter that may not be, or is no filter, is 107', async (t) => {
      const client = await someone(t);
      const refused = async (channel, tagsFilter) => {
        const subscription = client.newSubscription(name(channel), { tagsFilter });
        const unsubscribed = next(subscription, 'unsubscribed');
        subscription.subscribe();
        assert.equal((await unsubscribed).code, 107);
        client.removeSubscription(subscription);
      };
      await refused('plain:a', FILTER);
      await refused('tagged:a', { key: 'a', cmp: 'eq' });
      let deep = { key: 'a', cmp: 'ex' };
      for (let level = 0; level < 30; level += 1) deep = { op: 'not', nodes: [deep] };
      await refused('tagged:a', deep);
    });
  });
}
