// Tokens whose keys come from a JWKS endpoint: an identity provider made of Node's own cryptography, npm centrifuge as client.
// In: documents of public keys, tokens signed with the private ones → out: who may come in, and how often was asked.
// May use Node's http, https and crypto; starts its own server per test.
// What is remembered of documents, and for how long, is tested beside its code.

import assert from 'node:assert/strict';
import { generateKeyPairSync, sign } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { start } from '../server.js';
import { ENCODINGS, connect, next, raw, sdk, subscribe } from './clients.js';

const KEYS = new URL('../../keys/', import.meta.url);

const ALGORITHMS = {
  RS256: ['rsa', { modulusLength: 2048 }, 'sha256'],
  RS384: ['rsa', { modulusLength: 2048 }, 'sha384'],
  RS512: ['rsa', { modulusLength: 3072 }, 'sha512'],
  ES256: ['ec', { namedCurve: 'P-256' }, 'sha256'],
  ES384: ['ec', { namedCurve: 'P-384' }, 'sha384'],
  ES512: ['ec', { namedCurve: 'P-521' }, 'sha512'],
  EdDSA: ['ed25519', {}, null],
};

test('keys of every type let clients in, in both encodings', async (t) => {
  const keys = Object.keys(ALGORITHMS).map((algorithm) => new Key(algorithm, `key-${algorithm}`));
  const provider = await serve(t, keys);
  const server = await guarded(t, { jwks_public_endpoint: provider.url });
  for (const encoding of ENCODINGS) {
    for (const key of keys) {
      const client = sdk(t, server, encoding, { token: key.token({ sub: '42' }) });
      await connect(client);
      await subscribe(client, '$private', {
        token: key.token({ sub: '42', channel: '$private' }),
      });
    }
  }
  assert.equal(provider.asked, 1);
});

test('a key that was not published ends with 3500', async (t) => {
  const provider = await serve(t, [new Key('ES256', 'known')]);
  const server = await guarded(t, { jwks_public_endpoint: provider.url });
  const client = sdk(t, server, ENCODINGS[0], { token: new Key('ES256', 'other').token({ sub: '42' }) });
  const disconnected = next(client, 'disconnected');
  client.connect();
  assert.equal((await disconnected).code, 3500);
});

test('a stranger who signs under the name of a published key ends with 3500', async (t) => {
  const provider = await serve(t, [new Key('RS256', 'known')]);
  const server = await guarded(t, { jwks_public_endpoint: provider.url });
  const client = await raw(t, server);
  client.send({ id: 1, connect: { token: new Key('RS256', 'known').token({ sub: '42' }) } });
  assert.equal((await client.closed()).code, 3500);
});

test('clients come again while the provider is down, and get in when it is back', async (t) => {
  const key = new Key('EdDSA', 'key');
  const provider = await serve(t, [key]);
  provider.isDown = true;
  const server = await guarded(t, { jwks_public_endpoint: provider.url });
  const client = sdk(t, server, ENCODINGS[0], { token: key.token({ sub: '42' }) });
  const failed = next(client, 'error');
  const connected = connect(client);
  assert.equal((await failed).error.code, 100);
  provider.isDown = false;
  await connected;
});

test('the issuer chooses the document, over TLS', async (t) => {
  const [one, two] = [new Key('RS256', 'same'), new Key('RS256', 'same')];
  const provider = await serve(t, { '/one/keys': [one], '/two/keys': [two] }, true);
  const server = await guarded(t, {
    jwks_public_endpoint: provider.url.replace('/keys', '/{{tenant}}/keys'),
    issuer_regex: '^https://id/(?P<tenant>one|two)$',
    jwks: { tls: { enabled: true, server_ca_pem: fileURLToPath(new URL('ca.pem', KEYS)) } },
  });
  const ends = async (key, iss) => {
    const client = await raw(t, server);
    client.send({ id: 1, connect: { token: key.token({ sub: '42', iss }) } });
    return Promise.race([client.reply(1).then((reply) => !!reply.connect), client.closed().then(({ code }) => code)]);
  };
  assert.equal(await ends(one, 'https://id/one'), true);
  assert.equal(await ends(two, 'https://id/two'), true);
  assert.equal(await ends(one, 'https://id/two'), 3500);
  assert.equal(await ends(one, 'https://id/three'), 3500);
  assert.equal(provider.asked, 2);
});

/** A key pair with the name it is published under. */
class Key {
  constructor(algorithm, kid) {
    const [type, options, hash] = ALGORITHMS[algorithm];
    Object.assign(this, { algorithm, kid, hash }, generateKeyPairSync(type, options));
  }

  /** As RFC 7517 publishes it. */
  jwk() {
    return { ...this.publicKey.export({ format: 'jwk' }), use: 'sig', kid: this.kid, alg: this.algorithm };
  }

  token(claims) {
    const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const text = `${part({ alg: this.algorithm, kid: this.kid, typ: 'JWT' })}.${part(claims)}`;
    const key = { key: this.privateKey, dsaEncoding: 'ieee-p1363' };
    return `${text}.${sign(this.hash, Buffer.from(text), key).toString('base64url')}`;
  }
}

/** A provider of keys, or of keys by path; `asked` counts requests, and while `isDown` all of them fail. */
async function serve(t, keys, isSecure = false) {
  const documents = Array.isArray(keys) ? { '/keys': keys } : keys;
  const provider = { asked: 0, isDown: false };
  const answer = (request, response) => {
    provider.asked += 1;
    const found = documents[request.url];
    if (provider.isDown || !found) return response.writeHead(503).end();
    return response.end(JSON.stringify({ keys: found.map((key) => key.jwk()) }));
  };
  const file = (name) => readFileSync(new URL(name, KEYS));
  const identity = isSecure && { cert: file('localhost.pem'), key: file('localhost.private.pem') };
  const listener = isSecure ? https.createServer(identity, answer) : http.createServer(answer);
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  t.after(() => listener.close());
  provider.url = `http${isSecure ? 's' : ''}://127.0.0.1:${listener.address().port}/keys`;
  return provider;
}

async function guarded(t, token) {
  const server = await start({ client: { token } });
  t.after(() => server.stop());
  return server;
}
