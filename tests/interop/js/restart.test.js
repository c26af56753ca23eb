// Clients of npm centrifuge and a queue while a server with a snapshot of its memory stops and starts again.
// In: clients with positions, publications and rows of that time → out: all clients recover, and nothing is lost.
// May use the SDK, the server API and pg. FANWIRE_RESTART is the number of clients.
// Crashes are in crates/cli/tests/it/snapshots.rs; what is in the file is tested in the crate `broker`.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import pg from 'pg';
import WebSocket from 'ws';

import { filesOf } from '../backends.js';
import { freePort } from '../ports.js';
import { startPostgres, why } from '../postgres.js';
import { start, token } from '../server.js';
import { connect, ENCODINGS, sdk, subscribe } from './clients.js';
import { checkAll, followAll } from './followers.js';

const CLIENTS = Number(process.env.FANWIRE_RESTART ?? 60);
const CHANNELS = 20;
const [JSON_SDK] = ENCODINGS;

/** A server on a port that it keeps, whose memory is kept in a file. */
async function restartable(t, settings = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), 'fanwire-snapshot-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const port = await freePort();
  const begin = () => start({
    http_server: { port },
    engine: { memory: { snapshot_path: path.join(folder, 'snapshot') } },
    channel: { namespaces: [{
      name: 'news', history_size: 100, history_ttl: '1h', force_recovery: true, allow_subscribe_for_client: true,
    }] },
    ...settings,
  });
  let server = await begin();
  t.after(() => server.stop());
  return {
    get server() { return server; },
    async stop() { assert.equal(await server.stop(), 0); },
    async start() { server = await begin(); },
  };
}

test('all clients recover after a planned restart', async (t) => {
  const place = await restartable(t);
  const options = { websocket: WebSocket, minReconnectDelay: 100, maxReconnectDelay: 2000 };
  const clients = await followAll(t, CLIENTS, place.server.websocket, options);
  const publish = async (number) => {
    for (let channel = 0; channel < CHANNELS; channel += 1) {
      await place.server.api('publish', { channel: `news:${channel}`, data: { number } });
    }
  };
  await publish(1);
  await publish(2);
  const returned = clients.map(({ client }) => {
    const [subscription] = Object.values(client.subscriptions());
    return new Promise((resolve) => subscription.once('subscribed', ({ recovered }) => resolve(recovered)));
  });
  await place.stop();
  await place.start();
  await publish(3); // before most of them are back
  const recovered = await Promise.all(returned);
  assert.equal(recovered.filter((it) => it === true).length, CLIENTS);
  await checkAll(clients, Array.from({ length: CHANNELS }, () => 3));
});

test('rows that a queue got while the server was down reach a client that was there before', { skip: why }, async (t) => {
  const dsn = await startPostgres(t);
  const db = new pg.Client({ connectionString: dsn });
  db.on('error', () => {}); // the database ends first
  await db.connect();
  await db.query(filesOf('consumers.md')['outbox.sql']);
  const postgresql = { dsn, outbox_table_name: 'centrifugo_outbox', num_partitions: 1 };
  const consumers = [{ name: 'outbox', enabled: true, type: 'postgresql', start_delay: '10s', postgresql }];
  const place = await restartable(t, { consumers });
  const client = sdk(t, place.server, JSON_SDK, { token: token({ sub: 'ada' }) });
  await connect(client);
  const { publications } = await subscribe(client, 'news:0');
  await place.stop();
  for (let number = 1; number <= 5; number += 1) {
    const payload = { channel: 'news:0', data: { number } };
    await db.query("INSERT INTO centrifugo_outbox (method, payload) VALUES ('publish', $1)", [payload]);
  }
  await place.start();
  await publications.count(5);
  assert.deepEqual(publications.items.map(({ data }) => data.number), [1, 2, 3, 4, 5]);
});
