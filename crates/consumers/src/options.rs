//! Options of consumers: the message queues whose messages are commands of the server API (docs/consumers.md).
//! In: nothing → out: plain data.
//! Uses values only. Never: connects.
//! Changed here: an option of consumers, which also is a row of the crate `config` (`keys/consumers.rs`).

use std::time::Duration;

use fanwire_auth::Secret;
use fanwire_redis::EngineRedisOptions;
use fanwire_tls::TlsOptions;

/// `consumers[]`, one consumer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsumerOptions {
    pub enabled: bool,
    /// `None` if the key is missing or wrong.
    pub kind: Option<ConsumerKind>,
    /// So long it waits for clients after a start; zero = not.
    pub start_delay: Duration,
    pub postgresql: OutboxOptions,
    pub redis_stream: RedisStreamOptions,
    pub nats_jetstream: JetStreamOptions,
    pub kafka: KafkaOptions,
}

/// The longest `start_delay`.
pub const START_DELAY_MAX: Duration = Duration::from_secs(600);

/// The queue of a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsumerKind {
    Postgresql,
    RedisStream,
    NatsJetStream,
    Kafka,
    GooglePubSub,
    AwsSqs,
    AzureServiceBus,
}

impl ConsumerKind {
    /// Kinds by their names in `type`, which are also the names of their sections.
    pub const NAMED: [(&'static str, Self); 7] = [
        ("postgresql", Self::Postgresql),
        ("redis_stream", Self::RedisStream),
        ("nats_jetstream", Self::NatsJetStream),
        ("kafka", Self::Kafka),
        ("google_pub_sub", Self::GooglePubSub),
        ("aws_sqs", Self::AwsSqs),
        ("azure_service_bus", Self::AzureServiceBus),
    ];

    /// The name in `type`.
    pub fn name(self) -> &'static str {
        Self::NAMED.iter().find(|(_, kind)| *kind == self).expect("every kind has a name").0
    }

    /// Whether Fanwire has a client of the queue, in some build.
    pub fn is_supported(self) -> bool {
        !matches!(self, Self::GooglePubSub | Self::AwsSqs | Self::AzureServiceBus)
    }
}

/// `postgresql.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboxOptions {
    /// `postgres://user:password@host:port/database`
    pub dsn: Secret,
    /// Part of SQL as it stands: may have a schema in front.
    pub outbox_table_name: String,
    /// Partitions are 0 to this - 1.
    pub num_partitions: u32,
    /// Rows of one transaction.
    pub partition_select_limit: u32,
    pub partition_poll_interval: Duration,
    /// Channel of NOTIFY, whose messages are numbers of partitions; "" = none.
    pub partition_notification_channel: String,
    /// Another server for LISTEN; "" = `dsn`.
    pub partition_notification_dsn: Secret,
    /// A partition that another node works on is left to it until the next poll.
    pub use_try_lock: bool,
    pub tls: TlsOptions,
}

/// `redis_stream.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedisStreamOptions {
    pub redis: EngineRedisOptions<TlsOptions>,
    /// Keys.
    pub streams: Vec<String>,
    pub consumer_group: String,
    /// Messages that are pending for longer are taken over; zero = never.
    pub visibility_timeout: Duration,
    /// For each stream.
    pub num_workers: usize,
    /// Field of an entry with the payload.
    pub payload_value: String,
    /// Field of an entry with the method.
    pub method_value: String,
    pub publication_data_mode: PublicationDataMode,
}

/// `nats_jetstream.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JetStreamOptions {
    pub url: String,
    /// Path of a file with a JWT and a seed; "" = none.
    pub credentials_file: String,
    pub username: String,
    pub password: Secret,
    pub token: Secret,
    pub stream_name: String,
    /// Filters; empty = the whole stream.
    pub subjects: Vec<String>,
    pub durable_consumer_name: String,
    /// The consumer begins with the oldest message of the stream, not with the next one.
    pub deliver_all: bool,
    pub max_ack_pending: u32,
    /// The consumer is neither created nor changed.
    pub use_existing_consumer: bool,
    pub method_header: String,
    pub publication_data_mode: PublicationDataMode,
    pub tls: TlsOptions,
}

/// `kafka.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KafkaOptions {
    pub brokers: Vec<String>,
    pub topics: Vec<String>,
    pub consumer_group: String,
    pub max_poll_records: usize,
    /// Bytes of one fetch; 0 = 50 MiB.
    pub fetch_max_bytes: u32,
    pub fetch_max_wait: Duration,
    /// Records of transactions that are not committed are read, too.
    pub fetch_read_uncommitted: bool,
    /// Records that wait for a partition before it is paused; 0 = 1000, -1 = pause at each poll.
    pub partition_queue_max_size: i32,
    pub dial_timeout: Duration,
    /// `plain`, `scram-sha-256`, `scram-sha-512`; "" = none.
    pub sasl_mechanism: String,
    pub sasl_user: String,
    pub sasl_password: Secret,
    /// Name of a static member of the group; "" = none.
    pub instance_id: String,
    pub method_header: String,
    pub publication_data_mode: PublicationDataMode,
    pub tls: TlsOptions,
}

/// `*.publication_data_mode`: messages are data of publications, their options are headers. An empty name of a header
/// switches the option off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublicationDataMode {
    pub enabled: bool,
    pub channels: String,
    pub idempotency_key: String,
    pub delta: String,
    pub version: String,
    pub version_epoch: String,
    pub tags_prefix: String,
}
