//! One shard on the thread of a test, which takes its turns when it wants.
//! In: an application, sockets with the first bytes of their peers → out: what the turns do, and what they counted.
//! Uses the loop of the shard. Never: part of a build that is not a test (feature `testing`); threads, handshakes.
//! Change here: what a test may do in the place of a thread. An connection_writer alone is in `connection_writer/testing.rs`.

use std::net::TcpStream;
use std::sync::Arc;

use mio::{Events, Poll, Waker};

use crate::counters::ShardCounters;
use crate::inbox::Inboxes;
use crate::turn::{Turn, WAKER};
use crate::{
    Application, Arrival, Compression, ConnectionWriter, Inbox, Limits, Peer, Permit, Settings,
    ShardMessage, Stop, prepare,
};

/// One shard without a thread.
pub struct TestShard<A: Application>(Turn<A>);

impl<A: Application> TestShard<A> {
    /// A shard with the application that `make` makes for its inbox.
    ///
    /// # Panics
    /// When the system gives no poller.
    pub fn new(settings: Settings, make: impl FnOnce(Inbox<A::Notice, A::Hello>) -> A) -> Self {
        let poll = Poll::new().expect("a poller");
        let inbox = Inbox::new(Waker::new(poll.registry(), WAKER).expect("a waker"));
        let application = make(inbox.clone());
        let inboxes = Inboxes { all: vec![inbox], own: 0 };
        let out = ConnectionWriter::for_test(settings);
        Self(Turn::new(application, out, poll, inboxes, Limits::default()))
    }

    /// A connection whose peer has sent `early` already.
    ///
    /// # Panics
    /// When the socket is closed.
    pub fn open(&mut self, socket: TcpStream, early: Vec<u8>, hello: A::Hello) {
        prepare(&socket).expect("an open socket");
        self.0.open(Arrival {
            socket,
            early,
            is_binary: false,
            compression: Compression::Raw,
            may_inflate: false,
            peer: Peer::default(),
            hello,
            permit: Permit::acquire(&Arc::default(), 0).expect("no limit"),
        });
    }

    /// The shard is to end.
    pub fn stop(&mut self, stop: Stop) {
        self.0.serve(ShardMessage::Stop(stop));
    }

    /// One turn, whatever sockets are ready.
    pub fn turn(&mut self) {
        self.0.turn(&Events::with_capacity(1));
    }

    /// What the shard counted.
    pub fn counters(&self) -> &ShardCounters {
        self.0.counters()
    }
}
