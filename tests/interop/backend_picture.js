// A backend that keeps a picture of the clients by the rules of docs/events.md: events in, the snapshot where they are not enough.
// In: requests with events → out: who is connected and subscribed, which channels are occupied.
// May use Node's own modules only; never what a test did.
// How a backend follows the events is changed here; the faults are in js/redis_events.test.js.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';

import { freePort } from './ports.js';

export const SECRET = 'events-secret';

/** Who is connected, and which channels are occupied. */
export class Picture {
  constructor() {
    /** client → { node, user, channels } */
    this.clients = new Map();
    this.occupied = new Set();
    this.stale = new Set();
    /** node → number of its last event */
    this.seqs = new Map();
    /** Nodes of which an event came. */
    this.followed = new Set();
    this.counts = {};
  }

  /** Applies an event of a node. Returns the node whose snapshot is needed first, if any. */
  take(node, event) {
    const last = this.seqs.get(node);
    if (event.seq <= (last ?? 0)) return undefined;
    // A snapshot may contain more than its number says, which the backend has accepted before it was killed.
    assert.ok(!this.followed.has(node) || event.seq === last + 1, `node ${node}: event ${event.seq} after ${last}`);
    this.followed.add(node);
    this.seqs.set(node, event.seq);
    this.counts[event.type] = (this.counts[event.type] ?? 0) + 1;
    const { client, user, channel } = event;
    switch (event.type) {
      case 'connected': this.clients.set(client, { node, user, channels: new Set() }); break;
      case 'disconnected': this.clients.delete(client); break;
      case 'subscribed': this.clients.get(client)?.channels.add(channel); break;
      case 'unsubscribed': this.clients.get(client)?.channels.delete(channel); break;
      case 'occupied': this.occupied.add(channel); this.stale.delete(channel); break;
      case 'vacated': this.occupied.delete(channel); break;
      case 'recount_started': this.stale = new Set(this.occupied); break;
      case 'recount_ended': this.stale.forEach((one) => this.occupied.delete(one)); this.stale.clear(); break;
      case 'node_started': case 'node_gone': this.forget(event.node); break;
      case 'node_returned': return event.node;
      case 'lost': return node;
      default: throw new Error(`unknown type ${event.type}`);
    }
    return undefined;
  }

  forget(node) {
    for (const [client, one] of this.clients) if (one.node === node) this.clients.delete(client);
  }

  /** Reads all connections of a node through the API of `server`. */
  async read(server, node) {
    this.forget(node);
    for (let start = 0; ;) {
      const page = await server.api('snapshot', { node, start });
      for (const { client, user, channels = [] } of page.clients ?? []) {
        this.clients.set(client, { node, user, channels: new Set(channels) });
      }
      start = page.next ?? 0;
      if (!start) return;
    }
  }

  /** Begins with the present state of all nodes. The occupied channels follow as events. */
  static async begin(server) {
    const picture = new Picture();
    const { nodes } = await server.api('snapshot');
    for (const { node, seq } of nodes) picture.seqs.set(node, seq);
    await picture.readAll(server, nodes.map(({ node }) => node));
    return picture;
  }

  /** What the nodes say now, for comparison. */
  static async ofNodes(server) {
    const picture = new Picture();
    const { nodes } = await server.api('info');
    await picture.readAll(server, nodes.map(({ uid }) => uid));
    return picture;
  }

  async readAll(server, nodes) {
    for (const node of nodes) await this.read(server, node);
    for (const { channels } of this.clients.values()) channels.forEach((one) => this.occupied.add(one));
  }

  /** The same for equal pictures. */
  toJSON() {
    const clients = [...this.clients].map(([id, { node, user, channels }]) => [id, node, user, [...channels].sort()]);
    return { clients: clients.sort(), occupied: [...this.occupied].sort() };
  }
}

/** The HTTP server of the backend. It forgets its picture when it is killed. */
export class Backend {
  /** `server` returns a server whose API can be asked. */
  constructor(server) {
    Object.assign(this, { server, fails: false, requests: 0, failed: 0, errors: [], turn: Promise.resolve() });
  }

  get url() {
    return `http://127.0.0.1:${this.port}/events`;
  }

  /** Starts it. After a kill it has to load the snapshot before it takes events. */
  async start() {
    this.port ??= await freePort();
    this.picture = undefined;
    const listener = http.createServer(async (request, response) => {
      const pieces = [];
      for await (const piece of request) pieces.push(piece);
      const answer = await this.answer(request.headers, Buffer.concat(pieces), listener);
      response.writeHead(answer).end();
    });
    this.listener = listener;
    listener.listen(this.port, '127.0.0.1');
    await once(listener, 'listening');
  }

  kill() {
    this.listener.closeAllConnections();
    this.listener.close();
  }

  /** Handles requests of all nodes one after the other. */
  answer(headers, body, listener) {
    const answer = this.turn.then(async () => {
      if (this.listener !== listener || this.fails) {
        this.failed += 1;
        return 500;
      }
      const expected = `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`;
      if (headers['x-fanwire-signature'] !== expected) return 401;
      const [, time, timed] = /^t=(\d+),(sha256=.*)$/.exec(headers['x-fanwire-timed-signature']);
      const expectedTimed = `sha256=${createHmac('sha256', SECRET).update(`${time}.`).update(body).digest('hex')}`;
      if (timed !== expectedTimed || Math.abs(Date.now() / 1000 - time) > 300) return 401;
      try {
        await this.take(JSON.parse(body));
        return 204;
      } catch (error) {
        // Of a server that was killed; the batch comes again. What the picture refuses is a fault.
        if (error.code === 'ERR_ASSERTION' && error.message.startsWith('node ')) this.errors.push(error);
        return 503;
      }
    });
    this.turn = answer.catch(() => {});
    return answer;
  }

  async take({ node, events }) {
    this.picture ??= await Picture.begin(this.server());
    this.requests += 1;
    for (const event of events) {
      const uncertain = this.picture.take(node, event);
      if (uncertain) await this.picture.read(this.server(), uncertain);
    }
  }
}
