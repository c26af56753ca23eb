// Starts the server for a test, publishes through its API and stops it by its own process id.
// In: settings with Centrifugo's keys → out: a `Server` that listens on a free port of 127.0.0.1.
// May use Node's own modules only; never waits for a moment, always for an event and with a limit.
// How a server is started is changed here; the clients of the tests are made in js/clients.js and browser/chromium.js.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { inCharge } from './children.js';

export const API_KEY = 'interop-api-key';
export const TOKEN_SECRET = 'interop-token-secret';
/** What the server logs when a compressed frame would not have been understood. */
const WRONG_FRAME = 'a compressed frame was wrong';
/** The longest a test waits for one event, in milliseconds. */
export const PATIENCE_MS = 60_000;

export const PROGRAM =
  process.env.FANWIRE ?? fileURLToPath(new URL('../../target/debug/fanwire', import.meta.url));

/** Variables of these suites: a start warns of them, and a reload refuses what is no key. */
const OF_THE_SUITES = Object.keys(process.env).filter((name) => name.startsWith('FANWIRE_'));
const NOT_FOR_THE_SERVER = Object.fromEntries(OF_THE_SUITES.map((name) => [name, undefined]));

/** A running server. `host` is `127.0.0.1:PORT`, `lines` what it printed. */
export class Server {
  constructor({ child, lines, folder }, host, apiKey) {
    Object.assign(this, { child, lines, folder, host, apiKey });
    this.http = `http://${host}`;
    this.websocket = `ws://${host}/connection/websocket`;
  }

  /** Calls a method of the server API and returns its result; an error of the API fails the test. */
  async api(method, request = {}) {
    const reply = await this.apiReply(method, request);
    assert.equal(reply.error, undefined, `${method}: ${JSON.stringify(reply)}`);
    return reply.result;
  }

  async apiReply(method, request = {}) {
    const response = await fetch(`${this.http}/api/${method}`, {
      method: 'POST',
      headers: { 'X-API-Key': this.apiKey, 'Content-Type': 'application/json' },
      body: JSON.stringify(request),
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    assert.equal(response.status, 200, await response.clone().text());
    return response.json();
  }

  /** How many connections the server counts. */
  async connections() {
    return (await this.api('info')).nodes[0].num_clients;
  }

  /** Lets a new process go on with the connections of this one. It ends with the test `t`. Needs a `pid_file`. */
  async upgrade(t) {
    const { child, lines } = launchIn(this.folder, ['upgrade', '--config', 'config.json']);
    await within(once(child, 'close'), 'end of the upgrade');
    const text = lines.join('\n');
    const pid = Number(/^process (\d+) serves now/m.exec(text)?.[1]);
    assert.ok(pid > 0 && pid !== this.child.pid, text);
    t.after(() => process.kill(pid, 'SIGKILL'));
  }

  /** Sends a signal and returns the exit code (null when the signal ended it). */
  async stop(signal = 'SIGTERM') {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const exit = once(this.child, 'exit');
      this.child.kill(signal);
      await within(exit, 'exit of the server', 40_000);
    }
    if (this.folder) rmSync(this.folder, { recursive: true, force: true });
    const wrong = this.lines.filter((line) => line.includes(WRONG_FRAME));
    assert.deepEqual(wrong, [], 'websocket.compression_verify held frames back');
    return this.child.exitCode;
  }
}

/** Starts a server with the common settings of the suites and `settings` over them. */
export async function start(settings = {}, environment = {}) {
  const process = launch(['serve', '--config', 'config.json'], merge(COMMON_SETTINGS, settings), environment);
  return new Server(process, await firstAddress(process), API_KEY);
}

/** Starts a server with the text of a configuration file, on a free port. */
export async function startWith(text, apiKey, environment = {}) {
  const place = { FANWIRE_HTTP_SERVER_ADDRESS: '127.0.0.1', FANWIRE_HTTP_SERVER_PORT: '0', ...environment };
  const process = launch(['serve', '--config', 'fanwire.yaml'], {}, place, { 'fanwire.yaml': text });
  return new Server(process, await firstAddress(process), apiKey);
}

/** What `check-config --strict` says of the text of a configuration file, without the variables of these suites. */
export function check(text) {
  const own = Object.keys(process.env).filter((name) => name.startsWith('FANWIRE'));
  const environment = Object.fromEntries(own.map((name) => [name, undefined]));
  return run(['check-config', '--strict', 'fanwire.yaml'], {}, { 'fanwire.yaml': text }, environment);
}

/** Starts the program with the words of a command line in a folder, which stays when the server is stopped. */
export async function startIn(folder, words, environment) {
  const process = { ...launchIn(folder, words, environment), folder: undefined };
  return new Server(process, await firstAddress(process), undefined);
}

/** Starts the program as a newcomer does, without arguments; only the port is left to the system. */
export async function startBare() {
  const process = launch([], {}, { FANWIRE_HTTP_SERVER_PORT: '0' });
  const host = await firstAddress(process);
  const key = await firstMatch(process, /X-API-Key: ([^'"\s]+)/, 'a curl line with the API key');
  return new Server(process, host, key);
}

/** Starts a server that is expected to refuse its settings: its exit code and what it printed. */
export function refusal(settings) {
  return run(['serve', '--config', 'config.json'], merge(COMMON_SETTINGS, settings));
}

/** Runs the program to its end in a folder with `settings` in config.json and further files: exit code and output. */
export async function run(programArguments, settings = {}, files = {}, environment = {}) {
  const { child, lines, folder } = launch(programArguments, settings, environment, files);
  try {
    const [code] = await within(once(child, 'close'), `end of fanwire ${programArguments.join(' ')}`);
    return { code, text: lines.join('\n') };
  } finally {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A token as the server's `client.token.hmac_secret_key` verifies it; algorithm `none` has no signature. */
export function token(claims, { secret = TOKEN_SECRET, algorithm = 'HS256' } = {}) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${part({ alg: algorithm, typ: 'JWT' })}.${part(claims)}`;
  if (algorithm === 'none') return `${text}.`;
  const hash = algorithm.replace('HS', 'sha');
  return `${text}.${createHmac(hash, secret).update(text).digest('base64url')}`;
}

/** `promise`, or an error that names what was waited for. */
export async function within(promise, what, limitMs = PATIENCE_MS) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${limitMs} ms for ${what}`)), limitMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Asks `question` again and again until it answers something true, and returns that. */
export async function eventually(question, what, limitMs = PATIENCE_MS) {
  const end = performance.now() + limitMs;
  for (;;) {
    const answer = await question();
    if (answer) return answer;
    if (performance.now() > end) throw new Error(`waited ${limitMs} ms for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 1)); // leaves the processors to what is waited for
  }
}

/** What an emitter has emitted, in order, with a way to wait for more of it. */
export class Log {
  constructor(emitter, event) {
    this.items = [];
    this.waiting = new Set();
    emitter.on(event, (...values) => {
      this.items.push(values.length > 1 ? values : values[0]);
      for (const check of this.waiting) check();
    });
  }

  /** The first item, old or new, that `matches`. */
  find(matches, what, limitMs) {
    return this.wait(() => this.items.find(matches), what, limitMs);
  }

  /** All items, once there are at least `count`. */
  count(count, what = `${count} events`) {
    return this.wait(() => (this.items.length >= count ? this.items : undefined), what);
  }

  wait(question, what, limitMs) {
    const { promise, check } = settled(question);
    this.waiting.add(check);
    check();
    const described = () => `${what}; there were ${this.items.length}`;
    return within(promise, described(), limitMs).finally(() => this.waiting.delete(check));
  }
}

function settled(question) {
  let resolve;
  const promise = new Promise((done) => (resolve = done));
  const check = () => {
    const answer = question();
    if (answer !== undefined) resolve(answer);
  };
  return { promise, check };
}

const COMMON_SETTINGS = {
  http_server: { address: '127.0.0.1', port: 0 },
  http_api: { key: API_KEY },
  client: { token: { hmac_secret_key: TOKEN_SECRET } },
  websocket: { compression_verify: true },
};

/** Folders of servers, also of those that did not start; the end of the tests removes them. */
const folders = new Set();
process.on('exit', () => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

/** Starts the program in a new folder with `settings` in its config.json and further files, and keeps what it prints. */
function launch(programArguments, settings, environment = {}, files = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), 'fanwire-'));
  folders.add(folder);
  writeFileSync(path.join(folder, 'config.json'), JSON.stringify(settings, null, 2));
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
  return launchIn(folder, programArguments, environment);
}

function launchIn(folder, programArguments, environment = {}) {
  const env = { ...process.env, ...NOT_FOR_THE_SERVER, ...environment };
  const child = inCharge(spawn(PROGRAM, programArguments, { stdio: ['ignore', 'pipe', 'pipe'], cwd: folder, env }));
  const lines = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line);
      child.emit('line', line);
    });
  }
  return { child, lines, folder };
}

function firstAddress(process) {
  return firstMatch(process, /\blistens on (127\.0\.0\.1:\d+)/, 'its address');
}

/** What `pattern` captures in the first printed line that matches; a server that ends before is an error. */
async function firstMatch({ child, lines }, pattern, what) {
  const found = new Promise((resolve, reject) => {
    const look = (line) => {
      const match = pattern.exec(line);
      if (match) resolve(match[1]);
    };
    lines.forEach(look);
    child.on('line', look);
    child.on('error', reject);
    child.on('close', (code) => reject(new Error(`it ended with ${code}`)));
  });
  try {
    return await within(found, what);
  } catch (error) {
    child.kill('SIGKILL');
    throw new Error(`the server did not print ${what}: ${error.message}\n${lines.join('\n')}`);
  }
}

function merge(below, above) {
  const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isObject(below) || !isObject(above)) return above;
  const merged = { ...below };
  for (const [key, value] of Object.entries(above)) merged[key] = merge(below[key], value);
  return merged;
}
