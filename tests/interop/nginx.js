// Debian's nginx in front of servers: with its defaults and one `proxy_pass`, or with a configuration from the documentation.
// In: a server or blocks of a configuration → out: an address of the proxy, which is ended by its process id.
// May take the program out of Debian's package (debian.js).
// How nginx is started for the suites is changed here.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { inCharge } from './children.js';
import { program, whyWithout } from './debian.js';
import { freePort } from './ports.js';
import { eventually } from './server.js';

const nginx = () => program('nginx', ['nginx']);

/** Whether nginx can be started here: the reason if not. */
export const withoutNginx = () => whyWithout(nginx);

/** Starts it in front of `server`; `more` are directives for the location. */
export function startNginx(t, server, more = '') {
  return startNginxWith(t, (port) => `server { listen 127.0.0.1:${port}; location / { proxy_pass ${server.http}; ${more} } }`);
}

/** Starts it with the blocks that `blocks` returns for a port. */
export async function startNginxWith(t, blocks) {
  const folder = mkdtempSync(path.join(tmpdir(), 'fanwire-nginx-'));
  const port = await freePort();
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  writeFileSync(
    path.join(folder, 'nginx.conf'),
    `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log; events {}
     http {
       access_log off;
       ${paths.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
       ${blocks(port)}
     }`,
  );
  const { file, env } = nginx();
  const words = ['-e', `${folder}/error.log`, '-p', folder, '-c', `${folder}/nginx.conf`];
  return proxy(t, spawn(file, words, { stdio: ['ignore', 'ignore', 'inherit'], env }), folder, port);
}

/** The address of a proxy that was just started, once it accepts connections. */
export async function proxy(t, child, folder, port) {
  inCharge(child);
  t.after(() => {
    child.kill();
    rmSync(folder, { recursive: true, force: true });
  });
  await eventually(() => accepts(port), `${child.spawnfile} to accept connections`);
  return { http: `http://127.0.0.1:${port}`, websocket: `ws://127.0.0.1:${port}/connection/websocket` };
}

function accepts(port) {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('close', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
