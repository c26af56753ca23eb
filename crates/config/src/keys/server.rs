//! Rows of the server around the node: listening, logs, WebSocket, server API, endpoints, shutdown.
//! In: nothing → out: `SERVER`, rows that set fields of `Config`.
//! Uses the kinds of `keys`. Never: `client.*` and `channel.*`, which have files of their own.
//! Change a default, a limit or a sentence here; the effect of a value lives where `Config` is read.

use std::time::Duration;

use fanwire_api::ErrorMode;
use fanwire_deflate::Strategy;

use super::{
    BYTES, COUNT, DAY, LIST, PATH, PORT, PORT_TEXT, SECRET, SWITCH, TEXT, duration, integer, memory,
};
use crate::key::{FromValue, Kind, Value, rows};
use crate::options::{Config, EngineKind, MapBrokerKind};

rows! { SERVER: Config;
    "http_server.address", TEXT, "" => [http_server.address],
        "Address to listen on; empty means all addresses, and without any configuration it is 127.0.0.1.";
    "http_server.port", PORT, "8000" => [http_server.port],
        "Port to listen on; 0 lets the system choose one.";
    "http_server.internal_address", TEXT, "" => [http_server.internal_address],
        "Address of server API, health, metrics, swagger and profiles, where that is not http_server.address.";
    "http_server.internal_port", PORT_TEXT, "" => [http_server.internal_port],
        "Port of server API, health, metrics, swagger and profiles, where that is not http_server.port.";
    "http_server.trusted_proxies", LIST, "" => [http_server.trusted_proxies],
        "Fanwire only: addresses and networks of proxies whose X-Forwarded-For or Forwarded says who the client is; limits and log lines then have its address.";
    "http_server.proxy_protocol", SWITCH, "false" => [http_server.proxy_protocol],
        "Fanwire only: connections from http_server.trusted_proxies begin with a header of the PROXY protocol, version 1 or 2.";
    "http_server.h2c_external", SWITCH, "false" => [http_server.h2c_external],
        "Serves HTTP/2 without TLS on http_server.port as well, to clients and proxies that begin with it; it needs an internal port.";
    "http_server.tls.enabled", SWITCH, "false" => [http_server.tls.enabled],
        "Speaks TLS 1.2 and 1.3 on both ports, and only that.";
    "http_server.tls.cert_pem", TEXT, "" => [http_server.tls.cert_pem],
        "Certificate of the server and those that signed it, as PEM, base64 of it, or a file.";
    "http_server.tls.key_pem", SECRET, "" => [http_server.tls.key_pem],
        "Private key of that certificate, as PEM, base64 of it, or a file.";
    "http_server.tls.client_ca_pem", TEXT, "" => [http_server.tls.client_ca_pem],
        "Authorities that must have signed the certificate of a client, as PEM, base64 of it, or a file; empty asks clients for none.";
    "http_server.tls_external", SWITCH, "false" => [http_server.tls_external],
        "Leaves the internal port without that TLS.";
    "http_server.internal_tls.enabled", SWITCH, "false" => [http_server.internal_tls.enabled],
        "Speaks TLS on the internal port with the keys below, whatever http_server.tls says.";
    "http_server.internal_tls.cert_pem", TEXT, "" => [http_server.internal_tls.cert_pem],
        "Certificate of the internal port and those that signed it, as PEM, base64 of it, or a file.";
    "http_server.internal_tls.key_pem", SECRET, "" => [http_server.internal_tls.key_pem],
        "Private key of that certificate, as PEM, base64 of it, or a file.";
    "http_server.internal_tls.client_ca_pem", TEXT, "" => [http_server.internal_tls.client_ca_pem],
        "Authorities that must have signed the certificate of a client of the internal port, as PEM, base64 of it, or a file; empty asks for none.";
    "http_server.tls_autocert.enabled", SWITCH, "false" => [http_server.tls_autocert.enabled],
        "Speaks TLS with certificates that an authority issues by ACME, as Let's Encrypt does; then http_server.tls has no effect.";
    "http_server.tls_autocert.host_whitelist", LIST, "" => [http_server.tls_autocert.host_whitelist],
        "Names to have certificates for, ordered at the start; at least one, because with none anybody could cause orders.";
    "http_server.tls_autocert.cache_dir", TEXT, "" => [http_server.tls_autocert.cache_dir],
        "Folder that keeps the account's key and the certificates; without it each start orders all of them and soon exceeds the limits of an authority.";
    "http_server.tls_autocert.email", TEXT, "" => [http_server.tls_autocert.email],
        "Address that the authority may write to.";
    "http_server.tls_autocert.server_name", TEXT, "" => [http_server.tls_autocert.server_name],
        "Name that is assumed when a client sends none; empty lets such a handshake fail.";
    "http_server.tls_autocert.http", SWITCH, "false" => [http_server.tls_autocert.http],
        "Also listens on http_addr, for challenges http-01, and redirects all other requests to https.";
    "http_server.tls_autocert.http_addr", TEXT, ":80" => [http_server.tls_autocert.http_addr],
        "Address of that listener, as host:port, or :port for all addresses; the authority connects to port 80.";
    "http_server.tls_autocert.directory_url", TEXT, "https://acme-v02.api.letsencrypt.org/directory" => [http_server.tls_autocert.directory_url],
        "Fanwire only: the authority, by the URL of its directory; its terms are accepted.";
    "http_server.tls_autocert.directory_ca_pem", TEXT, "" => [http_server.tls_autocert.directory_ca_pem],
        "Fanwire only: roots that may have signed the certificate of that URL, as PEM, base64 of it, or a file; empty means those of the system.";
    "log.level", LOG_LEVEL, "info" => [log.level],
        "Least important log lines that are written.";
    "log.file", TEXT, "" => [log.file],
        "File that log lines are appended to; empty means stderr.";
    "log.format", Kind::Choice(&["auto", "json", "text"]), "auto" => [log.format],
        "Form of log lines: JSON objects, or text; auto means text on a terminal and JSON otherwise.";
    "log.debug_for.users", LIST, "" => [log.debug_for.users],
        "Fanwire only: users whose events are logged at level debug, whatever log.level says; the API method debug_for does it for a time.";
    "log.debug_for.channels", LIST, "" => [log.debug_for.channels],
        "Fanwire only: channels whose publications and subscriptions are logged so.";
    "log.debug_for.addresses", LIST, "" => [log.debug_for.addresses],
        "Fanwire only: IP addresses of clients whose events are logged so.";
    "recorder.memory_max", integer(0, 1 << 40), "33554432" => [recorder.memory_max = memory],
        "Fanwire only: bytes of the flight recorder, which keeps the last events of connections for connection_log, of the newest ones first; about 1 KB each, 0 switches it off.";
    "recorder.path", TEXT, "" => [recorder.path],
        "Fanwire only: folder of this server alone, whose files keep the logs of connections that ended, for `fanwire log`; it is made if it is missing; empty keeps none.";
    "recorder.disk_max", integer(16 << 20, 1 << 50), "1073741824" => [recorder.disk_max],
        "Fanwire only: bytes of all files in recorder.path; the oldest one goes for a new one.";
    "engine.type", Kind::Choice(&["memory", "redis"]), "memory" => [engine.kind = engine_kind],
        "Where publications, history, presence and maps meet: in memory for one server, in Redis for several that act as one.";
    "engine.memory.snapshot_path", TEXT, "" => [engine.memory.snapshot_path],
        "Fanwire only: file of this server alone that keeps histories, positions, maps, idempotency keys, blocks and revocations over a restart; other files are made next to it; empty keeps none.";
    "engine.memory.snapshot_interval", duration(Duration::from_secs(1), DAY), "30s" => [engine.memory.snapshot_interval],
        "Fanwire only: time between two writes of that file; it is also written at a planned stop.";
    "map_broker.type", Kind::Choice(&["memory", "redis", "postgres"]), "memory" => [map_broker.kind = map_broker_kind],
        "Where maps are kept: always where engine.type says; redis needs engine.type redis, and postgres stops the start.";
    "engine.redis.address", LIST, "redis://127.0.0.1:6379" => [engine.redis.address],
        "Redis to use, as host:port, redis://user:password@host:port/db, with rediss:// over TLS, or, of a Cluster, redis+cluster://user:password@host:port?addr=host:port; of several each channel belongs to one.";
    "engine.redis.cluster_address", LIST, "" => [engine.redis.cluster_address],
        "Instead of the address: a Redis Cluster by some of its nodes, host:port,host:port; of several Clusters each channel belongs to one.";
    "engine.redis.sentinel_address", LIST, "" => [engine.redis.sentinel_address],
        "Sentinels to ask where the master is, each as host:port; then engine.redis.address is not used.";
    "engine.redis.sentinel_master_name", TEXT, "" => [engine.redis.sentinel_master_name],
        "What the Sentinels call the master; with several names, and commas between them, each channel belongs to one.";
    "engine.redis.sentinel_user", TEXT, "" => [engine.redis.sentinel_user],
        "User at the Sentinels; empty means the default one.";
    "engine.redis.sentinel_password", SECRET, "" => [engine.redis.sentinel_password],
        "Password at the Sentinels; that of the Redis is another key.";
    "engine.redis.sentinel_client_name", TEXT, "" => [engine.redis.sentinel_client_name],
        "Name of the connections in CLIENT LIST of the Sentinels.";
    "engine.redis.tls.enabled", SWITCH, "false" => [engine.redis.tls.enabled],
        "Speaks TLS to Redis, whatever the address says, and obeys the keys below.";
    "engine.redis.tls.server_ca_pem", TEXT, "" => [engine.redis.tls.server_ca_pem],
        "Authorities that may have signed its certificate, as PEM, base64 of it, or a file; empty means those of the system.";
    "engine.redis.tls.cert_pem", TEXT, "" => [engine.redis.tls.cert_pem],
        "Certificate to show to Redis, as PEM, base64 of it, or a file.";
    "engine.redis.tls.key_pem", SECRET, "" => [engine.redis.tls.key_pem],
        "Private key of that certificate, as PEM, base64 of it, or a file.";
    "engine.redis.tls.server_name", TEXT, "" => [engine.redis.tls.server_name],
        "Name that its certificate must have; empty means that of the address, which with Sentinels is what they announce.";
    "engine.redis.tls.insecure_skip_verify", SWITCH, "false" => [engine.redis.tls.insecure_skip_verify],
        "Development only: believes any certificate.";
    "engine.redis.sentinel_tls.enabled", SWITCH, "false" => [engine.redis.sentinel_tls.enabled],
        "Speaks TLS to the Sentinels, whatever the address says, and obeys the keys below.";
    "engine.redis.sentinel_tls.server_ca_pem", TEXT, "" => [engine.redis.sentinel_tls.server_ca_pem],
        "Authorities that may have signed its certificate, as PEM, base64 of it, or a file; empty means those of the system.";
    "engine.redis.sentinel_tls.cert_pem", TEXT, "" => [engine.redis.sentinel_tls.cert_pem],
        "Certificate to show to the Sentinels, as PEM, base64 of it, or a file.";
    "engine.redis.sentinel_tls.key_pem", SECRET, "" => [engine.redis.sentinel_tls.key_pem],
        "Private key of that certificate, as PEM, base64 of it, or a file.";
    "engine.redis.sentinel_tls.server_name", TEXT, "" => [engine.redis.sentinel_tls.server_name],
        "Name that its certificate must have; empty means that of the address, which with Sentinels is what they announce.";
    "engine.redis.sentinel_tls.insecure_skip_verify", SWITCH, "false" => [engine.redis.sentinel_tls.insecure_skip_verify],
        "Development only: believes any certificate.";
    "engine.redis.user", TEXT, "" => [engine.redis.user],
        "User at Redis; empty means as the address says.";
    "engine.redis.password", SECRET, "" => [engine.redis.password],
        "Password at Redis; empty means as the address says.";
    "engine.redis.db", integer(0, 65_535), "0" => [engine.redis.db],
        "Number of the Redis database; 0 means as the address says, and PUB/SUB knows none, so that installations which share a Redis need prefixes of their own.";
    "engine.redis.prefix", TEXT, "fanwire" => [engine.redis.prefix],
        "What all names in Redis begin with; Centrifugo's default is centrifugo, and the two cannot share names.";
    "engine.redis.client_name", TEXT, "" => [engine.redis.client_name],
        "Name of the connections in CLIENT LIST of Redis.";
    "engine.redis.connect_timeout", REDIS_TIME, "1s" => [engine.redis.connect_timeout],
        "How long opening a connection to Redis may take.";
    "engine.redis.io_timeout", REDIS_TIME, "4s" => [engine.redis.io_timeout],
        "How long Redis may owe a reply before its connection is given up and calls fail.";
    "engine.redis.wait.replicas", integer(0, 100), "0" => [engine.redis.wait.replicas],
        "Fanwire only: replicas that must have a write before it is answered; 0 asks none.";
    "engine.redis.wait.timeout", REDIS_TIME, "500ms" => [engine.redis.wait.timeout],
        "Fanwire only: how long those replicas may take before the write fails; at most a quarter of engine.redis.io_timeout.";
    "engine.redis.command_connections", integer(1, 64), "2" => [engine.redis.command_connections],
        "Fanwire only: connections for commands to each Redis.";
    "engine.redis.feed_connections", integer(1, 64), "2" => [engine.redis.pubsub_connections],
        "Fanwire only: the former name of engine.redis.pubsub_connections, which wins.";
    "engine.redis.pubsub_connections", integer(1, 64), "2" => [engine.redis.pubsub_connections],
        "Fanwire only: connections for PUB/SUB to each Redis.";
    "node.name", TEXT, "" => [node.name],
        "Name of this server in API answers; empty means the host and the port for clients, such as `host_8000`.";
    "node.info_metrics_aggregate_interval", duration(Duration::from_secs(1), DAY), "60s" => [node.info_metrics_aggregate_interval],
        "How long the API method info gathers the numbers that it shows of each server.";
    "cluster.rebalance.enabled", SWITCH, "false" => [cluster.rebalance.enabled],
        "Fanwire only: a node with more than 10 % above the average connections of the nodes sends clients to the others, until it has the average; it needs a balancer that counts connections.";
    "cluster.rebalance.rate", integer(1, 1_000_000), "200" => [cluster.rebalance.rate],
        "Fanwire only: clients that a node sends to the others in a second.";
    "cluster.rebalance.min_age", duration(Duration::ZERO, YEAR), "1h" => [cluster.rebalance.min_age],
        "Fanwire only: connections that are younger stay, so that no client moves twice in this time.";
    "pid_file", TEXT, "" => [pid_file],
        "File that holds the process id while the server runs; empty for none.";
    "shards", integer(0, 1024), "0" => [shards],
        "Fanwire only: threads that own connections; 0 means one per core.";
    "shed.memory_max", integer(0, 1 << 50), "0" => [shed.memory_max],
        "Fanwire only: resident bytes of the process above which new clients get 503, until they fall to nine tenths; 0 for no limit.";
    "shed.memory_percent_max", integer(0, 100), "0" => [shed.memory_percent_max],
        "Fanwire only: the same in percent of the memory limit of the cgroup (version 2), or without one of the machine's memory; the smaller of both limits counts.";
    "shed.turn_max", duration(Duration::ZERO, Duration::from_secs(10)), "0s" => [shed.turn_max],
        "Fanwire only: new clients get 503 when the turns of a shard take longer than this on average for 5 s, until they take nine tenths; 0s for no limit.";
    "shutdown.drain_interval", duration(Duration::ZERO, DAY), "0s" => [shutdown.drain_interval],
        "Fanwire only: clients are disconnected evenly over this time before shutdown.timeout begins, while the server still delivers and is not ready; 0s for none.";
    "shutdown.timeout", duration(Duration::from_secs(1), DAY), "30s" => [shutdown.timeout],
        "Time in which connections are closed, spread over it, after SIGTERM or SIGINT.";
    "websocket.disabled", SWITCH, "false" => [websocket.disabled],
        "Switches the WebSocket endpoint off.";
    "websocket.handler_prefix", PATH, "/connection/websocket" => [websocket.handler_prefix],
        "Path of the WebSocket endpoint.";
    "websocket.compression", SWITCH, "true" => [websocket.compression],
        "Compresses messages for clients that offer permessage-deflate; Centrifugo's default is false.";
    "websocket.compression_min_size", COUNT, "128" => [websocket.compression_min_size],
        "Messages shorter than this many bytes go out uncompressed; Centrifugo's default is 0.";
    "websocket.compression_level", integer(1, 9), "6" => [websocket.compression_level],
        "Compression effort, from 1 (fastest) to 9 (smallest); Centrifugo's default is 1.";
    "websocket.compression_apple", SWITCH, "false" => [websocket.compression_apple],
        "Fanwire only: compresses for Apple's NSURLSession too, whose implementation has known defects.";
    "websocket.compression_memory_max", integer(0, 1 << 40), "268435456" => [websocket.compression_memory_max],
        "Fanwire only: bytes of memory for what publications of channels are compressed against, for compressors of connections and for windows of clients; the channels that save most come first.";
    "websocket.compression_verify", SWITCH, "false" => [websocket.compression_verify],
        "Fanwire only: inflates every compressed frame before it is sent and compares; for tests and for tracking down trouble, at about 50 KB and one inflation per connection.";
    "websocket.compression_dedicated.enabled", SWITCH, "false" => [websocket.compression_dedicated.enabled],
        "Fanwire only: gives each connection a compressor of its own, for traffic that is not broadcast; its memory is part of websocket.compression_memory_max.";
    "websocket.compression_dedicated.window_bits", integer(9, 15), "12" => [websocket.compression_dedicated.window_bits],
        "Window of such a compressor: 2^bits bytes; it takes four times that.";
    "websocket.compression_dedicated.memory_level", integer(1, 9), "5" => [websocket.compression_dedicated.memory_level],
        "Table of such a compressor: it takes 2^(level + 9) bytes.";
    "websocket.compression_dedicated.strategy", STRATEGY, "default" => [websocket.compression_dedicated.strategy = strategy],
        "What such a compressor looks for: default, filtered, huffman_only, rle or fixed, as in zlib.";
    "websocket.server_max_window_bits", integer(9, 15), "15" => [websocket.server_max_window_bits],
        "Fanwire only: window of messages to clients, 2^bits bytes, unless the client asks for a smaller one; with a small window, larger messages go out uncompressed.";
    "websocket.client_context_takeover", SWITCH, "false" => [websocket.client_context_takeover],
        "Fanwire only: messages of clients may refer to their earlier ones, which takes a window for each connection, part of websocket.compression_memory_max; when that is used up, new connections do without.";
    "websocket.client_max_window_bits", integer(9, 15), "12" => [websocket.client_max_window_bits],
        "Window of such a client, 2^bits bytes, if it lets the server choose; otherwise its window is 32 KiB.";
    "websocket.require_client_max_window_bits", SWITCH, "false" => [websocket.require_client_max_window_bits],
        "Agrees to no compression at all with clients that do not let the server choose that window.";
    "websocket.message_size_limit", BYTES, "65536" => [websocket.message_size_limit],
        "Longest incoming message in bytes; a longer one closes the connection with 1009.";
    "websocket.decompressed_message_size_limit", COUNT, "0" => [websocket.decompressed_message_size_limit],
        "Longest incoming message in bytes after inflating; 0 means ten times websocket.message_size_limit.";
    "websocket.fragments_max", integer(1, 0xFFFF_FFFF), "65536" => [websocket.fragments_max],
        "Fanwire only: most fragments of one incoming message; more close the connection with 1008.";
    "websocket.write_timeout", duration(Duration::from_millis(1), DAY), "1s" => [websocket.write_timeout],
        "How long a connection may accept no outgoing bytes before it is closed.";
    "http_api.disabled", SWITCH, "false" => [http_api.disabled],
        "Removes the HTTP server API.";
    "http_api.external", SWITCH, "false" => [http_api.external],
        "Leaves the server API on http_server.port when http_server.internal_port is another one.";
    "http_stream.enabled", SWITCH, "false" => [http_stream.enabled],
        "Serves HTTP streaming, for clients whose network has no WebSocket.";
    "http_stream.handler_prefix", PATH, "/connection/http_stream" => [http_stream.handler_prefix],
        "Path of the HTTP streaming endpoint.";
    "http_stream.max_request_body_size", BYTES, "65536" => [http_stream.max_request_body_size],
        "Longest request of the HTTP streaming endpoint in bytes; a longer one gets 413.";
    "http_stream.compression", SWITCH, "true" => [http_stream.compression],
        "Fanwire only: compresses HTTP streams for clients that accept gzip or deflate, in context as WebSocket messages.";
    "sse.enabled", SWITCH, "false" => [sse.enabled],
        "Serves Server-Sent Events, for clients whose network has no WebSocket.";
    "sse.handler_prefix", PATH, "/connection/sse" => [sse.handler_prefix],
        "Path of the endpoint of Server-Sent Events.";
    "sse.max_request_body_size", BYTES, "65536" => [sse.max_request_body_size],
        "Longest request of that endpoint in bytes; a longer one gets 413.";
    "sse.compression", SWITCH, "true" => [sse.compression],
        "Fanwire only: compresses Server-Sent Events for clients that accept gzip or deflate, in context as WebSocket messages.";
    "emulation.handler_prefix", PATH, "/emulation" => [emulation.handler_prefix],
        "Path on which clients of HTTP streaming and Server-Sent Events send their commands.";
    "emulation.max_request_body_size", BYTES, "65536" => [emulation.max_request_body_size],
        "Longest request of that path in bytes; a longer one gets 413.";
    "http_api.handler_prefix", PATH, "/api" => [http_api.handler_prefix],
        "Path in front of the method names of the server API.";
    "http_api.key", SECRET, "" => [http_api.key],
        "Secret that backends send in X-API-Key; when empty, `serve` makes a random one and prints it.";
    "http_api.previous_key", SECRET, "" => [http_api.previous_key],
        "Fanwire only: secret of backends before the last change, accepted as well.";
    "http_api.previous_key_valid_until", integer(0, u64::MAX), "0" => [http_api.previous_key_valid_until],
        "Fanwire only: Unix second after which that previous secret is refused; 0 for never.";
    "http_api.error_mode", Kind::Choice(&["", "transport"]), "" => [http_api.error_mode = error_mode],
        "With `transport`, API errors use HTTP status codes instead of 200 with an error object.";
    "http_api.insecure", SWITCH, "false" => [http_api.insecure],
        "Answers API requests without a key; only where something else guards the port.";
    "http_api.max_request_body_size", BYTES, "16777216" => [http_api.max_request_body_size],
        "Fanwire only: longest body of an API request in bytes; a longer one gets 413.";
    "health.enabled", SWITCH, "false" => [health.enabled],
        "Switches the health endpoint on.";
    "health.handler_prefix", PATH, "/health" => [health.handler_prefix],
        "Path of the health endpoint.";
    "prometheus.enabled", SWITCH, "false" => [prometheus.enabled],
        "Switches the metrics endpoint on.";
    "prometheus.handler_prefix", PATH, "/metrics" => [prometheus.handler_prefix],
        "Path of the metrics endpoint.";
    "prometheus.instrument_http_handlers", SWITCH, "false" => [prometheus.instrument_http_handlers],
        "Counts HTTP requests by handler, method and status, except requests of clients without TLS, which shards answer and transport metrics count.";
    "compatibility.centrifugo_metrics", SWITCH, "false" => [compatibility.centrifugo_metrics],
        "Fanwire only: metrics have Centrifugo's names, too, so that its Grafana dashboard 13039 works; they need prometheus.enabled.";
    "opentelemetry.enabled", SWITCH, "false" => [opentelemetry.enabled],
        "Sends traces by OTLP over HTTP, as the variables OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_SAMPLER and others of OpenTelemetry say; event proxies get traceparent.";
    "opentelemetry.api", SWITCH, "false" => [opentelemetry.api],
        "Calls of the server API over HTTP and gRPC are spans, with the broker and the deliveries, and continue the trace of a header traceparent; each command of a stream begins a trace.";
    "opentelemetry.consuming", SWITCH, "false" => [opentelemetry.consuming],
        "Messages of consumers are spans as calls are; a header traceparent of Kafka, NATS JetStream or Redis Streams is continued.";
    "swagger.enabled", SWITCH, "false" => [swagger.enabled],
        "Serves the description of the HTTP server API, an OpenAPI 3.1 document in JSON; the file docs/openapi.json is the same.";
    "swagger.handler_prefix", PATH, "/swagger" => [swagger.handler_prefix],
        "Path of that document.";
    "debug.enabled", SWITCH, "false" => [debug.enabled],
        "Serves CPU and heap profiles in the format of pprof, without authentication, and takes samples of allocations for the latter.";
    "debug.handler_prefix", PATH, "/debug/pprof" => [debug.handler_prefix],
        "Path above the profiles.";
    "demo.enabled", SWITCH, "false" => [demo.enabled],
        "Fanwire only: serves the demo page; on in development mode.";
    "demo.handler_prefix", PATH, "/" => [demo.handler_prefix],
        "Fanwire only: path of the demo page.";
    "admin.enabled", SWITCH, "false" => [admin.enabled],
        "Serves the admin page, where the server API is served.";
    "admin.handler_prefix", TEXT, "" => [admin.handler_prefix],
        "Path above the admin page; empty means the root.";
    "admin.password", SECRET, "" => [admin.password],
        "Password of the admin page; empty means that nothing can be changed there.";
    "admin.read_only_password", SECRET, "" => [admin.read_only_password],
        "Fanwire only: another password of the admin page, with which nothing can be changed; empty for none.";
    "admin.secret", SECRET, "" => [admin.secret],
        "Signs logins of the admin page; another one ends all of them.";
    "admin.insecure", SWITCH, "false" => [admin.insecure],
        "Needs no password for the admin page.";
    "admin.external", SWITCH, "false" => [admin.external],
        "Serves the admin page on http_server.port, although http_server.internal_port is set.";
    "admin.web_path", TEXT, "" => [admin.web_path],
        "Folder of another admin page, such as Centrifugo's; empty means the one of Fanwire.";
}

const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

const STRATEGY: Kind = Kind::Choice(&Strategy::NAMES);

fn strategy(value: Value) -> Strategy {
    Strategy::named(&String::from_value(value))
        .expect("the row's choices are the strategies' names")
}

const REDIS_TIME: Kind = duration(Duration::from_millis(10), Duration::from_secs(60));

fn engine_kind(value: Value) -> EngineKind {
    let name = String::from_value(value);
    let named = EngineKind::NAMED.iter().find(|(known, _)| *known == name);
    named.expect("the row's choices are the names of kinds").1
}

fn map_broker_kind(value: Value) -> MapBrokerKind {
    let name = String::from_value(value);
    let named = MapBrokerKind::NAMED.iter().find(|(known, _)| *known == name);
    named.expect("the row's choices are the names of kinds").1
}

const LOG_LEVEL: Kind = Kind::Choice(&["none", "trace", "debug", "info", "warn", "error", "fatal"]);

pub(super) fn error_mode(value: Value) -> ErrorMode {
    match String::from_value(value).as_str() {
        "transport" => ErrorMode::Transport,
        _ => ErrorMode::Body,
    }
}
