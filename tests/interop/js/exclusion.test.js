// npm centrifuge, as published, in JSON and in Protobuf: publications that leave their publisher out.
// In: one server with exclude_publisher, with and without history → out: the events the SDK reports.
// May use the SDK's public interface and the server API only; never looks at bytes.
// The rules by themselves are tested in crates/node/tests/it/exclusion.rs.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { Log, start } from '../server.js';
import { ENCODINGS, connect, sdk, subscribe } from './clients.js';

let server;

before(async () => {
  const excluding = { exclude_publisher: true, force_recovery: true };
  server = await start({
    client: { insecure: true },
    channel: {
      namespaces: [
        { name: 'silent', exclude_publisher: true },
        { name: 'kept', ...excluding, history_size: 100, history_ttl: '300s' },
        { name: 'plain' },
      ],
    },
  });
});

after(() => server?.stop());

for (const encoding of ENCODINGS) {
  describe(`npm centrifuge in ${encoding.name}`, () => {
    const someone = async (t, channel) => {
      const client = sdk(t, server, encoding);
      const { client: id } = await connect(client);
      const { subscription, publications } = await subscribe(client, channel);
      const heard = () => publications.items.map((item) => encoding.value(item.data).n);
      const wait = (n) => publications.find((item) => encoding.value(item.data).n === n, `${n}`);
      const say = (n) => subscription.publish(encoding.payload({ n }));
      return { id, subscription, heard, wait, say };
    };

    for (const namespace of ['silent', 'kept']) {
      test(`the publisher does not hear itself in ${namespace}, everybody else does`, async (t) => {
        const channel = `${namespace}:${encoding.name}`;
        const [ada, bob] = [await someone(t, channel), await someone(t, channel)];
        const lost = new Log(ada.subscription, 'subscribing');
        for (const n of [1, 2, 3]) await ada.say(n);
        await bob.say(4);
        await server.api('publish', { channel, data: { n: 5 } });
        await Promise.all([ada.wait(5), bob.wait(5)]);
        assert.deepEqual(ada.heard(), [4, 5]);
        assert.deepEqual(bob.heard(), [1, 2, 3, 5]);
        assert.deepEqual(lost.items, [], 'nobody lost its place');
      });
    }

    test('the server API spares the client it names', async (t) => {
      const channel = `plain:${encoding.name}`;
      const [ada, bob] = [await someone(t, channel), await someone(t, channel)];
      await server.api('publish', { channel, data: { n: 1 }, exclude_client: ada.id });
      await server.api('broadcast', { channels: [channel], data: { n: 2 }, exclude_client: bob.id });
      await server.api('publish', { channel, data: { n: 3 } });
      await Promise.all([ada.wait(3), bob.wait(3)]);
      assert.deepEqual([ada.heard(), bob.heard()], [[2, 3], [1, 3]]);
      const { error } = await server.apiReply('publish', { channel, data: {}, exclude_client: 'x' });
      assert.equal(error.code, 107);
    });
  });
}
