// Messages that make a server use every kind of frame it has, the same ones for the same seed.
// In: a seed as text → out: a `Random`, and functions that give the next payload of one kind as a Buffer.
// May use Node's own modules only; never knows how or to whom a payload is sent.
// What is published is changed here; in which order stands in scenarios.js.

import { createHash } from 'node:crypto';

/** Numbers that look random (xorshift32) and repeat for the same seed. */
export class Random {
  constructor(seed) {
    this.state = createHash('sha256').update(seed).digest().readUInt32LE() || 1;
  }

  /** A whole number from 0 to below `limit`. */
  below(limit) {
    this.state ^= this.state << 13;
    this.state ^= this.state >>> 17;
    this.state ^= this.state << 5;
    return (this.state >>> 0) % limit;
  }

  pick(list) {
    return list[this.below(list.length)];
  }

  bytes(length) {
    return Buffer.from(Array.from({ length }, () => this.below(256)));
  }
}

/** The state of a match, about 2.2 KB, of which every message changes a few numbers. */
export function match(random) {
  const rows = Array.from({ length: 24 }, (_, n) => ({
    id: 7000 + n * 13,
    name: `${random.pick(WORDS)} ${random.pick(WORDS)}`,
    goals: 0,
    passes: random.below(400),
    position: [random.below(10_000) / 100, random.below(6_800) / 100],
  }));
  let clock = 0;
  return () => {
    for (let n = 0; n < 3; n += 1) {
      const row = random.pick(rows);
      row.passes += 1;
      row.position[random.below(2)] = random.below(6_800) / 100;
    }
    clock += 1;
    return json({ match: 'Ægir – Ülm ☀', clock, rows });
  };
}

/** A price, about 220 bytes. */
export function tick(random) {
  let price = 10_000 + random.below(5_000);
  let sequence = 500_000;
  return () => {
    price += random.below(21) - 10;
    sequence += 1;
    const [bid, ask] = [(price - 3) / 100, (price + 4) / 100];
    const book = { bids: [[bid, random.below(90)]], asks: [[ask, random.below(90)]] };
    return json({ symbol: 'FWX/EUR', venue: 'loopback', sequence, last: price / 100, bid, ask, book, status: 'open' });
  };
}

/** Somebody says something, about 400 bytes with characters of every length in UTF-8. */
export function chat(random) {
  return () => {
    const name = random.pick(WORDS);
    const user = { id: `u-${random.below(50)}`, name, avatar: `https://img.example/${name}/64.png`, roles: ['member'] };
    return json({ user, text: words(random, 20 + random.below(30)), emoji: random.pick(['☺', '🎉', 'é', 'ж', '\\"']) });
  };
}

/** An event with nested objects, about 1.2 KB. */
export function event(random) {
  return () => {
    const commits = Array.from({ length: 1 + random.below(5) }, () => ({
      sha: random.bytes(20).toString('hex'),
      author: { name: random.pick(WORDS), email: `${random.pick(WORDS)}@mail.example` },
      message: words(random, 12),
      url: `https://code.example/repos/${random.pick(WORDS)}/commits/${random.below(1e6)}`,
    }));
    return json({ type: 'PushEvent', public: true, repo: { id: random.below(1e6), name: random.pick(WORDS) }, commits });
  };
}

/** Shorter than any server compresses. */
export function small(random) {
  return () => json({ n: random.below(10) });
}

/** Text of about `length` bytes in which nothing repeats. */
export function noise(random, length) {
  const letters = Array.from({ length }, () => String.fromCharCode(35 + random.below(57)));
  return json(letters.join(''));
}

/** Text of about `length` bytes that compresses well. */
export function prose(random, length) {
  return json(words(random, length / 5).slice(0, length));
}

/** A snapshot of 240 positions in binary, 963 bytes, of which every message moves some. */
export function snapshot(random) {
  const bytes = Buffer.concat([Buffer.from([7, 0, 240]), random.bytes(960)]);
  return () => {
    for (let n = 0; n < 12; n += 1) bytes.writeFloatLE(random.below(100_000) / 7, 3 + 4 * random.below(240));
    return Buffer.from(bytes);
  };
}

function words(random, count) {
  return Array.from({ length: Math.ceil(count) }, () => random.pick(WORDS)).join(' ');
}

function json(value) {
  return Buffer.from(JSON.stringify(value));
}

const WORDS = (
  'wire fan out shard channel window match literal distance block token gap frame opcode mask close offer hub node ' +
  'session naïve größe дом 水 ☔ 🌊 broker outlet letter turn message fragment ping pong epoch offset history'
).split(' ');
