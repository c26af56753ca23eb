// The programs of docs/backends.md, run as they stand there: each decides about the same chat.
// In: fenced blocks with a file name of the page → out: what clients with and without a session may do.
// May use npm centrifuge and ws, Python and Go, and PHP where it is installed; never a backend of its own.
// Other answers of backends are in proxies.test.js.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';

import { filesOf, program } from '../backends.js';
import { Log, check, startWith } from '../server.js';
import { ENCODINGS, connect, next, sdk, subscribe, withHeaders } from './clients.js';

const [JSON_SDK] = ENCODINGS;
const PAGE = filesOf('backends.md');
/** The only language of the page that the suites do not need otherwise. */
const HAS_PHP = spawnSync('php', ['--version']).status === 0;

for (const [name, config, port] of [
  ['backend.mjs', 'fanwire.yaml', 3000],
  ['backend.py', 'fanwire.yaml', 3000],
  ['backend.go', 'fanwire.yaml', 3000],
  ['grpc.mjs', 'grpc.yaml', 12000],
  ...(HAS_PHP ? [['index.php', 'fanwire.yaml', 3000]] : []),
]) {
  test(`the page: ${name} decides about a chat`, async (t) => {
    const { code, text } = await check(PAGE[config]);
    assert.ok(code === 0 && !text.includes('warning:'), text);
    const address = await program(t, name, PAGE[name]);
    const server = await startWith(PAGE[config].replaceAll(`127.0.0.1:${port}`, address));
    t.after(() => server.stop());
    const enter = (user) =>
      sdk(t, server, JSON_SDK, { websocket: withHeaders({ Cookie: `theme=dark; session=${user}` }) });

    for (const stranger of [enter('eve'), sdk(t, server, JSON_SDK)]) {
      const disconnected = next(stranger, 'disconnected');
      stranger.connect();
      const { code, reason } = await disconnected;
      assert.deepEqual([code, reason], [4501, 'unauthorized']);
    }

    const [ada, bob] = [enter('ada'), enter('bob')];
    const personal = new Log(ada, 'subscribed');
    await connect(ada);
    await connect(bob);
    assert.deepEqual((await personal.count(1)).map(({ channel }) => channel), ['personal:ada']);

    const { subscription: board } = await subscribe(ada, 'room:board');
    const { publications } = await subscribe(bob, 'room:board');
    const { clients } = await board.presence();
    const present = Object.values(clients).map(({ user, connInfo }) => [user, connInfo]);
    assert.deepEqual(present.sort(), [['ada', { name: 'Ada' }], ['bob', { name: 'Bob' }]]);
    const kitchen = ada.newSubscription('room:kitchen');
    const refused = next(kitchen, 'unsubscribed');
    kitchen.subscribe();
    const { code: denied, reason } = await refused;
    assert.deepEqual([denied, reason], [403, 'not a member of this room']);

    await board.publish({ text: 'hello' });
    const [{ data, info }] = await publications.count(1);
    assert.deepEqual(data, { text: 'hello', from: 'Ada' });
    assert.equal(info.user, 'ada');
    for (const data of [{ text: ' ' }, { text: 5 }, {}, 'text', 7, ['text']]) {
      await assert.rejects(board.publish(data), { code: 1001, message: 'the text is empty' });
    }
    await assert.rejects(ada.publish('room:kitchen', { text: 'hello' }), { code: 403 });
    assert.equal(publications.items.length, 1);

    assert.deepEqual((await ada.rpc('room_members', { room: 'room:board' })).data, { members: ['ada', 'bob'] });
    assert.ok(Math.abs((await ada.rpc('time')).data.unix - Date.now() / 1000) < 60);
    await assert.rejects(ada.rpc('nothing', {}), { code: 404, message: 'unknown method' });
    for (const room of ['room:kitchen', '__proto__', 1, ['room:board'], {}]) {
      await assert.rejects(ada.rpc('room_members', { room }), { code: 403, message: 'not a member of this room' });
    }
    await assert.rejects(ada.rpc('room_members'), { code: 403 });
  });
}
