// The demo page in a real browser, from the first `fanwire` without arguments to a burst of messages.
// In: a development server and a headless Chromium → out: what a person sees on the page.
// May use the page's visible elements by their ids; never its variables.
// The browser is driven by chromium.js; the page is crates/fanwire/assets/demo.html.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { start, startBare, token } from '../server.js';
import { openPage } from './chromium.js';

test('a newcomer publishes from the page and from the API and sees both arrive', async (t) => {
  const server = await startBare();
  t.after(() => server.stop());
  const page = await openPage(t, server.http);
  await page.until(`document.getElementById('state')?.dataset.state === 'connected'`, 30_000);

  await t.test('the connection negotiated permessage-deflate', async () => {
    const headers = Object.entries(await page.handshake());
    const find = ([name]) => name.toLowerCase() === 'sec-websocket-extensions';
    assert.match(headers.find(find)?.[1] ?? '', /permessage-deflate/);
  });

  await t.test('only the script of the page may run', async () => {
    const policy = (await fetch(server.http)).headers.get('content-security-policy');
    assert.match(policy, /^default-src 'none'; script-src 'nonce-[0-9a-f]{32}';/);
  });

  await t.test('before the first delivery there is no share of saved or added bytes', async () => {
    const value = (id) => `Number(document.getElementById('${id}').dataset.value)`;
    await page.until(`${value('payload')} > 0 && ${value('wire')} > ${value('payload')} && ${value('deliveries')} === 0`);
    const texts = `['saved', 'minute'].map((id) => document.getElementById(id).textContent)`;
    assert.deepEqual(await page.evaluate(texts), ['–', 'Last minute: quiet']);
  });

  await t.test('what is typed into the box arrives on the page', async () => {
    await page.type('message', 'hello from <b>the box</b> ☺');
    await page.press('publish');
    await page.until(shows('hello from <b>the box</b> ☺'));
    assert.equal(await page.evaluate(`document.querySelectorAll('#publications b').length`), 0);
    await page.until(`document.getElementById('message').value === ''`);
  });

  await t.test('what the API publishes arrives on the page', async () => {
    await server.api('publish', { channel: 'demo', data: { text: 'hello from the backend' } });
    await page.until(shows('hello from the backend'));
    const first = `document.querySelector('#publications li').textContent`;
    assert.match(await page.evaluate(first), /hello from the backend/, 'the newest is on top');
  });

  await t.test('another channel is heard instead after it was chosen', async () => {
    await page.type('channel', 'other');
    await page.evaluate(`document.getElementById('channel-form').requestSubmit()`);
    const joined = async () => (await server.api('channels', { pattern: 'other' })).channels.other;
    while (!(await joined())) await page.evaluate('document.readyState');
    await server.api('publish', { channel: 'demo', data: { text: 'not for this page' } });
    await server.api('publish', { channel: 'other', data: { price: 92.63 } });
    await page.until(shows('92.63'));
    assert.equal(await page.evaluate(shows('not for this page')), false);
  });

  await t.test('deliveries are publications, and replies are none', async () => {
    await page.until(`Number(document.getElementById('deliveries').dataset.value) === 3`, 30_000);
  });

  await t.test('another channel begins with an empty list, and broken JSON is published as text', async () => {
    await page.type('channel', 'third');
    await page.evaluate(`document.getElementById('channel-form').requestSubmit()`);
    await page.until(`document.querySelectorAll('#publications li').length === 0`);
    await page.until(`document.getElementById('notice').textContent === 'Subscribed to third.'`);
    await page.type('message', '{"price": 92.63');
    await page.press('publish');
    await page.until(shows('{"price": 92.63'));
    await page.until(`document.getElementById('notice').textContent.startsWith('That was not JSON')`);
  });

  await t.test('a row has its size, and what of it was on the wire', async () => {
    await page.until(`/^\\d+ B → \\d+ B$/.test(document.querySelector('#publications .size').textContent)`, 30_000);
  });

  await t.test('links lead to pages that are there', async () => {
    const paths = await page.evaluate(`[...document.querySelectorAll('footer a')].map((a) => a.getAttribute('href'))`);
    assert.ok(paths.includes('/metrics') && paths.includes('/health'), `${paths}`);
    for (const link of paths.filter((one) => one.startsWith('/'))) {
      assert.equal((await fetch(`${server.http}${link}`)).status, 200, link);
    }
  });

  await t.test('a burst shows that fewer bytes were sent than published', async () => {
    await page.press('burst');
    await page.until(`document.querySelectorAll('#publications li').length >= 50`, 30_000);
    await page.until(`Number(document.getElementById('saved').dataset.value) > 0`, 30_000);
    const [wire, payload] = await page.evaluate(
      `['wire', 'payload'].map((id) => Number(document.getElementById(id).dataset.value))`,
    );
    assert.ok(wire > 0 && wire < payload, `${wire} bytes on the wire for ${payload} of payload`);
  });

  await t.test('nothing is wider than the window at any width', async () => {
    for (const width of [320, 768, 1440]) {
      await page.call('Emulation.setDeviceMetricsOverride', { width, height: 900, deviceScaleFactor: 1, mobile: false });
      const [wide, inner] = await page.evaluate(`[document.documentElement.scrollWidth, innerWidth]`);
      assert.ok(wide <= inner, `${wide} of ${inner}`);
      const rights = await page.evaluate(`[...document.querySelectorAll('button, input')].map((one) => one.getBoundingClientRect().right)`);
      assert.ok(Math.max(...rights) <= inner, `${rights} of ${inner}`);
    }
  });

  assert.deepEqual(page.faults, []);
});

test('a server that wants a token gets one from the page', async (t) => {
  const server = await start({
    demo: { enabled: true },
    channel: { without_namespace: { allow_subscribe_for_client: true, allow_publish_for_subscriber: true } },
  });
  t.after(() => server.stop());
  const page = await openPage(t, `${server.http}/`);
  await page.until(`document.getElementById('state')?.dataset.state === 'disconnected'`, 30_000);
  assert.equal(await page.evaluate(`document.getElementById('token-form').hidden`), false);
  await page.type('token', 'forged');
  await page.evaluate(`document.getElementById('token-form').requestSubmit()`);
  await page.until(`document.getElementById('state').textContent.includes('3500')`);
  await page.type('token', token({ sub: '42' }));
  await page.evaluate(`document.getElementById('token-form').requestSubmit()`);
  await page.until(`document.getElementById('notice').textContent === 'Subscribed to demo.'`);
  assert.equal(await page.evaluate(`document.getElementById('token-form').hidden`), true);
  await page.type('message', 'with a token');
  await page.press('publish');
  await page.until(shows('with a token'));
});

test('the page connects to a configured server that lists no origins', async (t) => {
  const server = await start({
    demo: { enabled: true },
    client: { allow_anonymous_connect_without_token: true },
    channel: {
      without_namespace: {
        allow_subscribe_for_client: true,
        allow_subscribe_for_anonymous: true,
      },
    },
  });
  t.after(() => server.stop());
  const page = await openPage(t, `${server.http}/`);
  await page.until(`document.getElementById('notice')?.textContent === 'Subscribed to demo.'`, 30_000);
  await server.api('publish', { channel: 'demo', data: { text: 'to whoever reads' } });
  await page.until(shows('to whoever reads'));
  assert.deepEqual(page.faults, []);
});

/** An expression that is true when the list of publications shows `text`. */
function shows(text) {
  return `document.getElementById('publications').textContent.includes(${JSON.stringify(text)})`;
}
