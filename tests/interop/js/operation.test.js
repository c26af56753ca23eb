// The server as a process: ports, settings, signals, health and metrics.
// In: servers that are started, misconfigured and stopped → out: exit codes, messages, close codes.
// May use npm centrifuge and ws; starts its own server per test.
// The meaning of single settings is tested beside the code that reads them.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';

import { API_KEY, Log, PATIENCE_MS, TOKEN_SECRET, refusal, run, start, within } from '../server.js';
import { ENCODINGS, connect, next, raw, sdk, subscribe } from './clients.js';

test('a port in use stops the start and is named', async (t) => {
  const server = await start();
  t.after(() => server.stop());
  const port = Number(server.host.split(':')[1]);
  const { code, text } = await refusal({ http_server: { port } });
  assert.notEqual(code, 0);
  assert.match(text, new RegExp(String(port)));
  assert.doesNotMatch(text, /panicked/);
});

for (const [key, settings, said] of [
  ['client.ping_interval', { client: { ping_interval: 'soon' } }, /soon/],
  ['client.pong_timeout', { client: { ping_interval: '5s', pong_timeout: '6s' } }, /pong_timeout/],
  ['http_server.port', { http_server: { port: 70_000 } }, /70000/],
  ['client.channel_limit', { client: { channel_limit: 'many' } }, /many/],
  ['channel.namespaces', { channel: { namespaces: [{ name: 'a' }] } }, /name/],
  ['client.token.rsa_public_key', { client: { token: { rsa_public_key: 'no key' } } }, /rsa_public_key/],
]) {
  test(`a wrong ${key} stops the start with its name`, async () => {
    const { code, text } = await refusal(settings);
    assert.notEqual(code, 0);
    assert.ok(text.includes(key), text);
    assert.match(text, said);
    assert.doesNotMatch(text, /panicked/);
  });
}

test('an unknown key is named and the start goes on', async (t) => {
  const server = await start({ client: { pign_interval: '25s' } });
  t.after(() => server.stop());
  await within(
    (async () => {
      while (!server.lines.some((line) => line.includes('client.pign_interval'))) {
        await once(server.child, 'line');
      }
    })(),
    'warning about the unknown key',
  );
});

test('health and metrics answer where they are enabled', async (t) => {
  const server = await start({ health: { enabled: true }, prometheus: { enabled: true } });
  t.after(() => server.stop());
  const get = (path) => fetch(server.http + path, { signal: AbortSignal.timeout(PATIENCE_MS) });
  const health = await get('/health');
  assert.deepEqual([health.status, await health.json()], [200, {}]);
  const metrics = await get('/metrics');
  assert.equal(metrics.status, 200);
  assert.match(await metrics.text(), /^# TYPE \w+ /m);
});

test('the API wants its key and tells a stranger nothing', async (t) => {
  const server = await start();
  t.after(() => server.stop());
  for (const headers of [{}, { 'X-API-Key': 'wrong' }, { Authorization: 'apikey wrong' }]) {
    const answer = await fetch(`${server.http}/api/info`, { method: 'POST', headers, body: '{}' });
    assert.equal(answer.status, 401);
  }
  const headers = { Authorization: `apikey ${API_KEY}` };
  const answer = await fetch(`${server.http}/api/info`, { method: 'POST', headers, body: '{}' });
  assert.equal(answer.status, 200);
});

test('a backend that sends too much, or has no key, gets its answer', async (t) => {
  const server = await start({ http_api: { max_request_body_size: 1_000_000 } });
  t.after(() => server.stop());
  for (const [headers, status] of [
    [{ 'X-API-Key': API_KEY }, 413],
    [{}, 401],
  ]) {
    const request = http.request(`${server.http}/api/publish`, { method: 'POST', headers });
    const answer = once(request, 'response');
    request.end(Buffer.alloc(20_000_000, ' '));
    const [response] = await within(answer, `answer ${status}`);
    assert.equal(response.statusCode, status);
    assert.match(await text(response), /^(Payload Too Large|Unauthorized): /);
  }
});

test('SIGTERM disconnects everybody with 3001 and ends with status 0', async (t) => {
  const server = await start({ client: { insecure: true } });
  t.after(() => server.stop('SIGKILL'));
  const clients = await Promise.all(Array.from({ length: 50 }, () => raw(t, server)));
  await Promise.all(clients.map((client) => client.connect()));
  const closes = Promise.all(clients.map((client) => client.closed(40_000)));
  const code = server.stop('SIGTERM');
  for (const close of await closes) assert.deepEqual(close, { code: 3001, reason: 'shutdown' });
  assert.equal(await code, 0);
});

test('SIGTERM ends the server in time although a client never answers', async (t) => {
  const stubborn = await start({ client: { insecure: true }, shutdown: { timeout: '2s' } });
  t.after(() => stubborn.stop('SIGKILL'));
  const client = await raw(t, stubborn);
  await client.connect();
  client.socket._socket.pause();
  assert.equal(await within(stubborn.stop('SIGTERM'), 'end within shutdown.timeout', 4_000), 0);
});

test('a second signal ends the server at once', async (t) => {
  const stubborn = await start({ client: { insecure: true } });
  t.after(() => stubborn.stop('SIGKILL'));
  const client = await raw(t, stubborn);
  await client.connect();
  client.socket._socket.pause();
  const end = once(stubborn.child, 'exit');
  stubborn.child.kill('SIGTERM');
  while (!stubborn.lines.some((line) => line.includes('stopping'))) await once(stubborn.child, 'line');
  stubborn.child.kill('SIGINT');
  await within(end, 'end after the second signal', 2_000);
});

for (const encoding of ENCODINGS) {
  test(`a ${encoding.name} client finds the restarted server and its channels`, async (t) => {
    const first = await start({ client: { insecure: true }, shutdown: { timeout: '2s' } });
    t.after(() => first.stop('SIGKILL'));
    const client = sdk(t, first, encoding);
    await connect(client);
    const { subscription, publications } = await subscribe(client, 'restart');
    const connecting = new Log(client, 'connecting');
    const subscribed = next(subscription, 'subscribed');
    assert.equal(await first.stop('SIGTERM'), 0);
    assert.equal((await connecting.count(1))[0].code, 3001);
    const port = Number(first.host.split(':')[1]);
    const second = await start({ client: { insecure: true }, http_server: { port } });
    t.after(() => second.stop('SIGKILL'));
    await subscribed;
    await second.api('publish', { channel: 'restart', data: { n: 2 } });
    assert.deepEqual(encoding.value((await publications.count(1))[0].data), { n: 2 });
  });
}

test('check-config names what is wrong with its key path', async () => {
  const settings = { client: { pign_interval: '25s', channel_limit: 'many' }, webtransport: { enabled: true } };
  const { code, text } = await run(['check-config', 'config.json'], settings);
  assert.notEqual(code, 0);
  for (const key of ['client.pign_interval', 'client.channel_limit', 'webtransport.enabled']) {
    assert.ok(text.includes(key), text);
  }
  assert.ok(text.includes('config.json'), text);
});

test('the token command makes tokens that connect and subscribe', async (t) => {
  const server = await start();
  t.after(() => server.stop());
  const make = async (...options) => {
    const { code, text } = await run(['token', '--secret', TOKEN_SECRET, '--user', '42', ...options]);
    assert.equal(code, 0, text);
    return text.trim();
  };
  const client = sdk(t, server, ENCODINGS[0], { token: await make() });
  await connect(client);
  await subscribe(client, '$news', { token: await make('--channel', '$news') });
});
