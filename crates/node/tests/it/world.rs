//! A simulated node: several hubs, peers instead of sockets, and a time that only moves when told.
//! In: frames of peers, API calls, waiting → out: what each peer heard, in order.
//! Uses: `Node`, `Hub`, an `Outbox` that records, an `Inbox` that queues. Never: real time.
//! Changed here: the simulation. How tests write dialogues lives in `script.rs`, how another node takes over in `world/takeover.rs`.

mod takeover;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fanwire_node::hooks::Hooks;
use fanwire_node::{
    Broadcast, ConnectionInfo, ConnectionKey, DeltaMode, EncodeJob, Hub, Inbox, MovedSubscription,
    Node, NodeParts, Notice, Options, Outbox, SubscriptionIndex,
};
use fanwire_protocol::{Command, Commands, Disconnect, Encoding, Reply, encode_reply};
use prost::Message as _;

use takeover::Memory;

/// Unix seconds at which every world begins.
pub(crate) const UNIX: u64 = 1_800_000_000;

/// A node whose channels are open to every client. `change` changes its options before its start.
pub(crate) fn options(change: impl FnOnce(&mut Options)) -> Options {
    let mut options = Options { version: "test".into(), ..Options::default() };
    options.client.allow_anonymous_connect_without_token = true;
    let open = &mut options.channel.without_namespace;
    open.allow_subscribe_for_client = true;
    open.allow_subscribe_for_anonymous = true;
    open.allow_publish_for_client = true;
    open.allow_publish_for_anonymous = true;
    change(&mut options);
    options
}

pub(crate) struct World {
    pub(crate) node: Arc<Node>,
    pub(crate) now: Instant,
    /// A moment, and its Unix time in milliseconds.
    unix_ms: (Instant, u64),
    pub(crate) shards: Vec<Shard>,
    /// Epochs in the order in which a script heard of them.
    pub(crate) epochs: Vec<String>,
    /// Encode jobs that the hubs offloaded and that have not run yet.
    pub(crate) encode_jobs: Vec<EncodeJob>,
    peers: BTreeMap<String, Peer>,
    /// `None` if the test made the parts of the node.
    memory: Option<Memory>,
    /// Whether another node takes over before each line of a script.
    pub(crate) moves_before_each_line: bool,
}

/// A hub with what surrounds it in a server.
pub(crate) struct Shard {
    pub(crate) hub: Hub,
    pub(crate) mailbox: Arc<Mailbox>,
    opened: u32,
    /// Clients that it disconnected, by the code.
    disconnects: BTreeMap<u16, u64>,
}

struct Peer {
    shard: usize,
    key: ConnectionKey,
    encoding: Encoding,
    /// Client id, once heard.
    id: String,
    heard: VecDeque<String>,
    answers_pings: bool,
    is_open: bool,
}

impl World {
    pub(crate) fn new(options: Options) -> Self {
        Self::with_shards(options, 2)
    }

    pub(crate) fn with_hooks(options: Options, hooks: Hooks) -> Self {
        Self::with_parts(options, NodeParts { hooks, ..NodeParts::default() }, 2)
    }

    pub(crate) fn with_shards(mut options: Options, shards: usize) -> Self {
        options.client.explains_disconnects = true;
        let now = Instant::now();
        let (memory, node) = Memory::start(options, None, now, UNIX * 1000);
        Self { memory: Some(memory), ..Self::around(node, now, shards) }
    }

    pub(crate) fn with_parts(mut options: Options, parts: NodeParts, shards: usize) -> Self {
        options.client.explains_disconnects = true;
        let now = Instant::now();
        let node = Node::with_parts(options, now, UNIX * 1000, parts);
        Self::around(node.expect("the options are good"), now, shards)
    }

    /// A world with a node of the test's own making.
    pub(crate) fn around(node: Arc<Node>, now: Instant, shards: usize) -> Self {
        let shards = (0..shards).map(|_| Shard::new(&node)).collect();
        Self {
            node,
            now,
            unix_ms: (now, UNIX * 1000),
            shards,
            epochs: Vec::new(),
            encode_jobs: Vec::new(),
            peers: BTreeMap::new(),
            memory: None,
            moves_before_each_line: false,
        }
    }

    /// Opens a connection on the shard with the fewest.
    pub(crate) fn open(&mut self, name: &str, hello: ConnectionInfo) {
        let (shard, key) = self.next_key();
        let encoding = hello.encoding;
        self.shards[shard].hub.open(key, hello, self.now);
        let id = String::new();
        let heard = VecDeque::new();
        let peer = Peer { shard, key, encoding, id, heard, answers_pings: true, is_open: true };
        self.peers.insert(name.into(), peer);
    }

    /// A free key on the shard with the fewest connections.
    fn next_key(&mut self) -> (usize, ConnectionKey) {
        let opened = self.shards.iter().map(|shard| shard.opened);
        let shard = opened.enumerate().min_by_key(|(_, opened)| *opened).expect("a shard").0;
        let index = self.shards[shard].opened;
        self.shards[shard].opened += 1;
        (shard, ConnectionKey { index, generation: index + 7 })
    }

    pub(crate) fn key(&self, name: &str) -> ConnectionKey {
        self.peer(name).key
    }

    pub(crate) fn shard_of(&mut self, name: &str) -> &mut Shard {
        let shard = self.peer(name).shard;
        &mut self.shards[shard]
    }

    pub(crate) fn id(&self, name: &str) -> &str {
        &self.peer(name).id
    }

    /// `None` when there is no such peer.
    pub(crate) fn try_id(&self, name: &str) -> Option<&str> {
        self.peers.get(name).map(|peer| peer.id.as_str())
    }

    pub(crate) fn keeps_silent(&mut self, name: &str) {
        self.peers.get_mut(name).expect("opened").answers_pings = false;
    }

    pub(crate) fn close(&mut self, name: &str) {
        let shard = self.peer(name).shard;
        let key = self.peer(name).key;
        self.shards[shard].hub.close(key, self.now);
        self.peers.get_mut(name).expect("opened").is_open = false;
    }

    /// A peer says JSON commands, in its own encoding.
    pub(crate) fn say(&mut self, name: &str, text: &str) {
        self.say_unsettled(name, text);
        self.settle();
    }

    /// The same, while what lies in the inboxes waits.
    pub(crate) fn say_unsettled(&mut self, name: &str, text: &str) {
        let frame = match self.peer(name).encoding {
            Encoding::Json => text.as_bytes().to_vec(),
            Encoding::Protobuf => protobuf(text),
        };
        self.receive(name, &frame);
    }

    pub(crate) fn say_bytes(&mut self, name: &str, frame: &[u8]) {
        self.receive(name, frame);
        self.settle();
    }

    fn receive(&mut self, name: &str, frame: &[u8]) {
        let shard = self.peer(name).shard;
        let key = self.peer(name).key;
        let mut record = Record::keeping_errands();
        self.shards[shard].hub.receive(key, frame, self.now, &mut record);
        self.collect(shard, record);
    }

    /// A native pong frame.
    pub(crate) fn pong_frame(&mut self, name: &str) {
        let key = self.key(name);
        let now = self.now;
        self.shard_of(name).hub.pong(key, now);
    }

    /// Returns the next message that a peer has not read yet: JSON, `ping frame`, or `x CODE REASON`.
    pub(crate) fn heard(&mut self, name: &str) -> Option<String> {
        self.peers.get_mut(name).expect("opened").heard.pop_front()
    }

    /// Peers with something unread.
    pub(crate) fn unread(&self) -> Vec<(&str, &str)> {
        let unread = self.peers.iter();
        unread
            .flat_map(|(name, peer)| {
                peer.heard.iter().map(move |text| (name.as_str(), text.as_str()))
            })
            .collect()
    }

    /// Lets the notices of all mailboxes arrive.
    pub(crate) fn settle(&mut self) {
        for shard in 0..self.shards.len() {
            let notices = self.shards[shard].mailbox.take();
            let mut record = Record::keeping_errands();
            for notice in notices {
                self.shards[shard].hub.notice(notice, self.now, &mut record);
            }
            self.collect(shard, record);
        }
    }

    /// Somebody does what the hubs handed out.
    pub(crate) fn do_errands(&mut self) {
        self.encode_jobs.drain(..).for_each(EncodeJob::run);
        self.settle();
    }

    /// Sets the clock of the machine, by this number of seconds.
    pub(crate) fn step_clock(&mut self, seconds: i64) {
        let (then, unix_ms) = self.unix_ms;
        let unix_ms = unix_ms + (self.now - then).as_millis() as u64;
        self.unix_ms = (self.now, unix_ms.strict_add_signed(seconds * 1000));
        self.node.synchronise(self.now, self.unix_ms.1);
        self.settle();
    }

    /// Time passes, from one deadline to the next.
    pub(crate) fn wait(&mut self, duration: Duration) {
        self.wait_while(duration, |_| true);
    }

    /// Time passes until a peer receives something.
    pub(crate) fn await_news(&mut self, name: &str, at_most: Duration) {
        self.wait_while(at_most, |world| world.peer(name).heard.is_empty());
    }

    fn wait_while(&mut self, duration: Duration, go_on: impl Fn(&Self) -> bool) {
        let until = self.now + duration;
        while go_on(self) {
            let deadlines = self.shards.iter().filter_map(|shard| shard.hub.next_deadline());
            let next = deadlines.min().filter(|next| *next <= until);
            self.now = self.now.max(next.unwrap_or(until));
            for shard in 0..self.shards.len() {
                let mut record = Record::keeping_errands();
                self.shards[shard].hub.advance(self.now, &mut record);
                self.collect(shard, record);
            }
            self.settle();
            if next.is_none() {
                return;
            }
        }
    }

    fn peer(&self, name: &str) -> &Peer {
        self.peers.get(name).unwrap_or_else(|| panic!("{name} was not opened"))
    }

    /// Hands effects to their peers; a peer that answers pings does so at once.
    fn collect(&mut self, shard: usize, record: Record) {
        let mut pongs = Vec::new();
        self.shards[shard].check_disconnects(&record.effects);
        self.encode_jobs.extend(record.encode_jobs.into_iter().flatten());
        let mut recovered = record.recovered.into_iter().peekable();
        for (at, (index, effect)) in (1..).zip(record.effects) {
            let peer = (self.peers.iter_mut())
                .find(|(_, peer)| peer.shard == shard && peer.key.index == index);
            let told = std::iter::from_fn(|| recovered.next_if(|(after, ..)| *after == at));
            let told: Vec<_> = told.map(|(_, to, channel)| (to, channel)).collect();
            let Some((name, peer)) = peer else { continue };
            let text = effect.text(peer.encoding);
            peer.is_open &= !matches!(effect, Effect::Disconnect(_));
            check_recovered(&text, index, told);
            if peer.answers_pings && (text == "{}" || text == "ping frame") {
                pongs.push((name.clone(), text));
                continue;
            }
            peer.learn_id(&text);
            peer.heard.push_back(text);
        }
        for (name, ping) in pongs {
            if ping == "{}" { self.say(&name, "{}") } else { self.pong_frame(&name) }
        }
        self.name_ids();
    }

    /// Client ids are random; in what peers heard they are replaced by the names of the peers.
    fn name_ids(&mut self) {
        let of_peers = self.peers.iter().filter(|(_, peer)| !peer.id.is_empty());
        let names: HashMap<String, String> =
            of_peers.map(|(name, peer)| (peer.id.clone(), name.clone())).collect();
        for peer in self.peers.values_mut() {
            peer.heard.iter_mut().for_each(|text| name_ids_in(text, &names));
        }
    }
}

/// An id is a UUID, whose first hyphen is its ninth byte.
fn name_ids_in(text: &mut String, names: &HashMap<String, String>) {
    let mut from = 0;
    while let Some(hyphen) = text[from..].find('-').map(|at| from + at) {
        from = hyphen + 1;
        let Some(start) = hyphen.checked_sub(8) else { continue };
        let name = text.get(start..start + 36).and_then(|id| names.get(id));
        if let Some(name) = name {
            text.replace_range(start..start + 36, name);
            from = start + name.len();
        }
    }
}

impl Peer {
    fn learn_id(&mut self, text: &str) {
        if let Some((_, rest)) = text.split_once(r#""connect":{"client":""#) {
            self.id = rest.split('"').next().unwrap_or_default().to_owned();
        }
    }
}

impl Shard {
    pub(crate) fn new(node: &Arc<Node>) -> Self {
        let mailbox = Arc::new(Mailbox::default());
        let id = node.attach(Arc::clone(&mailbox) as _);
        Self {
            hub: Hub::new(Arc::clone(node), id),
            mailbox,
            opened: 0,
            disconnects: BTreeMap::new(),
        }
    }
}

impl Shard {
    /// Whatever the cause of a disconnect is, the hub counts it.
    fn check_disconnects(&mut self, effects: &[(u32, Effect)]) {
        for (_, effect) in effects {
            if let Effect::Disconnect(Disconnect { code, .. }) = effect {
                *self.disconnects.entry(*code).or_default() += 1;
            }
        }
        for (code, counted) in self.hub.counters().disconnects() {
            if let Some(code) = code {
                assert_eq!(counted, self.disconnects.get(&code).copied().unwrap_or(0), "{code}");
            }
        }
    }
}

/// An inbox that only keeps.
#[derive(Default)]
pub(crate) struct Mailbox(Mutex<Vec<Notice>>);

impl Mailbox {
    pub(crate) fn take(&self) -> Vec<Notice> {
        std::mem::take(&mut *self.0.lock().expect("nobody panicked inside"))
    }
}

impl Mailbox {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().expect("nobody panicked inside").is_empty()
    }
}

impl Inbox for Mailbox {
    fn push(&self, notice: Notice) {
        self.0.lock().expect("nobody panicked inside").push(notice);
    }
}

/// An outbox that remembers what happened to which connection.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) effects: Vec<(u32, Effect)>,
    /// Number of effects before, connection and channel.
    recovered: Vec<(usize, u32, String)>,
    /// Connection, place of its ended subscription, and place of the one that moved there.
    pub(crate) ended: Vec<(u32, u32, u32)>,
    /// `None`: they are done at once.
    encode_jobs: Option<Vec<EncodeJob>>,
}

impl Record {
    fn keeping_errands() -> Self {
        Self { encode_jobs: Some(Vec::new()), ..Self::default() }
    }
}

pub(crate) enum Effect {
    Message(Vec<u8>),
    Publication(Arc<Broadcast>, DeltaMode),
    PingFrame,
    Disconnect(Disconnect),
}

impl Effect {
    fn text(&self, encoding: Encoding) -> String {
        match self {
            Self::Message(bytes) => json(encoding, bytes),
            Self::Publication(broadcast, delta_mode) => {
                let message = broadcast.message_in(*delta_mode, encoding);
                json(encoding, message.expect("delivered only if it exists"))
            }
            Self::PingFrame => "ping frame".into(),
            Self::Disconnect(disconnect) => format!("x {} {}", disconnect.code, disconnect.reason),
        }
    }
}

impl Outbox for Record {
    fn send(&mut self, connection: ConnectionKey, message: &[u8]) {
        self.effects.push((connection.index, Effect::Message(message.to_vec())));
    }

    fn recovered(
        &mut self,
        connection: ConnectionKey,
        _subscription: SubscriptionIndex,
        channel: &str,
    ) {
        self.recovered.push((self.effects.len(), connection.index, channel.to_owned()));
    }

    fn ended(&mut self, connection: u32, moved: MovedSubscription) {
        self.ended.push((connection, moved.to.0, moved.from.0));
    }

    fn deliver(
        &mut self,
        connection: u32,
        _: SubscriptionIndex,
        broadcast: &Arc<Broadcast>,
        delta_mode: DeltaMode,
    ) {
        self.effects.push((connection, Effect::Publication(Arc::clone(broadcast), delta_mode)));
    }

    fn offload(&mut self, encode_job: EncodeJob) {
        match &mut self.encode_jobs {
            Some(kept) => kept.push(encode_job),
            None => encode_job.run(),
        }
    }

    fn ping(&mut self, connection: ConnectionKey) {
        self.effects.push((connection.index, Effect::PingFrame));
    }

    fn disconnect(&mut self, connection: ConnectionKey, disconnect: &Disconnect) {
        self.effects.push((connection.index, Effect::Disconnect(disconnect.clone())));
    }
}

/// A reply that holds missed publications, not as deltas, is followed by the channels they are of, and no other message is.
fn check_recovered(message: &str, connection: u32, told: Vec<(u32, String)>) {
    let reply: serde_json::Value = serde_json::from_str(message).unwrap_or_default();
    let missed = |result: &serde_json::Value| {
        let is_page = !result["phase"].is_null();
        result["publications"].is_array() && result["delta"] != true && !is_page
    };
    let of_connect = [&reply, &reply["push"]].map(|it| it["connect"]["subs"].as_object());
    let of_connect = of_connect.into_iter().flatten().flatten();
    let mut expect: Vec<_> = of_connect
        .filter(|(_, result)| missed(result))
        .map(|(channel, _)| (connection, channel.clone()))
        .collect();
    if missed(&reply["subscribe"]) {
        // The reply to a subscribe does not name its channel.
        expect.extend(told.first().map(|(_, channel)| (connection, channel.clone())));
        assert_eq!(expect.len(), 1, "{message}");
    }
    if !reply["push"]["pub"].is_null() && !told.is_empty() {
        let channel = reply["push"]["channel"].as_str().expect("a push names its channel");
        expect.push((connection, channel.to_owned())); // the last one missed by a subscription of the server
    }
    let mut told = told;
    told.sort();
    assert_eq!(told, expect, "{message}");
}

/// JSON commands as one Protobuf frame.
pub(crate) fn protobuf(text: &str) -> Vec<u8> {
    let mut frame = Vec::new();
    for command in Commands::new(Encoding::Json, text.as_bytes()) {
        let command: Command = command.expect("tests say good JSON");
        command.encode_length_delimited(&mut frame).expect("a Vec grows");
    }
    frame
}

/// One message as JSON text, whatever it was encoded in.
pub(crate) fn json(encoding: Encoding, message: &[u8]) -> String {
    let mut text = message.to_vec();
    if encoding == Encoding::Protobuf {
        let reply = Reply::decode_length_delimited(message).expect("one message of Protobuf");
        text.clear();
        encode_reply(Encoding::Json, &reply, &mut text).expect("payloads of tests are JSON");
    }
    String::from_utf8(text).expect("JSON is text")
}
