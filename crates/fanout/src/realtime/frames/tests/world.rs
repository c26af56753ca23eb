//! A shard without its thread, with clients at the other ends of its sockets.
//! In: steps → out: streams of bytes, read by clients that inflate with stock zlib and zlib-rs.
//! Uses the application, the `ConnectionWriter` and `compression` as a server does; expectations come from a plain model.
//! Changed here: how steps run and streams are read.

use std::{
    collections::HashMap,
    io::{ErrorKind, Read},
    net::{TcpListener, TcpStream},
    sync::Arc,
    time::Instant,
};

use fanwire_broker::{Position, PublishOptions};
use fanwire_deflate::Shadow;
use fanwire_node::{
    Broadcast, CommandSource, ConnectionInfo, DeltaMode, Inbox, Node, NodeParts, Notice, Options,
    SubscriptionIndex,
    options::{CompressionPolicy, Namespace, RecoveryMode},
};
use fanwire_protocol::{Encoding, Publication, bare_push, encode_publication};
use flate2::Decompress;
use parking_lot::Mutex;

use super::body::{Body, is_reply, with_length};
use super::{
    inputs::{Plan, Step, name, noise, protobuf, with_history},
    reader::Reader,
};
use crate::{
    compression::{ContextSettings, Contexts, Policies},
    realtime::{
        EncodeWorker, Realtime, last_message,
        testing::{frames, inflate},
    },
};
use fanwire_shard::{
    Application, Budget, Coding, ConnectionWriter, Framing, ReceivedMessage, ShardSettings,
    SlotKey, Transport,
};

pub(super) struct World {
    pub(super) contexts: Arc<Contexts>,
    node: Arc<Node>,
    notices: Arc<NoticeInbox>,
    realtime: Realtime,
    out: ConnectionWriter,
    listener: TcpListener,
    clients: Vec<Client>,
    /// The top of each channel's stream.
    tops: HashMap<String, Position>,
}

#[derive(Default)]
struct NoticeInbox(Mutex<Vec<Notice>>);

impl Inbox for NoticeInbox {
    fn push(&self, notice: Notice) {
        self.0.lock().push(notice);
    }
}

struct Client {
    key: SlotKey,
    transport: Transport,
    encoding: Encoding,
    socket: TcpStream,
    channels: Vec<String>,
    /// The messages that it must get; `None` is a reply, whose content is not compared.
    expected: Vec<Option<Vec<u8>>>,
    stream: Vec<u8>,
    /// Body of a response, whose bytes are not in `stream`.
    body: Option<Body>,
    window_bits: u8,
    with_deltas: bool,
}

impl World {
    /// `memory` bytes for histories and compressors of single connections, `gaps_max` distinct frames per broadcast.
    pub(super) fn new(memory: usize, gaps_max: usize) -> Self {
        Self::verifying(memory, gaps_max, true)
    }

    /// Creates a world as `new` does. With `verify` the shard inflates every compressed frame itself, too.
    pub(super) fn verifying(memory: usize, gaps_max: usize, verify: bool) -> Self {
        let mut options = Options::default();
        options.client.insecure = true;
        let open = &mut options.channel.without_namespace;
        open.allowed_delta_types = vec![Namespace::FOSSIL.into()];
        open.delta_publish = true;
        open.keep_latest_publication = true;
        let namespace = |name: &str, compression| Namespace {
            name: name.to_owned(),
            compression,
            ..Namespace::default()
        };
        options.channel.namespaces = vec![
            namespace("off", CompressionPolicy::Off),
            namespace("standalone", CompressionPolicy::Standalone),
            with_history("stream", RecoveryMode::Stream),
            with_history("cache", RecoveryMode::Cache),
        ];
        let memory = Budget::new(memory);
        let contexts = Arc::new(Contexts::new(ContextSettings {
            policies: Policies::new(&options.channel),
            level: 6,
            min_bytes: 64,
            gaps_max,
            memory: memory.clone(),
        }));
        let parts = NodeParts { prepare: Some(contexts.clone()), ..NodeParts::default() };
        let node = Node::with_parts(options, Instant::now(), crate::clock::unix_ms(), parts);
        let node = node.expect("good options");
        let notices = Arc::new(NoticeInbox::default());
        let realtime = Realtime::new(
            node.clone(),
            node.attach(notices.clone()),
            contexts.clone(),
            EncodeWorker::default(),
        );
        let mut settings = ShardSettings {
            compression_min_bytes: 64,
            compression_verify: verify,
            queue_bytes_max: 1 << 26,
            last_message,
            ..ShardSettings::default()
        };
        settings.dedicated.memory = memory;
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let out = ConnectionWriter::for_test(settings);
        let (clients, tops) = Default::default();
        Self { contexts, node, notices, realtime, out, listener, clients, tops }
    }

    pub(super) fn open(&mut self, plan: &Plan) {
        self.open_as(plan, None);
    }

    /// Opens a response; the compression of the plan does not count.
    pub(super) fn open_body(&mut self, plan: &Plan, transport: Transport, coding: Option<Coding>) {
        self.open_as(plan, Some((transport, coding)));
    }

    fn open_as(&mut self, plan: &Plan, body: Option<(Transport, Option<Coding>)>) {
        let address = self.listener.local_addr().expect("bound");
        let socket = TcpStream::connect(address).expect("listening");
        socket.set_nonblocking(true).expect("a socket");
        let (peer, _) = self.listener.accept().expect("a peer is waiting");
        let transport = body.map_or(Transport::WebSocket, |(transport, _)| transport);
        let has_binary = matches!(transport, Transport::WebSocket | Transport::HttpStream);
        let is_binary = plan.is_binary && has_binary;
        let body = body.filter(|_| transport.framing() != Framing::WebSocket);
        let key = match body {
            None => self.out.open_for_test(peer, is_binary, plan.compression),
            Some((transport, coding)) => {
                self.out.open_body_for_test(peer, transport, is_binary, coding, b"")
            }
        };
        self.out.set_transport_for_test(key, transport);
        let encoding = if is_binary { Encoding::Protobuf } else { Encoding::Json };
        let hello = ConnectionInfo {
            encoding,
            frame_ping: true,
            transport: "websocket",
            command_source: match transport.is_unidirectional() {
                true => CommandSource::None,
                false => CommandSource::Connection,
            },
            user: None,
            last_event_id: None,
            headers: Vec::new(),
        };
        self.realtime.open(key, hello.into(), Instant::now(), &mut self.out);
        let window_bits = plan.compression.window_bits().unwrap_or(15);
        let (channels, expected, stream) = Default::default();
        let with_deltas = plan.with_deltas;
        let body = body.map(|(transport, coding)| Body::new(transport, encoding, coding));
        self.clients.push(Client {
            key,
            transport,
            encoding,
            socket,
            channels,
            expected,
            stream,
            body,
            window_bits,
            with_deltas,
        });
        let number = self.clients.len() - 1;
        if transport.is_unidirectional() {
            return self.connect(number, plan);
        }
        self.command(number, "{\"id\":1,\"connect\":{}}", b"\x04\x08\x01\x22\x00");
        for (channel, is_member) in plan.channels.iter().enumerate() {
            if *is_member {
                self.subscribe(number, &name(channel));
            }
        }
    }

    /// The connect request of a client without commands; in channels with history it missed two publications.
    fn connect(&mut self, client: usize, plan: &Plan) {
        let members = plan.channels.iter().enumerate().filter(|(_, is_member)| **is_member);
        let channels: Vec<String> = members.map(|(channel, _)| name(channel)).collect();
        let subs = channels.iter().map(|channel| {
            let Position { offset, epoch } = self.tops.get(channel).copied().unwrap_or_default();
            let offset = offset.saturating_sub(2);
            format!(r#""{channel}":{{"recover":true,"offset":{offset},"epoch":"{epoch}"}}"#)
        });
        let request = format!(r#"{{"subs":{{{}}}}}"#, subs.collect::<Vec<_>>().join(","));
        self.clients[client].channels = channels;
        self.command(client, &request, b"");
    }

    pub(super) fn take(&mut self, step: &Step) {
        match step {
            Step::Toggle { client, .. } | Step::Return { client, .. }
                if self.clients[client % self.clients.len()].transport.is_unidirectional() => {}
            Step::Publish { channel, seed, rows } => self.publish(&name(*channel), *seed, *rows),
            Step::Json { channel, text } => self.publish_json(&name(*channel), text),
            Step::Noise { channel, bytes } => {
                self.publish_data(&name(*channel), format!("\"{}\"", noise(*bytes)));
            }
            Step::Reply { client, bytes } => self.reply(client % self.clients.len(), *bytes),
            Step::Toggle { client, channel } => {
                let (client, channel) = (client % self.clients.len(), name(*channel));
                if self.clients[client].channels.contains(&channel) {
                    self.unsubscribe(client, &channel);
                } else {
                    self.subscribe(client, &channel);
                }
            }
            Step::Return { client, behind } => self.return_to(client % self.clients.len(), *behind),
            Step::Open(plan) => self.open(plan),
            Step::OpenBody(plan, (transport, coding)) => self.open_body(plan, *transport, *coding),
            Step::Sweep => {
                self.contexts.sweep(|channel| self.node.channels().has_subscribers(channel))
            }
        }
    }

    pub(super) fn publish(&mut self, channel: &str, seed: u32, rows: usize) {
        let row =
            |at: usize| format!(r#"{{"row":{at},"score":{}}}"#, (seed as usize / 7 + at) % 50);
        let rows: Vec<String> = (0..rows).map(row).collect();
        self.publish_data(channel, format!(r#"{{"seed":{seed},"rows":[{}]}}"#, rows.join(",")));
    }

    /// Publishes a JSON text, of which clients must be sent the same value.
    fn publish_json(&mut self, channel: &str, text: &str) {
        let publication = Publication { data: text.to_owned().into(), ..Publication::default() };
        let message = encode_publication(Encoding::Json, channel, &publication).expect("JSON");
        let [sent, published] = [&message[..], text.as_bytes()]
            .map(|text| serde_json::from_slice::<serde_json::Value>(text).expect("JSON"));
        assert_eq!(sent["push"]["pub"]["data"], published);
        self.publish_data(channel, text.to_owned());
    }

    fn publish_data(&mut self, channel: &str, data: String) {
        let mut publication = Publication { data: data.into(), ..Publication::default() };
        let (now, options) = (Instant::now(), PublishOptions::default());
        let accepted = self.node.channels().publish(channel, publication.clone(), options, now);
        let position = accepted.wait().expect("a good channel");
        self.tops.insert(channel.to_owned(), position);
        publication.offset = position.offset;
        if position.offset == 1 {
            publication.epoch = position.epoch.to_string();
        }
        for client in &mut self.clients {
            if client.channels.iter().any(|own| own == channel) {
                let message = encode_publication(client.encoding, channel, &publication);
                client.expect(&message.expect("JSON"));
            }
        }
        self.serve_notices();
        self.flush();
    }

    /// Delivers publications, and replies that were encoded outside the shard because they are large.
    fn serve_notices(&mut self) {
        let notices = std::mem::take(&mut *self.notices.0.lock());
        for (at, notice) in (1..).zip(&notices) {
            self.out.serve_last_for_test(at == notices.len());
            self.realtime.notice(notice.clone(), Instant::now(), &mut self.out);
        }
        self.out.serve_last_for_test(false);
    }

    /// Publishes `count` times, one after another in one turn, as to a client whose subscription was pending.
    pub(super) fn publish_late(&mut self, channel: &str, count: u32) {
        let broadcasts = self.accept(channel, count);
        for client in &mut self.clients {
            for broadcast in &broadcasts {
                client.expect(broadcast.message(client.encoding).expect("JSON"));
                let frames = &mut self.realtime.frames;
                frames.deliver(
                    client.key.index,
                    SubscriptionIndex(0),
                    broadcast,
                    DeltaMode::Plain,
                    &mut self.out,
                );
            }
        }
        self.realtime.frames.finish();
        self.flush();
    }

    /// Publishes `count` times to all clients in one turn.
    pub(super) fn publish_at_once(&mut self, channel: &str, count: u32) {
        for broadcast in &self.accept(channel, count) {
            for client in &mut self.clients {
                let message = broadcast.message(client.encoding).expect("JSON").to_vec();
                client.expected.push(Some(message));
            }
            let receivers =
                self.clients.iter().map(|client| (client.key.index, SubscriptionIndex(0)));
            self.realtime.frames.deliver_to_all(receivers, broadcast, &mut self.out);
        }
        self.realtime.frames.finish();
        self.flush();
    }

    /// Delivers each publication twice to each client, one after the other in one list.
    pub(super) fn publish_twice(&mut self, channel: &str) {
        for broadcast in &self.accept(channel, 1) {
            for client in &mut self.clients {
                let message = broadcast.message(client.encoding).expect("JSON").to_vec();
                client.expected.extend([Some(message.clone()), Some(message)]);
            }
            let receivers = self
                .clients
                .iter()
                .flat_map(|client| [(client.key.index, SubscriptionIndex(0)); 2]);
            self.realtime.frames.deliver_to_all(receivers, broadcast, &mut self.out);
        }
        self.realtime.frames.finish();
        self.flush();
    }

    fn accept(&mut self, channel: &str, count: u32) -> Vec<Arc<Broadcast>> {
        let mut broadcasts = Vec::new();
        for seed in 0..count {
            let data = format!(r#"{{"seed":{seed}}}"#);
            let publication = Publication { data: data.into(), ..Publication::default() };
            let (now, options) = (Instant::now(), PublishOptions::default());
            let accepted = self.node.channels().publish(channel, publication, options, now);
            accepted.wait().expect("a good channel");
            for notice in std::mem::take(&mut *self.notices.0.lock()) {
                let Notice::Broadcast(broadcast) = notice else { panic!("a broadcast") };
                broadcasts.push(broadcast);
            }
        }
        broadcasts
    }

    pub(super) fn subscribe(&mut self, client: usize, channel: &str) {
        self.subscribe_all(client, &[channel], 0);
    }

    /// Subscribes in one message; to channels with history as a client that missed the last `behind` publications.
    pub(super) fn subscribe_all(&mut self, client: usize, channels: &[&str], behind: u64) {
        let (mut json, mut bytes) = (Vec::new(), Vec::new());
        for channel in channels {
            let Position { offset, epoch } = self.tops.get(*channel).copied().unwrap_or_default();
            let (offset, mut request) = (offset.saturating_sub(behind), Vec::new());
            let mut options = String::new();
            if channel.contains(':') {
                options = format!(r#","recover":true,"offset":{offset},"epoch":"{epoch}""#);
                request.extend([0x18, 1, 0x32, epoch.as_str().len() as u8]);
                request.extend_from_slice(epoch.as_str().as_bytes());
                request.extend([0x38, offset as u8 | 0x80, (offset >> 7) as u8]);
            } else if self.clients[client].with_deltas {
                options = r#","delta":"fossil""#.to_owned();
                request.extend(b"\x62\x06fossil");
            }
            json.push(format!(r#"{{"id":2,"subscribe":{{"channel":"{channel}"{options}}}}}"#));
            bytes.extend(protobuf(2, 0x2a, channel, &request));
            self.clients[client].channels.push((*channel).to_owned());
        }
        self.command(client, &json.join("\n"), &bytes);
    }

    pub(super) fn leave(&mut self, client: usize, channels: &[&str]) {
        channels.iter().for_each(|channel| self.unsubscribe(client, channel));
    }

    fn return_to(&mut self, client: usize, behind: u64) {
        let channels = ["stream:c3", "cache:c4"];
        for channel in channels {
            if self.clients[client].channels.iter().any(|own| own == channel) {
                self.unsubscribe(client, channel);
            }
        }
        self.subscribe_all(client, &channels, behind);
    }

    fn unsubscribe(&mut self, client: usize, channel: &str) {
        let json = format!(r#"{{"id":3,"unsubscribe":{{"channel":"{channel}"}}}}"#);
        self.command(client, &json, &protobuf(3, 0x32, channel, &[]));
        self.clients[client].channels.retain(|own| own != channel);
    }

    /// A reply to one client, of about this size; compressed if it is long enough.
    fn reply(&mut self, client: usize, bytes: usize) {
        let client = &mut self.clients[client];
        let mut message = "reply ".repeat(bytes / 6 + 1).into_bytes();
        if client.transport == Transport::UniEventStream {
            self.out.send(client.key, &[b"data: ", &message[..], b"\n\n"].concat());
            client.expected.push(Some(message));
            return self.flush();
        }
        if client.body.is_some() && client.encoding == Encoding::Protobuf {
            message = with_length(&message);
        }
        self.out.send(client.key, &message);
        client.expected.push(Some(message));
        self.flush();
    }

    fn command(&mut self, client: usize, json: &str, protobuf: &[u8]) {
        let (key, encoding) = (self.clients[client].key, self.clients[client].encoding);
        let message = match encoding {
            Encoding::Json => ReceivedMessage::Text(json),
            Encoding::Protobuf => ReceivedMessage::Binary(protobuf),
        };
        self.realtime.receive(key, message, Instant::now(), &mut self.out);
        self.serve_notices();
        self.clients[client].expected.push(None);
        self.flush();
    }

    /// Writes, and reads at the other ends until nothing is left to write.
    fn flush(&mut self) {
        self.out.flush_for_test();
        for client in &mut self.clients {
            client.read();
            self.out.writable_for_test(client.key);
        }
        self.out.flush_for_test();
    }

    /// Checks that every client got all of its messages and that no frame is left; bodies are ended for that. Returns how
    /// many deltas they got.
    pub(super) fn check(&mut self) -> usize {
        let mut deltas = 0;
        assert_eq!(
            self.out.counters_for_test().verify_failures.value(),
            0,
            "held back by verification"
        );
        for client in self.clients.iter_mut().filter(|client| client.body.is_some()) {
            let format = self
                .out
                .connection(client.key.index)
                .map(fanwire_shard::Connection::format)
                .expect("an open connection");
            self.out.close(client.key, 3000, "end");
            let last = last_message(format, 3000, "end");
            let event = last.strip_prefix(b"data: ").and_then(|it| it.strip_suffix(b"\n\n"));
            client.expected.push(Some(event.unwrap_or(&last).to_vec()));
        }
        while self.out.is_busy_for_test() {
            self.flush();
        }
        self.flush();
        for client in &mut self.clients {
            if let Some(body) = &client.body {
                deltas += client.check_body(body);
                continue;
            }
            let expected: usize = client.expected.len();
            while frames(&client.stream).count() < expected {
                client.read();
            }
            deltas += client.check();
        }
        deltas
    }
}

impl Client {
    /// Receives this message, or its push alone.
    fn expect(&mut self, message: &[u8]) {
        let text = match self.transport.is_unidirectional() {
            true => bare_push(self.encoding, message).expect("a push"),
            false => message,
        };
        self.expected.push(Some(text.to_vec()));
    }

    fn read(&mut self) {
        let mut buffer = [0; 1 << 16];
        loop {
            match self.socket.read(&mut buffer) {
                Ok(0) if self.body.is_some() => return,
                Ok(0) => panic!("the connection was closed"),
                Ok(count) => match &mut self.body {
                    Some(body) => body.receive(&buffer[..count]),
                    None => self.stream.extend_from_slice(&buffer[..count]),
                },
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Checks the body of a response as [`check`](Self::check) does a stream.
    fn check_body(&self, body: &Body) -> usize {
        assert!(body.is_complete(), "the trailer");
        let (mut reader, mut deltas) = (Reader::default(), 0);
        let mut expected = self.expected.iter().flatten();
        for message in body.messages() {
            let (message, is_delta) = self.read_by(&mut reader, message);
            deltas += usize::from(is_delta);
            let expected = expected.next().expect("nothing more than expected");
            assert_eq!(String::from_utf8_lossy(&message), String::from_utf8_lossy(expected));
        }
        assert!(expected.next().is_none(), "everything that was expected");
        deltas
    }

    /// A message without deltas, and whether it was one.
    fn read_by(&self, reader: &mut Reader, message: Vec<u8>) -> (Vec<u8>, bool) {
        if self.with_deltas { reader.read(self.encoding, message) } else { (message, false) }
    }

    /// Reads the stream as a client does, with one inflater that is never reset. Returns how many deltas there were.
    fn check(&self) -> usize {
        let (mut reader, mut deltas) = (Reader::default(), 0);
        let mut zlib = Decompress::new_with_window_bits(false, self.window_bits);
        let mut shadow = Shadow::new(self.window_bits);
        let (mut expected, mut was_reply) = (self.expected.iter().peekable(), false);
        for (head, payload) in frames(&self.stream) {
            let message = match head & 0x40 {
                0 => payload.to_vec(),
                _ => inflate(&mut zlib, payload),
            };
            if head & 0x40 != 0 {
                shadow.check(payload, &message).expect("zlib-rs reads the same, in the window");
            }
            // Large replies to the commands of one message come in several.
            let is_reply = is_reply(self.encoding, &message);
            if is_reply && was_reply && !matches!(expected.peek(), Some(None)) {
                continue;
            }
            was_reply = is_reply;
            match expected.next().expect("nothing more than expected") {
                Some(expected) => {
                    let (message, is_delta) = self.read_by(&mut reader, message);
                    deltas += usize::from(is_delta);
                    assert_eq!(String::from_utf8_lossy(&message), String::from_utf8_lossy(expected))
                }
                None => assert!(!message.is_empty()),
            }
        }
        assert!(expected.next().is_none(), "everything that was expected");
        deltas
    }
}
