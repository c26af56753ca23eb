// Bytes and time of a page that is loaded again: one growing answer next to a replay of its pieces.
// In: the same text, appended in one channel and published piece by piece in another → out: what a reload of each reads.
// May use Node's own modules; readers use uni_sse with everything that is stored, and no SDK.
// The texts of readers at the end are tested in redis_growing.test.js; bytes of live deliveries by `fanwire-bench fanout --answers`.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get } from 'node:http';
import { test } from 'node:test';
import { createGunzip, gzipSync } from 'node:zlib';

import { eventually, start, within } from '../server.js';

const PIECES = 800;
const SETTINGS = {
  uni_sse: { enabled: true },
  client: { insecure: true, recovery_max_publication_limit: PIECES },
  channel: { without_namespace: { history_size: PIECES, history_ttl: '600s', force_recovery: true, append_interval: '1ms' } },
};

/** Reads a stream of events from the beginning until `isWhole` of its texts; bytes with their head as they came. */
async function load(server, channel, isWhole, isCompressed) {
  const started = performance.now();
  const query = new URLSearchParams({ cf_connect: JSON.stringify({ subs: { [channel]: { recover: true } } }) });
  const headers = isCompressed ? { 'Accept-Encoding': 'gzip' } : {};
  const request = get(`${server.http}/connection/uni_sse?${query}`, { headers, agent: false });
  const read = async () => {
    const [response] = await once(request, 'response');
    const body = isCompressed ? response.pipe(createGunzip()) : response;
    let text = '';
    for await (const piece of body.setEncoding('utf8')) {
      text += piece;
      if (isWhole(text)) return { bytes: response.socket.bytesRead, ms: performance.now() - started, text };
    }
    throw new Error(`the stream ended: ${text}`);
  };
  try {
    return await within(read(), `a reload of ${channel}`);
  } finally {
    request.destroy();
  }
}

/** The quickest of some loads, which other programs disturbed least. */
async function quickest(...question) {
  const loads = [];
  for (let n = 0; n < 20; n += 1) loads.push(await load(...question));
  return loads.sort((one, other) => one.ms - other.ms)[0];
}

test('a reload costs one message, however many pieces it had', async (t) => {
  const server = await start(SETTINGS);
  t.after(() => server.stop());
  const texts = Array.from({ length: PIECES }, (_, n) => `w${(n * 7919) % 997}xyz`.slice(0, 4) + ' ');
  const whole = texts.join('');
  for (const [n, data] of texts.entries()) {
    await server.api('publish', { channel: 'pieces', data });
    await server.api('append', { channel: 'answer', key: 'k', data, at: 5 * n });
  }
  const live = load(server, 'answer', (text) => text.includes('"final"'));
  await eventually(async () => (await server.connections()) === 1, 'a reader');
  await server.api('append', { channel: 'answer', key: 'k', data: '', final: true });
  const message = (await live).text.trimEnd().split('\n\n').at(-1);
  assert.ok(message.includes(whole));
  const isLast = (text) => text.includes(`"offset":${PIECES}`) && text.endsWith('\n\n');
  for (const isCompressed of [false, true]) {
    const answer = await quickest(server, 'answer', (text) => text.includes(whole) && text.endsWith('\n\n'), isCompressed);
    const pieces = await quickest(server, 'pieces', isLast, isCompressed);
    const bytes = Buffer.byteLength(isCompressed ? gzipSync(message) : message);
    const figures = [answer, pieces].map((one) => `${one.bytes} B in ${one.ms.toFixed(1)} ms`);
    t.diagnostic(`${isCompressed ? 'gzip' : 'plain'}: one message ${bytes} B, a reload ${figures[0]}, a replay of ${PIECES} pieces ${figures[1]}`);
    assert.ok(answer.bytes <= 1.5 * bytes, `${answer.bytes} B for a message of ${bytes} B`);
    assert.ok(answer.bytes < pieces.bytes);
  }
});
