// The look of the admin page: phones and desktops, light and dark, without faults of accessibility.
// In: a server with busy clients, a headless Chromium, npm axe-core → out: no serious finding, no page wider than the screen.
// May use the page's visible elements; never its variables.
// FANWIRE_IMAGES names a folder for screenshots, such as docs/images; what the page does is tested in admin.test.js.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { test } from 'node:test';

import { ENCODINGS, connect, sdk, subscribe } from '../js/clients.js';
import { start, token } from '../server.js';
import { openPage } from './chromium.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const SETTINGS = {
  node: { name: 'fra-1' },
  admin: { enabled: true, insecure: true },
  channel: { without_namespace: { presence: true, history_size: 100, history_ttl: '60s', allow_subscribe_for_client: true } },
};
const VIEWS = ['nodes', 'channels', 'channels/news', 'hot', 'users/42', 'config', 'api'];
/** An element of each view that is there when its content is. */
const READY = {
  nodes: '.tile b', channels: 'tbody', 'channels/news': 'tbody', hot: 'tbody', 'users/42': 'details tbody', config: 'tbody', api: 'textarea',
};

async function busy(t, settings = {}) {
  const server = await start({ ...SETTINGS, ...settings });
  t.after(() => server.stop());
  for (const user of ['42', '42', '7']) {
    const client = sdk(t, server, ENCODINGS[0], { token: token({ sub: user }), name: 'dashboard', version: '2.1' });
    await connect(client);
    await subscribe(client, 'news');
    await assert.rejects(client.publish('news', 1));
  }
  await server.api('hot_lists');
  for (let number = 0; number < 40; number += 1) await server.api('publish', { channel: number % 4 ? 'news' : 'scores', data: { number } });
  return server;
}

test('the admin page fits phones and desktops, light and dark, and everybody can use it', async (t) => {
  const server = await busy(t);
  const page = await openPage(t, `${server.http}/#nodes`);
  await page.until(`document.querySelector('nav a')`);
  for (const width of [360, 768, 1440]) {
    for (const scheme of ['light', 'dark']) {
      await page.call('Emulation.setDeviceMetricsOverride', { width, height: 900, deviceScaleFactor: 1, mobile: width < 500 });
      await page.call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
      for (const view of VIEWS) {
        await page.evaluate(`location.hash = ${JSON.stringify(view)}`);
        await page.until(`document.querySelector('main ${READY[view]}')`);
        await look(page, `${view} at ${width}, ${scheme}`);
        const name = `admin-${view.split('/')[0]}-${width}${scheme === 'dark' ? '-dark' : ''}.png`;
        if (process.env.FANWIRE_IMAGES && IMAGES.includes(name)) {
          const { data } = await page.call('Page.captureScreenshot', { format: 'png' });
          writeFileSync(path.join(process.env.FANWIRE_IMAGES, name), Buffer.from(data, 'base64'));
        }
      }
    }
  }
  assert.deepEqual(page.faults, []);
});

test('no long name makes a phone scroll sideways, and tabs wrap', async (t) => {
  const name = `fanwire-7d9f8b6c5d-x2x4k.${'production.'.repeat(6)}internal_8000`;
  const server = await busy(t, { node: { name } });
  const wrong = sdk(t, server, ENCODINGS[0], { token: token({ sub: '42' }, { secret: 'another-secret' }), name: 'n'.repeat(64) });
  wrong.connect();
  const page = await openPage(t, `${server.http}/#nodes`);
  await page.until(`document.querySelector('nav a')`);
  await page.call('Emulation.setDeviceMetricsOverride', { width: 360, height: 900, deviceScaleFactor: 1, mobile: true });
  for (const view of VIEWS) {
    await page.evaluate(`location.hash = ${JSON.stringify(view)}`);
    await page.until(`document.querySelector('main ${READY[view]}')`);
    const outside = await page.evaluate(`[...document.querySelectorAll('header *, main *')]
      .filter((it) => !it.closest('.scroll, pre') && it.getBoundingClientRect().right > innerWidth + 1).map((it) => it.outerHTML.slice(0, 200))`);
    assert.deepEqual(outside, [], view);
    // Text that overflows its element counts only in the width that can be scrolled to.
    const wide = await page.evaluate(`[...document.querySelectorAll('main p, main summary, main h2, nav')]
      .filter((it) => it.scrollWidth > it.clientWidth + 1).map((it) => it.textContent)`);
    assert.deepEqual(wide, [], view);
  }
});

/** The page is not wider than the screen, and axe finds nothing serious. */
async function look(page, where) {
  const [needed, given] = await page.evaluate('[document.documentElement.scrollWidth, innerWidth]');
  assert.ok(needed <= given, `${where}: ${needed} pixels of ${given}`);
  if (!(await page.evaluate('Boolean(window.axe)'))) await page.evaluate(`${AXE}; true`);
  const { passes, violations } = await page.evaluate(`axe.run(document, { resultTypes: ['violations'] })`);
  assert.ok(passes.length > 10, `${where}: axe had ${passes.length} rules to check`);
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  const said = serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).slice(0, 3).join(' | ')}`);
  assert.deepEqual(said, [], where);
}

/** The screenshots that docs/admin.md shows. */
const IMAGES = ['admin-hot-1440.png', 'admin-nodes-768-dark.png', 'admin-users-360.png'];
