//! Rows of `channel.*` and of one namespace: syntax of names, and permissions of clients.
//! In: nothing → out: `CHANNEL`, rows that set `Config`, and `NAMESPACE`, rows that set a `Namespace`.
//! Uses the kinds of `keys`. Never: lists of namespaces as such (`settings`).
//! Change a default or a sentence here; the effects live in `fanwire_policy::channel`.

use std::time::Duration;

use fanwire_broker::DeliveryClass;
use fanwire_policy::options::{
    ClientKey, CompressionPolicy, DataFormat, MapMode, Namespace, RecoveryMode, SubscriptionType,
};
use fanwire_policy::shared_poll::PollMode;

use super::{
    BYTES, COUNT, COUNT_FROM_1, DELAY, LIFETIME, LIST, RATE_INTERVAL, RATE_LIMIT, SWITCH, TEXT,
    duration, integer, memory,
};
use crate::key::{FromValue, Kind, Value, rows};
use crate::options::Config;

rows! { CHANNEL: Config;
    "channel.max_length", COUNT_FROM_1, "255" => [channel.max_length],
        "Longest channel name in bytes.";
    "channel.private_prefix", TEXT, "$" => [channel.private_prefix],
        "Names that begin with this character need a subscription token; empty switches that off.";
    "channel.namespace_boundary", TEXT, ":" => [channel.namespace_boundary],
        "Character that ends the namespace in a channel name.";
    "channel.user_boundary", TEXT, "#" => [channel.user_boundary],
        "Character that starts the list of users in a channel name.";
    "channel.user_separator", TEXT, "," => [channel.user_separator],
        "Character between the users in a channel name.";
    "channel.history_meta_ttl", LIFETIME, "720h" => [channel.history_meta_ttl],
        "How long the offset and epoch of a channel are kept after it was last published to or read, where a namespace does not say; 0s for ever.";
    "channel.history_memory_max", integer(0x10_0000, u64::MAX), "1073741824" => [channel.history_memory_max = memory],
        "Fanwire only: bytes of memory for the histories and maps of all channels together; beyond it some lose their publications before their time, and when entries of maps take all of it, further ones are refused.";
    "channel.publication_data_format", DATA_FORMAT, "" => [channel.publication_data_format = data_format],
        "What publications must hold where a namespace does not say: json, json_object or binary (anything).";
}

rows! { NAMESPACE: Namespace;
    "name", TEXT, "" => [name],
        "Name of the namespace: letters, digits, `-`, `_` and `.`, at least two of them.";
    "allow_subscribe_for_client", SWITCH, "false" => [allow_subscribe_for_client],
        "Every client with a user id may subscribe.";
    "allow_subscribe_for_anonymous", SWITCH, "false" => [allow_subscribe_for_anonymous],
        "Extends allow_subscribe_for_client to the empty user.";
    "allow_publish_for_client", SWITCH, "false" => [allow_publish_for_client],
        "Every client with a user id may publish.";
    "allow_publish_for_subscriber", SWITCH, "false" => [allow_publish_for_subscriber],
        "Every subscriber of the channel may publish.";
    "allow_publish_for_anonymous", SWITCH, "false" => [allow_publish_for_anonymous],
        "Extends the publish permissions to the empty user.";
    "exclude_publisher", SWITCH, "false" => [exclude_publisher],
        "Fanwire only: a client that publishes does not get its own publication back, on the connection that published it.";
    "publish_rate_limit", RATE_LIMIT, "0" => [publish_rate.limit],
        "Fanwire only: most publishes of one connection in publish_rate_interval, 0 for no limit; further ones get 111.";
    "publish_rate_interval", RATE_INTERVAL, "1s" => [publish_rate.interval],
        "Fanwire only: the time in which publish_rate_limit comes back.";
    "subscribe_rate_limit", RATE_LIMIT, "0" => [subscribe_rate.limit],
        "Fanwire only: most subscribes of one connection in subscribe_rate_interval, 0 for no limit; further ones get 111 and SDKs try again.";
    "subscribe_rate_interval", RATE_INTERVAL, "1s" => [subscribe_rate.interval],
        "Fanwire only: the time in which subscribe_rate_limit comes back.";
    "limits.user_publish.limit", RATE_LIMIT, "0" => [limits.user_publish.limit],
        "Fanwire only: most publishes of one user in the interval below, on all connections and nodes, 0 for no limit; further ones get 111; clients without a user have no such limit.";
    "limits.user_publish.interval", RATE_INTERVAL, "1s" => [limits.user_publish.interval],
        "Fanwire only: the time in which that limit comes back.";
    "limits.user_publish.dry_run", SWITCH, "false" => [limits.user_publish.dry_run],
        "Fanwire only: publishes beyond that limit are counted in metrics, and accepted.";
    "limits.publish.limit", RATE_LIMIT, "0" => [limits.publish.limit],
        "Fanwire only: most publishes of all clients together in the interval below, on all nodes, 0 for no limit; further ones get 111; publications of backends do not count.";
    "limits.publish.interval", RATE_INTERVAL, "1s" => [limits.publish.interval],
        "Fanwire only: the time in which that limit comes back.";
    "limits.publish.dry_run", SWITCH, "false" => [limits.publish.dry_run],
        "Fanwire only: publishes beyond that limit are counted in metrics, and accepted.";
    "allow_history_for_client", SWITCH, "false" => [allow_history_for_client],
        "Every client with a user id may read history.";
    "allow_history_for_subscriber", SWITCH, "false" => [allow_history_for_subscriber],
        "Every subscriber of the channel may read its history.";
    "allow_history_for_anonymous", SWITCH, "false" => [allow_history_for_anonymous],
        "Extends the history permissions to the empty user.";
    "presence", SWITCH, "false" => [presence],
        "Keeps who is subscribed to a channel, for clients that may see it.";
    "join_leave", SWITCH, "false" => [join_leave],
        "Joins and leaves are announced to the subscribers that ask for them and may see presence.";
    "force_push_join_leave", SWITCH, "false" => [force_push_join_leave],
        "With join_leave, every subscriber hears of joins and leaves without asking.";
    "allow_presence_for_client", SWITCH, "false" => [allow_presence_for_client],
        "Every client with a user id may see who is present.";
    "allow_presence_for_subscriber", SWITCH, "false" => [allow_presence_for_subscriber],
        "Every subscriber of the channel may see who is present.";
    "allow_presence_for_anonymous", SWITCH, "false" => [allow_presence_for_anonymous],
        "Extends the presence permissions to the empty user.";
    "force_recovery", SWITCH, "false" => [force_recovery],
        "Every subscriber can recover missed publications; needs history_size and history_ttl.";
    "allow_recovery", SWITCH, "false" => [allow_recovery],
        "Subscribers that ask for it can recover missed publications.";
    "force_recovery_mode", RECOVERY_MODE, "" => [force_recovery_mode = recovery_mode],
        "What recovery brings: stream (or empty) all that was missed, cache the newest publication.";
    "auto_cache_recover", SWITCH, "false" => [auto_cache_recover],
        "In cache mode, recoverable subscribers get the newest publication without asking.";
    "force_positioning", SWITCH, "false" => [force_positioning],
        "A subscriber that misses a publication gets 2500 (insufficient state) and subscribes again; needs history.";
    "allow_positioning", SWITCH, "false" => [allow_positioning],
        "Subscribers that ask for it are told to subscribe again when they miss a publication.";
    "allowed_delta_types", LIST, "" => [allowed_delta_types],
        "Kinds of deltas that subscribers may ask for; only fossil is known.";
    "delta_publish", SWITCH, "false" => [delta_publish],
        "Every publication may reach those subscribers as a delta; without it, only those published with delta.";
    "keep_latest_publication", SWITCH, "false" => [keep_latest_publication],
        "Deltas for subscribers without positions too, so that channels need no history for them.";
    "history_size", COUNT, "0" => [history_size],
        "History: how many publications of a channel are kept; 0 for none.";
    "history_ttl", LIFETIME, "0s" => [history_ttl],
        "History: how long they are kept after the newest one, in whole seconds; set together with history_size.";
    "history_meta_ttl", LIFETIME, "0s" => [history_meta_ttl],
        "How long offset and epoch are kept after the channel was last published to or read; 0s as channel.history_meta_ttl.";
    "append_interval", duration(Duration::from_millis(1), Duration::from_secs(10)), "40ms" => [append.interval],
        "Fanwire only: a message that grows by append is published at most once in this time, with all its text; the first and the final append are published at once.";
    "append_message_size_max", BYTES, "65536" => [append.message_bytes_max],
        "Fanwire only: most bytes of such a message, of its text in UTF-8 and its other fields; an append beyond it is refused.";
    "append_messages_max", COUNT_FROM_1, "100" => [append.messages_max],
        "Fanwire only: most such messages of a channel that are not final; one is forgotten when nothing was appended for history_ttl.";
    "client_idempotency_field", TEXT, "" => [client_idempotency.field],
        "Fanwire only: field of the payload with the idempotency key of publications of clients, a text; a user's second publication with the same one is accepted and not published.";
    "client_idempotency_ttl", duration(Duration::from_secs(1), Duration::from_secs(30 * 24 * 3600)), "24h" => [client_idempotency.ttl],
        "Fanwire only: how long such a key is remembered; the engine in memory forgets the oldest ones earlier, when all of them take more than 64 MiB.";
    "allow_tags_filter", SWITCH, "false" => [allow_tags_filter],
        "Subscribers may choose publications by their tags, with a filter in the subscribe command.";
    "allow_user_limited_channels", SWITCH, "false" => [allow_user_limited_channels],
        "Names such as `dialog#42,43` are only for the users they list.";
    "channel_regex", TEXT, "" => [channel_regex],
        "Regular expression for the part of the name after the namespace; empty allows ASCII names.";
    "subscription_type", SUBSCRIPTION_TYPE, "" => [subscription_type = subscription_type],
        "Kind of the channels: stream (or empty), map for entries by key, map_clients and map_users for those who are subscribed to other channels, shared_poll for values that the server polls from the backend.";
    "map.mode", MAP_MODE, "" => [map.mode = map_mode],
        "Maps: ephemeral entries expire and have no stream of changes, recoverable ones have one, persistent ones also never expire; required with subscription_type map.";
    "map.key_ttl", LIFETIME, "0s" => [map.key_ttl],
        "Maps: how long an entry lives after it was set; required unless the mode is persistent, which has none.";
    "map.stream_size", COUNT, "0" => [map.stream_size],
        "Maps: how many changes of a channel are kept, for those who read them later; 0 for 100, or for none in an ephemeral map.";
    "map.stream_ttl", LIFETIME, "0s" => [map.stream_ttl],
        "Maps: how long changes are kept after the newest one; 0s for 1m, or for none in an ephemeral map.";
    "map.meta_ttl", LIFETIME, "0s" => [map.meta_ttl],
        "Maps: how long offset and epoch are kept after the last use, at least map.stream_ttl and map.key_ttl; 0s for the larger of ten times map.stream_ttl and map.key_ttl, and for ever in a persistent map.";
    "map.entries_max", COUNT_FROM_1, "100000" => [map.entries_max],
        "Fanwire only: most entries of a map; a new key beyond it is refused.";
    "map.bytes_max", BYTES, "67108864" => [map.bytes_max],
        "Fanwire only: most bytes of a map, of its keys, values, tags and what they take in memory; changes give way first, then a value is refused.";
    "map.default_page_size", COUNT, "100" => [map.default_page_size],
        "Maps: entries or changes of a page that a subscriber reads, where its SDK names no number; 0 for the default.";
    "map.min_page_size", COUNT, "100" => [map.min_page_size],
        "Maps: a subscriber that wants smaller pages gets pages of this size; 0 for the default.";
    "map.max_page_size", COUNT, "1000" => [map.max_page_size],
        "Maps: a subscriber that wants larger pages gets pages of this size; 0 for the default.";
    "map.live_transition_max_publication_limit", COUNT, "0" => [map.live_transition_max_publication_limit],
        "Maps: most changes between the last page of a subscriber and its live phase, beyond which it gets 112 and begins again; 0 as map.max_page_size.";
    "map.subscribe_catch_up_timeout", LIFETIME, "5s" => [map.subscribe_catch_up_timeout],
        "Maps: time from the first page of a subscriber to its live phase, beyond which it is disconnected with 3008; 0s for no limit.";
    "map.client_key", CLIENT_KEY, "" => [map.client_key = client_key],
        "Maps: the key that a client sets and removes is its client_id or its user_id; empty for the one in its command.";
    "map.remove_client_on_unsubscribe", SWITCH, "false" => [map.remove_client_on_unsubscribe],
        "Maps: when a subscription ends, the entry whose key is the id of that client is removed.";
    "map.allow_publish_for_client", SWITCH, "false" => [map.allow_publish_for_client],
        "Maps: every client with a user id may set keys.";
    "map.allow_publish_for_subscriber", SWITCH, "false" => [map.allow_publish_for_subscriber],
        "Maps: every subscriber of the channel may set keys.";
    "map.allow_publish_for_anonymous", SWITCH, "false" => [map.allow_publish_for_anonymous],
        "Maps: extends the permissions to set keys to the empty user.";
    "map.allow_remove_for_client", SWITCH, "false" => [map.allow_remove_for_client],
        "Maps: every client with a user id may remove keys.";
    "map.allow_remove_for_subscriber", SWITCH, "false" => [map.allow_remove_for_subscriber],
        "Maps: every subscriber of the channel may remove keys.";
    "map.allow_remove_for_anonymous", SWITCH, "false" => [map.allow_remove_for_anonymous],
        "Maps: extends the permissions to remove keys to the empty user.";
    "map.publish_proxy_enabled", SWITCH, "false" => [map.publish_proxy.enabled],
        "Maps: publish commands that set a key are decided by the backend, instead of the permissions to set keys; map.client_key must be empty.";
    "map.publish_proxy_name", TEXT, "default" => [map.publish_proxy.name],
        "Maps: name of the proxy in `proxies` that is asked then; default is channel.proxy.map_publish.";
    "map.remove_proxy_enabled", SWITCH, "false" => [map.remove_proxy.enabled],
        "Maps: publish commands that remove a key are decided by the backend, instead of the permissions to remove keys; map.client_key must be empty.";
    "map.remove_proxy_name", TEXT, "default" => [map.remove_proxy.name],
        "Maps: name of the proxy in `proxies` that is asked then; default is channel.proxy.map_remove.";
    "shared_poll.proxy_name", TEXT, "" => [shared_poll.proxy_name],
        "Shared polls: name of the proxy in `proxies` that is polled; empty or default is channel.proxy.shared_poll_refresh.";
    "shared_poll.mode", POLL_MODE, "" => [shared_poll.mode = poll_mode],
        "Shared polls: versioned where the backend counts the versions of a value, versionless (or empty) where the server compares values.";
    "shared_poll.refresh_interval", LIFETIME, "10s" => [shared_poll.refresh_interval],
        "Shared polls: time between two polls of a key; 0s for the default.";
    "shared_poll.refresh_batch_size", COUNT, "1000" => [shared_poll.refresh_batch_size],
        "Shared polls: most keys of one call; the calls of a channel are spread over the interval; 0 for the default.";
    "shared_poll.max_keys_per_connection", COUNT, "5000" => [shared_poll.max_keys_per_connection],
        "Shared polls: most keys that a connection tracks in a channel, beyond which it gets 106; 0 for the default.";
    "shared_poll.channel_shutdown_delay", LIFETIME, "1s" => [shared_poll.channel_shutdown_delay],
        "Shared polls: the values of a channel are kept so long after its last key was untracked; 0s for the default.";
    "shared_poll.track_expired_extra_delay", LIFETIME, "25s" => [shared_poll.track_expired_extra_delay],
        "Shared polls: a key is untracked so long after its signature expired; 0s for the default.";
    "shared_poll.publish_enabled", SWITCH, "false" => [shared_poll.publish_enabled],
        "Shared polls: the server API may publish values between two polls; needs shared_poll.mode versioned.";
    "client_publish_debounce_interval", DELAY, "0s" => [client_publish_debounce_interval],
        "Maps: SDKs send the first value of a key at once, and then at most one in this time, the newest; 0s for each value.";
    "map_clients_presence_channel_prefix", TEXT, "" => [map_clients_presence_channel_prefix],
        "The clients that are subscribed to a channel are entries of the map with this text in front of its name, such as `online:`; its namespace has subscription_type map_clients.";
    "map_users_presence_channel_prefix", TEXT, "" => [map_users_presence_channel_prefix],
        "The same for the users that are subscribed to a channel; subscription_type map_users.";
    "compression", COMPRESSION, "" => [compression = compression],
        "Fanwire only: context compresses publications against earlier ones of their channel, standalone each by itself, off not at all; empty is context, except standalone where clients that may not read may publish.";
    "delivery", DELIVERY, "reliable" => [delivery.class = delivery_class],
        "Fanwire only: reliable queues what a slow client does not take and disconnects it at client.queue_max_size; latest replaces what waits by newer publications, for states of which only the newest counts.";
    "delivery_key_tag", TEXT, "" => [delivery.key_tag],
        "Fanwire only: with latest delivery the newest publication for each value of this tag waits, as a price for each symbol; empty for one of the channel.";
    "delivery_keys_max", COUNT_FROM_1, "4096" => [delivery.keys_max],
        "Fanwire only: most values of delivery_key_tag that wait for one client in one channel; beyond it the one that changed longest ago is dropped.";
    "batch_max_size", COUNT, "0" => [delivery.batch.max_size],
        "Delivers publications of a channel together as soon as there are so many, 0 for no such number; needs batch_max_delay.";
    "batch_max_delay", duration(Duration::ZERO, Duration::from_secs(10)), "0s" => [delivery.batch.max_delay],
        "Delivers publications of a channel together when the first has waited so long; 0s delivers each at once.";
    "batch_flush_latest", SWITCH, "false" => [delivery.batch.flush_latest],
        "Of the publications that would be delivered together, delivers only the newest; not where subscribers recover a stream or have a position.";
    "area_tile_size", integer(0, 1_000_000_000), "0" => [areas.tile_size],
        "Fanwire only: publications with a place reach the subscribers whose view touches its tile, a square of this size; 0 for no places, which recovery, positions and deltas need.";
    "area_tiles_max", integer(1, 10_000), "64" => [areas.tiles_max],
        "Fanwire only: most tiles that one view of a channel with places may touch, its margin and rings included.";
    "area_rings", LIST, "" => [areas.rings],
        "Fanwire only: rings around each view, as texts DISTANCE/UPDATES: the viewer gets objects at most so far from its view in every such update of a room, such as 200/5 and 600/20.";
    "subscribe_proxy_enabled", SWITCH, "false" => [subscribe_proxy.enabled],
        "Subscribe commands without a token are decided by the backend.";
    "subscribe_proxy_name", TEXT, "default" => [subscribe_proxy.name],
        "Name of the proxy in `proxies` that is asked at subscribe; default is channel.proxy.subscribe.";
    "publish_proxy_enabled", SWITCH, "false" => [publish_proxy.enabled],
        "Publish commands are decided by the backend, instead of the permissions to publish.";
    "publish_proxy_name", TEXT, "default" => [publish_proxy.name],
        "Name of the proxy in `proxies` that is asked at publish; default is channel.proxy.publish.";
    "sub_refresh_proxy_enabled", SWITCH, "false" => [sub_refresh_proxy.enabled],
        "Subscriptions that expire are prolonged or ended by the backend.";
    "sub_refresh_proxy_name", TEXT, "default" => [sub_refresh_proxy.name],
        "Name of the proxy in `proxies` that is asked then; default is channel.proxy.sub_refresh.";
    "subscribe_stream_proxy_enabled", SWITCH, "false" => [subscribe_stream_proxy.enabled],
        "Every subscription opens a gRPC stream to the backend, which decides about it and sends its publications.";
    "subscribe_stream_proxy_name", TEXT, "default" => [subscribe_stream_proxy.name],
        "Name of the proxy in `proxies` that opens those streams; default is channel.proxy.subscribe_stream.";
    "subscribe_stream_proxy_bidirectional", SWITCH, "false" => [subscribe_stream_proxy_bidirectional],
        "Publish commands of subscribers go to the backend in those streams.";
    "publication_data_format", DATA_FORMAT, "" => [publication_data_format = data_format],
        "What publications must hold: json, json_object or binary (anything); empty as channel.publication_data_format.";
}

const DATA_FORMAT: Kind = Kind::Choice(&DataFormat::NAMES);

const SUBSCRIPTION_TYPE: Kind = Kind::Choice(&SubscriptionType::NAMES);

const MAP_MODE: Kind = Kind::Choice(&MapMode::NAMES);

const POLL_MODE: Kind = Kind::Choice(&PollMode::NAMES);

const CLIENT_KEY: Kind = Kind::Choice(&ClientKey::NAMES);

const RECOVERY_MODE: Kind = Kind::Choice(&RecoveryMode::NAMES);

const COMPRESSION: Kind = Kind::Choice(&CompressionPolicy::NAMES);

const DELIVERY: Kind = Kind::Choice(&DeliveryClass::NAMES);

fn delivery_class(value: Value) -> DeliveryClass {
    DeliveryClass::parse(&String::from_value(value))
        .expect("the row's choices are the classes' names")
}

fn compression(value: Value) -> CompressionPolicy {
    CompressionPolicy::parse(&String::from_value(value))
        .expect("the row's choices are the policies' names")
}

fn subscription_type(value: Value) -> SubscriptionType {
    SubscriptionType::parse(&String::from_value(value))
        .expect("the row's choices are the types' names")
}

fn poll_mode(value: Value) -> PollMode {
    PollMode::parse(&String::from_value(value)).expect("the row's choices are the modes' names")
}

fn client_key(value: Value) -> ClientKey {
    ClientKey::parse(&String::from_value(value)).expect("the row's choices are the keys' names")
}

fn map_mode(value: Value) -> MapMode {
    MapMode::parse(&String::from_value(value)).expect("the row's choices are the modes' names")
}

fn recovery_mode(value: Value) -> RecoveryMode {
    RecoveryMode::parse(&String::from_value(value)).expect("the row's choices are the modes' names")
}

fn data_format(value: Value) -> DataFormat {
    DataFormat::parse(&String::from_value(value)).expect("the row's choices are the format's names")
}
