// Clients of npm centrifuge while `fanwire upgrade` replaces their server.
// In: clients in both encodings, publications without a break → out: no client reconnects; each one gets each publication once, in order.
// May use the SDK and the server API. FANWIRE_UPGRADE is the number of clients.
// Other kinds of connections, faults and times are in crates/cli/tests/it/takeover.rs.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually, start, token } from '../server.js';
import { connect, ENCODINGS, sdk, subscribe } from './clients.js';

const CLIENTS = Number(process.env.FANWIRE_UPGRADE ?? 20);

for (const encoding of ENCODINGS) {
  test(`clients in ${encoding.name} notice nothing of an upgrade`, async (t) => {
    const server = await start({
      pid_file: 'pid',
      channel: { without_namespace: { allow_subscribe_for_client: true } },
    });
    t.after(() => server.stop());
    const left = [];
    const followers = [];
    for (let number = 0; number < CLIENTS; number += 1) {
      const client = sdk(t, server, encoding, { token: token({ sub: `user${number}` }) });
      await connect(client);
      for (const event of ['connecting', 'disconnected', 'error']) client.on(event, (context) => left.push(context));
      followers.push(await subscribe(client, 'news'));
    }
    const published = await publishDuring(server, server.upgrade(t));
    const expected = Array.from({ length: published }, (_, index) => index + 1);
    for (const { publications } of followers) {
      await publications.count(published);
      assert.deepEqual(publications.items.map(({ data }) => encoding.value(data).number), expected);
    }
    assert.deepEqual(left, []);
    for (const { subscription } of followers) subscription.removeAllListeners();
  });
}

/** Publishes one message after the other, each until it is accepted, until `work` is done. Returns how many there are. */
async function publishDuring(server, work) {
  let isDone = false;
  const done = work.finally(() => (isDone = true));
  let number = 0;
  while (!isDone) {
    number += 1;
    const request = { channel: 'news', data: { number }, idempotency_key: `${number}` };
    // A request that comes on a kept connection when the server closes it fails, and is sent again.
    const publish = () => server.api('publish', request).catch((error) => error instanceof assert.AssertionError ? Promise.reject(error) : undefined);
    await eventually(publish, `publication ${number}`);
  }
  await done;
  return number;
}
