// Debian's HAProxy in front of two nodes, with the configuration that the repository ships.
// In: two servers → out: an address of the proxy, which is ended by its process id.
// May take the program out of Debian's packages (debian.js); replaces addresses and the limit of connections, nothing else.
// How HAProxy is started for the suites is changed here, its configuration in deploy/haproxy.cfg.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { program, whyWithout } from './debian.js';
import { proxy } from './nginx.js';
import { freePort } from './redis.js';

const LIBRARIES = ['liblua5.3-0', 'libopentracing-c-wrapper0', 'libopentracing1'];
const haproxy = () => program('haproxy', ['haproxy', ...LIBRARIES]);
const SHIPPED = new URL('../../deploy/haproxy.cfg', import.meta.url);

/** Whether HAProxy can be started here: the reason if not. */
export const withoutHaproxy = () => whyWithout(haproxy);

/** Starts it with the frontends at free ports; `http` is the public one. */
export async function startHaproxy(t, [one, two]) {
  const folder = mkdtempSync(path.join(tmpdir(), 'fanwire-haproxy-'));
  const [port, inside] = [await freePort(), await freePort()];
  const text = readFileSync(SHIPPED, 'utf8')
    .replace('maxconn 100000', 'maxconn 1000')
    .replace('bind :8000', `bind 127.0.0.1:${port}`)
    .replace('bind :8001', `bind 127.0.0.1:${inside}`)
    .replace('node1:8000', one.host)
    .replace('node2:8000', two.host);
  writeFileSync(path.join(folder, 'haproxy.cfg'), text);
  const { file, env } = haproxy();
  const child = spawn(file, ['-db', '-f', path.join(folder, 'haproxy.cfg')], { stdio: ['ignore', 'ignore', 'inherit'], env });
  return proxy(t, child, folder, port);
}
