// A growing answer in Chromium: by the published SDK and by the browser's own EventSource, in one page that is loaded again.
// In: pieces from a backend → out: what both readers of the page show.
// May use the page through chromium.js; the page has the SDK's build for browsers and no other code of ours.
// Readers on two nodes are in js/redis_growing.test.js; what the server keeps of an answer in docs/server-api.md.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { test } from 'node:test';

import { start } from '../server.js';
import { openPage } from './chromium.js';

const SDK = new URL('../node_modules/centrifuge/dist/centrifuge.js', import.meta.url);
const PIECES = 800;
const SETTINGS = {
  uni_sse: { enabled: true },
  client: { insecure: true, allowed_origins: ['*'] },
  channel: { without_namespace: { history_size: 100, history_ttl: '600s', force_recovery: true } },
};

test('a page that is loaded again in the middle shows the whole answer twice', async (t) => {
  const server = await start(SETTINGS);
  t.after(() => server.stop());
  const page = await openPage(t, await servePage(t, html(server)));
  let text = '';
  const append = async (data, isFinal) => {
    const request = { channel: 'answers', key: 'k', data, at: Buffer.byteLength(text), final: isFinal };
    await server.api('append', request);
    text += data;
  };
  const shown = (name) => `globalThis.shown?.${name}.text.length`;
  for (let n = 0; n < PIECES; n += 1) {
    await append(n % 9 ? 'token ' : '"é😀"\n');
    if (n !== PIECES / 2) continue;
    for (const name of ['sdk', 'events']) await page.until(`${shown(name)} > 1000`, 30_000);
    await page.call('Page.reload');
  }
  for (const name of ['sdk', 'events']) await page.until(`${shown(name)} > 3000`);
  await append('', true);
  for (const name of ['sdk', 'events']) {
    await page.until(`globalThis.shown?.${name}.isFinal`);
    assert.equal(await page.evaluate(`shown.${name}.text`), text);
  }
  assert.deepEqual([await page.evaluate('shown.loads'), page.faults], [2, []]);
});

async function servePage(t, text) {
  const server = createServer((request, response) => {
    const [type, body] = request.url === '/centrifuge.js' ? ['text/javascript', readFileSync(SDK)] : ['text/html', text];
    response.writeHead(200, { 'Content-Type': `${type}; charset=utf-8` }).end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${server.address().port}/`;
}

/** The page: the newest text of each reader. What was shown before a reload must be the beginning of what is shown after it. */
const html = (server) => `<!doctype html>
<meta charset="utf-8">
<link rel="icon" href="data:,">
<title>Growing answers</title>
<script src="/centrifuge.js"></script>
<script type="module">
  const loads = 1 + Number(sessionStorage.loads ?? 0);
  sessionStorage.loads = loads;
  globalThis.shown = { loads, sdk: { text: '', offset: 0 }, events: { text: '', offset: 0 } };
  function draw(name, { data, offset, tags }) {
    const reader = shown[name];
    if (offset <= reader.offset) return;
    const before = reader.text || (sessionStorage[name] ?? '');
    if (!data.startsWith(before)) console.error(name, 'shows', data.length, 'after', before.length);
    Object.assign(reader, { text: data, offset, isFinal: tags.final === 'true' });
    sessionStorage[name] = data;
  }
  const client = new Centrifuge(${JSON.stringify(server.websocket)});
  const answers = client.newSubscription('answers');
  answers.on('publication', (publication) => draw('sdk', publication));
  answers.on('subscribed', async ({ recovered }) => {
    if (recovered) return;
    const { publications } = await answers.history({ limit: 100 });
    publications.forEach((publication) => draw('sdk', publication));
  });
  answers.subscribe();
  client.connect();
  const request = { subs: { answers: { recover: true } } };
  const events = new EventSource('${server.http}/connection/uni_sse?cf_connect=' + encodeURIComponent(JSON.stringify(request)));
  events.addEventListener('unrecovered', ({ data }) => console.error(data));
  events.onmessage = ({ data }) => {
    const { connect, pub } = JSON.parse(data);
    const publications = connect?.subs?.answers?.publications ?? (pub ? [pub] : []);
    publications.forEach((publication) => draw('events', publication));
  };
</script>
`;
