// Publications for the tests of compressed streams: each is published when the one before has arrived.
// In: a server, a log of what a client received → out: an error if a client or a decoder holds something back.
// May use the server's API and its metrics; never a client.
// What is published is changed here; the clients are in js/streams_compressed.test.js and browser/streams.test.js.

import assert from 'node:assert/strict';

import { eventually } from './server.js';

/** All four transports, for clients that speak the protocol by hand. Events of clients without commands have ids. */
export const SETTINGS = {
  http_stream: { enabled: true },
  sse: { enabled: true },
  uni_http_stream: { enabled: true },
  uni_sse: { enabled: true },
  client: { insecure: true, allowed_origins: ['*'] },
  channel: { without_namespace: { history_size: 50, history_ttl: '60s', force_recovery: true } },
  prometheus: { enabled: true },
};

/** Connects and subscribes: commands, or for transports without them a connect request. */
export const commands = (channel, path = 'sse') =>
  path.startsWith('uni_')
    ? JSON.stringify({ subs: { [channel]: {} } })
    : `{"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"${channel}"}}`;

/** The URL of an event stream with these commands. */
export const eventsUrl = (server, channel, path = 'sse') =>
  `${server.http}/connection/${path}?cf_connect=${encodeURIComponent(commands(channel, path))}`;

/** The reply to subscribe, or the first push of a client without commands. */
export const isSubscribed = ({ id, connect }) => id === 2 || (id === undefined && connect !== undefined);

/** The publication in a message, or in the push of a client without commands. */
export const publicationOf = (message) => (message.push ?? message).pub;

/** Publishes to the subscriber whose parsed messages are in `log`, then checks that frames in context were sent to it, or none. */
export async function publishOneByOne(server, channel, log, isCompressed = true) {
  const count = 40;
  await log.find(isSubscribed, 'answer to subscribe');
  const before = await inContext(server);
  for (let n = 0; n < count; n += 1) {
    const data = state(n);
    await server.api('publish', { channel, data });
    const arrived = await log.find((message) => publicationOf(message)?.data.n === n, `publication ${n}`);
    assert.deepEqual(publicationOf(arrived).data, data);
  }
  const sent = async () => (await inContext(server)) - before;
  if (!isCompressed) return assert.equal(await sent(), 0);
  return eventually(async () => (await sent()) >= count - 2, 'all but the first two in context');
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
