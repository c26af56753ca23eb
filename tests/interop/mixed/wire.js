// The client protocol in both encodings, as little of it as the mixed suite speaks.
// In: commands as `{ id, subscribe: { channel } }` → out: a message; in: a message → out: its replies.
// May use Node's Buffer only; payloads are Buffers in both encodings, in JSON they hold the text.
// Field numbers are those of crates/protocol/proto/client.proto.

/** JSON in text messages, one reply per line. */
export const JSON_WIRE = {
  name: 'json',
  protocols: [],
  isBinary: false,
  pong: '{}',

  encode(commands) {
    return commands.map((command) => {
      const data = command.publish?.data;
      const publish = data && { ...command.publish, data: JSON.parse(data.toString()) };
      return JSON.stringify(data ? { ...command, publish } : command);
    }).join('\n');
  },

  decode(message) {
    return message.toString().split('\n').map((line) => {
      const value = JSON.parse(line);
      const { id, error, push } = value;
      if (push?.pub) return { channel: push.channel, payload: (expected) => payloadOf(line, push.pub, expected) };
      if (push) return { push: line };
      return { id, error, isPing: Object.keys(value).length === 0, shape: line.replace(`"id":${id}`, '') };
    });
  },
};

/** Protobuf in binary messages, each reply behind its length. */
export const PROTOBUF_WIRE = {
  name: 'protobuf',
  protocols: ['centrifuge-protobuf'],
  isBinary: true,
  pong: Buffer.from([0]),

  encode(commands) {
    return Buffer.concat(commands.map(({ id, ...command }) => {
      const [[kind, request]] = Object.entries(command);
      const [kindNumber, numbers] = COMMANDS[kind];
      const inner = Object.entries(request).map(([name, value]) => block(numbers[name], Buffer.from(value)));
      return prefixed(Buffer.concat([number(1, id), block(kindNumber, Buffer.concat(inner))]));
    }));
  },

  decode(message) {
    const replies = [];
    for (const reader = new Reader(message); !reader.isAtEnd(); ) {
      const bytes = reader.bytes();
      const reply = fields(bytes);
      const push = reply[4] && fields(reply[4]);
      if (push?.[4]) {
        const data = fields(push[4])[4] ?? Buffer.alloc(0);
        replies.push({ channel: push[2].toString(), payload: () => data });
      } else if (push) {
        replies.push({ push: reply[4].toString('hex') });
      } else {
        const error = reply[2] && { code: fields(reply[2])[1] };
        const id = reply[1];
        const shape = bytes.toString('hex').replace(id ? number(1, id).toString('hex') : '', '');
        replies.push({ id, error, isPing: bytes.length === 0, shape });
      }
    }
    return replies;
  },
};

/** The bytes of a publication's data: those on the line, if they are the expected ones. */
function payloadOf(line, pub, expected) {
  const text = expected?.toString();
  const found = line.indexOf(`"data":${text}`);
  const end = line[found + 7 + text?.length];
  return found >= 0 && (end === '}' || end === ',') ? expected : Buffer.from(JSON.stringify(pub.data));
}

/** Reads varints and length-delimited bytes; throws where the message ends too early. */
class Reader {
  constructor(buffer) {
    Object.assign(this, { buffer, at: 0 });
  }

  isAtEnd() {
    return this.at >= this.buffer.length;
  }

  varint() {
    for (let value = 0, scale = 1; ; scale *= 128) {
      if (this.isAtEnd()) throw new Error('a varint is cut off');
      const byte = this.buffer[this.at];
      this.at += 1;
      value += (byte % 128) * scale;
      if (byte < 128) return value;
    }
  }

  bytes() {
    const length = this.varint();
    if (this.at + length > this.buffer.length) throw new Error(`${length} bytes are announced, not all are there`);
    this.at += length;
    return this.buffer.subarray(this.at - length, this.at);
  }
}

/** The last value of every field of a Protobuf message, by number. */
function fields(message) {
  const found = {};
  for (const reader = new Reader(message); !reader.isAtEnd(); ) {
    const key = reader.varint();
    if (key % 8 !== 0 && key % 8 !== 2) throw new Error(`wire type ${key % 8}`);
    found[key >> 3] = key % 8 === 0 ? reader.varint() : reader.bytes();
  }
  return found;
}

function number(field, value) {
  return Buffer.concat([Buffer.from([field << 3]), varint(value)]);
}

function block(field, bytes) {
  return Buffer.concat([Buffer.from([(field << 3) | 2]), prefixed(bytes)]);
}

function prefixed(bytes) {
  return Buffer.concat([varint(bytes.length), bytes]);
}

function varint(value) {
  const bytes = [];
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
  return Buffer.from([...bytes, value]);
}

const COMMANDS = {
  connect: [4, {}],
  subscribe: [5, { channel: 1 }],
  unsubscribe: [6, { channel: 1 }],
  publish: [7, { channel: 1, data: 2 }],
  presence: [8, { channel: 1 }],
  rpc: [13, { data: 1, method: 2 }],
};
