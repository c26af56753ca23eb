// Stores of publications: a list of messages, messages that grow, the newest value of each key.
// In: a client of the SDK, a channel, options → out: stores with arrays and maps that are new after each change.
// May use `follow` and `Store`.
// The order of publications and what is read again is changed in channel.js.

import { follow } from './channel.js';
import { Store } from './store.js';

/** The newest stored publications of a channel and all later ones, at most `keep`: an array, oldest first. */
export function messages(client, channel, { limit = 100, keep = 1000, ...options } = {}) {
  return new Store([], (set) => {
    let list = [];
    return follow(client, channel, { limit, ...options }, {
      reset: (stored) => set((list = stored)),
      add: (publication) => set((list = [...list, publication].slice(-keep))),
    });
  });
}

/**
 * Messages that grow, as the server publishes them (`append`): a map from the key of each to `{ data, isFinal }`, the oldest
 * first. `data` is the whole text so far.
 */
export function growing(client, channel, options = {}) {
  const value = ({ data, tags }) => ({ data, isFinal: tags.final === 'true' });
  return keyed(client, channel, options, (publication) => publication.tags?.key, value);
}

/** The newest value of each key: a map from `key(publication)`, by default the tag `key`, to its data. */
export function latest(client, channel, { key = (publication) => publication.tags?.key, ...options } = {}) {
  return keyed(client, channel, options, key, ({ data }) => data);
}

function keyed(client, channel, { limit = 100, ...options }, key, value) {
  return new Store(new Map(), (set) => {
    let map = new Map();
    const put = (publication) => {
      const name = key(publication);
      if (name !== undefined) map.set(name, value(publication));
    };
    return follow(client, channel, { limit, ...options }, {
      reset: (stored) => {
        map = new Map();
        stored.forEach(put);
        set(map);
      },
      add: (publication) => {
        map = new Map(map);
        put(publication);
        set(map);
      },
    });
  });
}
