// The admin page in a real browser, and what it calls, from a wrong password to a blocked user.
// In: a server with clients of npm centrifuge, and a headless Chromium → out: what an operator sees and does.
// May use the page's visible elements; never its variables.
// The browser is driven by chromium.js; the page is crates/fanwire/assets/admin.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { ENCODINGS, sdk } from '../js/clients.js';
import { freePort } from '../ports.js';
import { PATIENCE_MS, eventually, refusal, start, token } from '../server.js';
import { openPage } from './chromium.js';

const ADMIN = { enabled: true, password: 'grüße', read_only_password: 'schau', secret: 'a-secret-of-32-bytes-or-a-few-more' };
const EVIL = '<img src=x onerror="document.title=1">';
const SETTINGS = {
  admin: ADMIN,
  node: { name: EVIL },
  channel: { without_namespace: { presence: true, history_size: 10, history_ttl: '60s', allow_subscribe_for_client: true } },
};

async function served(t, settings = {}) {
  const server = await start({ ...SETTINGS, ...settings });
  t.after(() => server.stop());
  return server;
}

/** The password as npm centrifuge's admin page sends it (multipart), or as a form. */
const auth = (server, password, form = new FormData()) => {
  form.append('password', password);
  return fetch(`${server.http}/admin/auth`, { method: 'POST', body: form });
};

const call = (server, body, login) =>
  fetch(`${server.http}/admin/api`, { method: 'POST', headers: login ? { Authorization: login } : {}, body });

async function client(t, server, user) {
  const one = sdk(t, server, ENCODINGS[0], { token: token({ sub: user }), name: EVIL, version: EVIL });
  const subscription = one.newSubscription(EVIL);
  subscription.subscribe();
  one.connect();
  await subscription.ready(PATIENCE_MS);
  return one;
}

test('a password gives a token, and a token the API', async (t) => {
  const server = await served(t);
  const init = await fetch(`${server.http}/admin/init`);
  assert.deepEqual(await init.json(), { insecure: false, edition: 'oss', authenticated: false, read_only: false });
  for (const wrong of ['', 'Grüße', 'grüße ']) assert.equal((await auth(server, wrong)).status, 400);
  assert.equal((await fetch(`${server.http}/admin/auth`, { method: 'POST', body: '{}' })).status, 400);
  const asForm = await auth(server, 'grüße', new URLSearchParams());
  const asMultipart = await auth(server, 'grüße');
  for (const answer of [asForm, asMultipart]) {
    const { token: login } = await answer.json();
    const info = await call(server, '{"method":"info","params":{}}\n{"id":2,"method":"publish","params":{"channel":"a","data":1}}', `Token ${login}`);
    const [first, second] = (await info.text()).split('\n').map((line) => JSON.parse(line));
    assert.equal(first.result.nodes.length, 1);
    assert.equal(second.id, 2);
  }
  for (const wrong of [undefined, 'token', 'token ', 'token x.y', 'Bearer x']) assert.equal((await call(server, '{}', wrong)).status, 401);
  assert.equal((await call(server, '{"method":', `token ${(await (await auth(server, 'grüße')).json()).token}`)).status, 400);
});

test('the password for reading changes nothing', async (t) => {
  const server = await served(t);
  const { token: login } = await (await auth(server, 'schau')).json();
  const reply = async (method, params) => JSON.parse(await (await call(server, JSON.stringify({ method, params }), `token ${login}`)).text());
  for (const method of ['channels', 'node_config', 'dump']) assert.ok((await reply(method, {})).result, method);
  for (const [method, params] of [['publish', { channel: 'a', data: 1 }], ['disconnect', { user: '1' }], ['block_user', { user: '1' }], ['history_remove', { channel: 'a' }], ['debug_for', { users: ['1'] }]]) {
    assert.equal((await reply(method, params)).error.code, 108, method);
  }
});

test('a login of a server with another secret is none, and no namespace is a tag', async (t) => {
  const [one, other] = [await served(t), await served(t, { admin: { ...ADMIN, secret: 'another-secret-of-32-bytes-or-more!' } })];
  const { token: login } = await (await auth(one, 'grüße')).json();
  assert.equal((await call(one, '{"method":"info","params":{}}', `token ${login}`)).status, 200);
  assert.equal((await call(other, '{"method":"info","params":{}}', `token ${login}`)).status, 401);
  const { code, text } = await refusal({ channel: { namespaces: [{ name: '<script>' }] } });
  assert.equal(code, 1);
  assert.match(text, /channel.namespaces\[0\].name is "<script>", expected two or more of the characters/);
});

test('an address with wrong passwords has to wait', async (t) => {
  const server = await served(t);
  const answers = [];
  for (let guess = 0; guess < 50; guess += 1) answers.push((await auth(server, `guess ${guess}`)).status);
  assert.ok(answers.filter((status) => status === 429).length > 30, answers.join(' '));
  const late = await eventually(async () => {
    const answer = await auth(server, 'grüße');
    return answer.status === 429 && answer;
  }, 'refusal');
  assert.match(late.headers.get('retry-after'), /^\d+$/);
});

test('another page is served from a folder, and nothing above it', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'fanwire-page-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(path.join(folder, 'index.html'), 'index');
  writeFileSync(path.join(folder, 'app.js'), 'script');
  const server = await served(t, { admin: { ...ADMIN, web_path: folder, handler_prefix: '/ops' } });
  const get = async (where) => (await fetch(server.http + where)).text();
  assert.equal(await get('/ops/'), 'index');
  assert.equal(await get('/ops/app.js'), 'script');
  assert.equal(await get('/ops/some/route'), 'index');
  assert.equal(await get('/ops/..%2f..%2fetc/passwd'), 'index');
  assert.equal((await fetch(`${server.http}/ops/admin/init`)).status, 200);
});

test('with an internal port the page is there, and not among the clients', async (t) => {
  const port = await freePort();
  const server = await served(t, { http_server: { internal_port: port } });
  assert.equal((await fetch(`${server.http}/admin/init`)).status, 404);
  assert.equal((await fetch(`http://127.0.0.1:${port}/admin/init`)).status, 200);
});

test('a user with many connections has pages, and buttons that are off look so', async (t) => {
  const server = await served(t);
  const all = Array.from({ length: 203 }, () => sdk(t, server, ENCODINGS[0], { token: token({ sub: 'many' }) }));
  await Promise.all(all.map(async (one) => (one.connect(), one.ready(PATIENCE_MS))));
  const page = await openPage(t, `${server.http}/#users/many`);
  await page.until(`document.querySelector('[type=password]')`);
  await page.evaluate(`document.querySelector('[name=password]').value = 'schau'`);
  await page.evaluate(`document.querySelector('button.main').click()`);
  await page.until(`document.body.innerText.includes('200 connections on this page')`);
  const looks = await page.evaluate(`[...document.querySelectorAll('button')].filter((it) => it.textContent.match(/^(Block|Find)$/)).map((it) => [it.textContent, it.disabled, getComputedStyle(it).opacity < 1])`);
  assert.deepEqual(looks, [['Find', false, false], ['Block', true, true]]);
  await page.evaluate(`[...document.querySelectorAll('button')].find((it) => it.textContent === 'Next page').click()`);
  await page.until(`document.body.innerText.includes('3 connections on this page')`);
});

test('an operator logs in, finds a channel and a user, and acts', async (t) => {
  const server = await served(t);
  const victim = await client(t, server, EVIL);
  await client(t, server, 'other');
  await server.api('publish', { channel: EVIL, data: { text: EVIL } });
  const page = await openPage(t, `${server.http}/`);
  const has = (text) => page.until(`document.body.innerText.includes(${JSON.stringify(text)})`);
  const press = (text) => page.evaluate(`[...document.querySelectorAll('button, nav a')].find((it) => it.textContent === ${JSON.stringify(text)}).click()`);
  const fill = (name, text) => page.evaluate(`document.querySelector('[name=${name}]').value = ${JSON.stringify(text)}`);
  await page.evaluate('window.confirm = () => true');

  await t.test('a wrong password is refused in words', async () => {
    await page.until(`document.querySelector('[type=password]')`);
    await fill('password', 'wrong');
    await press('Log in');
    await has('The password is wrong');
    await fill('password', 'grüße');
    await press('Log in');
  });
  await t.test('the nodes have figures', async () => {
    await has('Deliveries a second');
    await page.until(`document.querySelector('.tile b').textContent === '2'`);
  });
  await t.test('channels are listed, and opened', async () => {
    await press('Channels');
    await has(EVIL);
    await press(EVIL);
    await has('2 clients of 2 users');
    await has('History: top 1');
  });
  await t.test('names and data of strangers are text', async () => {
    assert.equal(await page.evaluate(`document.querySelectorAll('img').length`), 0);
    assert.equal(await page.evaluate('document.title'), 'Fanwire');
  });
  await t.test('a history is removed', async () => {
    await press('Remove history');
    await has('No publication is stored.');
  });
  await t.test('a user is found, and blocked', async () => {
    await press('Users');
    await page.until(`document.querySelector('[name=user]')`);
    await fill('user', EVIL);
    await press('Find');
    await has('1 connections');
    const heads = await page.evaluate(`[...document.querySelectorAll('main th')].map((it) => it.textContent).slice(0, 3)`);
    assert.deepEqual(heads, ['Address', 'Node', 'Since']);
    await has('127.0.0.1');
    await has('What happened');
    await page.until(`document.querySelector('details tbody')?.innerText.includes('subscribe')`);
    await press('Block');
    await eventually(() => victim.state === 'disconnected', 'the end of the connection');
    await has('0 connections');
    await has('the server API blocked the user');
    await press('Unblock');
    await has('Unblock: done');
  });
  await t.test('what causes the most work is listed', async () => {
    await press('Hot');
    await has('Users by connections');
    await page.until(`[...document.querySelectorAll('td button')].some((it) => it.textContent === 'other')`);
    assert.equal(await page.evaluate(`document.querySelectorAll('img').length`), 0);
  });
  await t.test('the values in force are shown without secrets, and that the file differs', async () => {
    await press('Config');
    await has('It runs with what its file and its variables say.');
    await has('channel.without_namespace.history_size');
    assert.ok(!(await page.evaluate('document.body.innerText')).includes(ADMIN.secret));
    const file = path.join(server.folder, 'config.json');
    const settings = JSON.parse(readFileSync(file, 'utf8'));
    settings.channel.without_namespace.history_size = 11;
    writeFileSync(file, JSON.stringify(settings));
    await press('Read again');
    await has('A reload (SIGHUP) would change: channel.without_namespace.history_size');
  });
  await t.test('a method is called, and its curl line is shown', async () => {
    await press('API');
    await page.until(`document.querySelector('[name=params]').value.includes('hello')`);
    await page.evaluate(`document.querySelector('[name=params]').value = '{"channel":"it\\'s","data":1}'`);
    await page.evaluate(`document.querySelector('[name=params]').dispatchEvent(new Event('input'))`);
    await has(String.raw`it'\''s`);
    await press('Call');
    await page.until(`document.getElementById('answer').textContent.includes('offset')`);
  });
  await t.test('the page sends no request to other hosts, and reports no fault', async () => {
    const foreign = page.events.filter(({ method, params }) => method === 'Network.requestWillBeSent' && !/^(about|data):/.test(params.request.url) && !params.request.url.startsWith(server.http));
    assert.deepEqual(foreign, []);
    assert.deepEqual(page.faults, []);
  });
});
