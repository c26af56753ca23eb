// The cost of the admin page to the server, in percent of a core: node page_cost.js [CONNECTIONS] [CHANNELS] [SECONDS].
// In: numbers; by default 19,000 connections to 10,000 channels → out: a line for each view, exit code 1 above 2 %.
// May use `fanwire bench` for the load, Chromium for the page and /proc for the CPU; needs a quiet machine.
// The requests of the page are changed in crates/fanwire/assets/admin.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';

import { API_KEY, start, token } from '../server.js';
import { openPage } from './chromium.js';

const [connections = 19_000, channels = 10_000, seconds = 60] = process.argv.slice(2).map(Number);
const VIEWS = ['nodes', 'hot', 'users', 'config', 'channels'];
const PERCENT_MAX = 2;
const TICKS_A_SECOND = 100;
const ends = [];

const pause = (ms) => once(AbortSignal.timeout(ms), 'abort');

/** User and system time of a process in seconds (proc_pid_stat(5)). */
function cpuSeconds(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
}

async function percent(pid) {
  const [before, began] = [cpuSeconds(pid), performance.now()];
  await pause(seconds * 1000);
  return (100_000 * (cpuSeconds(pid) - before)) / (performance.now() - began);
}

const server = await start({
  admin: { enabled: true, insecure: true },
  channel: { without_namespace: { allow_subscribe_for_client: true, history_size: 10, history_ttl: '1h' } },
});
const load = spawn(process.env.FANWIRE, ['bench', '--url', server.websocket, '--api-url', `${server.http}/api`, '--key', API_KEY,
  '--token', token({ sub: '42' }), '-c', String(connections), '--channels', String(channels), '--rate', '1',
  '--duration', String(seconds * (VIEWS.length + 2) + 600)], { stdio: 'ignore' });
try {
  while ((await server.connections()) < connections) await pause(500);
  console.log(`${connections} connections to ${Object.keys((await server.api('channels')).channels).length} channels, ${seconds} s for each line`);
  const without = await percent(server.child.pid);
  console.log(`without a page: ${without.toFixed(2)} % of a core`);
  const page = await openPage({ after: (end) => ends.push(end) }, `${server.http}/`);
  for (const view of VIEWS) {
    await page.evaluate(`location.hash = ${JSON.stringify(view)}`);
    await pause(3000);
    const cost = (await percent(server.child.pid)) - without;
    console.log(`view ${view}: ${cost.toFixed(2)} % of a core`);
    if (cost > PERCENT_MAX) process.exitCode = 1;
  }
} finally {
  load.kill('SIGKILL');
  for (const end of ends) await end();
  await server.stop();
}
