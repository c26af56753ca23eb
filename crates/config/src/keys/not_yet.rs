//! Keys of Centrifugo that Fanwire does not support yet, with the consequence of setting each of them.
//! In: nothing → out: `NOT_YET` for the whole file.
//! Uses the kinds of `keys`. Never: fields of `Config`; a key that gets one moves to the table of its section.
//! A weight is changed here: `Tuning` is noted, `Feature` is warned about, `Refused` stops the start.

use super::{BLOCK, COUNT, COUNT_FROM_1, DELAY, PORT, SWITCH, TEXT};
use crate::key::{Kind, not_yet};

not_yet! { NOT_YET;
    "http_server.tls.server_ca_pem", TEXT, "", Tuning, "Authorities of servers; here it is the server.";
    "http_server.tls.server_name", TEXT, "", Tuning, "Name that a server's certificate must have; here it is the server.";
    "http_server.tls.insecure_skip_verify", SWITCH, "false", Tuning, "Believes any server; here it is the server.";
    "http_server.internal_tls.server_ca_pem", TEXT, "", Tuning, "Authorities of servers; here it is the server.";
    "http_server.internal_tls.server_name", TEXT, "", Tuning, "Name that a server's certificate must have; here it is the server.";
    "http_server.internal_tls.insecure_skip_verify", SWITCH, "false", Tuning, "Believes any server; here it is the server.";
    "http_server.http3.enabled", SWITCH, "false", Feature, "HTTP/3 on the same port.";
    "engine.redis.tls.client_ca_pem", TEXT, "", Tuning, "Authorities of clients; Redis is a server.";
    "engine.redis.sentinel_tls.client_ca_pem", TEXT, "", Tuning, "Authorities of clients; a Sentinel is a server.";
    "engine.redis.replica_client", BLOCK, "", Tuning, "Reads from replicas; Fanwire reads from the master.";
    "engine.redis.force_resp2", SWITCH, "false", Tuning, "Version of the Redis protocol.";
    "engine.redis.history_use_lists", SWITCH, "false", Tuning, "History in lists; Fanwire keeps it in streams.";
    "engine.redis.presence_ttl", DELAY, "60s", Tuning, "Life of presence in Redis; it is client.presence_ttl.";
    "engine.redis.presence_hash_field_ttl", SWITCH, "false", Tuning, "Lets Redis expire members; Fanwire keeps their ends in a sorted set.";
    "engine.redis.presence_user_mapping", SWITCH, "false", Tuning, "Counts users in Redis; Fanwire always does.";
    "broker.enabled", SWITCH, "false", Refused, "Brokers apart from the engine; several servers would not hear each other.";
    "broker.type", Kind::Choice(&["memory", "redis", "nats", "redisnats", "postgres"]), "memory", Tuning, "Which broker broker.enabled switches on.";
    "broker.redis", BLOCK, "", Feature, "Settings of the Redis broker.";
    "broker.nats", BLOCK, "", Feature, "Settings of the NATS broker.";
    "broker.redisnats", BLOCK, "", Feature, "Settings of the broker that joins Redis and NATS.";
    "broker.postgres", BLOCK, "", Feature, "Settings of the PostgreSQL broker.";
    "presence_manager.enabled", SWITCH, "false", Tuning, "Chooses a place for presence apart from the engine.";
    "presence_manager.type", Kind::Choice(&["memory", "redis"]), "memory", Tuning, "Where presence is kept; Fanwire keeps it where engine.type says.";
    "presence_manager.redis", BLOCK, "", Feature, "Settings of presence in Redis.";
    "map_broker.redis", BLOCK, "", Feature, "Settings of maps in a Redis of their own; they are in that of engine.redis.";
    "map_broker.postgres", BLOCK, "", Feature, "Settings of maps in PostgreSQL.";
    "shared_poll.notification", BLOCK, "", Refused, "Hints of a backend that keys have changed; a value that cannot wait for a poll is published with shared_poll_publish.";
    "shared_poll_relay", BLOCK, "", Feature, "A process that polls backends for all servers; each server polls by itself.";
    "channel.without_namespace.shared_poll.backpressure_max_interval", DELAY, "0s", Refused, "Polls a slow backend less often; Fanwire asks for a key again when the call before has ended.";
    "channel.without_namespace.shared_poll.keep_latest_data", SWITCH, "false", Tuning, "Keeps the newest values for later clients; Fanwire always does.";
    "controller", BLOCK, "", Feature, "How several servers find each other.";

    "client.token.jwks.tls.client_ca_pem", TEXT, "", Tuning, "Authorities of clients; the JWKS endpoint is a server.";
    "client.subscription_token.jwks.tls.client_ca_pem", TEXT, "", Tuning, "Authorities of clients; the JWKS endpoint is a server.";

    "grpc_api.tls.server_ca_pem", TEXT, "", Tuning, "Authorities of servers; here it is the server.";
    "grpc_api.tls.server_name", TEXT, "", Tuning, "Name that a server's certificate must have; here it is the server.";
    "grpc_api.tls.insecure_skip_verify", SWITCH, "false", Tuning, "Believes any server; here it is the server.";
    "uni_grpc.tls.server_ca_pem", TEXT, "", Tuning, "Authorities of servers; here it is the server.";
    "uni_grpc.tls.server_name", TEXT, "", Tuning, "Name that a server's certificate must have; here it is the server.";
    "uni_grpc.tls.insecure_skip_verify", SWITCH, "false", Tuning, "Believes any server; here it is the server.";

    "websocket.compression_prepared_message_cache_size", COUNT, "0", Tuning, "Memory of compressed frames; Fanwire compresses each once without.";
    "websocket.read_buffer_size", COUNT, "0", Tuning, "Read buffer per connection; Fanwire keeps none.";
    "websocket.write_buffer_size", COUNT, "0", Tuning, "Write buffer per connection; Fanwire keeps none.";
    "websocket.use_write_buffer_pool", SWITCH, "false", Tuning, "Shares write buffers; Fanwire always does.";
    "webtransport.enabled", SWITCH, "false", Feature, "WebTransport; set SDKs to use WebSocket.";
    "webtransport.handler_prefix", TEXT, "/connection/webtransport", Tuning, "Path of the WebTransport endpoint.";
    "webtransport.message_size_limit", COUNT_FROM_1, "65536", Tuning, "Longest incoming message of WebTransport.";
    "uni_websocket.read_buffer_size", COUNT, "0", Tuning, "Read buffer per connection; Fanwire keeps none.";
    "uni_websocket.write_buffer_size", COUNT, "0", Tuning, "Write buffer per connection; Fanwire keeps none.";
    "uni_websocket.use_write_buffer_pool", SWITCH, "false", Tuning, "Shares write buffers; Fanwire always does.";
    "init.enabled", SWITCH, "false", Feature, "Connection init endpoint; requests for it get 404.";
    "init.handler_prefix", TEXT, "/connection/init", Tuning, "Path of the connection init endpoint.";

    "admin.web_proxy_address", TEXT, "", Tuning, "Address of another admin web interface.";
    "prometheus.recovered_publications_histogram", SWITCH, "false", Tuning, "Histogram of recovered publications.";
    "prometheus.native_histograms", SWITCH, "false", Tuning, "Native histograms.";
    "dev.enabled", SWITCH, "false", Feature, "Centrifugo's page for development; see demo.enabled.";
    "graphite.enabled", SWITCH, "false", Feature, "Export of metrics to Graphite; they are where prometheus.enabled puts them.";
    "graphite.host", TEXT, "localhost", Tuning, "Host of Graphite.";
    "graphite.port", PORT, "2003", Tuning, "Port of Graphite.";
    "graphite.prefix", TEXT, "centrifugo", Tuning, "Prefix of metrics in Graphite.";
    "graphite.interval", DELAY, "10s", Tuning, "How often metrics go to Graphite.";
    "graphite.tags", SWITCH, "false", Tuning, "Tags of metrics in Graphite.";
    "opentelemetry.google_cloud_adc_auth", SWITCH, "false", Tuning, "Credentials of Google Cloud for traces.";
    "usage_stats.disabled", SWITCH, "false", Tuning, "Switches usage statistics off; Fanwire never sends any.";
    "enable_unreleased_features", SWITCH, "false", Tuning, "Centrifugo's unreleased features.";
}
