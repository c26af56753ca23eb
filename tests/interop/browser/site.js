// A site with one page, whose WebSockets go through it to a server: it can be cut off from there.
// In: the text of a page, settings of the server → out: the page in Chromium, and the two ends of its connection.
// May use the package for pages out of its tarball, the SDK; never what a page contains.
// Changed here: what a page can import. What pages promise stands in stores.test.js and outbox.test.js.

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';

import { openPage } from './chromium.js';

export const PACKAGE = fileURLToPath(new URL('../../../clients/js/', import.meta.url));
export const NODE_MODULES = fileURLToPath(new URL('../node_modules/', import.meta.url));

export const folder = mkdtempSync(path.join(tmpdir(), 'fanwire-stores-'));
after(() => rmSync(folder, { recursive: true }));
const npm = (...words) => execFileSync('npm', [...words, '--offline', '--no-audit', '--no-fund'], { cwd: PACKAGE, encoding: 'utf8' });
const tarball = npm('pack', '--silent', '--pack-destination', folder).trim();
npm('install', '--silent', '--no-save', '--legacy-peer-deps', '--prefix', folder, path.join(folder, tarball));
export const INSTALLED = path.join(folder, 'node_modules/fanwire-stores/src');

const IMPORTS = { 'fanwire-stores': '/fanwire-stores/index.js', centrifuge: '/centrifuge/index.mjs' };
const FOLDERS = { 'fanwire-stores': INSTALLED, centrifuge: path.join(NODE_MODULES, 'centrifuge/build') };

/** A site with one page, whose WebSockets go through it to a server: it can be cut off from there. */
export class Site {
  /** `files` are texts by their path. */
  static async serve(t, html, server, files = {}) {
    t.after(() => server.stop());
    const site = Object.assign(new Site(), { server, sockets: new Set(), upstreams: new Set(), isOffline: false });
    const http = createServer((request, response) => {
      const [, name, file] = request.url.split('/');
      const script = FOLDERS[name] && readFileSync(path.join(FOLDERS[name], path.basename(file)));
      const content = script || files[request.url];
      const map = `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><script type="importmap">${JSON.stringify({ imports: IMPORTS })}</script>`;
      response.setHeader('Content-Type', content ? 'text/javascript' : 'text/html');
      response.end(content || `${map}<body>${html}`);
    });
    http.on('upgrade', (request, socket, head) => site.connect(request, socket, head));
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    t.after(() => {
      site.goOffline();
      http.close();
      http.closeAllConnections();
    });
    site.page = await openPage(t, `http://127.0.0.1:${http.address().port}/`);
    return site;
  }

  connect({ url, rawHeaders }, socket, head) {
    if (this.isOffline) return socket.destroy();
    const [host, port] = this.server.host.split(':');
    const upstream = net.connect(port, host);
    const headers = Array.from({ length: rawHeaders.length / 2 }, (_, n) => `${rawHeaders[2 * n]}: ${rawHeaders[2 * n + 1]}\r\n`);
    upstream.write(`GET ${url} HTTP/1.1\r\n${headers.join('')}\r\n`);
    upstream.write(head);
    socket.pipe(upstream).pipe(socket);
    this.upstreams.add(upstream);
    for (const one of [socket, upstream]) {
      this.sockets.add(one);
      one.on('error', () => {}).on('close', () => [socket, upstream].forEach((end) => end.destroy()));
    }
  }

  /** From now on the server receives what the page sends, and the page receives nothing. */
  loseAnswers() {
    for (const upstream of this.upstreams) upstream.unpipe().resume();
  }

  goOffline() {
    this.isOffline = true;
    for (const socket of this.sockets) socket.destroy();
    this.sockets.clear();
    this.upstreams.clear();
  }

  goOnline() {
    this.isOffline = false;
  }

  /** Runs `step` with 0 to 59: the page is offline for 20 of them, and loaded again after 50. */
  async disturbed(step) {
    for (let n = 0; n < 60; n += 1) {
      await step(n);
      if (n === 20) this.goOffline();
      if (n === 40) this.goOnline();
      if (n === 50) await this.page.call('Page.reload');
    }
  }

  publish(channel, data) {
    return this.server.api('publish', { channel, data });
  }
}
