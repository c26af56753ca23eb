// Many clients of npm centrifuge that follow channels while nodes come and go, and a publisher for them.
// In: where to connect, how many clients → out: what each received; a check that each got everything once, in order.
// May use the SDK; never starts a server.
// What such clients note is changed here; the nodes and what happens to them stand in redis_rollout and redis_rebalance.

import assert from 'node:assert/strict';

import { eventually, token } from '../server.js';
import { ENCODINGS } from './clients.js';

/** Each publication wakes one client in this many: 5,000 at once stop their process for a third of a second, and then connect at once. */
const CHANNELS = 20;

/** Connects clients, a hundred at a time. Each is subscribed to one of the channels `news:0` and so on. */
export async function followAll(t, count, url, options) {
  const [{ Centrifuge }] = ENCODINGS;
  const clients = [];
  for (let number = 0; number < count; number += 1) {
    const client = new Centrifuge(url, { ...options, token: token({ sub: `user${number}` }) });
    t.after(() => client.disconnect());
    const subscription = client.newSubscription(`news:${number % CHANNELS}`);
    const [offsets, wrong] = [[], []];
    subscription.on('publication', ({ data }) => offsets.push(data.number));
    subscription.on('subscribed', ({ wasRecovering, recovered }) => {
      if (wasRecovering && !recovered) wrong.push('not recovered');
    });
    const subscribed = new Promise((resolve) => subscription.once('subscribed', resolve));
    subscription.subscribe();
    client.connect();
    clients.push({ client, offsets, wrong, subscribed });
    if (number % 100 === 99) await Promise.all(clients.slice(-100).map((one) => one.subscribed));
  }
  await Promise.all(clients.map((one) => one.subscribed));
  return clients;
}

/** Publishes one message after the other, some a second, in one channel after the other, through the node that `server` returns. */
export function publishInTurn(t, server) {
  const counts = Array.from({ length: CHANNELS }, () => 0);
  let channel = 0;
  let last = Promise.resolve();
  const timer = setInterval(() => {
    const [name, data] = [`news:${channel}`, { number: (counts[channel] += 1) }];
    channel = (channel + 1) % CHANNELS;
    last = last.then(() => server().api('publish', { channel: name, data }));
  }, 50);
  t.after(() => clearInterval(timer));
  return {
    /** How many messages each channel got. */
    async end() {
      clearInterval(timer);
      await last;
      return counts;
    },
  };
}

/** Waits until each client has all that was published, and disconnects it. */
export async function checkAll(clients, counts) {
  for (const [number, { client, offsets, wrong }] of clients.entries()) {
    const published = counts[number % CHANNELS];
    await eventually(() => offsets.at(-1) === published, `publication ${published}; the last is ${offsets.at(-1)}`, 30_000);
    assert.deepEqual(offsets, Array.from({ length: published }, (_, i) => i + 1), 'each publication once, in order');
    assert.deepEqual(wrong, []);
    client.disconnect();
  }
}
