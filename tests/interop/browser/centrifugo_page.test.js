// Centrifugo's own admin page, served from `admin.web_path`: a login, the status of the node, a call of the API.
// In: the page's files out of the Go module of Centrifugo, if `go mod download` has put them there → out: what an operator sees.
// May use Node's own modules to unpack the files; never changes them.
// Our own page is tested in admin.test.js.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { inflateRawSync } from 'node:zlib';

import { start } from '../server.js';
import { openPage } from './chromium.js';

const modules = process.env.GOMODCACHE ?? path.join(homedir(), 'go/pkg/mod');
const source = path.join(modules, 'github.com/centrifugal/centrifugo/v6@v6.9.1/internal/webui/statik.go');
const skip = existsSync(source) ? false : `${source} is missing: go mod download github.com/centrifugal/centrifugo/v6@v6.9.1`;
const ESCAPES = { n: 10, r: 13, t: 9, a: 7, b: 8, f: 12, v: 11 };

/** The bytes of the string literal in a Go file. */
function literal(go) {
  const begin = go.indexOf('data := "') + 'data := "'.length;
  const bytes = Buffer.alloc(go.length);
  let length = 0;
  for (let at = begin; go[at] !== 0x22; at += 1) {
    let byte = go[at];
    if (byte === 0x5c) {
      at += 1;
      const escape = String.fromCharCode(go[at]);
      byte = escape === 'x' ? Number.parseInt(go.toString('latin1', at + 1, at + 3), 16) : (ESCAPES[escape] ?? go[at]);
      if (escape === 'x') at += 2;
    }
    bytes[length] = byte;
    length += 1;
  }
  return bytes.subarray(0, length);
}

/** The files of a ZIP archive by name (APPNOTE 4.3.12). */
function unzipped(zip) {
  const end = zip.lastIndexOf(Buffer.from('PK\x05\x06'));
  let at = zip.readUInt32LE(end + 16);
  const files = new Map();
  for (let count = zip.readUInt16LE(end + 10); count > 0; count -= 1) {
    const [method, size] = [zip.readUInt16LE(at + 10), zip.readUInt32LE(at + 20)];
    const [name, extra, comment] = [28, 30, 32].map((offset) => zip.readUInt16LE(at + offset));
    const local = zip.readUInt32LE(at + 42);
    const from = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
    const packed = zip.subarray(from, from + size);
    files.set(zip.toString('utf8', at + 46, at + 46 + name), method === 8 ? inflateRawSync(packed) : packed);
    at += 46 + name + extra + comment;
  }
  return files;
}

function folderWithPage(t) {
  const folder = mkdtempSync(path.join(tmpdir(), 'fanwire-webui-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const files = unzipped(literal(readFileSync(source)));
  for (const [name, content] of files) {
    if (name.endsWith('/')) continue;
    const file = path.join(folder, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
  return folder;
}

test('the page of Centrifugo logs in, shows the node, and calls the API', { skip }, async (t) => {
  const admin = { enabled: true, password: 'grüße', secret: 'a-secret-of-32-bytes-or-a-few-more', web_path: folderWithPage(t) };
  const without_namespace = { history_size: 10, history_ttl: '60s' };
  const server = await start({ admin, channel: { without_namespace } });
  t.after(() => server.stop());
  const page = await openPage(t, `${server.http}/`);
  await page.until(`!!document.getElementById('password')`);
  const press = (text) => page.until(`(() => {
    const button = [...document.querySelectorAll('button, a, [role=option], [role=combobox]')].find((it) => it.innerText.trim().toLowerCase() === ${JSON.stringify(text)});
    if (!button || button.disabled) return false;
    button.click();
    return true;
  })()`);
  await page.type('password', 'grüße');
  await press('log in');
  const has = (text) => page.until(`document.body.innerText.includes(${JSON.stringify(text)})`);
  await has('NODES RUNNING');
  await has('Fanwire');
  await press('actions');
  await has('Execute server API command');
  const labelled = (text) => `[...document.querySelectorAll('label')].find((it) => it.innerText.startsWith('${text}')).htmlFor`;
  await page.type(await page.evaluate(labelled('Channel')), 'news');
  await page.evaluate(`document.querySelector('.cm-content').focus()`);
  await page.call('Input.insertText', { text: '{"from":"the page"}' });
  await press('publish');
  await has('"offset": 1');
  const { publications } = await server.api('history', { channel: 'news', limit: 1 });
  assert.deepEqual(publications[0].data, { from: 'the page' });
  assert.deepEqual(page.faults, []);
});
