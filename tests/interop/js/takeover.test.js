// Clients that refer to their earlier messages: npm ws with context takeover of its own (RFC 7692 §7.1.1.2, §7.1.2.2).
// In: offers of npm ws → out: what is agreed to, publications that come back whole, bytes on the wire.
// May use npm ws only; never an SDK.
// All stacks are in the scenario `up` of ../mixed; offers that are malformed are in raw.test.js.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { start } from '../server.js';
import { raw } from './clients.js';

let server;

before(async () => {
  server = await start({ client: { insecure: true }, websocket: { client_context_takeover: true } });
});

after(() => server?.stop());

for (const [options, agreed] of [
  [{ clientNoContextTakeover: false }, { client_max_window_bits: 12 }],
  [{ clientNoContextTakeover: false, clientMaxWindowBits: 9 }, { client_max_window_bits: 9 }],
  [{ clientNoContextTakeover: false, clientMaxWindowBits: 15 }, { client_max_window_bits: 12 }],
  [{ clientNoContextTakeover: false, clientMaxWindowBits: false }, {}],
  [{ clientNoContextTakeover: true }, { client_no_context_takeover: true }],
]) {
  test(`ws with ${JSON.stringify(options)} is answered with ${JSON.stringify(agreed)}`, async (t) => {
    const client = await raw(t, server, { perMessageDeflate: { threshold: 0, ...options } });
    assert.deepEqual({ ...client.socket._extensions['permessage-deflate'].params }, agreed);
    const channel = `readings-${JSON.stringify(agreed).length}-${options.clientMaxWindowBits}`;
    await client.connect();
    await client.subscribe(channel);
    const readings = Array.from({ length: 300 }, (_, n) => reading(n));
    const before = client.socket._socket.bytesWritten;
    let sent = 0;
    for (const [n, data] of readings.entries()) {
      const command = { id: 10 + n, publish: { channel, data } };
      sent += JSON.stringify(command).length;
      client.send(command);
    }
    assert.deepEqual(await client.publications(channel, readings.length), readings);
    const written = client.socket._socket.bytesWritten - before;
    if (!options.clientNoContextTakeover) assert.ok(written * 3 < sent, `${written} bytes for ${sent}`);
  });
}

test('ws that insists on its context is refused by a server without', async (t) => {
  const without = await start({ client: { insecure: true } });
  t.after(() => without.stop());
  const options = { perMessageDeflate: { clientNoContextTakeover: false } };
  await assert.rejects(raw(t, without, options), /Invalid Sec-WebSocket-Extensions header/);
});

test('what does not refer to earlier messages may come in between', async (t) => {
  const client = await raw(t, server, { perMessageDeflate: { clientNoContextTakeover: false } });
  await client.connect();
  await client.subscribe('between');
  const data = ['a'.repeat(20_000), '', reading(1), reading(2), 'b'.repeat(5_000), reading(1)];
  for (const [n, one] of data.entries()) {
    const text = JSON.stringify({ id: 10 + n, publish: { channel: 'between', data: one } });
    const half = text.length >> 1;
    client.socket.send(text.slice(0, half), { fin: false });
    client.socket.ping('between fragments');
    client.socket.send(text.slice(half), { fin: true });
    client.socket.send(JSON.stringify({ id: 1000 + n, rpc: { method: 'none' } }), { compress: false });
  }
  assert.deepEqual(await client.publications('between', data.length), data);
  assert.equal((await client.reply(1000 + data.length - 1)).error.code, 108);
});

/** Some 300 bytes of which a few differ between readings. */
function reading(n) {
  const values = Array.from({ length: 12 }, (_, row) => ({ sensor: `north-${row}`, value: (row * 13 + n * (row % 3)) % 100 }));
  return { n, values };
}
