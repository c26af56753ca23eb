// A balancer of a test's own: new connections go where it points, and it can stop reading from the server.
// In: a target → out: addresses as those of a `Server`.
// May use Node's own modules only; never looks into the bytes.
// Another way to pass bytes on is added here; a proxy that cuts is in js/resume.test.js.

import { once } from 'node:events';
import net from 'node:net';

/** A balancer in front of `target`: new connections go where it points. */
export async function balance(t, target) {
  const balancer = { target };
  const pairs = new Map();
  const listener = net.createServer((client) => {
    const [host, port] = balancer.target.host.split(':');
    const server = net.connect(Number(port), host);
    pairs.set(client, server);
    for (const [from, to] of [[client, server], [server, client]]) {
      from.pipe(to);
      from.on('error', () => to.destroy());
      from.on('close', () => to.destroy() && pairs.delete(client));
    }
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  t.after(() => listener.close());
  const host = `127.0.0.1:${listener.address().port}`;
  return Object.assign(balancer, {
    http: `http://${host}`,
    websocket: `ws://${host}/connection/websocket`,
    stopReading: () => pairs.forEach((server, client) => server.unpipe(client)),
    readOn: () => pairs.forEach((server, client) => server.pipe(client)),
    cut: () => pairs.forEach((_, client) => client.destroy()),
  });
}
