// The questions of docs/night.md: each situation is provoked, and the methods that the page names answer it.
// In: a server, clients of npm centrifuge and ws → out: logs, reports and lists that name the cause.
// May use the server API and fanwire top; never the server's inside.
// What the page says is changed in docs/night.md; the admin page is tested in ../browser/admin.test.js.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { WebSocket } from 'ws';

import { startRedis } from '../redis.js';
import { API_KEY, PATIENCE_MS, eventually, run, start, token, within } from '../server.js';
import { ENCODINGS, connect, next, sdk, subscribe } from './clients.js';

const SETTINGS = {
  prometheus: { enabled: true },
  client: { queue_max_size: 1_000_000 },
  channel: {
    without_namespace: { allow_subscribe_for_client: true },
    namespaces: [
      { name: 'kept', history_size: 100, history_ttl: '60s', allow_subscribe_for_client: true, force_recovery: true },
      { name: 'state', delivery: 'latest', allow_subscribe_for_client: true },
    ],
  },
};

async function served(t) {
  const server = await start(SETTINGS);
  t.after(() => server.stop());
  return server;
}

const user = (t, server, sub) => sdk(t, server, ENCODINGS[0], { token: token({ sub }) });

/** A client that subscribes and then reads nothing more. */
async function sleeper(t, server, sub, channel) {
  const socket = new WebSocket(server.websocket, { perMessageDeflate: false });
  t.after(() => socket.terminate());
  await within(new Promise((resolve) => socket.once('open', resolve)), 'open');
  socket.send(`{"id":1,"connect":{"token":"${token({ sub })}"}}\n{"id":2,"subscribe":{"channel":"${channel}"}}`);
  await eventually(async () => (await server.api('channels', { pattern: channel })).channels[channel], 'the subscription');
  socket.pause();
  return socket;
}

const events = (log) => log.events.map(({ event }) => event);

test('every method and every metric of docs/night.md exists', async (t) => {
  const server = await served(t);
  const page = readFileSync(new URL('../../../docs/night.md', import.meta.url), 'utf8');
  const metrics = await (await fetch(`${server.http}/metrics`)).text();
  const source = readFileSync(new URL('../../../docs/operation.md', import.meta.url), 'utf8') + metrics;
  const questions = page.split(/^- /m).filter((item) => /^\*\*[^*]*\?/.test(item));
  assert.ok(questions.length >= 14, `${questions.length} questions`);
  for (const question of questions) {
    for (const [, name] of question.matchAll(/`(connection_log|connections|hot_lists|publication_report|info|debug_for|node_config|dump|cluster_clock)\b/g)) {
      assert.notEqual((await server.apiReply(name, { user: 'x', report: '1' })).error?.code, 104, name);
    }
    for (const [, name] of question.matchAll(/`((?:node|client|transport|process|api|delivery|build|config|cluster)_\w+)`/g)) {
      assert.ok(source.includes(name) || name === 'node_config' || name === 'cluster_clock', `${name} is no metric`);
    }
  }
});

test('who has many connections, and from where', async (t) => {
  const server = await served(t);
  await Promise.all(Array.from({ length: 12 }, () => connect(user(t, server, 'greedy'))));
  await connect(user(t, server, 'modest'));
  const { users } = await server.api('hot_lists');
  assert.deepEqual(users.map(({ name, value }) => [name, value]), [['greedy', 12], ['modest', 1]]);
  const { connections } = await server.api('connections', { user: 'greedy' });
  const places = Object.values(connections).map(({ address, node }) => `${address} ${node}`);
  const [{ name }] = (await server.api('info')).nodes;
  assert.deepEqual([...new Set(places)], [`127.0.0.1 ${name}`]);
  const top = await run(['top', '--once', '--url', `${server.http}/api`, '--key', API_KEY]);
  assert.match(top.text, /CONNECTIONS {2}USER\s+12 {2}greedy/);
});

test('which channel is hot, also without a subscriber, and which history is large', async (t) => {
  const server = await served(t);
  const client = user(t, server, '1');
  await connect(client);
  await subscribe(client, 'watched');
  assert.equal((await server.api('hot_lists')).seconds, 0, 'the first look begins to count');
  for (let number = 0; number < 30; number += 1) {
    await server.api('publish', { channel: 'kept:unread', data: 'x'.repeat(1000) });
    if (number % 3 === 0) await server.api('publish', { channel: 'watched', data: number });
  }
  const found = await eventually(async () => {
    const lists = await server.api('hot_lists');
    return lists.deliveries[0]?.name === 'watched' && lists;
  }, 'deliveries');
  assert.deepEqual(found.publications.map(({ name }) => name), ['kept:unread', 'watched']);
  assert.ok(Math.abs(found.publications[0].value * found.seconds - 30) < 0.01, JSON.stringify(found));
  assert.equal(found.history[0].name, 'kept:unread');
  assert.deepEqual([found.namespaces[0].name, found.namespaces[0].value > 30_000], ['kept', true]);
});

test('what happened to a user, and why it was refused and not recovered', async (t) => {
  const server = await served(t);
  const client = user(t, server, '42');
  await connect(client);
  const { subscription } = await subscribe(client, 'kept:a');
  await assert.rejects(client.publish('kept:a', 1));
  await assert.rejects(client.publish('kept:a', 1));
  client.disconnect();
  await server.api('history_remove', { channel: 'kept:a' });
  for (let number = 0; number < 101; number += 1) await server.api('publish', { channel: 'kept:a', data: number });
  const again = next(subscription, 'subscribed');
  client.connect();
  await again;
  const lists = await server.api('hot_lists');
  assert.deepEqual(lists.refusals, [], 'of open connections');
  const { logs } = await server.api('connection_log', { user: '42' });
  assert.equal(logs.length, 2);
  const [now, before] = logs;
  assert.deepEqual(events(before), ['connect', 'subscribe', 'refuse', 'close']);
  const refused = before.events[2];
  assert.deepEqual([refused.command, refused.code, refused.count], ['publish', 103, 2]);
  assert.match(refused.cause, /allow_publish_for_client/);
  assert.ok(before.ended_ms >= before.opened_ms && !now.ended_ms);
  const lost = now.events.find(({ event }) => event === 'unrecovered');
  assert.deepEqual([lost.channel, lost.from, lost.to, lost.cause], ['kept:a', 0, 101, 'size']);
  const one = await server.api('connection_log', { client: now.client });
  assert.deepEqual(one.logs.map(({ client: id }) => id), [now.client]);
  assert.equal((await server.apiReply('connection_log')).error.code, 107);
});

test('who is slow, and what it lost', async (t) => {
  const server = await served(t);
  await sleeper(t, server, 'slow', 'state:a');
  const data = 'x'.repeat(60_000);
  const reports = [];
  await eventually(async () => {
    reports.push((await server.api('publish', { channel: 'state:a', data, report: true })).report);
    const { nodes } = await server.api('publication_report', { report: reports.at(-2) ?? reports[0] });
    return nodes[0].replaced === 1;
  }, 'a publication whose place another one took');
  const { nodes: [first] } = await server.api('publication_report', { report: reports[0] });
  assert.deepEqual([first.subscribers, first.at_once, first.late], [1, 1, 0]);
  assert.ok(first.all_us < 1_000_000, JSON.stringify(first));
  // The kernel may still take what waits, so another one follows before each look.
  const queue = await eventually(async () => {
    await server.api('publish', { channel: 'state:a', data });
    return (await server.api('hot_lists')).queues[0];
  }, 'a queue');
  assert.deepEqual([queue.user, queue.value > 0], ['slow', true]);
  assert.deepEqual((await server.api('publication_report', { report: 'ffffffffffffffff' })).nodes, []);
});

test('a client that is too slow has its last events in the log', async (t) => {
  const server = await served(t);
  const socket = await sleeper(t, server, 'slow', 'kept:a');
  const closed = () => server.lines.find((line) => line.includes('disconnected a client') && line.includes('3008'));
  await eventually(async () => {
    await server.api('publish', { channel: 'kept:a', data: 'x'.repeat(200_000) });
    return closed();
  }, 'the end of the slow client', PATIENCE_MS);
  assert.match(closed(), /connect.*subscribe kept:a.*stall .*\d{6,} bytes queued/);
  const { logs: [log] } = await server.api('connection_log', { user: 'slow' });
  assert.equal(events(log).at(-1), 'close');
  assert.equal(log.events.at(-1).code, 3008);
  const stall = log.events.find(({ event }) => event === 'stall');
  assert.ok(stall.queued_bytes > 100_000, JSON.stringify(log.events));
  socket.resume();
});

test('debug lines for one user, not for all', async (t) => {
  const server = await start({ ...SETTINGS, log: { level: 'warn' } });
  t.after(() => server.stop());
  const { subjects } = await server.api('debug_for', { users: ['42'], seconds: 60 });
  assert.deepEqual(subjects.map(({ kind, name }) => [kind, name]), [['user', '42']]);
  for (const client of ['41', '42'].map((sub) => user(t, server, sub))) {
    await connect(client);
    await subscribe(client, 'kept:a');
  }
  const debug = () => server.lines.filter((line) => line.includes('"level":"debug"')).map((line) => JSON.parse(line));
  await eventually(() => debug().some(({ message }) => message === 'subscribe'), 'the line of the subscription');
  assert.deepEqual([...new Set(debug().map((line) => line.user))], ['42']);
  await server.api('publish', { channel: 'kept:a', data: 1 });
  await eventually(() => debug().some(({ message }) => message === 'delivery'), 'the line of the delivery');
  assert.deepEqual([...new Set(debug().map(({ message }) => message))], ['connect', 'address', 'command', 'subscribe', 'delivery']);
  const { channel, outcome, offset } = debug().at(-1);
  assert.deepEqual([channel, outcome, offset], ['kept:a', 'delivered', 1]);
  assert.ok(debug().some(({ address }) => address === '127.0.0.1'));
  assert.deepEqual((await server.api('debug_for', { users: ['42'], seconds: 0 })).subjects, []);
  for (const wrong of [{ users: [''] }, { addresses: ['10.0.0.0/8'] }, { users: ['1'], seconds: 86_401 }, { channels: Array(101).fill('a') }]) {
    assert.equal((await server.apiReply('debug_for', wrong)).error.code, 107, JSON.stringify(wrong));
  }
});

test('whether a node runs the file on disk, and with which values', async (t) => {
  const server = await served(t);
  const file = path.join(server.folder, 'config.json');
  const ask = () => run(['config', '--api', `${server.http}/api`, '--key', API_KEY]);
  const before = await ask();
  assert.match(before.text, /channel.namespaces\[kept\].history_size: 100 {2}# /);
  assert.match(before.text, /http_api.key: \*\*\*/);
  assert.match(before.text, /runs with what its file and its variables say/);
  const settings = JSON.parse(readFileSync(file, 'utf8'));
  settings.client.channel_limit = 7;
  settings.client.queue_max_size = 500_000;
  writeFileSync(file, JSON.stringify(settings));
  const { needs_reload: reload, needs_restart: restart } = await server.api('node_config');
  assert.deepEqual([reload, restart], [['client.channel_limit'], ['client.queue_max_size']]);
  assert.match((await ask()).text, /after a reload \(SIGHUP\): client.channel_limit\n.*after a restart: client.queue_max_size/);
  writeFileSync(file, '{"client":{"chanel_limit":7}}');
  assert.match((await server.api('node_config')).error, /chanel_limit/);
  assert.ok(!JSON.stringify(await server.api('node_config', { all: true })).includes(API_KEY));
});

/** Two nodes with one Redis that know each other, and a client of user 42 on the first. */
async function pair(t) {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const settings = (name) => ({
    ...SETTINGS, node: { name }, admin: { enabled: true, insecure: true }, engine: { type: 'redis', redis: { address: redis.address, io_timeout: '1s' } } });
  const nodes = await Promise.all(['red', 'blue'].map((name) => start(settings(name))));
  for (const node of nodes) t.after(() => node.stop());
  for (const node of nodes) await eventually(async () => (await node.api('info')).nodes.length === 2, 'both nodes');
  const client = user(t, nodes[0], '42');
  await connect(client);
  await subscribe(client, 'watched');
  return { redis, red: nodes[0], blue: nodes[1] };
}

/** Fanwire's own questions with what they find of user 42 on the node that is asked. */
const QUESTIONS = [
  ['connections', { user: '42' }, ({ connections }) => Object.keys(connections).length],
  ['connection_log', { user: '42' }, ({ logs }) => logs.length],
  ['hot_lists', {}, ({ users }) => users.length],
  ['publication_report', { report: '1' }, () => 1],
  ['cluster_clock', {}, ({ clocks }) => clocks.length],
  ['channels', { partial: true }, ({ channels }) => channels.watched.num_clients],
];

async function answersWithout(node, missing) {
  for (const [method, request, found] of QUESTIONS) {
    const result = await node.api(method, request);
    assert.deepEqual([result.missing, found(result)], [[missing], 1], method);
  }
  const { error } = await node.apiReply('channels');
  assert.equal(error.code, 100);
  assert.match(JSON.stringify(error), new RegExp(`no answer from node ${missing}`));
  const top = await run(['top', '--once', '--url', `${node.http}/api`, '--key', API_KEY]);
  assert.deepEqual([top.code, top.text.includes(`no answer from: ${missing}`)], [0, true], top.text);
  const page = await fetch(`${node.http}/admin/api`, { method: 'POST', body: '{"method":"connections","params":{"user":"42"}}' });
  assert.deepEqual((await page.json()).result.missing, [missing]);
}

test('with Redis down, questions are answered for the node that is asked, and name the other', async (t) => {
  const { redis, red } = await pair(t);
  await redis.kill();
  await eventually(async () => (await red.apiReply('channels')).error, 'the loss of Redis');
  await answersWithout(red, 'blue');
  const { subjects, missing } = await red.api('debug_for', { users: ['42'], seconds: 60 });
  assert.deepEqual([subjects.length, missing], [1, ['blue']]);
  await redis.start();
  await eventually(async () => !(await red.api('connections', { user: '42' })).missing, 'both nodes to answer', 20_000);
  assert.deepEqual(Object.keys((await red.api('channels')).channels), ['watched']);
});

test('a node that was killed keeps nobody waiting and is named', async (t) => {
  const { red, blue } = await pair(t);
  const killed = performance.now();
  await blue.stop('SIGKILL');
  await answersWithout(red, 'blue');
  const seconds = (performance.now() - killed) / 1000;
  assert.ok(seconds < 9, `${seconds} s for all questions; the node is forgotten after 10 s`);
  await eventually(async () => !(await red.apiReply('channels')).error, 'the node to be forgotten', 20_000);
  assert.equal((await red.api('connections', { user: '42' })).missing, undefined);
});

/** The lines of /proc of the threads of a process: the state is behind the name. */
function threads(pid) {
  const folder = `/proc/${pid}/task`;
  return readdirSync(folder).map((thread) => readFileSync(`${folder}/${thread}/stat`, 'utf8'));
}

test('a node that hangs is named after ten seconds at most', async (t) => {
  const { red, blue } = await pair(t);
  blue.child.kill('SIGSTOP');
  await eventually(() => threads(blue.child.pid).every((stat) => stat.includes(') T ')), 'all threads to stop');
  const asked = performance.now();
  const { missing } = await red.api('connection_log', { user: '42' }).finally(() => blue.child.kill('SIGCONT'));
  const seconds = (performance.now() - asked) / 1000;
  assert.deepEqual(missing, ['blue']);
  assert.ok(seconds > 0.9, `it had ${seconds} s`);
});

test('a wrong token has user and address in the log, in the hot list and in the connection log', async (t) => {
  const server = await served(t);
  for (let guess = 0; guess < 3; guess += 1) {
    const wrong = sdk(t, server, ENCODINGS[0], { token: token({ sub: '42' }, { secret: 'another-secret' }) });
    const end = next(wrong, 'disconnected');
    wrong.connect();
    assert.equal((await end).code, 3500);
  }
  const line = JSON.parse(server.lines.find((text) => text.includes('refused a command')));
  assert.deepEqual([line.user, line.address.split(':')[0]], ['42', '127.0.0.1']);
  const { refusals } = await server.api('hot_lists');
  assert.deepEqual(refusals.map(({ name, user: of, value }) => [name, of, value]), [['127.0.0.1', '42', 3]]);
  const { logs } = await server.api('connection_log', { user: '42' });
  assert.equal(logs.length, 3);
  assert.deepEqual([events(logs[0]), logs[0].address, logs[0].client], [['refuse', 'close'], '127.0.0.1', '']);
  const isSummary = (text) => text.includes('refusals that were not logged');
  await eventually(() => server.lines.some(isSummary), 'the summary of the burst', 90_000);
  const summary = JSON.parse(server.lines.find(isSummary));
  assert.deepEqual([summary.count, summary.users, summary.addresses], [2, '42 (3)', '127.0.0.1 (3)']);
});

test('a publication that nobody got says why', async (t) => {
  const server = await served(t);
  const client = user(t, server, '1');
  await connect(client);
  await subscribe(client, 'kept:a');
  const publish = async (options) => {
    const { report } = await server.api('publish', { channel: 'kept:a', data: 1, report: true, ...options });
    return (await server.api('publication_report', { report })).nodes[0];
  };
  assert.equal((await publish({ version: 7 })).old_versions, undefined);
  assert.equal((await publish({ version: 7 })).old_versions, 1);
  assert.equal((await publish({ idempotency_key: 'once' })).repeated_keys, undefined);
  assert.equal((await publish({ idempotency_key: 'once' })).repeated_keys, 1);
  const [id] = Object.keys((await server.api('connections', { user: '1' })).connections);
  const { report } = await server.api('publish', { channel: 'kept:a', data: 1, report: true, exclude_client: id });
  const left = async () => (await server.api('publication_report', { report })).nodes[0];
  await eventually(async () => (await left()).filtered === 1, 'the shard of the client');
  assert.equal((await left()).subscribers, 0);
});

test('how large the tables of a node are', async (t) => {
  const server = await served(t);
  const client = user(t, server, '42');
  await connect(client);
  await subscribe(client, 'kept:a');
  await server.api('publish', { channel: 'kept:a', data: 'x'.repeat(1000) });
  const { sizes, largest } = await server.api('dump');
  assert.deepEqual([sizes.node_num_clients, sizes.node_num_subscriptions, sizes.recorder_connections], [1, 1, 1]);
  assert.ok(sizes['node_namespace_history_bytes.namespace.kept'] > 1000 && sizes.process_open_fds > 3);
  assert.deepEqual(largest.users.map(({ name }) => name), ['42']);
  server.child.kill('SIGUSR2');
  await eventually(() => server.lines.includes('}'), 'the end of the dump on stderr');
  const first = server.lines.indexOf('{');
  const dump = JSON.parse(server.lines.slice(first, server.lines.indexOf('}') + 1).join('\n'));
  assert.equal(dump.dump.sizes.node_num_clients, 1);
});

test('a backend that floods the API is named, and limited', async (t) => {
  const key = 'the-key-of-a-shop-with-enough-bytes';
  const server = await start({ ...SETTINGS, http_api: { keys: [{ name: 'shop', key, rate_limit: { limit: 5, interval: '1h' } }] } });
  t.after(() => server.stop());
  const call = (headers) => fetch(`${server.http}/api/publish`, {
    method: 'POST', headers: { 'X-API-Key': key, ...headers }, body: '{"channel":"kept:a","data":1}' });
  const codes = [];
  for (let number = 0; number < 7; number += 1) codes.push((await (await call({})).json()).error?.code ?? 0);
  assert.deepEqual(codes, [0, 0, 0, 0, 0, 111, 111]);
  assert.equal((await call({ 'X-Centrifugo-Error-Mode': 'transport' })).status, 429);
  await server.api('publish', { channel: 'kept:a', data: 1 });
  const metrics = await (await fetch(`${server.http}/metrics`)).text();
  assert.match(metrics, /fanwire_api_key_limited_total\{protocol="http",key="shop"\} 3/);
  assert.match(metrics, /fanwire_api_key_commands_total\{protocol="http",key="shop"\} 8/);
});
