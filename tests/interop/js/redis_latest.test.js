// Latest-state delivery between two nodes with one Redis: the class travels with the publication.
// In: `fanwire bench`, which publishes to one node and reads from the other → out: its report.
// May use the built binary; never looks into the Redis.
// What waits, and what replaces it, is tested in crates/fanout; the same on one node in crates/cli/tests/it/bench.rs.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { startRedis } from '../redis.js';
import { API_KEY, eventually, run, start } from '../server.js';

test('stopped readers of one node end with the newest state that was published to the other', async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const settings = {
    engine: { type: 'redis', redis: { address: redis.address } },
    client: { allow_anonymous_connect_without_token: true },
    channel: {
      without_namespace: { allow_subscribe_for_client: true, allow_subscribe_for_anonymous: true },
    },
  };
  const nodes = await Promise.all([start(settings), start(settings)]);
  for (const node of nodes) {
    t.after(() => node.stop());
    await eventually(async () => (await node.api('info')).nodes.length === 2, 'both nodes to know each other');
  }
  const [published, read] = nodes;
  const report = path.join(read.folder, 'report.json');
  const { code, text: output } = await run([
    'bench', '--url', read.websocket, '--api-url', `${published.http}/api`, '--key', API_KEY, '--latest',
    '--compression', '--connections=10', '--stopped=10', '--slow=10', '--slow-rate=100000', '--size=20000', '--random=1',
    '--rate=200', '--warm-up=0', '--duration=2s', '--json', report,
  ]);
  assert.equal(code, 0, output);
  const { regular, slow, stopped } = JSON.parse(readFileSync(report, 'utf8'));
  assert.ok(stopped.conflated > 1000 && slow.conflated > 100, output);
  assert.deepEqual([regular.disconnects, slow.disconnects, stopped.disconnects], [{}, {}, {}], output);
  assert.ok(regular.received > 3000, output);
});
