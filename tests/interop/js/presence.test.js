// npm centrifuge, as published, in JSON and in Protobuf: who is in a channel, and who comes and goes.
// In: one server with Centrifugo's keys for presence → out: the results and events the SDK reports.
// May use the SDK's public interface and the server API only; never looks at bytes.
// The rules by themselves are tested in crates/node.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { Log, start, token } from '../server.js';
import { ENCODINGS, connect, next, sdk, subscribe } from './clients.js';

let server;

before(async () => {
  const open = { allow_subscribe_for_client: true };
  const seen = { ...open, presence: true, allow_presence_for_subscriber: true };
  server = await start({
    channel: {
      without_namespace: open,
      namespaces: [
        { name: 'room', ...seen, join_leave: true },
        { name: 'forced', ...seen, join_leave: true, force_push_join_leave: true },
        { name: 'closed', ...open, presence: true, join_leave: true },
      ],
    },
  });
});

after(() => server?.stop());

for (const encoding of ENCODINGS) {
  describe(`npm centrifuge in ${encoding.name}`, () => {
    const name = (channel) => `${channel}-${encoding.name}`;

    /** A connected client of a user, with its client id. */
    async function someone(t, user) {
      const client = sdk(t, server, encoding, { token: token({ sub: user, info: { name: user } }) });
      const { client: id } = await connect(client);
      return { client, id };
    }

    async function gone(subscription) {
      const unsubscribed = next(subscription, 'unsubscribed');
      subscription.unsubscribe();
      await unsubscribed;
    }

    test('presence counts whoever is subscribed, at once', async (t) => {
      const channel = name('room:count');
      const [ada, bob] = [await someone(t, 'ada'), await someone(t, 'bob')];
      const { subscription } = await subscribe(ada.client, channel);
      assert.deepEqual(await subscription.presenceStats(), { numClients: 1, numUsers: 1 });
      const other = (await subscribe(bob.client, channel)).subscription;
      const { clients } = await subscription.presence();
      assert.deepEqual(Object.keys(clients).sort(), [ada.id, bob.id].sort());
      assert.equal(clients[bob.id].user, 'bob');
      assert.equal(clients[bob.id].client, bob.id);
      assert.deepEqual(encoding.value(clients[bob.id].connInfo), { name: 'bob' });
      assert.deepEqual(await subscription.presenceStats(), { numClients: 2, numUsers: 2 });
      const told = (await server.api('presence', { channel })).presence;
      assert.deepEqual(told[ada.id], { user: 'ada', client: ada.id, conn_info: { name: 'ada' } });
      await gone(other);
      await assert.rejects(bob.client.presenceStats(channel), { code: 103 }); // the server knows, too
      assert.deepEqual(await server.api('presence_stats', { channel }), { num_clients: 1, num_users: 1 });
      await gone(subscription);
      await assert.rejects(ada.client.presenceStats(channel), { code: 103 });
      assert.deepEqual(await server.api('presence_stats', { channel }), { num_clients: 0, num_users: 0 });
      assert.deepEqual(await server.api('presence', { channel }), { presence: {} });
    });

    test('presence is 108 where there is none and 103 without permission', async (t) => {
      const { client } = await someone(t, 'ada');
      for (const [channel, code] of [[name('plain'), 108], [name('closed:room'), 103]]) {
        const { subscription } = await subscribe(client, channel);
        await assert.rejects(subscription.presence(), { code });
        await assert.rejects(subscription.presenceStats(), { code });
      }
      assert.equal((await server.apiReply('presence', { channel: 'plain' })).error.code, 108);
    });

    for (const [namespace, options] of [['room', { joinLeave: true }], ['forced', {}]]) {
      test(`joins and leaves arrive in ${namespace}`, async (t) => {
        const channel = name(`${namespace}:doors`);
        const [ada, bob] = [await someone(t, 'ada'), await someone(t, 'bob')];
        const subscription = ada.client.newSubscription(channel, options);
        const [joins, leaves] = [new Log(subscription, 'join'), new Log(subscription, 'leave')];
        const subscribed = next(subscription, 'subscribed');
        subscription.subscribe();
        await subscribed;
        const { subscription: other } = await subscribe(bob.client, channel);
        const [own, joined] = await joins.count(2);
        assert.deepEqual([own.info.client, joined.info.client], [ada.id, bob.id]);
        assert.deepEqual([joined.channel, joined.info.user], [channel, 'bob']);
        assert.deepEqual(encoding.value(joined.info.connInfo), { name: 'bob' });
        await gone(other);
        const [left] = await leaves.count(1);
        assert.deepEqual([left.info.client, left.info.user], [bob.id, 'bob']);
        const resubscribed = next(other, 'subscribed');
        other.subscribe();
        await resubscribed;
        await joins.count(3);
        bob.client.disconnect();
        const [, gone2] = await leaves.count(2);
        assert.equal(gone2.info.client, bob.id);
      });
    }

    test('nobody hears of joins without asking or without permission', async (t) => {
      const ada = await someone(t, 'ada');
      for (const [channel, options] of [['room:deaf', {}], ['closed:deaf', { joinLeave: true }]]) {
        const subscription = ada.client.newSubscription(name(channel), options);
        const joins = new Log(subscription, 'join');
        const publications = new Log(subscription, 'publication');
        const subscribed = next(subscription, 'subscribed');
        subscription.subscribe();
        await subscribed;
        await server.api('publish', { channel: name(channel), data: {} });
        await publications.count(1);
        assert.deepEqual(joins.items, []);
      }
    });
  });
}
