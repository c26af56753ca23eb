// Clients for the tests: npm centrifuge in both encodings, and plain npm ws that speaks the protocol by hand.
// In: a `Server` → out: clients that are closed when their test ends.
// May use npm centrifuge and ws; never holds expectations, which stand in the tests.
// How a client connects is changed here; how a server starts is in ../server.js.

import { EventEmitter } from 'node:events';
import net from 'node:net';

import * as json from 'centrifuge';
import * as protobuf from 'centrifuge/build/protobuf';
import WebSocket from 'ws';

import { Log, within } from '../server.js';

/** The SDK once per encoding. `payload` makes publication data of a value, `value` reads it back. */
export const ENCODINGS = [
  { ...json, name: 'JSON', payload: (value) => value, value: (data) => data },
  {
    ...protobuf,
    name: 'Protobuf',
    payload: (value) => new TextEncoder().encode(JSON.stringify(value)),
    value: (data) => JSON.parse(new TextDecoder().decode(data)),
  },
];

/** An SDK client that reconnects quickly and disconnects when the test `t` ends. Not connected yet. */
export function sdk(t, server, encoding, options = {}) {
  const client = new encoding.Centrifuge(server.websocket, {
    websocket: WebSocket,
    minReconnectDelay: 50,
    maxReconnectDelay: 200,
    ...options,
  });
  t.after(() => client.disconnect());
  return client;
}

/** The option `websocket` of an SDK client whose request has these headers. */
export const withHeaders = (headers) =>
  class extends WebSocket {
    constructor(url, protocols) {
      super(url, protocols, { headers });
    }
  };

/** Waits for the next `event` of an SDK client or subscription and returns its context. */
export function next(emitter, event) {
  return within(new Promise((resolve) => emitter.once(event, resolve)), event);
}

/** Connects and returns the context of `connected`. */
export function connect(client) {
  const connected = next(client, 'connected');
  client.connect();
  return connected;
}

/** Subscribes and returns the subscription, once it is subscribed, with a log of its publications. */
export async function subscribe(client, channel, options = {}) {
  const subscription = client.newSubscription(channel, {
    minResubscribeDelay: 50,
    maxResubscribeDelay: 200,
    ...options,
  });
  const publications = new Log(subscription, 'publication');
  const subscribed = next(subscription, 'subscribed');
  subscription.subscribe();
  await subscribed;
  return { subscription, publications };
}

/** The JSON protocol by hand over npm ws, which answers pings. `frames` holds whole messages, `replies` what stood in them. */
export class Raw extends EventEmitter {
  constructor(socket) {
    super();
    this.socket = socket;
    this.answersPings = true;
    this.frames = new Log(this, 'frame');
    this.replies = new Log(this, 'reply');
    socket.on('message', (bytes) => {
      const text = bytes.toString();
      this.emit('frame', text);
      for (const line of text.split('\n')) {
        this.emit('reply', JSON.parse(line));
        if (this.answersPings && line === PING) this.socket.send(PING);
      }
    });
    this.closing = new Promise((resolve) => {
      socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }));
    });
    socket.on('error', () => {}); // a close follows
  }

  /** Sends commands in one message; objects become JSON, strings go as they are. */
  send(...commands) {
    const text = commands.map((c) => (typeof c === 'string' ? c : JSON.stringify(c)));
    this.socket.send(text.join('\n'));
  }

  /** The reply to the command with this id. */
  reply(id) {
    return this.replies.find((reply) => reply.id === id, `reply ${id}`);
  }

  async connect(request = {}) {
    this.send({ id: 1, connect: request });
    return this.reply(1);
  }

  async subscribe(channel, id = 2) {
    this.send({ id, subscribe: { channel } });
    return this.reply(id);
  }

  /** The data of the publications of a channel, once there are at least `count`. */
  async publications(channel, count) {
    const pick = () => this.replies.items.filter((r) => r.push?.channel === channel && r.push.pub);
    const wait = () => (pick().length >= count ? pick() : undefined);
    const found = await this.replies.wait(wait, `${count} publications of ${channel}`);
    return found.map((reply) => reply.push.pub.data);
  }

  /** The code and the reason of the close, however it comes. */
  closed(limitMs) {
    return within(this.closing, 'close', limitMs);
  }
}

/** A ping, and the answer to it. */
const PING = '{}';

/** Opens a WebSocket by hand; it ends with the test. */
export async function raw(t, server, options = {}) {
  const socket = new WebSocket(server.websocket, options);
  t.after(() => socket.terminate());
  const client = new Raw(socket);
  await within(new Promise((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  }), 'open');
  return client;
}

/** A plain TCP connection to the server; `text` grows with what arrives, `ended` resolves when it is over. */
export function tcp(t, server) {
  const [host, port] = server.host.split(':');
  const socket = net.connect(Number(port), host);
  t.after(() => socket.destroy());
  const connection = { socket, text: '' };
  socket.on('data', (bytes) => (connection.text += bytes.toString('latin1')));
  socket.on('error', () => {}); // a close follows
  connection.ended = new Promise((resolve) => socket.on('close', resolve));
  return connection;
}

/** The text of an upgrade request, for a client that writes its bytes itself. */
export function upgradeText({ host }) {
  return [
    'GET /connection/websocket HTTP/1.1',
    `Host: ${host}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    '\r\n',
  ].join('\r\n');
}

/** A frame of a client (`head` is its first byte), masked with zeros, of at most 125 bytes. */
export function frame(head, text) {
  const payload = Buffer.from(text);
  return Buffer.concat([Buffer.from([head, 0x80 | payload.length, 0, 0, 0, 0]), payload]);
}
