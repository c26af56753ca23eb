//! A channel with clients that apply deltas as SDKs do, on two shards whose inboxes are emptied when told.
//! In: publications, subscribes, leaves → out: what each client was sent: F in full, D as a delta, with the number published.
//! Uses: a node, two hubs and `protocol::fossil` to read. Never: the node's own patches, to say what is right.
//! Changed here: what a client remembers and demands. What should be sent stands in `deltas.rs` and `random.rs`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_broker::{ClientId, Position, PublishOptions};
use fanwire_node::options::Namespace;
use fanwire_node::{CommandSource, ConnectionInfo, ConnectionKey, Node, NodeParts, Options};
use fanwire_protocol::{Encoding, Publication, Reply, SubscribeResult, fossil};
use prost::Message as _;

use crate::world::{Effect, Record, Shard, protobuf};

pub(super) struct Harness {
    pub(super) node: Arc<Node>,
    pub(super) now: Instant,
    shards: Vec<Shard>,
    pub(super) clients: Vec<Client>,
    /// Publications by number, from 0.
    published: Vec<Vec<u8>>,
}

/// Identity of a client, and the knowledge of its SDK.
pub(super) struct Client {
    shard: usize,
    key: ConnectionKey,
    encoding: Encoding,
    wants_deltas: bool,
    id: String,
    pub(super) subscribed: bool,
    has_agreed: bool,
    /// Data that the next delta is applied to.
    base: Option<Vec<u8>>,
    position: Option<(u64, String)>,
    heard: Vec<String>,
}

impl Harness {
    /// Clients are JSON and Protobuf, want deltas and do not: `clients` on shards in turn.
    pub(super) fn new(options: Options, clients: &[(Encoding, bool)]) -> Self {
        Self::with_parts(options, clients, NodeParts::default())
    }

    pub(super) fn with_parts(
        options: Options,
        clients: &[(Encoding, bool)],
        parts: NodeParts,
    ) -> Self {
        let now = Instant::now();
        let node = Node::with_parts(options, now, 1_000_000, parts).expect("the options are good");
        let shards: Vec<_> = (0..2).map(|_| Shard::new(&node)).collect();
        let mut harness = Self { node, now, shards, clients: Vec::new(), published: Vec::new() };
        clients.iter().for_each(|(encoding, wants_deltas)| harness.open(*encoding, *wants_deltas));
        harness
    }

    fn open(&mut self, encoding: Encoding, wants_deltas: bool) {
        let number = self.clients.len();
        let shard = number % 2;
        let key = ConnectionKey { index: number as u32 / 2, generation: number as u32 };
        let hello = ConnectionInfo {
            encoding,
            frame_ping: false,
            transport: "websocket",
            command_source: CommandSource::Connection,
            user: None,
            last_event_id: None,
            headers: Vec::new(),
        };
        self.shards[shard].hub.open(key, hello, self.now);
        let (id, subscribed, has_agreed, base, position, heard) = Default::default();
        self.clients.push(Client {
            shard,
            key,
            encoding,
            wants_deltas,
            id,
            subscribed,
            has_agreed,
            base,
            position,
            heard,
        });
        self.say(number, r#"{"id":1,"connect":{}}"#);
    }

    /// The result of subscribing to `news`; `recover` from what the client had last.
    pub(super) fn subscribe(&mut self, who: usize, recover: bool) {
        let client = &self.clients[who];
        let delta = if client.wants_deltas { r#","delta":"fossil""# } else { "" };
        let claim = client.position.as_ref().filter(|_| recover);
        let claim = claim.map_or_else(String::new, |(offset, epoch)| {
            format!(r#","recover":true,"offset":{offset},"epoch":"{epoch}""#)
        });
        self.say(who, &format!(r#"{{"id":2,"subscribe":{{"channel":"news"{delta}{claim}}}}}"#));
    }

    pub(super) fn unsubscribe(&mut self, who: usize) {
        self.clients[who].subscribed = false;
        self.say(who, r#"{"id":3,"unsubscribe":{"channel":"news"}}"#);
    }

    pub(super) fn say(&mut self, who: usize, text: &str) {
        let Client { shard, key, encoding, .. } = self.clients[who];
        let frame = match encoding {
            Encoding::Json => text.as_bytes().to_vec(),
            Encoding::Protobuf => protobuf(text),
        };
        let mut record = Record::default();
        self.shards[shard].hub.receive(key, &frame, self.now, &mut record);
        self.receive(shard, record);
    }

    /// Publishes by the server API; it lies in the inboxes afterwards.
    pub(super) fn publish(&mut self, data: &[u8], options: PublishOptions) -> Position {
        let publication = Publication { data: data.to_vec().into(), ..Publication::default() };
        self.publish_one(publication, options)
    }

    pub(super) fn publish_one(
        &mut self,
        publication: Publication,
        options: PublishOptions,
    ) -> Position {
        let data = publication.data.to_vec();
        let published = self.node.channels().publish("news", publication, options, self.now);
        self.published.push(data);
        published.wait().expect("the API may publish")
    }

    /// How many were published.
    pub(super) fn published(&self) -> usize {
        self.published.len()
    }

    pub(super) fn id(&self, who: usize) -> ClientId {
        ClientId::parse(&self.clients[who].id).expect("connected")
    }

    pub(super) fn drain(&mut self, shard: usize) {
        let mut record = Record::default();
        for notice in self.shards[shard].mailbox.take() {
            self.shards[shard].hub.notice(notice, self.now, &mut record);
        }
        self.receive(shard, record);
    }

    pub(super) fn drain_all(&mut self) {
        (0..self.shards.len()).for_each(|shard| self.drain(shard));
    }

    pub(super) fn wait(&mut self, duration: Duration) {
        self.now += duration;
    }

    /// Deltas sent and the bytes they saved, as all hubs count them.
    pub(super) fn counted(&self) -> (u64, u64) {
        let counters = self.shards.iter().map(|shard| shard.hub.counters());
        counters.fold((0, 0), |(deltas, bytes), one| {
            (deltas + one.deltas.value(), bytes + one.delta_saved_bytes.value())
        })
    }

    /// Returns the messages of a client since the last call.
    pub(super) fn heard(&mut self, who: usize) -> String {
        std::mem::take(&mut self.clients[who].heard).join(" ")
    }

    fn receive(&mut self, shard: usize, record: Record) {
        for (index, effect) in record.effects {
            let mut clients = self.clients.iter_mut();
            let client = clients.find(|one| one.shard == shard && one.key.index == index);
            client.expect("opened").receive(&effect, &self.published);
        }
    }
}

impl Client {
    fn receive(&mut self, effect: &Effect, published: &[Vec<u8>]) {
        let reply = match effect {
            Effect::Message(message) => reply(self.encoding, message),
            Effect::Publication(one, delta_mode) => {
                let message = one.message_in(*delta_mode, self.encoding);
                reply(self.encoding, message.expect("delivered only if it exists"))
            }
            Effect::PingFrame => panic!("nobody asked for this"),
            Effect::Disconnect(disconnect) => {
                self.subscribed = false;
                return self.heard.push(format!("x{}", disconnect.code));
            }
        };
        if let Some(error) = reply.error {
            self.heard.push(format!("e{}", error.code));
        }
        if let Some(connect) = reply.connect {
            assert!(connect.subs.values().all(|result| !result.delta), "not applied there");
            self.id = connect.client;
        }
        if let Some(result) = reply.subscribe {
            self.enter(result, published);
        }
        if let Some(push) = reply.push {
            if let Some(end) = push.unsubscribe {
                self.subscribed = false;
                self.heard.push(format!("u{}", end.code));
            }
            push.r#pub.iter().for_each(|one| self.take(one, published));
        }
    }

    fn enter(&mut self, result: SubscribeResult, published: &[Vec<u8>]) {
        assert!(self.wants_deltas || !result.delta, "nobody asked");
        (self.subscribed, self.has_agreed, self.base) = (true, result.delta, None);
        let known = self.position.as_ref().map_or("", |(_, epoch)| epoch);
        assert!(!result.recovered || known.is_empty() || known == result.epoch);
        self.position = result.positioned.then_some((result.offset, result.epoch));
        if result.delta {
            self.heard.push("agreed".into());
        }
        if result.recovered {
            self.heard.push("recovered".into());
        }
        result.publications.iter().for_each(|publication| self.take(publication, published));
    }

    /// Applies a publication as an SDK does (protocol §11).
    fn take(&mut self, publication: &Publication, published: &[Vec<u8>]) {
        assert!(self.subscribed, "after unsubscribing nothing is heard");
        let mut data = publication.data.to_vec();
        if self.has_agreed && self.encoding == Encoding::Json {
            let text: String = serde_json::from_slice(&data).expect("a JSON string");
            data = text.into_bytes();
        }
        if publication.delta {
            let base = self.base.as_deref().expect("no delta without a base");
            let mut made = Vec::new();
            let length = data.len();
            fossil::apply(base, &data, 1 << 22, &mut made).expect("a delta of this base");
            assert!(length < made.len(), "a delta that does not pay");
            data = made;
        }
        assert!(self.has_agreed || !publication.delta, "nobody agreed");
        let number = published.iter().position(|one| *one == data).expect("what was published");
        self.heard.push(format!("{}{}", if publication.delta { "D" } else { "F" }, number + 1));
        self.base = Some(data);
        if let Some((offset, _)) = &mut self.position
            && publication.offset > 0
        {
            *offset = publication.offset;
        }
    }
}

fn reply(encoding: Encoding, message: &[u8]) -> Reply {
    match encoding {
        Encoding::Json => serde_json::from_slice(message).expect("a JSON reply"),
        Encoding::Protobuf => Reply::decode_length_delimited(message).expect("a reply"),
    }
}

/// Settings of a channel with deltas.
pub(super) fn with_deltas(namespace: &mut Namespace) {
    namespace.allowed_delta_types = vec![Namespace::FOSSIL.into()];
    namespace.delta_publish = true;
}

/// Publications that differ a little: the number, and a text that is not ASCII.
pub(super) fn state(number: usize) -> String {
    let word = ["Malmö", "Malmo", "Malmø", "Мальмё", "マルメ", "😀", "😁"][number % 7];
    format!(
        r#"{{"n":{number},"home":{{"name":"{word} föreningen för fotboll","goals":{}}},"minute":{}}}"#,
        number / 3,
        number % 90,
    )
}
