//! Redis Streams: entries of a stream, shared by the consumers of a group.
//! In: options → out: lanes that read entries, take over those of lost nodes, and acknowledge.
//! Uses connections of `redis`: one that blocks, one for the rest. Never: deletes or trims entries.
//! Changed here: the commands. How entries become messages is in `message`.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::options::RedisStreamOptions;
use bytes::Bytes;
use fanwire_redis::{OwnConnection, OwnDialer, RedisError, RedisTls};
use fanwire_tls::Tls;
use fanwire_tls::TlsOptions;
use parking_lot::Mutex;
use redis::Value;

use crate::OpenError;
use crate::message::{QueueMessage, TRACEPARENT};
use crate::runner::{Lane, MessageBatch, QueueError};

/// A worker of a stream.
pub(crate) struct StreamLane {
    dialer: OwnDialer,
    options: Arc<RedisStreamOptions>,
    stream: String,
    /// The name of this node in the group.
    node: String,
    /// The last entry that the group delivered, as far as the workers of this node know; empty before the first look.
    position: Arc<Mutex<Bytes>>,
    /// The first worker of a stream takes over messages of others.
    takes_over: bool,
    took_over_at: Option<Instant>,
    connections: Option<Connections>,
    /// Messages that were read and are not done, with their ids. They are tried again in their order.
    pending: Vec<(Bytes, QueueMessage)>,
    /// Messages that are done and not acknowledged.
    owed: Vec<Bytes>,
    waiting: u64,
}

struct Connections {
    /// Blocks.
    reader: OwnConnection,
    writer: OwnConnection,
}

/// Connects, and makes the group of each stream.
///
/// # Errors
/// The key whose value is wrong, in words for an operator.
pub(crate) async fn open(
    options: &RedisStreamOptions,
    node: &str,
) -> Result<Vec<StreamLane>, OpenError> {
    let mut redis = options
        .redis
        .options(|tls| tls.enabled)
        .map_err(|error| OpenError::new("address", named(&error)))?;
    let tls = |options: &TlsOptions, key| {
        let tls = Tls::new(options).map_err(|error| OpenError::new(key, error))?;
        let config = tls.config().clone();
        let server_name = tls.server_name().to_owned();
        Ok(Some(RedisTls { config, server_name }))
    };
    redis.tls = tls(&options.redis.tls, "tls")?;
    redis.sentinel_tls = tls(&options.redis.sentinel_tls, "sentinel_tls")?;
    let dialer = OwnDialer::new(redis);
    let options = Arc::new(options.clone());
    let mut lanes = Vec::new();
    for stream in &options.streams {
        let position: Arc<Mutex<Bytes>> = Arc::default();
        for worker in 0..options.num_workers {
            let mut lane = StreamLane {
                dialer: dialer.clone(),
                options: Arc::clone(&options),
                stream: stream.clone(),
                node: node.to_owned(),
                position: Arc::clone(&position),
                takes_over: worker == 0,
                took_over_at: None,
                connections: None,
                pending: Vec::new(),
                owed: Vec::new(),
                waiting: 0,
            };
            let connected = lane.connect().await;
            connected.map_err(|error| {
                let is_of_stream = error.to_string().contains("WRONGTYPE");
                let key = if is_of_stream { "streams" } else { "address" };
                OpenError::new(key, format!("stream {stream:?}: {}", named(&error)))
            })?;
            lanes.push(lane);
        }
    }
    Ok(lanes)
}

/// The words of an error, which name keys of the engine, with those of a consumer.
fn named(error: &impl ToString) -> String {
    error.to_string().replace("engine.redis.", "redis_stream.")
}

impl Lane for StreamLane {
    async fn receive(&mut self) -> Result<MessageBatch, QueueError> {
        let received = self.read().await;
        // Whatever failed, the next call begins with new connections.
        received.map_err(|error| {
            self.connections = None;
            QueueError::new(named(&error))
        })
    }

    async fn settle(&mut self, done: usize) -> Result<(), QueueError> {
        self.owed.extend(self.pending.drain(..done).map(|(id, _)| id));
        let acknowledged = self.acknowledge().await;
        acknowledged.map_err(|error| {
            self.connections = None;
            QueueError::new(named(&error))
        })
    }

    async fn leave(&mut self) -> Result<(), QueueError> {
        // The reader may still wait for entries, and the writer for a reply whose reader was dropped.
        self.connections = None;
        let left = async {
            self.connect().await?;
            self.look(self.node.clone().as_bytes()).await
        };
        left.await.map_err(|error| QueueError::new(named(&error)))
    }
}

impl StreamLane {
    async fn connect(&mut self) -> Result<(), RedisError> {
        let stream = self.stream.as_bytes();
        let reader = self.dialer.connect(stream).await?;
        let writer = self.dialer.connect(stream).await?;
        self.connections = Some(Connections { reader, writer });
        self.look(b"").await
    }

    /// Makes the group if it is missing, removes members, and asks what is pending and where the group is. `leaving` is the name
    /// of a member that goes, or empty.
    async fn look(&mut self, leaving: &[u8]) -> Result<(), RedisError> {
        let Some(Connections { writer, .. }) = &mut self.connections else { return Ok(()) };
        let group = self.options.consumer_group.as_bytes();
        let position = self.position.lock().clone();
        let look: [&[u8]; 7] =
            [b"EVAL", LOOK.as_bytes(), b"1", self.stream.as_bytes(), group, &position, leaving];
        let mut reply = list(writer.call(&look, Duration::ZERO).await?).into_iter();
        if let Some(Value::Int(pending)) = reply.next() {
            self.waiting = u64::try_from(pending).unwrap_or_default();
        }
        if let Some(delivered) = reply.next().and_then(bytes) {
            *self.position.lock() = delivered;
        }
        Ok(())
    }

    async fn read(&mut self) -> Result<MessageBatch, RedisError> {
        if self.connections.is_none() {
            self.connect().await?;
        }
        self.acknowledge().await?;
        if self.pending.is_empty() {
            self.take_over().await?;
        } else {
            self.keep().await?;
        }
        if self.pending.is_empty() {
            let Some(Connections { reader, .. }) = &mut self.connections else {
                return Ok(MessageBatch::default());
            };
            let group = self.options.consumer_group.as_bytes();
            let stream = self.stream.as_bytes();
            let node = self.node.as_bytes();
            let block = BLOCK.as_millis().to_string();
            let read: [&[u8]; 11] = [
                b"XREADGROUP",
                b"GROUP",
                group,
                node,
                b"COUNT",
                COUNT,
                b"BLOCK",
                block.as_bytes(),
                b"STREAMS",
                stream,
                b">",
            ];
            let reply = reader.call(&read, BLOCK).await?;
            self.pending = entries(of_first_stream(reply), &self.options);
            if let Some((last, _)) = self.pending.last() {
                *self.position.lock() = last.clone();
            }
        }
        let lag = self.pending.first().map_or(Duration::ZERO, |(id, _)| age(id));
        let messages = self.pending.iter().map(|(_, message)| message.clone()).collect();
        Ok(MessageBatch { messages, lag, waiting: self.waiting })
    }

    /// Sends what is owed. A message whose acknowledgement is lost is not executed again by this node.
    async fn acknowledge(&mut self) -> Result<(), RedisError> {
        let Some(Connections { writer, .. }) = &mut self.connections else { return Ok(()) };
        if self.owed.is_empty() {
            return Ok(());
        }
        let group = self.options.consumer_group.as_bytes();
        let mut acknowledge: Vec<&[u8]> = vec![b"XACK", self.stream.as_bytes(), group];
        acknowledge.extend(self.owed.iter().map(|id| &**id));
        writer.call(&acknowledge, Duration::ZERO).await?;
        self.owed.clear();
        Ok(())
    }

    /// Tells the group that this node still works on its messages, so that no other one takes them over.
    async fn keep(&mut self) -> Result<(), RedisError> {
        let Some(Connections { writer, .. }) = &mut self.connections else { return Ok(()) };
        let group = self.options.consumer_group.as_bytes();
        let mut claim: Vec<&[u8]> =
            vec![b"XCLAIM", self.stream.as_bytes(), group, self.node.as_bytes(), b"0"];
        claim.extend(self.pending.iter().map(|(id, _)| &**id));
        claim.push(b"JUSTID");
        writer.call(&claim, Duration::ZERO).await.map(drop)
    }

    /// From time to time: looks at the group, and takes over messages that are pending for too long.
    async fn take_over(&mut self) -> Result<(), RedisError> {
        let is_recent = |at: Instant| at.elapsed() < TAKE_OVER_INTERVAL;
        if !self.takes_over || self.took_over_at.is_some_and(is_recent) {
            return Ok(());
        }
        self.look(b"").await?;
        let Some(Connections { writer, .. }) = &mut self.connections else { return Ok(()) };
        let stream = self.stream.as_bytes();
        let group = self.options.consumer_group.as_bytes();
        let timeout = self.options.visibility_timeout.as_millis().to_string();
        if !self.options.visibility_timeout.is_zero() {
            let node = self.node.as_bytes();
            let claim: [&[u8]; 8] =
                [b"XAUTOCLAIM", stream, group, node, timeout.as_bytes(), b"0", b"COUNT", COUNT];
            let reply = writer.call(&claim, Duration::ZERO).await?;
            let claimed = list(reply).into_iter().nth(1).unwrap_or(Value::Nil);
            self.pending = entries(claimed, &self.options);
        }
        // There may be more.
        self.took_over_at = self.pending.is_empty().then(Instant::now);
        Ok(())
    }
}

/// The entries of the only stream in a reply of `XREADGROUP`; RESP2 has lists in place of maps.
fn of_first_stream(reply: Value) -> Value {
    match reply {
        Value::Map(mut streams) if !streams.is_empty() => streams.swap_remove(0).1,
        other => {
            list(other).into_iter().next().and_then(|one| list(one).pop()).unwrap_or(Value::Nil)
        }
    }
}

/// The ids and messages of entries. One that was deleted has no fields, and is acknowledged as without payload.
fn entries(reply: Value, options: &RedisStreamOptions) -> Vec<(Bytes, QueueMessage)> {
    let entry = |entry: Value| {
        let mut parts = list(entry).into_iter();
        let id = bytes(parts.next()?)?;
        let read = message(parts.next().unwrap_or(Value::Nil), options);
        let name = String::from_utf8_lossy(&id).into_owned();
        Some((id, QueueMessage { id: name, ..read }))
    };
    list(reply).into_iter().filter_map(entry).collect()
}

fn message(fields: Value, options: &RedisStreamOptions) -> QueueMessage {
    let mut message = QueueMessage::default();
    let mut fields = list(fields).into_iter();
    while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
        let (Some(name), Some(value)) = (bytes(name), bytes(value)) else { continue };
        let text = || String::from_utf8_lossy(&value).into_owned();
        if *name == *options.payload_value.as_bytes() {
            message.payload = Some(value);
        } else if *name == *options.method_value.as_bytes() {
            message.method = text();
        } else if options.publication_data_mode.enabled || *name == *TRACEPARENT.as_bytes() {
            message.headers.push((String::from_utf8_lossy(&name).into_owned(), text()));
        }
    }
    message
}

/// The time since the id of an entry was made.
fn age(id: &[u8]) -> Duration {
    let made = str::from_utf8(id).ok().and_then(|id| id.split_once('-')?.0.parse().ok());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    made.map_or(Duration::ZERO, |ms| now.saturating_sub(Duration::from_millis(ms)))
}

fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(parts) => parts,
        _ => Vec::new(),
    }
}

fn bytes(value: Value) -> Option<Bytes> {
    match value {
        Value::BulkString(bytes) => Some(bytes.into()),
        Value::SimpleString(text) => Some(text.into()),
        _ => None,
    }
}

const BLOCK: Duration = Duration::from_secs(5);
const TAKE_OVER_INTERVAL: Duration = Duration::from_secs(5);
/// Entries of one read: a few, because a node that is lost keeps them for the visibility timeout.
const COUNT: &[u8] = b"32";

/// A group that was never seen begins at the end of the stream. One that was lost begins behind the last entry that it delivered,
/// or with the first entry of a stream without that one, which Redis has lost. Members that have not read for 15 s and owe
/// nothing are nodes that are gone.
const LOOK: &str = "
    local stream, group, position, leaving = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
    local begin = '$'
    if position ~= '' then
        begin = #redis.call('XRANGE', stream, position, position) > 0 and position or '0'
    end
    local made = redis.pcall('XGROUP', 'CREATE', stream, group, begin, 'MKSTREAM')
    if made.err and not string.find(made.err, 'BUSYGROUP') then
        return made
    end
    for _, member in ipairs(redis.call('XINFO', 'CONSUMERS', stream, group)) do
        local name, pending, idle_ms = member[2], member[4], member[6]
        if pending == 0 and (name == leaving or idle_ms > 15000) then
            redis.call('XGROUP', 'DELCONSUMER', stream, group, name)
        end
    end
    for _, found in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
        if found[2] == group then
            return {found[6], found[8]}
        end
    end";

#[cfg(test)]
mod tests;
