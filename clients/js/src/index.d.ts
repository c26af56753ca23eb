import type { Centrifuge, ClientInfo, PublicationContext, State, SubscriptionOptions } from 'centrifuge';

/** A value that changes. It fits React's `useSyncExternalStore` and Svelte's `$store`. */
export interface Readable<T> {
  readonly value: T;
  getSnapshot: () => T;
  /** Calls `listener` now and after each change. The work of the store ends with its last listener. */
  subscribe: (listener: (value: T) => void) => () => void;
}

export declare class Store<T> implements Readable<T> {
  constructor(value: T, start: (set: (value: T) => void) => () => void);
  readonly value: T;
  getSnapshot: () => T;
  subscribe: (listener: (value: T) => void) => () => void;
}

/** Options of the SDK's subscription, used when no other store or the page has made it, and of the store. */
export interface ChannelOptions extends Partial<SubscriptionOptions> {
  onError?: (error: unknown) => void;
}

export interface HistoryOptions extends ChannelOptions {
  /** Stored publications that are loaded; 100 by default. */
  limit?: number;
}

export interface GrowingMessage<T> {
  data: T;
  isFinal: boolean;
}

export declare function messages(client: Centrifuge, channel: string, options?: HistoryOptions & { keep?: number }): Readable<PublicationContext[]>;
export declare function growing<T = string>(client: Centrifuge, channel: string, options?: HistoryOptions): Readable<Map<string, GrowingMessage<T>>>;
export declare function latest<T = unknown>(
  client: Centrifuge,
  channel: string,
  options?: HistoryOptions & { key?: (publication: PublicationContext) => string | undefined },
): Readable<Map<string, T>>;
export declare function members(client: Centrifuge, channel: string, options?: ChannelOptions): Readable<ClientInfo[]>;
export declare function typing(
  client: Centrifuge,
  channel: string,
  options?: ChannelOptions & { shown?: number; every?: number },
): Readable<string[]> & { type: () => void };
export declare function connectionState(client: Centrifuge): Readable<State>;
