// Programs of Debian packages that are services: taken out of the package without installing it, which would start the service.
// In: a program with its packages → out: its path and environment, or an error with the reason.
// May use apt-get download and dpkg-deb; keeps what it unpacked in target/tools.
// Which packages a program needs is said where it is started: nginx.js, haproxy.js, prometheus.js.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const TOOLS = fileURLToPath(new URL('../../target/tools', import.meta.url));

/** The program of `/usr/sbin` or another folder, or the one in the first of `packages`, with the libraries of the others. */
export function program(name, packages, bin = 'usr/sbin') {
  const installed = `/${bin}/${name}`;
  if (existsSync(installed)) return { file: installed, env: process.env };
  const kept = path.join(TOOLS, packages[0]);
  if (!existsSync(kept)) unpack(packages, kept);
  const libraries = path.join(kept, 'usr/lib');
  const folders = existsSync(libraries) ? readdirSync(libraries).map((folder) => path.join(libraries, folder)) : [];
  return { file: path.join(kept, bin, name), env: { ...process.env, LD_LIBRARY_PATH: folders.join(':') } };
}

/** Why `find`, which returns a program, cannot; false when it can. */
export function whyWithout(find) {
  try {
    find();
    return false;
  } catch (error) {
    return error.message;
  }
}

/** Files of tests run side by side, so the folder appears under its name when it is whole. */
function unpack(packages, kept) {
  mkdirSync(TOOLS, { recursive: true });
  const folder = mkdtempSync(path.join(TOOLS, 'unpacked-'));
  const run = (name, ...words) => execFileSync(name, words, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  try {
    run('apt-get', 'download', ...packages);
    for (const file of readdirSync(folder)) run('dpkg-deb', '--extract', file, '.');
    if (!existsSync(kept)) renameSync(folder, kept);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
