//! Kafka: records of topics, shared by the members of a consumer group.
//! In: options → out: a lane for each partition that the group gives to this node.
//! Uses librdkafka, whose rebalances are passed over a channel. Never: waits for Kafka on a thread of the runtime.
//! Changed here: settings of librdkafka, what an assignment starts. How records are read is in `message`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::options::KafkaOptions;
use bytes::Bytes;
use fanwire_tls::TlsOptions;
use futures_util::FutureExt as _;
use rdkafka::consumer::stream_consumer::StreamPartitionQueue;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext, Rebalance, StreamConsumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Headers as _, Message as _};
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

use crate::OpenError;
use crate::message::{QueueMessage, TRACEPARENT};
use crate::runner::{Lane, MessageBatch, QueueError, Runner};
use crate::state::LaneState;

/// A member of a consumer group.
pub(crate) struct GroupMember {
    consumer: Arc<StreamConsumer<Rebalances>>,
    changes: mpsc::UnboundedReceiver<Change>,
    options: Arc<KafkaOptions>,
}

type Partition = (String, i32);

/// A change of what the group gives to this node; there are as many as rebalances.
enum Change {
    Assigned(Vec<Partition>),
    Revoked(Vec<Partition>),
}

/// Receives rebalances on the thread that polls.
struct Rebalances(mpsc::UnboundedSender<Change>);

impl ClientContext for Rebalances {}

impl ConsumerContext for Rebalances {
    fn post_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        let change = match rebalance {
            Rebalance::Assign(list) => {
                // Records must not come before their partition has a queue of its own.
                let _ = consumer.pause(list);
                Change::Assigned(partitions(list))
            }
            Rebalance::Revoke(list) => Change::Revoked(partitions(list)),
            Rebalance::Error(_) => return,
        };
        let _ = self.0.send(change);
    }
}

fn partitions(list: &TopicPartitionList) -> Vec<Partition> {
    list.elements().iter().map(|one| (one.topic().to_owned(), one.partition())).collect()
}

/// Connects, and verifies that the topics exist.
///
/// # Errors
/// The key whose value is wrong, in words for an operator.
pub(crate) async fn open(options: &KafkaOptions) -> Result<GroupMember, OpenError> {
    let (sender, changes) = mpsc::unbounded_channel();
    let key = if options.tls.enabled { "tls" } else { "sasl_mechanism" };
    let connected: Result<StreamConsumer<Rebalances>, _> =
        settings(options)?.create_with_context(Rebalances(sender));
    let consumer = Arc::new(connected.map_err(|error| OpenError::new(key, error))?);
    let options = Arc::new(options.clone());
    let asked = Arc::clone(&consumer);
    let topics = options.topics.clone();
    let limit = options.dial_timeout * 2 * u32::try_from(options.brokers.len()).unwrap_or(1);
    let verified = spawn_blocking(move || verify(&asked, &topics, limit)).await;
    verified.map_err(|error| OpenError::new("brokers", error))??;
    let topics: Vec<&str> = options.topics.iter().map(String::as_str).collect();
    consumer.subscribe(&topics).map_err(|error| OpenError::new("topics", error))?;
    Ok(GroupMember { consumer, changes, options })
}

fn verify(
    consumer: &StreamConsumer<Rebalances>,
    topics: &[String],
    limit: Duration,
) -> Result<(), OpenError> {
    for topic in topics {
        let metadata = consumer
            .fetch_metadata(Some(topic), limit)
            .map_err(|error| OpenError::new("brokers", error))?;
        let error = metadata.topics().first().and_then(rdkafka::metadata::MetadataTopic::error);
        if let Some(error) = error {
            let why = RDKafkaErrorCode::from(error);
            return Err(OpenError::new("topics", format!("{topic:?}: {why}")));
        }
    }
    Ok(())
}

fn settings(options: &KafkaOptions) -> Result<ClientConfig, OpenError> {
    let queue = match options.partition_queue_max_size {
        0 => 1000,
        size => size.max(1), // -1: no more than the present poll
    };
    let isolation =
        if options.fetch_read_uncommitted { "read_uncommitted" } else { "read_committed" };
    let bytes = if options.fetch_max_bytes == 0 { 50 << 20 } else { options.fetch_max_bytes };
    let ms = |duration: Duration| duration.as_millis().max(1).to_string();
    let mut settings = ClientConfig::new();
    settings
        .set("bootstrap.servers", options.brokers.join(","))
        .set("group.id", &options.consumer_group)
        .set("client.id", "centrifugo")
        .set("auto.offset.reset", "earliest")
        .set("partition.assignment.strategy", "cooperative-sticky")
        // What is stored is committed every second, when a partition is revoked, and at the end.
        .set("enable.auto.offset.store", "false")
        .set("auto.commit.interval.ms", "1000")
        .set("isolation.level", isolation)
        .set("queued.min.messages", queue.to_string())
        .set("fetch.max.bytes", bytes.to_string())
        .set("fetch.wait.max.ms", ms(options.fetch_max_wait))
        .set("socket.connection.setup.timeout.ms", ms(options.dial_timeout.max(SETUP_MIN)));
    let has_sasl = !options.sasl_mechanism.is_empty();
    settings.set(
        "security.protocol",
        match (has_sasl, options.tls.enabled) {
            (true, true) => "sasl_ssl",
            (true, false) => "sasl_plaintext",
            (false, true) => "ssl",
            (false, false) => "plaintext",
        },
    );
    if has_sasl {
        settings.set("sasl.mechanism", options.sasl_mechanism.to_ascii_uppercase());
        settings.set("sasl.username", &options.sasl_user);
        settings.set("sasl.password", &*options.sasl_password);
    }
    if !options.instance_id.is_empty() {
        settings.set("group.instance.id", &options.instance_id);
    }
    if options.tls.enabled {
        tls(&options.tls, &mut settings)?;
    }
    Ok(settings)
}

/// librdkafka has TLS of its own, in builds with OpenSSL.
fn tls(options: &TlsOptions, settings: &mut ClientConfig) -> Result<(), OpenError> {
    let verify = if options.insecure_skip_verify { "false" } else { "true" };
    settings.set("enable.ssl.certificate.verification", verify);
    let pems = [
        ("ssl.ca", &*options.server_ca_pem),
        ("ssl.certificate", &*options.cert_pem),
        ("ssl.key", &*options.key_pem),
    ];
    for (name, pem) in pems.into_iter().filter(|(_, pem)| !pem.is_empty()) {
        match pem.contains("-----BEGIN") {
            true => settings.set(format!("{name}.pem"), pem),
            false if std::path::Path::new(pem).is_file() => {
                settings.set(format!("{name}.location"), pem)
            }
            false => {
                return Err(OpenError::new("tls", "expected PEM or the name of a file with it"));
            }
        };
    }
    if !options.server_name.is_empty() {
        return Err(OpenError::new("tls.server_name", "is not supported with Kafka; leave it out"));
    }
    Ok(())
}

impl GroupMember {
    /// Runs a lane for each partition that this node has, until the stop.
    pub(crate) async fn run(mut self, runner: Runner) -> Result<(), QueueError> {
        let group = runner.state.add_lane();
        let mut stops: HashMap<Partition, watch::Sender<bool>> = HashMap::new();
        let mut tasks = JoinSet::new();
        let ended = loop {
            tokio::select! {
                () = runner.stopped() => break Ok(()),
                Some(change) = self.changes.recv() => match change {
                    Change::Assigned(partitions) => {
                        for partition in partitions {
                            let (stop, stopped) = watch::channel(false);
                            let Some(lane) = self.lane(&partition, &group) else { continue };
                            tasks.spawn(Runner { stop: stopped, ..runner.clone() }.run(lane));
                            stops.insert(partition, stop);
                        }
                    }
                    Change::Revoked(partitions) => {
                        let revoked = partitions.iter().filter_map(|one| stops.remove(one));
                        revoked.for_each(|stop| _ = stop.send_replace(true));
                    }
                },
                Some(lane) = tasks.join_next() => match lane {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => break Err(error),
                    Err(error) => break Err(QueueError { why: error.to_string(), is_final: true }),
                },
                record = self.consumer.recv() => if let Err(error) = self.other(record) {
                    if error.is_final {
                        break Err(error);
                    }
                    runner.state.failed("Kafka reports an error", &error.why);
                    group.lost(error.why);
                },
            }
        };
        stops.values().for_each(|stop| _ = stop.send_replace(true));
        while tasks.join_next().await.is_some() {}
        // The last offsets are committed there.
        let _ = spawn_blocking(move || drop(self)).await;
        ended
    }

    /// A lane for a partition, which was paused until now.
    fn lane(&self, partition: &Partition, group: &Arc<LaneState>) -> Option<PartitionLane> {
        let (topic, number) = partition;
        let queue = self.consumer.split_partition_queue(topic, *number)?;
        let mut list = TopicPartitionList::new();
        list.add_partition(topic, *number);
        let _ = self.consumer.resume(&list);
        Some(PartitionLane {
            queue,
            consumer: Arc::clone(&self.consumer),
            options: Arc::clone(&self.options),
            partition: partition.clone(),
            pending: Vec::new(),
            lag: Duration::ZERO,
            group: Arc::clone(group),
        })
    }

    /// Handles events apart from the queues of partitions: errors, and a record that was too early, which is read again.
    fn other(&self, record: Result<BorrowedMessage<'_>, KafkaError>) -> Result<(), QueueError> {
        let result = record.and_then(|record| {
            let offset = Offset::Offset(record.offset());
            self.consumer.seek(record.topic(), record.partition(), offset, Duration::ZERO)
        });
        result.map_err(|error| QueueError {
            is_final: error.rdkafka_error_code() == Some(RDKafkaErrorCode::Fatal),
            why: error.to_string(),
        })
    }
}

/// A partition of a topic.
struct PartitionLane {
    queue: StreamPartitionQueue<Rebalances>,
    consumer: Arc<StreamConsumer<Rebalances>>,
    options: Arc<KafkaOptions>,
    partition: Partition,
    /// Records that were read and are not done, with their offsets. They are tried again in their order.
    pending: Vec<(i64, QueueMessage)>,
    /// Age of the first of them when it was read.
    lag: Duration,
    group: Arc<LaneState>,
}

impl Lane for PartitionLane {
    async fn receive(&mut self) -> Result<MessageBatch, QueueError> {
        if self.pending.is_empty() {
            let Ok(first) = timeout(IDLE, self.queue.recv()).await else {
                return Ok(MessageBatch::default());
            };
            let first = first.map_err(QueueError::new)?;
            let age = first.timestamp().to_millis().and_then(|ms| {
                let made = UNIX_EPOCH + Duration::from_millis(u64::try_from(ms).ok()?);
                SystemTime::now().duration_since(made).ok()
            });
            self.lag = age.unwrap_or_default();
            self.pending.push(message(&first, &self.options));
            self.group.read(Duration::ZERO, 0);
            while self.pending.len() < self.options.max_poll_records
                && let Some(Ok(record)) = self.queue.recv().now_or_never()
            {
                self.pending.push(message(&record, &self.options));
            }
        }
        let messages = self.pending.iter().map(|(_, message)| message.clone()).collect();
        Ok(MessageBatch { messages, lag: self.lag, waiting: 0 })
    }

    async fn settle(&mut self, done: usize) -> Result<(), QueueError> {
        if let Some((offset, _)) = self.pending.drain(..done).next_back() {
            let (topic, number) = &self.partition;
            // Of a partition that is another node's now nothing is committed.
            let _ = self.consumer.store_offset(topic, *number, offset);
        }
        Ok(())
    }
}

fn message(record: &BorrowedMessage<'_>, options: &KafkaOptions) -> (i64, QueueMessage) {
    let payload = record.payload().map(Bytes::copy_from_slice);
    let id = format!("{}/{}/{}", record.topic(), record.partition(), record.offset());
    let mut read = QueueMessage { id, payload, ..QueueMessage::default() };
    for header in record.headers().iter().flat_map(|headers| headers.iter()) {
        let value = String::from_utf8_lossy(header.value.unwrap_or_default()).into_owned();
        if header.key == options.method_header && !header.key.is_empty() {
            read.method = value;
        } else if options.publication_data_mode.enabled || header.key == TRACEPARENT {
            read.headers.push((header.key.to_owned(), value));
        }
    }
    (record.offset(), read)
}

/// The shortest that librdkafka accepts.
const SETUP_MIN: Duration = Duration::from_secs(1);
/// An empty partition counts as read after this time.
const IDLE: Duration = Duration::from_secs(5);
