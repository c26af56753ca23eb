//! The loop that every queue shares: messages of a lane are executed one after another, and settled batch by batch.
//! In: a lane → out: commands for the server API, acknowledgements for the queue, counts.
//! Uses the API and tokio's timer. Never: the protocol of a queue.
//! Changed here: the order of a batch, what follows a failure, how a lane stops.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crate::options::PublicationDataMode;
use fanwire_api::{Api, Command, consume};
use tokio::sync::{RwLock, RwLockReadGuard, watch};
use tokio::time::{sleep, timeout};

use crate::message::{QueueMessage, SkipCause};
use crate::outcome::{MessageOutcome, pause};
use crate::state::{ConsumerState, LaneState};

/// A sequence of messages, which are executed in its order: a partition of a table or a topic, a worker of a stream.
pub(crate) trait Lane: Send + 'static {
    /// Waits for messages. After an error the lane connects again with the next call.
    fn receive(&mut self) -> impl Future<Output = Result<MessageBatch, QueueError>> + Send;

    /// Acknowledges the first `done` messages of the last batch, and gives the others back.
    fn settle(&mut self, done: usize) -> impl Future<Output = Result<(), QueueError>> + Send;

    /// Leaves the queue at the stop, after the last batch was settled.
    fn leave(&mut self) -> impl Future<Output = Result<(), QueueError>> + Send {
        async { Ok(()) }
    }
}

/// Messages of a lane.
#[derive(Debug, Default)]
pub(crate) struct MessageBatch {
    pub(crate) messages: Vec<QueueMessage>,
    /// Age of the first one.
    pub(crate) lag: Duration,
    /// Messages behind these, as far as the queue says.
    pub(crate) waiting: u64,
}

/// A failure of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueError {
    pub(crate) why: String,
    /// Trying again is of no use.
    pub(crate) is_final: bool,
}

impl QueueError {
    pub(crate) fn new(why: impl ToString) -> Self {
        Self { why: why.to_string(), is_final: false }
    }
}

/// Executes the messages of the lanes of one consumer.
#[derive(Clone)]
pub(crate) struct Runner {
    pub(crate) api: Arc<Api>,
    pub(crate) state: Arc<ConsumerState>,
    /// For data of publications, which are not commands.
    pub(crate) mode: Option<PublicationDataMode>,
    pub(crate) stop: watch::Receiver<bool>,
    /// Read while a batch is in work.
    pub(crate) pause: Arc<RwLock<()>>,
}

impl Runner {
    /// Runs until the stop, or until an error after which trying again is of no use.
    pub(crate) async fn run(self, mut lane: impl Lane) -> Result<(), QueueError> {
        let state = self.state.add_lane();
        let mut failures = 0;
        while !self.is_stopped() {
            match self.round(&mut lane, &state).await {
                Ok(true) => failures = 0,
                Ok(false) => failures += 1,
                Err(error) if error.is_final => return Err(error),
                Err(error) => {
                    self.state.failed("the queue cannot be used", &error.why);
                    state.lost(error.why);
                    failures += 1;
                }
            }
            if failures > 0 {
                self.wait(pause(failures, rand::random())).await;
            }
        }
        if let Err(error) = lane.leave().await {
            let consumer = &*self.state.name;
            tracing::warn!(consumer, error = error.why, "the queue was not left");
        }
        Ok(())
    }

    /// Reads, executes and settles one batch. Returns whether all of it was done.
    async fn round(&self, lane: &mut impl Lane, state: &LaneState) -> Result<bool, QueueError> {
        let Some(batch) = self.receive(lane).await? else { return Ok(true) };
        state.read(batch.lag, batch.waiting);
        if batch.messages.is_empty() {
            return Ok(true);
        }
        let running = self.begin_batch().await;
        let done = if running.is_some() { self.execute(&batch.messages).await } else { 0 };
        lane.settle(done).await?;
        drop(running);
        self.state.processed(done);
        Ok(done == batch.messages.len() || self.is_stopped())
    }

    /// Waits until the consumers are not paused. `None` if they stop instead: the batch is given back.
    async fn begin_batch(&self) -> Option<RwLockReadGuard<'_, ()>> {
        if let Ok(running) = self.pause.try_read() {
            return Some(running);
        }
        let running = self.pause.read().await;
        (!self.is_stopped()).then_some(running)
    }

    /// `None` at the stop. A message that is on its way then is waited for: where it cannot be given back, it would be
    /// pending until the queue takes it from this node.
    async fn receive(&self, lane: &mut impl Lane) -> Result<Option<MessageBatch>, QueueError> {
        let mut receive = pin!(lane.receive());
        tokio::select! {
            batch = &mut receive => batch.map(Some),
            () = self.stopped() => match timeout(LAST_RECEIVE, receive).await {
                Ok(batch) => batch.map(Some),
                Err(_) => Ok(None),
            },
        }
    }

    /// Executes messages up to the first that is to be tried again, or the stop. Returns their number.
    async fn execute(&self, messages: &[QueueMessage]) -> usize {
        for (index, message) in messages.iter().enumerate() {
            if index > 0 && self.is_stopped() {
                return index;
            }
            match message.command(self.mode.as_ref()) {
                Err(cause) => self.state.skipped(cause, message, ""),
                Ok(command) => {
                    if !self.run_command(command, message).await {
                        return index;
                    }
                }
            }
        }
        messages.len()
    }

    /// Whether the message of a command is done.
    async fn run_command(&self, command: Command, message: &QueueMessage) -> bool {
        let result = consume(&self.api, command, message.traceparent()).await;
        match MessageOutcome::of(&result) {
            MessageOutcome::Done => true,
            MessageOutcome::Refused(error) => {
                let details = format!("{error}: {}", error.cause);
                self.state.skipped(SkipCause::Refused, message, &details);
                true
            }
            MessageOutcome::Retry => {
                let why = result.err().map_or("a channel of a broadcast", |error| error.cause);
                self.state.failed("a command failed", why);
                false
            }
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// Completes at the stop.
    pub(crate) async fn stopped(&self) {
        // Without a sender the consumers are gone.
        let _ = self.stop.clone().wait_for(|is_stopped| *is_stopped).await;
    }

    /// Waits, but not beyond the stop.
    async fn wait(&self, pause: Duration) {
        tokio::select! {
            () = sleep(pause) => {}
            () = self.stopped() => {}
        }
    }
}

/// How long a read may take at the stop.
const LAST_RECEIVE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests;
