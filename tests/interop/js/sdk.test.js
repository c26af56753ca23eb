// npm centrifuge, as published, in JSON and in Protobuf: what an application does in a day.
// In: one development server and one with tokens → out: the events the SDK reports.
// May use the SDK's public interface and the server API only; never looks at bytes.
// Bytes and bad input are tested in raw.test.js and hostile.test.js; shutdown in operation.test.js.

import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { after, before, describe, test } from 'node:test';

import WebSocket from 'ws';

import { Log, start, token, within } from '../server.js';
import { ENCODINGS, connect, next, sdk, subscribe } from './clients.js';

let insecure;
let strict;
let hasty;

before(async () => {
  [insecure, strict, hasty] = await Promise.all([
    start({ client: { insecure: true, channel_limit: 5 } }),
    start({
      channel: {
        without_namespace: {
          allow_subscribe_for_client: true,
          allow_publish_for_subscriber: true,
        },
        namespaces: [{ name: 'closed' }],
      },
    }),
    start({ client: { insecure: true, ping_interval: '2s', pong_timeout: '1900ms' } }),
  ]);
});

after(() => Promise.all([insecure?.stop(), strict?.stop(), hasty?.stop()]));

for (const encoding of ENCODINGS) {
  describe(`npm centrifuge in ${encoding.name}`, () => {
    test('connects without a token to an insecure server', async (t) => {
      const connected = await connect(sdk(t, insecure, encoding));
      assert.match(connected.client, /^[0-9a-f]{8}-[0-9a-f-]{27}$/);
      assert.equal(connected.transport, 'websocket');
    });

    test('connects, disconnects and connects again', async (t) => {
      const client = sdk(t, insecure, encoding);
      const clients = new Set();
      for (let round = 0; round < 10; round += 1) {
        clients.add((await connect(client)).client);
        const disconnected = next(client, 'disconnected');
        client.disconnect();
        assert.equal((await disconnected).code, 0);
      }
      assert.equal(clients.size, 10);
    });

    test('is refused without a token by a strict server', async (t) => {
      const client = sdk(t, strict, encoding);
      const disconnected = next(client, 'disconnected');
      client.connect();
      assert.equal((await disconnected).code, 3501);
    });

    test('connects with a token of each HMAC algorithm', async (t) => {
      for (const algorithm of ['HS256', 'HS384', 'HS512']) {
        await connect(sdk(t, strict, encoding, { token: token({ sub: '42' }, { algorithm }) }));
      }
    });

    test('renews an expired token with getToken', async (t) => {
      let asked = 0;
      const client = sdk(t, strict, encoding, {
        token: token({ sub: '42', exp: seconds() - 10 }),
        getToken: async () => {
          asked += 1;
          return token({ sub: '42', exp: seconds() + 3600 });
        },
      });
      await connect(client);
      assert.equal(asked, 1);
    });

    test('refreshes a short-lived token and stays connected', async (t) => {
      const asked = new EventEmitter();
      const refresh = once(asked, 'refresh');
      const client = sdk(t, strict, encoding, {
        token: token({ sub: '42', exp: seconds() + 2 }),
        getToken: async () => {
          asked.emit('refresh');
          return token({ sub: '42', exp: seconds() + 3600 });
        },
      });
      const connecting = new Log(client, 'connecting');
      await connect(client);
      await within(refresh, 'refresh of the token');
      for (const fence of ['before', 'after']) {
        await assert.rejects(client.rpc(fence, encoding.payload({})), { code: 108 });
      }
      assert.equal(connecting.items.length, 1, 'it connected once and was never disconnected');
    });

    for (const [what, bad] of [
      ['of another secret', () => token({ sub: '42' }, { secret: 'another-secret' })],
      ['without a signature', () => `${token({ sub: '42' }).split('.').slice(0, 2).join('.')}.`],
      ['of algorithm none', () => token({ sub: '42' }, { algorithm: 'none' })],
      ['that is no token', () => 'no-token'],
    ]) {
      test(`a token ${what} ends with 3500`, async (t) => {
        const client = sdk(t, strict, encoding, { token: bad() });
        const disconnected = next(client, 'disconnected');
        client.connect();
        assert.equal((await disconnected).code, 3500);
      });
    }

    test('receives its own publication with its info', async (t) => {
      const client = sdk(t, strict, encoding, { token: token({ sub: '42', info: { name: 'Ada' } }) });
      const { client: id } = await connect(client);
      const channel = `own-${encoding.name}`;
      const { subscription, publications } = await subscribe(client, channel);
      await subscription.publish(encoding.payload({ text: 'hällo <b> & "quotes" \u2028' }));
      const [publication] = await publications.count(1);
      assert.deepEqual(encoding.value(publication.data), { text: 'hällo <b> & "quotes" \u2028' });
      assert.equal(publication.info.user, '42');
      assert.equal(publication.info.client, id);
      assert.deepEqual(encoding.value(publication.info.connInfo), { name: 'Ada' });
    });

    test('receives 200 publications of the HTTP API in order, with tags', async (t) => {
      const client = sdk(t, insecure, encoding);
      await connect(client);
      const channel = `order-${encoding.name}`;
      const { publications } = await subscribe(client, channel);
      for (let n = 0; n < 200; n += 1) {
        await insecure.api('publish', { channel, data: { n }, tags: { n: String(n) } });
      }
      const items = await publications.count(200);
      assert.deepEqual(items.map((item) => encoding.value(item.data).n), [...Array(200).keys()]);
      assert.deepEqual(items[7].tags, { n: '7' });
    });

    test('hears nothing after it unsubscribed, and again after it subscribed', async (t) => {
      const client = sdk(t, insecure, encoding);
      await connect(client);
      const channel = `again-${encoding.name}`;
      const { subscription, publications } = await subscribe(client, channel);
      subscription.unsubscribe();
      await assert.rejects(client.rpc('fence', encoding.payload({})), { code: 108 });
      await insecure.api('publish', { channel, data: { n: 1 } });
      const subscribed = next(subscription, 'subscribed');
      subscription.subscribe();
      await subscribed;
      await insecure.api('publish', { channel, data: { n: 2 } });
      const items = await publications.count(1);
      assert.deepEqual(items.map((item) => encoding.value(item.data).n), [2]);
    });

    test('subscribes with a subscription token', async (t) => {
      const client = sdk(t, strict, encoding, { token: token({ sub: '42' }) });
      await connect(client);
      const channel = `$secret-${encoding.name}`;
      await subscribe(client, channel, { token: token({ sub: '42', channel }) });
      await assertRefused(client, `$bare-${encoding.name}`, {}, 103);
      const forged = token({ sub: '42', channel: '$forged' }, { secret: 'another-secret' });
      await assertRefused(client, '$forged', { token: forged }, 103);
    });

    test('renews an expired subscription token', async (t) => {
      const client = sdk(t, strict, encoding, { token: token({ sub: '42' }) });
      await connect(client);
      const channel = `$renewed-${encoding.name}`;
      let asked = 0;
      const options = {
        token: token({ sub: '42', channel, exp: seconds() - 10 }),
        getToken: async (context) => {
          asked += 1;
          return token({ sub: '42', channel: context.channel });
        },
      };
      await subscribe(client, channel, options);
      assert.equal(asked, 1);
    });

    test('a subscription token for another channel ends with 3500', async (t) => {
      const client = sdk(t, strict, encoding, { token: token({ sub: '42' }) });
      await connect(client);
      const disconnected = next(client, 'disconnected');
      client.newSubscription('$one', { token: token({ sub: '42', channel: '$other' }) }).subscribe();
      assert.equal((await disconnected).code, 3500);
    });

    test('an unknown namespace is error 102 and a closed one 103', async (t) => {
      const client = sdk(t, strict, encoding, { token: token({ sub: '42' }) });
      await connect(client);
      await assertRefused(client, 'nowhere:channel', {}, 102);
      await assertRefused(client, 'closed:channel', {}, 103);
    });

    test('publishing without permission is error 103', async (t) => {
      const client = sdk(t, strict, encoding, { token: token({ sub: '42' }) });
      await connect(client);
      const publish = client.publish('not-subscribed', encoding.payload({}));
      await assert.rejects(publish, { code: 103 });
    });

    test('what is not there yet is error 108', async (t) => {
      const client = sdk(t, insecure, encoding);
      await connect(client);
      const { subscription } = await subscribe(client, `absent-${encoding.name}`);
      await assert.rejects(client.rpc('method', encoding.payload({})), { code: 108 });
      await assert.rejects(subscription.presence(), { code: 108 });
      await assert.rejects(subscription.presenceStats(), { code: 108 });
      await assert.rejects(subscription.history({ limit: 1 }), { code: 108 });
    });

    test('answers pings and stays connected', async (t) => {
      const pings = new EventEmitter();
      class Watched extends WebSocket {
        constructor(...parameters) {
          super(...parameters);
          this.on('message', (bytes) => isPing(Buffer.from(bytes)) && pings.emit('ping'));
        }
      }
      const seen = new Log(pings, 'ping');
      const client = sdk(t, hasty, encoding, { websocket: Watched });
      const connecting = new Log(client, 'connecting');
      await connect(client);
      await seen.count(3, 'third ping');
      await assert.rejects(client.rpc('still', encoding.payload({})), { code: 108 });
      assert.equal(connecting.items.length, 1);
    });

    test('the channel limit is error 106', async (t) => {
      const client = sdk(t, insecure, encoding);
      await connect(client);
      for (let n = 1; n <= 5; n += 1) await subscribe(client, `limit-${n}`);
      await assertRefused(client, 'limit-6', {}, 106);
    });

    test('a forced disconnect of the API is final', async (t) => {
      const client = sdk(t, strict, encoding, { token: token({ sub: `out-${encoding.name}` }) });
      await connect(client);
      const disconnected = next(client, 'disconnected');
      await strict.api('disconnect', { user: `out-${encoding.name}` });
      assert.equal((await disconnected).code, 3503);
    });

    test('a custom disconnect code of 4001 reconnects with the subscriptions', async (t) => {
      const user = `back-${encoding.name}`;
      const client = sdk(t, strict, encoding, { token: token({ sub: user }) });
      await connect(client);
      const { subscription, publications } = await subscribe(client, user);
      const connecting = next(client, 'connecting');
      const subscribed = next(subscription, 'subscribed');
      await strict.api('disconnect', { user, disconnect: { code: 4001, reason: 'come back' } });
      assert.deepEqual(await connecting, { code: 4001, reason: 'come back' });
      await subscribed;
      await strict.api('publish', { channel: user, data: { n: 1 } });
      assert.deepEqual(encoding.value((await publications.count(1))[0].data), { n: 1 });
    });

    test('disconnect code 3000 is an abrupt end of the transport', async (t) => {
      const user = `abrupt-${encoding.name}`;
      const client = sdk(t, strict, encoding, { token: token({ sub: user }) });
      const { client: before } = await connect(client);
      const { subscription, publications } = await subscribe(client, user);
      const connecting = next(client, 'connecting');
      const connected = next(client, 'connected');
      const subscribed = next(subscription, 'subscribed');
      await strict.api('disconnect', { user, disconnect: { code: 3000, reason: 'closed' } });
      assert.equal((await connecting).code, 1);
      assert.notEqual((await connected).client, before);
      await subscribed;
      await strict.api('publish', { channel: user, data: { n: 1 } });
      assert.deepEqual(encoding.value((await publications.count(1))[0].data), { n: 1 });
    });

    test('one of two connections of a user can be disconnected by its client id', async (t) => {
      const user = `two-${encoding.name}`;
      const clients = [1, 2].map(() => sdk(t, strict, encoding, { token: token({ sub: user }) }));
      const [one] = await Promise.all(clients.map(connect));
      const disconnected = next(clients[0], 'disconnected');
      await strict.api('disconnect', { user, client: one.client });
      await disconnected;
      assert.equal(clients[1].state, 'connected');
      await assert.rejects(clients[1].rpc('still', encoding.payload({})), { code: 108 });
    });

    test('the API unsubscribes a client for good', async (t) => {
      const user = `unsub-${encoding.name}`;
      const client = sdk(t, strict, encoding, { token: token({ sub: user }) });
      await connect(client);
      const { subscription } = await subscribe(client, user);
      const unsubscribed = next(subscription, 'unsubscribed');
      await strict.api('unsubscribe', { user, channel: user });
      assert.equal((await unsubscribed).code, 2000);
      const { channels } = await strict.api('channels', { pattern: user });
      assert.deepEqual(channels, {});
    });
  });
}

test('a JSON and a Protobuf client of one channel hear each other', async (t) => {
  const [json, protobuf] = ENCODINGS;
  const clients = [sdk(t, insecure, json), sdk(t, insecure, protobuf)];
  await Promise.all(clients.map(connect));
  const subs = await Promise.all(clients.map((client) => subscribe(client, 'mixed')));
  await subs[0].subscription.publish({ from: 'JSON' });
  await subs[1].publications.count(1);
  await subs[1].subscription.publish(protobuf.payload({ from: 'Protobuf' }));
  const heard = await Promise.all(subs.map(({ publications }) => publications.count(2)));
  const expected = [{ from: 'JSON' }, { from: 'Protobuf' }];
  assert.deepEqual(heard[0].map((item) => json.value(item.data)), expected);
  assert.deepEqual(heard[1].map((item) => protobuf.value(item.data)), expected);
});

test('bytes that are not JSON reach Protobuf clients and disconnect JSON clients with 3506', async (t) => {
  const [json, protobuf] = ENCODINGS;
  const clients = [sdk(t, insecure, json), sdk(t, insecure, protobuf)];
  await Promise.all(clients.map(connect));
  await subscribe(clients[0], 'binary');
  const { publications } = await subscribe(clients[1], 'binary');
  const disconnected = next(clients[0], 'disconnected');
  await insecure.api('publish', { channel: 'binary', b64data: 'AAEC/w==' });
  assert.deepEqual([...(await publications.count(1))[0].data], [0, 1, 2, 255]);
  assert.equal((await disconnected).code, 3506);
});

/** Expects that a subscription is refused for good with this code. */
async function assertRefused(client, channel, options, code) {
  const subscription = client.newSubscription(channel, options);
  const unsubscribed = next(subscription, 'unsubscribed');
  subscription.subscribe();
  assert.equal((await unsubscribed).code, code, channel);
}

function seconds() {
  return Math.floor(Date.now() / 1000);
}

/** A reply without any field, in either encoding. */
function isPing(bytes) {
  return ['{}', '\0'].includes(bytes.toString());
}
