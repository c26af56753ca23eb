// Debian's HAProxy in front of two nodes, with the configuration that the repository ships.
// In: two servers → out: an address of the proxy, which is ended by its process id.
// May take the program out of Debian's packages (debian.js); replaces addresses and the limit of connections, and adds a socket for questions.
// How HAProxy is started for the suites is changed here, its configuration in deploy/haproxy.cfg.

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';

import { program, whyWithout } from './debian.js';
import { proxy } from './nginx.js';
import { freePort } from './ports.js';
import { eventually } from './server.js';

const LIBRARIES = ['liblua5.3-0', 'libopentracing-c-wrapper0', 'libopentracing1'];
const haproxy = () => program('haproxy', ['haproxy', ...LIBRARIES]);
const SHIPPED = new URL('../../deploy/haproxy.cfg', import.meta.url);

/** Whether HAProxy can be started here: the reason if not. */
export const withoutHaproxy = () => whyWithout(haproxy);

/** Starts it with the frontends at free ports, for so many connections; `http` is the public one, `inside` that of backends. */
export async function startHaproxy(t, [one, two], connections = 1000) {
  const folder = mkdtempSync(path.join(tmpdir(), 'fanwire-haproxy-'));
  const [port, inside] = [await freePort(), await freePort()];
  const config = readFileSync(SHIPPED, 'utf8')
    .replace('maxconn 100000', `maxconn ${connections}\n    stats socket ${folder}/stats`)
    .replace('bind :8000', `bind 127.0.0.1:${port}`)
    .replace('bind :8001', `bind 127.0.0.1:${inside}`)
    .replaceAll('node1:8000', one.host)
    .replaceAll('node2:8000', two.host);
  writeFileSync(path.join(folder, 'haproxy.cfg'), config);
  const { file, env } = haproxy();
  const child = spawn(file, ['-db', '-f', path.join(folder, 'haproxy.cfg')], { stdio: ['ignore', 'ignore', 'inherit'], env });
  const address = await proxy(t, child, folder, port);
  await eventually(() => existsSync(path.join(folder, 'stats')), 'the socket for questions'); // it opens after the ports
  return { ...address, inside: `http://127.0.0.1:${inside}`, checks: () => checks(path.join(folder, 'stats')) };
}

/** The servers of the backend `nodes` once each has answered a health check: whether it is up, and what the check found. */
async function checks(socket) {
  const ask = async () => {
    const connection = net.connect(socket);
    connection.end('show stat\n');
    const [head, ...rows] = (await text(connection)).replace(/^# /, '').trim().split('\n').map((line) => line.split(','));
    const column = (row, name) => row[head.indexOf(name)];
    const servers = rows.filter((row) => row[0] === 'nodes' && row[1].startsWith('node'));
    return servers.map((row) => ({ status: column(row, 'status'), check: column(row, 'check_status').replace('* ', '') }));
  };
  return eventually(async () => {
    const servers = await ask();
    return servers.every(({ check }) => check.startsWith('L7') && check !== 'L7TOUT') && servers;
  }, 'answers to the checks');
}
