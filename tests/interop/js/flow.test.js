// How bytes flow: frames right behind the upgrade, joined replies, floods without reading, ends of connections.
// In: raw clients that send more, or read less, than is polite → out: order, bounds and orderly ends.
// May use npm ws and plain sockets; never an SDK.
// Single malformed messages are in raw.test.js; the disconnect of a slow subscriber is in hostile.test.js.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';

import { eventually, start, within } from '../server.js';
import { frame, raw, tcp, upgradeText } from './clients.js';

let server;

before(async () => {
  server = await start({ client: { insecure: true } });
});

after(() => server?.stop());

test('frames that come in one packet with the upgrade request are not lost', async (t) => {
  const client = tcp(t, server);
  const commands = '{"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"early"}}';
  const packet = [Buffer.from(upgradeText(server)), frame(0x81, commands), frame(0x89, 'early ping')];
  client.socket.write(Buffer.concat(packet));
  await eventually(() => client.text.includes('{"id":2,"subscribe":{}}'), 'both replies');
  await eventually(() => client.text.includes('early ping'), 'the pong');
});

test('a frame without a mask ends with 1002', async (t) => {
  const client = tcp(t, server);
  client.socket.write(upgradeText(server));
  await eventually(() => client.text.includes('\r\n\r\n'), 'the 101 answer');
  client.socket.write(Buffer.from([0x81, 2, 0x7b, 0x7d]));
  await within(client.ended, 'end of the connection');
  assert.ok(client.text.includes('\x03\xea'), 'a close frame with 1002');
});

test('a close of the client is answered and the connection is forgotten', async (t) => {
  const client = await raw(t, server);
  await client.connect();
  await client.subscribe('leaving');
  client.socket.close(1000, 'done');
  assert.equal((await client.closed()).code, 1000);
  await forgotten('leaving');
});

test('a TCP end without a close frame is noticed at once', async (t) => {
  const client = await raw(t, server);
  await client.connect();
  await client.subscribe('cut');
  client.socket._socket.end();
  await forgotten('cut');
});

test('a burst of the API arrives in order, joined into few frames of at most 16 messages', async (t) => {
  const client = await raw(t, server);
  await client.connect();
  await client.subscribe('burst');
  const publish = (n) => ({ publish: { channel: 'burst', data: n } });
  const commands = Array.from({ length: 500 }, (_, n) => publish(n));
  await server.apiReply('batch', { commands });
  assert.deepEqual(await client.publications('burst', 500), [...Array(500).keys()]);
  const joined = client.frames.items.map((text) => text.split('\n').length);
  assert.ok(Math.max(...joined) <= 16, `${Math.max(...joined)} messages in one frame`);
});

test('concurrent publishers are heard in one order by every subscriber', async (t) => {
  const listeners = await Promise.all(Array.from({ length: 8 }, () => raw(t, server)));
  for (const listener of listeners) {
    await listener.connect();
    await listener.subscribe('order');
  }
  const publish = async (publisher) => {
    for (let n = 0; n < 100; n += 1) {
      await server.api('publish', { channel: 'order', data: [publisher, n] });
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, publisher) => publish(publisher)));
  const heard = await Promise.all(listeners.map((listener) => listener.publications('order', 800)));
  for (const other of heard) assert.deepEqual(other, heard[0]);
  for (let publisher = 0; publisher < 8; publisher += 1) {
    const own = heard[0].filter(([from]) => from === publisher).map(([, n]) => n);
    assert.deepEqual(own, [...Array(100).keys()]);
  }
});

test('many commands in one message are all answered in order', async (t) => {
  const client = await raw(t, server);
  await client.connect();
  const ids = Array.from({ length: 1000 }, (_, n) => n + 2);
  client.send(...ids.map((id) => ({ id, rpc: { method: 'a' } })));
  await client.reply(1001);
  const answered = client.replies.items.map((reply) => reply.id);
  assert.deepEqual(answered.slice(1), ids);
});

test('names of channels with quotes, backslashes and markup come back as they were', async (t) => {
  const client = await raw(t, server);
  await client.connect();
  const channel = 'we"ird\\<name>&';
  await client.subscribe(channel);
  await server.api('publish', { channel, data: { ok: true } });
  assert.deepEqual(await client.publications(channel, 1), [{ ok: true }]);
});

test('a publication nearly as large as the queue arrives whole', async (t) => {
  for (const perMessageDeflate of [false, true]) {
    const client = await raw(t, server, { perMessageDeflate });
    await client.connect();
    await client.subscribe('huge');
    const text = Array.from({ length: 90_000 }, (_, n) => (n * 7919) % 9973).join(' ').slice(0, 400_000);
    await server.api('publish', { channel: 'huge', data: { text } });
    assert.deepEqual(await client.publications('huge', 1), [{ text }]);
  }
});

test('a client that sends commands and reads no replies is disconnected and takes no memory', async (t) => {
  const before = residentBytes();
  const flood = await raw(t, server, { perMessageDeflate: false });
  await flood.connect();
  flood.socket.pause();
  const text = Array.from({ length: 1000 }, (_, n) => `{"id":${n + 2},"rpc":{"method":"a"}}`).join('\n');
  await floodUntilEnd(flood, () => new Promise((resolve) => flood.socket.send(text, resolve)));
  const grown = residentBytes() - before;
  assert.ok(grown < 32_000_000, `the server grew by ${grown} bytes`);
});

test('a flood of pings without reading takes no memory', async (t) => {
  const before = residentBytes();
  const flood = await raw(t, server, { perMessageDeflate: false });
  await flood.connect();
  flood.socket.pause();
  const ping = Buffer.concat(Array.from({ length: 500 }, () => frame(0x89, 'p'.repeat(125))));
  const send = () => new Promise((resolve) => flood.socket._socket.write(ping, resolve));
  await floodUntilEnd(flood, send);
  const grown = residentBytes() - before;
  assert.ok(grown < 32_000_000, `the server grew by ${grown} bytes`);
});

/** Sends until the server ends the connection, or takes no more, or 200 MB were sent. */
async function floodUntilEnd(client, send) {
  const ended = client.closing.then(() => 'ended');
  client.socket._socket.on('close', () => client.emit('gone'));
  const gone = new Promise((resolve) => client.once('gone', () => resolve('ended')));
  for (let round = 0; round < 3000; round += 1) {
    const stuck = new Promise((resolve) => setTimeout(resolve, 1000, 'stuck').unref());
    const state = await Promise.race([send().then(() => 'sent'), ended, gone, stuck]);
    if (state !== 'sent') return;
  }
}

function forgotten(channel) {
  const empty = async () => {
    const { channels } = await server.api('channels', { pattern: channel });
    return Object.keys(channels).length === 0;
  };
  return eventually(empty, `end of ${channel}`);
}

/** Memory of the server in RAM, as the kernel counts it. */
function residentBytes() {
  const status = readFileSync(`/proc/${server.child.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)[1]) * 1024;
}
