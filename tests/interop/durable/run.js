// Runs the published conformance suite of Durable Streams against a server of its own: all groups but the forks.
// In: FANWIRE, the program → out: a line for each failed test, then the counts as node --test prints them; exit code 1 if one failed.
// May start vitest several times at once, because its tests wait more than they work; a suite that shrank is a failure.
// Which groups are left out is changed here; the version of the suite in package.json.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { start } from '../server.js';

/** Groups by the beginning of their names, for each process; the last one runs what no other names. */
const PARTS = [['TTL', 'HEAD Metadata Edge'], ['SSE', 'Long-Poll', 'Caching'], ['Stream Closure', 'Property-Based']];
/** This server refuses forks with 501. */
const LEFT_OUT = ['Fork - '];
/** Tests of the other groups in version 0.3.6. */
const TESTS_MIN = 250;

const server = await start({
  channel: { namespaces: [{ name: 'streams', history_size: 100_000, history_ttl: '24h' }] },
  durable_streams: { enabled: true, namespace: 'streams', insecure: true, long_poll_timeout: '500ms' },
});
const folder = mkdtempSync(path.join(tmpdir(), 'fanwire-durable-'));
const named = PARTS.map((groups) => `^(${groups.join('|')})`);
const rest = `^(?!${[...PARTS.flat(), ...LEFT_OUT].join('|')})`;
const results = (await Promise.all([...named, rest].map(play))).flat();
rmSync(folder, { recursive: true, force: true });
await server.stop();

const count = (status) => results.filter((test) => test.status === status).length;
for (const test of results.filter(({ status }) => status === 'failed')) {
  console.log(`✖ ${test.fullName}\n  ${test.failureMessages.join('\n  ')}`);
}
const [passed, failed] = [count('passed'), count('failed')];
const isShort = passed + failed < TESTS_MIN;
if (isShort) console.log(`✖ ${passed + failed} tests ran, expected ${TESTS_MIN}`);
console.log(`# pass ${passed}\n# fail ${failed + Number(isShort)}`);
process.exit(failed || isShort ? 1 : 0);

/** The results of the tests whose names match a pattern. */
async function play(pattern, index) {
  const output = path.join(folder, `${index}.json`);
  const words = ['run', '-t', pattern, '--reporter=json', `--outputFile=${output}`];
  const vitest = path.join(import.meta.dirname, 'node_modules/vitest/vitest.mjs');
  const env = { ...process.env, FANWIRE_STREAMS: server.http };
  const options = { cwd: import.meta.dirname, env, stdio: ['ignore', 'ignore', 'inherit'] };
  await once(spawn(process.execPath, [vitest, ...words], options), 'exit');
  const files = JSON.parse(readFileSync(output, 'utf8')).testResults;
  return files.flatMap((file) => file.assertionResults).filter(({ status }) => status !== 'skipped');
}
