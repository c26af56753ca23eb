// The WebSocket stacks of the mixed suite, and how one is started.
// In: the name of a stack → out: a `Stack` that obeys orders and reports, or an error that says what is missing.
// May start the programs named in FANWIRE_PYTHON, FANWIRE_GO_CLIENTS, CHROMIUM and FIREFOX; ends them by their own ids.
// A stack is a row of STACKS; what it offers is in its program below client/ or ../go/.

import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import WebSocket from 'ws';

import { inCharge } from '../children.js';
import { within } from '../server.js';
import { startBrowser } from './browsers.js';
import { pipe } from './client/pipe.js';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const TARGET = process.env.CARGO_TARGET_DIR ?? path.join(HERE, '../../../target');

const inClient = (file) => path.join(HERE, 'client', file);
const node = (name) => () => startProgram(process.execPath, [inClient('node.js'), name]);
const python = (file) => () =>
  startProgram(process.env.FANWIRE_PYTHON ?? path.join(TARGET, 'interop/venv/bin/python'), ['-B', inClient(file)]);
const go = (name) => () =>
  startProgram(path.join(process.env.FANWIRE_GO_CLIENTS ?? path.join(TARGET, 'interop/go'), name), []);

/** `nodeMin`: the Node.js that the stack needs beyond the driver's own. `canAskForWindow`: the stack can offer server_max_window_bits. `takeover`: it lets the server keep its window. `refersBack`: its own messages are compressed, and refer to earlier ones where the server allows it. */
export const STACKS = [
  { name: 'ws', start: node('ws'), canAskForWindow: true, takeover: true, refersBack: true },
  { name: 'undici', start: node('undici'), nodeMin: '20.18.1', canAskForWindow: false, takeover: true },
  { name: 'websockets', start: python('websockets_client.py'), canAskForWindow: true, takeover: true, refersBack: true },
  { name: 'aiohttp', start: python('aiohttp_client.py'), canAskForWindow: false, takeover: true, refersBack: true },
  { name: 'coder', start: go('coder'), canAskForWindow: false, takeover: true, refersBack: true },
  { name: 'gws', start: go('gws'), canAskForWindow: true, takeover: true, refersBack: true },
  { name: 'gorilla', start: go('gorilla'), canAskForWindow: false, takeover: false },
  { name: 'chromium', start: browser('chromium'), canAskForWindow: false, takeover: true, refersBack: true },
  { name: 'firefox', start: browser('firefox'), canAskForWindow: false, takeover: true, refersBack: true },
];

/** Why a stack cannot be played with this Node.js, undefined when it can. */
export function leftOut({ nodeMin }) {
  if (nodeMin === undefined) return undefined;
  const [found, wanted] = [process.versions.node, nodeMin].map((version) => version.split('.').map(Number));
  const at = wanted.findIndex((number, place) => number !== found[place]);
  return at < 0 || found[at] > wanted[at] ? undefined : `needs Node.js ${nodeMin}, this is ${process.versions.node}`;
}

/** A running stack. Its reports are emitted under the id of their connection; `write` hands it an order. */
export class Stack extends EventEmitter {
  constructor({ write, stop, prefix = 'c' }) {
    super();
    Object.assign(this, { write, stop, prefix, connections: 0 });
  }

  /** A name for the next connection. */
  nextId() {
    this.connections += 1;
    return `${this.prefix}${this.connections}`;
  }

  take(line) {
    const report = JSON.parse(line);
    this.emit(report.id, report);
  }

  /** Tells every connection that the stack is gone. */
  fall(reason) {
    this.isGone = true;
    for (const id of this.eventNames()) this.emit(id, { event: 'close', id, code: null, reason });
  }
}

/** npm ws inside the driver with an offer of its own, for connections beside those of the stack that is tested. */
export function witness(perMessageDeflate) {
  const open = (url, protocols) => new WebSocket(url, protocols, { perMessageDeflate });
  const obey = pipe(open, (report) => stack.emit(report.id, report));
  const stack = new Stack({ write: obey, prefix: 'w' });
  return stack;
}

async function startProgram(program, programArguments) {
  if (!existsSync(program)) throw new Error(`${program} is missing; cargo xtask interop installs it`);
  const child = inCharge(spawn(program, programArguments, { stdio: ['pipe', 'pipe', 'pipe'] }));
  await once(child, 'spawn');
  const faults = [];
  createInterface({ input: child.stderr }).on('line', (line) => faults.push(line));
  const ended = once(child, 'close');
  const stack = new Stack({
    write: (order) => child.stdin.write(`${JSON.stringify(order)}\n`),
    stop: async () => {
      child.stdin.end();
      await within(ended, `end of ${program}`).catch(() => child.kill('SIGKILL'));
      await within(ended, `end of ${program} by force`);
    },
  });
  child.stdin.on('error', () => {}); // its end is reported below
  createInterface({ input: child.stdout }).on('line', (line) => stack.take(line));
  child.on('close', (code, signal) => {
    stack.fall(`the client ended with ${code ?? signal}: ${faults.slice(-12).join(' | ') || 'no message'}`);
  });
  return stack;
}

function browser(name) {
  return () => startBrowser(name, (face) => new Stack(face));
}
