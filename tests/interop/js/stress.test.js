// npm centrifuge, as published, in JSON and in Protobuf: many connections, forced reconnects, slow handlers.
// In: one server with Centrifugo's keys for history → out: every client heard everything once and in order.
// May use the SDK's public interface and the server API only; never looks at bytes.
// Connections that misbehave are in hostile.test.js; a thousand clients at a time are played by `fanwire-bench churn`.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { Log, eventually, start, token } from '../server.js';
import { ENCODINGS, connect, next, sdk, subscribe } from './clients.js';

const [ROUNDS, EACH, CLIENTS] = [5, 30, 10];

let server;

before(async () => {
  const history = { history_size: 100, history_ttl: '300s', force_recovery: true };
  server = await start({
    channel: { without_namespace: { allow_subscribe_for_client: true, ...history } },
  });
});

after(() => server?.stop());

/** Keeps the thread busy for a while, as an application that draws something does. */
function work() {
  for (const end = performance.now() + 1; performance.now() < end; );
}

for (const encoding of ENCODINGS) {
  describe(`npm centrifuge in ${encoding.name}`, () => {
    const someone = (t, user) => sdk(t, server, encoding, { token: token({ sub: user }) });

    test('forced reconnects lose and repeat nothing', async (t) => {
      const channel = `stress-${encoding.name}`;
      const listeners = await Promise.all([...Array(CLIENTS).keys()].map(async (n) => {
        const client = someone(t, `${channel}-${n}`);
        await connect(client);
        const { subscription, publications } = await subscribe(client, channel);
        if (n % 2 === 0) subscription.on('publication', work);
        return { publications, returns: new Log(subscription, 'subscribed') };
      }));
      let published = 0;
      for (let round = 1; round <= ROUNDS; round += 1) {
        for (let n = 0; n < CLIENTS; n += 1) {
          const code = n % 3 === 0 ? 3000 : 4001;
          await server.api('disconnect', { user: `${channel}-${n}`, disconnect: { code, reason: 'again' } });
          for (const end = published + EACH / CLIENTS; published < end; published += 1) {
            await server.api('publish', { channel, data: { n: published } });
          }
        }
        for (const { publications, returns } of listeners) {
          await publications.count(published);
          await returns.count(round);
        }
      }
      for (const { publications, returns } of listeners) {
        assert.deepEqual(publications.items.map(({ data }) => encoding.value(data).n), [...Array(published).keys()]);
        assert.deepEqual(returns.items.map(({ recovered }) => recovered), Array(ROUNDS).fill(true));
      }
    });

    test('one hundred clients connect and close at once', async (t) => {
      await Promise.all([...Array(100).keys()].map(async (n) => {
        const client = someone(t, `crowd-${n}`);
        const disconnected = next(client, 'disconnected');
        if (n % 3) await connect(client);
        else client.connect();
        client.disconnect();
        assert.equal((await disconnected).code, 0);
      }));
      await eventually(async () => (await server.connections()) === 0, 'no connection left');
    });
  });
}
