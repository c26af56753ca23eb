// A wire between client and server that can be stopped: it passes every byte on unchanged and counts.
// In: the address of the server → out: offer and answer of the extension, frames and bytes of both sides, pause and resume.
// May read HTTP headers and the headers of frames (RFC 6455 §5.2); never a payload, never changes a byte.
// What is counted is changed here; what the counts must be stands in scenarios.js.

import { EventEmitter, once } from 'node:events';
import net from 'node:net';

/** Carries one connection; emits `ping` per ping frame. While it is paused the server sees a client that does not read. */
export class Tap extends EventEmitter {
  static async start(host) {
    const tap = new Tap(host);
    tap.listener.listen(0, '127.0.0.1');
    await once(tap.listener, 'listening');
    return tap;
  }

  constructor(host) {
    super();
    Object.assign(this, { host, offer: '', answer: '' }, noCounts());
    this.client = Object.assign(new EventEmitter(), noCounts());
    this.request = Buffer.alloc(0);
    this.response = Buffer.alloc(0);
    this.frames = new FrameHeaders(this);
    this.clientFrames = new FrameHeaders(this.client);
    this.listener = net.createServer((client) => this.carry(client));
  }

  get address() {
    return `127.0.0.1:${this.listener.address().port}`;
  }

  pause() {
    this.isPaused = true;
    this.sockets.server.pause();
  }

  resume() {
    this.isPaused = false;
    this.sockets.server.resume();
  }

  stop() {
    this.listener.close();
    this.sockets?.client.destroy();
    this.sockets?.server.destroy();
  }

  carry(client) {
    this.listener.close(); // one connection per tap
    const [host, port] = this.host.split(':');
    const server = net.connect({ host, port: Number(port), noDelay: true });
    client.setNoDelay(true);
    this.sockets = { client, server };
    this.forward(client, server, (bytes) => this.fromClient(bytes), () => true);
    this.forward(server, client, (bytes) => this.fromServer(bytes), () => !this.isPaused);
  }

  forward(from, to, look, mayGoOn) {
    from.on('data', (bytes) => {
      look(bytes);
      if (!to.write(bytes)) from.pause();
    });
    to.on('drain', () => mayGoOn() && from.resume());
    from.on('end', () => to.end());
    from.on('error', () => to.destroy());
    from.on('close', () => from.readableEnded || to.destroy());
  }

  fromClient(bytes) {
    if (this.request === null) {
      this.client.wireBytes += bytes.length;
      this.clientFrames.read(bytes);
      return;
    }
    this.request = Buffer.concat([this.request, bytes]);
    const head = headOf(this.request);
    if (head === null) return;
    this.offer = extensionsOf(head);
    const rest = this.request.subarray(head.length);
    this.request = null;
    this.fromClient(rest);
  }

  fromServer(bytes) {
    if (this.response === null) {
      this.wireBytes += bytes.length;
      this.frames.read(bytes);
      return;
    }
    this.response = Buffer.concat([this.response, bytes]);
    const head = headOf(this.response);
    if (head === null) return;
    this.answer = extensionsOf(head);
    const rest = this.response.subarray(head.length);
    this.response = null;
    this.fromServer(rest);
  }
}

/** Counts frames of a stream that comes in pieces; payloads are stepped over. */
class FrameHeaders {
  constructor(counts) {
    Object.assign(this, { counts, head: [], payloadLeft: 0 });
  }

  read(bytes) {
    for (let at = 0; at < bytes.length; ) {
      if (this.payloadLeft > 0) {
        const step = Math.min(this.payloadLeft, bytes.length - at);
        this.payloadLeft -= step;
        at += step;
        continue;
      }
      this.head.push(bytes[at]);
      at += 1;
      if (this.head.length === headLength(this.head)) this.count(this.head.splice(0));
    }
  }

  count(head) {
    const lengthEnd = head[1] & MASKED ? head.length - MASK_BYTES : head.length;
    const lengthBytes = lengthEnd === 2 ? [head[1] & 127] : head.slice(2, lengthEnd);
    this.payloadLeft = lengthBytes.reduce((length, byte) => length * 256 + byte, 0);
    const opcode = head[0] & 15;
    if (opcode === PING) {
      this.counts.pings += 1;
      this.counts.emit('ping');
    }
    if (opcode !== TEXT && opcode !== BINARY) return;
    this.counts.messages += 1;
    if (head[0] & RSV1) this.counts.compressed += 1;
  }
}

/** How long the header of a frame is, as far as its first bytes tell. */
function headLength([, second = 0]) {
  const length = second & 127;
  const unmasked = length < 126 ? 2 : length === 126 ? 4 : 10;
  return second & MASKED ? unmasked + MASK_BYTES : unmasked;
}

/** What is counted of one side. */
function noCounts() {
  return { wireBytes: 0, messages: 0, compressed: 0, pings: 0 };
}

function headOf(bytes) {
  const end = bytes.indexOf('\r\n\r\n');
  return end < 0 ? null : bytes.subarray(0, end + 4).toString('latin1');
}

function extensionsOf(head) {
  return [...head.matchAll(/^sec-websocket-extensions:\s*(.*?)\s*$/gim)].map(([, value]) => value).join(', ');
}

const TEXT = 1;
const BINARY = 2;
const PING = 9;
const RSV1 = 64;
const MASKED = 128;
const MASK_BYTES = 4;
