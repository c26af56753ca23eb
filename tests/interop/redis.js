// A Redis of a test's own: Debian's redis-server on a free port with a folder of its own, ended by its process id.
// In: options of redis-server → out: an address; it can be killed and started again with what it kept.
// May use Node's own modules only; never waits for a moment, always for what the program prints.
// How a Redis is started for the suites is changed here; the crate `brokers` starts its own.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';

import { eventually, within } from './server.js';

/** Debian's package redis-tools has the program under the second name: called `redis-server` it is one. */
const PROGRAMS = ['redis-server', 'redis-check-rdb'];

/** What a Redis says when it is ready, and a Sentinel. */
const READY = ['Ready to accept connections', '+monitor master'];

/** A running Redis. */
export class Redis {
  constructor(options) {
    this.options = options;
    this.folder = mkdtempSync(path.join(tmpdir(), 'fanwire-redis-'));
    this.first = [];
  }

  /** What `engine.redis.address` is to be. */
  get address() {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Starts it, at its old port when it ran before. */
  async start() {
    this.port ??= await freePort();
    for (const program of PROGRAMS) {
      if (await this.launch(program)) return this;
    }
    throw new Error('no redis-server starts: install the Debian package redis-tools');
  }

  async launch(program) {
    const place = [...this.first, '--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.folder];
    const quiet = ['--save', '', '--daemonize', 'no', '--logfile', ''];
    const isReady = (line) => READY.some((ready) => line.includes(ready));
    const child = spawn(program, [...place, ...quiet, ...this.options], {
      argv0: 'redis-server',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const ready = new Promise((resolve) => {
      child.on('error', () => resolve(false));
      child.on('exit', () => resolve(false));
      createInterface({ input: child.stdout }).on('line', (line) => {
        if (isReady(line)) resolve(true);
      });
    });
    if (!(await within(ready, `${program} to be ready`))) return false;
    this.child = child;
    return true;
  }

  /** What a command answers, as it comes; its arguments have no blanks. */
  async ask(command) {
    const parts = command.split(' ').map((part) => `$${part.length}\r\n${part}\r\n`);
    const socket = net.connect(this.port, '127.0.0.1');
    socket.end(`*${parts.length}\r\n${parts.join('')}`);
    let reply = '';
    for await (const text of socket.setEncoding('utf8')) reply += text;
    return reply;
  }

  /** Ends it as a crash does. */
  async kill() {
    const exit = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await exit;
  }

  /** Ends it and forgets what it kept. */
  async stop() {
    if (this.child.exitCode === null && this.child.signalCode === null) await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Starts a Redis with these options. */
export function startRedis(...options) {
  return new Redis(options).start();
}

/** A master, two replicas and three Sentinels, once all of them know each other. */
export async function startSentinels(name) {
  const quick = ['--repl-diskless-sync-delay', '0'];
  const master = await startRedis(...quick);
  const replicate = ['--replicaof', '127.0.0.1', String(master.port), ...quick];
  const replicas = await Promise.all([startRedis(...replicate), startRedis(...replicate)]);
  const linked = async (replica) => (await replica.ask('INFO replication')).includes('master_link_status:up');
  for (const replica of replicas) await eventually(() => linked(replica), 'a replica to have everything', 20_000);
  const sentinels = await Promise.all(Array.from({ length: 3 }, () => {
    const sentinel = new Redis([]);
    const file = path.join(sentinel.folder, 'sentinel.conf');
    writeFileSync(file, [
      `sentinel monitor ${name} 127.0.0.1 ${master.port} 2`,
      `sentinel down-after-milliseconds ${name} 500`,
      `sentinel failover-timeout ${name} 3000`,
      `sentinel parallel-syncs ${name} 2`,
      '',
    ].join('\n'));
    sentinel.first = [file, '--sentinel'];
    return sentinel.start();
  }));
  const knows = async (sentinel) => {
    const state = await sentinel.ask(`SENTINEL MASTER ${name}`);
    return ['num-slaves', 'num-other-sentinels'].every((fact) => state.includes(`${fact}\r\n$1\r\n2`));
  };
  for (const sentinel of sentinels) await eventually(() => knows(sentinel), 'the Sentinels to know all', 20_000);
  const stop = () => Promise.all([master, ...replicas, ...sentinels].map((one) => one.stop()));
  return { master, replicas, sentinels, stop };
}

function freePort() {
  return new Promise((resolve, reject) => {
    const listener = net.createServer();
    listener.on('error', reject);
    listener.listen(0, '127.0.0.1', () => {
      const { port } = listener.address();
      listener.close(() => resolve(port));
    });
  });
}
