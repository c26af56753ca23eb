//! The task of one client: executes the orders of the core, and tells it what happens.
//! Instructions of handles, bytes of the socket, tokens and time → the core → frames, events and results of calls.
//! Uses tokio; decides nothing about the protocol.
//! Changed here: how orders are executed. What is ordered is decided in `core`.

use std::collections::{HashMap, VecDeque};
use std::future::{Future, pending};
use std::pin::Pin;
use std::time::Duration;

use fanwire_protocol::{Command, Reply};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::address::WebSocketUrl;
use crate::codec::{MessageCodec, WireEvent};
use crate::config::GetToken;
use crate::core::{ClientCore, Output};
use crate::transport::{self, OpenTransport, Socket};
use crate::{
    ClientConfig, ClientError, ClientEvent, ClientState, GetTokenError, SubscriptionConfig,
    SubscriptionEvent, SubscriptionState,
};

/// A call of a handle.
pub(crate) enum Instruction {
    Connect,
    Disconnect,
    Call {
        command: Box<Command>,
        done: oneshot::Sender<Result<Box<Reply>, ClientError>>,
    },
    Batching(bool),
    Events(mpsc::Sender<ClientEvent>),
    AddSubscription {
        channel: String,
        config: Box<SubscriptionConfig>,
        state: watch::Sender<SubscriptionState>,
    },
    RemoveSubscription {
        channel: String,
    },
    Subscribe {
        channel: String,
    },
    Unsubscribe {
        channel: String,
    },
    SubscriptionEvents {
        channel: String,
        events: mpsc::Sender<SubscriptionEvent>,
    },
    /// Disconnect, send what is to be sent, and end the task.
    Close {
        done: oneshot::Sender<()>,
    },
}

/// The state of the task.
pub(crate) struct Driver {
    core: ClientCore,
    url: WebSocketUrl,
    config: ClientConfig,
    instructions: mpsc::UnboundedReceiver<Instruction>,
    connection: TransportState,
    /// Tokens that the application was asked for.
    tokens: FuturesUnordered<PendingToken>,
    calls: HashMap<u64, oneshot::Sender<Result<Box<Reply>, ClientError>>>,
    last_call: u64,
    state: watch::Sender<ClientState>,
    events: Option<mpsc::Sender<ClientEvent>>,
    subscriptions: HashMap<String, SubscriptionPorts>,
    /// Events that their streams have no room for, the oldest first.
    undelivered: VecDeque<UndeliveredEvent>,
    /// Connections that send their last bytes.
    closing: JoinSet<()>,
}

/// The transport of the client.
enum TransportState {
    None,
    Opening(Pin<Box<dyn Future<Output = Result<OpenTransport, ClientError>> + Send>>),
    Open(Box<OpenConnection>),
}

struct OpenConnection {
    reader: ReadHalf<Box<dyn Socket>>,
    writer: WriteHalf<Box<dyn Socket>>,
    codec: MessageCodec,
    input: Vec<u8>,
    out: Vec<u8>,
    /// TLS may hold bytes back until a flush.
    needs_flush: bool,
    /// A close frame is in `out` or was sent: nothing may follow it.
    is_closing: bool,
}

type PendingToken = Pin<Box<dyn Future<Output = (u64, Result<String, GetTokenError>)> + Send>>;

/// Where a subscription's events and state go, and where its tokens come from.
struct SubscriptionPorts {
    events: Option<mpsc::Sender<SubscriptionEvent>>,
    state: watch::Sender<SubscriptionState>,
    get_token: Option<GetToken>,
}

enum UndeliveredEvent {
    Client(ClientEvent),
    Subscription { channel: String, event: SubscriptionEvent },
}

/// The event that woke the task up.
enum Wake {
    Instruction(Option<Instruction>),
    Opened(Result<Box<OpenTransport>, ClientError>),
    Read(std::io::Result<usize>),
    Written(std::io::Result<()>),
    Token(u64, Result<String, GetTokenError>),
    Room,
    Time,
}

impl Driver {
    pub(crate) fn new(
        url: WebSocketUrl,
        config: ClientConfig,
        instructions: mpsc::UnboundedReceiver<Instruction>,
        state: watch::Sender<ClientState>,
    ) -> Self {
        Self {
            core: ClientCore::new(config.clone(), rand::random(), now()),
            url,
            config,
            instructions,
            connection: TransportState::None,
            tokens: FuturesUnordered::new(),
            calls: HashMap::new(),
            last_call: 0,
            state,
            events: None,
            subscriptions: HashMap::new(),
            undelivered: VecDeque::new(),
            closing: JoinSet::new(),
        }
    }

    /// Runs until the last handle is dropped or the client is closed.
    pub(crate) async fn run(mut self) {
        loop {
            let deadline = self.core.poll_deadline();
            match self.wait(deadline).await {
                Wake::Instruction(None) => return self.close().await,
                Wake::Instruction(Some(first)) => {
                    if let Some(done) = self.instruct_all(first) {
                        self.close().await;
                        let _ = done.send(());
                        return;
                    }
                }
                Wake::Opened(result) => self.opened(result),
                Wake::Read(result) => self.read(result),
                Wake::Written(Ok(())) | Wake::Room | Wake::Time => {}
                Wake::Written(Err(_)) => self.lost(),
                Wake::Token(request, result) => self.core.token(request, result, now()),
            }
            self.core.handle_time(now());
            self.execute();
        }
    }

    async fn wait(&mut self, deadline: Option<std::time::Instant>) -> Wake {
        let Self { connection, instructions, tokens, undelivered, .. } = self;
        let may_read = undelivered.is_empty();
        let room = room(undelivered.front(), &self.events, &self.subscriptions);
        let transport = async {
            match connection {
                TransportState::None => pending().await,
                TransportState::Opening(opening) => Wake::Opened(opening.await.map(Box::new)),
                TransportState::Open(open) => open.turn(may_read).await,
            }
        };
        let time = async {
            match deadline {
                Some(deadline) => sleep_until(Instant::from_std(deadline)).await,
                None => pending().await,
            }
        };
        tokio::select! {
            instruction = instructions.recv() => Wake::Instruction(instruction),
            wake = transport => wake,
            Some((request, result)) = tokens.next() => Wake::Token(request, result),
            () = room => Wake::Room,
            () = time => Wake::Time,
        }
    }

    /// Takes an instruction and those that came with it, so that their commands go in one message. Returns who waits for
    /// the end, if one is a close.
    fn instruct_all(&mut self, first: Instruction) -> Option<oneshot::Sender<()>> {
        let mut next = Some(first);
        while let Some(instruction) = next {
            if let Instruction::Close { done } = instruction {
                return Some(done);
            }
            self.instruct(instruction);
            next = self.instructions.try_recv().ok();
        }
        None
    }

    fn instruct(&mut self, instruction: Instruction) {
        match instruction {
            Instruction::Connect => self.core.connect(now()),
            Instruction::Disconnect | Instruction::Close { .. } => self.core.disconnect(),
            Instruction::Call { command, done } => {
                self.last_call += 1;
                self.calls.insert(self.last_call, done);
                self.core.call(self.last_call, *command, now());
            }
            Instruction::Batching(is_on) => self.core.set_batching(is_on),
            Instruction::Events(events) => self.events = Some(events),
            Instruction::AddSubscription { channel, config, state } => {
                let get_token = config.get_token.clone();
                let ports = SubscriptionPorts { events: None, state, get_token };
                self.subscriptions.insert(channel.clone(), ports);
                self.core.add_subscription(channel, *config);
            }
            Instruction::RemoveSubscription { channel } => {
                self.core.remove_subscription(&channel, now());
                self.execute();
                self.subscriptions.remove(&channel);
            }
            Instruction::Subscribe { channel } => self.core.subscribe(&channel, now()),
            Instruction::Unsubscribe { channel } => self.core.unsubscribe(&channel, now()),
            Instruction::SubscriptionEvents { channel, events } => {
                if let Some(ports) = self.subscriptions.get_mut(&channel) {
                    ports.events = Some(events);
                }
            }
        }
    }

    fn opened(&mut self, result: Result<Box<OpenTransport>, ClientError>) {
        match result {
            Ok(opened) => {
                let OpenTransport { socket, codec, early } = *opened;
                let (reader, writer) = tokio::io::split(socket);
                let open = OpenConnection {
                    reader,
                    writer,
                    codec,
                    input: early,
                    out: Vec::new(),
                    needs_flush: false,
                    is_closing: false,
                };
                self.connection = TransportState::Open(Box::new(open));
                self.core.opened(now());
                self.received();
            }
            Err(error) => {
                self.connection = TransportState::None;
                self.core.failed(error, now());
            }
        }
    }

    fn read(&mut self, result: std::io::Result<usize>) {
        match result {
            Ok(0) | Err(_) => self.lost(),
            Ok(_) => self.received(),
        }
    }

    /// Gives the messages in the input to the core.
    fn received(&mut self) {
        let TransportState::Open(open) = &mut self.connection else { return };
        let OpenConnection { codec, input, out, is_closing, .. } = &mut **open;
        let mut all = Vec::new();
        let result = codec.receive(input, |received| all.push(received));
        input.clear();
        for received in all {
            match received {
                WireEvent::Message { bytes, wire_bytes } => {
                    self.core.received(&bytes, wire_bytes, now());
                }
                WireEvent::Ping(payload) => codec.pong(&payload, rand::random(), out),
                WireEvent::Close { code, reason } => {
                    codec.close(code.unwrap_or(NORMAL), rand::random(), out);
                    *is_closing = true;
                    self.core.closed(code, &reason, now());
                }
            }
        }
        if let Err(failure) = result {
            codec.close(failure.close_code(), rand::random(), out);
            *is_closing = true;
            self.core.closed(Some(failure.close_code()), &failure.to_string(), now());
        }
    }

    /// The connection ended without a close frame.
    fn lost(&mut self) {
        self.connection = TransportState::None;
        self.core.closed(None, "", now());
    }

    /// Executes what the core orders.
    fn execute(&mut self) {
        while let Some(output) = self.core.poll_output() {
            match output {
                Output::Open => {
                    let opening = transport::open(self.url.clone(), self.config.clone());
                    self.connection = TransportState::Opening(Box::pin(opening));
                }
                Output::Send(message) => {
                    if let TransportState::Open(open) = &mut self.connection {
                        open.codec.send(&message, rand::random(), &mut open.out);
                    }
                }
                Output::Close => self.close_connection(),
                Output::GetToken { request, channel } => self.get_token(request, channel),
                Output::Event(event) => {
                    if let Some(state) = state_after(&event) {
                        self.state.send_replace(state);
                    }
                    self.undelivered.push_back(UndeliveredEvent::Client(event));
                }
                Output::SubscriptionEvent { channel, event } => {
                    if let Some(ports) = self.subscriptions.get(&channel)
                        && let Some(state) = subscription_state_after(&event)
                    {
                        ports.state.send_replace(state);
                    }
                    self.undelivered.push_back(UndeliveredEvent::Subscription { channel, event });
                }
                Output::Finished { call, result } => {
                    if let Some(done) = self.calls.remove(&call) {
                        let _ = done.send(result);
                    }
                }
            }
        }
        self.deliver();
    }

    /// Puts events into their streams, as long as there is room. Events that no one reads are dropped.
    fn deliver(&mut self) {
        while let Some(delivery) = self.undelivered.pop_front() {
            let refused = match delivery {
                UndeliveredEvent::Client(event) => {
                    try_send(self.events.as_ref(), event).map(UndeliveredEvent::Client)
                }
                UndeliveredEvent::Subscription { channel, event } => {
                    let ports = self.subscriptions.get(&channel);
                    let events = ports.and_then(|ports| ports.events.as_ref());
                    try_send(events, event)
                        .map(|event| UndeliveredEvent::Subscription { channel, event })
                }
            };
            if let Some(refused) = refused {
                self.undelivered.push_front(refused);
                return;
            }
        }
    }

    fn get_token(&mut self, request: u64, channel: Option<String>) {
        let get_token = match &channel {
            None => self.config.get_token.as_ref(),
            Some(channel) => {
                self.subscriptions.get(channel).and_then(|ports| ports.get_token.as_ref())
            }
        };
        if let Some(get_token) = get_token {
            let token = get_token.call(channel.unwrap_or_default());
            self.tokens.push(Box::pin(async move { (request, token.await) }));
        }
    }

    /// Closes the connection in a task, because the last bytes may take a while.
    fn close_connection(&mut self) {
        let open = match std::mem::replace(&mut self.connection, TransportState::None) {
            TransportState::Open(open) => open,
            TransportState::None | TransportState::Opening(_) => return,
        };
        let OpenConnection { reader, mut writer, codec, mut out, is_closing, .. } = *open;
        if !is_closing {
            codec.close(NORMAL, rand::random(), &mut out);
        }
        self.closing.spawn(async move {
            let last = async {
                writer.write_all(&out).await?;
                writer.flush().await?;
                writer.shutdown().await
            };
            let _ = timeout(CLOSE_TIME, last).await;
            drop(reader);
        });
        while self.closing.try_join_next().is_some() {}
    }

    /// Disconnects, and waits until the last bytes are sent.
    async fn close(mut self) {
        self.core.disconnect();
        self.execute();
        while self.closing.join_next().await.is_some() {}
    }
}

impl OpenConnection {
    /// Reads or writes some bytes.
    async fn turn(&mut self, may_read: bool) -> Wake {
        let Self { reader, writer, input, out, needs_flush, .. } = self;
        let read = async {
            if !may_read {
                return pending().await;
            }
            input.reserve(READ_BYTES);
            reader.read_buf(input).await
        };
        let write = async {
            if !out.is_empty() {
                let written = writer.write(out).await?;
                out.drain(..written);
                *needs_flush = true;
            } else if *needs_flush {
                writer.flush().await?;
                *needs_flush = false;
            } else {
                pending::<()>().await;
            }
            Ok(())
        };
        tokio::select! {
            result = read => Wake::Read(result),
            result = write => Wake::Written(result),
        }
    }
}

/// Puts an event into its stream; returns it if there is no room.
fn try_send<E>(events: Option<&mpsc::Sender<E>>, event: E) -> Option<E> {
    match events?.try_send(event) {
        Err(mpsc::error::TrySendError::Full(event)) => Some(event),
        Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => None,
    }
}

/// Waits until the stream of the oldest event has room.
async fn room(
    front: Option<&UndeliveredEvent>,
    events: &Option<mpsc::Sender<ClientEvent>>,
    subscriptions: &HashMap<String, SubscriptionPorts>,
) {
    match front {
        None => pending().await,
        Some(UndeliveredEvent::Client(_)) => {
            if let Some(events) = events {
                let _ = events.reserve().await;
            }
        }
        Some(UndeliveredEvent::Subscription { channel, .. }) => {
            let ports = subscriptions.get(channel);
            if let Some(events) = ports.and_then(|ports| ports.events.as_ref()) {
                let _ = events.reserve().await;
            }
        }
    }
}

fn state_after(event: &ClientEvent) -> Option<ClientState> {
    match event {
        ClientEvent::Connecting { .. } => Some(ClientState::Connecting),
        ClientEvent::Connected { .. } => Some(ClientState::Connected),
        ClientEvent::Disconnected { .. } => Some(ClientState::Disconnected),
        _ => None,
    }
}

fn subscription_state_after(event: &SubscriptionEvent) -> Option<SubscriptionState> {
    match event {
        SubscriptionEvent::Subscribing { .. } => Some(SubscriptionState::Subscribing),
        SubscriptionEvent::Subscribed(_) => Some(SubscriptionState::Subscribed),
        SubscriptionEvent::Unsubscribed { .. } => Some(SubscriptionState::Unsubscribed),
        _ => None,
    }
}

fn now() -> std::time::Instant {
    Instant::now().into_std()
}

/// Close code of RFC 6455 §7.4.1.
const NORMAL: u16 = 1000;

/// Bytes of one read.
const READ_BYTES: usize = 16 << 10;

/// Time for the last bytes of a connection.
const CLOSE_TIME: Duration = Duration::from_secs(1);
