// TLS of the server's own with npm centrifuge: WebSocket in both encodings, and HTTP streaming.
// In: a server with the certificate of tests/keys → out: what the SDK reports.
// May use the SDK, npm ws and undici, each with the authority of that certificate.
// Handshakes and certificates are tested in crates/fanwire/tests/it/tls.rs.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { Agent, fetch } from 'undici';
import WebSocket from 'ws';

import { start } from '../server.js';
import { ENCODINGS, connect, sdk, subscribe } from './clients.js';

const path = (file) => fileURLToPath(new URL(`../../keys/${file}`, import.meta.url));
const ca = readFileSync(path('ca.pem'));

/** A WebSocket that trusts the authority; the SDK makes it with address and subprotocol. */
class Trusting extends WebSocket {
  constructor(address, protocols) {
    super(address, protocols, { ca });
  }
}

let server;
before(async () => {
  server = await start({
    // The server API is plain HTTP at another address and the same port.
    http_server: {
      internal_address: '127.0.0.2',
      tls_external: true,
      tls: { enabled: true, cert_pem: path('localhost.pem'), key_pem: path('localhost.private.pem') },
    },
    http_stream: { enabled: true },
    client: { insecure: true },
  });
  server.secure = `https://${server.host}`;
  server.websocket = server.websocket.replace('ws://', 'wss://');
  server.http = server.http.replace('127.0.0.1', '127.0.0.2');
});
after(() => server?.stop());

for (const encoding of ENCODINGS) {
  test(`WebSocket with TLS, ${encoding.name}: messages of both directions, small and large`, async (t) => {
    const client = sdk(t, server, encoding, { websocket: Trusting });
    await connect(client);
    const channel = `tls_${encoding.name}`;
    const { subscription, publications } = await subscribe(client, channel);
    const text = 'x'.repeat(50_000);
    await subscription.publish(encoding.payload({ text }));
    for (let n = 1; n < 20; n += 1) await server.api('publish', { channel, data: { n } });
    await publications.count(20);
    const received = publications.items.map(({ data }) => encoding.value(data));
    assert.equal(received[0].text, text);
    assert.deepEqual(received.slice(1).map(({ n }) => n), Array.from({ length: 19 }, (_, index) => index + 1));
  });
}

test('a client that does not trust the certificate reconnects in vain', async (t) => {
  const client = sdk(t, server, ENCODINGS[0]);
  const failed = new Promise((resolve) => client.once('error', resolve));
  client.connect();
  assert.equal((await failed).type, 'transport');
});

test('HTTP streaming with TLS: commands, publications and the end', async (t) => {
  const dispatcher = new Agent({ connect: { ca } });
  t.after(() => dispatcher.destroy());
  const client = new ENCODINGS[0].Centrifuge(
    [{ transport: 'http_stream', endpoint: `${server.secure}/connection/http_stream` }],
    {
      emulationEndpoint: `${server.secure}/emulation`,
      fetch: (url, options) => fetch(url, { ...options, dispatcher }),
      readableStream: ReadableStream,
    },
  );
  t.after(() => client.disconnect());
  assert.equal((await connect(client)).transport, 'http_stream');
  const { subscription, publications } = await subscribe(client, 'tls_stream');
  await subscription.publish({ n: 1 });
  await server.api('publish', { channel: 'tls_stream', data: { n: 2 } });
  await publications.count(2);
  assert.deepEqual(publications.items.map(({ data }) => data.n), [1, 2]);
});
