// Clients that mean harm, or are broken: too large, too slow, too many bytes of headers, never an answer.
// In: one server with small limits, beside a well-behaved subscriber → out: close codes, and the subscriber unharmed.
// May use npm ws and plain sockets; never an SDK.
// Malformed messages of polite size are in raw.test.js.

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { after, afterEach, before, beforeEach, test } from 'node:test';

import { API_KEY, eventually, start, within } from '../server.js';
import { frame, raw, tcp, upgradeText } from './clients.js';

let server;
let witness;
let published = 0;

before(async () => {
  server = await start({
    client: {
      insecure: true,
      ping_interval: '6s',
      pong_timeout: '5s',
      queue_max_size: 262_144,
    },
  });
});

after(() => server?.stop());

/** A subscriber stands beside every test and must hear what is published after it. */
beforeEach(async (t) => {
  witness = await raw(t, server);
  await witness.connect();
  await witness.subscribe('witness');
});

afterEach(async () => {
  published += 1;
  await server.api('publish', { channel: 'witness', data: { published } });
  assert.deepEqual(await witness.publications('witness', 1), [{ published }]);
  witness.socket.close();
});

test('a message over the limit ends with 1009', async (t) => {
  const client = await raw(t, server, { perMessageDeflate: false });
  await client.connect();
  client.send({ id: 2, rpc: { data: 'a'.repeat(70_000) } });
  assert.equal((await client.closed()).code, 1009);
});

test('a message over the limit in fragments ends with 1009', async (t) => {
  const client = await raw(t, server, { perMessageDeflate: false });
  await client.connect();
  for (let n = 0; n < 80; n += 1) client.socket.send('a'.repeat(1000), { fin: false });
  assert.equal((await client.closed()).code, 1009);
});

test('a decompression bomb ends with 1009', async (t) => {
  const client = await raw(t, server);
  await client.connect();
  client.send({ id: 2, rpc: { data: 'a'.repeat(10_000_000) } });
  assert.equal((await client.closed()).code, 1009);
});

test('a message at the limit is accepted', async (t) => {
  const client = await raw(t, server, { perMessageDeflate: false });
  await client.connect();
  const empty = JSON.stringify({ id: 2, rpc: { data: '' } });
  client.send({ id: 2, rpc: { data: 'a'.repeat(65_536 - empty.length) } });
  assert.equal((await client.reply(2)).error.code, 108);
});

test('deeply nested JSON ends with a code and not with the server', async (t) => {
  const client = await raw(t, server);
  client.send(`{"id":1,"connect":{"data":${'['.repeat(30_000)}${']'.repeat(30_000)}}}`);
  const ended = client.closed().then(({ code }) => assert.equal(code, 3501));
  const answered = client.reply(1).then(({ connect }) => assert.ok(connect));
  await Promise.any([ended, answered]);
});

test('a slow reader is disconnected and every other subscriber hears everything', async (t) => {
  const slow = await raw(t, server, { perMessageDeflate: false });
  await slow.connect();
  await slow.subscribe('fast');
  await witness.subscribe('fast', 3);
  slow.socket.pause();
  const text = noise(50_000);
  let sent = 0;
  const outlived = async () => {
    await server.api('publish', { channel: 'fast', data: { sent, text } });
    sent += 1;
    const { channels } = await server.api('channels', { pattern: 'fast' });
    return channels.fast.num_clients === 1;
  };
  await eventually(outlived, 'end of the slow reader', 60_000);
  const heard = await witness.publications('fast', sent);
  assert.deepEqual(heard.map((data) => data.sent), [...Array(sent).keys()]);
  assert.ok(heard.every((data) => data.text === text));
  slow.socket.resume();
  assert.ok([3008, 1006].includes((await slow.closed()).code));
});

test('a client that is gone without a word is forgotten after a ping', async (t) => {
  const gone = await raw(t, server);
  await gone.connect();
  await gone.subscribe('half-open');
  gone.socket._socket.pause();
  const empty = async () => {
    const { channels } = await server.api('channels', { pattern: 'half-open' });
    return Object.keys(channels).length === 0;
  };
  await eventually(empty, 'end of the half-open connection', 20_000);
});

test('one byte at a time is read as well', async (t) => {
  const client = tcp(t, server);
  client.socket.setNoDelay(true);
  client.socket.write(upgradeText(server));
  await eventually(() => client.text.includes('\r\n\r\n'), 'the 101 answer');
  for (const byte of frame(0x81, '{"id":1,"connect":{}}')) {
    await new Promise((resolve) => client.socket.write(Buffer.from([byte]), resolve));
  }
  await eventually(() => client.text.includes('"client"'), 'the connect reply');
});

test('endless headers are refused before they take memory', async (t) => {
  const client = tcp(t, server);
  client.socket.write('GET / HTTP/1.1\r\nHost: a\r\n');
  let bytes = 0;
  const line = `X-Flood: ${'a'.repeat(8000)}\r\n`;
  while (!client.socket.destroyed && client.socket.writable && bytes < 50_000_000) {
    const taken = new Promise((resolve) => client.socket.write(line, resolve));
    await Promise.race([taken, client.ended]);
    bytes += line.length;
  }
  await within(client.ended, 'end of a header flood');
  assert.ok(bytes < 10_000_000, `${bytes} bytes of headers were taken`);
  if (client.text) assert.match(client.text, /^HTTP\/1\.1 4(00|31) /);
});

test('headers that never end are cut off by a timeout', async (t) => {
  const silent = tcp(t, server);
  const slow = tcp(t, server);
  slow.socket.write('GET /connection/websocket HTTP/1.1\r\nHost: a\r\nX-Slow: ');
  await within(Promise.all([silent.ended, slow.ended]), 'end of slow requests', 40_000);
});

test('an API body over the limit is refused', async () => {
  const body = JSON.stringify({ channel: 'a', data: 'a'.repeat(50_000_000) });
  const answer = fetch(`${server.http}/api/publish`, {
    method: 'POST',
    headers: { 'X-API-Key': API_KEY },
    body,
  });
  const status = await within(answer.then((response) => response.status, () => 413), 'answer');
  assert.equal(status, 413);
});

test('two hundred connections that come and go leave nothing behind', async (t) => {
  const before = await server.connections();
  const openBefore = descriptors();
  const visit = async () => {
    const client = await raw(t, server);
    await client.connect();
    await client.subscribe('visit');
    client.socket.terminate();
  };
  for (let round = 0; round < 10; round += 1) await Promise.all(Array.from({ length: 20 }, visit));
  await eventually(async () => (await server.connections()) === before, 'end of all visits');
  await eventually(() => descriptors() < openBefore + 10, 'end of their descriptors');
  assert.deepEqual((await server.api('channels', { pattern: 'visit' })).channels, {});
});

/** How many files and sockets the server has open. */
function descriptors() {
  return readdirSync(`/proc/${server.child.pid}/fd`).length;
}

/** Text that does not compress, the same on every run. */
function noise(length) {
  let state = 1;
  const next = () => (state = (state * 48_271) % 2_147_483_647);
  return Array.from({ length }, () => String.fromCharCode(48 + (next() % 74))).join('').replaceAll('\\', '/');
}
