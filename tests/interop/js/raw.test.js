// npm ws and plain HTTP against the endpoint: handshake, framing, compression, pings, close codes.
// In: one insecure server with short intervals → out: the exact replies and close codes.
// May write the JSON protocol by hand; never uses an SDK.
// Attacks that try to hold memory or time are in hostile.test.js.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { after, before, describe, test } from 'node:test';

import { API_KEY, start, token, within } from '../server.js';
import { raw } from './clients.js';

let server;
let hasty;

before(async () => {
  [server, hasty] = await Promise.all([
    start({ client: { insecure: true, allowed_origins: ['https://good.example'] } }),
    start({
      client: {
        insecure: true,
        ping_interval: '2s',
        pong_timeout: '1900ms',
        stale_close_delay: '2s',
      },
    }),
  ]);
});

after(() => Promise.all([server?.stop(), hasty?.stop()]));

describe('handshake', () => {
  test('answers 101 without a subprotocol when it knows none of the offered', async () => {
    const { status, headers } = await upgrade({ 'Sec-WebSocket-Protocol': 'chat, superchat' });
    assert.equal(status, 101);
    assert.equal(headers['sec-websocket-protocol'], undefined);
  });

  test('echoes the first subprotocol of the list that it knows', async () => {
    const offered = 'chat, centrifuge-protobuf, centrifuge-json';
    const { headers } = await upgrade({ 'Sec-WebSocket-Protocol': offered });
    assert.equal(headers['sec-websocket-protocol'], 'centrifuge-protobuf');
  });

  test('computes the accept value of RFC 6455 §1.3', async () => {
    const { headers } = await upgrade({ 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==' });
    assert.equal(headers['sec-websocket-accept'], 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=');
  });

  test('refuses a wrong origin with 403 and accepts a configured one', async () => {
    assert.equal((await upgrade({ Origin: 'https://evil.example' })).status, 403);
    assert.equal((await upgrade({ Origin: 'https://good.example' })).status, 101);
    assert.equal((await upgrade({})).status, 101);
  });

  test('refuses version 12 with 426 and names version 13', async () => {
    const { status, headers } = await upgrade({ 'Sec-WebSocket-Version': '12' });
    assert.equal(status, 426);
    assert.equal(headers['sec-websocket-version'], '13');
  });

  test('refuses a request without a key with 400', async () => {
    assert.equal((await upgrade({ 'Sec-WebSocket-Key': 'short' })).status, 400);
  });

  test('accepts the query options of older clients', async (t) => {
    const query = '?cf_protocol_version=v2&unknown=1';
    const client = await raw(t, { websocket: server.websocket + query });
    assert.ok((await client.connect()).connect.client);
  });
});

describe('framing', () => {
  test('several commands in one message are answered in order', async (t) => {
    const client = await raw(t, server);
    client.send(
      { id: 1, connect: {} },
      { id: 2, subscribe: { channel: 'framing' } },
      { id: 3, publish: { channel: 'framing', data: { n: 1 } } },
      { id: 4, rpc: { method: 'none' } },
    );
    await client.reply(4);
    const ids = client.replies.items.map((reply) => reply.id ?? 'push');
    assert.deepEqual(ids.filter((id) => id !== 'push'), [1, 2, 3, 4]);
    assert.ok(ids.indexOf('push') > 1, 'no publication precedes the subscribe reply');
    assert.ok(client.frames.items.length < ids.length, 'replies of one turn share a frame');
    for (const frame of client.frames.items) assert.ok(!frame.endsWith('\n') && !/\n\n/.test(frame));
  });

  test('a trailing newline is tolerated', async (t) => {
    const client = await raw(t, server);
    client.send('{"id":1,"connect":{}}\n');
    assert.ok((await client.reply(1)).connect);
  });

  test('a message in many fragments is one message', async (t) => {
    const client = await raw(t, server);
    const text = '{"id":1,"connect":{"name":"fragments"}}';
    for (const [at, character] of [...text].entries()) {
      client.socket.send(character, { fin: at === text.length - 1, compress: false });
    }
    assert.ok((await client.reply(1)).connect);
  });

  test('unknown keys are ignored and null is absent', async (t) => {
    const client = await raw(t, server);
    client.send('{"id":1,"connect":{"token":null,"extra":[1]},"subscribe":null,"more":{}}');
    assert.ok((await client.reply(1)).connect);
  });

  const refused = {
    'malformed JSON': ['{"id":1,'],
    'an empty message': [''],
    'a blank line': ['{"id":1,"connect":{}}\n\n{"id":2,"rpc":{}}'],
    'an array instead of a command': ['[1]'],
    'a wrong type': ['{"id":"one","connect":{}}'],
    'connect with id 0': ['{"connect":{}}'],
    'another command first': ['{"id":1,"subscribe":{"channel":"a"}}'],
    'a second connect': ['{"id":1,"connect":{}}', '{"id":2,"connect":{}}'],
    'subscribe with id 0': ['{"id":1,"connect":{}}', '{"subscribe":{"channel":"a"}}'],
    'a command without a request': ['{"id":1,"connect":{}}', '{"id":2}'],
    'an empty channel': ['{"id":1,"connect":{}}', '{"id":2,"subscribe":{"channel":""}}'],
    'a pong that nobody asked for': ['{"id":1,"connect":{}}', '{}'],
  };
  for (const [what, messages] of Object.entries(refused)) {
    test(`${what} ends with 3501 bad request`, async (t) => {
      const client = await raw(t, server);
      for (const message of messages) client.send(message);
      const { code, reason } = await client.closed();
      assert.deepEqual([code, reason.split(': ')[0]], [3501, 'bad request']);
    });
  }

  test('send has no receiver and ends with 3508', async (t) => {
    const client = await raw(t, server);
    await client.connect();
    client.send({ send: { data: {} } });
    assert.equal((await client.closed()).code, 3508);
  });

  test('a Protobuf length beyond the message ends with 3501', async (t) => {
    const client = await binary(t, Buffer.from([0x7f, 1, 2]));
    assert.equal((await client.closed()).code, 3501);
  });

  test('Protobuf that is no command ends with 3501', async (t) => {
    const client = await binary(t, Buffer.from([2, 0xff, 0xff]));
    assert.equal((await client.closed()).code, 3501);
  });

  test('a reply after an error to connect is never sent', async (t) => {
    const strict = await start();
    t.after(() => strict.stop());
    const client = await raw(t, strict);
    const expired = token({ sub: '42', exp: 1 });
    client.send({ id: 1, connect: { token: expired } }, { id: 2, rpc: { method: 'none' } });
    assert.equal((await client.reply(1)).error.code, 109);
    client.send({ id: 3, rpc: { method: 'none' } });
    assert.equal((await client.closed()).code, 3501);
    assert.equal(client.replies.items.length, 1);
  });
});

describe('replies', () => {
  test('connect tells the ping interval and wants pongs', async (t) => {
    const client = await raw(t, server);
    const { connect } = await client.connect({ name: 'by hand' });
    assert.equal(connect.ping, 25);
    assert.equal(connect.pong, true);
    assert.ok(connect.version);
    assert.equal(connect.session, undefined);
    assert.equal(connect.expires, undefined);
  });

  test('empty results are present and an error has no result', async (t) => {
    const client = await raw(t, server);
    await client.connect();
    assert.deepEqual(await client.subscribe('plain'), { id: 2, subscribe: {} });
    const again = await client.subscribe('plain', 3);
    assert.deepEqual(again, { id: 3, error: { code: 105, message: 'already subscribed' } });
    client.send({ id: 4, unsubscribe: { channel: 'plain' } });
    assert.deepEqual(await client.reply(4), { id: 4, unsubscribe: {} });
    client.send({ id: 5, unsubscribe: { channel: 'never' } });
    assert.deepEqual(await client.reply(5), { id: 5, unsubscribe: {} });
  });

  test('a channel name of 255 bytes is accepted and 256 bytes are error 107', async (t) => {
    const client = await raw(t, server);
    await client.connect();
    assert.ok((await client.subscribe('a'.repeat(255))).subscribe);
    assert.equal((await client.subscribe('a'.repeat(256), 3)).error.code, 107);
  });

  test('channel 129 is error 106 with the default limit', async (t) => {
    const client = await raw(t, server);
    await client.connect();
    for (let n = 1; n <= 129; n += 1) client.send({ id: n + 1, subscribe: { channel: `c${n}` } });
    assert.equal((await client.reply(130)).error.code, 106);
    assert.ok((await client.reply(129)).subscribe);
  });

  test('large ids come back as they are', async (t) => {
    const client = await raw(t, server);
    await client.connect();
    client.send({ id: 4_294_967_295, rpc: { method: 'none' } });
    assert.equal((await client.reply(4_294_967_295)).error.code, 108);
  });

  test('a publication is embedded as it was sent, without raw line breaks', async (t) => {
    const client = await raw(t, server);
    await client.connect();
    await client.subscribe('lines');
    const body = '{"channel":"lines","data":{\n  "text": "a\\nb",\n  "n": 1.50\n}}';
    const headers = { 'X-API-Key': API_KEY };
    await fetch(`${server.http}/api/publish`, { method: 'POST', headers, body });
    assert.deepEqual(await client.publications('lines', 1), [{ text: 'a\nb', n: 1.5 }]);
    const frame = await client.frames.find((text) => text.includes('"pub"'), 'publication');
    assert.ok(frame.includes('1.50'), 'the number keeps its digits');
  });
});

describe('permessage-deflate', () => {
  const rows = Array.from({ length: 400 }, (_, n) => ({ n, team: `team ${n % 7}`, score: n * 3 }));

  test('is negotiated, and a large publication arrives equal in fewer bytes', async (t) => {
    const client = await raw(t, server);
    assert.match(client.socket.extensions, /permessage-deflate/);
    await client.connect();
    await client.subscribe('large');
    const before = client.socket._socket.bytesRead;
    await server.api('publish', { channel: 'large', data: { rows } });
    const [data] = await client.publications('large', 1);
    assert.deepEqual(data, { rows });
    const received = client.socket._socket.bytesRead - before;
    assert.ok(received * 3 < JSON.stringify(data).length, `${received} bytes on the wire`);
  });

  test('is not used for a client that did not offer it', async (t) => {
    const client = await raw(t, server, { perMessageDeflate: false });
    assert.equal(client.socket.extensions, '');
    await client.connect();
    await client.subscribe('plain-large');
    await server.api('publish', { channel: 'plain-large', data: { rows } });
    assert.deepEqual(await client.publications('plain-large', 1), [{ rows }]);
  });

  test('compressed commands are read, message after message', async (t) => {
    const client = await raw(t, server, { perMessageDeflate: { threshold: 0 } });
    await client.connect();
    await client.subscribe('echo');
    for (let n = 0; n < 50; n += 1) {
      client.send({ id: 10 + n, publish: { channel: 'echo', data: { n, text: 'a'.repeat(n * 100) } } });
    }
    const data = await client.publications('echo', 50);
    assert.deepEqual(data.map(({ n, text }) => [n, text.length]), data.map((_, n) => [n, n * 100]));
  });

  for (const offer of [
    'permessage-deflate; server_no_context_takeover; client_no_context_takeover',
    'permessage-deflate; client_max_window_bits=10; server_max_window_bits=10',
    'permessage-deflate; unknown=1, permessage-deflate',
  ]) {
    test(`answers the offer ${offer}`, async () => {
      const { headers } = await upgrade({ 'Sec-WebSocket-Extensions': offer });
      assert.match(headers['sec-websocket-extensions'], /^permessage-deflate.*client_no_context_takeover/);
    });
  }

  test('declines a window of 8 bits', async () => {
    const offer = 'permessage-deflate; server_max_window_bits=8';
    const { status, headers } = await upgrade({ 'Sec-WebSocket-Extensions': offer });
    assert.equal(status, 101);
    assert.equal(headers['sec-websocket-extensions'], undefined);
  });
});

describe('time', () => {
  test('a client that answers pings stays', async (t) => {
    const client = await raw(t, hasty);
    await client.connect();
    for (let pings = 1; pings <= 3; pings += 1) {
      const isPing = (reply) => Object.keys(reply).length === 0;
      const seen = () => client.replies.items.filter(isPing).length >= pings || undefined;
      await client.replies.wait(seen, `ping ${pings}`);
    }
    client.send({ id: 9, rpc: { method: 'none' } });
    assert.equal((await client.reply(9)).error.code, 108);
  });

  test('a client that does not answer pings ends with 3012', async (t) => {
    const client = await raw(t, hasty);
    client.answersPings = false;
    await client.connect();
    assert.deepEqual(await client.closed(), { code: 3012, reason: 'no pong' });
    assert.ok(client.frames.items.includes('{}'));
  });

  test('a client that does not connect ends with 3502', async (t) => {
    const client = await raw(t, hasty);
    assert.deepEqual(await client.closed(), { code: 3502, reason: 'stale' });
  });

  test('a ping frame of the client is answered with its payload', async (t) => {
    const client = await raw(t, server);
    const pong = once(client.socket, 'pong');
    client.socket.ping('are you there');
    assert.equal((await within(pong, 'pong'))[0].toString(), 'are you there');
  });

  test('native ping frames replace ping replies where the client asks for them', async (t) => {
    const query = '?cf_ws_frame_ping_pong=true';
    const client = await raw(t, { websocket: hasty.websocket + query });
    const pings = once(client.socket, 'ping');
    const { connect } = await client.connect();
    assert.deepEqual([connect.ping, connect.pong], [undefined, undefined]);
    await within(pings, 'ping frame');
    assert.deepEqual(client.frames.items.length, 1);
  });
});

/** An upgrade request by hand: its status and headers. */
async function upgrade(headers) {
  const request = http.request(server.websocket.replace('ws:', 'http:'), {
    headers: {
      Connection: 'Upgrade',
      Upgrade: 'websocket',
      'Sec-WebSocket-Version': '13',
      'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
      ...headers,
    },
  });
  const answer = new Promise((resolve, reject) => {
    request.on('upgrade', (response, socket) => {
      socket.destroy();
      resolve(response);
    });
    request.on('response', (response) => resolve(response.resume()));
    request.on('error', reject);
  });
  request.end();
  const response = await within(answer, 'answer to an upgrade request');
  return { status: response.statusCode, headers: response.headers };
}

/** A Protobuf client that sends one binary message. */
async function binary(t, message) {
  const client = await raw(t, { websocket: `${server.websocket}?format=protobuf` });
  client.socket.send(message);
  return client;
}
