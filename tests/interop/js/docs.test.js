// Programs in the documentation, run as they stand there, its lines for systemd, and its table of permissions next to the keys of the server.
// In: fenced blocks with the word `run` of docs/tokens.md → out: tokens that the server accepts; docs/concepts.md has every permission.
// May use Node, Python and Go; never a program of its own.
// What a page promises besides its programs is tested in the other suites.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { Log, TOKEN_SECRET, check, run, start, startWith, token } from '../server.js';
import { ENCODINGS, connect, sdk, subscribe } from './clients.js';

/** How a block of a language is run: the name of its file, and the command. */
const RUNNERS = {
  js: ['program.mjs', (file) => [process.execPath, file]],
  python: ['program.py', (file) => ['python3', file]],
  go: ['main.go', (file) => ['go', 'run', file]],
};

function programs(page) {
  const text = readFileSync(new URL(`../../../docs/${page}`, import.meta.url), 'utf8');
  return [...text.matchAll(/^```(\w+) run\n(.*?)^```$/gms)].map(([, language, program]) => ({ language, program }));
}

test('each program of docs/tokens.md signs a token with which a client connects', async (t) => {
  const server = await start({});
  t.after(() => server.stop());
  const found = programs('tokens.md');
  assert.deepEqual(found.map(({ language }) => language), ['js', 'python', 'go']);
  for (const { language, program } of found) {
    await t.test(language, async (t) => {
      const folder = mkdtempSync(path.join(tmpdir(), 'fanwire-docs-'));
      t.after(() => rmSync(folder, { recursive: true }));
      const [name, command] = RUNNERS[language];
      const file = path.join(folder, name);
      writeFileSync(file, program);
      const [runner, ...rest] = command(file);
      const environment = { ...process.env, SECRET: TOKEN_SECRET, GOFLAGS: '-mod=mod', GO111MODULE: 'off' };
      const token = execFileSync(runner, rest, { env: environment, encoding: 'utf8' }).trim();
      const client = sdk(t, server, ENCODINGS[0], { token });
      await connect(client);
      const { users } = await server.api('info').then(({ nodes }) => ({ users: nodes[0].num_users }));
      assert.equal(users, 1);
    });
  }
});

test('docs/concepts.md has every permission that a namespace or a client can have', async () => {
  const { code, text } = await run(['config-doc']);
  assert.equal(code, 0);
  const page = readFileSync(new URL('../../../docs/concepts.md', import.meta.url), 'utf8');
  const keys = [...text.matchAll(/`(?:client|channel\.without_namespace)\.((?:dis)?allow_\w+)`/g)].map(([, key]) => key);
  assert.ok(keys.length > 15, String(keys));
  assert.deepEqual(keys.filter((key) => !page.includes(key)), []);
});

const SECRET = 'a-secret-of-the-tests-of-the-documentation';
const KEY = 'a-key-of-the-tests-of-the-documentation';

/** The configuration of a page, with secrets. */
function configOf(page) {
  const text = readFileSync(new URL(`../../../docs/${page}`, import.meta.url), 'utf8');
  const [, config] = /^```yaml fanwire\.yaml\n(.*?)^```$/ms.exec(text);
  const client = `client:\n  token: { hmac_secret_key: ${SECRET} }\n`;
  const withClient = config.includes('client:\n') ? config.replace('client:\n', client) : config + client;
  return `${withClient}http_api: { key: ${KEY} }\n`;
}

test('the configurations of pages on one subject have no mistake', async () => {
  for (const page of ['typing-receipts.md', 'durability.md']) {
    const { code, text } = await check(configOf(page));
    assert.ok(code === 0 && !text.includes('warning:'), `${page}: ${text}`);
  }
});

test('docs/typing-receipts.md: who types is known, not kept and limited; receipts and counts reach a user', async (t) => {
  const server = await startWith(configOf('typing-receipts.md'), KEY);
  t.after(() => server.stop());
  const user = async (sub) => {
    const client = sdk(t, server, ENCODINGS[0], { token: token({ sub }, { secret: SECRET }) });
    const personal = new Log(client, 'publication');
    await connect(client);
    return { client, personal, typing: await subscribe(client, 'typing:board'), receipts: await subscribe(client, 'receipts:board') };
  };
  const [ada, bob] = [await user('42'), await user('43')];

  await ada.typing.subscription.publish({});
  const [typed] = await bob.typing.publications.count(1);
  assert.equal(typed.info.user, '42');
  await bob.typing.subscription.publish({});
  await ada.typing.publications.count(1);
  assert.deepEqual(ada.typing.publications.items.map(({ info }) => info.user), ['43'], 'not what she published herself');
  await assert.rejects(ada.typing.subscription.history({ limit: 1 }), { code: 108 });
  for (let n = 0; n < 3; n += 1) await ada.typing.subscription.publish({});
  await assert.rejects(ada.typing.subscription.publish({}), { code: 111 });
  await assert.rejects(ada.receipts.subscription.publish({ id: 1 }), { code: 103 });

  await server.api('publish', { channel: 'receipts:board', data: { user: '42', id: 1017 }, tags: { user: '42' } });
  const [receipt] = await bob.receipts.publications.count(1);
  assert.deepEqual(receipt.data, { user: '42', id: 1017 });
  await server.api('broadcast', { channels: ['user:#42', 'user:#43'], data: { room: 'board', newest: 1018 } });
  for (const { personal } of [ada, bob]) {
    const [{ channel, data }] = await personal.count(1);
    assert.deepEqual(data, { room: 'board', newest: 1018 });
    assert.match(channel, /^user:#4[23]$/);
  }
});

const noSystemd = spawnSync('systemd-analyze', ['--version']).error && 'needs systemd-analyze';
test('the lines of docs/acme.md let the unit listen below 1024, and nothing else', { skip: noSystemd }, (t) => {
  const page = readFileSync(new URL('../../../docs/acme.md', import.meta.url), 'utf8');
  const [, lines] = /^```ini override\.conf\n(.*?)^```$/ms.exec(page);
  const root = mkdtempSync(path.join(tmpdir(), 'fanwire-unit-'));
  t.after(() => rmSync(root, { recursive: true }));
  const units = path.join(root, 'lib/systemd/system');
  const override = path.join(root, 'etc/systemd/system/fanwire.service.d');
  for (const folder of [units, override]) mkdirSync(folder, { recursive: true });
  cpSync(new URL('../../../deploy/fanwire.service', import.meta.url), path.join(units, 'fanwire.service'));
  const missing = () => {
    const words = ['security', '--offline=true', `--root=${root}`, '--json=short', 'fanwire.service'];
    const rows = JSON.parse(execFileSync('systemd-analyze', words, { encoding: 'utf8' }));
    return rows.filter(({ set }) => set === false).map(({ name }) => name);
  };
  const before = missing();
  writeFileSync(path.join(override, 'override.conf'), lines);
  const opened = missing().filter((name) => !before.includes(name)).sort();
  // In a user namespace of its own a process has no capability for the ports of the machine.
  assert.deepEqual(opened, ['AmbientCapabilities=', 'CapabilityBoundingSet=~CAP_NET_(BIND_SERVICE|BROADCAST|RAW)', 'PrivateUsers=']);
});
