// Who may come in: limits of connections, users named by a gateway, anonymous users, other audiences.
// In: servers with one limit each → out: the status, the close code or the error a client meets.
// May use raw clients; starts its own server per test.
// Permissions of channels are tested in sdk.test.js and beside their code.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { start, token } from '../server.js';
import { raw } from './clients.js';

test('a connection over client.connection_limit is refused with 503', async (t) => {
  const server = await served(t, { client: { insecure: true, connection_limit: 2 } });
  const clients = [await raw(t, server), await raw(t, server)];
  await assert.rejects(raw(t, server), /503/);
  for (const client of clients) assert.ok((await client.connect()).connect);
});

test('connections over client.connection_rate_limit are refused with 503', async (t) => {
  const server = await served(t, { client: { insecure: true, connection_rate_limit: 3 } });
  const attempts = Array.from({ length: 20 }, () => raw(t, server));
  const results = await Promise.allSettled(attempts);
  const refused = results.filter(({ status }) => status === 'rejected');
  assert.ok(refused.length >= 14, `${refused.length} of 20 were refused`);
  for (const { reason } of refused) assert.match(reason.message, /503/);
});

test('a user over client.user_connection_limit is disconnected with 3504', async (t) => {
  const server = await served(t, { client: { user_connection_limit: 1 } });
  const [first, second, other] = [await raw(t, server), await raw(t, server), await raw(t, server)];
  assert.ok((await first.connect({ token: token({ sub: '42' }) })).connect);
  second.send({ id: 1, connect: { token: token({ sub: '42' }) } });
  assert.deepEqual(await second.closed(), { code: 3504, reason: 'connection limit' });
  assert.ok((await other.connect({ token: token({ sub: '43' }) })).connect);
});

test('a trusted gateway names the user in client.user_id_http_header', async (t) => {
  const server = await served(t, { client: { user_id_http_header: 'X-User-Id' } });
  const named = await raw(t, server, { headers: { 'X-User-Id': '42' } });
  assert.ok((await named.connect()).connect);
  for (const headers of [{}, { 'X-User-Id': '' }, { 'X-User-Id': ['41', '42'] }]) {
    const unnamed = await raw(t, server, { headers });
    unnamed.send({ id: 1, connect: {} });
    assert.equal((await unnamed.closed()).code, 3501, JSON.stringify(headers));
  }
});

test('anonymous users come in where allowed, but not with a token where that is disallowed', async (t) => {
  const client = {
    allow_anonymous_connect_without_token: true,
    disallow_anonymous_connection_tokens: true,
  };
  const server = await served(t, { client });
  assert.ok((await (await raw(t, server)).connect()).connect);
  const tokened = await raw(t, server);
  tokened.send({ id: 1, connect: { token: token({ sub: '' }) } });
  assert.equal((await tokened.closed()).code, 3507);
});

test('tokens for another audience or issuer end with 3500', async (t) => {
  const expected = { audience: 'here', issuer: 'us' };
  const server = await served(t, { client: { token: expected } });
  for (const claims of [{}, { aud: 'there', iss: 'us' }, { aud: 'here', iss: 'them' }]) {
    const client = await raw(t, server);
    client.send({ id: 1, connect: { token: token({ sub: '42', ...claims }) } });
    assert.equal((await client.closed()).code, 3500, JSON.stringify(claims));
  }
  const client = await raw(t, server);
  const good = token({ sub: '42', aud: ['elsewhere', 'here'], iss: 'us' });
  assert.ok((await client.connect({ token: good })).connect);
});

test('a token of the previous secret is accepted while it is valid', async (t) => {
  const until = (seconds) => Math.floor(Date.now() / 1000) + seconds;
  for (const [valid_until, accepted] of [[until(3600), true], [until(-10), false]]) {
    const old = { hmac_previous_secret_key: 'before', hmac_previous_secret_key_valid_until: valid_until };
    const server = await served(t, { client: { token: old } });
    const client = await raw(t, server);
    client.send({ id: 1, connect: { token: token({ sub: '42' }, { secret: 'before' }) } });
    if (accepted) assert.ok((await client.reply(1)).connect);
    else assert.equal((await client.closed()).code, 3500);
  }
});

async function served(t, settings) {
  const server = await start(settings);
  t.after(() => server.stop());
  return server;
}
