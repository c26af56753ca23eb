// Readers of one growing answer on two nodes, one of which is killed: by npm centrifuge, and by EventSource without an SDK.
// In: pieces from a backend, readers that come late, reload, stop reading, change nodes → out: the same text at the end of each.
// May use the SDK's public interface, npm eventsource and the server API; never looks into the Redis.
// Random lives of readers without sockets are in crates/node/tests/it/growing.rs; a browser is in browser/growing.test.js.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { EventSource } from 'eventsource';
import WebSocket from 'ws';

import { balance } from '../balancer.js';
import { startRedis } from '../redis.js';
import { eventually, start } from '../server.js';
import { ENCODINGS } from './clients.js';

const CHANNEL = 'answers';
const KEY = 'answer-1';
const PIECES = 800;
const WORDS = ['Grüße ', '"so" ', 'new\nline ', 'token ', '\\ 😀 '];

async function startNodes(t, appendInterval) {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const settings = {
    engine: { type: 'redis', redis: { address: redis.address } },
    uni_sse: { enabled: true },
    client: { insecure: true },
    channel: {
      without_namespace: { history_size: 100, history_ttl: '600s', force_recovery: true, append_interval: appendInterval },
    },
  };
  const nodes = await Promise.all([start(settings), start(settings)]);
  nodes.forEach((node) => t.after(() => node.stop()));
  return nodes;
}

/** A page with one answer. Its text only grows, also when the page is loaded again. */
class Page {
  constructor(t, balancer, connect) {
    Object.assign(this, { balancer, connect, text: '', offset: 0, drawn: 0, faults: [], isFinal: false });
    t.after(() => this.close?.());
  }

  open() {
    this.close = this.connect(this);
  }

  reload() {
    this.close();
    [this.offset, this.isFinal] = [0, false];
    this.open();
  }

  move() {
    this.balancer.target = this.other;
    this.balancer.cut();
  }

  stopReading() {
    this.isStopped = true;
    this.balancer.stopReading();
    setTimeout(() => {
      this.balancer.readOn();
      this.isStopped = false;
    }, 5_000);
  }

  draw({ offset, tags }, data) {
    if (offset <= this.offset) return;
    if (!data.startsWith(this.text)) this.faults.push(`offset ${offset}: ${data.length} after ${this.text.length}`);
    [this.offset, this.text, this.isFinal] = [offset, data, tags.final === 'true'];
    this.drawn += 1;
  }
}

/** Connects by the SDK as docs/recipes/ai-answers.md does; returns how to close it. */
const bySdk = (encoding) => (page) => {
  const options = { websocket: WebSocket, minReconnectDelay: 50, maxReconnectDelay: 200 };
  const client = new encoding.Centrifuge(page.balancer.websocket, options);
  const answers = client.newSubscription(CHANNEL);
  const draw = (publication) => page.draw(publication, encoding.value(publication.data));
  let isLoaded = false;
  answers.on('publication', draw);
  answers.on('subscribed', async ({ recovered }) => {
    if (isLoaded && !recovered) page.faults.push('not recovered');
    if (isLoaded) return;
    const stored = await answers.history({ limit: 100 }).catch(() => undefined);
    stored?.publications.forEach(draw);
    isLoaded = stored !== undefined;
  });
  answers.subscribe();
  client.connect();
  return () => client.disconnect();
};

/** Connects by an EventSource, which asks for everything that is stored. */
function byEvents(page) {
  const request = { subs: { [CHANNEL]: { recover: true } } };
  const query = new URLSearchParams({ cf_connect: JSON.stringify(request) });
  const source = new EventSource(`${page.balancer.http}/connection/uni_sse?${query}`);
  source.onmessage = ({ data }) => {
    const { connect, pub } = JSON.parse(data);
    const publications = connect?.subs?.[CHANNEL]?.publications ?? (pub ? [pub] : []);
    publications.forEach((publication) => page.draw(publication, publication.data));
  };
  source.addEventListener('unrecovered', ({ data }) => page.faults.push(data));
  return () => source.close();
}

const KINDS = { 'SDK, JSON': bySdk(ENCODINGS[0]), 'SDK, Protobuf': bySdk(ENCODINGS[1]), EventSource: byEvents };

/** A backend: appends to `nodes` by turns, until one of them has taken the piece. */
class Backend {
  constructor(nodes) {
    Object.assign(this, { nodes, text: '', length: 0, turn: 0, failures: 0 });
  }

  async append(data, isFinal = false) {
    this.text += data;
    const request = { channel: CHANNEL, key: KEY, data, at: this.length, final: isFinal };
    for (;;) {
      const node = this.nodes[(this.turn += 1) % this.nodes.length];
      const reply = await node.apiReply('append', request).catch(() => undefined);
      if (reply?.result) return (this.length = reply.result.length);
      if (reply) assert.equal(reply.error.code, 100, reply.error.message);
      this.failures += 1;
    }
  }
}

/** Every page ends with the whole text, which only grew. */
async function assertEqualTexts(pages, text) {
  await eventually(() => pages.every(({ isFinal }) => isFinal), 'the end of the answer', 20_000);
  for (const { name, faults, text: drawn } of pages) {
    assert.deepEqual(faults, [], name);
    assert.equal(drawn, text, name);
  }
}

/** What the readers do at which piece; they begin on the node that survives, or on the one that is killed at piece 400. */
const PARTS = {
  stays: { 0: 'open' },
  'loses its node': { 0: 'open', on: 'doomed' },
  reloads: { 0: 'open', 200: 'reload', 420: 'reload', 700: 'reload', on: 'doomed' },
  'changes nodes': { 0: 'open', 250: 'move', on: 'doomed' },
  'stops reading for 5 s': { 0: 'open', 150: 'stopReading' },
  'comes in the middle': { 350: 'open' },
  'comes late': { 790: 'open' },
};

test('readers that come late, reload, stop reading or lose their node end with the same text', async (t) => {
  const [doomed, other] = await startNodes(t, '40ms');
  const pages = [];
  for (const [part, steps] of Object.entries(PARTS)) {
    for (const [kind, connect] of Object.entries(KINDS)) {
      const balancer = await balance(t, steps.on ? doomed : other);
      pages.push(Object.assign(new Page(t, balancer, connect), { name: `${part}, ${kind}`, steps, other }));
    }
  }
  const backend = new Backend([doomed, other]);
  let exit;
  for (let n = 0; n < PIECES || pages.some(({ isStopped }) => isStopped); n += 1) {
    for (const page of pages) page[page.steps[n]]?.();
    if (n === 400) {
      for (const { balancer } of pages) balancer.target = other;
      exit = doomed.stop('SIGKILL').then(() => (backend.nodes = [other]));
    }
    await backend.append(WORDS[n % WORDS.length]);
    await new Promise((resolve) => setTimeout(resolve, 5)); // until the next token of a model
  }
  await exit;
  await backend.append('', true);
  await assertEqualTexts(pages, backend.text);
  const drawn = pages.map((page) => page.drawn);
  t.diagnostic(`${backend.length} bytes; ${Math.min(...drawn)} to ${Math.max(...drawn)} publications at a reader`);
  t.diagnostic(`${backend.failures} appends failed at the killed node`);
});

test('text that waits in a killed node is published by the final append on another one', async (t) => {
  const [doomed, other] = await startNodes(t, '10s');
  const pages = [];
  for (const [name, connect] of Object.entries(KINDS)) {
    const page = Object.assign(new Page(t, await balance(t, other), connect), { name });
    page.open();
    pages.push(page);
  }
  const backend = new Backend([doomed]);
  await backend.append('Once ');
  await eventually(() => pages.every(({ text }) => text === 'Once '), 'the first piece');
  await backend.append('upon ');
  await doomed.stop('SIGKILL');
  backend.nodes = [other];
  await backend.append('a time');
  pages.forEach((page) => page.reload());
  await eventually(() => pages.every(({ offset }) => offset > 0), 'the answer after a reload, before its next publication');
  assert.deepEqual(pages.map(({ text }) => text), ['Once ', 'Once ', 'Once ']);
  await backend.append('', true);
  await assertEqualTexts(pages, 'Once upon a time');
});
