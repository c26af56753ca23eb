// The page and the client of the README, run as they stand there next to a server without configuration.
// In: the blocks `page.html` and `client.mjs` of README.md → out: the message that the curl of the start publishes.
// May replace the addresses of the server and of the SDK on the web by those of the test; never anything else.
// The browser is driven by chromium.js.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { inCharge } from '../children.js';
import { eventually, startBare } from '../server.js';
import { openPage } from './chromium.js';

const SDK = 'https://unpkg.com/centrifuge@5.8.0/dist/centrifuge.js';
const MODULES = fileURLToPath(new URL('../node_modules', import.meta.url));

function block(name, server) {
  const text = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8');
  const found = text.match(new RegExp(`^\`\`\`\\w+ ${name}\\n(.*?)^\`\`\`$`, 'ms'));
  assert.ok(found?.[1].includes('127.0.0.1:8000'), name);
  return found[1].replaceAll('127.0.0.1:8000', server.host);
}

/** Publishes again and again, because a subscription has no event here. */
const publishUntil = (server, isThere, what) =>
  eventually(async () => {
    await server.api('publish', { channel: 'demo', data: { text: 'hello' } });
    return isThere();
  }, what);

test('the page of the README shows what is published', async (t) => {
  const server = await startBare();
  t.after(() => server.stop());
  const page = block('page.html', server);
  assert.ok(page.includes(SDK), 'the version of the SDK that is tested here');
  const sdk = readFileSync(path.join(MODULES, 'centrifuge/dist/centrifuge.js'));
  const files = createServer((request, response) => {
    const isSdk = request.url === '/centrifuge.js';
    response.setHeader('Content-Type', isSdk ? 'text/javascript' : 'text/html');
    response.end(isSdk ? sdk : page.replace(SDK, '/centrifuge.js'));
  });
  files.listen(0, '127.0.0.1');
  await once(files, 'listening');
  t.after(() => files.close());
  const browser = await openPage(t, `http://localhost:${files.address().port}/page.html`);
  const isThere = () => browser.evaluate(`document.querySelector('#messages li')?.textContent === 'hello'`);
  await publishUntil(server, isThere, 'the message in the page');
});

test('the client of the README prints what is published', async (t) => {
  const server = await startBare();
  t.after(() => server.stop());
  const folder = mkdtempSync(path.join(tmpdir(), 'fanwire-readme-'));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(path.join(folder, 'client.mjs'), block('client.mjs', server));
  // Node.js before 22 has no WebSocket of its own.
  writeFileSync(path.join(folder, 'websocket.mjs'), "import W from 'ws'; globalThis.WebSocket ??= W;");
  symlinkSync(MODULES, path.join(folder, 'node_modules'));
  const child = inCharge(
    spawn(process.execPath, ['--import', './websocket.mjs', 'client.mjs'], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] }),
  );
  t.after(() => child.kill('SIGKILL'));
  let printed;
  createInterface({ input: child.stdout }).once('line', (line) => (printed = line));
  await publishUntil(server, () => printed, 'the message on the terminal');
  assert.equal(printed, "{ text: 'hello' }");
});
