// Backends of event proxies: an HTTP one and a gRPC one inside a test, and the programs of docs/backends.md as processes.
// In: answers by path or method, or a program of the page → out: where it listens, and a log of what it was asked.
// May use Node's own modules and npm gRPC; never expectations, which stand in the tests.
// How a backend runs is changed here; what it answers stands in the tests and in the page.

import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import grpc from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

import { inCharge } from './children.js';
import { Log, start, within } from './server.js';

const PROTO = fileURLToPath(new URL('../../crates/protocol/proto/proxy.proto', import.meta.url));
const MODULES = fileURLToPath(new URL('./node_modules', import.meta.url));
/** A compiler with an empty cache on a busy machine. */
const BUILD_MS = 300_000;

/**
 * An HTTP backend. `answers` has a function per path, from an event to a body, or to `[status, body, headers]`, or to
 * `undefined` when it has answered with the response, its second argument, itself. `serverOf` makes a server other than one
 * of plain HTTP.
 */
export class HttpBackend {
  static async start(t, answers, { port = 0, serverOf = createServer } = {}) {
    const emitter = new EventEmitter();
    const backend = Object.assign(new HttpBackend(), { answers, events: new Log(emitter, 'event') });
    const answered = async (request, response) => {
      let text = '';
      for await (const part of request.setEncoding('utf8')) text += part;
      const { url: path, headers, httpVersion } = request;
      const event = { path, headers, httpVersion, text, body: JSON.parse(text) };
      emitter.emit('event', event);
      const answer = await backend.answers[event.path]?.(event, response);
      if (answer === undefined) return;
      const [status, body, more] = Array.isArray(answer) ? answer : [200, answer];
      response.writeHead(status, more).end(typeof body === 'string' ? body : JSON.stringify(body));
    };
    backend.server = serverOf(answered);
    backend.server.on('session', (session) => t.after(() => session.destroy()));
    backend.server.listen(port, '127.0.0.1');
    await once(backend.server, 'listening');
    backend.port = backend.server.address().port;
    t.after(() => backend.stop());
    return backend;
  }

  url(at) {
    return `http://localhost:${this.port}${at}`;
  }

  /** The events at a path so far. */
  at(at) {
    return this.events.items.filter((event) => event.path === at);
  }

  /** All events at a path, once there are at least `count`. */
  count(at, count) {
    const enough = () => (this.at(at).length >= count ? this.at(at) : undefined);
    return this.events.wait(enough, `${count} events at ${at}`);
  }

  stop() {
    this.server.close();
    this.server.closeAllConnections?.();
  }
}

/** Starts a server with these settings that ends with the test. */
export async function serve(t, settings) {
  const server = await start(settings);
  t.after(() => server.stop());
  return server;
}

/** Settings of `client` with a connect proxy at the path `/connect` of a backend. */
export const connected = (backend, options = {}) => ({
  proxy: { connect: { enabled: true, endpoint: backend.url('/connect'), ...options } },
});

/** The answer of a connect that makes everybody `ada`. */
export const asAda = () => ({ result: { user: 'ada' } });

/** The Unix second in so many seconds. */
export const seconds = (from = 0) => Math.floor(Date.now() / 1000) + from;

/** Starts a gRPC backend with these methods, as grpc-js calls them; `address` is its endpoint. */
export async function grpcBackend(t, methods, { at = 0, credentials = grpc.ServerCredentials.createInsecure() } = {}) {
  const proto = loadSync(PROTO, { keepCase: true });
  const { CentrifugoProxy } = grpc.loadPackageDefinition(proto).centrifugal.centrifugo.proxy;
  const server = new grpc.Server();
  server.addService(CentrifugoProxy.service, methods);
  const port = await new Promise((resolve, reject) => {
    const bound = (error, port) => (error ? reject(error) : resolve(port));
    server.bindAsync(`127.0.0.1:${at}`, credentials, bound);
  });
  t.after(() => server.forceShutdown());
  return { server, port, address: `grpc://127.0.0.1:${port}` };
}

/** A gRPC method that answers with what `decide` returns. */
export const unary = (decide) => (call, callback) => callback(null, decide(call.request, call.metadata));

/** JSON as gRPC messages hold it. */
export const bytes = (value) => Buffer.from(JSON.stringify(value));

/** The fenced blocks with a file name of a page of docs/. */
export function filesOf(page) {
  const text = readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8');
  return Object.fromEntries([...text.matchAll(/^```\w+ (\S+)\n(.*?)^```$/gms)].map(([, name, block]) => [name, block]));
}

/** Starts a program of docs/backends.md on a free port, and returns its address. */
export async function program(t, name, text) {
  const folder = mkdtempSync(path.join(tmpdir(), 'fanwire-backend-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(path.join(folder, name), text);
  copyFileSync(PROTO, path.join(folder, 'proxy.proto'));
  symlinkSync(MODULES, path.join(folder, 'node_modules'));
  if (name.endsWith('.go')) {
    const env = { ...process.env, GO111MODULE: 'off', GOFLAGS: '-mod=mod' };
    const build = inCharge(spawn('go', ['build', '-o', 'backend', name], { cwd: folder, stdio: 'inherit', env }));
    const [code] = await within(once(build, 'exit'), 'go build', BUILD_MS);
    if (code !== 0) throw new Error(`go build ended with ${code}`);
  }
  const commands = {
    '.mjs': [process.execPath, name],
    '.py': ['python3', name],
    '.go': ['./backend'],
    '.php': ['php', '-S', '127.0.0.1:0', name],
  };
  const [command, ...commandArguments] = commands[path.extname(name)];
  const env = { ...process.env, PORT: '0' };
  const child = inCharge(spawn(command, commandArguments, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] }));
  t.after(() => child.kill('SIGKILL'));
  const emitter = new EventEmitter();
  const lines = new Log(emitter, 'line');
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => emitter.emit('line', line));
  }
  const line = await lines.find((line) => PORT.test(line), `the port of ${name}`);
  return `127.0.0.1:${PORT.exec(line).slice(1).find(Boolean)}`;
}

/** What a program prints when it listens. */
const PORT = /^backend on port (\d+)$|Development Server \(http:\/\/127\.0\.0\.1:(\d+)\) started/;
