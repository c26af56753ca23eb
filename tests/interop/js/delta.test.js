// npm centrifuge, as published, in JSON and in Protobuf: publications as Fossil deltas.
// In: one server with allowed_delta_types, with and without history → out: data the SDK makes of deltas, bytes it read.
// May use the SDK's public interface, the server API and what npm ws received; never applies a delta itself.
// The rules by themselves are tested in crates/node/tests/it/deltas.rs.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import WebSocket from 'ws';

import { start } from '../server.js';
import { ENCODINGS, connect, next, sdk, subscribe } from './clients.js';

let server;

before(async () => {
  const deltas = { allowed_delta_types: ['fossil'], delta_publish: true };
  const history = { history_size: 100, history_ttl: '300s' };
  server = await start({
    client: { insecure: true },
    prometheus: { enabled: true },
    channel: {
      namespaces: [
        { name: 'delta', ...deltas, ...history, force_recovery: true },
        { name: 'chosen', ...deltas, ...history, force_recovery: true, delta_publish: false },
        { name: 'latest', ...deltas, keep_latest_publication: true },
        { name: 'plain', ...history, force_recovery: true },
      ],
    },
  });
});

after(() => server?.stop());

for (const encoding of ENCODINGS) {
  describe(`npm centrifuge in ${encoding.name}`, () => {
    const name = (channel) => `${channel}-${encoding.name}`;
    const values = (items) => items.map((item) => encoding.value(item.data));

    /** A subscriber that wants deltas, and what its socket received. */
    const someone = async (t, channel) => {
      const messages = [];
      const client = sdk(t, server, encoding, { websocket: listening(messages) });
      await connect(client);
      const { subscription, publications } = await subscribe(client, channel, { delta: 'fossil' });
      messages.length = 0;
      return { client, subscription, publications, messages };
    };

    test('deltas are agreed to where the namespace allows them', async (t) => {
      for (const [channel, allowed] of [['delta:agreed', true], ['latest:agreed', true], ['plain:agreed', false]]) {
        const client = sdk(t, server, encoding);
        await connect(client);
        const subscription = client.newSubscription(name(channel), { delta: 'fossil' });
        const subscribed = next(subscription, 'subscribed');
        subscription.subscribe();
        await subscribed;
        assert.equal(subscription._delta_negotiated, allowed, channel);
      }
    });

    for (const namespace of ['delta', 'latest']) {
      test(`three similar publications are one full and two deltas in ${namespace}`, async (t) => {
        const channel = name(`${namespace}:three`);
        const { publications, messages } = await someone(t, channel);
        const states = [1, 2, 3].map((n) => state(n));
        for (const data of states) await server.api('publish', { channel, data });
        assert.deepEqual(values(await publications.count(3)), states);
        const pushes = messages.filter((bytes) => bytes.byteLength > 30);
        assert.equal(pushes.length, 3);
        const decoded = JSON.stringify(states[0]).length;
        const [full, ...deltas] = pushes.map((bytes) => bytes.byteLength);
        assert.ok(full > decoded, `${full} bytes for ${decoded}`);
        for (const delta of deltas) assert.ok(delta < decoded * 0.6, `${delta} bytes for ${decoded}`);
      });
    }

    test('the same payload twice, a long one, a short one, and one that is not ASCII', async (t) => {
      const channel = name('delta:payloads');
      const { publications } = await someone(t, channel);
      const texts = ['Malmö FF – Djurgårdens IF', 'Malmø FF – Djurgårdens IF', '😀😁😂 マルメ Мальмё', '</script>\u2028"\\'];
      const payloads = [
        { same: 'x'.repeat(200) },
        { same: 'x'.repeat(200) },
        { rows: [...Array(200).keys()] },
        'short',
        ...texts.flatMap((text) => [{ text, rest: 'y'.repeat(100) }, { text: `${text}!`, rest: 'y'.repeat(100) }]),
        [],
      ];
      for (const data of payloads) await server.api('publish', { channel, data });
      assert.deepEqual(values(await publications.count(payloads.length)), payloads);
    });

    test('publications of clients, without deltas and outside of history in between', async (t) => {
      const channel = name('chosen:mixed');
      const { publications, subscription } = await someone(t, channel);
      const options = [{ delta: true }, { delta: true }, {}, { delta: true }, { skip_history: true }, { delta: true }, { delta: true }];
      for (const [n, one] of options.entries()) await server.api('publish', { channel, data: state(n), ...one });
      await subscription.publish(encoding.payload(state(7)));
      await server.api('publish', { channel, data: state(8), delta: true });
      const expected = [...Array(9).keys()].map((n) => state(n));
      assert.deepEqual(values(await publications.count(9)), expected);
    });

    test('what was missed is recovered after a disconnect and after an unsubscribe', async (t) => {
      const channel = name('delta:recovery');
      const { client, subscription, publications } = await someone(t, channel);
      let count = 0;
      const publish = async (more) => {
        for (const end = count + more; count < end; count += 1) {
          await server.api('publish', { channel, data: state(count) });
        }
      };
      const goAndReturn = async (go, comeBack, missed) => {
        await go();
        await publish(missed);
        const subscribed = next(subscription, 'subscribed');
        comeBack();
        assert.equal((await subscribed).recovered, true);
        await publish(2);
        await publications.count(count);
      };
      const disconnect = async () => {
        const disconnected = next(client, 'disconnected');
        client.disconnect();
        await disconnected;
      };
      await publish(2);
      await publications.count(2);
      for (const missed of [3, 0, 1]) {
        await goAndReturn(disconnect, () => client.connect(), missed);
        await goAndReturn(async () => subscription.unsubscribe(), () => subscription.subscribe(), missed);
      }
      const expected = [...Array(count).keys()].map((n) => state(n));
      assert.deepEqual(values(await publications.count(count)), expected);
    });

    test('a subscriber without deltas reads the same channel', async (t) => {
      const channel = name('delta:both');
      const { publications } = await someone(t, channel);
      const other = sdk(t, server, encoding);
      await connect(other);
      const plain = await subscribe(other, channel);
      const states = [1, 2, 3].map((n) => state(n));
      for (const data of states) await server.api('publish', { channel, data });
      assert.deepEqual(values(await publications.count(3)), states);
      assert.deepEqual(values(await plain.publications.count(3)), states);
    });
  });
}

test('the metrics count deltas and what they saved', async () => {
  const text = await (await fetch(`${server.http}/metrics`)).text();
  const value = (metric) => Number(new RegExp(`^fanwire_${metric} (\\d+)`, 'm').exec(text)?.[1]);
  assert.ok(value('client_deltas_total') > 20, text);
  assert.ok(value('client_delta_saved_bytes_total') > 1000, text);
});

/** States of one match that differ a little. */
function state(n) {
  const players = ['Åke', 'Björn', 'Çelik', 'Đorđe', 'Élodie', 'Fürst'];
  return { n, home: 'Malmö', players: players.map((player) => ({ player, goals: 0 })), minute: n % 90 };
}

/** The WebSocket of npm ws, which also keeps every message it received. */
function listening(messages) {
  return class extends WebSocket {
    constructor(...rest) {
      super(...rest);
      this.on('message', (bytes) => messages.push(bytes));
    }
  };
}
