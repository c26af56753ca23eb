// Event proxies over HTTP: the programs of docs/backends.md, then every rule of docs/proxies.md with a backend in the test.
// In: settings with proxies → out: what a backend was asked, and what clients get of its answers.
// May use npm centrifuge and ws; backends are started by ../backends.js.
// gRPC and subscription streams are in proxies_grpc.test.js, limits and circuits in the crate `proxy`.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import WebSocket from 'ws';

import { HttpBackend, filesOf, program } from '../backends.js';
import { API_KEY, Log, TOKEN_SECRET, check, eventually, start, startWith, token } from '../server.js';
import { ENCODINGS, connect, next, raw, sdk, subscribe } from './clients.js';

const [JSON_SDK, PROTOBUF_SDK] = ENCODINGS;
const PAGE = filesOf('backends.md');
/** The only language of the page that the suites do not need otherwise. */
const HAS_PHP = spawnSync('php', ['--version']).status === 0;

/** A WebSocket whose request has these headers. */
const withHeaders = (headers) =>
  class extends WebSocket {
    constructor(url, protocols) {
      super(url, protocols, { headers });
    }
  };

const seconds = (from = 0) => Math.floor(Date.now() / 1000) + from;

/** A server with these settings that ends with the test. */
async function serve(t, settings) {
  const server = await start(settings);
  t.after(() => server.stop());
  return server;
}

/** Settings in which everybody is connected as `ada` by the backend. */
const connected = (backend, options = {}) => ({
  proxy: { connect: { enabled: true, endpoint: backend.url('/connect'), ...options } },
});
const asAda = () => ({ result: { user: 'ada' } });

for (const [name, config, port] of [
  ['backend.mjs', 'fanwire.yaml', 3000],
  ['backend.py', 'fanwire.yaml', 3000],
  ['backend.go', 'fanwire.yaml', 3000],
  ['grpc.mjs', 'grpc.yaml', 12000],
  ...(HAS_PHP ? [['index.php', 'fanwire.yaml', 3000]] : []),
]) {
  test(`the page: ${name} decides about a chat`, async (t) => {
    const { code, text } = await check(PAGE[config]);
    assert.ok(code === 0 && !text.includes('warning:'), text);
    const address = await program(t, name, PAGE[name]);
    const server = await startWith(PAGE[config].replaceAll(`127.0.0.1:${port}`, address));
    t.after(() => server.stop());
    const enter = (user) =>
      sdk(t, server, JSON_SDK, { websocket: withHeaders({ Cookie: `theme=dark; session=${user}` }) });

    for (const stranger of [enter('eve'), sdk(t, server, JSON_SDK)]) {
      const disconnected = next(stranger, 'disconnected');
      stranger.connect();
      const { code, reason } = await disconnected;
      assert.deepEqual([code, reason], [4501, 'unauthorized']);
    }

    const [ada, bob] = [enter('ada'), enter('bob')];
    const personal = new Log(ada, 'subscribed');
    await connect(ada);
    await connect(bob);
    assert.deepEqual((await personal.count(1)).map(({ channel }) => channel), ['personal:ada']);

    const { subscription: board } = await subscribe(ada, 'room:board');
    const { publications } = await subscribe(bob, 'room:board');
    const { clients } = await board.presence();
    const present = Object.values(clients).map(({ user, connInfo }) => [user, connInfo]);
    assert.deepEqual(present.sort(), [['ada', { name: 'Ada' }], ['bob', { name: 'Bob' }]]);
    const kitchen = ada.newSubscription('room:kitchen');
    const refused = next(kitchen, 'unsubscribed');
    kitchen.subscribe();
    const { code: denied, reason } = await refused;
    assert.deepEqual([denied, reason], [403, 'not a member of this room']);

    await board.publish({ text: 'hello' });
    const [{ data, info }] = await publications.count(1);
    assert.deepEqual(data, { text: 'hello', from: 'Ada' });
    assert.equal(info.user, 'ada');
    for (const data of [{ text: ' ' }, { text: 5 }, {}, 'text', 7, ['text']]) {
      await assert.rejects(board.publish(data), { code: 1001, message: 'the text is empty' });
    }
    await assert.rejects(ada.publish('room:kitchen', { text: 'hello' }), { code: 403 });
    assert.equal(publications.items.length, 1);

    assert.deepEqual((await ada.rpc('room_members', { room: 'room:board' })).data, { members: ['ada', 'bob'] });
    assert.ok(Math.abs((await ada.rpc('time')).data.unix - seconds()) < 60);
    await assert.rejects(ada.rpc('nothing', {}), { code: 404, message: 'unknown method' });
    for (const room of ['room:kitchen', '__proto__', 1, ['room:board'], {}]) {
      await assert.rejects(ada.rpc('room_members', { room }), { code: 403, message: 'not a member of this room' });
    }
    await assert.rejects(ada.rpc('room_members'), { code: 403 });
  });
}

test('a connect carries what the client said, and its result is the connection', async (t) => {
  const data = { from: 'the backend' };
  const backend = await HttpBackend.start(t, {
    '/connect': () => ({ result: { user: 'quo"te\u0001', info: { name: 'Q' }, data, later: true } }),
    '/rpc': ({ body }) => ({ result: { data: body } }),
  });
  const server = await serve(t, {
    client: connected(backend),
    rpc: { proxy: { endpoint: backend.url('/rpc') }, without_namespace: { proxy_enabled: true } },
  });
  const client = sdk(t, server, JSON_SDK, { data: { page: 7 }, name: 'shop', version: '1.2' });
  const context = await connect(client);
  assert.deepEqual(context.data, data);
  const [{ body, headers }] = backend.at('/connect');
  assert.equal(headers['content-type'], 'application/json');
  const common = { client: context.client, transport: 'websocket', protocol: 'json', encoding: 'json' };
  assert.deepEqual(body, { ...common, data: { page: 7 }, name: 'shop', version: '1.2' });
  const asked = (await client.rpc('echo', [1, 'ü'])).data;
  assert.deepEqual(asked, { ...common, user: 'quo"te\u0001', method: 'echo', data: [1, 'ü'] });
});

test('a token is not sent to the connect proxy, and no result is no user', async (t) => {
  const backend = await HttpBackend.start(t, { '/connect': () => ({}) });
  const server = await serve(t, { client: connected(backend) });
  await connect(sdk(t, server, JSON_SDK, { token: token({ sub: 'ada' }) }));
  assert.deepEqual(backend.events.items, []);
  const client = sdk(t, server, JSON_SDK);
  const disconnected = next(client, 'disconnected');
  client.connect();
  assert.equal((await disconnected).code, 3501);
  backend.answers['/connect'] = () => ({ result: {} });
  await connect(sdk(t, server, JSON_SDK)); // an anonymous user
});

test('channels and subscriptions of a connect: data, info, overrides', async (t) => {
  const subs = {
    'news:kept': { data: { n: 1 }, info: { seat: 4 }, override: { force_recovery: { value: true } } },
    'news:hidden': { override: { presence: { value: false } } },
  };
  const backend = await HttpBackend.start(t, {
    '/connect': () => ({ result: { user: 'ada', info: { name: 'Ada' }, channels: ['news:plain'], subs } }),
  });
  const server = await serve(t, {
    client: connected(backend),
    channel: { namespaces: [{ name: 'news', presence: true, history_size: 10, history_ttl: '60s' }] },
  });
  const client = sdk(t, server, JSON_SDK);
  const subscribed = new Log(client, 'subscribed');
  await connect(client);
  const all = Object.fromEntries((await subscribed.count(3)).map((context) => [context.channel, context]));
  assert.deepEqual(all['news:kept'].data, { n: 1 });
  assert.equal(all['news:kept'].recoverable, true);
  assert.equal(all['news:plain'].recoverable, false);
  const present = async (channel) => Object.values((await server.api('presence', { channel })).presence);
  const [{ user, conn_info, chan_info }] = await present('news:kept');
  assert.deepEqual([user, conn_info, chan_info], ['ada', { name: 'Ada' }, { seat: 4 }]);
  assert.equal((await present('news:plain')).length, 1);
  assert.equal((await present('news:hidden')).length, 0);

  const unknown = await raw(t, server);
  backend.answers['/connect'] = () => ({ result: { user: 'ada', channels: ['nothing:1'] } });
  assert.equal((await unknown.connect()).error.code, 102);
});

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

test('the refresh proxy moves the end of a connection, then ends it with 3005', async (t) => {
  const backend = await HttpBackend.start(t, {
    '/connect': () => ({ result: { user: 'ada', expire_at: seconds(2), info: { name: 'Ada' } } }),
    '/refresh': () => ({ result: { expire_at: seconds(3), info: { name: 'Ada 2' } } }),
  });
  const client = connected(backend);
  client.proxy.refresh = { enabled: true, endpoint: backend.url('/refresh') };
  const open = { allow_subscribe_for_client: true, allow_publish_for_subscriber: true };
  const server = await serve(t, { client, channel: { without_namespace: open } });
  const ada = sdk(t, server, JSON_SDK);
  const context = await connect(ada);
  const { subscription, publications } = await subscribe(ada, 'here');
  const connecting = next(ada, 'connecting');
  await backend.count('/refresh', 1);
  backend.answers['/refresh'] = () => ({ result: { expired: true } });
  await eventually(async () => {
    await subscription.publish({});
    return publications.items.at(-1)?.info.connInfo.name === 'Ada 2';
  }, 'the new info');
  assert.equal((await connecting).code, 3005);
  const [first, second, ...more] = backend.at('/refresh').map(({ body }) => body);
  assert.deepEqual([first.user, first.client, second.client, more], ['ada', context.client, context.client, []]);
});

test('without refresh proxies the client is told when it ends, and the past is error 110', async (t) => {
  const ends = ({ body }) => ({ result: { user: body.user ?? 'ada', expire_at: body.data } });
  const backend = await HttpBackend.start(t, { '/connect': ends, '/subscribe': ends });
  const server = await serve(t, {
    client: connected(backend),
    channel: {
      proxy: { subscribe: { endpoint: backend.url('/subscribe') } },
      namespaces: [{ name: 'room', subscribe_proxy_enabled: true }],
    },
  });
  const client = await raw(t, server);
  const { connect } = await client.connect({ data: seconds(100) });
  assert.ok(connect.expires && connect.ttl > 90 && connect.ttl <= 100);
  client.send({ id: 2, subscribe: { channel: 'room:1', data: seconds(100) } });
  const { subscribe } = await client.reply(2);
  assert.ok(subscribe.expires && subscribe.ttl > 90 && subscribe.ttl <= 100);
  assert.equal((await (await raw(t, server)).connect({ data: seconds(-5) })).error.code, 110);
  assert.equal((await (await raw(t, server)).connect({ data: 0 })).connect.expires, undefined);
});

test('a refresh is obeyed: no result, an error and the past are 3005, a disconnect is its code', async (t) => {
  const answers = [
    [{}, 3005],
    [{ error: { code: 1000, message: 'no' } }, 3005],
    [{ result: { expire_at: 1 } }, 3005],
    [{ disconnect: { code: 4500, reason: 'logged out' } }, 4500],
    [{ error: { code: 1000 }, disconnect: { code: 4100, reason: 'return' } }, 4100],
  ];
  const backend = await HttpBackend.start(t, {
    '/connect': ({ body }) => ({ result: { user: String(body.data.at), expire_at: seconds(2) } }),
    '/refresh': ({ body }) => answers[Number(body.user)][0],
  });
  const client = connected(backend);
  client.proxy.refresh = { enabled: true, endpoint: backend.url('/refresh') };
  const server = await serve(t, { client });
  const ends = answers.map(async ([, code], at) => {
    const one = await raw(t, server);
    assert.ok((await one.connect({ data: { at } })).connect);
    assert.equal((await one.closed()).code, code, `answer ${at}`);
  });
  await Promise.all(ends);
});

test('the sub_refresh proxy moves the end of a subscription, then ends it with 2501', async (t) => {
  const answers = [() => ({ result: { expire_at: seconds(2) } }), () => ({ result: { expired: true } })];
  const backend = await HttpBackend.start(t, {
    '/connect': asAda,
    '/subscribe': () => ({ result: { expire_at: seconds(2) } }),
    '/sub_refresh': () => (answers.shift() ?? (() => ({})))(),
  });
  const server = await serve(t, {
    client: connected(backend),
    channel: {
      proxy: { subscribe: { endpoint: backend.url('/subscribe') }, sub_refresh: { endpoint: backend.url('/sub_refresh') } },
      namespaces: [{ name: 'room', subscribe_proxy_enabled: true, sub_refresh_proxy_enabled: true }],
    },
  });
  const client = sdk(t, server, JSON_SDK);
  await connect(client);
  const { subscription } = await subscribe(client, 'room:1');
  const subscribing = next(subscription, 'subscribing');
  const [{ body }] = await backend.count('/sub_refresh', 1);
  assert.deepEqual([body.user, body.channel], ['ada', 'room:1']);
  assert.equal((await subscribing).code, 2501);
  assert.equal(backend.at('/sub_refresh').length, 2);
});

test('a subscribe: data, overrides, no result, and what the client wishes', async (t) => {
  const answers = {
    'room:kept': { result: { data: { n: 1 }, override: { force_recovery: { value: true } } } },
    'room:none': {},
    'room:null': { result: null, error: null },
    'room:past': { result: { expire_at: 1 } },
    'room:out': { disconnect: { code: 4500, reason: 'out' }, error: { code: 403, message: 'no' } },
    'room:both': { result: {}, error: { code: 403, message: 'no', temporary: false } },
  };
  const backend = await HttpBackend.start(t, { '/connect': asAda, '/subscribe': ({ body }) => answers[body.channel] });
  const server = await serve(t, {
    client: connected(backend),
    channel: {
      proxy: { subscribe: { endpoint: backend.url('/subscribe') } },
      namespaces: [{ name: 'room', subscribe_proxy_enabled: true, history_size: 10, history_ttl: '60s' }],
    },
  });
  const client = await raw(t, server);
  await client.connect();
  const asked = async (channel, id) => {
    client.send({ id, subscribe: { channel, recoverable: true, positioned: true, join_leave: true } });
    return client.reply(id);
  };
  const kept = (await asked('room:kept', 2)).subscribe;
  assert.deepEqual([kept.data, kept.recoverable], [{ n: 1 }, true]);
  assert.deepEqual(await asked('room:none', 3), { id: 3, subscribe: {} });
  assert.deepEqual(await asked('room:null', 4), { id: 4, subscribe: {} });
  assert.equal((await asked('room:past', 5)).error.code, 110);
  assert.deepEqual((await asked('room:both', 6)).error, { code: 403, message: 'no' });
  client.send({ id: 7, subscribe: { channel: 'room:out' } });
  assert.deepEqual(await client.closed(), { code: 4500, reason: 'out' });
});

test('a publish: tags, no history, bytes, and a backend that publishes itself', async (t) => {
  const answers = {
    tags: { result: { tags: { lang: 'de' }, idempotency_key: 'once' } },
    once: { result: { idempotency_key: 'once' } },
    lost: { result: { skip_history: true } },
    replaced: { result: { b64data: Buffer.from('{"by":"b64data"}').toString('base64') } },
    both: { result: { data: { by: 'data' }, b64data: 'bm8=' } },
    broken: { result: { b64data: '!' } },
    done: { error: { code: 1000, message: 'published' } },
  };
  const backend = await HttpBackend.start(t, { '/connect': asAda, '/publish': ({ body }) => answers[body.data.as] });
  const server = await serve(t, {
    client: connected(backend),
    channel: {
      proxy: { publish: { endpoint: backend.url('/publish') } },
      namespaces: [{ name: 'room', publish_proxy_enabled: true, allow_subscribe_for_client: true, history_size: 10, history_ttl: '60s' }],
    },
  });
  const client = sdk(t, server, JSON_SDK);
  await connect(client);
  const { publications } = await subscribe(client, 'room:1');
  for (const as of ['tags', 'once', 'lost', 'replaced', 'both']) await client.publish('room:1', { as });
  await assert.rejects(client.publish('room:1', { as: 'broken' }), { code: 100 });
  await assert.rejects(client.publish('room:1', { as: 'done' }), { code: 1000, message: 'published' });
  const arrived = (await publications.count(4)).map(({ data, tags }) => [data, tags]);
  assert.deepEqual(arrived, [
    [{ as: 'tags' }, { lang: 'de' }],
    [{ as: 'lost' }, undefined],
    [{ by: 'b64data' }, undefined],
    [{ by: 'data' }, undefined],
  ]);
  const kept = (await server.api('history', { channel: 'room:1', limit: -1 })).publications;
  assert.deepEqual(kept.map(({ data }) => data), [{ as: 'tags' }, { by: 'b64data' }, { by: 'data' }]);
});

test('answers that are none are error 100, and counted by their cause', async (t) => {
  const far = 'x'.repeat(5 << 20);
  const answers = {
    204: [204, ''],
    301: () => [301, '', { Location: '/elsewhere' }],
    500: [500, { result: { data: 1 } }],
    html: '<html></html>',
    text: '"text"',
    list: '[]',
    empty: '',
    type: { result: 5 },
    code: { error: { code: 'x' } },
    base64: { result: { b64data: '!' } },
    huge: { result: { data: far } },
    slow: undefined,
    cut: (_, response) => void response.writeHead(200, { 'Content-Length': 100 }).write('{', () => response.destroy()),
    late: (_, response) => void response.writeHead(200).write('{"result":'),
  };
  const answer = ({ body }, response) => {
    const answer = answers[body.method];
    return typeof answer === 'function' ? answer(body, response) : answer;
  };
  const backend = await HttpBackend.start(t, { '/connect': asAda, '/rpc': answer });
  const server = await serve(t, {
    client: connected(backend),
    prometheus: { enabled: true },
    rpc: { proxy: { endpoint: backend.url('/rpc'), timeout: '500ms' }, without_namespace: { proxy_enabled: true } },
  });
  const client = sdk(t, server, JSON_SDK);
  await connect(client);
  for (const method of Object.keys(answers)) {
    await assert.rejects(client.rpc(method, {}), { code: 100, temporary: true }, method);
  }
  assert.deepEqual(backend.at('/elsewhere'), [], 'a redirect is not followed');
  answers.null = { result: null };
  answers.bare = {};
  answers.data = { result: { data: null, b64data: '' }, more: [{}] };
  for (const method of ['null', 'bare']) assert.equal((await client.rpc(method, {})).data, undefined, method);
  assert.equal((await client.rpc('data', {})).data ?? null, null);
  const page = await (await fetch(`${server.http}/metrics`)).text();
  const count = (cause) => {
    const line = page.split('\n').find((line) => line.startsWith('fanwire_proxy_failures_total{') && line.includes(`cause="${cause}"`));
    return Number(line?.split(' ').at(-1) ?? 0);
  };
  assert.deepEqual(['status', 'timeout'].map(count), [3, 2]);
  assert.ok(count('answer') >= 6 && count('transport') >= 1, String(['answer', 'transport'].map(count)));
  answers.zero = { error: { code: 0, message: 'a mistake of the backend' } };
  const connecting = next(client, 'connecting');
  client.rpc('zero', {}).catch(() => {});
  assert.equal((await connecting).code, 3004);
});

test('clients are connected when a backend that was down is back', async (t) => {
  const down = await HttpBackend.start(t, {});
  down.stop();
  await once(down.server, 'close');
  const server = await serve(t, {
    client: { ...connected(down), allow_anonymous_connect_without_token: false },
    rpc: { proxy: { endpoint: down.url('/rpc') }, without_namespace: { proxy_enabled: true } },
  });
  const client = sdk(t, server, JSON_SDK);
  const errors = new Log(client, 'error');
  const isBack = next(client, 'connected');
  client.connect();
  const { error } = await errors.find(({ type }) => type === 'connect', 'an error of the connect');
  assert.deepEqual([error.code, error.temporary], [100, true]);
  const answers = { '/connect': asAda, '/rpc': () => ({ result: { data: 'here' } }) };
  const backend = await HttpBackend.start(t, answers, down.port);
  await isBack;
  assert.equal((await client.rpc('any', {})).data, 'here');
  backend.stop();
  await assert.rejects(client.rpc('any', {}), { code: 100, temporary: true });
  assert.equal(client.state, 'connected');
  const again = await HttpBackend.start(t, answers, down.port);
  assert.equal((await client.rpc('any', {})).data, 'here');
  assert.equal(again.events.items.length, 1);
});

test('ten thousand calls of one client at once are each answered', async (t) => {
  const backend = await HttpBackend.start(t, {
    '/connect': asAda,
    '/rpc': ({ body }) => ({ result: { data: body.data } }),
  });
  const server = await serve(t, {
    client: connected(backend),
    rpc: { proxy: { endpoint: backend.url('/rpc'), timeout: '10s' }, without_namespace: { proxy_enabled: true } },
  });
  const patient = { timeout: 300_000 };
  const [client, other] = [sdk(t, server, JSON_SDK, patient), sdk(t, server, JSON_SDK, patient)];
  await connect(client);
  await connect(other);
  const calls = Array.from({ length: 10_000 }, (_, n) => client.rpc('echo', n));
  assert.equal((await other.rpc('echo', 'another')).data, 'another');
  const answers = await Promise.all(calls);
  answers.forEach(({ data }, n) => assert.equal(data, n));
  assert.equal(await server.connections(), 2);
});

test('a stalled backend gets in_flight_max calls, and every client its answer in time', async (t) => {
  const backend = await HttpBackend.start(t, { '/connect': () => undefined });
  const limits = { timeout: '2s', in_flight_max: 30, queue_max: 60 };
  const server = await serve(t, { client: connected(backend, limits), prometheus: { enabled: true } });
  const clients = await Promise.all(Array.from({ length: 200 }, () => raw(t, server)));
  const answers = await Promise.all(clients.map((client) => client.connect()));
  for (const { error } of answers) assert.deepEqual([error.code, error.temporary], [100, true]);
  assert.ok(backend.events.items.length <= 60, `${backend.events.items.length} calls`);
  const page = await (await fetch(`${server.http}/metrics`)).text();
  const lines = page.split('\n').filter((line) => line.startsWith('fanwire_proxy_'));
  assert.ok(lines.includes('fanwire_proxy_errors_total{protocol="http",type="connect",name="default"} 200'), lines.join());
  assert.ok(lines.includes('fanwire_proxy_circuit_open{section="client.proxy.connect"} 1'), lines.join());
});

test('clients of every transport are asked about, each with its headers and its end', async (t) => {
  const known = ({ headers }) => headers.cookie === 'session=ada';
  const no = { disconnect: { code: 4501, reason: 'unauthorized' } };
  const backend = await HttpBackend.start(t, { '/connect': (event) => (known(event) ? asAda() : no) });
  const statuses = { connect_code_to_http_response: { enabled: true, transforms: [{ code: 4501, to: { status_code: 401 } }] } };
  const server = await serve(t, {
    client: connected(backend, { http_headers: ['Cookie'], emulated_headers: ['Authorization'] }),
    http_stream: { enabled: true },
    sse: { enabled: true },
    uni_sse: { enabled: true, ...statuses },
    uni_http_stream: { enabled: true, ...statuses },
  });
  const request = { headers: { Authorization: 'Bearer t' } };
  const command = { id: 1, connect: request };
  const query = (value) => `?cf_connect=${encodeURIComponent(JSON.stringify(value))}`;
  const post = (value) => ({ method: 'POST', body: JSON.stringify(value) });
  const abort = new AbortController();
  t.after(() => abort.abort());
  const firstText = async ({ body }) => {
    const decoder = new TextDecoder();
    let text = '';
    for await (const part of body) {
      text += decoder.decode(part, { stream: true });
      if (/connect/.test(text)) return text;
    }
    return text;
  };
  for (const [transport, at, init, refusal] of [
    ['http_stream', '/connection/http_stream', post(command), 200],
    ['sse', `/connection/sse${query(command)}`, {}, 200],
    ['uni_sse', `/connection/uni_sse${query(request)}`, {}, 401],
    ['uni_http_stream', '/connection/uni_http_stream', post(request), 401],
  ]) {
    const ask = (Cookie) => fetch(server.http + at, { ...init, headers: { Cookie }, signal: abort.signal });
    const accepted = await ask('session=ada');
    assert.equal(accepted.status, 200, transport);
    assert.match(await firstText(accepted), /"client":"/, transport);
    const [{ body, headers }] = backend.events.items.slice(-1);
    assert.deepEqual([body.transport, headers.authorization], [transport, 'Bearer t']);
    const refused = await ask('session=eve');
    assert.equal(refused.status, refusal, transport);
    if (refusal === 200) assert.match(await firstText(refused), /"code":4501/, transport);
  }
});

test('a reload asks a running proxy in more namespaces, and adds no proxy', async (t) => {
  const backend = await HttpBackend.start(t, {
    '/connect': asAda,
    '/subscribe': () => ({ error: { code: 403, message: 'no' } }),
  });
  const settings = (namespace, more = {}) => ({
    http_server: { address: '127.0.0.1', port: 0 },
    http_api: { key: API_KEY },
    websocket: { compression_verify: true },
    client: { ...connected(backend), token: { hmac_secret_key: TOKEN_SECRET } },
    channel: {
      proxy: { subscribe: { endpoint: backend.url('/subscribe') } },
      namespaces: [{ name: 'room', allow_subscribe_for_client: true, ...namespace }],
    },
    ...more,
  });
  const server = await serve(t, settings({}));
  const reload = async (next, pattern) => {
    const before = server.lines.length;
    writeFileSync(path.join(server.folder, 'config.json'), JSON.stringify(next));
    server.child.kill('SIGHUP');
    await eventually(() => server.lines.slice(before).some((line) => pattern.test(line)), String(pattern));
  };
  const asked = async () => {
    const client = await raw(t, server);
    await client.connect();
    return (await client.subscribe('room:1')).error?.code;
  };
  assert.equal(await asked(), undefined);
  const named = { subscribe_proxy_enabled: true, subscribe_proxy_name: 'shop' };
  await reload(settings(named, { proxies: [{ name: 'shop', endpoint: backend.url('/subscribe') }] }), /was not reloaded/);
  assert.equal(await asked(), undefined);
  await reload(settings({ subscribe_proxy_enabled: true }), /configuration reloaded/);
  assert.equal(await asked(), 403);
});

test('what a client requests with its connect is for the backend to answer', async (t) => {
  const backend = await HttpBackend.start(t, { '/connect': asAda });
  const open = { name: 'room', allow_subscribe_for_client: true };
  const server = await serve(t, { client: connected(backend), channel: { namespaces: [open] } });
  const client = await raw(t, server);
  const { connect } = await client.connect({ subs: { 'room:1': {}, 'room:2': {} } });
  assert.equal(connect.subs, undefined);
  assert.deepEqual(backend.events.items[0].body.channels, ['room:1', 'room:2']);
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

test('credentials in an endpoint are sent', async (t) => {
  const backend = await HttpBackend.start(t, { '/connect': asAda });
  const endpoint = backend.url('/connect').replace('//', '//user:secret@');
  const server = await serve(t, { client: connected(backend, { endpoint }) });
  await connect(sdk(t, server, JSON_SDK));
  const basic = `Basic ${Buffer.from('user:secret').toString('base64')}`;
  assert.equal(backend.events.items[0].headers.authorization, basic);
});

test('a client that goes away while the backend thinks gets nothing, and no other is kept', async (t) => {
  let release;
  const thinking = new Promise((resolve) => (release = resolve));
  const backend = await HttpBackend.start(t, {
    '/connect': async ({ body }) => {
      if (body.data?.waits) await thinking;
      return asAda();
    },
  });
  const server = await serve(t, { client: connected(backend, { timeout: '30s' }) });
  const clients = await Promise.all(Array.from({ length: 50 }, () => raw(t, server)));
  for (const client of clients) client.send({ id: 1, connect: { data: { waits: true } } });
  await backend.count('/connect', 50);
  for (const client of clients) client.socket.terminate();
  await connect(sdk(t, server, JSON_SDK));
  release();
  await eventually(async () => (await server.connections()) === 1, 'one connection');
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
