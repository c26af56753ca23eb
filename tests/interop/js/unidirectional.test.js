// Unidirectional transports as pages use them: an EventSource, fetch and a WebSocket, without an SDK.
// In: servers with `uni_sse`, `uni_http_stream` and `uni_websocket` → out: pushes, pings, and what a stop does to each.
// May use npm eventsource, npm ws and Node's own fetch; never npm centrifuge, which none of these transports needs.
// Statuses, heads and frames are tested in crates/fanwire/tests/it/uni.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { EventSource } from 'eventsource';
import WebSocket from 'ws';

import { eventually, start, token } from '../server.js';

const SETTINGS = {
  uni_sse: { enabled: true },
  uni_http_stream: { enabled: true },
  uni_websocket: { enabled: true, compression: true },
  client: { ping_interval: '2s', pong_timeout: '1s' },
  channel: { without_namespace: { allow_subscribe_for_client: true } },
};

const request = (channel) => JSON.stringify({ token: token({ sub: '42' }), subs: { [channel]: {} } });

/** Opens a transport; every push goes to `pushes`. Returns what ends it. */
const OPEN = {
  uni_sse(server, channel, pushes) {
    const query = new URLSearchParams({ cf_connect: request(channel) });
    const source = new EventSource(`${server.http}/connection/uni_sse?${query}`);
    source.onmessage = ({ data }) => pushes.push(JSON.parse(data));
    return () => source.close();
  },
  uni_http_stream(server, channel, pushes) {
    const controller = new AbortController();
    const options = { method: 'POST', body: request(channel), signal: controller.signal };
    const read = async () => {
      const { body } = await fetch(`${server.http}/connection/uni_http_stream`, options);
      let rest = '';
      for await (const piece of body.pipeThrough(new TextDecoderStream())) {
        const lines = (rest + piece).split('\n');
        rest = lines.pop();
        pushes.push(...lines.map((line) => JSON.parse(line)));
      }
    };
    read().catch((error) => assert.equal(error.name, 'AbortError'));
    return () => controller.abort();
  },
  uni_websocket(server, channel, pushes) {
    const socket = new WebSocket(`${server.http.replace('http', 'ws')}/connection/uni_websocket`);
    socket.on('open', () => socket.send(request(channel)));
    socket.on('message', (text) => pushes.push(JSON.parse(text)));
    return () => socket.close();
  },
};

describe('one server', () => {
  let server;
  before(async () => (server = await start(SETTINGS)));
  after(() => server?.stop());

  for (const [transport, open] of Object.entries(OPEN)) {
    test(`${transport}: a connect push, publications, pings, and the end by the client`, async (t) => {
      const pushes = [];
      const close = open(server, transport, pushes);
      t.after(close);
      await eventually(() => pushes.length > 0, 'the connect push');
      assert.deepEqual(pushes[0].connect.subs, { [transport]: {} });
      assert.equal(pushes[0].connect.ping, 2);
      const data = { text: 'ü'.repeat(500) };
      for (let n = 1; n <= 20; n += 1) await server.api('publish', { channel: transport, data: { n, ...data } });
      const publications = () => pushes.filter(({ pub }) => pub);
      await eventually(() => publications().length === 20, 'the publications');
      const expected = Array.from({ length: 20 }, (_, n) => ({ channel: transport, pub: { data: { n: n + 1, ...data } } }));
      assert.deepEqual(publications(), expected);
      const pings = () => pushes.filter((push) => Object.keys(push).length === 0);
      await eventually(() => pings().length >= 2, 'two pings');
      close();
      await eventually(async () => (await server.connections()) === 0, 'the end of the connection');
    });
  }
});

test('an EventSource comes back by itself after a restart, with the same connect request', async (t) => {
  let server = await start(SETTINGS);
  t.after(() => server.stop());
  const pushes = [];
  t.after(OPEN.uni_sse(server, 'again', pushes));
  await eventually(() => pushes.length > 0, 'the connect push');
  const { host } = server;
  assert.equal(await server.stop(), 0);
  await eventually(() => pushes.some(({ disconnect }) => disconnect?.code === 3001), 'the disconnect push');
  server = await start({ ...SETTINGS, http_server: { port: Number(host.split(':')[1]) } });
  await eventually(() => pushes.filter(({ connect }) => connect).length === 2, 'the second connect push');
  await server.api('publish', { channel: 'again', data: 1 });
  await eventually(() => pushes.some(({ pub }) => pub?.data === 1), 'a publication');
});
