// Event proxies over gRPC: metadata, every unary method, and subscription streams one way and both ways.
// In: settings with gRPC endpoints → out: what a backend was asked, and what clients get of its answers and streams.
// May use npm centrifuge and npm gRPC; backends are started by ../backends.js.
// What both kinds of backends share is in the other files of proxies.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import grpc from '@grpc/grpc-js';

import * as backends from '../backends.js';
import { bytes, grpcBackend, seconds, unary } from '../backends.js';
import { freePort } from '../ports.js';
import { Log, eventually } from '../server.js';
import { ENCODINGS, connect, next, raw, sdk, subscribe, withHeaders } from './clients.js';

const [JSON_SDK, PROTOBUF_SDK] = ENCODINGS;
const key = (file) => fileURLToPath(new URL(`../../keys/${file}`, import.meta.url));

/** A server with these settings that ends with the test; every client is `ada` by a backend. */
function serve(t, address, { client = {}, proxy = {}, ...settings } = {}) {
  const connect = { enabled: true, endpoint: address, ...proxy };
  return backends.serve(t, { client: { ...client, proxy: { connect, ...client.proxy } }, ...settings });
}

const Connect = unary(() => ({ result: { user: 'ada' } }));

/** Methods of streams: `calls` logs them, and `begin` answers each. */
function streams(begin = () => ({ result: {} })) {
  const emitter = new EventEmitter();
  const calls = new Log(emitter, 'call');
  const opened = (call, request) => {
    const one = { call, request, sent: new Log(emitter, Symbol('sent')), cancelled: false };
    call.on('cancelled', () => (one.cancelled = true));
    call.on('error', () => {}); // it is cancelled
    const answer = begin(request);
    if (answer) call.write({ subscribe_response: answer });
    emitter.emit('call', one);
    return one;
  };
  const SubscribeUnidirectional = (call) => void opened(call, call.request);
  const SubscribeBidirectional = (call) => {
    let one;
    const sent = new EventEmitter();
    const log = new Log(sent, 'data');
    call.on('data', (message) => {
      if (one) sent.emit('data', message);
      else one = Object.assign(opened(call, message.subscribe_request), { sent: log });
    });
  };
  return { calls, methods: { Connect, SubscribeUnidirectional, SubscribeBidirectional } };
}

const streamed = (address, more = {}, options = {}) => ({
  channel: {
    proxy: { subscribe_stream: { endpoint: address, ...options } },
    namespaces: [{ name: 'live', subscribe_stream_proxy_enabled: true, ...more }],
  },
});

test('unary calls of every event, with metadata in lower case', async (t) => {
  process.env.FANWIRE_VAR_PROXIES_TEST = 'secret';
  t.after(() => delete process.env.FANWIRE_VAR_PROXIES_TEST);
  const asked = {};
  const renewals = { refresh: [{ expire_at: seconds(300) }], sub_refresh: [{ expire_at: seconds(300) }] };
  const seen = (name, decide) =>
    unary((request, metadata) => {
      asked[name] = { request, metadata: metadata.getMap() };
      return decide(request);
    });
  const { address } = await grpcBackend(t, {
    Connect: seen('connect', () => ({
      result: { user: 'ada', expire_at: seconds(2), info: bytes({ name: 'Ada' }), data: bytes({ n: 1 }), meta: bytes({ role: 1 }) },
    })),
    Refresh: seen('refresh', () => ({ result: renewals.refresh[0] })),
    Subscribe: seen('subscribe', () => ({ result: { data: bytes({ n: 2 }), expire_at: seconds(2) } })),
    SubRefresh: seen('sub_refresh', () => ({ result: renewals.sub_refresh[0] })),
    Publish: seen('publish', ({ data }) => ({ result: { data: bytes({ said: JSON.parse(data) }), tags: { a: 'b' } } })),
    RPC: seen('rpc', ({ data }) => ({ result: { data } })),
  });
  const rules = {
    endpoint: address,
    include_connection_meta: true,
    http_headers: ['Cookie'],
    emulated_headers: ['Authorization'],
    grpc: {
      static_metadata: { 'X-Key': '${FANWIRE_VAR_PROXIES_TEST}' },
      credentials_key: 'X-Credentials',
      credentials_value: 'c',
      compression: true,
    },
  };
  const server = await serve(t, address, {
    proxy: rules,
    client: { proxy: { refresh: { enabled: true, ...rules } } },
    channel: {
      proxy: { subscribe: rules, publish: rules, sub_refresh: rules },
      namespaces: [{ name: 'room', subscribe_proxy_enabled: true, publish_proxy_enabled: true, sub_refresh_proxy_enabled: true }],
    },
    rpc: { proxy: rules, without_namespace: { proxy_enabled: true } },
  });
  const websocket = withHeaders({ Cookie: 'session=ada' });
  const client = sdk(t, server, JSON_SDK, { websocket, headers: { Authorization: 'Bearer t' }, data: { page: 1 } });
  const context = await connect(client);
  assert.deepEqual(context.data, { n: 1 });
  const { subscription, publications } = await subscribe(client, 'room:1', { data: { seat: 3 } });
  await subscription.publish({ text: 'hello' });
  const [publication] = await publications.count(1);
  assert.deepEqual([publication.data, publication.tags], [{ said: { text: 'hello' } }, { a: 'b' }]);
  assert.deepEqual((await client.rpc('echo', [1])).data, [1]);
  await eventually(() => asked.refresh && asked.sub_refresh, 'both refreshes');
  assert.deepEqual([client.state, subscription.state], ['connected', 'subscribed']);
  assert.deepEqual(Object.keys(asked).sort(), ['connect', 'publish', 'refresh', 'rpc', 'sub_refresh', 'subscribe']);
  for (const [name, { request, metadata }] of Object.entries(asked)) {
    const { cookie, authorization, 'x-key': key, 'x-credentials': credentials } = metadata;
    assert.deepEqual([cookie, authorization, key, credentials], ['session=ada', 'Bearer t', 'secret', 'c'], name);
    assert.deepEqual([request.client, request.protocol], [context.client, 'json'], name);
    if (name !== 'connect') assert.deepEqual([request.user, JSON.parse(request.meta)], ['ada', { role: 1 }], name);
  }
  assert.deepEqual(JSON.parse(asked.subscribe.request.data), { seat: 3 });
  assert.equal(asked.sub_refresh.request.channel, 'room:1');
});

test('bytes of a Protobuf client need no base64', async (t) => {
  const { address } = await grpcBackend(t, { Connect, RPC: unary(({ data }) => ({ result: { data } })) });
  const server = await serve(t, address, { rpc: { proxy: { endpoint: address }, without_namespace: { proxy_enabled: true } } });
  const client = sdk(t, server, PROTOBUF_SDK);
  await connect(client);
  const data = new Uint8Array([0, 255, 1]);
  assert.deepEqual([...(await client.rpc('any', data)).data], [...data]);
});

test('errors, disconnects, and statuses other than OK', async (t) => {
  const answers = {
    error: { error: { code: 1000, message: 'no', temporary: false } },
    both: { result: {}, error: { code: 1001, message: 'no' } },
    empty: {},
    out: { disconnect: { code: 4500, reason: 'out' } },
  };
  const RPC = (call, callback) => {
    const answer = answers[call.request.method];
    callback(answer ? null : { code: grpc.status.NOT_FOUND, details: 'no such method' }, answer);
  };
  const { address } = await grpcBackend(t, { Connect, RPC });
  const server = await serve(t, address, { rpc: { proxy: { endpoint: address }, without_namespace: { proxy_enabled: true } } });
  const client = sdk(t, server, JSON_SDK);
  await connect(client);
  await assert.rejects(client.rpc('error', {}), { code: 1000, message: 'no' });
  await assert.rejects(client.rpc('both', {}), { code: 1001 });
  await assert.rejects(client.rpc('status', {}), { code: 100, temporary: true });
  assert.equal((await client.rpc('empty', {})).data, undefined);
  const disconnected = next(client, 'disconnected');
  client.rpc('out', {}).catch(() => {});
  assert.equal((await disconnected).code, 4500);
});

test('TLS in both directions: unary calls and streams', async (t) => {
  const { calls, methods } = streams();
  const pair = { private_key: readFileSync(key('localhost.private.pem')), cert_chain: readFileSync(key('localhost.pem')) };
  const credentials = grpc.ServerCredentials.createSsl(readFileSync(key('ca.pem')), [pair], true);
  const { port } = await grpcBackend(t, methods, { credentials });
  const address = `localhost:${port}`;
  const trusting = { enabled: true, server_ca_pem: key('ca.pem') };
  const own = { cert_pem: key('localhost.pem'), key_pem: key('localhost.private.pem') };
  const right = { grpc: { tls: { ...trusting, ...own } } };
  const server = await serve(t, address, { proxy: right, ...streamed(address, {}, right) });
  const client = sdk(t, server, JSON_SDK);
  await connect(client);
  const { publications } = await subscribe(client, 'live:1');
  calls.items[0].call.write({ publication: { data: bytes('secret') } });
  assert.deepEqual((await publications.count(1)).map(({ data }) => data), ['secret']);
  const wrong = [{}, { tls: { enabled: true, ...own } }, { tls: { ...trusting, ...own, server_name: 'other.test' } }, { tls: trusting }];
  for (const grpc of wrong) {
    const server = await serve(t, address, { proxy: { grpc } });
    const client = await raw(t, server);
    assert.equal((await client.connect()).error?.code, 100, JSON.stringify(grpc));
  }
});

for (const encoding of ENCODINGS) {
  test(`${encoding.name}: a stream one way brings publications to its subscriber alone`, async (t) => {
    const { calls, methods } = streams(() => ({ result: { data: bytes({ n: 1 }) } }));
    const { address } = await grpcBackend(t, methods);
    const server = await serve(t, address, streamed(address));
    const [client, other] = [sdk(t, server, encoding), sdk(t, server, encoding)];
    await connect(client);
    await connect(other);
    const { subscription, publications } = await subscribe(client, 'live:1', { data: encoding.payload({ seat: 1 }) });
    const { publications: ofOther } = await subscribe(other, 'live:1');
    const [first, second] = await calls.count(2);
    assert.deepEqual([first.request.user, first.request.channel], ['ada', 'live:1']);
    assert.deepEqual(JSON.parse(first.request.data), { seat: 1 });
    for (let n = 0; n < 100; n += 1) first.call.write({ publication: { data: bytes({ n }), tags: { n: String(n) } } });
    second.call.write({ publication: { data: bytes('other') } });
    const arrived = (await publications.count(100)).map(({ data, tags, offset }) => [encoding.value(data).n, tags.n, offset]);
    assert.deepEqual(arrived, Array.from({ length: 100 }, (_, n) => [n, String(n), undefined]));
    assert.deepEqual((await ofOther.count(1)).map(({ data }) => encoding.value(data)), ['other']);
    await server.api('publish', { channel: 'live:1', data: 'api' });
    assert.equal(encoding.value((await publications.count(101)).at(-1).data), 'api');
    await assert.rejects(subscription.publish(encoding.payload({ up: 1 })), { code: 108 });

    subscription.unsubscribe();
    await eventually(() => first.cancelled, 'the stream is cancelled');
    other.disconnect();
    await eventually(() => second.cancelled, 'the other stream is cancelled');
  });
}

test('the end of a stream is an unsubscribe for good, its failure makes a new one', async (t) => {
  const { calls, methods } = streams();
  const { address } = await grpcBackend(t, methods);
  const server = await serve(t, address, streamed(address));
  const client = sdk(t, server, JSON_SDK);
  await connect(client);
  const { subscription, publications } = await subscribe(client, 'live:1');
  const [first] = await calls.count(1);
  const subscribing = next(subscription, 'subscribing');
  const subscribed = next(subscription, 'subscribed');
  first.call.emit('error', { code: grpc.status.UNAVAILABLE, details: 'it restarts' });
  assert.equal((await subscribing).code, 2500);
  await subscribed;
  const [, second] = await calls.count(2);
  second.call.write({ publication: { data: bytes('again') } });
  assert.deepEqual((await publications.count(1)).map(({ data }) => data), ['again']);
  const unsubscribed = next(subscription, 'unsubscribed');
  second.call.end();
  assert.equal((await unsubscribed).code, 2000);
  assert.equal(calls.items.length, 2);
});

test('a stream both ways: what the client publishes goes up, and nowhere else', async (t) => {
  const { calls, methods } = streams();
  const { address } = await grpcBackend(t, methods);
  const server = await serve(t, address, streamed(address, { subscribe_stream_proxy_bidirectional: true }));
  const [client, other] = [sdk(t, server, JSON_SDK), sdk(t, server, JSON_SDK)];
  await connect(client);
  await connect(other);
  const { subscription, publications } = await subscribe(client, 'live:1', { data: { seat: 1 } });
  const [{ call, request, sent }] = await calls.count(1);
  assert.deepEqual([request.user, request.channel, JSON.parse(request.data)], ['ada', 'live:1', { seat: 1 }]);
  const { publications: ofOther } = await subscribe(other, 'live:1');
  for (let n = 0; n < 20; n += 1) await subscription.publish({ n });
  const arrived = (await sent.count(20)).map(({ publication }) => JSON.parse(publication.data).n);
  assert.deepEqual(arrived, Array.from({ length: 20 }, (_, n) => n));
  call.write({ publication: { data: bytes('down') } });
  assert.deepEqual((await publications.count(1)).map(({ data }) => data), ['down']);
  assert.deepEqual(ofOther.items, []);
  await assert.rejects(client.publish('live:2', {}), { code: 103 });
  const unsubscribed = next(subscription, 'unsubscribed');
  call.end();
  assert.equal((await unsubscribed).code, 2000);
});

test('the first answer of a stream decides: an error, a disconnect, none in time', async (t) => {
  const answers = {
    'live:no': { error: { code: 403, message: 'not yours', temporary: false } },
    'live:out': { disconnect: { code: 4500, reason: 'out' } },
  };
  const { calls, methods } = streams(({ channel }) => answers[channel]);
  const { address } = await grpcBackend(t, methods);
  const server = await serve(t, address, streamed(address, {}, { timeout: '300ms' }));
  const client = sdk(t, server, JSON_SDK);
  await connect(client);
  const refused = client.newSubscription('live:no');
  const unsubscribed = next(refused, 'unsubscribed');
  refused.subscribe();
  const { code, reason } = await unsubscribed;
  assert.deepEqual([code, reason], [403, 'not yours']);
  const silent = client.newSubscription('live:silent');
  const failed = next(silent, 'error');
  silent.subscribe();
  assert.equal((await failed).error.code, 100);
  silent.unsubscribe();
  const isOfSilent = ({ request }) => request.channel === 'live:silent';
  await eventually(() => calls.items.filter(isOfSilent).every(({ cancelled }) => cancelled), 'its streams are cancelled');
  const disconnected = next(client, 'disconnected');
  client.newSubscription('live:out').subscribe();
  assert.equal((await disconnected).code, 4500);
});

test('publications follow the reply, streams do not count as calls, and the API ends them', async (t) => {
  const { calls, methods } = streams();
  const begin = methods.SubscribeUnidirectional;
  const SubscribeUnidirectional = (call) => {
    begin(call);
    for (let n = 0; n < 5; n += 1) call.write({ publication: { data: bytes(n) } });
  };
  const { address } = await grpcBackend(t, { ...methods, SubscribeUnidirectional });
  const server = await serve(t, address, streamed(address, {}, { in_flight_max: 1, queue_max: 0 }));
  const client = await raw(t, server);
  await client.connect();
  const channels = [0, 1, 2, 3].map((n) => `live:${n}`);
  for (const [at, channel] of channels.entries()) {
    assert.equal((await client.subscribe(channel, 10 + at)).error, undefined);
    assert.deepEqual(await client.publications(channel, 5), [0, 1, 2, 3, 4]);
    const order = client.replies.items.map((reply) => reply.id ?? reply.push.channel);
    assert.ok(order.indexOf(10 + at) < order.indexOf(channel), String(order));
  }
  await server.api('unsubscribe', { user: 'ada', channel: 'live:0' });
  await eventually(() => calls.items[0].cancelled, 'the first stream is cancelled');
  assert.equal(calls.items[1].cancelled, false);
  await server.api('disconnect', { user: 'ada' });
  await eventually(() => calls.items.every(({ cancelled }) => cancelled), 'all streams are cancelled');
});

test('a client that is slower than its stream is disconnected with 3008, and the stream is cancelled', async (t) => {
  const { calls, methods } = streams();
  const { address } = await grpcBackend(t, methods);
  // A write that makes no progress for that long would end the connection without a close frame.
  const slow = { client: { queue_max_size: 262_144 }, websocket: { write_timeout: '60s' } };
  const server = await serve(t, address, { ...streamed(address), ...slow });
  const client = await raw(t, server, { perMessageDeflate: false });
  await client.connect();
  await client.subscribe('live:1');
  client.socket.pause();
  const [one] = await calls.count(1);
  const data = bytes(randomBytes(7_500).toString('base64'));
  const cancelled = once(one.call, 'cancelled');
  while (!one.cancelled) {
    // `write` returns true however much waits to be sent, and sockets are read between two turns of the event loop alone.
    const sent = new Promise((resolve) => void one.call.write({ publication: { data } }, resolve));
    await Promise.race([sent, cancelled]);
    await new Promise(setImmediate);
  }
  client.socket.resume();
  assert.equal((await client.closed()).code, 3008);
});

test('subscriptions are back when a backend that was down is back', async (t) => {
  const { calls, methods } = streams();
  const backend = await grpcBackend(t, methods, { at: await freePort() });
  const server = await serve(t, backend.address, streamed(backend.address));
  const client = sdk(t, server, JSON_SDK);
  await connect(client);
  const { subscription, publications } = await subscribe(client, 'live:1');
  const subscribing = next(subscription, 'subscribing');
  const failed = next(subscription, 'error');
  backend.server.forceShutdown();
  assert.equal((await subscribing).code, 2500);
  assert.equal((await failed).error.code, 100);
  const subscribed = next(subscription, 'subscribed');
  await grpcBackend(t, methods, { at: backend.port });
  await subscribed;
  calls.items.at(-1).call.write({ publication: { data: bytes('again') } });
  assert.deepEqual((await publications.count(1)).map(({ data }) => data), ['again']);
});

test('streams end with the server', async (t) => {
  const { calls, methods } = streams();
  const { address } = await grpcBackend(t, methods);
  const server = await serve(t, address, streamed(address));
  const client = sdk(t, server, JSON_SDK);
  await connect(client);
  await subscribe(client, 'live:1');
  assert.equal(await server.stop(), 0);
  await eventually(() => calls.items[0].cancelled, 'the stream is cancelled');
});
