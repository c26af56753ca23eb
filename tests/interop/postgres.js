// A PostgreSQL of a test's own: Debian's program on a free port with a folder of its own, ended by its process id.
// In: nothing → out: a connection string; `why` says why there is none.
// May use Node's own modules only; never runs as root, which PostgreSQL refuses: then it is the user of the package.
// How a PostgreSQL is started for the suites is changed here; the crate `consumers` starts its own.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';

import { inCharge } from './children.js';
import { freePort } from './ports.js';
import { within } from './server.js';

/** Debian has a folder of programs for each version. */
const VERSIONS = '/usr/lib/postgresql';
const BIN = existsSync(VERSIONS) && readdirSync(VERSIONS).map((version) => path.join(VERSIONS, version, 'bin')).at(-1);

/** Why there is no PostgreSQL; false when there is one. */
export const why = BIN ? false : 'no PostgreSQL: install the Debian package postgresql';

/** Starts one that ends with the test, and returns its connection string. */
export async function startPostgres(t) {
  const folder = mkdtempSync(path.join(tmpdir(), 'fanwire-postgres-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const user = process.getuid() === 0 ? idsOf('postgres') : {};
  if (user.uid) chownSync(folder, user.uid, user.gid);
  const options = { cwd: folder, ...user };
  const data = path.join(folder, 'data');
  const init = ['--auth=trust', '--username=app', '--no-sync', '--encoding=UTF8', '-D', data];
  execFileSync(path.join(BIN, 'initdb'), init, { ...options, stdio: 'pipe' });
  const port = await freePort();
  const place = ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', folder, '-F'];
  const child = inCharge(spawn(path.join(BIN, 'postgres'), place, { ...options, stdio: ['ignore', 'ignore', 'pipe'] }));
  t.after(async () => {
    const exit = once(child, 'exit');
    child.kill('SIGQUIT');
    await within(exit, 'the end of PostgreSQL');
  });
  const ready = new Promise((resolve, reject) => {
    child.on('exit', () => reject(new Error('PostgreSQL ended')));
    createInterface({ input: child.stderr }).on('line', (line) => {
      if (line.includes('ready to accept connections')) resolve();
    });
  });
  await within(ready, 'PostgreSQL');
  return `postgres://app@127.0.0.1:${port}/postgres`;
}

function idsOf(name) {
  const line = readFileSync('/etc/passwd', 'utf8').split('\n').find((line) => line.startsWith(`${name}:`));
  const [, , uid, gid] = line.split(':').map(Number);
  return { uid, gid };
}
