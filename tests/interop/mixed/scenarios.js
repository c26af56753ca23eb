// What is played to every stack: traffic that makes a server use all its kinds of frames.
// In: a `Stage` → out: nothing; what went wrong is an error.
// May use the stage and the corpus; never frames: of those only what RFC 7692 says may be asked.
// A scenario is a row of SCENARIOS; `isFor` says which stacks can play it.

import * as corpus from './corpus.js';
import { TAKEOVER_WINDOW_BITS } from './settings.js';
import { PROTOBUF_WIRE } from './wire.js';

export const SCENARIOS = [
  { name: 'ctx', play: ctx, isFor: () => true },
  { name: 'mixed', play: mixed, isFor: () => true },
  { name: 'bin', play: bin, isFor: () => true },
  { name: 'ctl', play: ctl, isFor: () => true },
  { name: 'slow', play: slow, isFor: () => true },
  { name: 'w12', play: (stage) => window(stage, 12), isFor: (row) => row.canAskForWindow },
  { name: 'w9', play: (stage) => window(stage, 9), isFor: (row) => row.canAskForWindow },
  { name: 'plain', play: plain, isFor: () => true },
  { name: 'up', play: up, isFor: () => true },
];

/** One channel, 300 slowly changing states: the first hundred one by one, the others in bursts. */
async function ctx(stage) {
  const channel = stage.channel('match');
  const next = corpus.match(stage.random);
  const listener = await stage.open([channel]);
  for (let n = 0; n < 100; n += 1) await stage.publish([[channel], next()]);
  for (let n = 0; n < 10; n += 1) await stage.publish(...times(20, () => [[channel], next()]));
  await stage.finish();
  stage.require(listener.tap.compressed >= 300, `only ${listener.tap.compressed} messages were compressed`);
}

/**
 * Five channels and private replies at random, with everything that breaks a run of compressed messages. The same
 * publications go to connections with context, with standalone frames, without compression, and in Protobuf.
 */
async function mixed(stage) {
  const { random } = stage;
  const streams = ['match', 'tick', 'chat', 'event', 'tick'].map((kind, n) => ({
    channel: stage.channel(`${kind}-${n}`),
    next: corpus[kind](random),
  }));
  const channels = streams.map(({ channel }) => channel);
  const first = await stage.open(channels);
  for (let step = 0; step < 240; step += 1) {
    await MIXED_MOMENTS[step]?.(stage, channels);
    await weighted(random, MIXED_STEPS)(stage, streams, first);
  }
  await stage.finish();
  for (const { tap } of stage.listeners.filter(({ agreement }) => agreement !== 'none')) {
    const { compressed, messages } = tap;
    stage.require(compressed > 0 && compressed < messages, `${compressed} of ${messages} messages were compressed`);
  }
}

/** Who comes and goes in `mixed`, by step. New connections take the places of those that left. */
const MIXED_MOMENTS = {
  20: (stage, channels) => stage.witness('standalone', channels),
  40: (stage, channels) => stage.open(channels, { wire: PROTOBUF_WIRE }),
  60: (stage, channels) => stage.witness('none', channels),
  80: (stage, channels) => stage.open(channels.slice(1, 4)),
  120: publishHuge,
  140: (stage) => stage.leave(stage.listeners[4]),
  160: (stage, channels) => stage.open(channels),
  180: (stage) => stage.listeners[2].cut(),
  200: (stage, channels) => stage.open(channels, { wire: PROTOBUF_WIRE }),
};

/** What may come next in `mixed`, with how often it does. */
const MIXED_STEPS = [
  { weight: 50, step: burst },
  { weight: 8, step: broadcast },
  { weight: 8, step: (stage, streams) => one(stage, streams, corpus.small(stage.random)()) },
  { weight: 6, step: (stage, streams) => one(stage, streams, corpus.noise(stage.random, 1000 + stage.random.below(3000))) },
  { weight: 5, step: (stage, streams) => one(stage, streams, corpus.prose(stage.random, 16_000 + stage.random.below(30_000))) },
  { weight: 7, step: (_stage, _streams, first) => first.ask({ rpc: { method: 'ping', data: Buffer.from('{}') } }) },
  { weight: 5, step: manyErrors },
  { weight: 4, step: publishByClient },
  { weight: 4, step: resubscribe },
  { weight: 3, step: (_stage, _streams, first) => first.caughtUp() },
];

/** Up to six publications of several channels in one request. */
function burst(stage, streams) {
  return stage.publish(...times(1 + stage.random.below(6), () => {
    const { channel, next } = stage.random.pick(streams);
    return [[channel], next()];
  }));
}

/** The same publication in up to three channels. */
function broadcast(stage, streams) {
  const channels = new Set(times(3, () => stage.random.pick(streams).channel));
  return stage.publish([[...channels], stage.random.pick(streams).next()]);
}

function one(stage, streams, data) {
  return stage.publish([[stage.random.pick(streams).channel], data]);
}

/** Sixteen commands at once, whose error replies leave in one message. */
function manyErrors(stage, streams, first) {
  first.ask(...times(16, () => ({ presence: { channel: stage.random.pick(streams).channel } })));
}

/** The client publishes itself: its reply and the publication come close together. */
async function publishByClient(stage, streams, first) {
  const { channel, next } = stage.random.pick(streams);
  const data = next();
  stage.expect([channel], data);
  const reply = await first.answered(first.ask({ publish: { channel, data } }));
  stage.require(!reply.error, `publish by the client: ${JSON.stringify(reply.error)}`);
}

/**
 * Leaves a channel, misses something there while others go on, and comes back. It comes back when a later publication
 * of another channel has come: before that the server may still hold the missed one and deliver it.
 */
async function resubscribe(stage, streams, first) {
  const { channel, next } = stage.random.pick(streams);
  const other = stage.random.pick(streams.filter((stream) => stream.channel !== channel));
  await first.caughtUp(channel);
  await first.unsubscribe(channel);
  await stage.publish([[channel], next()]);
  await stage.publish([[other.channel], other.next()], [[other.channel], other.next()]);
  await first.caughtUp(other.channel);
  await first.subscribe(channel);
  await stage.publish([[channel], next()]);
}

/** Sizes around and above the largest window, compressible and not. */
async function publishHuge(stage, channels) {
  const { random } = stage;
  for (const length of [16_384, 32_700, 32_768, 33_000, 70_000]) {
    await stage.publish([[random.pick(channels)], corpus.prose(random, length)]);
    await stage.publish([[random.pick(channels)], corpus.noise(random, length)]);
  }
}

/** Binary payloads of every size from none, interleaved with replies, over Protobuf. */
async function bin(stage) {
  const { random } = stage;
  const streams = times(3, (n) => ({ channel: stage.channel(n, 'binary'), next: corpus.snapshot(random) }));
  const channels = streams.map(({ channel }) => channel);
  const first = await stage.open(channels, { wire: PROTOBUF_WIRE });
  for (let step = 0; step < 150; step += 1) {
    if (step === 50) await stage.open(channels, { wire: PROTOBUF_WIRE });
    await weighted(random, BINARY_STEPS)(stage, streams, first);
  }
  for (const length of [16_384, 32_768, 70_000]) {
    await one(stage, streams, random.bytes(length));
    await one(stage, streams, Buffer.alloc(length, 'abcdefgh'));
  }
  await stage.finish();
}

const BINARY_STEPS = [
  { weight: 60, step: burst },
  { weight: 8, step: broadcast },
  { weight: 8, step: (stage, streams) => one(stage, streams, stage.random.bytes(stage.random.below(4))) },
  { weight: 6, step: (stage, streams) => one(stage, streams, stage.random.bytes(200 + stage.random.below(2000))) },
  { weight: 4, step: (stage, streams) => one(stage, streams, Buffer.alloc(1 + stage.random.below(9000))) },
  { weight: 6, step: (_stage, _streams, first) => first.ask({ rpc: { method: 'ping', data: Buffer.alloc(0) } }) },
  { weight: 4, step: manyErrors },
  { weight: 2, step: publishByClient },
  { weight: 2, step: resubscribe },
];

/** Pings of the protocol and native ping frames between compressed messages; both kinds must be answered to stay. */
async function ctl(stage) {
  stage.server = stage.servers.hasty;
  const channel = stage.channel('match');
  const next = corpus.match(stage.random);
  const native = await stage.open([channel], { query: '?cf_ws_frame_ping_pong=true' });
  const first = await stage.open([channel]);
  for (let round = 1; round <= 3; round += 1) {
    await stage.publish(...times(20, () => [[channel], next()]));
    await first.until(() => first.pings >= round, `ping ${round}`);
    await native.until(() => native.tap.pings >= round, `ping frame ${round}`);
  }
  await stage.publish([[channel], next()]);
  await stage.finish();
}

/** A client that stops reading while several megabytes are published, beside one that does not. */
async function slow(stage) {
  const { random } = stage;
  const [state, bulk] = [stage.channel('match'), stage.channel('bulk')];
  const next = corpus.match(random);
  const slowOne = await stage.open([state, bulk]);
  const other = await stage.open([state, bulk]);
  await stage.publish([[state], next()]);
  await slowOne.caughtUp();
  slowOne.tap.pause();
  for (let n = 0; n < 150; n += 1) {
    const states = times(3, () => [[state], next()]);
    await stage.publish(...states, [[bulk], corpus.noise(random, 60_000)]);
  }
  await other.caughtUp();
  stage.require(slowOne.progress.seen === 1, 'the paused client went on receiving');
  slowOne.tap.resume();
  await stage.publish(...times(20, () => [[state], next()]));
  await stage.finish();
}

/**
 * The client asks for a small window of the server: states larger than it, ticks and long texts interleaved. Another
 * connection to the same channels leaves the server its whole window.
 */
async function window(stage, windowBits) {
  const { random } = stage;
  const streams = ['match', 'tick', 'chat'].map((kind) => ({ channel: stage.channel(kind), next: corpus[kind](random) }));
  const channels = streams.map(({ channel }) => channel);
  const first = await stage.open(channels, { windowBits });
  await stage.open(channels);
  for (let step = 0; step < 100; step += 1) {
    if (step % 20 === 19) await one(stage, streams, corpus.prose(random, 20_000));
    if (step % 10 === 9) await manyErrors(stage, streams, first);
    await burst(stage, streams);
  }
  await stage.finish();
  const { answer } = first.tap;
  const granted = Number(/server_max_window_bits=(\d+)/.exec(answer)?.[1]);
  stage.require(granted >= 8 && granted <= windowBits, `asked for ${windowBits} window bits, the answer was "${answer}"`);
}

/** The same kinds of messages from a server that does not compress. */
async function plain(stage) {
  stage.server = stage.servers.plain;
  const { random } = stage;
  const streams = ['match', 'tick', 'chat'].map((kind) => ({ channel: stage.channel(kind), next: corpus[kind](random) }));
  await stage.open(streams.map(({ channel }) => channel));
  for (let step = 0; step < 40; step += 1) await burst(stage, streams);
  await one(stage, streams, corpus.prose(random, 70_000));
  await stage.finish();
}

/**
 * The client publishes to a server that lets it refer to its earlier messages: readings that change little, then sizes
 * around and above its window, what does not compress, and many commands at once.
 */
async function up(stage) {
  stage.server = stage.servers.takeover;
  const { random } = stage;
  const channel = stage.channel('readings');
  const first = await stage.open([channel]);
  await stage.open([channel]);
  const publish = (data) => {
    stage.expect([channel], data);
    return first.ask({ publish: { channel, data } });
  };
  const next = corpus.tick(random);
  for (let n = 0; n < 200; n += 1) await first.answered(publish(next()));
  const { compressed, wireBytes } = first.tap.client;
  const counts = `${compressed} messages compressed, ${wireBytes} bytes for ${first.sentBytes}`;
  stage.require(!stage.row.refersBack || (compressed >= 200 && wireBytes * 2 < first.sentBytes), counts);
  for (const length of [1000, 1023, 1024, 1025, 5000, 33_000, 10]) {
    publish(corpus.prose(random, length));
    publish(corpus.noise(random, length));
    manyErrors(stage, [{ channel }], first);
    await first.answered(publish(next()));
  }
  await stage.finish();
  checkTakeover(stage, first.tap);
}

/** The window of the client is named where it was offered, and only a client that wishes it refers to nothing. */
function checkTakeover(stage, { offer, answer }) {
  const isAlone = answer.includes('client_no_context_takeover');
  stage.require(isAlone === offer.includes('client_no_context_takeover'), `the answer to "${offer}" was "${answer}"`);
  const named = Number(/client_max_window_bits=(\d+)/.exec(answer)?.[1] ?? 0);
  const mayName = offer.includes('client_max_window_bits') && !isAlone;
  stage.require(mayName ? named >= 8 && named <= TAKEOVER_WINDOW_BITS : named === 0, `the answer to "${offer}" was "${answer}"`);
}

function weighted(random, rows) {
  let left = random.below(rows.reduce((sum, { weight }) => sum + weight, 0));
  return rows.find(({ weight }) => (left -= weight) < 0).step;
}

function times(count, make) {
  return Array.from({ length: count }, (_, n) => make(n));
}
