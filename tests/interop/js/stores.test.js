// The stores of clients/js with the published SDK against the server, and against connections that end in the middle.
// In: publications, joins, pieces of a growing message → out: what a page would show.
// May use the package's exports and the server's API; pages in a browser are in browser/stores.test.js.
// What a store promises is changed in clients/js.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { connectionState, growing, latest, members, messages, typing } from '../../../clients/js/src/index.js';
import { eventually, start, token } from '../server.js';
import { ENCODINGS, connect, sdk } from './clients.js';

const [JSON_SDK] = ENCODINGS;
const SETTINGS = {
  channel: {
    without_namespace: {
      allow_subscribe_for_client: true,
      allow_publish_for_subscriber: true,
      allow_history_for_subscriber: true,
      allow_presence_for_subscriber: true,
      presence: true,
      join_leave: true,
      force_push_join_leave: true,
      history_size: 1000,
      history_ttl: '60s',
      force_recovery: true,
    },
    namespaces: [
      { name: 'plain', allow_subscribe_for_client: true, allow_publish_for_subscriber: true },
      { name: 'secret', allow_subscribe_for_client: true, history_size: 10, history_ttl: '60s' },
    ],
  },
};

async function served(t) {
  const server = await start(SETTINGS);
  t.after(() => server.stop());
  return server;
}

function client(t, server, user = 'anna') {
  const one = sdk(t, server, JSON_SDK, { token: token({ sub: user }) });
  one.connect();
  return one;
}

/** Shows a store as a page does: `shown.value` is what it would have on the screen. */
function show(t, store) {
  const shown = {};
  const end = store.subscribe((value) => (shown.value = value));
  t.after(end);
  return Object.assign(shown, { end });
}

const publish = (server, channel, data, more = {}) => server.api('publish', { channel, data, ...more });
const numbers = ({ value }) => value.map(({ data }) => data.n);
const range = (count) => Array.from({ length: count }, (_, n) => n);

test('messages: stored and live ones, each once and in order, over connections that end at any moment', async (t) => {
  const server = await served(t);
  for (let n = 0; n < 50; n += 1) await publish(server, 'room', { n });
  const one = client(t, server);
  const shown = show(t, messages(one, 'room'));
  for (let n = 50; n < 300; n += 1) {
    await publish(server, 'room', { n });
    if (n % 25 === 0) await server.api('disconnect', { user: 'anna', disconnect: { code: 4000, reason: 'again' } });
  }
  await eventually(() => shown.value.at(-1)?.data.n === 299, 'the newest message');
  const first = shown.value[0].data.n;
  assert.deepEqual(numbers(shown), range(300).slice(first));
  assert.ok(first <= 201, `the first is ${first}: those stored at the load, 100 at most, and all later ones`);
});

test('messages: an absence that cannot be bridged loads the list again', async (t) => {
  const server = await served(t);
  const one = client(t, server);
  const shown = show(t, messages(one, 'room', { limit: 10 }));
  await publish(server, 'room', { n: 0 });
  await eventually(() => shown.value.length === 1, 'the first message');
  one.disconnect();
  await server.api('history_remove', { channel: 'room' });
  for (let n = 1; n < 30; n += 1) await publish(server, 'room', { n });
  await server.api('history_remove', { channel: 'room' });
  for (let n = 30; n < 35; n += 1) await publish(server, 'room', { n });
  one.connect();
  await eventually(() => shown.value.at(-1)?.data.n === 34, 'the newest message');
  assert.deepEqual(numbers(shown), [30, 31, 32, 33, 34]);
});

test('messages: at most `keep`, live ones alone without a history, and an error where none may be read', async (t) => {
  const server = await served(t);
  const one = client(t, server);
  const errors = [];
  const kept = show(t, messages(one, 'room', { keep: 3 }));
  const plain = show(t, messages(one, 'plain:room'));
  const secret = show(t, messages(one, 'secret:room', { onError: (error) => errors.push(error.code) }));
  await eventually(() => errors.length === 1, 'the refusal of the history');
  for (const channel of ['room', 'plain:room', 'secret:room']) {
    for (let n = 0; n < 5; n += 1) await publish(server, channel, { n });
  }
  await eventually(() => secret.value.length === 5 && plain.value.length === 5, 'live messages');
  await eventually(() => kept.value.at(-1)?.data.n === 4, 'the newest message');
  assert.deepEqual([numbers(kept), numbers(plain), numbers(secret), errors], [[2, 3, 4], range(5), range(5), [103]]);
});

test('growing: a page that comes in the middle has the whole text, and sees its end', async (t) => {
  const server = await served(t);
  let text = '';
  const append = async (data, final = false) => {
    await server.api('append', { channel: 'answers', key: 'a', data, at: Buffer.byteLength(text), final });
    text += data;
  };
  const before = show(t, growing(client(t, server), 'answers'));
  for (let n = 0; n < 20; n += 1) await append(`wörd ${n} `);
  const late = show(t, growing(client(t, server, 'ben'), 'answers'));
  for (let n = 20; n < 40; n += 1) await append(`wörd ${n} `);
  await append('', true);
  for (const shown of [before, late]) {
    await eventually(() => shown.value.get('a')?.isFinal, 'the end of the answer');
    assert.deepEqual([...shown.value], [['a', { data: text, isFinal: true }]]);
  }
});

test('latest: the newest value of each key, by a tag or by a function', async (t) => {
  const server = await served(t);
  const one = client(t, server);
  const byTag = show(t, latest(one, 'prices'));
  const byData = show(t, latest(one, 'prices', { key: ({ data }) => data.name }));
  for (let n = 0; n < 30; n += 1) await publish(server, 'prices', { name: `s${n % 3}`, n }, n % 2 ? { tags: { key: 'odd' } } : {});
  await eventually(() => byData.value.get('s2')?.n === 29, 'the newest price');
  assert.deepEqual([...byData.value.values()].map(({ n }) => n), [27, 28, 29]);
  assert.deepEqual([...byTag.value], [['odd', { name: 's2', n: 29 }]]);
});

test('members: those who are here, also after others came and went', async (t) => {
  const server = await served(t);
  const shown = show(t, members(client(t, server), 'room'));
  const other = client(t, server, 'ben');
  const end = members(other, 'room').subscribe(() => {});
  const users = () => shown.value.map(({ user }) => user).sort();
  await eventually(() => users().length === 2, 'both members');
  assert.deepEqual(users(), ['anna', 'ben']);
  end();
  await eventually(() => users().length === 1, 'one to leave');
  assert.deepEqual(users(), ['anna']);
});

test('typing: a sign is shown for a while and published at most so often', async (t) => {
  const server = await served(t);
  const [anna, ben] = [client(t, server), client(t, server, 'ben')];
  const shown = [];
  t.after(typing(anna, 'plain:typing', { shown: 300 }).subscribe((users) => shown.push(users)));
  const own = typing(ben, 'plain:typing', { every: 60_000 });
  t.after(own.subscribe(() => {}));
  // Without a history a sign reaches only who is subscribed.
  for (const one of [anna, ben]) await one.getSubscription('plain:typing').ready();
  for (let key = 0; key < 5; key += 1) own.type();
  await eventually(() => shown.length === 3, 'nothing, the sign of one publication, its end');
  assert.deepEqual(shown, [[], ['ben'], []]);
});

test('stores of one channel share a subscription, and leave that of the page alone', async (t) => {
  const server = await served(t);
  const one = client(t, server);
  const [first, second] = [show(t, messages(one, 'room')), show(t, latest(one, 'room'))];
  const subscription = one.getSubscription('room');
  await subscription.ready();
  first.end();
  assert.equal(one.getSubscription('room'), subscription, 'the other one still uses it');
  second.end();
  assert.equal(one.getSubscription('room'), null);

  const own = one.newSubscription('page');
  own.subscribe();
  await own.ready();
  await publish(server, 'page', { n: 0 });
  const third = show(t, messages(one, 'page'));
  await eventually(() => third.value.length === 1, 'the stored message');
  third.end();
  assert.equal(own.state, 'subscribed');
});

test('connectionState: each change, and none after its listener is gone', async (t) => {
  const server = await served(t);
  const one = sdk(t, server, JSON_SDK, { token: token({ sub: 'anna' }) });
  const states = [];
  const end = connectionState(one).subscribe((state) => states.push(state));
  await connect(one);
  one.disconnect();
  end();
  await connect(one);
  assert.deepEqual(states.filter((state, n) => state !== states[n - 1]), ['disconnected', 'connecting', 'connected', 'disconnected']);
});
