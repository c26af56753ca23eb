// The room of the scenario `room` as a Colyseus room: numbers of which a tenth changes in each tick.
// In: ticks per second, bytes of the state as JSON → out: its port; at the end of the standard input, its ticks and late ticks.

import { Room, Server } from "@colyseus/core";
import { ArraySchema, schema } from "@colyseus/schema";
import { WebSocketTransport } from "@colyseus/ws-transport";

const [ticksPerSecond, stateBytes] = process.argv.slice(2).map(Number);
const period = 1000 / ticksPerSecond;
const report = { ticks: 0, late: 0 };

const State = schema({ numbers: { array: "uint32" } });

class Numbers extends Room {
  maxClients = 100_000;
  random = 1;

  onCreate() {
    this.state = new State();
    this.state.numbers = new ArraySchema();
    for (let number = 0; number < stateBytes / 6; number += 1) this.state.numbers.push(10_000 + number * 7);
    this.setPatchRate(null); // the tick sends what it changed
    const started = performance.now();
    let due = 0;
    this.setSimulationInterval(() => {
      due += 1;
      const behind = performance.now() - started - due * period;
      if (behind >= period) {
        report.late += 1;
        due += Math.floor(behind / period);
      }
      report.ticks += 1;
      this.advance();
      this.broadcastPatch();
    }, period);
  }

  advance() {
    const { numbers } = this.state;
    for (let change = 0; change < Math.floor(numbers.length / 10); change += 1) {
      this.random = (Math.imul(this.random, 1_664_525) + 1_013_904_223) >>> 0;
      const index = Math.floor(this.random / 256) % numbers.length;
      numbers[index] = 10_000 + ((numbers[index] + 37) % 90_000);
    }
  }
}

const transport = new WebSocketTransport();
const server = new Server({ transport, greet: false });
server.define("numbers", Numbers);
await server.listen(0, "127.0.0.1");
console.log(transport.server.address().port);
process.stdin.resume().on("end", () => {
  console.log(JSON.stringify(report));
  process.exit(0);
});
