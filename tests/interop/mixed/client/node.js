// npm ws or npm undici as a client of the mixed suite: `node node.js ws` or `node node.js undici`.
// In: orders, one JSON object per line on stdin → out: reports on stdout; ends with stdin.
// May use the two packages; everything else is in pipe.js.
// What a stack offers the server is changed here.

import { createInterface } from 'node:readline';

import { WebSocket as Undici } from 'undici';
import Ws from 'ws';

import { pipe } from './pipe.js';

const STACKS = {
  undici: (url, protocols) => new Undici(url, protocols),
  ws: (url, protocols, windowBits) =>
    new Ws(url, protocols, windowBits ? { perMessageDeflate: { serverMaxWindowBits: windowBits } } : {}),
};

const obey = pipe(STACKS[process.argv[2]], (report) => process.stdout.write(`${JSON.stringify(report)}\n`));
createInterface({ input: process.stdin })
  .on('line', (line) => obey(JSON.parse(line)))
  .on('close', () => process.exit());
