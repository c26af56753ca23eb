// Options of event proxies: headers, names, namespaces of methods, transforms, meta, binary encoding; and payloads as such.
// In: settings with proxies → out: which backend was asked, with what, and what clients get of its statuses.
// May use npm centrifuge and ws; backends are started by ../backends.js.
// What answers do is in proxies.test.js, failures are in proxies_failures.test.js, gRPC in proxies_grpc.test.js.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http2 from 'node:http2';
import https from 'node:https';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { HttpBackend, asAda, connected, seconds, serve } from '../backends.js';
import { token } from '../server.js';
import { ENCODINGS, connect, next, raw, sdk, subscribe, withHeaders } from './clients.js';

const [JSON_SDK, PROTOBUF_SDK] = ENCODINGS;
const key = (file) => fileURLToPath(new URL(`../../keys/${file}`, import.meta.url));

test('headers: static ones, over them emulated ones, over both those of the request', async (t) => {
  process.env.FANWIRE_VAR_PROXIES_TEST = 'secret 1';
  t.after(() => delete process.env.FANWIRE_VAR_PROXIES_TEST);
  const backend = await HttpBackend.start(t, { '/connect': asAda, '/rpc': () => ({ result: {} }) });
  const rules = {
    http_headers: ['Cookie', 'x-both'],
    emulated_headers: ['Authorization', 'X-Both', 'X-Client'],
    http: { static_headers: { 'X-Key': 'a ${FANWIRE_VAR_PROXIES_TEST} b', 'X-Both': 'static' } },
  };
  const server = await serve(t, {
    client: connected(backend, rules),
    rpc: { proxy: { endpoint: backend.url('/rpc'), ...rules }, without_namespace: { proxy_enabled: true } },
  });
  const asked = async (request, headers) => {
    const before = backend.events.items.length;
    const client = sdk(t, server, JSON_SDK, { websocket: withHeaders(request), headers });
    await connect(client);
    await client.rpc('any', {});
    const [first, second] = backend.events.items.slice(before).map((event) => event.headers);
    const names = ['cookie', 'x-both', 'authorization', 'x-client', 'x-other', 'x-key', 'content-type'];
    const pick = (all) => Object.fromEntries(names.filter((name) => all[name]).map((name) => [name, all[name]]));
    assert.deepEqual(pick(second), pick(first), 'the same in later events');
    const { 'x-key': key, 'content-type': type, ...others } = pick(first);
    assert.deepEqual([key, type], ['a secret 1 b', 'application/json']);
    return others;
  };

  const request = { COOKIE: 'session=ada', 'X-Both': ['request', 'again'], 'X-Client': 'request', 'X-Other': 'request' };
  const emulated = { authorization: 'Bearer t', 'X-BOTH': 'emulated', Cookie: 'forged', 'X-Other': 'emulated' };
  const both = await asked(request, emulated);
  assert.deepEqual(both, { cookie: 'session=ada', 'x-both': 'request, again', authorization: 'Bearer t' });
  assert.deepEqual(await asked({}, emulated), { 'x-both': 'emulated', authorization: 'Bearer t' });
  assert.deepEqual(await asked({}, { 'X-Client': 'ü' }), { 'x-both': 'static', 'x-client': Buffer.from('ü').toString('latin1') });
  assert.deepEqual(await asked({}, {}), { 'x-both': 'static' });
  assert.deepEqual(await asked({}, { 'X-Client': 'a\r\nX-Both: forged' }), { 'x-both': 'static' });
});

test('namespaces choose named proxies', async (t) => {
  const answer = () => ({ result: {} });
  const backend = await HttpBackend.start(t, { '/connect': asAda, '/subscribe': answer, '/publish': answer, '/shop': answer });
  const on = { subscribe_proxy_enabled: true, publish_proxy_enabled: true };
  const server = await serve(t, {
    client: connected(backend),
    proxies: [{ name: 'shop', endpoint: backend.url('/shop') }],
    channel: {
      proxy: { subscribe: { endpoint: backend.url('/subscribe') }, publish: { endpoint: backend.url('/publish') } },
      without_namespace: { allow_subscribe_for_client: true },
      namespaces: [
        { name: 'room', ...on },
        { name: 'orders', ...on, subscribe_proxy_name: 'shop', publish_proxy_name: 'shop' },
      ],
    },
  });
  const client = sdk(t, server, JSON_SDK);
  await connect(client);
  await subscribe(client, 'free');
  const { subscription: room } = await subscribe(client, 'room:1', { data: { seat: 1 } });
  const { subscription: orders } = await subscribe(client, 'orders:1');
  await room.publish({ n: 1 });
  await orders.publish({ n: 2 });
  const asked = backend.events.items.slice(1).map(({ path, body }) => [path, body.user, body.channel, body.data]);
  assert.deepEqual(asked, [
    ['/subscribe', 'ada', 'room:1', { seat: 1 }],
    ['/shop', 'ada', 'orders:1', undefined],
    ['/publish', 'ada', 'room:1', { n: 1 }],
    ['/shop', 'ada', 'orders:1', { n: 2 }],
  ]);
});

test('rpc namespaces: their proxy, 104 for unknown ones, and the ping of the server', async (t) => {
  const answer = ({ path, body }) => ({ result: { data: { path, method: body.method } } });
  const backend = await HttpBackend.start(t, { '/connect': asAda, '/rpc': answer, '/shop': answer });
  const server = await serve(t, {
    client: connected(backend),
    proxies: [{ name: 'shop', endpoint: backend.url('/shop') }],
    rpc: {
      ping: { enabled: true },
      proxy: { endpoint: backend.url('/rpc') },
      without_namespace: { proxy_enabled: true },
      namespaces: [{ name: 'shop', proxy_enabled: true, proxy_name: 'shop' }, { name: 'own', proxy_enabled: true }],
    },
  });
  const client = sdk(t, server, JSON_SDK);
  await connect(client);
  const asked = async (method) => (await client.rpc(method, {})).data;
  assert.deepEqual(await asked('plain'), { path: '/rpc', method: 'plain' });
  assert.deepEqual(await asked('shop:a:b'), { path: '/shop', method: 'shop:a:b' });
  assert.deepEqual(await asked('own:a'), { path: '/rpc', method: 'own:a' });
  await assert.rejects(client.rpc('unknown:a', {}), { code: 104 });
  await client.rpc('ping', {});
  assert.equal(backend.events.items.length, 4, 'the server answers its ping itself');
});

test('rpc without a proxy is error 108, in an unknown namespace 104', async (t) => {
  const backend = await HttpBackend.start(t, { '/connect': asAda, '/rpc': () => ({ result: {} }) });
  const server = await serve(t, {
    client: connected(backend),
    rpc: { proxy: { endpoint: backend.url('/rpc') }, namespaces: [{ name: 'off' }, { name: 'on', proxy_enabled: true }] },
  });
  const client = sdk(t, server, JSON_SDK);
  await connect(client);
  await client.rpc('on:a', {});
  for (const method of ['plain', 'off:a']) await assert.rejects(client.rpc(method, {}), { code: 108 });
  await assert.rejects(client.rpc('unknown:a', {}), { code: 104 });
});

test('transforms make errors and disconnects of statuses', async (t) => {
  const backend = await HttpBackend.start(t, {
    '/connect': ({ headers }) => (headers.cookie ? asAda() : [401, 'who are you?']),
    '/rpc': ({ body }) => [Number(body.method), 'text'],
  });
  const transforms = [
    { status_code: 404, to_error: { code: 1404, message: 'not found', temporary: true } },
    { status_code: 401, to_disconnect: { code: 4501, reason: 'unauthorized' } },
    { status_code: 404, to_error: { code: 1405, message: 'a later row' } },
  ];
  const http = { status_to_code_transforms: transforms };
  const server = await serve(t, {
    client: connected(backend, { http_headers: ['Cookie'], http }),
    rpc: { proxy: { endpoint: backend.url('/rpc'), http }, without_namespace: { proxy_enabled: true } },
  });
  const end = async (client, act) => {
    const disconnected = next(client, 'disconnected');
    act(client);
    const { code, reason } = await disconnected;
    assert.deepEqual([code, reason], [4501, 'unauthorized']);
  };
  await end(sdk(t, server, JSON_SDK), (client) => client.connect());
  const client = sdk(t, server, JSON_SDK, { websocket: withHeaders({ Cookie: 'a=b' }) });
  await connect(client);
  await assert.rejects(client.rpc('404', {}), { code: 1404, message: 'not found', temporary: true });
  await assert.rejects(client.rpc('403', {}), { code: 100, temporary: true });
  await end(client, () => client.rpc('401', {}).catch(() => {}));
});

test('payloads are the bytes that the client wrote', async (t) => {
  const texts = [];
  const backend = await HttpBackend.start(t, { '/connect': asAda, '/rpc': ({ text }) => void texts.push(text) ?? { result: {} } });
  const server = await serve(t, {
    client: connected(backend),
    rpc: { proxy: { endpoint: backend.url('/rpc') }, without_namespace: { proxy_enabled: true } },
  });
  const client = await raw(t, server);
  await client.connect();
  const deep = '['.repeat(1000) + ']'.repeat(1000);
  const payloads = ['12345678901234567890', '1.00000000000000000001', '"\\ud800"', '{"a":1,"a":2}', '[ 1 , 2 ]', '"\u2028ü"', '""', 'null', deep];
  for (const [at, data] of payloads.entries()) {
    client.send(`{"id":${at + 2},"rpc":{"method":"any","data":${data}}}`);
    assert.equal((await client.reply(at + 2)).error, undefined);
    assert.ok(texts[at].endsWith(`,"data":${data}}`), texts[at]);
  }
});

test('TLS in both directions, with HTTP/2 where the backend has it', async (t) => {
  const [ca, cert, privateKey] = ['ca.pem', 'localhost.pem', 'localhost.private.pem'].map(key);
  const files = { ca: readFileSync(ca), cert: readFileSync(cert), key: readFileSync(privateKey) };
  const trusting = { enabled: true, server_ca_pem: ca };
  const own = { cert_pem: cert, key_pem: privateKey };
  const demanding = { ...files, allowHTTP1: true, requestCert: true, rejectUnauthorized: true };
  for (const [make, version] of [[http2.createSecureServer, '2.0'], [https.createServer, '1.1']]) {
    const serverOf = (answered) => make(demanding, answered);
    const answers = { '/connect': asAda, '/rpc': () => ({ result: { data: 1 } }) };
    const backend = await HttpBackend.start(t, answers, { serverOf });
    const url = (at) => backend.url(at).replace('http:', 'https:');
    const right = { http_headers: ['Cookie'], http: { tls: { ...trusting, ...own } } };
    const server = await serve(t, {
      client: connected(backend, { endpoint: url('/connect'), ...right }),
      rpc: { proxy: { endpoint: url('/rpc'), ...right }, without_namespace: { proxy_enabled: true } },
    });
    const client = sdk(t, server, JSON_SDK, { websocket: withHeaders({ Cookie: 'session=ada' }) });
    await connect(client);
    const calls = await Promise.all(Array.from({ length: 50 }, () => client.rpc('any', {})));
    assert.ok(calls.every(({ data }) => data === 1));
    for (const { httpVersion, headers } of backend.events.items) {
      assert.deepEqual([httpVersion, headers.cookie], [version, 'session=ada']);
    }
    for (const tls of [{}, own, { ...trusting, ...own, server_name: 'other.test' }, trusting]) {
      const http = { tls: { enabled: true, ...tls } };
      const server = await serve(t, { client: connected(backend, { endpoint: url('/connect'), http }) });
      const client = await raw(t, server);
      assert.equal((await client.connect()).error?.code, 100, JSON.stringify(tls));
    }
  }
});

test('credentials in an endpoint are sent', async (t) => {
  const backend = await HttpBackend.start(t, { '/connect': asAda });
  const endpoint = backend.url('/connect').replace('//', '//user:secret@');
  const server = await serve(t, { client: connected(backend, { endpoint }) });
  await connect(sdk(t, server, JSON_SDK));
  const basic = `Basic ${Buffer.from('user:secret').toString('base64')}`;
  assert.equal(backend.events.items[0].headers.authorization, basic);
});

test('the meta of a connection goes to proxies that include it, and to no client', async (t) => {
  const meta = { role: 'admin', tenant: [7] };
  const answer = () => ({ result: {} });
  const backend = await HttpBackend.start(t, {
    '/connect': () => ({ result: { user: 'ada', meta } }),
    '/subscribe': answer,
    '/rpc': answer,
  });
  const server = await serve(t, {
    client: connected(backend, { include_connection_meta: true }),
    channel: {
      proxy: { subscribe: { endpoint: backend.url('/subscribe') } },
      namespaces: [{ name: 'room', subscribe_proxy_enabled: true }],
    },
    rpc: {
      proxy: { endpoint: backend.url('/rpc'), include_connection_meta: true },
      without_namespace: { proxy_enabled: true },
    },
  });
  for (const options of [{}, { token: token({ sub: 'ada', meta }) }]) {
    const client = sdk(t, server, JSON_SDK, options);
    const context = await connect(client);
    assert.ok(!JSON.stringify(context).includes('admin'));
    await subscribe(client, 'room:1');
    await client.rpc('any', {});
    const [subscribed, called] = backend.events.items.slice(-2);
    assert.deepEqual([subscribed.path, subscribed.body.meta], ['/subscribe', undefined]);
    assert.deepEqual([called.path, called.body.meta], ['/rpc', meta]);
  }
});

test('every request but connect has the labels of the connection', async (t) => {
  const labels = { plan: 'pro', region: 'eu "1"' };
  const backend = await HttpBackend.start(t, {
    '/connect': () => ({ result: { user: 'ada', labels, expire_at: seconds(2) } }),
    '/refresh': () => ({ result: { expire_at: seconds(100) } }),
    '/subscribe': () => ({ result: { expire_at: seconds(2) } }),
    '/sub_refresh': () => ({ result: { expire_at: seconds(100) } }),
    '/publish': () => ({ result: {} }),
    '/rpc': () => ({ result: {} }),
  });
  const at = (event) => ({ endpoint: backend.url(`/${event}`) });
  const client = connected(backend);
  client.proxy.refresh = { enabled: true, ...at('refresh') };
  const server = await serve(t, {
    client,
    channel: {
      proxy: { subscribe: at('subscribe'), sub_refresh: at('sub_refresh'), publish: at('publish') },
      without_namespace: { subscribe_proxy_enabled: true, sub_refresh_proxy_enabled: true, publish_proxy_enabled: true },
    },
    rpc: { proxy: at('rpc'), without_namespace: { proxy_enabled: true } },
  });
  const ada = sdk(t, server, JSON_SDK);
  await connect(ada);
  const { subscription } = await subscribe(ada, 'here');
  await subscription.publish({});
  await ada.rpc('any', {});
  assert.equal(backend.at('/connect')[0].body.labels, undefined);
  for (const event of ['refresh', 'subscribe', 'sub_refresh', 'publish', 'rpc']) {
    const [{ body }] = await backend.count(`/${event}`, 1);
    assert.deepEqual(body.labels, labels, event);
  }
});

test('bytes of a Protobuf client are base64 with binary_encoding, and 107 without', async (t) => {
  const data = new Uint8Array([0, 255, 1]);
  const b64data = Buffer.from(data).toString('base64');
  const backend = await HttpBackend.start(t, {
    '/connect': () => ({ result: { user: 'ada', b64info: b64data, b64data } }),
    '/rpc': ({ body }) => ({ result: { b64data: body.b64data } }),
    '/plain': ({ body }) => ({ result: { data: body.data } }),
    '/publish': () => ({ result: {} }),
  });
  const server = await serve(t, {
    client: connected(backend, { binary_encoding: true }),
    proxies: [{ name: 'plain', endpoint: backend.url('/plain') }],
    channel: {
      proxy: { publish: { endpoint: backend.url('/publish'), binary_encoding: true } },
      namespaces: [{ name: 'room', publish_proxy_enabled: true, allow_subscribe_for_client: true }],
    },
    rpc: {
      proxy: { endpoint: backend.url('/rpc'), binary_encoding: true },
      without_namespace: { proxy_enabled: true },
      namespaces: [{ name: 'plain', proxy_enabled: true, proxy_name: 'plain' }],
    },
  });
  const client = sdk(t, server, PROTOBUF_SDK, { data });
  const context = await connect(client);
  assert.deepEqual([...context.data], [...data]);
  assert.deepEqual([...(await client.rpc('any', data)).data], [...data]);
  const { subscription, publications } = await subscribe(client, 'room:1');
  await subscription.publish(data);
  const [publication] = await publications.count(1);
  assert.deepEqual([...publication.data], [...data]);
  assert.deepEqual([...publication.info.connInfo], [...data]);
  for (const { body } of backend.events.items) {
    const { protocol, encoding, data } = body;
    assert.deepEqual([protocol, encoding, body.b64data, data], ['protobuf', 'binary', b64data, undefined]);
  }
  await assert.rejects(client.rpc('plain:any', data), { code: 107 });
  const text = PROTOBUF_SDK.payload({ n: 1 });
  assert.deepEqual(PROTOBUF_SDK.value((await client.rpc('plain:any', text)).data), { n: 1 });
  assert.equal(backend.at('/plain').length, 1);
});
