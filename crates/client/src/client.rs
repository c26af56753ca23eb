//! The handles of an application: a client and its subscriptions.
//! Calls → instructions to the task of the client; results of calls and events come back.
//! Uses channels of tokio; decides nothing.
//! Changed here: a call. What it does is decided in `core`.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use fanwire_protocol::{
    Command, HistoryRequest, HistoryResult, PresenceRequest, PresenceResult, PresenceStatsRequest,
    PresenceStatsResult, PublishRequest, Reply, RpcRequest, SendRequest, StreamPosition, is_json,
};
use futures_util::Stream;
use tokio::sync::{mpsc, oneshot, watch};

use crate::address::WebSocketUrl;
use crate::driver::{Driver, Instruction};
use crate::{
    ClientConfig, ClientError, ClientEvent, ClientState, SubscriptionConfig, SubscriptionEvent,
    SubscriptionState,
};

/// A client: one connection, with its subscriptions. Clones are handles of the same one. It ends when the last handle is
/// dropped, those of its subscriptions included.
#[derive(Clone)]
pub struct Client {
    instructions: mpsc::UnboundedSender<Instruction>,
    state: watch::Receiver<ClientState>,
    config: Arc<ClientConfig>,
    /// Channels with a subscription.
    channels: Arc<Mutex<BTreeSet<String>>>,
}

impl Client {
    /// Makes a client that is disconnected, and its task in the current runtime of tokio.
    ///
    /// # Errors
    /// The address is none, or the data of the configuration is not JSON.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub fn new(url: &str, config: ClientConfig) -> Result<Self, ClientError> {
        let url = WebSocketUrl::parse(url)?;
        check_data(&config, &config.data)?;
        let (instructions, received) = mpsc::unbounded_channel();
        let (state, observed) = watch::channel(ClientState::Disconnected);
        tokio::spawn(Driver::new(url, config.clone(), received, state).run());
        let channels = Arc::default();
        Ok(Self { instructions, state: observed, config: Arc::new(config), channels })
    }

    /// Connects, and connects again whenever the connection is lost, until the server refuses or
    /// [`disconnect`](Self::disconnect).
    pub fn connect(&self) {
        self.instruct(Instruction::Connect);
    }

    /// Disconnects. Subscriptions stay, and subscribe again after the next [`connect`](Self::connect).
    pub fn disconnect(&self) {
        self.instruct(Instruction::Disconnect);
    }

    /// Disconnects, and returns when the last bytes are sent. All handles are useless then.
    pub async fn close(self) {
        let (done, finished) = oneshot::channel();
        self.instruct(Instruction::Close { done });
        let _ = finished.await;
    }

    pub fn state(&self) -> ClientState {
        *self.state.borrow()
    }

    /// The events from now on. A client has one stream of events: an earlier one ends.
    pub fn events(&self) -> EventStream<ClientEvent> {
        let (events, stream) = mpsc::channel(self.config.event_queue.max(1));
        self.instruct(Instruction::Events(events));
        EventStream(stream)
    }

    /// Makes a subscription of a channel, which is unsubscribed at first.
    ///
    /// # Errors
    /// The client has one of this channel already, or its data is not JSON.
    pub fn new_subscription(
        &self,
        channel: &str,
        config: SubscriptionConfig,
    ) -> Result<Subscription, ClientError> {
        check_data(&self.config, &config.data)?;
        let channel = channel.to_owned();
        if !self.channels().insert(channel.clone()) {
            return Err(ClientError::DuplicateSubscription { channel });
        }
        let (state, observed) = watch::channel(SubscriptionState::Unsubscribed);
        self.instruct(Instruction::AddSubscription {
            channel: channel.clone(),
            config: Box::new(config),
            state,
        });
        Ok(Subscription { client: self.clone(), channel, state: observed })
    }

    /// Publishes into a channel; in JSON, `data` is a JSON text.
    ///
    /// # Errors
    /// As all calls: the server's error, no reply in time, no connection.
    pub async fn publish(&self, channel: &str, data: impl Into<Bytes>) -> Result<(), ClientError> {
        let data = data.into();
        let publish = PublishRequest { channel: channel.to_owned(), data, ..Default::default() };
        self.call(Command { publish: Some(publish), ..Command::default() }).await.map(|_| ())
    }

    /// Reads the history of a channel.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    pub async fn history(
        &self,
        channel: &str,
        options: HistoryOptions,
    ) -> Result<HistoryResult, ClientError> {
        let HistoryOptions { limit, since, reverse } = options;
        let history = HistoryRequest { channel: channel.to_owned(), limit, since, reverse };
        let reply = self.call(Command { history: Some(history), ..Command::default() }).await?;
        Ok(reply.history.unwrap_or_default())
    }

    /// Reads who is in a channel, by client id.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    pub async fn presence(&self, channel: &str) -> Result<PresenceResult, ClientError> {
        let presence = Some(PresenceRequest { channel: channel.to_owned() });
        let reply = self.call(Command { presence, ..Command::default() }).await?;
        Ok(reply.presence.unwrap_or_default())
    }

    /// Reads how many clients and users are in a channel.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    pub async fn presence_stats(&self, channel: &str) -> Result<PresenceStatsResult, ClientError> {
        let presence_stats = Some(PresenceStatsRequest { channel: channel.to_owned() });
        let reply = self.call(Command { presence_stats, ..Command::default() }).await?;
        Ok(reply.presence_stats.unwrap_or_default())
    }

    /// Calls a method of a backend, and returns its data.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    pub async fn rpc(&self, method: &str, data: impl Into<Bytes>) -> Result<Bytes, ClientError> {
        let rpc = Some(RpcRequest { data: data.into(), method: method.to_owned() });
        let reply = self.call(Command { rpc, ..Command::default() }).await?;
        Ok(reply.rpc.unwrap_or_default().data)
    }

    /// Sends a message that has no reply.
    ///
    /// # Errors
    /// The data is not JSON, or there is no connection.
    pub async fn send(&self, data: impl Into<Bytes>) -> Result<(), ClientError> {
        let send = Some(SendRequest { data: data.into() });
        self.call(Command { send, ..Command::default() }).await.map(|_| ())
    }

    /// Keeps commands back until [`stop_batching`](Self::stop_batching), so that they go in one message. Without it, the calls
    /// that are made before the task of the client runs share one.
    pub fn start_batching(&self) {
        self.instruct(Instruction::Batching(true));
    }

    /// Sends what was kept back.
    pub fn stop_batching(&self) {
        self.instruct(Instruction::Batching(false));
    }

    async fn call(&self, command: Command) -> Result<Box<Reply>, ClientError> {
        let command = Box::new(command);
        let (done, finished) = oneshot::channel();
        self.instruct(Instruction::Call { command, done });
        finished.await.unwrap_or(Err(ClientError::Disconnected))
    }

    /// The task is gone only after a `close`.
    fn instruct(&self, instruction: Instruction) {
        let _ = self.instructions.send(instruction);
    }

    fn channels(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A subscription of one channel.
#[derive(Clone)]
pub struct Subscription {
    client: Client,
    channel: String,
    state: watch::Receiver<SubscriptionState>,
}

impl Subscription {
    /// Subscribes as soon as the client is connected, and again whenever the subscription is lost, until the server refuses or
    /// [`unsubscribe`](Self::unsubscribe).
    pub fn subscribe(&self) {
        self.client.instruct(Instruction::Subscribe { channel: self.channel.clone() });
    }

    /// Unsubscribes. The position stays, so the next [`subscribe`](Self::subscribe) recovers.
    pub fn unsubscribe(&self) {
        self.client.instruct(Instruction::Unsubscribe { channel: self.channel.clone() });
    }

    /// Unsubscribes and removes the subscription from the client, which can then make another one of this channel.
    pub fn remove(self) {
        self.client.instruct(Instruction::RemoveSubscription { channel: self.channel.clone() });
        self.client.channels().remove(&self.channel);
    }

    pub fn state(&self) -> SubscriptionState {
        *self.state.borrow()
    }

    pub fn channel(&self) -> &str {
        &self.channel
    }

    /// The events from now on. A subscription has one stream of events: an earlier one ends.
    pub fn events(&self) -> EventStream<SubscriptionEvent> {
        let (events, stream) = mpsc::channel(self.client.config.event_queue.max(1));
        let channel = self.channel.clone();
        self.client.instruct(Instruction::SubscriptionEvents { channel, events });
        EventStream(stream)
    }
}

/// The part of a history to read. The default reads the position alone.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct HistoryOptions {
    /// Publications to return at most; below 0: as many as the server allows.
    pub limit: i32,
    /// Read from the publication after this position; in reverse, from the one before.
    pub since: Option<StreamPosition>,
    /// The newest one first.
    pub reverse: bool,
}

impl HistoryOptions {
    /// Sets `limit`.
    #[must_use]
    pub fn limit(self, limit: i32) -> Self {
        Self { limit, ..self }
    }

    /// Sets `since`.
    #[must_use]
    pub fn since(self, since: StreamPosition) -> Self {
        Self { since: Some(since), ..self }
    }

    /// Sets `reverse`.
    #[must_use]
    pub fn reverse(self, reverse: bool) -> Self {
        Self { reverse, ..self }
    }
}

/// A stream of events, also as a [`Stream`]. It must be read: see
/// [`event_queue`](crate::ClientConfig::event_queue).
#[derive(Debug)]
pub struct EventStream<E>(mpsc::Receiver<E>);

impl<E> EventStream<E> {
    /// The next event; `None` after the end of the client. A call that is dropped loses no event.
    pub async fn next(&mut self) -> Option<E> {
        self.0.recv().await
    }
}

impl<E> Stream for EventStream<E> {
    type Item = E;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<E>> {
        self.0.poll_recv(context)
    }
}

/// Fails for data that a JSON connection cannot send.
fn check_data(config: &ClientConfig, data: &Bytes) -> Result<(), ClientError> {
    let is_right = config.encoding.is_binary() || data.is_empty() || is_json(data);
    if is_right { Ok(()) } else { Err(ClientError::NotJson) }
}
