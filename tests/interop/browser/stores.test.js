// The pages of clients/js/README.md in Chromium as they stand there, from the packed package, offline and loaded again in the middle.
// In: publications of a backend → out: what a page shows: no text lost, none twice.
// May use the package out of its tarball, the SDK, React and esbuild from npm; never a line in a page that is not in the README.
// What a store does in detail is in js/stores.test.js.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

import { build } from 'esbuild';

import { ENCODINGS, sdk } from '../js/clients.js';
import { start } from '../server.js';
import { openPage } from './chromium.js';

const PACKAGE = fileURLToPath(new URL('../../../clients/js/', import.meta.url));
const NODE_MODULES = fileURLToPath(new URL('../node_modules/', import.meta.url));
const README = readFileSync(path.join(PACKAGE, 'README.md'), 'utf8');
const [CHAT, ANSWER, PRICES, PEOPLE] = [...README.matchAll(/^```html\n(.*?)^```$/gms)].map(([, page]) => page);
const [, REACT] = /^```jsx\n(.*?)^```$/ms.exec(README);
const SETTINGS = {
  client: { insecure: true, allowed_origins: ['*'] },
  channel: {
    without_namespace: {
      presence: true,
      join_leave: true,
      force_push_join_leave: true,
      history_size: 1000,
      history_ttl: '60s',
      force_recovery: true,
    },
    namespaces: [{ name: 'typing' }],
  },
};

const folder = mkdtempSync(path.join(tmpdir(), 'fanwire-stores-'));
after(() => rmSync(folder, { recursive: true }));
const npm = (...words) => execFileSync('npm', [...words, '--offline', '--no-audit', '--no-fund'], { cwd: PACKAGE, encoding: 'utf8' });
const tarball = npm('pack', '--silent', '--pack-destination', folder).trim();
npm('install', '--silent', '--no-save', '--legacy-peer-deps', '--prefix', folder, path.join(folder, tarball));
const INSTALLED = path.join(folder, 'node_modules/fanwire-stores/src');

const IMPORTS = { 'fanwire-stores': '/fanwire-stores/index.js', centrifuge: '/centrifuge/index.mjs' };
const FOLDERS = { 'fanwire-stores': INSTALLED, centrifuge: path.join(NODE_MODULES, 'centrifuge/build') };

/** A site with one page, whose WebSockets go through it to a server: it can be cut off from there. */
class Site {
  static async serve(t, html) {
    const server = await start(SETTINGS);
    t.after(() => server.stop());
    const site = Object.assign(new Site(), { server, sockets: new Set(), isOffline: false });
    const http = createServer((request, response) => {
      const [, name, file] = request.url.split('/');
      const script = FOLDERS[name] && path.join(FOLDERS[name], path.basename(file));
      const map = `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><script type="importmap">${JSON.stringify({ imports: IMPORTS })}</script>`;
      response.setHeader('Content-Type', script ? 'text/javascript' : 'text/html');
      response.end(script ? readFileSync(script) : `${map}<body>${html}`);
    });
    http.on('upgrade', (request, socket, head) => site.connect(request, socket, head));
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    t.after(() => {
      site.goOffline();
      http.close();
      http.closeAllConnections();
    });
    site.page = await openPage(t, `http://127.0.0.1:${http.address().port}/`);
    return site;
  }

  connect({ url, rawHeaders }, socket, head) {
    if (this.isOffline) return socket.destroy();
    const [host, port] = this.server.host.split(':');
    const upstream = net.connect(port, host);
    const headers = Array.from({ length: rawHeaders.length / 2 }, (_, n) => `${rawHeaders[2 * n]}: ${rawHeaders[2 * n + 1]}\r\n`);
    upstream.write(`GET ${url} HTTP/1.1\r\n${headers.join('')}\r\n`);
    upstream.write(head);
    socket.pipe(upstream).pipe(socket);
    for (const one of [socket, upstream]) {
      this.sockets.add(one);
      one.on('error', () => {}).on('close', () => [socket, upstream].forEach((end) => end.destroy()));
    }
  }

  goOffline() {
    this.isOffline = true;
    for (const socket of this.sockets) socket.destroy();
    this.sockets.clear();
  }

  goOnline() {
    this.isOffline = false;
  }

  /** Runs `step` with 0 to 59: the page is offline for 20 of them, and loaded again after 50. */
  async disturbed(step) {
    for (let n = 0; n < 60; n += 1) {
      await step(n);
      if (n === 20) this.goOffline();
      if (n === 40) this.goOnline();
      if (n === 50) await this.page.call('Page.reload');
    }
  }

  publish(channel, data) {
    return this.server.api('publish', { channel, data });
  }
}

const text = (id) => `document.getElementById('${id}')?.textContent`;
const items = `[...document.querySelectorAll('li')].map((item) => item.textContent)`;
const lines = Array.from({ length: 60 }, (_, n) => `line ${n}`);

/** A client that writes without the page. */
function person(t, site) {
  const client = sdk(t, site.server, ENCODINGS[0]);
  client.connect();
  return client;
}

test('the package is small and its pages are short', () => {
  const files = readdirSync(INSTALLED).filter((file) => file.endsWith('.js'));
  const bytes = gzipSync(files.map((file) => readFileSync(path.join(INSTALLED, file))).join('')).length;
  assert.ok(bytes <= 6 * 1024, `${bytes} bytes compressed`);
  for (const page of [CHAT, ANSWER, PRICES, PEOPLE, REACT]) assert.ok(page.trim().split('\n').length <= 15, page);
});

test('the chat has each message once', async (t) => {
  const site = await Site.serve(t, CHAT);
  await site.disturbed((n) => site.publish('room', { text: lines[n] }));
  await site.page.until(`${items}.at(-1) === 'line 59'`);
  assert.deepEqual(await site.page.evaluate(items), lines);
  await site.page.type('text', 'a line of the page');
  await site.page.evaluate(`document.getElementById('text').dispatchEvent(new Event('change'))`);
  await site.page.until(`${items}.at(-1) === 'a line of the page'`);
  assert.deepEqual(await site.page.evaluate(items), [...lines, 'a line of the page']);
});

test('the answer has its whole text', async (t) => {
  const site = await Site.serve(t, ANSWER);
  let answer = '';
  const append = async (data, final = false) => {
    await site.server.api('append', { channel: 'answers', key: 'a', data, at: Buffer.byteLength(answer), final });
    answer += data;
  };
  await site.disturbed((n) => append(`wörd ${n} 😀 `));
  await append('', true);
  await site.page.until(`!${text('answer')}?.endsWith('…') && ${text('answer')}.length > 100`);
  assert.equal(await site.page.evaluate(text('answer')), answer);
});

test('the prices are the newest ones', async (t) => {
  const site = await Site.serve(t, PRICES);
  await site.disturbed((n) => site.publish('prices', { symbol: `S${n % 3}`, price: n }));
  await site.page.until(`${text('prices')}?.includes('S2 59')`);
  assert.equal(await site.page.evaluate(`${text('prices')}.split('\\n').sort().join(', ')`), 'S0 57, S1 58, S2 59');
});

test('members come and go, and somebody is typing', async (t) => {
  const site = await Site.serve(t, PEOPLE);
  await site.page.until(`${text('here')} === '1 here'`);
  const other = person(t, site);
  const subscription = other.newSubscription('room');
  subscription.subscribe();
  await site.page.until(`${text('here')} === '2 here'`);
  site.goOffline();
  subscription.unsubscribe();
  site.goOnline();
  await site.page.until(`${text('here')} === '1 here'`);
  await other.publish('typing:room', {});
  await site.page.until(`${text('writers')} === 'somebody is typing'`);
  await site.page.until(`${text('writers')} === ''`);
});

test('the chat with React has each message once, and shows its connection', async (t) => {
  const options = { bundle: true, write: false, jsx: 'automatic', define: { 'process.env.NODE_ENV': '"production"' } };
  const stdin = { contents: REACT, loader: 'jsx', resolveDir: folder };
  const { outputFiles } = await build({ ...options, stdin, nodePaths: [NODE_MODULES] });
  const site = await Site.serve(t, `<script type="module">${outputFiles[0].text.replaceAll('</script', '<\\/script')}</script>`);
  const state = `document.querySelector('p')?.textContent`;
  await site.page.until(`${state} === 'connected'`);
  await site.disturbed(async (n) => {
    await site.publish('room', { text: lines[n] });
    if (n === 21) await site.page.until(`${state} === 'connecting'`);
  });
  await site.page.until(`${items}.at(-1) === 'line 59'`);
  assert.deepEqual(await site.page.evaluate(items), lines);
  assert.equal(await site.page.evaluate(state), 'connected');
});
