// The page of docs/recipes/outbox.md in Chromium as it stands there: texts that are written offline, or whose answer is lost.
// In: texts of a user → out: what the page shows and the history of the channel has: each text once, in order.
// May use the package for pages and the SDK; never a line in the page that is not in the recipe.
// What the server does with a key that is used again is tested in crates/node.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { eventually, startWith, token } from '../server.js';
import { Site } from './site.js';

const RECIPE = readFileSync(new URL('../../../docs/recipes/outbox.md', import.meta.url), 'utf8');
const FILES = Object.fromEntries([...RECIPE.matchAll(/^```\w+ (\S+)\n(.*?)^```$/gms)].map(([, name, block]) => [name, block]));
const SECRET = 'a secret of this test, long enough';
const KEY = 'key';
const items = `[...document.querySelectorAll('li')].map((item) => item.textContent)`;
const unsent = `document.getElementById('unsent')?.textContent`;

async function write(site, text) {
  await site.page.type('text', text);
  await site.page.evaluate(`document.getElementById('text').dispatchEvent(new Event('change'))`);
  await site.page.until(`document.getElementById('text').value === ''`);
}

async function published(site) {
  const { publications } = await site.server.api('history', { channel: 'chat:room', limit: 100 });
  return publications.map(({ data }) => data.text);
}

test('texts that are written offline arrive once, also when an answer was lost', async (t) => {
  const environment = { FANWIRE_CLIENT_TOKEN_HMAC_SECRET_KEY: SECRET, FANWIRE_HTTP_API_KEY: KEY };
  const server = await startWith(FILES['fanwire.yaml'], KEY, environment);
  const files = { '/outbox.js': FILES['outbox.js'], '/token': token({ sub: '42' }, { secret: SECRET }) };
  const site = await Site.serve(t, FILES['page.html'], server, files);
  await site.page.until(`typeof document.getElementById('text')?.onchange === 'function'`);
  await write(site, 'online');
  await site.page.until(`${items}.at(-1) === 'online' && ${unsent} === ''`);

  site.loseAnswers();
  await write(site, 'published, but the page does not know');
  await eventually(async () => (await published(site)).length === 2, 'the publication');
  site.goOffline();
  await write(site, 'in a tunnel');
  await write(site, 'still there');
  await site.page.until(`${unsent} === '3'`);
  await site.page.call('Page.reload');
  await site.page.until(`${unsent} === '3'`);
  assert.equal((await published(site)).length, 2);

  site.goOnline();
  const texts = ['online', 'published, but the page does not know', 'in a tunnel', 'still there'];
  await site.page.until(`${items}.at(-1) === 'still there' && ${unsent} === ''`);
  assert.deepEqual(await site.page.evaluate(items), texts);
  assert.deepEqual(await published(site), texts);
});
