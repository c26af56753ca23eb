// A headless Chromium, driven through its DevTools protocol.
// In: the path of the program in CHROMIUM → out: a `Page` whose expressions and questions are answered.
// May use npm ws; never more of the protocol than the demo page's test needs.
// How the browser is started is changed here; what the page must do stands in demo.test.js.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';

import WebSocket from 'ws';

import { inCharge } from '../children.js';
import { PATIENCE_MS, eventually, within } from '../server.js';

/** Starts Chromium with a fresh profile; it ends with the test `t`. */
export async function openPage(t, url) {
  const profile = mkdtempSync(path.join(tmpdir(), 'fanwire-chromium-'));
  const program = process.env.CHROMIUM ?? 'chromium';
  const flags = [...FLAGS, `--user-data-dir=${profile}`, 'about:blank'];
  const browser = inCharge(spawn(program, flags, { stdio: ['ignore', 'ignore', 'pipe'] }));
  t.after(async () => {
    if (browser.exitCode === null && browser.signalCode === null) {
      const exit = once(browser, 'exit');
      browser.kill('SIGKILL');
      await within(exit, 'end of Chromium');
    }
    await eventually(() => isRemoved(profile), 'end of the processes that still write the profile');
  });
  const endpoint = await within(devtools(browser), 'DevTools of Chromium', 60_000);
  const host = new URL(endpoint).host;
  const created = await fetch(`http://${host}/json/new?about:blank`, { method: 'PUT' });
  const { webSocketDebuggerUrl } = await created.json();
  const page = await Page.attach(webSocketDebuggerUrl);
  await page.call('Network.enable');
  await page.call('Page.enable');
  await page.call('Runtime.enable');
  await page.call('Page.navigate', { url });
  return page;
}

/** One tab. `events` holds what the browser reported, `faults` uncaught errors and console errors of the page. */
class Page {
  static async attach(url) {
    const socket = new WebSocket(url);
    await within(once(socket, 'open'), 'DevTools connection');
    return new Page(socket);
  }

  constructor(socket) {
    Object.assign(this, { socket, id: 0, waiting: new Map(), events: [], faults: [] });
    socket.on('message', (bytes) => this.receive(JSON.parse(bytes.toString())));
  }

  receive(message) {
    if (message.id) {
      const { resolve, reject } = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (message.error) reject(new Error(message.error.message));
      else resolve(message.result);
      return;
    }
    this.events.push(message);
    const { method, params } = message;
    if (method === 'Runtime.exceptionThrown') this.faults.push(params.exceptionDetails.text);
    if (method === 'Runtime.consoleAPICalled' && params.type === 'error') this.faults.push(params.args);
  }

  call(method, params = {}) {
    this.id += 1;
    const answer = new Promise((resolve, reject) => this.waiting.set(this.id, { resolve, reject }));
    this.socket.send(JSON.stringify({ id: this.id, method, params }));
    return within(answer, method);
  }

  /** The value of a JavaScript expression in the page. */
  async evaluate(expression) {
    const options = { expression, returnByValue: true, awaitPromise: true };
    const { result, exceptionDetails } = await this.call('Runtime.evaluate', options);
    if (exceptionDetails) throw new Error(`${expression}: ${exceptionDetails.exception?.description}`);
    return result.value;
  }

  /** Asks the page until the expression is true, and returns its value. */
  until(expression, limitMs = PATIENCE_MS) {
    return eventually(() => this.evaluate(expression), expression, limitMs);
  }

  /** Types into the element with this id, as a person does: the field is focused and emptied first. */
  async type(id, text) {
    await this.evaluate(`document.getElementById(${JSON.stringify(id)}).focus()`);
    await this.evaluate('document.activeElement.select()');
    await this.call('Input.insertText', { text });
  }

  /** Presses the button with this id with the mouse, where it is on the screen. */
  async press(id) {
    const box = await this.evaluate(`(() => {
      const element = document.getElementById(${JSON.stringify(id)});
      element.scrollIntoView({ block: 'center' });
      const { x, y, width, height } = element.getBoundingClientRect();
      return { x: x + width / 2, y: y + height / 2 };
    })()`);
    for (const type of ['mousePressed', 'mouseReleased']) {
      await this.call('Input.dispatchMouseEvent', { type, ...box, button: 'left', clickCount: 1 });
    }
  }

  /** The response headers of the page's WebSocket handshake. */
  handshake() {
    const find = () => this.events.find(({ method }) => method === 'Network.webSocketHandshakeResponseReceived');
    return eventually(find, 'WebSocket handshake').then(({ params }) => params.response.headers);
  }
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

function devtools(browser) {
  return new Promise((resolve, reject) => {
    createInterface({ input: browser.stderr }).on('line', (line) => {
      const found = /DevTools listening on (ws:\S+)/.exec(line);
      if (found) resolve(found[1]);
    });
    browser.on('error', reject);
    browser.on('exit', (code) => reject(new Error(`Chromium ended with ${code}`)));
  });
}

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--no-proxy-server',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--window-size=1200,900',
  '--remote-debugging-port=0',
];
