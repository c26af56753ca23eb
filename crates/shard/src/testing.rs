//! One shard on the thread of a test, which runs its turns.
//! In: an application, sockets with the first bytes of their peers → out: the effects of turns, and the counters.
//! Uses the loop of the shard. Never: part of a build that is not a test (feature `testing`); threads, handshakes.
//! Changed here: what a test may do in the place of a thread. A `ConnectionWriter` alone is in `connection_writer/testing.rs`.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use mio::{Events, Poll, Waker};

use crate::counters::ShardCounters;
use crate::inbox::Inboxes;
use crate::turn::{Turn, WAKER};
use crate::{
    Application, Arrival, Compression, ConnectionWriter, Inbox, InputLimits, NewConnection, Peer,
    Permit, ShardMessage, ShardSettings, Stop, prepare,
};

/// One shard without a thread.
pub struct TestShard<A: Application>(Turn<A>);

impl<A: Application> TestShard<A> {
    /// A shard with the application that `make` makes for its inbox.
    ///
    /// # Panics
    /// If the system gives no poller.
    pub fn new(
        settings: ShardSettings,
        make: impl FnOnce(Inbox<A::Notice, A::Opening>) -> A,
    ) -> Self {
        let poll = Poll::new().expect("a poller");
        let inbox = Inbox::new(Waker::new(poll.registry(), WAKER).expect("a waker"));
        let application = make(inbox.clone());
        let inboxes = Inboxes { all: vec![inbox], own: 0 };
        let out = ConnectionWriter::for_test(settings);
        Self(Turn::new(application, out, poll, inboxes, InputLimits::default()))
    }

    /// Opens a connection whose peer has sent `early` already.
    ///
    /// # Panics
    /// If the socket is closed.
    pub fn open(
        &mut self,
        socket: TcpStream,
        early: Vec<u8>,
        compression: Compression,
        opening: A::Opening,
    ) {
        prepare(&socket).expect("an open socket");
        self.0.open(Arrival {
            socket,
            tls: None,
            early,
            connection: NewConnection {
                compression,
                ..NewConnection::raw(
                    Peer::default(),
                    opening,
                    Permit::acquire(&Arc::default(), 0).expect("no limit"),
                )
            },
        });
    }

    /// Starts the stop of the shard.
    pub fn stop(&mut self, stop: Stop) {
        self.0.serve(ShardMessage::Stop(stop));
    }

    /// Runs one turn without events of sockets.
    pub fn turn(&mut self) {
        self.0.turn(&mut Events::with_capacity(1));
    }

    /// Runs one turn with the next events of sockets, after `timeout` without.
    pub fn turn_with_events(&mut self, timeout: Duration) {
        self.0.turn_with_events(timeout);
    }

    /// Whether frames are still to be written.
    pub fn is_busy(&self) -> bool {
        self.0.is_busy()
    }

    /// The counters of the shard.
    pub fn counters(&self) -> &ShardCounters {
        self.0.counters()
    }
}
