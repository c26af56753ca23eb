// Several nodes with one Redis, and npm centrifuge on each of them: they are one server.
// In: nodes with Centrifugo's engine keys, a Redis that keeps every write → out: what clients on any node are told.
// May use the SDK's public interface and the server API only; never looks into the Redis.
// What the engine does by itself is tested in crates/redis; one node without Redis in the other suites.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { balance } from '../balancer.js';
import { startRedis, startSentinels } from '../redis.js';
import { eventually, refusal, start, token } from '../server.js';
import { ENCODINGS, connect, next, sdk, subscribe } from './clients.js';

const NODES = 3;

let redis;
let nodes;

function settings({ address }) {
  return {
    engine: { type: 'redis', redis: { address, io_timeout: '1s' } },
    health: { enabled: true },
    client: { recovery_max_publication_limit: 0 },
    channel: {
      without_namespace: {
        allow_subscribe_for_client: true,
        allow_publish_for_subscriber: true,
        allow_history_for_subscriber: true,
        allow_presence_for_subscriber: true,
        presence: true,
        join_leave: true,
        force_push_join_leave: true,
        history_size: 50_000, // more than is published under load while somebody is away
        history_ttl: '300s',
        force_recovery: true,
      },
    },
  };
}

before(async () => {
  redis = await startRedis('--appendonly', 'yes', '--appendfsync', 'always');
  nodes = await Promise.all(Array.from({ length: NODES }, () => start(settings(redis))));
  const known = async (node) => (await node.api('info')).nodes.length === NODES;
  for (const node of nodes) await eventually(() => known(node), 'all nodes to know each other');
});

after(async () => {
  await Promise.all((nodes ?? []).map((node) => node.stop()));
  await redis?.stop();
});

const someone = (t, node, encoding = ENCODINGS[0], user = '42') =>
  sdk(t, node, encoding, { token: token({ sub: user }) });

const offsets = (publications) => publications.items.map((item) => item.offset);
const upTo = (count, from = 1) => Array.from({ length: count }, (_, index) => from + index);

/**
 * Publishes without a pause until it is stopped, each time on the next one of `targets`, a few at once. What fails, because a node
 * or the Redis is gone, counts as neither done nor not done.
 */
function pour(t, targets, channel) {
  const load = { acknowledged: [], failed: 0 };
  let [tried, isOver] = [0, false];
  const publish = async () => {
    const data = { n: (tried += 1) };
    const reply = await targets[tried % targets.length].apiReply('publish', { channel, data }).catch(() => undefined);
    if (reply?.error) assert.equal(reply.error.code, 100);
    if (reply?.result) load.acknowledged.push({ n: data.n, offset: reply.result.offset });
    else load.failed += 1;
  };
  const lane = async () => {
    while (!isOver) await publish();
  };
  const lanes = Promise.all(Array.from({ length: LANES }, lane));
  load.stop = () => {
    isOver = true;
    return lanes;
  };
  load.last = () => Math.max(...load.acknowledged.map(({ offset }) => offset));
  t.after(load.stop);
  return load;
}

/** A client that is subscribed, with what it heard, and how often it was told that it could not recover. */
async function listener(t, node, encoding, channel) {
  const client = someone(t, node, encoding);
  await connect(client);
  const { subscription, publications } = await subscribe(client, channel);
  const log = { client, publications, told: 0, values: () => publications.items.map(({ data }) => encoding.value(data).n) };
  subscription.on('subscribed', ({ wasRecovering, recovered }) => {
    if (wasRecovering && !recovered) log.told += 1;
  });
  log.hasUpTo = (offset) => publications.find((item) => item.offset >= offset, `offset ${offset}`, 20_000);
  return log;
}

/** Everybody heard whatever was acknowledged, each publication once, in one order without a hole. */
function assertComplete(listeners, { acknowledged }) {
  for (const log of listeners) {
    assert.equal(log.told, 0, 'nobody was told of a loss');
    const last = log.publications.items.length;
    assert.deepEqual(offsets(log.publications), upTo(last), 'in order, without a hole');
    const values = log.values();
    for (const { n, offset } of acknowledged) assert.equal(values[offset - 1], n, 'what was acknowledged is at its place');
  }
}

const LANES = 4;

describe('several nodes', () => {
  for (const encoding of ENCODINGS) {
    test(`what is published on any node reaches all in one order, ${encoding.name}`, async (t) => {
      const channel = `order-${encoding.name}`;
      const logs = [];
      for (const node of nodes) {
        const client = someone(t, node, encoding);
        await connect(client);
        logs.push((await subscribe(client, channel)).publications);
      }
      const publish = (n) => nodes[n % NODES].api('publish', { channel, data: { n } });
      await Promise.all(upTo(90).map(publish));
      for (const log of logs) await log.count(90);
      const values = (log) => log.items.map((item) => encoding.value(item.data).n);
      assert.deepEqual(offsets(logs[0]), upTo(90));
      assert.deepEqual([...values(logs[0])].sort((a, b) => a - b), upTo(90));
      for (const log of logs) assert.deepEqual(values(log), values(logs[0]));
    });
  }

  test('a client publishes and everybody hears who it was', async (t) => {
    const [ada, bob] = [someone(t, nodes[0], ENCODINGS[0], 'ada'), someone(t, nodes[1], ENCODINGS[1], 'bob')];
    await Promise.all([connect(ada), connect(bob)]);
    const { publications } = await subscribe(ada, 'chat');
    const { subscription } = await subscribe(bob, 'chat');
    await subscription.publish(ENCODINGS[1].payload({ text: 'hello' }));
    const [heard] = await publications.count(1);
    assert.deepEqual([heard.data, heard.info.user], [{ text: 'hello' }, 'bob']);
  });

  test('presence, its counts and history are the same from every node', async (t) => {
    const users = ['ada', 'bob', 'eve'];
    for (const [number, user] of users.entries()) {
      const client = someone(t, nodes[number], ENCODINGS[number % 2], user);
      await connect(client);
      await subscribe(client, 'room');
    }
    for (const n of upTo(5)) await nodes[n % NODES].api('publish', { channel: 'room', data: { n } });
    const answers = await Promise.all(nodes.map(async (node) => ({
      presence: (await node.api('presence', { channel: 'room' })).presence,
      stats: await node.api('presence_stats', { channel: 'room' }),
      history: await node.api('history', { channel: 'room', limit: -1 }),
    })));
    assert.deepEqual(Object.values(answers[0].presence).map(({ user }) => user).sort(), users);
    assert.deepEqual(answers[0].stats, { num_clients: 3, num_users: 3 });
    assert.deepEqual(answers[0].history.publications.map(({ offset }) => offset), upTo(5));
    for (const answer of answers) assert.deepEqual(answer, answers[0]);
  });

  test('a join on one node is heard on another, and so is the leave', async (t) => {
    const [ada, bob] = [someone(t, nodes[0], ENCODINGS[0], 'ada'), someone(t, nodes[1], ENCODINGS[0], 'bob')];
    await Promise.all([connect(ada), connect(bob)]);
    const { subscription } = await subscribe(ada, 'lobby');
    const events = [];
    subscription.on('join', ({ info }) => events.push(`join ${info.user}`));
    subscription.on('leave', ({ info }) => events.push(`leave ${info.user}`));
    await subscribe(bob, 'lobby');
    bob.disconnect();
    await eventually(() => events.includes('leave bob'), 'the leave');
    assert.deepEqual(events.filter((event) => event.endsWith('bob')), ['join bob', 'leave bob']);
  });

  test('API calls reach connections of every node', async (t) => {
    const clients = nodes.map((node) => someone(t, node, ENCODINGS[0], 'everywhere'));
    await Promise.all(clients.map(connect));
    const subscriptions = await Promise.all(clients.map((client) => subscribe(client, 'orders')));
    const channels = await nodes[2].api('channels', { pattern: 'orders' });
    assert.deepEqual(channels, { channels: { orders: { num_clients: NODES } } });
    const unsubscribed = subscriptions.map(({ subscription }) => next(subscription, 'unsubscribed'));
    await nodes[0].api('unsubscribe', { user: 'everywhere', channel: 'orders' });
    for (const { code } of await Promise.all(unsubscribed)) assert.equal(code, 2000);
    const disconnected = clients.map((client) => next(client, 'disconnected'));
    await nodes[1].api('disconnect', { user: 'everywhere' });
    for (const { code } of await Promise.all(disconnected)) assert.equal(code, 3503);
  });

  test('a client that comes back to another node recovers what it missed', async (t) => {
    const ada = someone(t, nodes[0]);
    await connect(ada);
    const { subscription } = await subscribe(ada, 'moves');
    await nodes[0].api('publish', { channel: 'moves', data: { n: 1 } });
    const { epoch } = await subscription.history({ limit: 0 });
    ada.disconnect();
    for (const n of upTo(4, 2)) await nodes[n % NODES].api('publish', { channel: 'moves', data: { n } });
    const again = someone(t, nodes[1]);
    await connect(again);
    const other = again.newSubscription('moves', { since: { offset: 1, epoch } });
    const missed = [];
    other.on('publication', ({ offset }) => missed.push(offset));
    const subscribed = next(other, 'subscribed');
    other.subscribe();
    assert.equal((await subscribed).recovered, true);
    await eventually(() => missed.length === 4, 'what was missed');
    assert.deepEqual(missed, upTo(4, 2));
  });

  test('an idempotency key counts on all nodes', async () => {
    const request = { channel: 'once', data: {}, idempotency_key: 'key' };
    const results = await Promise.all(upTo(9).map((n) => nodes[n % NODES].api('publish', request)));
    for (const result of results) assert.deepEqual(result, results[0]);
    assert.equal((await nodes[0].api('history', { channel: 'once', limit: -1 })).publications.length, 1);
  });
});

describe('trouble', () => {
  test('a node that is killed under load loses no publication for clients that come back elsewhere', async (t) => {
    const doomed = await start(settings(redis));
    const balancer = await balance(t, doomed);
    const channel = 'killed';
    const listeners = await Promise.all(upTo(6).map((n) => listener(t, balancer, ENCODINGS[n % 2], channel)));
    const load = pour(t, [doomed, ...nodes], channel);
    await listeners[0].hasUpTo(100);
    balancer.target = nodes[0];
    const killedAt = performance.now();
    const since = () => Math.round(performance.now() - killedAt);
    const back = listeners.map(async (log) => {
      await next(log.client, 'connected');
      const [connected, last] = [since(), load.last()];
      await log.hasUpTo(last);
      return { connected, caughtUp: since() };
    });
    await doomed.stop('SIGKILL');
    const times = await Promise.all(back);
    const most = (what) => Math.max(...times.map((time) => time[what]));
    await listeners[0].hasUpTo(load.last() + 100);
    await load.stop();
    await Promise.all(listeners.map((log) => log.hasUpTo(load.last())));
    t.diagnostic(`after the node was killed all were connected again in ${most('connected')} ms and had caught up in ${most('caughtUp')} ms`);
    t.diagnostic(`${load.acknowledged.length} publications were acknowledged, ${load.failed} were not`);
    assertComplete(listeners, load);
    await eventually(async () => (await nodes[0].api('info')).nodes.length === NODES, 'the dead node to be forgotten', 20_000);
  });

  for (const encoding of ENCODINGS) {
    test(`a node that is stopped sends its clients elsewhere, and they miss nothing, ${encoding.name}`, async (t) => {
      const leaving = await start({ ...settings(redis), shutdown: { timeout: '5s' } });
      const balancer = await balance(t, leaving);
      const channel = `stopped-${encoding.name}`;
      const clients = await Promise.all(
        upTo(5).map(async (n) => {
          const client = someone(t, balancer, encoding, `${n}`);
          await connect(client);
          const { publications } = await subscribe(client, channel);
          return { publications, left: next(client, 'connecting') };
        }),
      );
      let published = 0;
      const publish = () => nodes[published % NODES].api('publish', { channel, data: { n: (published += 1) } });
      for (let n = 0; n < 10; n += 1) await publish();
      balancer.target = nodes[1];
      const stopped = leaving.stop();
      while (published < 50) await publish();
      for (const { left } of clients) assert.equal((await left).code, 3001);
      await stopped;
      for (const { publications } of clients) assert.deepEqual((await publications.count(50)).map(({ offset }) => offset), upTo(50));
    });
  }

  test('a Redis that is killed under load and keeps what it wrote loses nothing', async (t) => {
    const channel = 'crash';
    const listeners = await Promise.all(upTo(6).map((n) => listener(t, nodes[n % NODES], ENCODINGS[n % 2], channel)));
    const load = pour(t, nodes, channel);
    await listeners[0].hasUpTo(100);
    const killedAt = performance.now();
    const since = () => Math.round(performance.now() - killedAt);
    await redis.kill();
    const before = load.acknowledged.length;
    await eventually(async () => (await fetch(`${nodes[1].http}/health`)).status === 503, 'health to tell');
    await redis.start();
    const ready = since();
    await Promise.all(nodes.map((node) => eventually(async () => (await fetch(`${node.http}/health`)).status === 200, 'Redis to be back', 20_000)));
    const connected = since();
    await eventually(() => load.acknowledged.length > before, 'publications again', 20_000);
    const last = load.last();
    await Promise.all(listeners.map((log) => log.hasUpTo(last)));
    const caughtUp = since();
    await listeners[0].hasUpTo(last + 100);
    await load.stop();
    await Promise.all(listeners.map((log) => log.hasUpTo(load.last())));
    t.diagnostic(`after Redis was killed it was there again in ${ready} ms, all nodes were connected in ${connected} ms, all clients had caught up in ${caughtUp} ms`);
    t.diagnostic(`${load.acknowledged.length} publications were acknowledged, ${load.failed} were not`);
    assertComplete(listeners, load);
  });

  test('a master that the Sentinels replace leaves no client with a hole that is not told', async (t) => {
    const group = await startSentinels('main');
    t.after(() => group.stop());
    const sentinel_address = group.sentinels.map(({ port }) => `127.0.0.1:${port}`);
    const under = settings(redis);
    under.engine.redis = { sentinel_address, sentinel_master_name: 'main', io_timeout: '1s' };
    const pair = await Promise.all([start(under), start(under)]);
    t.after(() => Promise.all(pair.map((node) => node.stop())));
    const clients = [];
    for (const node of pair) {
      for (const encoding of ENCODINGS) {
        const client = someone(t, node, encoding);
        await connect(client);
        const seen = await subscribe(client, 'failover');
        const log = { ...seen, encoding, told: 0 };
        seen.subscription.on('subscribed', ({ wasRecovering, recovered }) => {
          if (wasRecovering && !recovered) log.told += 1;
        });
        clients.push(log);
      }
    }
    const acknowledged = [];
    let n = 0;
    const publish = async () => {
      n += 1;
      const data = { n };
      const reply = await pair[n % 2].apiReply('publish', { channel: 'failover', data });
      if (reply.error) assert.equal(reply.error.code, 100);
      else acknowledged.push(data.n);
      return !reply.error;
    };
    const isStored = async () => {
      const { publications } = await pair[0].api('history', { channel: 'failover', limit: -1 });
      return new Set(publications.map(({ data }) => data.n));
    };
    for (let count = 0; count < 30; count += 1) await publish();
    const during = [publish(), publish(), publish()];
    await group.master.kill();
    const killedAt = performance.now();
    await Promise.all(during);
    while (!(await publish())) assert.ok(performance.now() - killedAt < 30_000, 'a new master in time');
    t.diagnostic(`published again ${Math.round(performance.now() - killedAt)} ms after the master was killed`);
    for (const node of pair) {
      await eventually(async () => (await fetch(`${node.http}/health`)).status === 200, 'all connections', 20_000);
    }
    for (let count = 0; count < 30; count += 1) assert.ok(await publish(), 'publications flow again');
    const stored = await isStored();
    const last = acknowledged.at(-1);
    for (const { publications, encoding, told } of clients) {
      const value = ({ data }) => encoding.value(data).n;
      await publications.find((item) => value(item) === last, 'the last publication');
      const heard = publications.items.map(value);
      const missing = acknowledged.filter((number) => stored.has(number) && !heard.includes(number));
      assert.ok(missing.length === 0 || told > 0, `missed ${missing} and was told nothing`);
      assert.equal(new Set(heard).size, heard.length, 'nothing twice');
    }
  });

  test('a wrong password and a stranger in its place stop the start with a remedy', async (t) => {
    const guarded = await startRedis('--requirepass', 'right');
    t.after(() => guarded.stop());
    const wrong = guarded.address.replace('redis://', 'redis://:wrong@');
    const denied = await refusal(settings({ address: wrong }));
    assert.notEqual(denied.code, 0);
    assert.match(denied.text, /denies access.*engine\.redis\.password/s);
    const stranger = await refusal(settings({ address: nodes[0].host }));
    assert.notEqual(stranger.code, 0);
    assert.match(stranger.text, /does not speak the Redis protocol/);
    const scheme = await refusal(settings({ address: 'http://localhost' }));
    assert.match(scheme.text, /engine\.redis\.address/);
  });

  test('a Redis that is not there yet is waited for', async (t) => {
    const late = await startRedis();
    t.after(() => late.stop());
    await late.kill();
    const node = await start(settings(late));
    t.after(() => node.stop());
    const health = async () => (await fetch(`${node.http}/health`)).status;
    assert.equal(await health(), 503);
    const reply = await node.apiReply('publish', { channel: 'early', data: {} });
    assert.equal(reply.error.code, 100);
    await late.start();
    await eventually(async () => (await health()) === 200, 'Redis to be found', 20_000);
    const { offset } = await node.api('publish', { channel: 'early', data: {} });
    assert.equal(offset, 1);
  });
});
