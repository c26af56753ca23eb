// HTTP streaming and Server-Sent Events with npm centrifuge, forced and as fallback where no WebSocket gets through.
// In: servers with `http_stream` and `sse` → out: what the SDK reports over these transports.
// May use the SDK, the versions of npm eventsource, undici and ws that its manifest allows, and plain HTTP.
// Framing is tested in crates/shard, statuses and limits in crates/fanwire/tests/it/streams.rs.

import assert from 'node:assert/strict';
import http from 'node:http';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';

import { EventSource } from 'eventsource';
import EventSource1 from 'eventsource-1';
import EventSource2 from 'eventsource-2';
import { EventSource as EventSource3 } from 'eventsource-3';
import { fetch as highestFetch } from 'undici-highest';
import { fetch as lowestFetch } from 'undici-lowest';
import WebSocket from 'ws';
import LowestWebSocket from 'ws-lowest';

import { startNginx, withoutNginx } from '../nginx.js';
import { startRedis } from '../redis.js';
import { eventually, start, token } from '../server.js';
import { ENCODINGS, connect, next, subscribe } from './clients.js';

const [JSON_SDK, PROTOBUF_SDK] = ENCODINGS;
const SETTINGS = {
  http_stream: { enabled: true },
  sse: { enabled: true },
  client: { ping_interval: '2s', pong_timeout: '1s' },
  channel: {
    without_namespace: {
      allow_subscribe_for_client: true,
      allow_publish_for_subscriber: true,
      presence: true,
      allow_presence_for_subscriber: true,
      history_size: 100,
      history_ttl: '60s',
      force_recovery: true,
    },
  },
};

const KINDS = [
  { transport: 'http_stream', encoding: JSON_SDK },
  { transport: 'http_stream', encoding: PROTOBUF_SDK },
  { transport: 'sse', encoding: JSON_SDK },
];

/** An SDK client that tries these transports in order. `uplink` is the server that gets its commands. */
function client(t, server, { transport, encoding }, { uplink = server, user = '42', endpoints, libraries } = {}) {
  const own = [{ transport, endpoint: `${server.http}/connection/${transport}` }];
  const made = new encoding.Centrifuge(endpoints ?? own, {
    emulationEndpoint: `${uplink.http}/emulation`,
    websocket: WebSocket,
    eventsource: EventSource,
    fetch,
    readableStream: ReadableStream,
    minReconnectDelay: 50,
    maxReconnectDelay: 200,
    token: token({ sub: user }),
    ...libraries,
  });
  t.after(() => made.disconnect());
  return made;
}

const numbers = (publications, encoding) => publications.items.map(({ data }) => encoding.value(data).n);

describe('one server', () => {
  let server;
  before(async () => (server = await start(SETTINGS)));
  after(() => server?.stop());

  for (const kind of KINDS) {
    const { transport, encoding } = kind;
    const channel = `${transport} ${encoding.name}`.replace(' ', '_');

    test(`${transport}, ${encoding.name}: subscribe, publish, presence, pings and disconnect`, async (t) => {
      const one = client(t, server, kind);
      const connected = await connect(one);
      assert.equal(connected.transport, transport);
      const { subscription, publications } = await subscribe(one, channel);
      await subscription.publish(encoding.payload({ n: 1 }));
      for (let n = 2; n <= 50; n += 1) await server.api('publish', { channel, data: { n } });
      await publications.count(50);
      assert.deepEqual(numbers(publications, encoding), Array.from({ length: 50 }, (_, index) => index + 1));
      assert.equal(Object.keys((await subscription.presence()).clients).length, 1);
      let lost = false;
      one.on('connecting', () => (lost = true));
      await new Promise((resolve) => setTimeout(resolve, 5_000)); // two pings, answered through the uplink
      assert.ok(!lost, 'pongs of the uplink keep the stream alive');
      const disconnected = next(one, 'disconnected');
      await server.api('disconnect', { user: '42', disconnect: { code: 4500, reason: 'enough' } });
      assert.deepEqual(await disconnected, { code: 4500, reason: 'enough' });
      await eventually(async () => (await server.connections()) === 0, 'the end of the connection');
    });

    test(`${transport}, ${encoding.name}: a client that comes back recovers what it missed`, async (t) => {
      const one = client(t, server, kind, { user: '43' });
      await connect(one);
      const { publications } = await subscribe(one, `again_${channel}`);
      const publish = (n) => server.api('publish', { channel: `again_${channel}`, data: { n } });
      await publish(1);
      await publications.count(1);
      const connecting = next(one, 'connecting');
      await server.api('disconnect', { user: '43', disconnect: { code: 3000, reason: 'again' } });
      await connecting;
      await publish(2);
      await publications.count(2);
      assert.deepEqual(numbers(publications, encoding), [1, 2]);
    });
  }

  test('behind a proxy that refuses Upgrade the SDK falls back, to each of them', async (t) => {
    const proxy = await withoutUpgrade(t, server);
    for (const kind of [KINDS[0], KINDS[2]]) {
      const endpoints = [
        { transport: 'websocket', endpoint: `${proxy.http.replace('http', 'ws')}/connection/websocket` },
        { transport: kind.transport, endpoint: `${proxy.http}/connection/${kind.transport}` },
      ];
      const one = client(t, server, kind, { uplink: proxy, endpoints });
      assert.equal((await connect(one)).transport, kind.transport);
      const { subscription, publications } = await subscribe(one, 'fallback');
      await subscription.publish({ n: 1 });
      await publications.find(({ data }) => data.n === 1, 'its own publication');
    }
  });

  // The manifest of the SDK names eventsource ^2.0.2, undici ^6.28.1 and ws ^8.20.1; it brings protobufjs in its build.
  const LIBRARIES = [
    ...[EventSource1, EventSource2, EventSource3, EventSource].map((eventsource, index) => (
      { name: `eventsource ${index + 1}`, libraries: { eventsource }, kinds: [KINDS[2]] }
    )),
    { name: 'undici 6.28', libraries: { fetch: lowestFetch }, kinds: KINDS.slice(0, 2) },
    { name: 'undici 6.29', libraries: { fetch: highestFetch }, kinds: KINDS.slice(0, 2) },
    { name: 'ws 8.20', libraries: { websocket: LowestWebSocket }, kinds: [JSON_SDK, PROTOBUF_SDK].map((encoding) => ({ transport: 'websocket', encoding })) },
  ];
  for (const { name, libraries, kinds } of LIBRARIES) {
    test(`with ${name} each message arrives by itself, forced and as fallback`, async (t) => {
      const proxy = await withoutUpgrade(t, server);
      for (const kind of kinds) {
        const { transport, encoding } = kind;
        const url = (base) => (transport === 'websocket' ? base.http.replace('http', 'ws') : base.http);
        const endpoint = (base) => ({ transport, endpoint: `${url(base)}/connection/${transport}` });
        const websocket = { transport: 'websocket', endpoint: `${proxy.http.replace('http', 'ws')}/connection/websocket` };
        const lists = [[endpoint(server)], [websocket, endpoint(transport === 'websocket' ? server : proxy)]];
        for (const [round, endpoints] of lists.entries()) {
          const one = client(t, server, kind, { endpoints, libraries });
          assert.equal((await connect(one)).transport, transport);
          const channel = `${name} ${transport} ${encoding.name} ${round}`.replaceAll(' ', '_');
          const { subscription, publications } = await subscribe(one, channel);
          await subscription.publish(encoding.payload({ n: 1 }));
          for (let n = 2; n <= 10; n += 1) {
            await publications.count(n - 1);
            const json = `{\r\n"n":\r${n}\n\r}`; // white space that ends lines
            await server.api('publish', { channel, b64data: Buffer.from(json).toString('base64') });
          }
          await publications.count(10);
          assert.deepEqual(numbers(publications, encoding), Array.from({ length: 10 }, (_, index) => index + 1));
          one.disconnect();
        }
      }
    });
  }

  test('behind nginx with its defaults the SDK falls back, and each publication comes by itself', async (t) => {
    const missing = withoutNginx();
    if (missing) return t.skip(missing);
    const proxy = await startNginx(t, server);
    for (const kind of [KINDS[0], KINDS[2]]) {
      const endpoints = [
        { transport: 'websocket', endpoint: `${proxy.http.replace('http', 'ws')}/connection/websocket` },
        { transport: kind.transport, endpoint: `${proxy.http}/connection/${kind.transport}` },
      ];
      const one = client(t, server, kind, { uplink: proxy, endpoints });
      assert.equal((await connect(one)).transport, kind.transport);
      const channel = `nginx_${kind.transport}`;
      const { publications } = await subscribe(one, channel);
      for (let n = 1; n <= 5; n += 1) {
        await server.api('publish', { channel, data: { n } });
        await publications.count(n); // nginx would hold back what it buffers
      }
    }
  });

  test('nginx that passes on Upgrade passes on WebSockets', async (t) => {
    const missing = withoutNginx();
    if (missing) return t.skip(missing);
    const upgrade = 'proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "Upgrade";';
    const proxy = await startNginx(t, server, upgrade);
    const endpoint = `${proxy.http.replace('http', 'ws')}/connection/websocket`;
    const one = client(t, server, KINDS[0], { endpoints: [{ transport: 'websocket', endpoint }] });
    assert.equal((await connect(one)).transport, 'websocket');
    const { subscription, publications } = await subscribe(one, 'nginx');
    await subscription.publish({ n: 1 });
    await publications.count(1);
  });

  test('a hundred commands at once are all answered', async (t) => {
    const one = client(t, server, KINDS[0]);
    await connect(one);
    const { subscription } = await subscribe(one, 'many');
    const results = await Promise.all(Array.from({ length: 100 }, (_, n) => subscription.publish({ n })));
    assert.equal(results.length, 100);
  });

  test('a client whose stream is cut is gone', async (t) => {
    const one = client(t, server, KINDS[0], { user: '44' });
    await connect(one);
    await subscribe(one, 'cut');
    const members = async () => Object.keys((await server.api('presence', { channel: 'cut' })).presence).length;
    assert.equal(await members(), 1);
    one.disconnect();
    await eventually(async () => (await members()) === 0, 'its leave');
  });
});

test('on two nodes with one Redis any node takes the commands, here without compression', async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const plain = { enabled: true, compression: false };
  const engine = { type: 'redis', redis: { address: redis.address } };
  const settings = { ...SETTINGS, http_stream: plain, sse: plain, engine };
  const nodes = await Promise.all([start(settings), start(settings)]);
  for (const node of nodes) {
    t.after(() => node.stop());
    await eventually(async () => (await node.api('info')).nodes.length === 2, 'both nodes to know each other');
  }
  for (const kind of KINDS) {
    const { encoding } = kind;
    const one = client(t, nodes[0], kind, { uplink: nodes[1] });
    await connect(one);
    const channel = `nodes_${kind.transport}_${encoding.name}`;
    const { subscription, publications } = await subscribe(one, channel);
    await subscription.publish(encoding.payload({ n: 1 }));
    await publications.count(1);
    assert.deepEqual(numbers(publications, encoding), [1]);
  }
});

/** A proxy that passes on everything but upgrades, which it refuses with 403. */
async function withoutUpgrade(t, server) {
  const [host, port] = server.host.split(':');
  const proxy = http.createServer((request, response) => {
    const onwards = http.request({ host, port, path: request.url, method: request.method, headers: request.headers });
    onwards.on('response', (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      response.flushHeaders();
      answer.pipe(response);
    });
    onwards.on('error', () => response.destroy());
    response.on('close', () => onwards.destroy());
    request.pipe(onwards);
  });
  proxy.on('upgrade', (request, socket) => socket.end('HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n'));
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  t.after(() => proxy.closeAllConnections());
  t.after(() => proxy.close());
  return { http: `http://127.0.0.1:${proxy.address().port}` };
}
