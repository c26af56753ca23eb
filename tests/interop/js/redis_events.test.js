// Events out of two nodes with one Redis: what a backend makes of them is what the nodes say, after every fault.
// In: clients that come, go and subscribe; kills of the backend, of a node, of the Redis → out: equal pictures.
// May use sockets of its own; never a moment, only conditions with a limit and a schedule of faults.
// The rules of a backend are in backend_picture.js. FANWIRE_CHURN=2000:60 plays 2,000 clients for a minute.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import WebSocket from 'ws';

import { Backend, Picture, SECRET } from '../backend_picture.js';
import { startRedis, startSentinels } from '../redis.js';
import { eventually, start } from '../server.js';

const [CLIENTS, SECONDS] = (process.env.FANWIRE_CHURN ?? '200:24').split(':').map(Number);
/** Most have one subscriber or none. */
const CHANNELS = CLIENTS * 4;

const COMMON = {
  client: { allow_anonymous_connect_without_token: true },
  channel: { without_namespace: { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true } },
};

const some = (count) => Math.floor(Math.random() * count);

/** A client that speaks the protocol by hand. */
class Client {
  constructor(url) {
    this.channels = new Set();
    this.id = 1;
    this.socket = new WebSocket(url);
    this.isReady = false;
    this.socket.on('open', () => this.socket.send('{"id":1,"connect":{}}'));
    this.socket.on('message', (bytes) => {
      for (const line of bytes.toString().split('\n')) {
        if (line === '{}') this.socket.send('{}');
        this.isReady ||= line.includes('"connect":{');
      }
    });
    this.socket.on('error', () => {});
    this.ended = new Promise((resolve) => this.socket.on('close', resolve));
  }

  get isOver() {
    return this.socket.readyState >= WebSocket.CLOSING;
  }

  /** Subscribes to a channel, or ends a subscription. */
  toggle(channel) {
    if (!this.isReady || this.socket.readyState !== WebSocket.OPEN) return;
    const what = this.channels.delete(channel) ? 'unsubscribe' : 'subscribe';
    if (what === 'subscribe') this.channels.add(channel);
    this.id += 1;
    this.socket.send(JSON.stringify({ id: this.id, [what]: { channel } }));
  }
}

/** Clients that come and go until the seconds are over, with a function to call at each part of them. */
async function churn(nodes, schedule) {
  const clients = [];
  const begin = performance.now();
  for (let step = 0; ; step += 1) {
    const part = (performance.now() - begin) / 1000 / SECONDS;
    if (part >= 1) break;
    while (schedule.length && part >= schedule[0][0]) await schedule.shift()[1]();
    for (let each = 0; each < CLIENTS / 40; each += 1) {
      const at = some(CLIENTS);
      if (!clients[at] || clients[at].isOver) clients[at] = new Client(nodes[some(nodes.length)].websocket);
      else if (some(10) === 0) clients[at].socket[some(2) ? 'close' : 'terminate']();
      else clients[at].toggle(`room-${some(CHANNELS)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return clients.filter(Boolean);
}

test('the backend knows who is connected and which channels are occupied after kills of all parts', async (t) => {
  const group = await startSentinels('main');
  t.after(() => group.stop());
  const nodes = [];
  const backend = new Backend(() => nodes.at(-1));
  await backend.start();
  t.after(() => backend.kill());
  const sentinel_address = group.sentinels.map(({ port }) => `127.0.0.1:${port}`);
  const settings = {
    ...COMMON,
    engine: { type: 'redis', redis: { sentinel_address, sentinel_master_name: 'main', io_timeout: '1s' } },
    events: { http: { endpoint: backend.url, secret: SECRET, timeout: '2s' }, vacated_delay: '500ms' },
  };
  const add = async () => {
    const node = await start(settings);
    nodes.push(node);
    t.after(() => node.stop());
  };
  await add();
  await add();
  await eventually(async () => (await nodes[0].api('info')).nodes.length === 2, 'both nodes to know each other');

  const clients = await churn(nodes, [
    [0.15, () => backend.kill()],
    [0.25, () => backend.start()],
    [0.35, () => (backend.fails = true)],
    [0.45, () => (backend.fails = false)],
    // The node that tells of channels.
    [0.5, async () => { await nodes.shift().stop('SIGKILL'); await add(); }],
    [0.65, () => group.master.kill()],
    [0.8, () => backend.kill()],
    [0.85, () => backend.start()],
  ]);
  t.after(() => clients.forEach(({ socket }) => socket.terminate()));

  let seen = [];
  const isRight = async () => {
    const picture = JSON.stringify(backend.picture);
    const truth = JSON.stringify(await Picture.ofNodes(nodes[0]).catch(() => undefined));
    seen = [picture, truth];
    if (picture !== truth) await new Promise((resolve) => setTimeout(resolve, 200));
    return picture === truth;
  };
  await eventually(isRight, 'the pictures to be equal', 60_000).catch((error) => {
    throw new Error(`${error.message}\nbackend: ${seen[0]}\nserver: ${seen[1]}`);
  });
  assert.deepEqual(backend.errors, []);
  const { clients: connected, occupied } = JSON.parse(seen[1]);
  t.diagnostic(`${connected.length} clients, ${occupied.length} channels, ${JSON.stringify(backend.picture.counts)}`);
  assert.ok(connected.length > CLIENTS / 4 && occupied.length > CLIENTS / 4, seen[1].slice(0, 500));
  assert.ok(backend.failed > 0 && backend.picture.counts.connected > 0);
});

test('events go to a stream of a Redis, in order, also after it was restarted', async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const redis_stream = { address: redis.address, stream: 'out' };
  const server = await start({ ...COMMON, events: { redis_stream, batch_delay: '10ms', vacated_delay: '0s' } });
  t.after(() => server.stop());
  const picture = new Picture();
  let after = '-';
  const read = async (question, what) => {
    await eventually(async () => {
      const text = await redis.ask(`XRANGE out ${after} +`);
      for (const [, entry, body] of text.matchAll(/\r\n(\d+-\d+)\r\n\*2\r\n\$5\r\nbatch\r\n\$\d+\r\n(\{.*?\})\r\n/g)) {
        const { node, events } = JSON.parse(body);
        events.forEach((event) => picture.take(node, event));
        after = `(${entry}`;
      }
      return question();
    }, what);
  };
  const client = new Client(server.websocket);
  t.after(() => client.socket.terminate());
  await eventually(() => client.isReady, 'a connection');
  client.toggle('news');
  await read(() => picture.occupied.has('news') && picture.clients.size === 1, 'a client in a channel');
  await redis.kill();
  client.socket.close();
  await client.ended;
  await redis.start();
  await read(() => picture.occupied.size === 0 && picture.clients.size === 0, 'no client any more');
});
