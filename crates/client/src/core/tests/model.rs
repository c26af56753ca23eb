//! Property test: whatever the network and the server do, each publication is delivered once and in order.
//! Random publications, lost connections, lost replies, ended subscriptions, closes and times → the payloads of the channel, in order.
//! Uses a small server with one recoverable channel, deltas included.
//! Changed here: what may happen, and what the server does then.

use fanwire_protocol::fossil::Differ;
use fanwire_protocol::{
    Commands, Publication, Push, RefreshResult, Request, SubscribeResult, Unsubscribe, encode_reply,
};
use proptest::collection::vec;
use proptest::prelude::*;

use super::peer::connect_result;
use super::*;
use crate::{SubscriptionConfig, SubscriptionEvent};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn each_publication_is_delivered_once_and_in_order(
        steps in vec(step(), 0..120),
        seed: u64,
        delta: bool,
        is_binary: bool,
    ) {
        let encoding = if is_binary { Encoding::Protobuf } else { Encoding::Json };
        let mut model = Model::new(encoding, delta, seed);
        for step in steps {
            model.step(step);
        }
        model.settle();
        prop_assert_eq!(&model.delivered, &model.stream);
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Publish,
    /// The client receives some of the server's messages.
    Deliver {
        messages: usize,
    },
    Lose,
    Close {
        code: u16,
    },
    /// The server ends the subscription, which then begins again.
    EndSubscription,
    /// The server forgets to reply to the next command.
    ForgetReply,
    /// The application does both at once.
    Resubscribe,
    Pass {
        milliseconds: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => Just(Step::Publish),
        8 => (1..4usize).prop_map(|messages| Step::Deliver { messages }),
        1 => Just(Step::Lose),
        1 => prop::sample::select(vec![3001, 3005, 3008, 3010, 3012, 4000])
            .prop_map(|code| Step::Close { code }),
        1 => Just(Step::EndSubscription),
        1 => Just(Step::ForgetReply),
        1 => Just(Step::Resubscribe),
        4 => (1..6_000u64).prop_map(|milliseconds| Step::Pass { milliseconds }),
    ]
}

/// A client, a server with the channel `a`, and the network between them.
struct Model {
    core: ClientCore,
    now: Instant,
    encoding: Encoding,
    delta: bool,
    stream: Vec<String>,
    delivered: Vec<String>,
    is_open: bool,
    is_subscribed: bool,
    /// The last publication that this subscription was sent.
    base: Option<String>,
    forgets_reply: bool,
    /// Messages of the server that the client did not receive yet.
    network: VecDeque<Vec<u8>>,
}

impl Model {
    fn new(encoding: Encoding, delta: bool, seed: u64) -> Self {
        let config =
            ClientConfig::default().encoding(encoding).get_token(|| async { Ok(String::new()) });
        let now = Instant::now();
        let mut core = ClientCore::new(config, seed, now);
        let since = fanwire_protocol::StreamPosition { offset: 0, epoch: "e".into() };
        let config = SubscriptionConfig::default().recoverable(true).delta(delta).since(since);
        core.add_subscription("a".to_owned(), config);
        core.subscribe("a", now);
        core.connect(now);
        Self {
            core,
            now,
            encoding,
            delta,
            stream: Vec::new(),
            delivered: Vec::new(),
            is_open: false,
            is_subscribed: false,
            base: None,
            forgets_reply: false,
            network: VecDeque::new(),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Publish => self.publish(),
            Step::Deliver { messages } => {
                for _ in 0..messages {
                    if let Some(message) = self.network.pop_front() {
                        self.core.received(&message, message.len(), self.now);
                        self.execute();
                    }
                }
            }
            Step::Lose => self.close(None),
            Step::Close { code } => self.close(Some(code)),
            Step::EndSubscription => self.end_subscription(),
            Step::ForgetReply => self.forgets_reply = true,
            Step::Resubscribe => {
                self.core.unsubscribe("a", self.now);
                self.core.subscribe("a", self.now);
            }
            Step::Pass { milliseconds } => {
                self.now += Duration::from_millis(milliseconds);
                self.core.handle_time(self.now);
            }
        }
        self.execute();
    }

    /// Nothing goes wrong any more, and time passes.
    fn settle(&mut self) {
        self.forgets_reply = false;
        for _ in 0..20 {
            self.step(Step::Deliver { messages: 1 << 10 });
            self.step(Step::Pass { milliseconds: 5_000 });
            self.ping();
        }
    }

    fn publish(&mut self) {
        let number = self.stream.len();
        let text = format!("[\"{}\",{number}]", "a long text that is always the same".repeat(2));
        self.stream.push(text);
        if self.is_subscribed {
            let publication = self.publication(number);
            let push = Push { channel: "a".into(), r#pub: Some(publication), ..Push::default() };
            self.send(&Reply { push: Some(push), ..Reply::default() });
        }
    }

    fn end_subscription(&mut self) {
        if self.is_subscribed {
            self.is_subscribed = false;
            let unsubscribe = Unsubscribe { code: 2500, reason: "insufficient state".into() };
            let unsubscribe = Some(unsubscribe);
            let push = Push { channel: "a".into(), unsubscribe, ..Push::default() };
            self.send(&Reply { push: Some(push), ..Reply::default() });
        }
    }

    fn ping(&mut self) {
        if self.is_open {
            self.send(&Reply::default());
        }
    }

    fn close(&mut self, code: Option<u16>) {
        if self.is_open {
            self.forget_connection();
            self.core.closed(code, "closed", self.now);
        }
    }

    fn forget_connection(&mut self) {
        self.is_open = false;
        self.is_subscribed = false;
        self.network.clear();
    }

    /// Executes the orders of the client.
    fn execute(&mut self) {
        while let Some(output) = self.core.poll_output() {
            match output {
                Output::Open => {
                    self.is_open = true;
                    self.core.opened(self.now);
                }
                Output::Close => self.forget_connection(),
                Output::Send(message) => self.receive(&message),
                Output::GetToken { request, .. } => {
                    self.core.token(request, Ok("token".to_owned()), self.now);
                }
                Output::SubscriptionEvent {
                    event: SubscriptionEvent::Publication { publication, .. },
                    ..
                } => {
                    let text = String::from_utf8(publication.data.to_vec()).expect("our text");
                    self.delivered.push(text);
                }
                Output::SubscriptionEvent { .. } | Output::Event(_) | Output::Finished { .. } => {}
            }
        }
    }

    /// Does what a server does with commands.
    fn receive(&mut self, message: &[u8]) {
        let commands: Result<Vec<_>, _> = Commands::new(self.encoding, message).collect();
        for command in commands.expect("a server reads them") {
            let (id, request) = command.into_request();
            let mut reply = Reply { id, ..Reply::default() };
            let forgotten = std::mem::take(&mut self.forgets_reply);
            match request {
                Request::Connect(_) => {
                    let expiring = ConnectResult { expires: true, ttl: 7, ..connect_result() };
                    reply.connect = Some(expiring);
                }
                Request::Subscribe(subscribe) => {
                    assert!(subscribe.recover && !self.is_subscribed, "a subscribe too many");
                    reply.subscribe = Some(self.subscribe(subscribe.offset));
                }
                Request::Unsubscribe(_) => {
                    self.is_subscribed = false;
                    reply.unsubscribe = Some(Default::default());
                }
                Request::Refresh(_) => {
                    reply.refresh =
                        Some(RefreshResult { expires: true, ttl: 7, ..Default::default() });
                }
                Request::Pong => continue,
                other => panic!("{other:?} was not called for"),
            }
            if !forgotten {
                self.send(&reply);
            }
        }
    }

    fn subscribe(&mut self, offset: u64) -> SubscribeResult {
        self.is_subscribed = true;
        self.base = None;
        let missed = offset as usize..self.stream.len();
        SubscribeResult {
            recoverable: true,
            recovered: true,
            was_recovering: true,
            epoch: "e".into(),
            offset,
            delta: self.delta,
            publications: missed.map(|number| self.publication(number)).collect(),
            ..SubscribeResult::default()
        }
    }

    /// A publication as this subscription gets it.
    fn publication(&mut self, number: usize) -> Publication {
        let text = self.stream[number].clone();
        let mut payload = Vec::new();
        let base = self.base.replace(text.clone()).filter(|_| self.delta);
        match &base {
            Some(base) => Differ::default().create_text(base.as_bytes(), &text, &mut payload),
            None => payload.extend(text.as_bytes()),
        }
        if self.delta && self.encoding == Encoding::Json {
            let quoted = serde_json::to_vec(std::str::from_utf8(&payload).expect("UTF-8"));
            payload = quoted.expect("a string");
        }
        let offset = number as u64 + 1;
        Publication { data: payload.into(), offset, delta: base.is_some(), ..Default::default() }
    }

    fn send(&mut self, reply: &Reply) {
        let mut message = Vec::new();
        encode_reply(self.encoding, reply, &mut message).expect("payloads are JSON");
        self.network.push_back(message);
    }
}
