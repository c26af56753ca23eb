// The recipes of the documentation: command lines, configuration, backend and client of each page, run as they stand there.
// In: fenced blocks of docs/recipes/*.md, with a file name or with lines for a shell → out: what the programs print.
// May use Node, Python and the SDK from npm; never a program of its own, and never a text of the page that was changed.
// What a page promises besides is tested in the other suites.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';

import { inCharge } from '../children.js';
import { freePort } from '../ports.js';
import { Log, PROGRAM, startIn, token } from '../server.js';

const MODULES = fileURLToPath(new URL('../node_modules', import.meta.url));
/** Node.js before 22 has no WebSocket of its own. */
const WEBSOCKET = "import WebSocket from 'ws'; globalThis.WebSocket ??= WebSocket;\n";

/** A page with its server: writes its files into a folder and runs its lines there. */
class Recipe {
  static async open(t, page, { variables = {}, names = ['fanwire.yaml', 'backend.mjs', 'client.mjs'] } = {}) {
    const text = readFileSync(new URL(`../../../docs/recipes/${page}`, import.meta.url), 'utf8');
    const files = Object.fromEntries([...text.matchAll(/^```\w+ (\S+)\n(.*?)^```$/gms)].map(([, name, block]) => [name, block]));
    assert.deepEqual(Object.keys(files), names);
    const recipe = Object.assign(new Recipe(), { t });
    recipe.lines = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].flatMap(([, block]) => block.trim().split('\n'));
    recipe.folder = mkdtempSync(path.join(tmpdir(), 'fanwire-recipe-'));
    t.after(() => rmSync(recipe.folder, { recursive: true }));
    for (const [name, block] of Object.entries(files)) writeFileSync(path.join(recipe.folder, name), block);
    writeFileSync(path.join(recipe.folder, 'websocket.mjs'), WEBSOCKET);
    symlinkSync(MODULES, path.join(recipe.folder, 'node_modules'));
    // What a reader has in the PATH.
    for (const [name, program] of [['fanwire', PROGRAM], ['node', process.execPath]]) symlinkSync(program, path.join(recipe.folder, name));
    const own = Object.keys(process.env).filter((name) => name.startsWith('FANWIRE'));
    recipe.environment = {
      ...process.env,
      ...Object.fromEntries(own.map((name) => [name, undefined])),
      PATH: `${recipe.folder}:${process.env.PATH}`,
    };

    assert.match(recipe.lines[0], /^fanwire init /, 'each recipe begins with secrets of its own');
    const shell = (line) => execFileSync('sh', ['-c', line], { cwd: recipe.folder, env: recipe.environment, encoding: 'utf8' });
    shell(recipe.lines[0]);
    assert.doesNotMatch(shell('fanwire check-config --strict fanwire.yaml'), /warning:/);
    recipe.secrets = parseEnv(readFileSync(path.join(recipe.folder, '.env'), 'utf8'));
    await recipe.serve({ FANWIRE_HTTP_SERVER_PORT: '0', ...variables });
    return recipe;
  }

  /** Starts the server by the line of the page. */
  async serve(environment) {
    const [program, ...words] = this.lines.find((line) => line.startsWith('fanwire --config')).split(' ');
    assert.equal(program, 'fanwire');
    this.server = await startIn(this.folder, words, { FANWIRE_HTTP_SERVER_ADDRESS: '127.0.0.1', ...environment });
    const { server } = this;
    this.t.after(() => server.stop());
  }

  /** Runs the line of the page for a program; `lines` has what it prints. */
  start(file, programArguments = [], environment = {}) {
    const line = this.lines.find((one) => one.endsWith(` ${file}`)) ?? `node ${file}`;
    const child = inCharge(
      spawn('sh', ['-c', `exec ${line} "$@"`, 'sh', ...programArguments], {
        cwd: this.folder,
        env: {
          ...this.environment,
          NODE_OPTIONS: '--import ./websocket.mjs',
          FANWIRE_URL: this.server.http,
          WEBSOCKET_URL: this.server.websocket,
          ...environment,
        },
        stdio: ['pipe', 'pipe', 'inherit'],
      }),
    );
    this.t.after(() => child.kill('SIGKILL'));
    const emitter = new EventEmitter();
    const lines = new Log(emitter, 'line');
    createInterface({ input: child.stdout }).on('line', (line) => emitter.emit('line', line));
    const printed = (pattern) => lines.find((line) => pattern.test(line), `${file} prints ${pattern}`, 30_000);
    return { child, lines, printed, write: (text) => child.stdin.write(`${text}\n`) };
  }
}

test('chat: members talk, scroll back, and one is kicked out', async (t) => {
  const recipe = await Recipe.open(t, 'chat.md');
  const backend = recipe.start('backend.mjs', [], { PORT: '0' });
  const address = `http://127.0.0.1:${(await backend.printed(/^backend on port/)).split(' ').at(-1)}`;
  const enter = (user, channel) => recipe.start('client.mjs', [user, channel], { BACKEND_URL: address });

  const alice = enter('alice', 'room:board');
  await alice.printed(/^here: alice$/);
  alice.write('hello');
  await alice.printed(/^alice: hello$/);
  const bob = enter('bob', 'room:board');
  await bob.printed(/^here: alice, bob$/);
  await bob.printed(/^before: alice hello$/);
  await alice.printed(/^bob joined$/);
  bob.write('good morning');
  await alice.printed(/^bob: good morning$/);

  const eve = enter('eve', 'room:board');
  await eve.printed(/^out: 1 /);
  const lobby = enter('eve', 'chat:lobby');
  await lobby.printed(/^here: eve$/);

  const kick = (user) =>
    fetch(`${address}/kick`, {
      method: 'POST',
      headers: { 'X-User': user },
      body: JSON.stringify({ channel: 'room:board', member: 'bob' }),
    });
  assert.equal((await kick('eve')).status, 403);
  assert.equal((await kick('alice')).status, 200);
  await bob.printed(/^out: 1 /);
  await alice.printed(/^bob left$/);

  // The same page tries again.
  bob.write('let me in');
  const outs = () => bob.lines.items.filter((line) => line.startsWith('out: 1 '));
  await bob.lines.wait(() => outs()[1], 'bob is out again', 30_000);
  assert.equal(bob.lines.items.filter((line) => line.startsWith('here: ')).length, 1);

  await fetch(`${recipe.server.http}/api/publish`, {
    method: 'POST',
    headers: { 'X-API-Key': recipe.secrets.FANWIRE_HTTP_API_KEY },
    body: JSON.stringify({ channel: 'room:board', data: { text: 'closing soon' } }),
  });
  await alice.printed(/^backend: closing soon$/);
  const again = enter('bob', 'room:board');
  await again.printed(/^out: 1 /);
});

test('live scores: who comes late has the current state', async (t) => {
  const recipe = await Recipe.open(t, 'live-scores.md');
  const before = recipe.start('backend.mjs', [], { UPDATES: '7' });
  await before.printed(/^published 7$/);
  const late = recipe.start('client.mjs');
  await late.printed(/^1' 0:0$/);
  assert.deepEqual(late.lines.items, ["1' 0:0"]);
  recipe.start('backend.mjs', [], { UPDATES: '110' });
  await late.printed(/^16' 1:0$/);
});

test('prices on many screens: viewers share the polls of their symbols', async (t) => {
  const port = await freePort();
  const address = `http://127.0.0.1:${port}`;
  const variables = { FANWIRE_CHANNEL_PROXY_SHARED_POLL_REFRESH_ENDPOINT: `${address}/poll` };
  const recipe = await Recipe.open(t, 'shared-prices.md', { variables });
  const backend = recipe.start('backend.mjs', [], { PORT: String(port) });
  await backend.printed(/^backend on port/);
  const view = (...symbols) => recipe.start('client.mjs', symbols, { BACKEND_URL: address });
  const alice = view('ACME', 'EXMP');
  await alice.printed(/^EXMP \d/);
  const bob = view('ACME', 'NONE');
  await bob.printed(/^NONE gone$/);
  const prices = (viewer) => viewer.lines.items.filter((line) => line.startsWith('ACME '));
  for (const viewer of [alice, bob]) await viewer.lines.wait(() => prices(viewer)[1], 'a second price of ACME', 30_000);
  const asked = backend.lines.items.filter((line) => line.startsWith('asked for'));
  assert.ok(asked.every((line) => line.split('ACME').length <= 2), 'once for both');
  assert.ok(asked.every((line) => !/NONE|TEST/.test(line)), 'no viewer looks at the others');
});

test('a shared board: cards stay, cursors and members go with their clients', async (t) => {
  const recipe = await Recipe.open(t, 'shared-board.md', { names: ['fanwire.yaml', 'client.mjs'] });
  const key = { secret: recipe.secrets.FANWIRE_CLIENT_TOKEN_HMAC_SECRET_KEY };
  const open = (sub) => recipe.start('client.mjs', [sub, token({ sub }, key)]);
  const alice = open('alice');
  await alice.printed(/^alice is here$/);
  alice.write('card 7 todo');
  await alice.printed(/^card 7 is in todo$/);
  alice.write('move 3 4');
  await alice.printed(/^cursor of alice at 3 4$/);

  const bob = open('bob');
  await bob.printed(/^card 7 is in todo$/);
  await bob.printed(/^cursor of alice at 3 4$/);
  await bob.printed(/^alice is here$/);
  await alice.printed(/^bob is here$/);
  bob.write('card 7 done');
  await alice.printed(/^card 7 is in done$/);
  bob.write('card 8 todo');
  await alice.printed(/^card 8 is in todo$/);
  bob.write('drop 8');
  await alice.printed(/^card 8 is gone$/);

  alice.child.kill('SIGKILL');
  await bob.printed(/^a cursor is gone$/);
  await bob.printed(/^alice left$/);
  const eve = open('eve');
  await eve.printed(/^card 7 is in done$/);
  await eve.printed(/^bob is here$/);
  assert.ok(eve.lines.items.every((line) => !/alice|card 8/.test(line)), 'what is gone is not shown');
});

test('a game: players steer, see themselves move, and get every event', async (t) => {
  const recipe = await Recipe.open(t, 'game.md');
  recipe.start('backend.mjs');
  const key = { secret: recipe.secrets.FANWIRE_CLIENT_TOKEN_HMAC_SECRET_KEY };
  const [alice, bob] = ['alice', 'bob'].map((sub) => recipe.start('client.mjs', [sub, token({ sub }, key)]));
  for (const player of [alice, bob]) {
    await player.printed(/^tick \d+: x \d+, input [1-9]\d* of \d+$/);
    await player.printed(/^goal alice$/);
    await player.printed(/^goal bob$/);
  }
});

for (const backend of ['backend.mjs', 'backend.py']) {
  test(`answers of a model by ${backend}: a reload, a second tab, a phone, and stop`, async (t) => {
    const port = await freePort();
    const names = ['fanwire.yaml', 'backend.mjs', 'backend.py', 'client.mjs', 'phone.mjs'];
    const variables = { FANWIRE_RPC_PROXY_ENDPOINT: `http://127.0.0.1:${port}/rpc` };
    const recipe = await Recipe.open(t, 'ai-answers.md', { variables, names });
    await recipe.start(backend, [], { PORT: String(port) }).printed(/^backend on port/);
    const texts = (reader) => reader.lines.items.map((line) => line.split(' ').slice(2).join(' ')).filter(Boolean);

    const page = recipe.start('client.mjs', ['Why is the sky blue?']);
    await page.printed(/^grows \d+ You asked: Why is the sky blue\? Let me think /);
    const tab = recipe.start('client.mjs');
    const phone = recipe.start('phone.mjs');
    const readers = [page, tab, phone];
    const ends = await Promise.all(readers.map((reader) => reader.printed(/^final /)));
    assert.ok(ends[0].length > 500, ends[0]);
    assert.deepEqual(ends, [ends[0], ends[0], ends[0]]);
    assert.ok(texts(tab)[0].startsWith('You asked: Why is the sky blue? Let me think '), 'the tab joined in the middle');
    for (const reader of readers) {
      const read = texts(reader);
      assert.ok(read.every((text, at) => at === 0 || text.startsWith(read[at - 1])), 'texts only grow');
    }

    const again = recipe.start('client.mjs');
    await again.printed(/^ready$/);
    assert.deepEqual(again.lines.items, [ends[0], 'ready'], 'a reload costs one publication');

    const cut = recipe.start('client.mjs', ['What if the server is restarted?']);
    await cut.printed(/^grows \d+ You asked: What if the server is restarted\? Let me think /);
    const { port: same } = new URL(recipe.server.http);
    await recipe.server.stop();
    await recipe.serve({ FANWIRE_HTTP_SERVER_PORT: same, ...variables });
    const whole = await cut.printed(/^final \d+ You asked: What if the server/);
    assert.match(whole, /restarted\? (Let me think about that\. ){20} ?$/, 'all of it, although the history was lost');

    const other = recipe.start('client.mjs', ['Are you sure?']);
    await other.printed(/^grows \d+ You asked: Are you sure\? Let me think /);
    other.write('stop');
    const stopped = await phone.printed(/^final \d+ You asked: Are you sure/);
    assert.ok(stopped.length < ends[0].length, stopped);
  });
}

test('state without a gap: payments while clients load and follow', async (t) => {
  const recipe = await Recipe.open(t, 'state-without-a-gap.md', { names: ['fanwire.yaml', 'backend.mjs', 'client.mjs', 'plain.mjs'] });
  const backend = recipe.start('backend.mjs', [], { PORT: '0' });
  const address = `http://127.0.0.1:${(await backend.printed(/^backend on port/)).split(' ').at(-1)}`;
  const pay = async (amounts) => {
    for (const amount of amounts) await fetch(`${address}/pay?amount=${amount}`);
  };
  const amounts = (from, to) => Array.from({ length: to - from }, (_, at) => from + at);
  await pay(amounts(1, 11));
  const clients = ['client.mjs', 'plain.mjs'].map((file) => recipe.start(file, [], { BACKEND_URL: address }));
  const loaded = clients.map((client) => client.printed(/^loaded \d+$/));
  await pay(amounts(11, 61)); // while they load and subscribe
  await Promise.all(loaded);
  await pay(amounts(61, 101));
  for (const client of clients) {
    await client.printed(/^5050 after payment 100$/);
    const versions = client.lines.items.slice(1).map((line) => Number(line.split(' ').at(-1)));
    assert.deepEqual(versions, amounts(versions[0], 101), 'none is lost or counted twice');
  }
});
