// npm fossil-delta, as published, and our own deltas on the same random pairs: the same bytes, the same targets.
// In: pairs of payloads -> out: deltas of both, each applied by the other.
// May use the npm package and the example `deltas` of the crate protocol; starts no server.
// Which pairs there are stands in ../pairs.js; npm centrifuge's own decoder is used in delta.test.js.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';

import { applyDelta, createDelta } from 'fossil-delta';

import { deltas, pairs } from '../pairs.js';

const SEED = Number(process.env.FANWIRE_SEED ?? 1);
const PAIRS = 2500;

describe(`npm fossil-delta on ${PAIRS} pairs of the seed ${SEED}`, () => {
  let all;
  let theirs;
  let ours;
  const both = ({ source, target }) => [source, target];
  const inNpm = (source, delta) => Buffer.from(applyDelta(source, delta, { verifyChecksum: true }));

  before(() => {
    all = pairs(SEED, PAIRS);
    theirs = all.map(({ source, target }) => Buffer.from(createDelta(source, target)));
    ours = deltas('create', all.map(both));
  });

  test('both make the same delta, byte for byte', () => {
    assert.equal(ours.length, PAIRS);
    ours.forEach((delta, n) => assert.ok(delta.equals(theirs[n]), `pair ${n}`));
  });

  test('each applies what the other made', () => {
    const made = deltas('apply', all.map(({ source }, n) => [source, theirs[n]]));
    all.forEach(({ source, target }, n) => {
      assert.ok(made[n].equals(target), `theirs, pair ${n}`);
      assert.ok(inNpm(source, ours[n]).equals(target), `ours, pair ${n}`);
    });
  });

  test('deltas for JSON are text, and hardly longer', () => {
    const chosen = all.map((pair, n) => ({ ...pair, n })).filter(({ isText }) => isText);
    const made = deltas('create-text', chosen.map(both));
    const decoder = new TextDecoder('utf-8', { fatal: true });
    chosen.forEach(({ source, target, n }, at) => {
      decoder.decode(made[at]);
      assert.ok(inNpm(source, made[at]).equals(target), `pair ${n}`);
    });
    const bytes = (list) => list.reduce((sum, delta) => sum + delta.length, 0);
    const ratio = bytes(made) / bytes(chosen.map(({ n }) => theirs[n]));
    assert.ok(ratio < 1.02, `${ratio} of their bytes`);
  });
});
