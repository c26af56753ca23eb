// What event proxies send and what their answers do: connects, refreshes, subscribes and publishes over HTTP.
// In: settings with proxies, answers of a backend → out: what the backend was asked, and what clients get.
// May use npm centrifuge and ws; backends are started by ../backends.js.
// Keys of a proxy are in proxies_options.test.js, failures in proxies_failures.test.js, gRPC in proxies_grpc.test.js.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { HttpBackend, asAda, connected, seconds, serve } from '../backends.js';
import { Log, eventually, token } from '../server.js';
import { ENCODINGS, connect, next, raw, sdk, subscribe } from './clients.js';

const [JSON_SDK] = ENCODINGS;

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

test('calls of a connection are in flight at the same time as far as client.concurrency allows', async (t) => {
  const waiting = [];
  const backend = await HttpBackend.start(t, {
    // Answers when both calls are there, the later one first.
    '/rpc': ({ body }) => new Promise((resolve) => {
      waiting.unshift(() => resolve({ result: { data: body.data } }));
      if (waiting.length === 2) waiting.splice(0).forEach((answer) => answer());
    }),
  });
  const server = await serve(t, {
    client: { allow_anonymous_connect_without_token: true, concurrency: 2 },
    rpc: { proxy: { endpoint: backend.url('/rpc') }, without_namespace: { proxy_enabled: true } },
  });
  const client = sdk(t, server, JSON_SDK);
  await connect(client);
  const answers = await Promise.all([1, 2, 3, 4].map((data) => client.rpc('m', data)));
  assert.deepEqual(answers.map(({ data }) => data), [1, 2, 3, 4]);
});

test('the empty id of an anonymous user is sent, other empty values are not', async (t) => {
  const answer = () => ({ result: {} });
  const backend = await HttpBackend.start(t, { '/connect': answer, '/subscribe': answer, '/publish': answer, '/rpc': answer });
  const server = await serve(t, {
    client: connected(backend),
    channel: {
      proxy: { subscribe: { endpoint: backend.url('/subscribe') }, publish: { endpoint: backend.url('/publish') } },
      namespaces: [{ name: 'room', subscribe_proxy_enabled: true, publish_proxy_enabled: true }],
    },
    rpc: { proxy: { endpoint: backend.url('/rpc') }, without_namespace: { proxy_enabled: true } },
  });
  const client = await raw(t, server);
  await client.connect();
  client.send({ id: 2, subscribe: { channel: 'room:1' } }, { id: 3, publish: { channel: 'room:1', data: 0 } }, { id: 4, rpc: { method: 'any' } });
  await client.reply(4);
  const always = ['client', 'encoding', 'protocol', 'transport'];
  const keys = ([{ body }]) => Object.keys(body).sort();
  assert.deepEqual(keys(backend.at('/connect')), always);
  assert.deepEqual(keys(backend.at('/subscribe')), ['channel', ...always, 'user']);
  assert.deepEqual(keys(backend.at('/publish')), ['channel', 'client', 'data', 'encoding', 'protocol', 'transport', 'user']);
  assert.deepEqual(keys(backend.at('/rpc')), ['client', 'encoding', 'method', 'protocol', 'transport', 'user']);
  assert.equal(backend.at('/rpc')[0].body.user, '');
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

test('an answer of a connect is obeyed in any spelling of its names, and refused if it names nothing', async (t) => {
  const answers = [
    [{ Error: { Code: 1403, Message: 'no' } }, { code: 1403, message: 'no' }],
    [{ RESULT: {}, eRROR: { CODE: 1403, message: 'no' } }, { code: 1403, message: 'no' }],
    [{ denied: true }, { code: 100, message: 'internal server error', temporary: true }],
    [{ result: {}, Result: { user: 'eve' } }, { code: 100, message: 'internal server error', temporary: true }],
  ];
  const backend = await HttpBackend.start(t, {
    '/connect': ({ body }) => answers[body.data.at]?.[0] ?? { Disconnect: { Code: 4501, Reason: 'no' } },
  });
  const server = await serve(t, { client: connected(backend, { allow_anonymous_connect_without_token: true }) });
  for (const [at, [, error]] of answers.entries()) {
    assert.deepEqual((await (await raw(t, server)).connect({ data: { at } })).error, error, `answer ${at}`);
  }
  const ended = await raw(t, server);
  ended.send({ id: 1, connect: { data: { at: 99 } } });
  assert.deepEqual(await ended.closed(), { code: 4501, reason: 'no' });
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

test('a refresh is obeyed: no result, no new end, an error and the past are 3005, a disconnect is its code', async (t) => {
  const answers = [
    [{}, 3005],
    [{ error: { code: 1000, message: 'no' } }, 3005],
    [{ result: { expire_at: 1 } }, 3005],
    [{ result: {} }, 3005],
    [{ result: { info: { a: 1 } } }, 3005],
    [{ Result: {}, DISCONNECT: { Code: 4500, Reason: 'logged out' } }, 4500],
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

test('what a client requests with its connect is for the backend to answer', async (t) => {
  const backend = await HttpBackend.start(t, { '/connect': asAda });
  const open = { name: 'room', allow_subscribe_for_client: true };
  const server = await serve(t, { client: connected(backend), channel: { namespaces: [open] } });
  const client = await raw(t, server);
  const { connect } = await client.connect({ subs: { 'room:1': {}, 'room:2': {} } });
  assert.equal(connect.subs, undefined);
  assert.deepEqual(backend.events.items[0].body.channels, ['room:1', 'room:2']);
});
