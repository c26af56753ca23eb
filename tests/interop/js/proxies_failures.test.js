// Event proxies whose backend fails: answers that are none, a backend that is down or stalls, clients that go away.
// In: backends that misbehave, many calls at once → out: error 100 for each client in time, and a server that goes on.
// May use npm centrifuge and ws; backends are started by ../backends.js.
// Limits and circuits by themselves are tested in the crate `proxy`, streams that fail in proxies_grpc.test.js.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import http2 from 'node:http2';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { HttpBackend, asAda, connected, seconds, serve } from '../backends.js';
import { freePort } from '../ports.js';
import { API_KEY, Log, TOKEN_SECRET, eventually } from '../server.js';
import { ENCODINGS, connect, next, raw, sdk } from './clients.js';

// Cases of the reference of proxies, and the tests that have them ("proxies" is crates/proxy/src/tests.rs):
//
// status 204, 301, 500; HTML; a large body; a slow, cut or empty one; base64 that is none; null, {}   answers that are none …
// an error and a result at once              proxies: a_disconnect_counts_before_an_error_and_that_before_a_result
// bytes that are no UTF-8                    proxies: bytes_that_are_no_utf_8_are_no_response
// nothing listens at the start               clients are connected when a backend that was down is back
// no answer when a connection expires        a refresh without an answer does not end the connection
// 1,000 connects while the backend stalls    proxies: a_thousand_connects_while_the_backend_stalls_are_all_answered_in_time
// headers: several values, no ASCII, case    proxies_options.test.js: headers: static ones, over them …
// the client goes during the call            a client that goes away while the backend thinks …
// a stream without a first message           proxies_grpc.test.js: the first answer of a stream decides …
// a stream faster than its client            proxies_grpc.test.js: a client that is slower than its stream …
// a user id of quotes and control characters user ids of any characters reach the backend …

const [JSON_SDK] = ENCODINGS;
const key = (file) => fileURLToPath(new URL(`../../keys/${file}`, import.meta.url));

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
    rpc: { proxy: { endpoint: backend.url('/rpc'), timeout: '1s' }, without_namespace: { proxy_enabled: true } },
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
  const down = await HttpBackend.start(t, {}, { port: await freePort() });
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
  const backend = await HttpBackend.start(t, answers, { port: down.port });
  await isBack;
  assert.equal((await client.rpc('any', {})).data, 'here');
  backend.stop();
  await assert.rejects(client.rpc('any', {}), { code: 100, temporary: true });
  assert.equal(client.state, 'connected');
  const again = await HttpBackend.start(t, answers, { port: down.port });
  assert.equal((await client.rpc('any', {})).data, 'here');
  assert.equal(again.events.items.length, 1);
});

test('a refresh without an answer does not end the connection', async (t) => {
  const backend = await HttpBackend.start(t, {
    '/connect': () => ({ result: { user: 'ada', expire_at: seconds(2) } }),
    '/refresh': () => undefined,
    '/rpc': () => ({ result: { data: 'here' } }),
  });
  const client = connected(backend);
  client.proxy.refresh = { enabled: true, endpoint: backend.url('/refresh'), timeout: '500ms' };
  const server = await serve(t, {
    client,
    prometheus: { enabled: true },
    rpc: { proxy: { endpoint: backend.url('/rpc') }, without_namespace: { proxy_enabled: true } },
  });
  const ada = sdk(t, server, JSON_SDK);
  await connect(ada);
  await backend.count('/refresh', 1);
  const failed = /fanwire_proxy_failures_total\{.*cause="timeout".*\} 1\n/;
  await eventually(async () => failed.test(await (await fetch(`${server.http}/metrics`)).text()), 'a timeout');
  assert.equal((await ada.rpc('any', {})).data, 'here');
  assert.equal(ada.state, 'connected');
  assert.equal(backend.at('/refresh').length, 1, 'it is asked again after a minute');
});

test('user ids of any characters reach the backend as they came from it', async (t) => {
  const users = ['a"b\\c', 'line\nfeed\u0000\u001f', '{"user":"x"}', '\u2028é😀</script>'];
  const backend = await HttpBackend.start(t, {
    '/connect': ({ body }) => ({ result: { user: users[body.data.at] } }),
    '/rpc': ({ body }) => ({ result: { data: body.user } }),
  });
  const server = await serve(t, {
    client: connected(backend),
    rpc: { proxy: { endpoint: backend.url('/rpc') }, without_namespace: { proxy_enabled: true } },
  });
  for (const encoding of ENCODINGS) {
    for (const [at, user] of users.entries()) {
      const data = encoding === JSON_SDK ? { at } : Buffer.from(JSON.stringify({ at }));
      const client = sdk(t, server, encoding, { data });
      await connect(client);
      const method = encoding === JSON_SDK ? {} : Buffer.from('{}');
      await client.rpc('any', method);
      assert.equal(backend.at('/rpc').at(-1).body.user, user);
    }
  }
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

/** An HTTP/2 backend that does not process its first request, and says so as `refuse` does. */
async function refusing(t, refuse) {
  const files = { cert: readFileSync(key('localhost.pem')), key: readFileSync(key('localhost.private.pem')) };
  const streams = [];
  const server = http2.createSecureServer(files);
  server.on('session', (session) => t.after(() => session.destroy()));
  server.on('stream', (stream) => {
    stream.on('error', () => {}); // it is refused
    streams.push(stream);
    if (streams.length === 1) return refuse(stream);
    stream.respond({ ':status': 200 });
    stream.end(JSON.stringify(asAda()));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const endpoint = `https://localhost:${server.address().port}/connect`;
  const http = { tls: { enabled: true, server_ca_pem: key('ca.pem') } };
  return serve(t, { client: { proxy: { connect: { enabled: true, endpoint, http } } } });
}

// RFC 9113 §8.7: the request was not processed, and may be sent again.
test('a request is sent again to a backend that refuses a stream', async (t) => {
  const server = await refusing(t, (stream) => stream.close(http2.constants.NGHTTP2_REFUSED_STREAM));
  const client = await raw(t, server);
  assert.equal((await client.connect()).error, undefined);
});
