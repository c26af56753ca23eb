// Publications for the tests of compressed streams: each is published when the one before has arrived.
// In: a server, a log of what a client received → out: an error if a client or a decoder holds something back.
// May use the server's API and its metrics; never a client.
// What is published is changed here; the clients are in js/streams_compressed.test.js and browser/streams.test.js.

import assert from 'node:assert/strict';

import { eventually } from './server.js';

/** Both transports, for clients that speak the protocol by hand. */
export const SETTINGS = {
  http_stream: { enabled: true },
  sse: { enabled: true },
  client: { insecure: true, allowed_origins: ['*'] },
  prometheus: { enabled: true },
};

/** Connects and subscribes. */
export const commands = (channel) => `{"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"${channel}"}}`;

/** The URL of an event stream with these commands. */
export const eventsUrl = (server, channel) =>
  `${server.http}/connection/sse?cf_connect=${encodeURIComponent(commands(channel))}`;

/** Publishes to the subscriber whose parsed messages are in `log`, then checks that frames in context were sent to it. */
export async function publishOneByOne(server, channel, log, count = 40) {
  await log.find(({ id }) => id === 2, 'reply to subscribe');
  const before = await inContext(server);
  for (let n = 0; n < count; n += 1) {
    const data = state(n);
    await server.api('publish', { channel, data });
    const arrived = await log.find(({ push }) => push?.pub?.data.n === n, `publication ${n}`);
    assert.deepEqual(arrived.push.pub.data, data);
  }
  const sent = async () => (await inContext(server)) - before;
  await eventually(async () => (await sent()) >= count - 2, 'all but the first two in context');
}

/** Deliveries that referred to earlier publications. */
async function inContext(server) {
  const page = await (await fetch(`${server.http}/metrics`)).text();
  const lines = page.split('\n').filter((line) => line.startsWith('fanwire_compression_deliveries_total{'));
  const kinds = lines.filter((line) => /kind="(newest|several|run)"/.test(line));
  return kinds.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

/** A state of which little changes; some are larger than a packet, some hold no ASCII. */
function state(n) {
  const players = Array.from({ length: 3 + (n % 5) * 20 }, (_, at) => ({
    player: at % 9 ? `player ${at}` : `Spieler ☺ ${at}`,
    score: at === n % 7 ? n : at,
  }));
  return { n, players };
}
