// npm centrifuge, as published, in JSON and in Protobuf: rates of commands, publishes and subscribes.
// In: one server with low rates → out: the events the SDK reports.
// May use the SDK's public interface and the server API only; never looks at bytes.
// The rules by themselves are tested in crates/node/tests/it/rates.rs.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { start } from '../server.js';
import { ENCODINGS, connect, next, sdk, subscribe } from './clients.js';

let server;

before(async () => {
  server = await start({
    client: {
      insecure: true,
      rate_limit: { client_command: { limit: 20, interval: '1h' }, refusal: { limit: 3 } },
    },
    channel: {
      namespaces: [
        { name: 'publish', publish_rate_limit: 2, publish_rate_interval: '1h' },
        { name: 'subscribe', subscribe_rate_limit: 1, subscribe_rate_interval: '1s' },
      ],
    },
  });
});

after(() => server?.stop());

for (const encoding of ENCODINGS) {
  describe(`npm centrifuge in ${encoding.name}`, () => {
    const someone = async (t) => {
      const client = sdk(t, server, encoding);
      await connect(client);
      return client;
    };
    const refused = { code: 111, temporary: true };

    test('one publish too many is refused, elsewhere it is not', async (t) => {
      const client = await someone(t);
      const say = (channel) => client.publish(channel, encoding.payload({}));
      await say('publish:a');
      await say('publish:b');
      await assert.rejects(say('publish:a'), refused);
      await say('elsewhere');
      await (await someone(t)).publish('publish:a', encoding.payload({}));
    });

    test('a subscribe that was refused is repeated by the SDK until it is allowed', async (t) => {
      const client = await someone(t);
      await subscribe(client, 'subscribe:a');
      const options = { minResubscribeDelay: 400, maxResubscribeDelay: 800 };
      const second = client.newSubscription('subscribe:b', options);
      const [error, subscribed] = [next(second, 'error'), next(second, 'subscribed')];
      second.subscribe();
      assert.equal((await error).error.code, 111);
      await subscribed;
    });

    test('who does not stop is disconnected with 3509 and stays away', async (t) => {
      const client = await someone(t);
      const { subscription } = await subscribe(client, 'plain');
      for (let n = 1; n < 20; n += 1) await client.publish('plain', encoding.payload({}));
      await assert.rejects(client.publish('plain', encoding.payload({})), refused);
      const unsubscribed = next(subscription, 'unsubscribed');
      subscription.unsubscribe();
      assert.equal((await unsubscribed).code, 0);
      const disconnected = next(client, 'disconnected');
      for (let n = 0; n < 3; n += 1) client.publish('plain', encoding.payload({})).catch(() => {});
      assert.equal((await disconnected).code, 3509);
    });
  });
}
