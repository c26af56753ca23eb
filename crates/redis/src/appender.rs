//! Appends entries to one stream of a Redis, for programs other than clients (docs/events.md).
//! In: a field and its value → out: accepted, or why not.
//! Uses one connection for commands. Never: the content of an entry; a Cluster.
//! Changed here: the command that appends.

use std::sync::Arc;

use bytes::Bytes;
use tokio::runtime::Handle;

use super::clock::RedisClock;
use super::command_connection::CommandConnection;
use super::dial::Dialer;
use super::error::Failure;
use super::health::Health;
use super::options::RedisOptions;
use super::ports::later;
use super::redirect::ClusterRedirects;
use super::wire::RedisCommand;

/// A stream that entries are appended to.
pub struct StreamAppender {
    connection: CommandConnection,
    health: Arc<Health>,
    stream: String,
    max_len: u64,
}

impl StreamAppender {
    /// Starts to connect to the first address, and reconnects for as long as this value lives. Old entries are
    /// trimmed when there are about `max_len`; 0 keeps all.
    pub fn start(options: &RedisOptions, stream: &str, max_len: u64, runtime: &Handle) -> Self {
        let address = options.addresses.first().cloned().unwrap_or_default();
        let health = Arc::new(Health::at([&address].into_iter()));
        let dialer = Dialer::new(&address, options, Arc::new(RedisClock::new())).for_commands();
        dialer.watch(runtime);
        let redirects = ClusterRedirects::default();
        let connection = CommandConnection::open(dialer, Arc::clone(&health), redirects, runtime);
        Self { connection, health, stream: stream.to_owned(), max_len }
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// A sentence that says why; the entry may be in the stream all the same.
    pub async fn append(&self, field: &str, value: Bytes) -> Result<(), String> {
        let mut command = RedisCommand::new(8, value.len() + self.stream.len());
        command.text("XADD").text(&self.stream);
        if self.max_len > 0 {
            command.text("MAXLEN").text("~").number(self.max_len);
        }
        command.text("*").text(field).text(value);
        let (done, answer) = later();
        self.connection.send(command.writes(), |reply: Result<_, Failure>| done(reply.map(drop)));
        answer.await.map_err(|_| match self.health.current_error() {
            Some(cause) => cause.to_string(),
            None => format!("Redis did not append to the stream {}", self.stream),
        })
    }
}
