// Two nodes with one Redis Cluster, and npm centrifuge on both: what clients are told when a master dies.
// In: nodes with Centrifugo's engine keys, a Cluster of six → out: publications, and what is said about missing ones.
// May use the SDK's public interface and the server API only; of the Cluster it knows which process to kill.
// What the engine does by itself is tested in crates/redis; a single Redis in redis.test.js.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { startRedis, startRedisCluster } from '../redis.js';
import { eventually, refusal, start, token } from '../server.js';
import { ENCODINGS, connect, sdk, subscribe } from './clients.js';

let cluster;
let nodes;

function settings(redis) {
  return {
    engine: { type: 'redis', redis: { io_timeout: '1s', ...redis } },
    health: { enabled: true },
    channel: {
      without_namespace: {
        allow_subscribe_for_client: true,
        allow_history_for_subscriber: true,
        allow_presence_for_subscriber: true,
        presence: true,
        history_size: 1000,
        history_ttl: '300s',
        force_recovery: true,
      },
    },
  };
}

before(async () => {
  cluster = await startRedisCluster('--appendonly', 'yes', '--appendfsync', 'always');
  nodes = await Promise.all([0, 1].map(() => start(settings({ cluster_address: [cluster.address] }))));
  await eventually(async () => (await nodes[0].api('info')).nodes.length === 2, 'both nodes to know each other');
});

after(async () => {
  await Promise.all((nodes ?? []).map((node) => node.stop()));
  await cluster?.stop();
});

const isWell = async (node) => (await fetch(`${node.http}/health`)).status === 200;
const upTo = (count, from = 1) => Array.from({ length: count }, (_, index) => from + index);

/** A client on a node with one subscription: its publications, and how often it was told that it could not recover. */
async function follower(t, node, encoding, channel) {
  const client = sdk(t, node, encoding, { token: token({ sub: '42' }) });
  await connect(client);
  const { subscription, publications } = await subscribe(client, channel);
  const log = { publications, told: 0, values: () => publications.items.map(({ data }) => encoding.value(data).n) };
  subscription.on('subscribed', ({ wasRecovering, recovered }) => {
    if (wasRecovering && !recovered) log.told += 1;
  });
  return log;
}

describe('a Redis Cluster', () => {
  test('channels of every master reach clients on every node in one order', async (t) => {
    const channels = upTo(12).map((number) => `order-${number}`);
    const masters = await Promise.all(channels.map((channel) => cluster.master(channel)));
    assert.equal(new Set(masters).size, 3, 'all masters are used');
    const logs = [];
    for (const channel of channels) {
      for (const [number, node] of nodes.entries()) logs.push(await follower(t, node, ENCODINGS[number], channel));
      await Promise.all(upTo(10).map((n) => nodes[n % 2].api('publish', { channel, data: { n } })));
    }
    for (const { publications } of logs) await publications.count(10);
    for (const [index, log] of logs.entries()) {
      assert.deepEqual(log.publications.items.map(({ offset }) => offset), upTo(10));
      assert.deepEqual(log.values(), logs[index - (index % 2)].values());
    }
    const presence = await Promise.all(nodes.map((node) => node.api('presence_stats', { channel: 'order-1' })));
    assert.deepEqual(presence, [0, 1].map(() => ({ num_clients: 2, num_users: 1 })));
  });

  test('a master that is killed under load leaves no hole that is not told', async (t) => {
    const logs = [];
    for (const [number, node] of nodes.entries()) {
      for (const channel of ['crash-1', 'crash-2', 'crash-3']) {
        logs.push({ channel, log: await follower(t, node, ENCODINGS[number], channel) });
      }
    }
    const channels = [...new Set(logs.map(({ channel }) => channel))];
    const acknowledged = Object.fromEntries(channels.map((channel) => [channel, []]));
    const publish = async (n) => {
      for (const [index, channel] of channels.entries()) {
        const reply = await nodes[(n + index) % 2].apiReply('publish', { channel, data: { n } });
        if (reply.error) assert.equal(reply.error.code, 100);
        else acknowledged[channel].push(n);
      }
    };
    let published = 0;
    const more = async (count) => {
      for (const n of upTo(count, published + 1)) await publish(n);
      published += count;
    };
    await more(30);
    const killedAt = performance.now();
    const victim = await cluster.master(channels[0]);
    await victim.kill();
    const before = acknowledged[channels[0]].length;
    await eventually(async () => {
      await more(1);
      return acknowledged[channels[0]].length > before;
    }, 'a replica to take over', 30_000);
    t.diagnostic(`published again ${Math.round(performance.now() - killedAt)} ms after the master was killed`);
    for (const node of nodes) await eventually(() => isWell(node), 'all connections to be there', 20_000);
    await more(30);
    for (const { channel, log } of logs) {
      const last = acknowledged[channel].at(-1);
      await eventually(() => log.values().includes(last), `the last publication of ${channel}`, 20_000);
      const heard = new Set(log.values());
      const missing = acknowledged[channel].filter((n) => !heard.has(n));
      assert.ok(missing.length === 0 || log.told > 0, `${channel}: missed ${missing} and was told nothing`);
      const offsets = log.publications.items.map(({ offset }) => offset);
      assert.ok(log.told > 0 || offsets.every((offset, index) => index === 0 || offsets[index - 1] < offset), 'in order');
    }
    await victim.start();
  });

  test('wrong kinds of addresses stop the start with a remedy', async (t) => {
    const single = await startRedis();
    t.after(() => single.stop());
    const wrong = await refusal(settings({ cluster_address: [`127.0.0.1:${single.port}`] }));
    assert.notEqual(wrong.code, 0);
    assert.match(wrong.text, /is no node of a Cluster.*engine\.redis\.address/s);
    const other = await refusal(settings({ address: cluster.nodes[1].address }));
    assert.notEqual(other.code, 0);
    assert.match(other.text, /runs in cluster mode.*engine\.redis\.cluster_address/s);
  });
});
