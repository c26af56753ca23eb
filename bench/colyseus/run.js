// Colyseus next to the scenario `room`: the same players, rate and state, server and players each on a core of its own.
// In: --players, --ticks-per-second, --state-bytes, --seconds, --server-core, --generator-core → out: one row.
// The players answer the join and then count bytes; they decode nothing.

import { execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import WebSocket from "ws";

const JOIN_ROOM = 10; // https://github.com/colyseus/colyseus, Protocol
const ROOM_STATE_PATCH = 15;

const options = {
  players: "200",
  "ticks-per-second": "20",
  "state-bytes": "4096",
  seconds: "10",
  "server-core": "0",
  "generator-core": "1",
};
const { values } = parseArgs({
  options: Object.fromEntries(
    Object.entries(options).map(([name, value]) => [name, { type: "string", default: value }]),
  ),
});
const [players, seconds] = [Number(values.players), Number(values.seconds)];

execFileSync("taskset", ["-pc", values["generator-core"], String(process.pid)], { stdio: "ignore" });
const program = fileURLToPath(new URL("server.js", import.meta.url));
const server = spawn(
  "taskset",
  ["-c", values["server-core"], process.execPath, program, values["ticks-per-second"], values["state-bytes"]],
  { stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, NODE_ENV: "production" } },
);
const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
const nextNumber = async () => {
  for (;;) {
    const { value } = await lines.next();
    if (/^[0-9{]/.test(value)) return JSON.parse(value);
  }
};
const address = `127.0.0.1:${await nextNumber()}`;

let patches = 0;
const sockets = [];
for (let player = 0; player < players; player += 1) {
  sockets.push(await join());
}

async function join() {
  const answer = await fetch(`http://${address}/matchmake/joinOrCreate/numbers`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{}",
  });
  const seat = await answer.json();
  const socket = new WebSocket(
    `ws://${address}/${seat.processId}/${seat.roomId}?sessionId=${seat.sessionId}`,
  );
  await new Promise((resolve, reject) => {
    socket.on("error", reject);
    socket.on("message", (message) => {
      if (message[0] === JOIN_ROOM) {
        socket.send(Buffer.from([JOIN_ROOM]));
        resolve();
      }
      patches += message[0] === ROOM_STATE_PATCH;
    });
  });
  return socket;
}

// User and system time of all threads in seconds (proc(5), fields 14 and 15 in steps of 1/100 s).
function cpuSeconds() {
  const stat = readFileSync(`/proc/${server.pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

const bytes = () => sockets.reduce((sum, socket) => sum + socket._socket.bytesRead, 0);
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

await pause(2000);
const before = { bytes: bytes(), cpu: cpuSeconds(), patches, at: performance.now() };
await pause(seconds * 1000);
const wall = (performance.now() - before.at) / 1000;
const each = (bytes() - before.bytes) / players / wall / 1024;
const cpu = ((cpuSeconds() - before.cpu) / wall) * 100;
const perSecond = (patches - before.patches) / players / wall;
server.stdin.end();
const { ticks, late } = await nextNumber();
console.log(
  `Colyseus: CPU ${cpu.toFixed(1)} %, ${each.toFixed(1)} KiB/s and ${perSecond.toFixed(1)} patches/s each, ${late} of ${ticks} ticks late`,
);
process.exit(0);
