// The programs of docs/backends.md that publish with a transaction, run as they stand there against PostgreSQL.
// In: fenced blocks with a file name of docs/backends.md and docs/consumers.md → out: what a subscriber hears, and what is left.
// May use npm centrifuge and pg, psycopg and pgx; never a table of its own: the page has it.
// What consumers do with rows is tested in the crate `consumers`.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import pg from 'pg';

import { filesOf, serve } from '../backends.js';
import { inCharge } from '../children.js';
import { startPostgres, why } from '../postgres.js';
import { eventually, token, within } from '../server.js';
import { ENCODINGS, connect, sdk, subscribe } from './clients.js';

const [JSON_SDK] = ENCODINGS;
const PAGE = filesOf('backends.md');
const TABLE = filesOf('consumers.md')['outbox.sql'];
const MODULES = fileURLToPath(new URL('../node_modules', import.meta.url));
const GO = fileURLToPath(new URL('../go/outbox', import.meta.url));
/** A compiler with an empty cache on a busy machine. */
const PROGRAM_MS = 300_000;

/** How a program of the page is run: its folder and command. */
const RUNNERS = {
  'outbox.py': (folder) => [folder, process.env.FANWIRE_PYTHON ?? 'python3', ['outbox.py']],
  'outbox.mjs': (folder) => [folder, process.execPath, ['outbox.mjs']],
  'outbox.go': (folder) => [GO, 'go', ['run', path.join(folder, 'outbox.go')]],
};

/** A database with the tables, and a server that consumes them. */
async function outbox(t) {
  const dsn = await startPostgres(t);
  const db = new pg.Client({ connectionString: dsn });
  db.on('error', () => {}); // the database ends first
  await db.connect();
  await db.query(TABLE);
  await db.query('CREATE TABLE messages (id BIGSERIAL PRIMARY KEY, room text, text text)');
  const server = await serve(t, {
    channel: { namespaces: [{ name: 'chat', allow_subscribe_for_client: true }] },
    consumers: [{
      name: 'outbox', enabled: true, type: 'postgresql', postgresql: {
        dsn, outbox_table_name: 'centrifugo_outbox', num_partitions: 1,
        partition_notification_channel: 'centrifugo_partition_change',
      },
    }],
  });
  return { dsn, db, server };
}

async function runProgram(t, name, dsn, ...words) {
  const folder = mkdtempSync(path.join(tmpdir(), 'fanwire-outbox-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(path.join(folder, name), PAGE[name]);
  symlinkSync(MODULES, path.join(folder, 'node_modules'));
  const [cwd, command, first] = RUNNERS[name](folder);
  const env = { ...process.env, DATABASE_URL: dsn };
  const child = inCharge(spawn(command, [...first, ...words], { cwd, env, stdio: ['ignore', 'inherit', 'pipe'] }));
  const output = [];
  child.stderr.on('data', (piece) => output.push(piece));
  const [code] = await within(once(child, 'close'), name, PROGRAM_MS);
  return { code, text: Buffer.concat(output).toString() };
}

test('programs of the page publish with their transaction, or not at all', { skip: why }, async (t) => {
  const { dsn, db, server } = await outbox(t);
  const client = sdk(t, server, JSON_SDK, { token: token({ sub: 'ada' }) });
  await connect(client);
  const { publications } = await subscribe(client, 'chat:board');
  for (const name of Object.keys(RUNNERS)) {
    await t.test(name, async (t) => {
      const text = `“grüße” from ${name}\r\n`;
      const { code, text: said } = await runProgram(t, name, dsn, 'board', text);
      assert.equal(code, 0, said);
      await publications.find(({ data }) => data.text === text, text);
      const left = async () => (await db.query('SELECT count(*)::int AS count FROM centrifugo_outbox')).rows[0].count;
      await eventually(async () => (await left()) === 0, 'the row to be deleted');
      const { rows } = await db.query('SELECT text FROM messages WHERE text = $1', [text]);
      assert.equal(rows.length, 1);
      // Without the outbox the message is not stored, either.
      await db.query('ALTER TABLE centrifugo_outbox RENAME TO away');
      t.after(() => db.query('ALTER TABLE away RENAME TO centrifugo_outbox'));
      assert.notEqual((await runProgram(t, name, dsn, 'board', 'lost')).code, 0);
      assert.equal((await db.query("SELECT FROM messages WHERE text = 'lost'")).rowCount, 0);
    });
  }
});
