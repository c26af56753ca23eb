// What is left of a test that fails before it stops its server: nothing, and nobody waits for it.
// In: files that start a server and forget it → out: their end, and that of the server.
// May start Node; never leaves a process behind itself.
// How that is done stands in ../children.js.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';

import { inCharge } from '../children.js';
import { eventually, within } from '../server.js';

/** Runs a file that starts a server, says its process id, and then does `more`. */
async function forgetful(more) {
  const text = `
    import { start } from ${JSON.stringify(new URL('../server.js', import.meta.url).href)};
    console.log((await start()).child.pid);
    ${more}`;
  const file = inCharge(spawn(process.execPath, ['--input-type=module', '--eval', text], { stdio: ['ignore', 'pipe', 'inherit'] }));
  const end = once(file, 'exit');
  const [line] = await within(once(createInterface({ input: file.stdout }), 'line'), 'the process id', 20_000);
  assert.ok(Number(line) > 0, line);
  return { file, end, pid: Number(line) };
}

function isGone(pid) {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}

test('a file that forgets its server ends, and the server with it', async () => {
  const { end, pid } = await forgetful('');
  assert.deepEqual(await within(end, 'end of the file', 20_000), [0, null]);
  await eventually(() => isGone(pid), 'end of the server');
});

test('a file that is told to end takes its server along', async () => {
  const { file, end, pid } = await forgetful('setInterval(() => {}, 1000);');
  file.kill('SIGTERM');
  await within(end, 'end of the file', 20_000);
  await eventually(() => isGone(pid), 'end of the server');
});
