// The servers of the mixed suite.
// In: the program's check-config → out: settings by name, with the keys this program knows.
// May use ../server.js; never a key whose value would hide a fault.
// A key of a newer server that the suite should switch on belongs into NEWER_KEYS.

import { run } from '../server.js';

/** Namespaces by what their channels carry. */
export const NAMESPACES = ['json', 'binary'];

/** The window of clients of `takeover` that let the server choose: smaller than some messages. */
export const TAKEOVER_WINDOW_BITS = 10;

/** Keys that only some versions of the server know: each is set where check-config accepts it. */
const NEWER_KEYS = {
  websocket: { compression_verify: true },
  namespace: { compression: 'context' },
};

/** The settings of every server: `main`, `plain` without compression, `hasty` with short pings, `takeover` for clients that refer to their earlier messages. */
export async function settings() {
  const newer = await knownKeys();
  const common = {
    websocket: { compression: true, write_timeout: '60s', ...newer.websocket },
    rpc: { ping: { enabled: true } },
    client: { insecure: true, allowed_origins: ['http://127.0.0.1:*'], queue_max_size: 64 << 20 },
    channel: {
      namespaces: [
        { name: 'json', ...newer.namespace },
        { name: 'binary', publication_data_format: 'binary', ...newer.namespace },
      ],
    },
  };
  return {
    main: common,
    plain: { ...common, websocket: { ...common.websocket, compression: false } },
    takeover: {
      ...common,
      websocket: { ...common.websocket, client_context_takeover: true, client_max_window_bits: TAKEOVER_WINDOW_BITS },
    },
    hasty: { ...common, client: { ...common.client, ping_interval: '2s', pong_timeout: '1900ms' } },
  };
}

/** The part of NEWER_KEYS that the program does not call unknown. */
async function knownKeys() {
  const { websocket, namespace } = NEWER_KEYS;
  const asked = { websocket, channel: { namespaces: [{ name: 'json', ...namespace }] } };
  const { text } = await run(['check-config', 'config.json'], asked);
  const isKnown = (key) => !text.split('\n').some((line) => line.includes(`${key} is not a known key`));
  const known = (keys, prefix) => Object.fromEntries(Object.entries(keys).filter(([key]) => isKnown(prefix + key)));
  return {
    websocket: known(websocket, 'websocket.'),
    namespace: known(namespace, 'channel.namespaces[json].'),
  };
}
