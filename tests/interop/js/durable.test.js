// Durable Streams beside WebSockets, over real sockets: who may read, what ends a read, what a closed one leaves behind.
// In: settings, tokens, answers of proxies, sockets that close or reset → out: statuses, events, counts of connections.
// May use npm centrifuge and ws, and plain sockets. Never waits for a moment.
// The protocol itself is tested by ../durable, limits and access in crates/durable.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { HttpBackend, connected, seconds, serve } from '../backends.js';
import { API_KEY, eventually, token } from '../server.js';
import { raw, tcp } from './clients.js';

const LOG = { name: 'log', history_size: 100, history_ttl: '1h', allow_subscribe_for_client: true, allow_history_for_subscriber: true };
const STREAMS = { enabled: true, namespace: 'log', sse_timeout: '1h', long_poll_timeout: '1h' };
const LIVE = ['offset=-1&live=sse', 'offset=now&live=long-poll'];

const get = (server, stream, query = '', headers = {}) =>
  fetch(`${server.http}/v1/stream/${stream}?${query}`, { headers, signal: AbortSignal.timeout(10_000) });

/** Begins a read on a socket of its own. */
function read(t, server, query, bearer) {
  const connection = tcp(t, server);
  connection.socket.write(`GET /v1/stream/a?${query} HTTP/1.1\r\nHost: ${server.host}\r\nAuthorization: Bearer ${bearer}\r\n\r\n`);
  return connection;
}

/** Open connections of clients, live reads among them. */
async function open(server) {
  const text = await (await fetch(`${server.http}/metrics`)).text();
  return Number(/transport_connections (\d+)/.exec(text)[1]);
}

test('who may not connect or subscribe may not read', async (t) => {
  const backend = await HttpBackend.start(t, {
    '/connect': ({ headers }) =>
      headers.cookie ? { result: { user: headers.cookie, meta: { m: 1 } } } : { disconnect: { code: 4501, reason: 'no cookie' } },
    '/subscribe': ({ body }) => (body.channel === 'log:secret' ? { error: { code: 403, message: 'not yours' } } : { result: {} }),
  });
  const server = await serve(t, {
    client: { allow_anonymous_connect_without_token: true, ...connected(backend, { http_headers: ['Cookie'] }) },
    channel: {
      proxy: { subscribe: { endpoint: backend.url('/subscribe'), http_headers: ['Cookie'], include_connection_meta: true } },
      namespaces: [{ ...LOG, allow_subscribe_for_client: false, subscribe_proxy_enabled: true }],
    },
    durable_streams: STREAMS, prometheus: { enabled: true },
  });
  for (const channel of ['log:secret', 'log:a']) await server.api('publish', { channel, data: 1 });
  const ada = { token: token({ sub: 'ada' }) };
  const client = await raw(t, server);
  await client.connect(ada);
  client.send({ id: 9, subscribe: { channel: 'log:secret' } });
  assert.equal((await client.reply(9)).error.code, 403);
  const bearer = { Authorization: `Bearer ${ada.token}` };
  for (const query of ['', ...LIVE, `token=${ada.token}`]) {
    const refused = await get(server, 'secret', query, query.startsWith('token') ? {} : bearer);
    assert.deepEqual([refused.status, await refused.text()], [403, 'not yours\n'], query);
  }
  assert.equal((await get(server, 'a', '', bearer)).status, 200);
  const nobody = await get(server, 'a');
  assert.deepEqual([nobody.status, await nobody.text()], [403, 'no cookie\n']);
  assert.deepEqual(await (await get(server, 'a', '', { Cookie: 'bob' })).json(), [1]);
  const { body, headers } = backend.at('/subscribe').at(-1);
  const { client: id, ...asked } = body;
  assert.match(id, /^[0-9a-f-]{36}$/);
  assert.equal(headers.cookie, 'bob');
  assert.deepEqual(asked, {
    transport: 'durable_streams', protocol: 'json', encoding: 'json', user: 'bob', channel: 'log:a', meta: { m: 1 },
  });
  assert.equal((await get(server, 'secret', '', { 'X-API-Key': API_KEY })).status, 200);
  backend.answers['/subscribe'] = () => [500, 'down'];
  assert.equal((await get(server, 'a', '', bearer)).status, 503);
});

test('a block, a revocation and the end of a token end open reads', async (t) => {
  const server = await serve(t, { channel: { namespaces: [LOG] }, durable_streams: STREAMS, prometheus: { enabled: true } });
  await server.api('publish', { channel: 'log:a', data: 1 });
  const ends = {
    block: [{ sub: 'ann' }, () => server.api('block_user', { user: 'ann' })],
    revoke: [{ sub: 'ada', jti: 'one' }, () => server.api('revoke_token', { uid: 'one' })],
    invalidate: [{ sub: 'eve', iat: seconds(-60) }, () => server.api('invalidate_user_tokens', { user: 'eve' })],
    expire: [{ sub: 'bob', exp: seconds(3) }, () => {}],
  };
  for (const [name, [claims, end]] of Object.entries(ends)) {
    const reads = LIVE.map((query) => read(t, server, query, token(claims)));
    await eventually(async () => (await open(server)) === 2, `two reads before ${name}`);
    await end();
    await eventually(async () => (await open(server)) === 0, `the end of both after ${name}`);
    await server.api('publish', { channel: 'log:a', data: `after ${name}` });
    for (const { text } of reads) assert.ok(!text.includes(`after ${name}`), text);
    assert.match(reads[1].text, /^HTTP\/1.1 401/, name);
    reads.forEach(({ socket }) => socket.destroy());
  }
});

test('a read that its client closed or reset is over at once', async (t) => {
  const server = await serve(t, {
    channel: { namespaces: [LOG] },
    client: { connection_limit: 20 },
    durable_streams: STREAMS, prometheus: { enabled: true },
  });
  await server.api('publish', { channel: 'log:a', data: 1 });
  const ada = token({ sub: 'ada' });
  const closes = [(socket) => socket.destroy(), (socket) => socket.end(), (socket) => socket.resetAndDestroy()];
  for (const query of LIVE) {
    for (const close of closes) {
      const reads = Array.from({ length: 20 }, () => read(t, server, query, ada));
      await eventually(async () => (await open(server)) === 20, 'twenty reads');
      const refused = await get(server, 'a', query, { Authorization: `Bearer ${ada}` });
      assert.equal(refused.status, 503, 'they count as clients');
      reads.forEach(({ socket }) => close(socket));
      await eventually(async () => (await open(server)) === 0, `the end of ${query}`);
    }
  }
});

test('a connection of long-polls is kept, one of events ends with them', async (t) => {
  const server = await serve(t, { channel: { namespaces: [LOG] }, durable_streams: { ...STREAMS, sse_timeout: '1s' }, prometheus: { enabled: true } });
  await server.api('publish', { channel: 'log:a', data: 1 });
  const ada = token({ sub: 'ada' });
  const polls = read(t, server, 'offset=-1&live=long-poll', ada);
  await eventually(() => polls.text.endsWith('[1]'), 'the first response');
  polls.socket.write(`GET /v1/stream/a?offset=now&live=long-poll HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${ada}\r\n\r\n`);
  await eventually(async () => (await open(server)) === 1, 'a read that waits');
  await server.api('publish', { channel: 'log:a', data: 2 });
  await eventually(() => polls.text.endsWith('[2]'), 'the second response on the same connection');
  assert.doesNotMatch(polls.text, /connection: close/i);
  const events = read(t, server, LIVE[0], ada);
  await events.ended;
  assert.match(events.text, /connection: close/i);
});

test('bytes of a client with Protobuf break no stream of JSON', async (t) => {
  const server = await serve(t, {
    channel: { namespaces: [{ ...LOG, allow_publish_for_client: true }] },
    client: { insecure: true },
    durable_streams: STREAMS, prometheus: { enabled: true },
  });
  for (const data of ['1', '2],"x":[', '3']) {
    await server.api('publish', { channel: 'log:a', b64data: Buffer.from(data).toString('base64') });
  }
  assert.deepEqual(await (await get(server, 'a')).json(), [1, 3]);
  const metrics = await (await fetch(`${server.http}/metrics`)).text();
  assert.match(metrics, /durable_streams_payloads_left_out\S* 1\n/);
  const client = await raw(t, server);
  await client.connect();
  const nested = (levels) => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
  client.send({ id: 5, publish: { channel: 'log:a', data: nested(513) } }, { id: 6, publish: { channel: 'log:a', data: nested(512) } });
  assert.equal((await client.reply(5)).error.code, 107);
  assert.equal((await client.reply(6)).error, undefined);
  assert.equal((await server.apiReply('publish', { channel: 'log:a', data: nested(513) })).error.code, 107);
});
