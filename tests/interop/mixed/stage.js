// Where a scenario is played: the servers, one stack, its connections, and the publishing backend.
// In: what a scenario does → out: connections that expect every publication, and the counts of the report.
// May publish through the server API only; what a connection received is judged in listener.js.
// What every connection must hold at its end is changed here; the scenarios stand in scenarios.js.

import { Random } from './corpus.js';
import { Listener } from './listener.js';
import { witness } from './stacks.js';

export class Stage {
  constructor({ servers, row, stack, scenario, seed }) {
    const random = new Random(`${seed} ${row.name} ${scenario}`);
    Object.assign(this, { servers, row, stack, scenario, random, server: servers.main, listeners: [] });
  }

  /** The name of a channel that no other scenario of any stack uses. */
  channel(name, namespace = 'json') {
    return `${namespace}:${this.row.name}-${this.scenario}-${name}`;
  }

  /**
   * Opens a connection that is subscribed to `channels`. Those that are there catch up before, or the server could
   * still hold what was published for them and deliver it to the new one as well.
   */
  async open(channels, options = {}) {
    return this.add(this.stack, this.agreement(), channels, options);
  }

  /** Opens a connection of npm ws beside the stack's, with another agreement: `standalone` or `none`. */
  async witness(agreement, channels) {
    const offer = agreement === 'standalone' && { serverNoContextTakeover: true };
    const listener = await this.add(witness(offer), agreement, channels);
    listener.isWitness = true;
  }

  async add(stack, agreement, channels, options) {
    for (const listener of this.present()) await listener.caughtUp();
    const listener = await Listener.open(stack, this.server, options);
    this.listeners.push(Object.assign(listener, { agreement }));
    await listener.subscribe(...channels);
    return listener;
  }

  /** What the stack and the server of this stage must agree on: `context`, `standalone` frames only, or `none`. */
  agreement() {
    if (this.server === this.servers.plain) return 'none';
    return this.row.takeover ? 'context' : 'standalone';
  }

  /** Publishes `[channels, data]` pairs in one request; more than one channel makes a broadcast. */
  async publish(...items) {
    for (const [channels, data] of items) this.expect(channels, data);
    const commands = items.map(([channels, data]) => {
      const payload = channels[0].startsWith('binary:')
        ? { b64data: data.toString('base64') }
        : { data: JSON.parse(data.toString()) };
      return channels.length > 1
        ? { broadcast: { channels, ...payload } }
        : { publish: { channel: channels[0], ...payload } };
    });
    const { replies } = await this.server.apiReply('batch', { commands });
    const refused = replies.find((reply) => reply.error || reply.broadcast?.responses.some(({ error }) => error));
    if (refused) throw new Error(`the server API answered ${JSON.stringify(refused)}`);
  }

  /** Tells every connection what is about to be published. */
  expect(channels, data) {
    for (const channel of channels) for (const listener of this.listeners) listener.expect(channel, data);
  }

  /** Connections that have not left. */
  present() {
    return this.listeners.filter(({ isClosing }) => !isClosing);
  }

  /** Waits until every connection has everything, checks what holds for all of them, and closes them. */
  async finish() {
    for (const listener of this.present()) await this.leave(listener);
  }

  async leave(listener) {
    await listener.caughtUp();
    await listener.answered(listener.commands);
    this.checkAgreement(listener);
    await listener.close();
  }

  /** An offer is answered as its kind asks for, and a server without compression answers none. */
  checkAgreement({ tap, agreement, isWitness }) {
    const { offer, answer, compressed } = tap;
    this.require(isWitness || offer.includes('permessage-deflate'), `the client offered "${offer}"`);
    const found = !answer ? 'none' : answer.includes('server_no_context_takeover') ? 'standalone' : 'context';
    this.require(found === agreement, `the answer to "${offer}" was "${answer}", not ${agreement}`);
    this.require(answer === '' || /^permessage-deflate\b/.test(answer), `the answer was "${answer}"`);
    this.require(agreement !== 'none' || compressed === 0, 'compressed messages without agreement');
  }

  require(holds, what) {
    if (!holds) throw new Error(what);
  }

  drop() {
    for (const listener of this.listeners) listener.drop();
  }

  /** Sums over the connections of the stack, for the report. */
  counts() {
    const ofStack = this.listeners.filter(({ isWitness }) => !isWitness);
    const sum = (value) => ofStack.reduce((total, listener) => total + value(listener), 0);
    return {
      answer: ofStack[0]?.tap.answer || 'none',
      messages: sum(({ messages }) => messages),
      compressed: sum(({ tap }) => tap.compressed),
      payloadBytes: sum(({ payloadBytes }) => payloadBytes),
      wireBytes: sum(({ tap }) => tap.wireBytes),
      seen: sum(({ progress, replies }) => progress.seen + replies.length),
      expected: sum(({ progress, commands }) => progress.expected + commands),
    };
  }
}
