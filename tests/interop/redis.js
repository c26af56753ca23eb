// A Redis of a test's own: Debian's redis-server on a free port with a folder of its own, ended by its process id.
// In: options of redis-server → out: an address; it can be killed and started again with what it kept.
// May use Node's own modules only; never waits for a moment, always for what the program prints.
// How a Redis is started for the suites is changed here; the crate `brokers` starts its own.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';

import { within } from './server.js';

/** Debian's package redis-tools has the program under the second name: called `redis-server` it is one. */
const PROGRAMS = ['redis-server', 'redis-check-rdb'];

/** A running Redis. */
export class Redis {
  constructor(options) {
    this.options = options;
    this.folder = mkdtempSync(path.join(tmpdir(), 'fanwire-redis-'));
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
    const place = ['--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.folder];
    const quiet = ['--save', '', '--daemonize', 'no', '--logfile', ''];
    const child = spawn(program, [...place, ...quiet, ...this.options], {
      argv0: 'redis-server',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const ready = new Promise((resolve) => {
      child.on('error', () => resolve(false));
      child.on('exit', () => resolve(false));
      createInterface({ input: child.stdout }).on('line', (line) => {
        if (line.includes('Ready to accept connections')) resolve(true);
      });
    });
    if (!(await within(ready, `${program} to be ready`))) return false;
    this.child = child;
    return true;
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
