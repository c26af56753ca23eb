// A Redis of a test's own: Debian's redis-server on a free port with a folder of its own, ended by its process id.
// In: options of redis-server → out: an address, or a Cluster of six; each can be killed and started again with what it kept.
// May use Node's own modules only; never waits for a moment, always for what the program prints.
// How a Redis is started for the suites is changed here; the crate `redis` starts its own.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';

import { inCharge } from './children.js';
import { freePort } from './ports.js';
import { eventually, within } from './server.js';

/** Another program to test with. */
const CHOSEN = process.env.FANWIRE_REDIS_SERVER;

/** Debian's package redis-tools has the program under the second name: called `redis-server` it is one. */
const PROGRAMS = CHOSEN ? [CHOSEN] : ['redis-server', 'redis-check-rdb'];

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
    throw new Error('no redis-server starts: install the Debian package redis-tools, or look at FANWIRE_REDIS_SERVER');
  }

  async launch(program) {
    const place = [...this.first, '--port', String(this.port), '--bind', '127.0.0.1', '--dir', this.folder];
    const quiet = ['--save', '', '--daemonize', 'no', '--logfile', ''];
    const isReady = (line) => READY.some((ready) => line.includes(ready));
    const options = { argv0: 'redis-server', stdio: ['ignore', 'pipe', 'ignore'] };
    const child = inCharge(spawn(program, [...place, ...quiet, ...this.options], options));
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
    const words = command.split('\r\n').map((line) => line.split(' '));
    const bulk = (word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`;
    const socket = net.connect(this.port, '127.0.0.1');
    socket.end(words.map((line) => `*${line.length}\r\n${line.map(bulk).join('')}`).join(''));
    const pieces = [];
    socket.on('data', (piece) => pieces.push(piece));
    await within(once(socket, 'close'), `the answer to ${command}`);
    return Buffer.concat(pieces).toString();
  }

  async do(command) {
    const answer = await this.ask(command);
    if (answer !== '+OK\r\n') throw new Error(`${command}: ${answer}`);
  }

  /** Ends it as a crash does. */
  async kill() {
    const exit = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await within(exit, 'end of a Redis');
  }

  /** Ends it and forgets what it kept. */
  async stop() {
    if (this.child.exitCode === null && this.child.signalCode === null) await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const MASTERS = 3;
const SLOTS = 16_384;

/** A Cluster of three masters with a replica each; the masters are the first nodes. */
export class RedisCluster {
  constructor(nodes) {
    this.nodes = nodes;
  }

  /** What an item of `engine.redis.cluster_address` is to be. */
  get address() {
    return this.nodes.slice(0, 2).map(({ port }) => `127.0.0.1:${port}`).join(',');
  }

  /** The master that had the slot of a channel when the Cluster was made. */
  async master(channel) {
    const slot = Number((await this.nodes.at(-1).ask(`CLUSTER KEYSLOT {:${channel}}`)).slice(1));
    return this.nodes[Math.floor((slot * MASTERS) / SLOTS)];
  }

  async stop() {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }
}

/** Starts a Cluster in which every node has these options. */
export async function startRedisCluster(...options) {
  const node = async () => {
    const bus = await freePort();
    const own = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000', '--cluster-port', String(bus)];
    const redis = await startRedis(...own, '--repl-diskless-sync-delay', '0', ...options);
    return Object.assign(redis, { bus });
  };
  const nodes = await Promise.all(Array.from({ length: 2 * MASTERS }, node));
  await orStop(nodes, () => join(nodes));
  return new RedisCluster(nodes);
}

/** Makes nodes one Cluster. */
async function join(nodes) {
  const id = async (redis) => (await redis.ask('CLUSTER MYID')).split('\r\n')[1];
  const edge = (number) => Math.ceil((number * SLOTS) / MASTERS);
  for (const [number, master] of nodes.slice(0, MASTERS).entries()) {
    await master.do(`CLUSTER ADDSLOTSRANGE ${edge(number)} ${edge(number + 1) - 1}`);
    await master.do(`CLUSTER SET-CONFIG-EPOCH ${number + 1}`);
  }
  for (const { port, bus } of nodes.slice(1)) await nodes[0].do(`CLUSTER MEET 127.0.0.1 ${port} ${bus}`);
  const isKnown = (text) => text.split(' connected').length - 1 === nodes.length && !text.includes('handshake');
  for (const redis of nodes) await eventually(async () => isKnown(await redis.ask('CLUSTER NODES')), 'nodes to meet', 30_000);
  for (const [number, replica] of nodes.slice(MASTERS).entries()) {
    await replica.do(`CLUSTER REPLICATE ${await id(nodes[number])}`);
    await eventually(async () => (await replica.ask('INFO replication')).includes('link_status:up'), 'a replica', 30_000);
  }
  for (const redis of nodes) await eventually(async () => (await redis.ask('CLUSTER INFO')).includes('state:ok'), 'the Cluster', 30_000);
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
  const all = [master, ...replicas];
  const complete = async () => {
    for (const replica of replicas) await eventually(() => linked(replica), 'a replica to have everything', 20_000);
  };
  await orStop(all, complete);
  const sentinels = await Promise.all(Array.from({ length: 3 }, () => {
    const sentinel = new Redis([]);
    const file = path.join(sentinel.folder, 'sentinel.conf');
    writeFileSync(file, [
      `sentinel monitor ${name} 127.0.0.1 ${master.port} 2`,
      `sentinel down-after-milliseconds ${name} 1000`,
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
  all.push(...sentinels);
  await orStop(all, async () => {
    for (const sentinel of sentinels) await eventually(() => knows(sentinel), 'the Sentinels to know all', 20_000);
  });
  return { master, replicas, sentinels, stop: () => Promise.all(all.map((one) => one.stop())) };
}

/** Stops what was started when `prepare` fails: a process that stays would keep the test from ending. */
async function orStop(started, prepare) {
  try {
    await prepare();
  } catch (error) {
    await Promise.all(started.map((one) => one.stop()));
    throw error;
  }
}
