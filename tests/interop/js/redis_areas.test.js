// Channels with places on two nodes with one Redis: viewers get what any node publishes in their view, and nothing else.
// In: npm clients on both nodes, views and publications through the server API of either → out: what each viewer received.
// May use the SDK's public interface and the server API only; never looks into the Redis.
// What a view contains is tested in crates/area; one node, with rooms, in crates/fanwire/tests/it/areas.rs.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { startRedis } from '../redis.js';
import { eventually, start, token } from '../server.js';
import { ENCODINGS, connect, sdk, subscribe } from './clients.js';

const TILE = 10;
const TILES = 4; // the walk stays in so many times so many tiles
const VIEWERS = 6;
const STEPS = 150;

let redis;
let nodes;

before(async () => {
  redis = await startRedis();
  const settings = {
    engine: { type: 'redis', redis: { address: redis.address } },
    channel: { namespaces: [{ name: 'world', allow_subscribe_for_client: true, area_tile_size: TILE }] },
  };
  nodes = await Promise.all([start(settings), start(settings)]);
  for (const node of nodes) {
    await eventually(async () => (await node.api('info')).nodes.length === 2, 'both nodes to know each other');
  }
});

after(async () => {
  await Promise.all((nodes ?? []).map((node) => node.stop()));
  await redis?.stop();
});

const someone = (t, node, encoding = ENCODINGS[0]) => sdk(t, node, encoding, { token: token({ sub: '42' }) });

test('a viewer gets what other nodes publish in its tiles, and its view moves from any node', async (t) => {
  const [here, there] = nodes;
  const client = someone(t, there);
  const { client: id } = await connect(client);
  const view = (x) => ({ x, y: 5, radius: 1 });
  const { publications } = await subscribe(client, 'world:1', { data: { view: view(5) } });
  const received = () => publications.items.map(({ data }) => data);
  const publish = (x, data) => here.api('publish', { channel: 'world:1', data, place: { x, y: 5 } });
  // A node subscribes to a tile in Redis when its first viewer enters it.
  const published = (x, data) =>
    eventually(async () => (await publish(x, data), received().includes(data)), `${data} at ${x}`);
  await published(5, 'first');
  await here.api('set_view', { client: id, channel: 'world:1', view: view(25) });
  await published(25, 'moved');
  await publish(5, 'left');
  await publish(15, 'never in view');
  await published(25, 'end');
  assert.deepEqual([...new Set(received())], ['first', 'moved', 'end']);
});

test('viewers that walk at random on both nodes get each publication in view once, and no other', async (t) => {
  const random = numbers(7);
  const below = (limit) => Math.floor(random() * limit);
  const viewers = [];
  for (let number = 0; number < VIEWERS; number += 1) viewers.push(await viewer(t, number, below));
  let published = 0;
  let places = [];
  for (let step = 0; step < STEPS; step += 1) {
    const walker = viewers[below(VIEWERS)];
    walker.stand(below);
    // A publication of the last step may still be on its way when the walker enters its tile.
    for (const { place, number } of places) if (walker.covers(place)) walker.possible.add(number);
    places = [];
    const { id, view } = walker;
    await nodes[below(2)].api('set_view', { client: id, channel: 'world:2', view });
    await walker.sees(step, nodes[below(2)]);
    for (let count = 0; count < 3; count += 1) {
      published += 1;
      const place = { x: below(TILE * TILES) + 0.5, y: below(TILE * TILES) + 0.5 };
      for (const one of viewers) if (one.covers(place)) one.expected.push(published);
      places.push({ place, number: published });
      await nodes[below(2)].api('publish', { channel: 'world:2', data: { published }, place });
    }
    const complete = () => viewers.every(({ received, expected }) => {
      const seen = new Set(received());
      return expected.every((data) => seen.has(data));
    });
    await eventually(complete, `the publications of step ${step}`);
  }
  for (const [number, one] of viewers.entries()) {
    assert.equal(new Set(one.received()).size, one.received().length, `viewer ${number} gets each once`);
    const isMeant = (data) => !one.possible.has(data) || one.expected.includes(data);
    const received = one.received().filter(isMeant).sort((a, b) => a - b);
    assert.deepEqual(received, one.expected, `viewer ${number}`);
    assert.ok(received.length > STEPS / 3, `viewer ${number} sees something: ${received.length}`);
  }
});

/** A viewer on one of the nodes, which stands somewhere. */
async function viewer(t, number, below) {
  const encoding = ENCODINGS[(number >> 1) % 2];
  const client = someone(t, nodes[number % 2], encoding);
  const { client: id } = await connect(client);
  const one = {
    id,
    expected: [],
    possible: new Set(),
    /** Stands elsewhere, with a tile in view that was not: when its probe arrives, its node has the new view. */
    stand(below) {
      const before = new Set(one.view ? one.tiles().map(String) : []);
      do {
        // Its edges are never those of tiles.
        const half = [3, 8][below(2)];
        one.view = { x: below(TILE * TILES) + 0.5, y: below(TILE * TILES) + 0.5, width: 2 * half, height: 2 * half };
      } while (one.tiles().every((tile) => before.has(String(tile))));
    },
    tiles() {
      const { x, y, width } = one.view;
      const range = (at) => {
        const [first, last] = [Math.floor((at - width / 2) / TILE), Math.floor((at + width / 2) / TILE)];
        return Array.from({ length: last - first + 1 }, (_, index) => first + index);
      };
      return range(x).flatMap((column) => range(y).map((row) => [column, row]));
    },
    covers: ({ x, y }) =>
      one.tiles().some(([column, row]) => column === Math.floor(x / TILE) && row === Math.floor(y / TILE)),
    items: () => one.publications.items.map(({ data }) => encoding.value(data)),
    received: () => one.items().filter((data) => data.published).map((data) => data.published),
    /** Waits until its node has subscribed to all tiles of its view: each is probed until the probe arrives. */
    async sees(step, node) {
      const probe = ([column, row]) => `${id} ${step} ${column} ${row}`;
      const missing = () => {
        const seen = new Set(one.items().map((data) => data.probe));
        return one.tiles().filter((tile) => !seen.has(probe(tile)));
      };
      await eventually(async () => {
        const commands = missing().map(([column, row]) => {
          const place = { x: (column + 0.5) * TILE, y: (row + 0.5) * TILE };
          return { publish: { channel: 'world:2', data: { probe: probe([column, row]) }, place } };
        });
        if (commands.length > 0) await node.api('batch', { commands });
        return missing().length === 0;
      }, `viewer ${number} to see all of its view`);
    },
  };
  one.stand(below);
  const { publications } = await subscribe(client, 'world:2', { data: encoding.payload({ view: one.view }) });
  one.publications = publications;
  await one.sees('start', nodes[0]);
  return one;
}

/** Numbers from 0 to 1 (a linear congruential generator). */
function numbers(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
