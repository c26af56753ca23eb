// npm centrifuge, as published, in JSON and in Protobuf: the order of calls, refusals, and what comes twice.
// In: one development server and one with tokens → out: the events the SDK reports.
// May use the SDK's public interface and the server API only; never looks at bytes.
// An ordinary day is in sdk.test.js, recovery in recovery.test.js; what no SDK sends in raw.test.js.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { after, before, describe, test } from 'node:test';

import WebSocket from 'ws';

import { Log, start, token } from '../server.js';
import { ENCODINGS, connect, next, sdk, subscribe } from './clients.js';

const seconds = () => Math.floor(Date.now() / 1000);
const open = { allow_subscribe_for_client: true, allow_history_for_subscriber: true };

let insecure;
let strict;

before(async () => {
  const history = { history_size: 100, history_ttl: '300s', force_recovery: true };
  const anonymous = {
    ...open,
    allow_subscribe_for_anonymous: true,
    allow_publish_for_client: true,
    allow_publish_for_anonymous: true,
  };
  [insecure, strict] = await Promise.all([
    start({ client: { insecure: true } }),
    start({
      channel: {
        without_namespace: { ...open, ...history },
        namespaces: [{ name: 'anonymous', ...anonymous }],
      },
    }),
  ]);
});

after(() => Promise.all([insecure?.stop(), strict?.stop()]));

/** A WebSocket class that tells `watcher` of every `sent` command and of every `open`. */
function watched(watcher) {
  return class extends WebSocket {
    constructor(...parameters) {
      super(...parameters);
      this.on('open', () => watcher.emit('open'));
    }

    send(data, ...more) {
      super.send(data, ...more);
      watcher.emit('sent', this);
    }
  };
}

for (const encoding of ENCODINGS) {
  describe(`npm centrifuge in ${encoding.name}`, () => {
    const name = (channel) => `${channel}-${encoding.name}`;
    const someone = (t, user) => sdk(t, strict, encoding, { token: token({ sub: user }) });
    const numbers = (items) => items.map((item) => encoding.value(item.data).n);

    test('what was subscribed before connect is there, what was unsubscribed at once is not', async (t) => {
      const client = sdk(t, insecure, encoding);
      const [stays, goes] = ['stays', 'goes'].map((channel) => client.newSubscription(name(channel)));
      const publications = new Log(stays, 'publication');
      const subscribed = next(stays, 'subscribed');
      stays.subscribe();
      goes.subscribe();
      client.once('connected', () => goes.unsubscribe());
      await connect(client);
      await subscribed;
      await assert.rejects(client.rpc('fence', encoding.payload({})), { code: 108 });
      const { channels } = await insecure.api('channels', { pattern: name('goes') });
      assert.deepEqual(channels, {});
      await insecure.api('publish', { channel: name('stays'), data: { n: 1 } });
      assert.deepEqual(numbers(await publications.count(1)), [1]);
    });

    test('unsubscribing between the connect command and its reply leaves nothing behind', async (t) => {
      const watcher = new EventEmitter();
      const client = sdk(t, insecure, encoding, { websocket: watched(watcher) });
      const subscription = client.newSubscription(name('between'));
      const subscribed = new Log(subscription, 'subscribed');
      const sent = next(watcher, 'sent');
      subscription.subscribe();
      const connected = connect(client);
      await sent;
      subscription.unsubscribe();
      await connected;
      await assert.rejects(client.rpc('fence', encoding.payload({})), { code: 108 });
      assert.deepEqual(subscribed.items, []);
      assert.deepEqual((await insecure.api('channels', { pattern: name('between') })).channels, {});
    });

    test('an expired token is renewed on an insecure server, too', async (t) => {
      let asked = 0;
      const client = sdk(t, insecure, encoding, {
        token: token({ sub: '42', exp: seconds() - 10 }),
        getToken: async () => {
          asked += 1;
          return token({ sub: '42', exp: seconds() + 3600 });
        },
      });
      await connect(client);
      assert.equal(asked, 1);
    });

    test('an application that refuses a token ends the connection with 1 before the server hears of it', async (t) => {
      const watcher = new EventEmitter();
      const [commands, opened] = [new Log(watcher, 'sent'), new Log(watcher, 'open')];
      const getToken = async () => {
        throw new encoding.UnauthorizedError();
      };
      const client = sdk(t, strict, encoding, { getToken, websocket: watched(watcher) });
      const disconnected = next(client, 'disconnected');
      client.connect();
      assert.equal((await disconnected).code, 1);
      assert.deepEqual([commands.items, opened.items], [[], []]);
    });

    test('an application that refuses a subscription token ends the subscription with 1', async (t) => {
      const client = someone(t, '42');
      await connect(client);
      const getToken = async () => {
        throw new encoding.UnauthorizedError();
      };
      const subscription = client.newSubscription('$refused', { getToken });
      const unsubscribed = next(subscription, 'unsubscribed');
      subscription.subscribe();
      assert.equal((await unsubscribed).code, 1);
    });

    test('a subscription token for another user ends with 3500', async (t) => {
      const client = someone(t, '42');
      await connect(client);
      const disconnected = next(client, 'disconnected');
      const foreign = token({ sub: '43', channel: '$mine' });
      client.newSubscription('$mine', { token: foreign }).subscribe();
      assert.equal((await disconnected).code, 3500);
    });

    test('a token without a subject is that of an anonymous user', async (t) => {
      const client = sdk(t, strict, encoding, { token: token({ exp: seconds() + 3600 }) });
      const { client: id } = await connect(client);
      const { subscription, publications } = await subscribe(client, name('anonymous:own'));
      await subscription.publish(encoding.payload({ n: 1 }));
      const [{ info }] = await publications.count(1);
      assert.deepEqual([info.user, info.client], ['', id]);
    });

    test('channels that cannot be are 102 or 107, whatever is asked', async (t) => {
      const client = someone(t, '42');
      await connect(client);
      for (const [channel, code] of [['nowhere:x', 102], ['x'.repeat(256), 107], ['straße', 107]]) {
        const subscription = client.newSubscription(channel);
        const unsubscribed = next(subscription, 'unsubscribed');
        subscription.subscribe();
        assert.equal((await unsubscribed).code, code);
        await assert.rejects(client.publish(channel, encoding.payload({})), { code });
        await assert.rejects(client.history(channel, { limit: 1 }), { code });
        await assert.rejects(client.presence(channel), { code });
        await assert.rejects(client.presenceStats(channel), { code });
      }
    });

    test('a page of history beyond its ends', async (t) => {
      const client = someone(t, '42');
      await connect(client);
      const channel = name('beyond');
      const { subscription } = await subscribe(client, channel);
      for (const n of [1, 2, 3]) await strict.api('publish', { channel, data: { n } });
      const { epoch } = await subscription.history();
      const since = (offset, of = epoch) => ({ limit: 10, since: { offset, epoch: of } });
      for (const [options, count] of [
        [{ limit: -7 }, 3],
        [{ limit: 2 ** 31 - 1 }, 3],
        [since(0, ''), 3],
        [since(2 ** 40), 0],
        [{ ...since(1), reverse: true }, 0],
      ]) {
        const { publications, offset } = await subscription.history(options);
        assert.deepEqual([publications.length, offset], [count, 3], JSON.stringify(options));
      }
      await assert.rejects(subscription.history(since(2 ** 40, 'foreign')), { code: 112 });
      await assert.rejects(subscription.history({ ...since(0), reverse: true }), { code: 107 });
    });

    test('an insecure server takes subscription tokens and does without them', async (t) => {
      const client = sdk(t, insecure, encoding);
      await connect(client);
      await subscribe(client, name('$with'), { token: token({ sub: '', channel: name('$with') }) });
      await subscribe(client, name('without'));
      const bare = client.newSubscription('$without');
      const unsubscribed = next(bare, 'unsubscribed');
      bare.subscribe();
      assert.equal((await unsubscribed).code, 103);
    });

    test('five subscriptions with tokens come back after a reconnect', async (t) => {
      const user = name('five');
      const client = someone(t, user);
      await connect(client);
      const channels = [1, 2, 3, 4, 5].map((n) => `$test${n}-${encoding.name}`);
      const subs = await Promise.all(
        channels.map((channel) => subscribe(client, channel, { token: token({ sub: user, channel }) })),
      );
      const again = subs.map(({ subscription }) => next(subscription, 'subscribed'));
      await strict.api('disconnect', { user, disconnect: { code: 4001, reason: 'come back' } });
      await Promise.all(again);
      await strict.api('broadcast', { channels, data: { n: 7 } });
      for (const { publications } of subs) assert.deepEqual(numbers(await publications.count(1)), [7]);
    });

    test('a client has one subscription of a channel, and it comes and goes as often as one likes', async (t) => {
      const client = sdk(t, insecure, encoding);
      await connect(client);
      const channel = name('loop');
      const { subscription, publications } = await subscribe(client, channel);
      assert.throws(() => client.newSubscription(channel));
      for (let n = 0; n < 20; n += 1) {
        await insecure.api('publish', { channel, data: { n } });
        await publications.count(n + 1);
        subscription.unsubscribe();
        await assert.rejects(client.rpc('fence', encoding.payload({})), { code: 108 });
        await insecure.api('publish', { channel, data: { n: 'unheard' } });
        const subscribed = next(subscription, 'subscribed');
        subscription.subscribe();
        await subscribed;
      }
      assert.deepEqual(numbers(publications.items), [...Array(20).keys()]);
    });

    test('the range of a disconnect code decides whether the client comes back', async (t) => {
      for (const [code, comesBack] of [
        [3001, true],
        [3499, true],
        [3500, false],
        [3501, false],
        [3999, false],
        [4000, true],
        [4499, true],
        [4500, false],
        [4999, false],
      ]) {
        const user = `${encoding.name}-${code}`;
        const client = someone(t, user);
        await connect(client);
        const event = next(client, comesBack ? 'connecting' : 'disconnected');
        const connected = comesBack && next(client, 'connected');
        await strict.api('disconnect', { user, disconnect: { code, reason: 'told to' } });
        assert.deepEqual(await event, { code, reason: 'told to' });
        await connected;
      }
    });

    test('no server at the address is a transport error, and the client tries again', async (t) => {
      const client = sdk(t, { websocket: 'ws://127.0.0.1:1/connection/websocket' }, encoding); // no program listens there
      const errors = new Log(client, 'error');
      client.connect();
      const [first, second] = await errors.count(2);
      assert.deepEqual([first.error.code, second.error.code], [2, 2]);
      assert.equal(client.state, 'connecting');
    });

    test('getState that fails is called again', async (t) => {
      const client = someone(t, '42');
      await connect(client);
      const channel = name('state');
      await strict.api('publish', { channel, data: { n: 1 } });
      let calls = 0;
      const getState = async () => {
        calls += 1;
        if (calls < 3) throw new Error('not yet');
        const { offset, epoch } = await strict.api('history', { channel });
        return { offset, epoch };
      };
      const { publications } = await subscribe(client, channel, { getState });
      assert.equal(calls, 3);
      await strict.api('publish', { channel, data: { n: 2 } });
      assert.deepEqual(numbers(await publications.count(1)), [2]);
    });

    test('publications during subscribe are heard once, in order, whenever they come', async (t) => {
      const client = someone(t, '42');
      await connect(client);
      const channel = name('racing');
      const subscription = client.newSubscription(channel, { since: { offset: 0, epoch: '' } });
      const publications = new Log(subscription, 'publication');
      const subscribed = new Log(subscription, 'subscribed');
      let left = 200;
      const publisher = (async () => {
        for (; left > 0; left -= 1) await strict.api('publish', { channel, data: { n: 200 - left } });
      })();
      subscription.subscribe();
      for (let round = 1; round < 10; round += 1) {
        await subscribed.count(round);
        subscription.unsubscribe();
        subscription.subscribe();
      }
      await publisher;
      const heard = await publications.count(200);
      assert.deepEqual(numbers(heard), [...Array(200).keys()]);
      assert.deepEqual(subscribed.items.map(({ recovered }) => recovered).slice(1).includes(false), false);
    });
  });
}

test('Protobuf clients publish bytes that are not JSON', async (t) => {
  const client = sdk(t, insecure, ENCODINGS[1]);
  await connect(client);
  const { subscription, publications } = await subscribe(client, 'test');
  await subscription.publish(new TextEncoder().encode('boom'));
  const [{ data }] = await publications.count(1);
  assert.equal(new TextDecoder().decode(data), 'boom');
});

test('what is not JSON never leaves a JSON client, and no data at all is 107', async (t) => {
  const client = sdk(t, insecure, ENCODINGS[0]);
  await connect(client);
  const { subscription, publications } = await subscribe(client, 'json-only');
  await assert.rejects(subscription.publish({ n: 1n }), { code: 10 });
  await assert.rejects(subscription.publish(undefined), { code: 107 });
  await subscription.publish({ n: 2 });
  assert.deepEqual((await publications.count(1)).map(({ data }) => data), [{ n: 2 }]);
});

test('ids come back twice where a client uses them twice, and a length may be split over fragments', async (t) => {
  const socket = new WebSocket(insecure.websocket, 'centrifuge-protobuf', { perMessageDeflate: false });
  t.after(() => socket.terminate());
  const messages = new Log(socket, 'message');
  await next(socket, 'open');
  // A connect command with a name of 128 bytes: its length takes two bytes of varint, each in a fragment.
  const connectRequest = [0x22, 0x80, 0x01, ...Array(128).fill(0x61)];
  const command = [0x08, 1, 0x22, 0x83, 0x01, ...connectRequest];
  const bytes = Buffer.from([command.length & 0x7f | 0x80, command.length >> 7, ...command]);
  socket.send(bytes.subarray(0, 1), { fin: false });
  socket.send(bytes.subarray(1, 2), { fin: false });
  socket.send(bytes.subarray(2));
  await messages.count(1);
  const rpc = Buffer.from([7, 0x08, 9, 0x6a, 3, 0x12, 1, 0x78]);
  socket.send(Buffer.concat([rpc, rpc]));
  const replies = () => Buffer.concat(messages.items.slice(1).map(([data]) => data)).toString('latin1');
  await messages.wait(() => (replies().split('\x08\x09').length === 3 ? true : undefined), 'both replies');
});
