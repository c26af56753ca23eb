//! Rows of one consumer: the members of `consumers`.
//! In: nothing → out: `CONSUMER` and the tables of its sections, rows that set `ConsumerOptions` and what it contains.
//! Uses the kinds of `keys`. Never: the list of consumers as such (`settings`), relations between keys (`rules::consumers`).
//! Change a default, a limit or a sentence here; the effects live in `fanwire_consumers`.

use std::time::Duration;

use fanwire_consumers::{ConsumerKind, ConsumerOptions, PublicationDataMode, START_DELAY_MAX};
use fanwire_redis::EngineRedisOptions;
use fanwire_tls::TlsOptions;

use super::{BLOCK, COUNT_FROM_1, DAY, DELAY, LIST, SECRET, SWITCH, TEXT, duration, integer};
use crate::key::{FromValue, Key, Kind, Row, Value, not_yet, rows};

/// Sections with the keys of `TLS`.
pub(crate) const TLS_PLACES: [&str; 5] = [
    "postgresql.tls",
    "redis_stream.tls",
    "redis_stream.sentinel_tls",
    "nats_jetstream.tls",
    "kafka.tls",
];

/// Section with the keys of `REDIS`.
pub(crate) const REDIS_PLACE: &str = "redis_stream";

/// Sections with the keys of `HEADERS` and `VALUES`.
pub(crate) const HEADER_PLACES: [&str; 2] =
    ["nats_jetstream.publication_data_mode", "kafka.publication_data_mode"];
pub(crate) const VALUE_PLACE: &str = "redis_stream.publication_data_mode";

/// Every key of a consumer, with the section before its name.
pub(crate) fn keys() -> impl Iterator<Item = (&'static str, &'static Key)> {
    fn of<T>(rows: &'static [Row<T>]) -> impl Iterator<Item = &'static Key> {
        rows.iter().map(|row| &row.key)
    }
    let tls = TLS_PLACES.into_iter().flat_map(|place| of(TLS).map(move |key| (place, key)));
    let headers =
        HEADER_PLACES.into_iter().flat_map(|place| of(HEADERS).map(move |key| (place, key)));
    let plain = of(CONSUMER).map(|key| ("", key));
    let redis = of(REDIS).map(|key| (REDIS_PLACE, key));
    let values = of(VALUES).map(|key| (VALUE_PLACE, key));
    let not_yet = CONSUMER_NOT_YET.iter().map(|key| ("", key));
    plain.chain(redis).chain(headers).chain(values).chain(tls).chain(not_yet)
}

rows! { CONSUMER: ConsumerOptions;
    "enabled", SWITCH, "false" => [enabled],
        "Runs the consumer; otherwise only its name and type are checked.";
    "type", KIND, "" => [kind = kind],
        "Queue to consume; its options are in the section with the same name.";
    "start_delay", duration(Duration::ZERO, START_DELAY_MAX), "0s" => [start_delay],
        "Fanwire only: how long it waits after a start until clients are back; after a planned stop with a snapshot, half of the clients end it.";
    "postgresql.dsn", SECRET, "" => [postgresql.dsn],
        "Database, as postgres://user:password@host:port/database; pool_max_conns limits connections, sslmode asks for TLS.";
    "postgresql.outbox_table_name", TEXT, "" => [postgresql.outbox_table_name],
        "Table with the columns id, method, payload and partition; part of SQL as it stands, so that it may be schema.table.";
    "postgresql.num_partitions", integer(1, 1024), "1" => [postgresql.num_partitions],
        "Number of partitions; rows of partition n and above are never read.";
    "postgresql.partition_select_limit", integer(1, 10_000), "100" => [postgresql.partition_select_limit],
        "Most rows of one transaction.";
    "postgresql.partition_poll_interval", INTERVAL, "300ms" => [postgresql.partition_poll_interval],
        "How long to wait before an empty partition is read again.";
    "postgresql.partition_notification_channel", TEXT, "" => [postgresql.partition_notification_channel],
        "Channel of LISTEN whose notifications are numbers of partitions to read at once; empty for polling only.";
    "postgresql.partition_notification_dsn", SECRET, "" => [postgresql.partition_notification_dsn],
        "Database for LISTEN where a pooler in transaction mode is at postgresql.dsn; empty means that one.";
    "postgresql.use_try_lock", SWITCH, "false" => [postgresql.use_try_lock],
        "Leaves a partition that another node works on until the next poll, instead of waiting for it.";
    "redis_stream.streams", LIST, "" => [redis_stream.streams],
        "Keys of the streams.";
    "redis_stream.consumer_group", TEXT, "" => [redis_stream.consumer_group],
        "Consumer group, made at the end of a stream that has none.";
    "redis_stream.visibility_timeout", DELAY, "30s" => [redis_stream.visibility_timeout],
        "How long a message that failed, or whose node is gone, is pending before it is tried again; 0s for ever.";
    "redis_stream.num_workers", integer(1, 64), "1" => [redis_stream.num_workers],
        "Messages of each stream that are executed at a time.";
    "redis_stream.payload_value", TEXT, "payload" => [redis_stream.payload_value],
        "Field of an entry with the payload.";
    "redis_stream.method_value", TEXT, "method" => [redis_stream.method_value],
        "Field of an entry with the method; without it the payload names one.";
    "nats_jetstream.url", TEXT, "nats://127.0.0.1:4222" => [nats_jetstream.url],
        "NATS server, or several with commas between them.";
    "nats_jetstream.credentials_file", TEXT, "" => [nats_jetstream.credentials_file],
        "File with a JWT and a seed to log in with; first choice.";
    "nats_jetstream.username", TEXT, "" => [nats_jetstream.username],
        "User to log in with; second choice.";
    "nats_jetstream.password", SECRET, "" => [nats_jetstream.password],
        "Password of that user.";
    "nats_jetstream.token", SECRET, "" => [nats_jetstream.token],
        "Token to log in with; third choice.";
    "nats_jetstream.stream_name", TEXT, "" => [nats_jetstream.stream_name],
        "Stream, which must exist.";
    "nats_jetstream.subjects", LIST, "" => [nats_jetstream.subjects],
        "Subjects of the stream to consume; empty for all.";
    "nats_jetstream.durable_consumer_name", TEXT, "" => [nats_jetstream.durable_consumer_name],
        "Durable consumer, which all nodes share.";
    "nats_jetstream.deliver_policy", Kind::Choice(&["new", "all"]), "new" => [nats_jetstream.deliver_all = delivers_all],
        "Where a consumer that is created begins: with the next message, or with the oldest of the stream.";
    "nats_jetstream.max_ack_pending", integer(1, 100_000), "100" => [nats_jetstream.max_ack_pending],
        "Most messages of all nodes that are delivered and not acknowledged.";
    "nats_jetstream.use_existing_consumer", SWITCH, "false" => [nats_jetstream.use_existing_consumer],
        "Uses a durable consumer that was made elsewhere; subjects, deliver_policy and max_ack_pending are its own.";
    "nats_jetstream.method_header", TEXT, "centrifugo-method" => [nats_jetstream.method_header],
        "Header with the method; without it the message names one.";
    "kafka.brokers", LIST, "" => [kafka.brokers],
        "Brokers to begin with, each as host:port.";
    "kafka.topics", LIST, "" => [kafka.topics],
        "Topics to consume.";
    "kafka.consumer_group", TEXT, "" => [kafka.consumer_group],
        "Consumer group, which all nodes share; a new one begins with the oldest records.";
    "kafka.max_poll_records", COUNT_FROM_1, "100" => [kafka.max_poll_records],
        "Most records of a partition that are read at a time.";
    "kafka.fetch_max_bytes", integer(0, 0x4000_0000), "0" => [kafka.fetch_max_bytes],
        "Most bytes of one fetch; 0 means 50 MiB.";
    "kafka.fetch_max_wait", duration(Duration::from_millis(1), Duration::from_secs(300)), "500ms" => [kafka.fetch_max_wait],
        "How long a broker may wait for records before it answers a fetch.";
    "kafka.fetch_read_uncommitted", SWITCH, "false" => [kafka.fetch_read_uncommitted],
        "Reads records of transactions that are not committed.";
    "kafka.partition_queue_max_size", TEXT, "1000" => [kafka.partition_queue_max_size = queue_size],
        "Records that wait for a partition before it is paused; 0 means 1000, -1 pauses it at each poll.";
    "kafka.dial_timeout", duration(Duration::from_millis(10), Duration::from_secs(60)), "3s" => [kafka.dial_timeout],
        "How long opening a connection may take; the start waits twice that for each broker.";
    "kafka.sasl_mechanism", Kind::Choice(&["", "plain", "scram-sha-256", "scram-sha-512", "aws-msk-iam"]), "" => [kafka.sasl_mechanism],
        "How to log in; aws-msk-iam is not supported yet and stops the start.";
    "kafka.sasl_user", TEXT, "" => [kafka.sasl_user],
        "User to log in with.";
    "kafka.sasl_password", SECRET, "" => [kafka.sasl_password],
        "Password of that user.";
    "kafka.instance_id", TEXT, "" => [kafka.instance_id],
        "Name of this node as a static member of the group; empty for none.";
    "kafka.method_header", TEXT, "centrifugo-method" => [kafka.method_header],
        "Header with the method; without it the record names one.";
}

rows! { REDIS: EngineRedisOptions<TlsOptions>;
    "address", LIST, "redis://127.0.0.1:6379" => [address],
        "The Redis, as in engine.redis.address; exactly one.";
    "cluster_address", LIST, "" => [cluster_address],
        "Instead of it: a Redis Cluster, as in engine.redis.cluster_address.";
    "sentinel_address", LIST, "" => [sentinel_address],
        "Instead of it: Sentinels, each as host:port.";
    "sentinel_master_name", TEXT, "" => [sentinel_master_name],
        "Name of the master at the Sentinels.";
    "sentinel_user", TEXT, "" => [sentinel_user],
        "User at the Sentinels; empty means the default one.";
    "sentinel_password", SECRET, "" => [sentinel_password],
        "Password at the Sentinels.";
    "sentinel_client_name", TEXT, "" => [sentinel_client_name],
        "Name of the connections in CLIENT LIST of the Sentinels.";
    "user", TEXT, "" => [user],
        "User at Redis; empty means as the address says.";
    "password", SECRET, "" => [password],
        "Password at Redis; empty means as the address says.";
    "db", integer(0, 65_535), "0" => [db],
        "Number of the Redis database; 0 means as the address says.";
    "client_name", TEXT, "" => [client_name],
        "Name of the connections in CLIENT LIST of Redis.";
    "connect_timeout", REDIS_TIME, "1s" => [connect_timeout],
        "How long opening a connection to Redis may take.";
    "io_timeout", REDIS_TIME, "4s" => [io_timeout],
        "How long Redis may owe a reply before its connection is given up.";
}

rows! { TLS: TlsOptions;
    "enabled", SWITCH, "false" => [enabled],
        "Speaks TLS, and obeys the keys below.";
    "server_ca_pem", TEXT, "" => [server_ca_pem],
        "Authorities that may have signed the server's certificate, as PEM, base64 of it, or a file; empty means those of the system.";
    "cert_pem", TEXT, "" => [cert_pem],
        "Certificate to show, as PEM, base64 of it, or a file.";
    "key_pem", SECRET, "" => [key_pem],
        "Private key of that certificate, as PEM, base64 of it, or a file.";
    "server_name", TEXT, "" => [server_name],
        "Name that the server's certificate must have; empty means that of the address.";
    "insecure_skip_verify", SWITCH, "false" => [insecure_skip_verify],
        "Development only: believes any certificate.";
}

rows! { HEADERS: PublicationDataMode;
    "enabled", SWITCH, "false" => [enabled],
        "Takes messages as data of publications, whose options are headers; an empty name below switches an option off.";
    "channels_header", TEXT, "centrifugo-channels" => [channels],
        "Header with the channels, with commas between them.";
    "idempotency_key_header", TEXT, "centrifugo-idempotency-key" => [idempotency_key],
        "Header with the idempotency key.";
    "delta_header", TEXT, "centrifugo-delta" => [delta],
        "Header that asks for deltas, true or false.";
    "version_header", TEXT, "centrifugo-version" => [version],
        "Header with the version, a whole number.";
    "version_epoch_header", TEXT, "centrifugo-version-epoch" => [version_epoch],
        "Header with the epoch of the version.";
    "tags_header_prefix", TEXT, "centrifugo-tag-" => [tags_prefix],
        "Prefix of headers that are tags.";
}

rows! { VALUES: PublicationDataMode;
    "enabled", SWITCH, "false" => [enabled],
        "Takes payloads as data of publications, whose options are fields of the entry; an empty name below switches an option off.";
    "channels_value", TEXT, "centrifugo-channels" => [channels],
        "Field with the channels, with commas between them.";
    "idempotency_key_value", TEXT, "centrifugo-idempotency-key" => [idempotency_key],
        "Field with the idempotency key.";
    "delta_value", TEXT, "centrifugo-delta" => [delta],
        "Field that asks for deltas, true or false.";
    "version_value", TEXT, "centrifugo-version" => [version],
        "Field with the version, a whole number.";
    "version_epoch_value", TEXT, "centrifugo-version-epoch" => [version_epoch],
        "Field with the epoch of the version.";
    "tags_value_prefix", TEXT, "centrifugo-tag-" => [tags_prefix],
        "Prefix of fields that are tags.";
}

not_yet! { CONSUMER_NOT_YET;
    "postgresql.tls.client_ca_pem", TEXT, "", Tuning, "Authorities of clients; PostgreSQL is a server.";
    "redis_stream.tls.client_ca_pem", TEXT, "", Tuning, "Authorities of clients; Redis is a server.";
    "redis_stream.sentinel_tls.client_ca_pem", TEXT, "", Tuning, "Authorities of clients; a Sentinel is a server.";
    "nats_jetstream.tls.client_ca_pem", TEXT, "", Tuning, "Authorities of clients; NATS is a server.";
    "kafka.tls.client_ca_pem", TEXT, "", Tuning, "Authorities of clients; a broker is a server.";
    "kafka.assume_role_arn", TEXT, "", Tuning, "Role of AWS for aws-msk-iam.";
    "google_pub_sub", BLOCK, "", Tuning, "Settings of Google Pub/Sub.";
    "aws_sqs", BLOCK, "", Tuning, "Settings of AWS SQS.";
    "azure_service_bus", BLOCK, "", Tuning, "Settings of Azure Service Bus.";
    "redis_stream.replica_client", BLOCK, "", Tuning, "Reads from replicas; a consumer writes what it reads.";
    "redis_stream.force_resp2", SWITCH, "false", Tuning, "Version of the Redis protocol.";
    "redis_stream.prefix", TEXT, "centrifugo", Tuning, "Beginning of names in Redis; streams have their whole names.";
}

const KIND: Kind = Kind::Choice(&[
    "",
    "postgresql",
    "redis_stream",
    "nats_jetstream",
    "kafka",
    "google_pub_sub",
    "aws_sqs",
    "azure_service_bus",
]);

const INTERVAL: Kind = duration(Duration::from_millis(1), DAY);
const REDIS_TIME: Kind = duration(Duration::from_millis(10), Duration::from_secs(60));

fn kind(value: Value) -> Option<ConsumerKind> {
    let name = String::from_value(value);
    ConsumerKind::NAMED.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}

fn delivers_all(value: Value) -> bool {
    String::from_value(value) == "all"
}

/// A text that is no number becomes the smallest one, which a rule finds.
fn queue_size(value: Value) -> i32 {
    String::from_value(value).parse().unwrap_or(i32::MIN)
}
