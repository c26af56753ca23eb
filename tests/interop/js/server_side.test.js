// npm centrifuge, as published, in JSON and in Protobuf: subscriptions the server makes and ends, and lifetimes it gives.
// In: servers with personal channels and short grace → out: the events of the SDK.
// May use the SDK's public interface and the server API only; never looks at bytes.
// The rules by themselves are tested in crates/node/tests/it (orders, personal, expiry).

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { Log, start, token } from '../server.js';
import { ENCODINGS, connect, next, sdk, subscribe } from './clients.js';

let server;
let single;

before(async () => {
  const grace = { expired_close_delay: '0s', expired_sub_close_delay: '0s' };
  const personal = { enabled: true };
  const history = { history_size: 100, history_ttl: '300s', force_recovery: true };
  server = await start({
    client: { ...grace, subscribe_to_user_personal_channel: personal },
    channel: {
      namespaces: [
        { name: 'closed' },
        { name: 'kept', ...history },
        { name: 'room', presence: true, join_leave: true, force_push_join_leave: true },
      ],
    },
  });
  single = await start({
    client: {
      subscribe_to_user_personal_channel: {
        enabled: true,
        personal_channel_namespace: 'own',
        single_connection: true,
      },
    },
    channel: { namespaces: [{ name: 'own' }] },
  });
});

after(async () => {
  await server?.stop();
  await single?.stop();
});

const inSeconds = (seconds) => Math.floor(Date.now() / 1000) + seconds;

for (const encoding of ENCODINGS) {
  describe(`npm centrifuge in ${encoding.name}`, () => {
    const user = (name) => `${name}-${encoding.name}`;

    /** A connected client of a user, with what it hears as a whole. */
    async function someone(t, name, { claims = {}, on = server, ...options } = {}) {
      const issue = () => token({ sub: user(name), ...claims });
      const client = sdk(t, on, encoding, { getToken: async () => issue(), ...options });
      const log = (event) => new Log(client, event);
      const heard = { subscribed: log('subscribed'), unsubscribed: log('unsubscribed'), publications: log('publication') };
      const connected = await connect(client);
      return { client, id: connected.client, ...heard };
    }

    const values = (publications) => publications.map(({ data }) => encoding.value(data));

    test('a user hears what is published into its personal channel', async (t) => {
      const [ada, other] = [await someone(t, 'ada'), await someone(t, 'eve')];
      const channel = `#${user('ada')}`;
      const [subscribed] = await ada.subscribed.count(1);
      assert.equal(subscribed.channel, channel);
      await server.api('publish', { channel, data: { for: 'ada' } });
      const [publication] = await ada.publications.count(1);
      assert.equal(publication.channel, channel);
      assert.deepEqual(encoding.value(publication.data), { for: 'ada' });
      await server.api('publish', { channel: `#${user('eve')}`, data: 2 });
      assert.deepEqual(values(await other.publications.count(1)), [2]);
      assert.deepEqual(values(ada.publications.items), [{ for: 'ada' }]);
    });

    test('channels of the token and the personal one stand side by side', async (t) => {
      const ada = await someone(t, 'tokens', { claims: { subs: { 'closed:a': { data: { from: 'token' } } } } });
      const all = await ada.subscribed.count(2);
      const channels = all.map(({ channel }) => channel).sort();
      assert.deepEqual(channels, [`#${user('tokens')}`, 'closed:a']);
      const { data } = all.find(({ channel }) => channel === 'closed:a');
      assert.deepEqual(encoding.value(data), { from: 'token' });
    });

    test('the API subscribes a connection, again without effect, and unsubscribes it', async (t) => {
      const ada = await someone(t, 'order');
      await ada.subscribed.count(1);
      const order = { user: user('order'), channel: 'closed:order' };
      await server.api('subscribe', { ...order, data: { why: 'api' } });
      await server.api('subscribe', { ...order, data: 'again' });
      await server.api('publish', { channel: order.channel, data: 1 });
      await ada.publications.count(1);
      const [, subscribed, ...more] = ada.subscribed.items;
      assert.equal(subscribed.channel, order.channel);
      assert.deepEqual(encoding.value(subscribed.data), { why: 'api' });
      assert.deepEqual(more, []);
      await server.api('unsubscribe', order);
      const [unsubscribed] = await ada.unsubscribed.count(1);
      assert.equal(unsubscribed.channel, order.channel);
      await server.api('publish', { channel: order.channel, data: 2 });
      await server.api('publish', { channel: `#${user('order')}`, data: 3 });
      assert.deepEqual(values(await ada.publications.count(2)), [1, 3]);
    });

    test('the API subscribes one client of several', async (t) => {
      const [first, second] = [await someone(t, 'several'), await someone(t, 'several')];
      await server.api('subscribe', { user: user('several'), client: second.id, channel: 'closed:one' });
      await second.subscribed.count(2);
      await server.api('publish', { channel: `#${user('several')}`, data: 'end' });
      await first.publications.count(1);
      assert.equal(first.subscribed.items.length, 1);
    });

    test('a subscription of the API recovers since a position, and after a reconnect', async (t) => {
      const channel = `kept:${user('recovery')}`;
      for (const data of [1, 2, 3]) await server.api('publish', { channel, data });
      const { epoch } = await server.api('history', { channel });
      const ada = await someone(t, 'recovery', { claims: { channels: [channel] } });
      await ada.subscribed.count(2);
      await server.api('unsubscribe', { user: user('recovery'), channel });
      await ada.unsubscribed.count(1);
      const recover_since = { offset: 1, epoch };
      await server.api('subscribe', { user: user('recovery'), channel, recover_since });
      await server.api('publish', { channel, data: 4 });
      assert.deepEqual(values(await ada.publications.count(3)), [2, 3, 4]);
      const disconnected = next(ada.client, 'disconnected');
      ada.client.disconnect();
      await disconnected;
      await server.api('publish', { channel, data: 5 });
      await connect(ada.client);
      await server.api('publish', { channel, data: 6 });
      assert.deepEqual(values(await ada.publications.count(5)), [2, 3, 4, 5, 6]);
    });

    test('a subscription of the API is present and announced, with its info', async (t) => {
      const channel = `room:${encoding.name}`;
      const [ada, bob] = [await someone(t, 'watcher'), await someone(t, 'guest')];
      const [joins, leaves] = [new Log(ada.client, 'join'), new Log(ada.client, 'leave')];
      await server.api('subscribe', { user: user('watcher'), channel });
      await joins.count(1);
      await server.api('subscribe', { user: user('guest'), channel, info: { seat: 7 } });
      const [, joined] = await joins.count(2);
      assert.equal(joined.info.client, bob.id);
      assert.deepEqual(encoding.value(joined.info.chanInfo), { seat: 7 });
      const { presence } = await server.api('presence', { channel });
      assert.deepEqual(presence[bob.id].chan_info, { seat: 7 });
      await server.api('unsubscribe', { user: user('guest'), channel });
      await leaves.count(1);
      assert.deepEqual(await server.api('presence_stats', { channel }), { num_clients: 1, num_users: 1 });
    });

    test('a subscription of the API that expires closes the connection with 3006, and the SDK returns', async (t) => {
      const ada = await someone(t, 'expiring');
      const lost = next(ada.client, 'connecting');
      await server.api('subscribe', { user: user('expiring'), channel: 'closed:short', expire_at: inSeconds(2) });
      assert.equal((await lost).code, 3006);
      await next(ada.client, 'connected');
    });

    test('a client subscription with a short lifetime ends with 2501 and is made anew', async (t) => {
      const { client } = await someone(t, 'short');
      const channel = 'closed:short';
      const issue = (exp) => token({ sub: user('short'), channel, ...(exp && { exp }) });
      let ended;
      const { subscription } = await subscribe(client, channel, {
        token: issue(inSeconds(2)),
        getToken: async () => {
          await ended; // on purpose too late for a refresh
          return issue();
        },
      });
      ended = next(subscription, 'subscribing');
      const again = ended.then(() => next(subscription, 'subscribed'));
      assert.equal((await ended).code, 2501);
      await again;
    });

    test('the API refreshes a connection, which lives on, and ends one as expired', async (t) => {
      const ada = await someone(t, 'refreshed');
      await server.api('refresh', { user: user('refreshed'), expire_at: inSeconds(3600), info: { name: 'Ada' } });
      await server.api('subscribe', { user: user('refreshed'), channel: 'room:refreshed' });
      await ada.subscribed.count(2);
      const { presence } = await server.api('presence', { channel: 'room:refreshed' });
      assert.deepEqual(presence[ada.id].conn_info, { name: 'Ada' });
      const lost = next(ada.client, 'connecting');
      await server.api('refresh', { user: user('refreshed'), expired: true });
      assert.equal((await lost).code, 3005);
      await next(ada.client, 'connected');
    });

    test('a refresh with a short end closes the connection with 3005', async (t) => {
      const { client } = await someone(t, 'hurried');
      const lost = next(client, 'connecting');
      await server.api('refresh', { user: user('hurried'), expire_at: inSeconds(2) });
      assert.equal((await lost).code, 3005);
    });

    test('with single_connection the newest connection of a user stays', async (t) => {
      const first = await someone(t, 'single', { on: single });
      const ended = next(first.client, 'disconnected');
      const second = await someone(t, 'single', { on: single });
      assert.equal((await ended).code, 3504);
      await single.api('publish', { channel: `own:#${user('single')}`, data: 1 });
      assert.deepEqual(values(await second.publications.count(1)), [1]);
    });
  });
}
