// EventSource clients whose connections are cut at random, and who come back by themselves with their last event id.
// In: a server behind a proxy that cuts in the middle of a response → out: every publication once and in order, at each client.
// May use npm eventsource and Node's own modules. FANWIRE_RESUME_CLIENTS=1000 FANWIRE_RESUME_SECONDS=60 plays it at length.
// What a single request gets is tested in crates/fanwire/tests/it/uni/resume.rs and crates/fanout.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { test } from 'node:test';

import { EventSource } from 'eventsource';
import EventSource1 from 'eventsource-1';
import EventSource2 from 'eventsource-2';

import { start, within } from '../server.js';

const CLIENTS = Number(process.env.FANWIRE_RESUME_CLIENTS ?? 40);
const SECONDS = Number(process.env.FANWIRE_RESUME_SECONDS ?? 3);
/** Longest time until all have connected or come back. */
const ALL_MS = 60_000 + CLIENTS * 200;
/** Publications that a client may lack when the next one is published. */
const LAG_MAX = 20;
const SEED = Number(process.env.FANWIRE_SEED ?? Date.now() % 1_000_000);

const SETTINGS = {
  uni_sse: { enabled: true },
  client: { insecure: true, recovery_max_publication_limit: 100_000 },
  channel: { without_namespace: { history_size: 100_000, history_ttl: '600s', force_recovery: true } },
};

/** Numbers from 0 to below 1 (mulberry32), the same ones for a seed. */
function random(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A proxy that passes a random number of bytes of each response, and then resets both sides. */
async function cuttingProxy(t, host) {
  const proxy = { cuts: 0, isCutting: true };
  const next = random(SEED);
  const sockets = new Set();
  const server = createServer((client) => {
    const upstream = connect(Number(host.split(':')[1]), '127.0.0.1');
    let left = 100 + Math.floor(next() ** 2 * 4_000);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => [client, upstream].forEach((one) => one.destroy()));
    }
    client.pipe(upstream);
    upstream.on('data', (bytes) => {
      left -= bytes.length;
      if (!proxy.isCutting || left > 0) return client.write(bytes);
      upstream.pause(); // or more bytes would follow those that were cut
      proxy.cuts += 1;
      return client.write(bytes.subarray(0, bytes.length + left), () => client.destroy());
    });
  });
  server.listen({ port: 0, host: '127.0.0.1', backlog: 2 * CLIENTS }); // all may come back at once
  await once(server, 'listening');
  t.after(() => {
    server.close();
    sockets.forEach((socket) => socket.destroy());
  });
  return Object.assign(proxy, { http: `http://127.0.0.1:${server.address().port}` });
}

/** An answer with an event source's time before the next request, in milliseconds, at its start. */
async function soon(url, options) {
  const response = await fetch(url, options);
  const { readable, writable } = new TransformStream();
  const start = writable.getWriter();
  start.write(new TextEncoder().encode('retry: 20\n')).catch(() => {});
  start.releaseLock();
  response.body.pipeTo(writable).catch(() => {});
  const { status, headers } = response;
  return Object.defineProperty(new Response(readable, { status, headers }), 'url', { value: String(url) });
}

/** Opens event sources of three versions by turns: in gzip, and without compression. */
function open(url, number) {
  if (number % 3 === 0) return new EventSource(url, { fetch: soon });
  const source = new (number % 3 === 1 ? EventSource1 : EventSource2)(url);
  source.reconnectInterval = 20;
  return source;
}

test(`${CLIENTS} clients, cut at random for ${SECONDS} s, lose and repeat nothing`, async (t) => {
  t.diagnostic(`FANWIRE_SEED=${SEED}`);
  const server = await start(SETTINGS);
  t.after(() => server.stop());
  const proxy = await cuttingProxy(t, server.host);
  let check;
  /** Waits until the answer is yes; asked at each message, because asking all the time would take the core. */
  const until = (question, what) => {
    const yes = new Promise((resolve) => (check = () => question() && resolve()));
    check();
    return within(yes, what, ALL_MS);
  };
  const query = new URLSearchParams({ cf_connect: JSON.stringify({ subs: { news: {} } }) });
  const clients = Array.from({ length: CLIENTS }, (_, number) => {
    const client = { numbers: [], unrecovered: [], isConnected: false };
    const source = open(`${proxy.http}/connection/uni_sse?${query}`, number);
    t.after(() => source.close());
    source.onmessage = ({ data }) => {
      const { connect, pub } = JSON.parse(data);
      client.isConnected ||= connect !== undefined;
      // These versions keep the data of an event that was cut before its id, and get it again.
      const isCutTwice = number % 3 > 0 && pub?.data.n === client.numbers.at(-1);
      if (pub && !isCutTwice) client.numbers.push(pub.data.n);
      check();
    };
    source.addEventListener('unrecovered', ({ data }) => client.unrecovered.push(data));
    return client;
  });
  await until(() => clients.every(({ isConnected }) => isConnected), 'the first connect pushes');
  let published = 0;
  for (const end = performance.now() + SECONDS * 1000; performance.now() < end; ) {
    published += 1;
    const text = 'ü'.repeat(published % 200);
    await server.api('publish', { channel: 'news', data: { n: published, text } });
    // Each time another client must have come near: in two of these versions, the time of a replay grows with its square.
    const { numbers } = clients[published % CLIENTS];
    await until(() => published - numbers.length < LAG_MAX, 'a client to come near');
  }
  proxy.isCutting = false;
  await server.api('publish', { channel: 'news', data: { n: (published += 1) } });
  await until(() => clients.every(({ numbers }) => numbers.at(-1) === published), 'the last publication');
  const expected = Array.from({ length: published }, (_, at) => at + 1);
  for (const { numbers, unrecovered } of clients) {
    assert.deepEqual(unrecovered, []);
    assert.deepEqual(numbers, expected);
  }
  t.diagnostic(`${published} publications, ${proxy.cuts} cuts`);
  assert.ok(proxy.cuts > CLIENTS, `${proxy.cuts} cuts`);
});
