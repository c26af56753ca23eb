// Debian's nginx in front of a server, with its defaults: one `proxy_pass` and nothing else that concerns connections.
// In: a server → out: an address of the proxy, which is ended by its process id.
// May take the program out of Debian's package without installing it, because that would start a service on port 80.
// How nginx is started for the suites is changed here.

import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { inCharge } from './children.js';
import { eventually } from './server.js';

const KEPT = fileURLToPath(new URL('../../target/tools/nginx', import.meta.url));
const PROGRAMS = ['/usr/sbin/nginx', path.join(KEPT, 'usr/sbin/nginx')];

/** The program, taken out of its package if the machine has none; throws with the reason. */
function program() {
  if (!PROGRAMS.some(existsSync)) {
    mkdirSync(KEPT, { recursive: true });
    const run = (name, ...words) => execFileSync(name, words, { cwd: KEPT, stdio: ['ignore', 'ignore', 'pipe'] });
    run('apt-get', 'download', 'nginx');
    run('sh', '-c', 'dpkg-deb --extract nginx_*.deb . && rm nginx_*.deb');
  }
  return PROGRAMS.find(existsSync);
}

/** Whether nginx can be started here: the reason if not. */
export function withoutNginx() {
  try {
    program();
    return false;
  } catch (error) {
    return `no nginx: ${error.message}`;
  }
}

/** Starts it in front of `server`; `more` are directives for the location. */
export async function startNginx(t, server, more = '') {
  const folder = mkdtempSync(path.join(tmpdir(), 'fanwire-nginx-'));
  const port = await freePort();
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  writeFileSync(
    path.join(folder, 'nginx.conf'),
    `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log; events {}
     http {
       access_log off;
       ${paths.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
       server { listen 127.0.0.1:${port}; location / { proxy_pass ${server.http}; ${more} } }
     }`,
  );
  const words = ['-e', `${folder}/error.log`, '-p', folder, '-c', `${folder}/nginx.conf`];
  const child = inCharge(spawn(program(), words, { stdio: 'ignore' }));
  t.after(() => {
    child.kill();
    rmSync(folder, { recursive: true, force: true });
  });
  await eventually(() => accepts(port), 'nginx to accept connections');
  return { http: `http://127.0.0.1:${port}` };
}

async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function accepts(port) {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('close', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
