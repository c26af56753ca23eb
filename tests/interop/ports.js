// Ports for programs that have to be told a number: each test gets its own, also among processes that run side by side.
// In: nothing → out: a port at which nothing listens, and that no other caller gets while this process lives.
// Uses sockets of the loopback. Never: files, because the kernel frees sockets of a process that was killed.
// Changed here: nothing without crates/testing/src/ports.rs, whose range and blocks these are.

import dgram from 'node:dgram';
import { once } from 'node:events';
import net from 'node:net';

/** The ports from 10,000 to 32,767, where those of outgoing connections begin. */
const FIRST = 10_000;
const BLOCK_SIZE = 32;
const BLOCKS = Math.floor((32_768 - FIRST) / BLOCK_SIZE);

/** Ports of this process's blocks that were not returned yet. */
const left = [];
let turn = Promise.resolve();

/** A port of the loopback. A program that can listen at port 0 does that instead. */
export function freePort() {
  turn = turn.then(next);
  return turn;
}

async function next() {
  for (;;) {
    if (left.length === 0) await takeBlock();
    const port = left.shift();
    if (await isFree(port)) return port;
  }
}

/** A block is taken by whoever has the UDP socket at its first port, which no test uses for anything else. */
async function takeBlock() {
  for (let tries = 0; tries < BLOCKS; tries += 1) {
    const first = FIRST + ((process.pid + tries) % BLOCKS) * BLOCK_SIZE;
    if (await has(dgram.createSocket('udp4').unref(), (lock) => lock.bind(first, '127.0.0.1'))) {
      for (let port = first; port < first + BLOCK_SIZE; port += 1) left.push(port);
      return;
    }
  }
  throw new Error('all blocks of ports are in use');
}

async function isFree(port) {
  const listener = net.createServer();
  const listens = await has(listener, () => listener.listen(port, '127.0.0.1'));
  if (listens) await new Promise((resolve) => listener.close(resolve));
  return listens;
}

async function has(socket, bind) {
  const listening = once(socket, 'listening');
  bind(socket);
  return listening.then(() => true, () => false);
}
