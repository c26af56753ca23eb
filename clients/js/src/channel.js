// One subscription of the SDK for all stores of a channel, and its publications without a gap or a repetition.
// In: a client of the SDK, a channel → out: publications that are stored, then live ones, in their order.
// May use the SDK's public methods only. A subscription that the page made itself is used and never ended.
// What becomes of the publications is changed in the file of each store.

/** By client: its channels that stores use. */
const channelsOf = new WeakMap();

/**
 * Subscribes, or joins a subscription that is there. `handlers` are those of the SDK's events. Returns the subscription and
 * a function that leaves it; the last one unsubscribes.
 */
export function join(client, channel, handlers, options) {
  const channels = channelsOf.get(client) ?? new Map();
  channelsOf.set(client, channels);
  const shared = channels.get(channel) ?? open(client, channel, options);
  channels.set(channel, shared);
  shared.users += 1;
  const { subscription } = shared;
  for (const [event, handler] of Object.entries(handlers)) subscription.on(event, handler);
  if (shared.isOurs) subscription.subscribe(); // without effect when it is subscribed
  let isHere = true;
  if (subscription.state === 'subscribed') queueMicrotask(() => isHere && handlers.subscribed({ recovered: false }));
  const leave = () => {
    isHere = false;
    for (const [event, handler] of Object.entries(handlers)) subscription.off(event, handler);
    shared.users -= 1;
    if (shared.users > 0) return;
    channels.delete(channel);
    if (!shared.isOurs) return;
    subscription.unsubscribe();
    client.removeSubscription(subscription);
  };
  return { subscription, leave };
}

function open(client, channel, options) {
  const theirs = client.getSubscription(channel);
  return { subscription: theirs ?? client.newSubscription(channel, options), isOurs: !theirs, users: 0 };
}

/**
 * Calls `reset` with the newest `limit` stored publications, and `add` with each later one. After an absence that the server
 * could bridge, the SDK passes on what was missed; after another one `reset` is called again. Returns a function that ends it.
 */
export function follow(client, channel, { limit, onError = warn, ...options }, { reset, add }) {
  let turn = 0; // of the newest load; an older one that ends later has no effect
  let held; // what arrived during a load
  let isLoaded = false;
  let newest = 0;
  const take = (publication) => {
    if (publication.offset <= newest) return; // stored and live
    newest = publication.offset ?? newest;
    add(publication);
  };
  const load = async () => {
    const own = (turn += 1);
    held = [];
    const stored = await read(subscription, limit, () => own === turn).catch((error) => {
      if (own === turn) onError(error);
      return [];
    });
    if (own !== turn) return;
    newest = stored.at(-1)?.offset ?? 0;
    reset(stored);
    const waiting = held;
    held = undefined;
    isLoaded = true;
    waiting.forEach(take);
  };
  const stop = () => {
    turn += 1;
    held = undefined;
  };
  const handlers = {
    subscribed: ({ recovered }) => (recovered && (isLoaded || held)) || load(),
    publication: (publication) => (held ? held.push(publication) : take(publication)),
    unsubscribed: ({ code, reason }) => {
      stop();
      isLoaded = false;
      if (code !== 0) onError({ code, message: reason }); // 0: the page did it
    },
    error: ({ error }) => onError(error),
  };
  const { subscription, leave } = join(client, channel, handlers, options);
  return () => {
    leave();
    stop();
  };
}

/**
 * The newest stored publications, oldest first; none where the channel keeps no history. Tries again while `isWanted`, unless
 * the server has refused.
 */
async function read(subscription, limit, isWanted) {
  for (;;) {
    try {
      const { publications } = await subscription.history({ limit, reverse: true });
      return publications.reverse();
    } catch (error) {
      if (error.code === NOT_AVAILABLE) return [];
      if (error.code >= SERVER_ERRORS && !error.temporary) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    if (!isWanted()) return [];
  }
}

export function warn(error) {
  console.warn(error.message ?? error);
}

/** The server's code for a channel without history. */
const NOT_AVAILABLE = 108;
/** Lower codes are the SDK's own: no answer in time, no connection. */
const SERVER_ERRORS = 100;
const RETRY_MS = 1000;
