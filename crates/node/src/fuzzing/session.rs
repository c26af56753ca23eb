//! Sessions of a small node under any bytes: two connections, another node, and time (client protocol §5).
//! In: bytes from a fuzzer, cut into steps. Out: nothing, or a panic that names the broken promise.
//! Uses the public face of this crate, with a shell that only looks; never sockets.
//! A new source of bytes becomes a kind of step; what a single reader promises stands in `fuzzing.rs`.

use std::mem::take;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_broker::{Answer, Bus};
use fanwire_policy::options::{Namespace, Options};
use fanwire_protocol::{Disconnect, Encoding, bare_push, is_json};
use parking_lot::Mutex;

use crate::{
    Broadcast, CommandSource, ConnectionInfo, ConnectionKey, Counts, DeltaMode, Hub, Inbox, Node,
    Notice, Outbox, SubscriptionIndex,
};

/// Steps of two connections and another node, beginning at `now`: a session that is gone receives nothing, what is sent is
/// well formed, and when all are gone nothing is left of them.
///
/// The first byte chooses what a namespace does and what the connections speak. The others are steps with
/// [`SEPARATOR`] between them, which begin with a byte that says whose they are.
pub fn sessions(bytes: &[u8], now: Instant) {
    let Some((&settings, steps)) = bytes.split_first() else { return };
    let mut harness = Harness::new(settings, now);
    for step in steps.split(|byte| *byte == SEPARATOR).take(STEPS_MAX) {
        let Some((&whose, bytes)) = step.split_first() else { continue };
        match whose % 5 {
            who @ (0 | 1) => harness.say(usize::from(who), bytes),
            2 => harness.wait(Duration::from_secs(bytes.len() as u64)),
            3 => {
                harness.node.handle_message(&[&[1], bytes].concat(), harness.now);
            }
            _ => harness.hub.pong(key(usize::from(whose) & 1), harness.now),
        }
        harness.settle();
    }
    harness.end();
}

struct Harness {
    node: Arc<Node>,
    hub: Hub,
    mailbox: Arc<Mailbox>,
    shell: Shell,
    now: Instant,
}

#[derive(Default)]
struct Mailbox(Mutex<Vec<Notice>>);

impl Inbox for Mailbox {
    fn push(&self, notice: Notice) {
        self.0.lock().push(notice);
    }
}

/// Carries nothing: messages of other nodes come in, and none goes out.
struct NoBus;

impl Bus for NoBus {
    fn send(&self, _to: Option<&str>, _message: Bytes) -> Answer<usize> {
        Answer::now(Ok(0))
    }
}

impl Harness {
    fn new(settings: u8, now: Instant) -> Self {
        let node =
            Node::starting_at(options(settings), now, 1_700_000_000_000).expect("good options");
        node.cluster().join(Arc::new(NoBus));
        let mailbox = Arc::<Mailbox>::default();
        let shard = node.attach(Arc::clone(&mailbox) as _);
        let hub = Hub::new(Arc::clone(&node), shard);
        let encodings = [settings & 1, settings >> 1 & 1].map(|bit| match bit {
            0 => Encoding::Json,
            _ => Encoding::Protobuf,
        });
        let frame_ping = settings & 0x80 != 0;
        // With native pings the second one is unidirectional, too.
        let uplinks = [false, frame_ping].map(|is_unidirectional| {
            if is_unidirectional { CommandSource::None } else { CommandSource::Connection }
        });
        let shell = Shell { encodings, uplinks, are_open: [true; 2] };
        let mut harness = Self { node, hub, mailbox, shell, now };
        for (who, encoding) in encodings.into_iter().enumerate() {
            let connection = ConnectionInfo {
                encoding,
                frame_ping,
                transport: "websocket",
                command_source: uplinks[who],
                user: None,
                last_event_id: None,
                headers: Vec::new(),
            };
            harness.hub.open(key(who), connection, now);
        }
        harness
    }

    fn say(&mut self, who: usize, frame: &[u8]) {
        if self.shell.are_open[who] {
            self.hub.receive(key(who), frame, self.now, &mut self.shell);
        }
    }

    fn wait(&mut self, duration: Duration) {
        let until = self.now + duration;
        while let Some(deadline) = self.hub.next_deadline().filter(|deadline| *deadline <= until) {
            self.now = self.now.max(deadline);
            self.hub.advance(self.now, &mut self.shell);
            self.settle();
        }
        self.now = until;
    }

    fn settle(&mut self) {
        for _ in 0..STEPS_MAX {
            let notices = take(&mut *self.mailbox.0.lock());
            if notices.is_empty() {
                return;
            }
            for notice in notices {
                self.hub.notice(notice, self.now, &mut self.shell);
            }
        }
    }

    fn end(mut self) {
        for who in 0..2 {
            self.hub.close(key(who), self.now);
        }
        self.settle();
        let history_bytes = self.node.counts().history_bytes;
        let nobody = Counts { history_bytes, ..Counts::default() };
        assert_eq!(self.node.counts(), nobody, "somebody is left");
    }
}

/// Sockets as the hub sees them.
struct Shell {
    encodings: [Encoding; 2],
    uplinks: [CommandSource; 2],
    are_open: [bool; 2],
}

impl Shell {
    fn check(&self, connection: u32, message: Option<&(impl AsRef<[u8]> + ?Sized)>) {
        let who = connection as usize;
        assert!(self.are_open[who], "spoken to after its end");
        let message = message.expect("something to be sent").as_ref();
        if self.encodings[who] == Encoding::Json {
            assert!(
                is_json(message) && !message.iter().any(|byte| matches!(byte, b'\n' | b'\r')),
                "not one line of JSON"
            );
        }
        let bare = bare_push(self.encodings[who], message);
        assert!(bare.is_some() || self.uplinks[who] != CommandSource::None, "not a push");
    }
}

impl Outbox for Shell {
    fn send(&mut self, connection: ConnectionKey, message: &[u8]) {
        self.check(connection.index, Some(message));
    }

    fn deliver(
        &mut self,
        connection: u32,
        _subscription: SubscriptionIndex,
        broadcast: &Arc<Broadcast>,
        delta_mode: DeltaMode,
    ) {
        let encoding = self.encodings[connection as usize];
        let whole = || {
            (delta_mode == DeltaMode::Patch)
                .then(|| broadcast.message_in(DeltaMode::Full, encoding))
        };
        self.check(connection, broadcast.message_in(delta_mode, encoding).or_else(|| whole()?));
    }

    fn ping(&mut self, connection: ConnectionKey) {
        assert!(self.are_open[connection.index as usize], "a ping after its end");
    }

    fn disconnect(&mut self, connection: ConnectionKey, _disconnect: &Disconnect) {
        let is_open = &mut self.are_open[connection.index as usize];
        assert!(take(is_open), "ended twice");
    }
}

fn key(who: usize) -> ConnectionKey {
    ConnectionKey { index: who as u32, generation: 1 }
}

/// A node that permits everything to every client; the bits of `settings` switch features of its channels.
fn options(settings: u8) -> Options {
    let mut options = Options::default();
    options.client.allow_anonymous_connect_without_token = true;
    options.client.insecure_skip_token_signature_verify = true;
    options.client.token.hmac_secret_key = "secret".into();
    let has = |bit: u8| settings >> bit & 1 == 1;
    let open = Namespace {
        allow_subscribe_for_client: true,
        allow_subscribe_for_anonymous: true,
        allow_publish_for_client: true,
        allow_publish_for_anonymous: true,
        allow_history_for_client: true,
        allow_history_for_anonymous: true,
        allow_presence_for_client: true,
        allow_presence_for_anonymous: true,
        allow_tags_filter: true,
        presence: has(2),
        join_leave: has(2),
        force_push_join_leave: has(3),
        history_size: if has(4) { 4 } else { 0 },
        history_ttl: Duration::from_secs(if has(4) { 60 } else { 0 }),
        allow_recovery: has(4),
        force_recovery: has(4) && has(5),
        allowed_delta_types: vec!["fossil".to_owned()],
        delta_publish: has(6),
        ..Namespace::default()
    };
    options.channel.namespaces = vec![Namespace { name: "ns".to_owned(), ..open.clone() }];
    options.channel.without_namespace = open;
    options
}

/// Most steps of one input.
const STEPS_MAX: usize = 64;

/// Between the parts of an input. UTF-8 does not have it.
const SEPARATOR: u8 = 0xff;
