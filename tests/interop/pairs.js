// Pairs of payloads for deltas, a function of a seed, and our own encoder and decoder on a pipe.
// In: a seed and a number -> out: sources with targets as bytes; of records on a pipe the records that come back.
// May use Node's own modules and the example `deltas` of the crate protocol; knows nothing of the format.
// Which pairs are tried is changed here; what is expected of them stands in js/fossil.test.js.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const PROGRAM = process.env.FANWIRE_DELTAS
  ?? fileURLToPath(new URL('../../target/debug/examples/deltas', import.meta.url));

/** `count` pairs: texts that were edited, moved about, cut and joined, in several alphabets; bytes; none and many. */
export function pairs(seed, count) {
  const random = mulberry(seed);
  return Array.from({ length: count }, (_, n) => pair(random, n));
}

/** What the example makes of pairs of records; `work` is `create`, `create-text` or `apply`. */
export function deltas(work, records) {
  const input = Buffer.concat(records.flat().flatMap((bytes) => [length(bytes), bytes]));
  const { status, stdout, stderr, error } = spawnSync(PROGRAM, [work], { input, maxBuffer: 1 << 30, timeout: 60_000 });
  if (error || status !== 0) throw new Error(`${PROGRAM} ${work}: ${error ?? stderr}`);
  const made = [];
  for (let at = 0; at < stdout.length;) {
    const end = at + 4 + stdout.readUInt32LE(at);
    made.push(stdout.subarray(at + 4, end));
    at = end;
  }
  return made;
}

function length(bytes) {
  const prefix = Buffer.alloc(4);
  prefix.writeUInt32LE(bytes.length);
  return prefix;
}

/** Mostly of a few hundred units; now and then none, some about the size of a block of 16 bytes, or 50,000. */
function size(random) {
  const choice = random(20);
  if (choice === 0) return random(3);
  if (choice < 4) return 10 + random(14);
  return choice === 4 && random(12) === 0 ? 20_000 + random(30_000) : 20 + random(1_200);
}

function pair(random, n) {
  const isText = n % 4 !== 3;
  const unit = isText ? ALPHABETS[random(ALPHABETS.length)] : BYTES;
  const source = Array.from({ length: size(random) }, () => unit[random(unit.length)]);
  const target = random(15) === 0
    ? Array.from({ length: size(random) }, () => unit[random(unit.length)])
    : changed(random, source, unit);
  const bytes = (units) => (isText ? Buffer.from(units.join('')) : Buffer.from(units));
  return { source: bytes(source), target: bytes(target), isText };
}

/** Some edits of `units`: replaced, inserted, removed, repeated and swapped parts; none at all as well. */
function changed(random, units, unit) {
  let made = units.slice();
  for (let edits = random(7); edits > 0; edits -= 1) {
    const from = random(made.length + 1);
    const to = Math.min(made.length, from + random(random(4) === 0 ? 400 : 12));
    const fresh = Array.from({ length: random(12) }, () => unit[random(unit.length)]);
    const [head, part, tail] = [made.slice(0, from), made.slice(from, to), made.slice(to)];
    const cut = random(tail.length + 1);
    made = [
      () => [head, fresh, tail],
      () => [head, fresh, part, tail],
      () => [head, tail],
      () => [head, part, part, tail],
      () => [head, tail.slice(0, cut), part, tail.slice(cut)],
    ][random(5)]().flat();
  }
  return made;
}

/** Whole numbers below a limit, in an order that the seed decides. */
function mulberry(seed) {
  let state = seed >>> 0;
  return (limit) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  };
}

const BYTES = Array.from({ length: 256 }, (_, byte) => byte);
const ALPHABETS = [
  ['{"match":', '"score":', '"minute":', '"name":"Harbour Town",', '0', '1', '2', '},', ','],
  [...'abcdefghijklmnopqrstuvwxyz ,.'],
  [...'ab'],
  [...'äöüßéèñ aeiou'],
  [...'日本語中文한국어 '],
  [...'🚀🎉👍🏽x'],
];
