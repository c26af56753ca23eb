import type { Centrifuge, ClientInfo, PublicationContext, State } from 'centrifuge';
import type { ChannelOptions, GrowingMessage, HistoryOptions, Readable } from './index.js';

export declare function useStore<T>(store: Readable<T>): T;
export declare function useMessages(client: Centrifuge, channel: string, options?: HistoryOptions & { keep?: number }): PublicationContext[];
export declare function useGrowing<T = string>(client: Centrifuge, channel: string, options?: HistoryOptions): Map<string, GrowingMessage<T>>;
export declare function useLatest<T = unknown>(
  client: Centrifuge,
  channel: string,
  options?: HistoryOptions & { key?: (publication: PublicationContext) => string | undefined },
): Map<string, T>;
export declare function useMembers(client: Centrifuge, channel: string, options?: ChannelOptions): ClientInfo[];
export declare function useTyping(client: Centrifuge, channel: string, options?: ChannelOptions & { shown?: number; every?: number }): [string[], () => void];
export declare function useConnectionState(client: Centrifuge): State;
