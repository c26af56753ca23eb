// The example of a world in two real browsers, which see each other move.
// In: the program examples/world and two headless Chromiums → out: what each page has of the other one's player.
// May use `window.world`, which the page offers to its test, and its panel.
// The browser is driven by chromium.js; the page is examples/world/assets/index.html.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { inCharge } from '../children.js';
import { within } from '../server.js';
import { openPage } from './chromium.js';

const PROGRAM =
  process.env.FANWIRE_WORLD ?? fileURLToPath(new URL('../../../target/debug/world', import.meta.url));

test('two pages see each other move', async (t) => {
  const child = inCharge(spawn(PROGRAM, ['0'], { stdio: ['ignore', 'pipe', 'inherit'] }));
  t.after(async () => {
    const exit = once(child, 'exit');
    child.kill('SIGTERM');
    await within(exit, 'end of the example');
  });
  const [line] = await within(once(createInterface({ input: child.stdout }), 'line'), 'the address');
  const url = line.match(/http:\S+/)[0];
  const [ada, bob] = await Promise.all([openPage(t, url), openPage(t, url)]);
  const ids = await Promise.all([ada, bob].map((page) => page.until('window.world?.world.you', 30_000)));
  assert.notEqual(ids[0], ids[1]);

  await t.test('each sees the other and many bots', async () => {
    await ada.until(`window.world.objects.has(${ids[1]})`);
    await bob.until(`window.world.objects.has(${ids[0]}) && window.world.objects.size > 50`);
  });

  await t.test('a key that is pressed moves the player on both pages', async () => {
    const x = `window.world.objects.get(${ids[0]})?.x`;
    const before = await bob.evaluate(x);
    const key = (type) => ada.call('Input.dispatchKeyEvent', { type, code: 'ArrowRight', key: 'ArrowRight' });
    await key('keyDown');
    await bob.until(`${x} > ${before} + 100`);
    await ada.until(`window.world.world.own?.x > ${before} + 100`);
    await key('keyUp');
  });

  await t.test('a player that walks far away enters and leaves tiles', async () => {
    const tiles = await ada.evaluate('[...window.world.tiles].sort().join()');
    await ada.evaluate(`dispatchEvent(new KeyboardEvent('keydown', { code: 'ArrowDown' }))`);
    await ada.until(`[...window.world.tiles].sort().join() !== ${JSON.stringify(tiles)}`);
    await ada.until(`![...window.world.objects.values()].some(({ tile }) => !window.world.tiles.has(tile))`);
  });

  await t.test('the panel shows players, ticks and what compression saves', async () => {
    await ada.until(`document.getElementById('players').textContent === '2'`);
    await ada.until(`/^[0-9]+ %$/.test(document.getElementById('saved').textContent)`);
  });

  await t.test('a player whose page closes is gone', async () => {
    await bob.call('Page.navigate', { url: 'about:blank' });
    await ada.until(`!window.world.objects.has(${ids[1]})`);
  });
  assert.deepEqual(ada.faults, []);
});
