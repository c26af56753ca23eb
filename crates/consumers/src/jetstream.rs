//! NATS JetStream: messages of a stream, by a durable pull consumer that all nodes share.
//! In: options → out: a lane that pulls, acknowledges, and gives messages back with a delay.
//! Uses async-nats, which reconnects by itself. Never: makes a stream.
//! Changed here: the settings of the durable consumer, what gives it up. How messages are read is in `message`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::options::JetStreamOptions;
use async_nats::jetstream::consumer::pull::{Config, Stream};
use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy};
use async_nats::jetstream::context::ConsumerInfoErrorKind;
use async_nats::jetstream::{self, AckKind};
use async_nats::{Client, ConnectOptions, Event};
use fanwire_tls::Tls;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::time::timeout;

use crate::OpenError;
use crate::message::{QueueMessage, TRACEPARENT};
use crate::outcome::pause;
use crate::runner::{Lane, MessageBatch, QueueError};

/// The messages that one node gets of a durable consumer.
pub(crate) struct JetStreamLane {
    client: Client,
    options: JetStreamOptions,
    /// `None` until the consumer is found or made again.
    messages: Option<Stream>,
    /// Where a consumer that is made again begins; `None` until it was there once.
    position: Option<StreamPosition>,
    batch: Vec<jetstream::Message>,
}

/// The messages of a stream that this node knows to be done.
#[derive(Clone, Debug)]
struct StreamPosition {
    /// When the stream was made: one that is made again under its name counts from 1.
    created: SystemTime,
    /// The number behind the last message that was acknowledged.
    next: u64,
    /// The first messages that were given back. Another node may have acknowledged them since: then they come once more.
    given_back: BTreeSet<u64>,
}

/// Connects, and finds or makes the durable consumer.
///
/// # Errors
/// The key whose value is wrong, in words for an operator.
pub(crate) async fn open(
    options: &JetStreamOptions,
    name: &str,
) -> Result<Vec<JetStreamLane>, OpenError> {
    let mut connect = ConnectOptions::new()
        .name(format!("fanwire {name}"))
        .connection_timeout(CONNECT_TIMEOUT)
        .max_reconnects(None)
        .event_callback({
            let consumer = Arc::<str>::from(name);
            move |event| {
                log(&consumer, &event);
                std::future::ready(())
            }
        });
    if !options.credentials_file.is_empty() {
        let file = connect.credentials_file(&options.credentials_file).await;
        connect = file.map_err(|error| OpenError::new("credentials_file", error))?;
    } else if !options.username.is_empty() {
        connect = connect.user_and_password(options.username.clone(), options.password.to_string());
    } else if !options.token.is_empty() {
        connect = connect.token(options.token.to_string());
    }
    let tls = Tls::new(&options.tls).map_err(|error| OpenError::new("tls", error))?;
    connect = connect.tls_client_config((**tls.config()).clone()).require_tls(options.tls.enabled);
    let servers: Vec<&str> = options.url.split(',').map(str::trim).collect();
    let client = connect.connect(servers).await.map_err(|error| OpenError::new("url", error))?;
    let mut lane = JetStreamLane {
        client,
        options: options.clone(),
        messages: None,
        position: None,
        batch: Vec::new(),
    };
    lane.messages = Some(lane.subscribe().await?);
    Ok(vec![lane])
}

/// Says when NATS is lost, and when it is back.
fn log(consumer: &str, event: &Event) {
    match event {
        Event::Connected => tracing::info!(consumer, "connected to NATS"),
        Event::Disconnected => {
            tracing::warn!(consumer, "the connection to NATS is lost, connecting again");
        }
        _ => {}
    }
}

impl JetStreamLane {
    /// Finds the durable consumer, or makes it.
    async fn subscribe(&mut self) -> Result<Stream, OpenError> {
        let options = &self.options;
        let jetstream = jetstream::new(self.client.clone());
        let stream = jetstream.get_stream(&options.stream_name).await.map_err(|error| {
            OpenError::new("stream_name", format!("{:?}: {error}", options.stream_name))
        })?;
        let durable = &options.durable_consumer_name;
        let wrong = |error: String| {
            OpenError::new("durable_consumer_name", format!("{durable:?}: {error}"))
        };
        let created = SystemTime::from(stream.cached_info().created);
        let consumer: Consumer<Config> = if options.use_existing_consumer {
            let existing = stream.get_consumer(durable).await;
            existing.map_err(|error| wrong(error.to_string()))?
        } else {
            let configured =
                if options.deliver_all { DeliverPolicy::All } else { DeliverPolicy::New };
            let last = stream.cached_info().state.last_sequence;
            let policy =
                match stream.consumer_info(durable).await.map(|it| it.config.deliver_policy) {
                    // It was made again before. NATS refuses to change the begin of a consumer.
                    Ok(begin @ DeliverPolicy::ByStartSequence { .. }) => begin,
                    Ok(_) => configured,
                    Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => {
                        self.position.as_ref().map_or(configured, |it| it.begin(created, last))
                    }
                    Err(error) => return Err(wrong(error.to_string())),
                };
            let made = stream.create_consumer(Config {
                durable_name: Some(durable.clone()),
                deliver_policy: policy,
                ack_policy: AckPolicy::Explicit,
                ack_wait: ACK_WAIT,
                max_ack_pending: i64::from(options.max_ack_pending),
                filter_subjects: options.subjects.clone(),
                ..Config::default()
            });
            made.await.map_err(|error| wrong(error.to_string()))?
        };
        let pulled =
            consumer.stream().max_messages_per_batch(self.batch_max()).heartbeat(HEARTBEAT);
        let messages = pulled.messages().await.map_err(|error| wrong(error.to_string()))?;
        let info = consumer.cached_info();
        // A new consumer knows what it passes over only as delivered.
        let done = if info.num_ack_pending == 0 { info.delivered } else { info.ack_floor };
        let next = done.stream_sequence + 1;
        self.position = Some(StreamPosition { created, next, given_back: BTreeSet::new() });
        Ok(messages)
    }

    /// Messages of a batch: half of those that may be delivered, so that other nodes get some.
    fn batch_max(&self) -> usize {
        (self.options.max_ack_pending as usize / 2).clamp(1, BATCH_MAX)
    }

    fn message(&self, message: &jetstream::Message) -> QueueMessage {
        let mut read =
            QueueMessage { payload: Some(message.payload.clone()), ..QueueMessage::default() };
        read.id = number(message).to_string();
        let all = message.headers.iter().flat_map(|headers| headers.iter());
        for (name, values) in all {
            let name = name.to_string();
            let value = values.first().map(ToString::to_string).unwrap_or_default();
            if name == self.options.method_header && !name.is_empty() {
                read.method = value;
            } else if self.options.publication_data_mode.enabled || name == TRACEPARENT {
                read.headers.push((name, value));
            }
        }
        read
    }
}

impl Lane for JetStreamLane {
    async fn receive(&mut self) -> Result<MessageBatch, QueueError> {
        if self.messages.is_none() {
            let subscribed = self.subscribe().await;
            let failed = |OpenError { key, reason }| QueueError::new(format!("{key}: {reason}"));
            self.messages = Some(subscribed.map_err(failed)?);
        }
        let batch_max = self.batch_max();
        let Some(stream) = &mut self.messages else { return Ok(MessageBatch::default()) };
        let Ok(first) = timeout(IDLE, stream.next()).await else {
            return Ok(MessageBatch::default());
        };
        let mut ended = None;
        let mut next = Some(first);
        while let Some(received) = next {
            match received {
                Some(Ok(message)) => self.batch.push(message),
                Some(Err(error)) => ended = Some(error.to_string()),
                None => ended = Some("the consumer has ended".to_owned()),
            }
            let is_over = ended.is_some() || self.batch.len() >= batch_max;
            next = if is_over { None } else { stream.next().now_or_never() };
        }
        if let Some(why) = ended {
            // What was read before that is executed first.
            self.messages = None;
            if self.batch.is_empty() {
                return Err(QueueError::new(why));
            }
        }
        let info = self.batch.first().and_then(|message| message.info().ok());
        let age = |published| SystemTime::now().duration_since(published).unwrap_or_default();
        let lag = info.as_ref().map(|info| age(SystemTime::from(info.published)));
        let messages = self.batch.iter().map(|message| self.message(message)).collect();
        let waiting = info.map_or(0, |info| info.pending);
        Ok(MessageBatch { messages, lag: lag.unwrap_or_default(), waiting })
    }

    async fn settle(&mut self, done: usize) -> Result<(), QueueError> {
        for (index, message) in std::mem::take(&mut self.batch).iter().enumerate() {
            if let Some(position) = &mut self.position {
                position.settle(number(message), index < done);
            }
            let settled = if index < done {
                message.ack().await
            } else {
                let delivered = message.info().map_or(1, |info| info.delivered);
                let doublings = u32::try_from(delivered).unwrap_or(1).clamp(1, DOUBLINGS_MAX);
                message.ack_with(AckKind::Nak(Some(pause(doublings, rand::random())))).await
            };
            settled.map_err(QueueError::new)?;
        }
        // Otherwise the last ones could be lost with the process.
        self.client.flush().await.map_err(QueueError::new)
    }
}

impl StreamPosition {
    /// A message is acknowledged, or given back.
    fn settle(&mut self, number: u64, is_done: bool) {
        if is_done {
            self.next = self.next.max(number + 1);
            self.given_back.remove(&number);
        } else {
            self.given_back.insert(number);
            if self.given_back.len() > GIVEN_BACK_MAX {
                self.given_back.pop_last();
            }
        }
    }

    /// Where a consumer begins in the stream that was made then, and has numbers up to `last`.
    fn begin(&self, created: SystemTime, last: u64) -> DeliverPolicy {
        let next = self.given_back.first().map_or(self.next, |first| self.next.min(*first));
        if created == self.created && next <= last + 1 {
            DeliverPolicy::ByStartSequence { start_sequence: next }
        } else {
            // Nothing of another stream was delivered.
            DeliverPolicy::All
        }
    }
}

/// The number of a message in its stream.
fn number(message: &jetstream::Message) -> u64 {
    message.info().map_or(0, |info| info.stream_sequence)
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const ACK_WAIT: Duration = Duration::from_secs(30);
const HEARTBEAT: Duration = Duration::from_secs(5);
/// An empty stream counts as read after this time.
const IDLE: Duration = Duration::from_secs(5);
const BATCH_MAX: usize = 50;
const DOUBLINGS_MAX: u32 = 10;
/// As the first one is the begin of a consumer that is made again, the last ones are not needed.
const GIVEN_BACK_MAX: usize = 1000;

#[cfg(test)]
mod tests;
