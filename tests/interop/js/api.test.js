// The server API over real HTTP, as backend libraries call it, seen by a subscriber.
// In: requests to /api/* → out: status, body, and what the subscriber hears.
// May use fetch and one raw subscriber; never an SDK.
// Each method's own rules are tested beside its code; here is what crosses the wire.

import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { after, before, test } from 'node:test';

import { API_KEY, PATIENCE_MS, eventually, start } from '../server.js';
import { raw } from './clients.js';

let server;

before(async () => {
  server = await start({
    client: { insecure: true },
    channel: { namespaces: [{ name: 'chat' }] },
    node: { info_metrics_aggregate_interval: '1s' },
  });
});

after(() => server?.stop());

test('the key is accepted in each of its three places', async () => {
  for (const [query, headers] of [
    ['', { 'X-API-Key': API_KEY }],
    ['', { Authorization: `apikey ${API_KEY}` }],
    ['', { Authorization: `ApiKey ${API_KEY}` }],
    [`?api_key=${API_KEY}`, {}],
  ]) {
    assert.equal((await post(`info${query}`, '{}', headers)).status, 200);
  }
});

test('a publication without history has an empty result', async () => {
  const answer = await post('publish', '{"channel":"a","data":{}}');
  assert.match(answer.headers.get('content-type'), /^application\/json/);
  assert.equal(await answer.text(), '{"result":{}}');
});

const UNKNOWN_CHANNEL = {
  code: 102,
  message: 'unknown channel',
  cause: 'channel.namespaces has no namespace with the name before the boundary',
};

test('errors stand in the body with status 200, or as a status where the request asks for it', async () => {
  const request = '{"channel":"nowhere:a","data":{}}';
  const inBody = await post('publish', request);
  const error = UNKNOWN_CHANNEL;
  assert.deepEqual([inBody.status, await inBody.json()], [200, { error }]);
  const headers = { 'X-API-Key': API_KEY, 'X-Centrifugo-Error-Mode': 'transport' };
  const asStatus = await post('publish', request, headers);
  assert.deepEqual([asStatus.status, await asStatus.json()], [404, error]);
});

test('broken JSON is 400, another method 405, an unknown path 404', async () => {
  const statuses = [
    await post('publish', '{"channel":'),
    await fetch(`${server.http}/api/publish`, { headers: { 'X-API-Key': API_KEY } }),
    await post('no_such_method', '{}'),
  ];
  assert.deepEqual(statuses.map((answer) => answer.status), [400, 405, 404]);
});

test('another method than POST is 405 and names it, also what a browser asks before', async () => {
  for (const [method, headers] of [
    ['HEAD', {}],
    ['OPTIONS', { Origin: 'https://example.com', 'Access-Control-Request-Method': 'POST' }],
  ]) {
    const answer = await fetch(`${server.http}/api/publish`, { method, headers });
    const allowed = [answer.headers.get('allow'), answer.headers.get('access-control-allow-origin')];
    assert.deepEqual([answer.status, ...allowed], [405, 'POST', null], method);
  }
});

test('a wrong key is 401 in plain text and names the scheme of a right one', async () => {
  const answer = await post('info', '{}', { 'X-API-Key': 'wrong' });
  const headers = ['content-type', 'www-authenticate'].map((name) => answer.headers.get(name));
  assert.deepEqual([answer.status, ...headers], [401, 'text/plain; charset=utf-8', 'apikey']);
});

test('the content type of a request does not matter', async () => {
  for (const type of ['application/json; charset=utf-8', 'application/x-www-form-urlencoded', 'text/plain', '*']) {
    const headers = { 'X-API-Key': API_KEY, 'Content-Type': type };
    const answer = await post('publish', '{"channel":"a","data":{}}', headers);
    assert.equal(await answer.text(), '{"result":{}}', type);
  }
});

test('the old path takes what phpcent 4 and laravel-centrifugo send', async () => {
  const headers = { Authorization: `apikey ${API_KEY}`, 'Content-Type': 'application/json' };
  const send = async (...commands) => {
    const body = commands.map(([method, params]) => JSON.stringify({ method, params })).join('\n');
    const answer = await fetch(`${server.http}/api`, { method: 'POST', headers, body });
    return (await answer.text()).split('\n').map((line) => JSON.parse(line));
  };
  assert.deepEqual(await send(['publish', { channel: 'a', data: [] }]), [{ result: {} }]);
  const [info, channels] = await send(['info', []], ['channels', []]);
  assert.equal(info.result.nodes.length, 1);
  assert.ok(channels.result.channels);
  const several = await send(['publish', { channel: 'nowhere:a', data: 1 }], ['disconnect', { user: '42' }]);
  assert.deepEqual(several, [{ error: UNKNOWN_CHANNEL }, { result: {} }]);
});

test('broadcast answers per channel in request order', async (t) => {
  const listener = await subscriber(t, 'chat:one', 'chat:two');
  const channels = ['chat:one', 'nowhere:x', 'chat:two'];
  const { responses } = await server.api('broadcast', { channels, data: { n: 1 } });
  const expected = [{ result: {} }, { error: UNKNOWN_CHANNEL }, { result: {} }];
  assert.deepEqual(responses, expected);
  for (const channel of ['chat:one', 'chat:two']) {
    assert.deepEqual(await listener.publications(channel, 1), [{ n: 1 }]);
  }
});

test('batch runs its commands in order and answers each', async (t) => {
  const listener = await subscriber(t, 'chat:batch');
  const publish = (n) => ({ publish: { channel: 'chat:batch', data: { n } } });
  const commands = [publish(1), { channels: { pattern: 'chat:batch' } }, publish(2), {}];
  const reply = await server.apiReply('batch', { commands });
  assert.deepEqual(reply.replies.slice(0, 3), [
    { publish: {} },
    { channels: { channels: { 'chat:batch': { num_clients: 1 } } } },
    { publish: {} },
  ]);
  assert.ok(reply.replies[3].error);
  assert.deepEqual(await listener.publications('chat:batch', 2), [{ n: 1 }, { n: 2 }]);
});

test('an idempotency key publishes once', async (t) => {
  const listener = await subscriber(t, 'chat:once');
  for (const [data, key] of [[1, 'a'], [2, 'a'], [3, 'b']]) {
    await server.api('publish', { channel: 'chat:once', data, idempotency_key: key });
  }
  assert.deepEqual(await listener.publications('chat:once', 2), [1, 3]);
});

test('b64data carries what JSON cannot say easily, and wrong base64 is error 107', async (t) => {
  const listener = await subscriber(t, 'chat:b64');
  const b64data = Buffer.from('{"text":"from base64"}').toString('base64');
  await server.api('publish', { channel: 'chat:b64', b64data });
  assert.deepEqual(await listener.publications('chat:b64', 1), [{ text: 'from base64' }]);
  const wrong = await server.apiReply('publish', { channel: 'chat:b64', b64data: '*' });
  assert.equal(wrong.error.code, 107);
});

test('tags travel with the publication', async (t) => {
  const listener = await subscriber(t, 'chat:tags');
  await server.api('publish', { channel: 'chat:tags', data: 1, tags: { kind: 'goal', team: 'é' } });
  const isPublication = (reply) => reply.push?.pub;
  const { push } = await listener.replies.find(isPublication, 'publication');
  assert.deepEqual(push, { channel: 'chat:tags', pub: { data: 1, tags: { kind: 'goal', team: 'é' } } });
});

test('info counts the connection and its subscriptions', async (t) => {
  await subscriber(t, 'chat:info-1', 'chat:info-2');
  const [node] = (await server.api('info')).nodes;
  assert.ok(node.uid && node.version, JSON.stringify(node));
  assert.equal(node.name, `${hostname()}_${server.host.split(':')[1]}`);
  assert.ok(node.num_clients >= 1 && node.num_channels >= 2, JSON.stringify(node));
});

test('info tells what was counted in the last interval', async (t) => {
  await subscriber(t, 'chat:metrics');
  const counted = async () => (await server.api('info')).nodes[0].metrics;
  // An interval may have ended after a call of another test and before this subscriber.
  const isHere = ({ items } = { items: {} }) => items['api_commands.protocol.http.method.info'] > 0 && items.node_num_clients >= 1;
  await eventually(async () => isHere(await counted()), 'calls and the subscriber to be counted');
  const { interval } = await counted();
  assert.ok(interval >= 1, String(interval));
});

test('channels are matched by a glob', async (t) => {
  await subscriber(t, 'glob-a1', 'glob-a2', 'glob-b1');
  const names = async (pattern) => Object.keys((await server.api('channels', { pattern })).channels).sort();
  assert.deepEqual(await names('glob-a*'), ['glob-a1', 'glob-a2']);
  assert.deepEqual(await names('glob-?1'), ['glob-a1', 'glob-b1']);
  assert.deepEqual(await names('glob-{a1,b1}'), ['glob-a1', 'glob-b1']);
});

test('an empty disconnect reason still closes with a reason', async (t) => {
  const listener = await subscriber(t, 'chat:bye');
  const client = listener.replies.items[0].connect.client;
  await server.api('disconnect', { user: '', client, disconnect: { code: 4501, reason: '' } });
  assert.equal((await listener.closed()).code, 4501);
});

async function subscriber(t, ...channels) {
  const client = await raw(t, server);
  await client.connect();
  for (const [at, channel] of channels.entries()) {
    assert.ok((await client.subscribe(channel, at + 2)).subscribe, channel);
  }
  return client;
}

function post(method, body, headers = { 'X-API-Key': API_KEY }) {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  return fetch(`${server.http}/api/${method}`, { method: 'POST', headers, body, signal });
}
