// The mixed suite: real WebSocket stacks against the real server, every message compared byte for byte.
// In: names of stacks and scenarios, none meaning all, and perhaps `--seed TEXT` → out: a line per pair, exit status 1 on a fault.
// May run two stacks at once, no more; the servers are shared, the channels are not.
// Stacks are rows in stacks.js, scenarios in scenarios.js; this file only plays one on the other.

import { parseArgs } from 'node:util';

import { start } from '../server.js';
import { SCENARIOS } from './scenarios.js';
import { settings } from './settings.js';
import { STACKS, leftOut } from './stacks.js';
import { Stage } from './stage.js';

const AT_ONCE = 2;

async function main() {
  const options = { seed: { type: 'string', default: '1' } };
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const names = new Set(positionals);
  const stacks = chosen(STACKS, names);
  const scenarios = chosen(SCENARIOS, names);
  if (names.size > 0) throw new Error(`no stack or scenario is called ${[...names].join(', ')}; ${KNOWN}`);
  console.log(`seed ${values.seed}`);
  console.log(line(HEADER));
  const servers = {};
  const results = [];
  try {
    for (const [name, wanted] of Object.entries(await settings())) servers[name] = await start(wanted);
    results.push(...(await playAll({ stacks, servers, scenarios, seed: values.seed })));
  } finally {
    for (const [name, server] of Object.entries(servers)) results.push(await stops(name, server));
  }
  const failed = results.filter((isOk) => !isOk).length;
  console.log(`# pass ${results.length - failed}\n# fail ${failed}`);
  return failed === 0;
}

/** Stops a server, which must end well. */
async function stops(name, server) {
  const code = await server.stop();
  if (code !== 0) console.log(`server ${name} ended with ${code}:\n${server.lines.slice(-20).join('\n')}`);
  return code === 0;
}

async function playAll({ stacks, ...setting }) {
  const results = [];
  const queue = [...stacks];
  const worker = async () => {
    for (let row = queue.shift(); row; row = queue.shift()) results.push(...(await playStack({ row, ...setting })));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}

/** The rows that are named, all when none is; takes their names out of `names`. */
function chosen(rows, names) {
  const named = rows.filter(({ name }) => names.delete(name));
  return named.length > 0 ? named : rows;
}

/** Plays the scenarios to one stack, one after another; true or false for each. A stack that fell is started again. */
async function playStack({ row, servers, scenarios, seed }) {
  const results = [];
  const reason = leftOut(row);
  if (reason) {
    // The line that `cargo xtask` counts as skipped, for a stack that would have counted as passed.
    console.log(`NOT RUN: ${row.name}: ${reason}`);
    return [true];
  }
  let stack;
  try {
    for (const scenario of scenarios.filter(({ isFor }) => isFor(row))) {
      if (!stack || stack.isGone) stack = await row.start();
      results.push(await playScenario(scenario, { servers, row, stack, scenario: scenario.name, seed }));
    }
  } catch (error) {
    console.log(line([row.name, 'start', '', '', '', '', '', `FAILED ${error.message}`]));
    results.push(false);
  }
  await stack?.stop();
  return results;
}

async function playScenario({ name, play }, setting) {
  const stage = new Stage(setting);
  const fault = await play(stage).then(() => undefined, (error) => error.message);
  const { answer, messages, compressed, payloadBytes, wireBytes, seen, expected } = stage.counts();
  const outcome = `${fault ? `FAILED ${fault};` : 'ok'} ${seen}/${expected}`;
  console.log(line([setting.row.name, name, messages, compressed, payloadBytes, wireBytes, answer, outcome]));
  stage.drop();
  return fault === undefined;
}

/** One line of the table: texts to the left, numbers to the right. */
function line(cells) {
  const [stack, scenario, messages, compressed, payload, wire, answer, outcome] = cells;
  const texts = [stack.padEnd(11), scenario.padEnd(8)];
  const numbers = [messages, compressed, payload, wire].map((cell, n) => String(cell).padStart([9, 11, 10, 10][n]));
  return [...texts, ...numbers, '', answer.padEnd(73), outcome].join(' ');
}

const HEADER = ['stack', 'scenario', 'messages', 'compressed', 'payload B', 'wire B', 'agreement', 'publications and replies'];
const KNOWN = `known are: ${[...STACKS, ...SCENARIOS].map(({ name }) => name).join(' ')}`;

const isOk = await main().catch((error) => console.error(`error: ${error.message}`));
process.exitCode = isOk ? 0 : 1;
