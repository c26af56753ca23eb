// The pages of clients/js/README.md in Chromium as they stand there, from the packed package, offline and loaded again in the middle.
// In: publications of a backend → out: what a page shows: no text lost, none twice.
// May use the package out of its tarball, the SDK, React and esbuild from npm; never a line in a page that is not in the README.
// What a store does in detail is in js/stores.test.js.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';

import { build } from 'esbuild';

import { ENCODINGS, sdk } from '../js/clients.js';
import { start } from '../server.js';
import { INSTALLED, NODE_MODULES, PACKAGE, Site, folder } from './site.js';

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
  const site = await Site.serve(t, CHAT, await start(SETTINGS));
  await site.disturbed((n) => site.publish('room', { text: lines[n] }));
  await site.page.until(`${items}.at(-1) === 'line 59'`);
  assert.deepEqual(await site.page.evaluate(items), lines);
  await site.page.type('text', 'a line of the page');
  await site.page.evaluate(`document.getElementById('text').dispatchEvent(new Event('change'))`);
  await site.page.until(`${items}.at(-1) === 'a line of the page'`);
  assert.deepEqual(await site.page.evaluate(items), [...lines, 'a line of the page']);
});

test('the answer has its whole text', async (t) => {
  const site = await Site.serve(t, ANSWER, await start(SETTINGS));
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
  const site = await Site.serve(t, PRICES, await start(SETTINGS));
  await site.disturbed((n) => site.publish('prices', { symbol: `S${n % 3}`, price: n }));
  await site.page.until(`${text('prices')}?.includes('S2 59')`);
  assert.equal(await site.page.evaluate(`${text('prices')}.split('\\n').sort().join(', ')`), 'S0 57, S1 58, S2 59');
});

test('members come and go, and somebody is typing', async (t) => {
  const site = await Site.serve(t, PEOPLE, await start(SETTINGS));
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
  const script = outputFiles[0].text.replaceAll('</script', '<\\/script');
  const site = await Site.serve(t, `<script type="module">${script}</script>`, await start(SETTINGS));
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
