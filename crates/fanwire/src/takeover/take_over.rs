//! The new program's side: it gets ready, takes everything, and serves.
//! In: messages of the old program → out: listeners at the start, then the engine and connections in shards that stand still.
//! Uses the link. Never: serves before it has everything, unless the old program has ended.
//! Changed here: what the new program does with each message. The old program's side is `hand_over`.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use fanwire_fanout::Shards;
use fanwire_shard::{FrozenShards, MovedConnections};

use super::link::{LinkMessage, MessageKind, ProgramLink};
use super::{FORMAT, Hello, RECORDS, RedisSide, SNAPSHOT_LOCK, VARIABLE};

/// A takeover from a running server, which goes on to serve until this program has everything. For
/// [`Builder::take_over`](crate::Builder::take_over).
pub struct Takeover {
    link: ProgramLink,
    /// The version of the old program.
    version: String,
    inherited: Inherited,
}

/// What the old program gives before this one is ready.
#[derive(Default)]
pub(crate) struct Inherited {
    pub(crate) listeners: InheritedListeners,
    pub(crate) snapshot_lock: Option<File>,
    /// The id of the node.
    pub(crate) node: Option<String>,
    /// The kind of the engine.
    pub(crate) engine: Option<String>,
}

/// The listeners of another program, by their names.
#[derive(Default)]
pub(crate) struct InheritedListeners(Vec<(String, TcpListener)>);

impl InheritedListeners {
    /// The listener of this name, if it listens where it is to.
    pub(crate) fn take(&mut self, name: &str, wanted: SocketAddr) -> Option<TcpListener> {
        let listens = |listener: &TcpListener| {
            listener.local_addr().is_ok_and(|address| {
                address.ip() == wanted.ip() && [0, address.port()].contains(&wanted.port())
            })
        };
        let at = self.0.iter().position(|(of, listener)| of == name && listens(listener))?;
        Some(self.0.swap_remove(at).1)
    }
}

impl Takeover {
    /// The takeover for which [`Server::hand_over`](crate::Server::hand_over) has started this process, if it has.
    ///
    /// # Errors
    /// The old program hands over in another format, or the standard input is no takeover.
    pub fn of_process() -> io::Result<Option<Self>> {
        if std::env::var_os(VARIABLE).is_none() {
            return Ok(None);
        }
        let socket = io::stdin().as_fd().try_clone_to_owned()?;
        match Self::of_socket(socket.into()) {
            // The old program has ended, so this one starts as if there had been none.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
            taken => taken.map(Some),
        }
    }

    pub(crate) fn of_socket(socket: UnixStream) -> io::Result<Self> {
        let mut link = ProgramLink::new(socket);
        let LinkMessage { kind, payload, descriptors } = link.receive()?;
        let decoded: Option<Hello> = serde_json::from_slice(&payload).ok();
        let is_understood = |hello: &Hello| {
            kind == MessageKind::Hello && hello.format == FORMAT && hello.records == RECORDS
        };
        let Some(hello) = decoded.filter(is_understood) else {
            let reason = "the old program hands over in another format: restart instead";
            link.send(MessageKind::Refused, reason.as_bytes(), &[])?;
            return Err(io::Error::new(ErrorKind::InvalidData, reason));
        };
        let mut named: Vec<(String, OwnedFd)> =
            hello.descriptors.into_iter().zip(descriptors).collect();
        let lock = named.iter().position(|(name, _)| name == SNAPSHOT_LOCK);
        let snapshot_lock = lock.map(|at| File::from(named.swap_remove(at).1));
        let listener = |(name, descriptor)| (name, TcpListener::from(descriptor));
        let listeners = InheritedListeners(named.into_iter().map(listener).collect());
        let inherited = Inherited {
            listeners,
            snapshot_lock,
            node: Some(hello.node),
            engine: Some(hello.engine),
        };
        Ok(Self { link, version: hello.version, inherited })
    }

    /// Returns what the old program has given.
    pub(crate) fn inherited(&mut self) -> Inherited {
        std::mem::take(&mut self.inherited)
    }

    /// Tells the old program why this one cannot serve. It goes on.
    pub fn refuse(mut self, reason: &str) {
        // Without the old program there is no one to tell.
        let _ = self.link.send(MessageKind::Refused, reason.as_bytes(), &[]);
    }

    /// Takes everything, and lets the shards serve. `restore` gets the engine. Blocks.
    pub(crate) fn run(
        mut self,
        shards: &Shards,
        redis: Option<&RedisSide>,
        restore: impl FnOnce(&mut dyn Read) -> io::Result<()>,
    ) {
        let mut frozen = shards.freeze(Duration::ZERO, || {});
        match self.receive(redis, restore, &mut frozen) {
            Ok(connections) => {
                // Without the old program this one goes on all the same.
                let _ = self.link.send(MessageKind::Serving, &[], &[]);
                tracing::info!(connections, of = self.version, "taken over");
            }
            Err(error) => {
                // If the old program lives, it goes on and ends this one, which waits for that or for the other's end.
                let _ = self.link.send(MessageKind::Refused, error.to_string().as_bytes(), &[]);
                while self.link.receive().is_ok() {}
                frozen.close_taken();
                tracing::error!(
                    %error,
                    "the old program ended before everything had come: this one serves without its connections"
                );
            }
        }
    }

    /// Gives the engine to `restore`, and the connections to the shards, which take some while others come. Returns how many there are.
    fn receive(
        &mut self,
        redis: Option<&RedisSide>,
        restore: impl FnOnce(&mut dyn Read) -> io::Result<()>,
        frozen: &mut FrozenShards,
    ) -> io::Result<usize> {
        self.link.send(MessageKind::Ready, &[], &[])?;
        let channels = redis.map(|redis| redis.subscribe(&mut self.link)).transpose()?;
        let mut engine =
            EngineReader { link: &mut self.link, part: Vec::new(), read: 0, is_over: false };
        restore(&mut engine)?;
        io::copy(&mut engine, &mut io::sink())?;
        loop {
            let LinkMessage { kind, payload: records, descriptors: sockets } =
                self.link.receive()?;
            match kind {
                MessageKind::Connections => frozen.take(MovedConnections { records, sockets }),
                MessageKind::Complete => break,
                _ => return Err(ErrorKind::InvalidData.into()),
            }
        }
        // Who publishes from now on reaches all of them.
        let connections = frozen.wait();
        if let Some((redis, channels)) = redis.zip(channels) {
            redis.complete(&channels)?;
        }
        Ok(connections)
    }
}

/// The engine, in parts, up to an empty one.
struct EngineReader<'a> {
    link: &'a mut ProgramLink,
    part: Vec<u8>,
    /// Bytes of the part.
    read: usize,
    is_over: bool,
}

impl Read for EngineReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.part.len() && !self.is_over {
            let LinkMessage { kind, payload, .. } = self.link.receive()?;
            if kind != MessageKind::Engine {
                return Err(ErrorKind::InvalidData.into());
            }
            self.is_over = payload.is_empty();
            self.part = payload;
            self.read = 0;
        }
        let read = (&self.part[self.read..]).read(buffer)?;
        self.read += read;
        Ok(read)
    }
}
