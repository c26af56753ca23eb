// The stores as hooks of React.
// In: a client of the SDK, a channel, options → out: the value of the store, and a new rendering after each change.
// May use React, version 18 or newer. A store is made again when client or channel change, not when options do.
// What the values mean is changed in the files of the stores.

import { useMemo, useSyncExternalStore } from 'react';

import { connectionState, growing, latest, members, messages, typing } from './index.js';

/** The value of any store. */
export const useStore = (store) => useSyncExternalStore(store.subscribe, store.getSnapshot, store.getSnapshot);

const hook = (make) => (client, channel, options) => useStore(useMemo(() => make(client, channel, options), [client, channel]));

export const useMessages = hook(messages);
export const useGrowing = hook(growing);
export const useLatest = hook(latest);
export const useMembers = hook(members);
export const useConnectionState = hook(connectionState);

/** The users that are typing, and the function to call at each key. */
export function useTyping(client, channel, options) {
  const store = useMemo(() => typing(client, channel, options), [client, channel]);
  return [useStore(store), store.type];
}
