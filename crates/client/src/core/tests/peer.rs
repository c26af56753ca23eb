//! The other side of a core in tests: takes its orders, and says what a server says.
//! Replies and times → messages for the core; its orders → commands and events as short texts.
//! Uses the protocol's encoder and decoder.
//! Changed here: what dialogues need.

use fanwire_protocol::{
    Commands, ErrorCode, Publication, Push, Request, SubscribeResult, encode_reply,
};

use super::*;
use crate::{SubscribedContext, SubscriptionConfig, SubscriptionEvent};

/// A core with its orders and its time.
pub(super) struct Peer {
    pub(super) core: ClientCore,
    pub(super) now: Instant,
    outputs: VecDeque<Output>,
    last_id: u32,
}

impl Peer {
    pub(super) fn new(config: ClientConfig) -> Self {
        let now = Instant::now();
        let core = ClientCore::new(config, 1, now);
        Self { core, now, outputs: VecDeque::new(), last_id: 0 }
    }

    /// Lets time pass; what is due is done at its end.
    pub(super) fn pass(&mut self, time: Duration) {
        self.now += time;
        self.core.handle_time(self.now);
    }

    /// Opens the transport that the core ordered.
    pub(super) fn open(&mut self) {
        self.poll();
        let order = self.outputs.iter().position(|output| *output == Output::Open);
        self.outputs.remove(order.expect("an order to open"));
        self.core.opened(self.now);
    }

    pub(super) fn connect_with(&mut self, connect: ConnectResult) {
        self.core.connect(self.now);
        self.open();
        self.reply(Reply { connect: Some(connect), ..Reply::default() });
        self.events();
    }

    /// Subscribes to the channel `a`, without a reply yet.
    pub(super) fn subscribe(&mut self) {
        self.core.add_subscription("a".to_owned(), SubscriptionConfig::default());
        self.core.subscribe("a", self.now);
        self.command();
    }

    pub(super) fn subscribe_with(&mut self, result: SubscribeResult) {
        self.subscribe();
        self.reply(Reply { subscribe: Some(result), ..Reply::default() });
        self.events();
    }

    /// The next message that the core sends.
    pub(super) fn message(&mut self) -> Option<Vec<u8>> {
        self.poll();
        let sent = self.outputs.iter().position(|output| matches!(output, Output::Send(_)))?;
        match self.outputs.remove(sent) {
            Some(Output::Send(message)) => Some(message),
            other => panic!("{other:?} is no message"),
        }
    }

    /// The first command of the next message.
    pub(super) fn command(&mut self) -> Request {
        let message = self.message().expect("a message");
        let command = Commands::new(self.core.encoding(), &message).next().expect("a command");
        let (id, request) = command.expect("a valid command").into_request();
        self.last_id = id;
        request
    }

    /// Replies to the last command, or to the next one, if the core has sent it.
    pub(super) fn reply(&mut self, reply: Reply) {
        self.poll();
        if self.outputs.iter().any(|output| matches!(output, Output::Send(_))) {
            self.command();
        }
        self.receive(Reply { id: self.last_id, ..reply });
    }

    pub(super) fn fail(&mut self, error: ErrorCode) {
        self.command();
        self.fail_last(error);
    }

    pub(super) fn fail_last(&mut self, error: ErrorCode) {
        self.receive(Reply { id: self.last_id, error: Some(error.into()), ..Reply::default() });
    }

    pub(super) fn receive(&mut self, reply: Reply) {
        let mut message = Vec::new();
        encode_reply(self.core.encoding(), &reply, &mut message).expect("payloads are JSON");
        self.core.received(&message, message.len(), self.now);
    }

    pub(super) fn publication(&mut self, data: &'static str, offset: u64) {
        let publication = Publication { data: data.into(), offset, ..Publication::default() };
        let push = Push { channel: "a".into(), r#pub: Some(publication), ..Push::default() };
        self.receive(Reply { push: Some(push), ..Reply::default() });
    }

    /// The number of the token that the core asks for.
    pub(super) fn token_request(&mut self) -> u64 {
        self.poll();
        let all = &mut self.outputs;
        let asked = all.iter().position(|output| matches!(output, Output::GetToken { .. }));
        match all.remove(asked.expect("an order to get a token")) {
            Some(Output::GetToken { request, .. }) => request,
            other => panic!("{other:?} is no such order"),
        }
    }

    /// The events so far, as short texts; publications are their channel and data.
    pub(super) fn events(&mut self) -> Vec<String> {
        self.poll();
        let events = self.take(is_event);
        events.iter().map(text).collect()
    }

    pub(super) fn subscribed(&mut self) -> Option<SubscribedContext> {
        self.poll();
        self.outputs.iter().find_map(|output| match output {
            Output::SubscriptionEvent { event: SubscriptionEvent::Subscribed(it), .. } => {
                Some(it.clone())
            }
            _ => None,
        })
    }

    pub(super) fn wire_bytes(&mut self) -> Vec<usize> {
        self.poll();
        let sizes = self.outputs.iter().filter_map(|output| match output {
            Output::SubscriptionEvent {
                event: SubscriptionEvent::Publication { wire_bytes, .. },
                ..
            } => Some(*wire_bytes),
            _ => None,
        });
        sizes.collect()
    }

    /// The results of calls so far.
    pub(super) fn finished(&mut self) -> Vec<(u64, Result<Box<Reply>, ClientError>)> {
        self.poll();
        let finished = self.take(|output| matches!(output, Output::Finished { .. }));
        let results = finished.into_iter().filter_map(|output| match output {
            Output::Finished { call, result } => Some((call, result)),
            _ => None,
        });
        results.collect()
    }

    /// Takes the orders of a kind; the others stay.
    fn take(&mut self, is_taken: impl Fn(&Output) -> bool) -> Vec<Output> {
        let mut taken = Vec::new();
        for output in std::mem::take(&mut self.outputs) {
            if is_taken(&output) {
                taken.push(output);
            } else {
                self.outputs.push_back(output);
            }
        }
        taken
    }

    fn poll(&mut self) {
        while let Some(output) = self.core.poll_output() {
            self.outputs.push_back(output);
        }
    }
}

fn is_event(output: &Output) -> bool {
    matches!(output, Output::Event(_) | Output::SubscriptionEvent { .. })
}

fn text(output: &Output) -> String {
    match output {
        Output::Event(event) => match event {
            ClientEvent::Connecting { code, reason } => format!("Connecting {code} {reason}"),
            ClientEvent::Connected { client, .. } => format!("Connected {client}"),
            ClientEvent::Disconnected { code, reason } => format!("Disconnected {code} {reason}"),
            ClientEvent::Error(error) => format!("Error {error}"),
            ClientEvent::Message { data } => format!("Message {data:?}"),
            ClientEvent::ServerSubscribed { channel, .. } => format!("ServerSubscribed {channel}"),
            ClientEvent::ServerUnsubscribed { channel } => format!("ServerUnsubscribed {channel}"),
            ClientEvent::ServerPublication { channel, publication, .. } => {
                format!("{channel}: {}", String::from_utf8_lossy(&publication.data))
            }
            ClientEvent::ServerJoin { channel, .. } => format!("ServerJoin {channel}"),
            ClientEvent::ServerLeave { channel, .. } => format!("ServerLeave {channel}"),
        },
        Output::SubscriptionEvent { channel, event } => match event {
            SubscriptionEvent::Subscribing { code, reason } => {
                format!("{channel}: Subscribing {code} {reason}")
            }
            SubscriptionEvent::Subscribed(_) => format!("{channel}: Subscribed"),
            SubscriptionEvent::Unsubscribed { code, reason } => {
                format!("{channel}: Unsubscribed {code} {reason}")
            }
            SubscriptionEvent::Error(error) => format!("{channel}: Error {error}"),
            SubscriptionEvent::Publication { publication, .. } => {
                format!("{channel}: {}", String::from_utf8_lossy(&publication.data))
            }
            SubscriptionEvent::Join { .. } => format!("{channel}: Join"),
            SubscriptionEvent::Leave { .. } => format!("{channel}: Leave"),
        },
        other => format!("{other:?}"),
    }
}

/// A connection with pings every 25 s.
pub(super) fn connect_result() -> ConnectResult {
    ConnectResult { client: "client".into(), ping: 25, pong: true, ..ConnectResult::default() }
}
