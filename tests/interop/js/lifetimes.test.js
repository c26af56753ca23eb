// npm centrifuge, as published, in JSON and in Protobuf: tokens that expire or are invalidated while they are in use.
// In: one server with tokens and history → out: the events the SDK reports, and how often it asks for a token.
// May use the SDK's public interface and the server API only; never looks at bytes.
// Lifetimes that the server API gives and refreshes that come too late are in server_side.test.js.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { after, before, describe, test } from 'node:test';

import { Log, start, token } from '../server.js';
import { ENCODINGS, connect, next, sdk, subscribe } from './clients.js';

let server;

before(async () => {
  const history = { history_size: 100, history_ttl: '300s', force_recovery: true };
  server = await start({
    channel: { without_namespace: { allow_subscribe_for_client: true, ...history } },
  });
});

after(() => server?.stop());

/** An application's `getToken`: tokens that live so many seconds, one after the other; `asked` logs what was made. */
function tokens(claims, ...lives) {
  const emitter = new EventEmitter();
  const asked = new Log(emitter, 'made');
  const getToken = async () => {
    const exp = Math.floor(Date.now() / 1000) + lives[asked.items.length];
    const made = token({ ...claims, exp });
    emitter.emit('made', made);
    return made;
  };
  return { getToken, asked };
}

for (const encoding of ENCODINGS) {
  describe(`npm centrifuge in ${encoding.name}`, () => {
    const name = (channel) => `${channel}-${encoding.name}`;
    const numbers = (items) => items.map(({ data }) => encoding.value(data).n);

    // The third token is asked for because the server has accepted the second.
    test('refreshes short-lived tokens and stays connected', async (t) => {
      const { getToken, asked } = tokens({ sub: '42' }, 3, 3, 3600);
      const client = sdk(t, server, encoding, { getToken });
      const [connecting, errors] = [new Log(client, 'connecting'), new Log(client, 'error')];
      await connect(client);
      await asked.count(3);
      await assert.rejects(client.rpc('fence', encoding.payload({})), { code: 108 });
      assert.deepEqual([connecting.items.length, errors.items.length], [1, 0]);
    });

    test('refreshes short-lived subscription tokens and stays subscribed', async (t) => {
      const channel = name('$short');
      const client = sdk(t, server, encoding, { token: token({ sub: '42' }) });
      await connect(client);
      const { getToken, asked } = tokens({ sub: '42', channel }, 3, 3, 3600);
      const { subscription, publications } = await subscribe(client, channel, { getToken });
      const [subscribing, errors] = [new Log(subscription, 'subscribing'), new Log(subscription, 'error')];
      await asked.count(3);
      await server.api('publish', { channel, data: { n: 1 } });
      assert.deepEqual(numbers(await publications.count(1)), [1]);
      assert.deepEqual([subscribing.items, errors.items], [[], []]);
    });

    test('3014 makes it forget its tokens and its positions', async (t) => {
      const user = name('invalid');
      const channels = [name('$client'), name('server')];
      const connection = tokens({ sub: user, channels: [channels[1]] }, 3600, 3600);
      const client = sdk(t, server, encoding, { getToken: connection.getToken });
      const [seats, heard] = [new Log(client, 'subscribed'), new Log(client, 'publication')];
      await connect(client);
      const seat = tokens({ sub: user, channel: channels[0] }, 3600, 3600);
      const { subscription, publications } = await subscribe(client, channels[0], { getToken: seat.getToken });
      const publish = (n) => server.api('broadcast', { channels, data: { n } });
      await publish(1);
      await publications.count(1);
      await heard.count(1);
      const resubscribed = next(subscription, 'subscribed');
      await server.api('disconnect', { user, disconnect: { code: 3014, reason: 'state invalidated' } });
      for (const context of [await resubscribed, (await seats.count(2))[1]]) {
        const { wasRecovering, recovered, streamPosition } = context;
        assert.deepEqual({ wasRecovering, recovered }, { wasRecovering: true, recovered: false });
        assert.equal(streamPosition.offset, 1);
      }
      assert.deepEqual([connection.asked.items.length, seat.asked.items.length], [2, 2]);
      await publish(2);
      assert.deepEqual(numbers(await publications.count(2)), [1, 2]);
      assert.deepEqual(numbers(await heard.count(2)), [1, 2]);
    });
  });
}
