// What a page imports: stores of a channel and of the connection.
// In: a client of the SDK `centrifuge` → out: stores.
// May use nothing but the SDK.
// A new store is added here and in index.d.ts.

import { Store } from './store.js';

export { growing, latest, messages } from './publications.js';
export { members, typing } from './people.js';
export { Store };

/** `connecting`, `connected` or `disconnected`. */
export function connectionState(client) {
  return new Store(client.state, (set) => {
    const update = () => set(client.state);
    const events = ['connecting', 'connected', 'disconnected'];
    for (const event of events) client.on(event, update);
    update();
    return () => events.forEach((event) => client.off(event, update));
  });
}
