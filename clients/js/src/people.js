// Stores of the clients of a channel: who is here, and who is typing.
// In: a client of the SDK, a channel with presence or one for typing → out: stores with arrays that are new after each change.
// May use `join` and `Store`.
// How long a sign of typing is shown is changed here, and by its options.

import { join, warn } from './channel.js';
import { Store } from './store.js';

/** The clients that are subscribed: an array of `{ client, user, connInfo, chanInfo }`. The channel has `presence` and `join_leave`. */
export function members(client, channel, { onError = warn, ...options } = {}) {
  return new Store([], (set) => {
    let turn = 0;
    let present = new Map();
    let held; // joins and leaves during a load
    const show = () => set([...present.values()]);
    const change = (apply) => {
      if (held) return held.push(apply);
      apply();
      show();
    };
    const load = async () => {
      const own = (turn += 1);
      held = [];
      const { clients } = await subscription.presence().catch((error) => {
        if (own === turn) onError(error);
        return { clients: {} };
      });
      if (own !== turn) return;
      present = new Map(Object.entries(clients));
      held.forEach((apply) => apply());
      held = undefined;
      show();
    };
    const handlers = {
      subscribed: load, // also after an absence that was bridged: joins and leaves are not stored
      join: ({ info }) => change(() => present.set(info.client, info)),
      leave: ({ info }) => change(() => present.delete(info.client)),
      error: ({ error }) => onError(error),
    };
    const { subscription, leave } = join(client, channel, handlers, options);
    return () => {
      turn += 1;
      leave();
    };
  });
}

/**
 * The users that are typing: an array of user ids. `store.type()`, called at each key, publishes a sign at most every
 * `every` ms; a sign is shown for `shown` ms. The channel has `allow_publish_for_subscriber` and no history.
 */
export function typing(client, channel, { shown = 5000, every = 3000, onError = warn, ...options } = {}) {
  let publish = () => {};
  let last = -Infinity;
  const store = new Store([], (set) => {
    const timers = new Map(); // by user
    const show = () => set([...timers.keys()]);
    const end = (user) => {
      timers.delete(user);
      show();
    };
    const handlers = {
      subscribed: () => {},
      publication: ({ info }) => {
        if (!info) return;
        clearTimeout(timers.get(info.user));
        timers.set(info.user, setTimeout(end, shown, info.user));
        show();
      },
      error: ({ error }) => onError(error),
    };
    const { subscription, leave } = join(client, channel, handlers, options);
    publish = () => subscription.publish({}).catch(() => {}); // over a limit, or not connected: no user misses it
    return () => {
      publish = () => {};
      timers.forEach(clearTimeout);
      leave();
    };
  });
  store.type = () => {
    if (Date.now() - last < every) return;
    last = Date.now();
    publish();
  };
  return store;
}
