// Chromium and Firefox as stacks: a page that obeys orders over one WebSocket to the driver; or with any other page.
// In: the name of a browser → out: a stack, once its page has called; a browser with a URL.
// May use npm ws to serve the page's control connection; never a driver protocol of a browser.
// How a browser is started is changed here; the page is client/page.html.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { WebSocketServer } from 'ws';

import { inCharge } from '../children.js';
import { eventually, within } from '../server.js';

const BROWSERS = {
  chromium: {
    variable: 'CHROMIUM',
    programs: ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'],
    prepare: () => {},
    flags: (profile) => [
      '--headless=new',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--no-first-run',
      '--no-proxy-server',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
      `--user-data-dir=${profile}`,
    ],
  },
  firefox: {
    variable: 'FIREFOX',
    programs: ['firefox-esr', 'firefox'],
    prepare: (profile) => writeFileSync(path.join(profile, 'user.js'), FIREFOX_PREFERENCES),
    flags: (profile) => ['--headless', '--no-remote', '--profile', profile],
  },
};

/** Nothing but the page: what a new profile would fetch goes to a proxy that is not there. */
const FIREFOX_PREFERENCES = Object.entries({
  'app.normandy.enabled': false,
  'app.update.auto': false,
  'browser.aboutwelcome.enabled': false,
  'browser.safebrowsing.downloads.remote.enabled': false,
  'browser.shell.checkDefaultBrowser': false,
  'browser.startup.homepage_override.mstone': 'ignore',
  'datareporting.policy.dataSubmissionEnabled': false,
  'extensions.update.enabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'network.proxy.http': '127.0.0.1',
  'network.proxy.http_port': 9,
  'network.proxy.ssl': '127.0.0.1',
  'network.proxy.ssl_port': 9,
  'network.proxy.type': 1,
  'services.settings.server': 'http://127.0.0.1:9/',
  'toolkit.telemetry.server': '',
}).map(([key, value]) => `user_pref(${JSON.stringify(key)}, ${JSON.stringify(value)});\n`).join('');

/** Starts a browser with a fresh profile; `stackOf` makes the stack of `write` and `stop`. */
export async function startBrowser(name, stackOf) {
  find(name); // an error before anything is served
  const host = await servePage();
  const { program, browser, ended, stop: stopBrowser } = open(name, `${host.url}/page.html`);
  const stop = async () => {
    await stopBrowser();
    host.stop();
  };
  try {
    await once(browser, 'spawn');
    const early = ended.then((code) => Promise.reject(new Error(`${program} ended with ${code}`)));
    early.catch(() => {}); // afterwards the stack tells
    const control = await within(Promise.race([host.called, early]), `the page in ${program}`, 60_000);
    const stack = stackOf({ write: (order) => control.send(JSON.stringify(order)), stop });
    control.on('message', (line) => stack.take(line.toString()));
    ended.then((code) => stack.fall(`the browser ended with ${code}`));
    return stack;
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Starts a browser with a fresh profile at `url`; `ended` resolves with its exit code or signal. */
export function open(name, url) {
  const kind = BROWSERS[name];
  const program = find(name);
  const profile = mkdtempSync(path.join(tmpdir(), `fanwire-${name}-`));
  kind.prepare(profile);
  const browser = inCharge(spawn(program, [...kind.flags(profile), url], { stdio: 'ignore' }));
  const ended = new Promise((resolve) => browser.once('exit', (code, signal) => resolve(code ?? signal)));
  const stop = async () => {
    browser.kill('SIGKILL');
    await within(ended, `end of ${name}`);
    await eventually(() => isRemoved(profile), 'end of the processes that still write the profile');
  };
  return { program, browser, ended, stop };
}

/** The path of a browser's program; an error that says where it was looked for. */
export function find(name) {
  const { variable, programs } = BROWSERS[name];
  const folders = process.env.PATH.split(':');
  const candidates = process.env[variable]
    ? [process.env[variable]]
    : programs.flatMap((program) => folders.map((folder) => path.join(folder, program)));
  const found = candidates.find((program) => existsSync(program));
  if (!found) throw new Error(`no ${name}: none of ${programs.join(', ')} is on the PATH, and ${variable} names none`);
  return found;
}

/** Serves the page on a free port; `called` resolves with the page's control connection. */
async function servePage() {
  const server = createServer((request, response) => {
    const kind = PAGE_FILES[request.url];
    if (!kind) return response.writeHead(404).end();
    const file = new URL(`client${request.url}`, import.meta.url);
    return response.writeHead(200, { 'Content-Type': kind }).end(readFileSync(file));
  });
  const sockets = new WebSocketServer({ server, path: '/control' });
  const called = once(sockets, 'connection').then(([socket]) => socket);
  called.catch(() => {}); // whoever waits for it is told
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = () => {
    for (const socket of sockets.clients) socket.terminate();
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${server.address().port}`, called, stop };
}

/** Removes a folder; false when something was written into it meanwhile. */
function isRemoved(folder) {
  try {
    rmSync(folder, { recursive: true, force: true });
    return true;
  } catch (error) {
    if (error.code !== 'ENOTEMPTY') throw error;
    return false;
  }
}

const PAGE_FILES = { '/page.html': 'text/html; charset=utf-8', '/pipe.js': 'text/javascript; charset=utf-8' };
