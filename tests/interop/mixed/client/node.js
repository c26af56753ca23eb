// npm ws or npm undici as a client of the mixed suite: `node node.js ws` or `node node.js undici`.
// In: orders, one JSON object per line on stdin → out: reports on stdout; ends with stdin.
// May use the two packages; everything else is in pipe.js.
// What a stack offers the server is changed here.

import { createInterface } from 'node:readline';

import { pipe } from './pipe.js';

/** Only the package that is asked for is loaded: undici wants a newer Node.js than ws. */
const STACKS = {
  async undici() {
    const { WebSocket } = await import('undici');
    return (url, protocols) => new WebSocket(url, protocols);
  },
  async ws() {
    const { WebSocket } = await import('ws');
    return (url, protocols, windowBits) =>
      new WebSocket(url, protocols, windowBits ? { perMessageDeflate: { serverMaxWindowBits: windowBits } } : {});
  },
};

const open = await STACKS[process.argv[2]]();
const obey = pipe(open, (report) => process.stdout.write(`${JSON.stringify(report)}\n`));
createInterface({ input: process.stdin })
  .on('line', (line) => obey(JSON.parse(line)))
  .on('close', () => process.exit());
