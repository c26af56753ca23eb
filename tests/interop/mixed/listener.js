// One connection of a stack, with what it must receive.
// In: what was published and asked, reports of the stack → out: promises that hold when it came, and the first fault.
// May use a tap and an encoding of wire.js; every judgement about what a client received is made here.
// What is published when stands in scenarios.js.

import { within } from '../server.js';
import { Tap } from './tap.js';
import { JSON_WIRE } from './wire.js';

/** The longest a client may need for what it is waited for, in milliseconds. */
const PATIENCE_MS = 60_000;

export class Listener {
  /** Opens a connection through a tap of its own and connects. */
  static async open(stack, server, { wire = JSON_WIRE, windowBits, query = '' } = {}) {
    const tap = await Tap.start(server.host);
    const listener = new Listener(stack, tap, wire);
    const url = `ws://${tap.address}/connection/websocket${query}`;
    stack.write({ do: 'open', id: listener.id, url, protocols: wire.protocols, windowBits });
    try {
      await listener.until(() => listener.isOpen, 'the handshake');
      await listener.answered(listener.ask({ connect: {} }));
      return listener;
    } catch (error) {
      listener.drop();
      throw error;
    }
  }

  constructor(stack, tap, wire) {
    Object.assign(this, { stack, tap, wire, id: stack.nextId(), isOpen: false, isClosing: false, fault: null });
    Object.assign(this, { checks: new Set(), channels: new Map(), shapes: new Map() });
    Object.assign(this, { kinds: [], replies: [], messages: 0, payloadBytes: 0, sentBytes: 0, pings: 0 });
    stack.on(this.id, (report) => this.take(report));
    tap.on('ping', () => this.check());
  }

  /** Sends commands in one message; returns the id of the last. */
  ask(...commands) {
    const numbered = commands.map((command) => ({ id: this.kinds.push(Object.keys(command)[0]), ...command }));
    this.send(this.wire.encode(numbered));
    return this.commands;
  }

  /** How many commands were sent; their ids are 1 to this. */
  get commands() {
    return this.kinds.length;
  }

  /** The reply to a command, when all before it were answered, in order. */
  async answered(id) {
    await this.until(() => this.replies.length >= id, `the reply ${id}`);
    return this.replies[id - 1];
  }

  async subscribe(...channels) {
    const reply = await this.answered(this.ask(...channels.map((channel) => ({ subscribe: { channel } }))));
    if (reply.error) throw new Error(`subscribe: ${JSON.stringify(reply.error)}`);
    for (const channel of channels) {
      const before = this.channels.get(channel) ?? { expected: [], seen: 0 };
      this.channels.set(channel, { ...before, isSubscribed: true });
    }
  }

  /** Ends a subscription; what follows in the channel is not for this connection. */
  async unsubscribe(channel) {
    this.channels.get(channel).isSubscribed = false;
    await this.answered(this.ask({ unsubscribe: { channel } }));
  }

  /** Notes that `data` is about to be published to a channel. */
  expect(channel, data) {
    const stream = this.channels.get(channel);
    if (stream?.isSubscribed && !this.isClosing) stream.expected.push(data);
  }

  /** Holds when everything expected (of one channel, or of all) has come. */
  caughtUp(only) {
    const streams = only ? [this.channels.get(only)] : [...this.channels.values()];
    return this.until(() => streams.every(({ seen, expected }) => seen === expected.length), only ?? 'all channels');
  }

  /** Publications that came, and that should have. */
  get progress() {
    const sum = (key) => [...this.channels.values()].reduce((total, stream) => total + key(stream), 0);
    return { seen: sum(({ seen }) => seen), expected: sum(({ expected }) => expected.length) };
  }

  async close() {
    this.isClosing = true;
    this.stack.write({ do: 'close', id: this.id });
    await this.until(() => this.end !== undefined, 'the close');
    if (this.end.code !== 1000) throw new Error(`${this.id} was closed with ${this.end.code} ${this.end.reason}`);
  }

  /** Cuts the wire, whatever is on it; what had not come is not expected any more. */
  async cut() {
    this.isClosing = true;
    this.tap.stop();
    await this.until(() => this.end !== undefined, 'the end');
    for (const stream of this.channels.values()) stream.expected.splice(stream.seen);
    this.kinds.splice(this.replies.length);
  }

  /** Lets go of the connection, whatever became of it. */
  drop() {
    this.stack.removeAllListeners(this.id);
    this.tap.stop();
  }

  /** Waits until `question` is true; a fault of this connection ends the waiting. */
  until(question, what) {
    let check;
    const settled = new Promise((resolve, reject) => {
      check = () => {
        if (this.fault) reject(new Error(this.fault));
        else if (question()) resolve();
      };
    });
    this.checks.add(check);
    check();
    const limited = within(settled, `${what} of connection ${this.id}`, PATIENCE_MS).catch((error) => {
      const { seen, expected } = this.progress;
      throw new Error(`${error.message} (${seen} of ${expected} publications had come)`);
    });
    return limited.finally(() => this.checks.delete(check));
  }

  send(message) {
    this.sentBytes += Buffer.byteLength(message);
    const written = typeof message === 'string' ? { text: message } : { hex: message.toString('hex') };
    this.stack.write({ do: 'send', id: this.id, ...written });
  }

  /** The first fault is the one that is told. */
  fail(what) {
    this.fault ??= `connection ${this.id}: ${what}`;
  }

  take(report) {
    if (report.event === 'open') this.isOpen = true;
    else if (report.event === 'message') this.receive(report);
    else this.closed(report);
    this.check();
  }

  check() {
    for (const check of this.checks) check();
  }

  closed({ code, reason }) {
    this.end = { code, reason };
    if (!this.isClosing) this.fail(`it ended with ${code} ${reason} after ${this.messages} messages`);
  }

  receive({ text, hex }) {
    this.messages += 1;
    const isBinary = text === undefined;
    const message = isBinary ? Buffer.from(hex, 'hex') : Buffer.from(text);
    this.payloadBytes += message.length;
    if (isBinary !== this.wire.isBinary) return this.fail(`message ${this.messages} has the wrong opcode`);
    try {
      for (const reply of this.wire.decode(message)) this.judge(reply);
    } catch (error) {
      this.fail(`message ${this.messages} is broken (${error.message}): ${excerpt(message, 0)}`);
    }
    return undefined;
  }

  judge(reply) {
    if (reply.payload) return this.judgePublication(reply);
    if (reply.isPing) {
      this.pings += 1;
      return this.send(this.wire.pong);
    }
    if (reply.push) return this.fail(`an unexpected push: ${reply.push}`);
    return this.judgeReply(reply);
  }

  /** Replies come in the order of the commands, and those to commands of one kind differ in their ids only. */
  judgeReply({ id, error, shape }) {
    this.replies.push({ id, error });
    const kind = this.kinds[id - 1];
    if (id !== this.replies.length) this.fail(`reply ${id} came as number ${this.replies.length}`);
    else if (this.shapes.has(kind) && this.shapes.get(kind) !== shape) this.fail(`reply ${id} to ${kind} is ${shape}`);
    else this.shapes.set(kind, shape);
  }

  judgePublication({ channel, payload }) {
    const stream = this.channels.get(channel) ?? { expected: [], seen: 0 };
    const expected = stream.expected[stream.seen];
    const came = payload(expected);
    stream.seen += 1;
    if (expected?.equals(came)) return;
    const place = `publication ${stream.seen} of ${stream.expected.length} in ${channel}`;
    if (!expected) this.fail(`${place} was never published: ${excerpt(came, 0)}`);
    else this.fail(`${place}: ${difference(expected, came, stream.expected)}`);
  }
}

/** Says how `came` differs from what was expected. */
function difference(expected, came, all) {
  const other = all.findIndex((data) => data.equals(came));
  if (other >= 0) return `number ${other + 1} came instead`;
  const length = Math.max(expected.length, came.length);
  const at = Array.from({ length }, (_, index) => index).find((index) => expected[index] !== came[index]);
  const sizes = `${came.length} bytes for ${expected.length}`;
  return `differs from byte ${at} (${sizes}): expected ${excerpt(expected, at)}, got ${excerpt(came, at)}`;
}

function excerpt(bytes, at) {
  return JSON.stringify(bytes.subarray(Math.max(0, at - 10), at + 40).toString('latin1'));
}
