// Compressed HTTP streams and event streams, as programs decode them by themselves: fetch, npm eventsource, node:zlib, curl.
// In: a server with HTTP streams and event streams → out: each message when it was published; the end of a whole stream.
// May use Node's own modules, npm eventsource and the program curl; never an SDK, which streams.test.js plays to the same server.
// Bytes are tested in crates/deflate, crates/shard and crates/fanwire; browsers in ../browser/streams.test.js.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import http from 'node:http';
import { after, before, describe, test } from 'node:test';
import { createInflate, createGunzip } from 'node:zlib';

import { EventSource } from 'eventsource';
import EventSource1 from 'eventsource-1';
import EventSource2 from 'eventsource-2';
import { EventSource as EventSource3 } from 'eventsource-3';

import { inCharge } from '../children.js';
import { SETTINGS, commands, eventsUrl, publishOneByOne } from '../events.js';
import { Log, start, within } from '../server.js';

/** A log of messages, and the function that takes pieces of a body: lines, or events. */
function messages() {
  const emitter = new EventEmitter();
  let rest = '';
  const take = (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    const texts = lines.map((one) => one.trim().replace(/^data: /, ''));
    for (const line of texts.filter((one) => one && !one.startsWith('id: '))) {
      emitter.emit('message', JSON.parse(line));
    }
  };
  return { log: new Log(emitter, 'message'), take };
}

async function readAll(body, take) {
  const decoder = new TextDecoder();
  for await (const bytes of body) take(decoder.decode(bytes, { stream: true }));
}

/** A request with node:http, which decodes nothing; its response. */
async function request(url, coding, body) {
  const headers = { 'Accept-Encoding': coding };
  const asked = http.request(url, { method: body ? 'POST' : 'GET', headers, agent: false });
  asked.end(body);
  const [response] = await within(once(asked, 'response'), 'head of the response');
  return { asked, response };
}

describe('one server', () => {
  let server;
  before(async () => (server = await start(SETTINGS)));
  after(() => server?.stop());

  for (const [name, path, method] of [
    ['an event stream', 'sse', 'GET'],
    ['an HTTP stream', 'http_stream', 'POST'],
    ['events of a client without commands', 'uni_sse', 'GET'],
    ['lines of a client without commands', 'uni_http_stream', 'POST'],
  ]) {
    test(`fetch: ${name}`, async (t) => {
      const channel = `fetch_${path}`;
      const abort = new AbortController();
      t.after(() => abort.abort());
      const url = method === 'GET' ? eventsUrl(server, channel, path) : `${server.http}/connection/${path}`;
      const body = method === 'GET' ? undefined : commands(channel, path);
      const response = await fetch(url, { method, body, signal: abort.signal });
      assert.equal(response.headers.get('content-encoding'), 'gzip');
      const { log, take } = messages();
      readAll(response.body, take).catch(() => {}); // aborted at the end
      await publishOneByOne(server, channel, log);
    });
  }

  for (const [version, Source] of Object.entries({ 1: EventSource1, 2: EventSource2, 3: EventSource3, 4: EventSource })) {
    for (const path of ['sse', 'uni_sse']) {
      test(`npm eventsource ${version}: ${path}`, async (t) => {
        const channel = `eventsource_${version}_${path}`;
        const source = new Source(eventsUrl(server, channel, path));
        t.after(() => source.close());
        const { log, take } = messages();
        const ids = [];
        source.onmessage = ({ data, lastEventId }) => {
          ids.push(lastEventId);
          take(`${data}\n`);
        };
        // The first two versions ask for no coding.
        await publishOneByOne(server, channel, log, version >= 3);
        const offsets = ids.map((id) => id.split('.')[0]);
        const expected = path === 'sse' ? ids.map(() => '') : ids.map((_, offset) => String(offset));
        assert.deepEqual(offsets, expected);
      });
    }
  }

  for (const [coding, decoder] of [
    ['gzip', createGunzip],
    ['deflate', createInflate],
  ]) {
    for (const path of ['sse', 'uni_sse']) {
      test(`node:zlib: ${coding}, ${path}`, async (t) => {
        const channel = `${coding}_${path}`;
        const { asked, response } = await request(eventsUrl(server, channel, path), coding);
        t.after(() => asked.destroy());
        assert.equal(response.headers['content-encoding'], coding);
        const { log, take } = messages();
        readAll(response.pipe(decoder()), take).catch(() => {});
        await publishOneByOne(server, channel, log);
      });
    }
  }

  for (const path of ['sse', 'uni_sse']) {
    test(`curl --compressed: ${path}`, async (t) => {
      if (spawnSync('curl', ['--version']).error) return t.skip('no curl on the PATH');
      const flags = ['--compressed', '--no-buffer', '--silent', '--noproxy', '*'];
      const url = eventsUrl(server, `curl_${path}`, path);
      const curl = inCharge(spawn('curl', [...flags, url], { stdio: ['ignore', 'pipe', 'inherit'] }));
      t.after(() => curl.kill());
      const { log, take } = messages();
      readAll(curl.stdout, take);
      await publishOneByOne(server, `curl_${path}`, log);
    });
  }

  test('clients that accept no coding get plain text', async (t) => {
    const { asked, response } = await request(`${server.http}/connection/http_stream`, 'br', commands('plain'));
    t.after(() => asked.destroy());
    assert.equal(response.headers['content-encoding'], undefined);
    assert.equal(response.headers.vary, 'Accept-Encoding');
    const { log, take } = messages();
    readAll(response, take).catch(() => {});
    await log.find(({ id }) => id === 2, 'reply to subscribe');
    await server.api('publish', { channel: 'plain', data: 1 });
    await log.find(({ push }) => push?.pub.data === 1, 'publication');
  });
});

test('a stream that ends with the server is whole: its checksum is right', async (t) => {
  const server = await start(SETTINGS);
  t.after(() => server.stop());
  const { response } = await request(eventsUrl(server, 'end'), 'gzip');
  const { log, take } = messages();
  // Without its trailer, or with a wrong one, a gunzip ends with an error.
  const ended = readAll(response.pipe(createGunzip()), take);
  await publishOneByOne(server, 'end', log);
  await server.stop();
  await within(ended, 'end of the stream');
  await log.find(({ push }) => push?.disconnect?.code === 3001, 'last message');
});
