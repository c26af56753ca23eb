// WebSockets on orders, for every stack that has the interface of the browsers: pages, npm ws, npm undici.
// In: orders `{ do: open | send | close, id, … }` → out: reports `{ event: open | message | close, id, … }`.
// May use what browsers and Node share; never looks into a message.
// The twins in Python and Go are pipe.py and ../../go/pipe; the driver judges what they report.

/** `open` makes a WebSocket of url, protocols and window bits; returns the function that takes orders. */
export function pipe(open, report) {
  const sockets = new Map();
  const actions = {
    open({ id, url, protocols, windowBits }) {
      const socket = open(url, protocols, windowBits);
      socket.binaryType = 'arraybuffer';
      socket.onopen = () => report({ event: 'open', id });
      socket.onmessage = ({ data }) => report({ event: 'message', id, ...written(data) });
      socket.onclose = ({ code, reason }) => report({ event: 'close', id, code, reason });
      socket.onerror = () => {}; // a close follows
      sockets.set(id, socket);
    },
    send({ id, text, hex }) {
      sockets.get(id).send(text ?? Uint8Array.from(hex.match(/../g) ?? [], (digits) => parseInt(digits, 16)));
    },
    close({ id }) {
      sockets.get(id).close(1000);
    },
  };
  return (order) => actions[order.do](order);
}

function written(data) {
  if (typeof data === 'string') return { text: data };
  return { hex: Array.from(new Uint8Array(data), (byte) => byte.toString(16).padStart(2, '0')).join('') };
}
