//! Tests of compressed bodies: the decoder of a peer returns each message as soon as it arrives, and accepts the trailer.
//! In: random publications, replies and shared messages, on every transport of streams → out: what stock zlib makes of the bytes.
//! Uses a `ConnectionWriter` on the test's own thread, real sockets, and frames as `fanout` makes them; verifies each frame.
//! Changed here: expectations of bodies. What a stream may refer to is tested in `deflate`.

use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use fanwire_deflate::gap::{Depth, History};
use flate2::{Decompress, FlushDecompress, Status};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::connection::is_open;
use crate::{CloseCause, Frame, ShardSettings, StreamMessage, Transport, WindowIndex};

const CHANNELS: usize = 3;
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn every_message_arrives_with_its_frame_and_the_trailer_is_right(
        is_gzip: bool,
        kind in 0..3usize,
        steps in vec(step(), 1..40),
    ) {
        let coding = if is_gzip { Coding::Gzip } else { Coding::Deflate };
        let mut stream = Stream::open(coding, kind);
        for step in &steps {
            stream.take(step);
        }
        stream.end();
    }
}

#[test]
fn a_stream_whose_queue_was_dropped_ends_with_a_message_and_without_a_trailer() {
    for coding in [Coding::Gzip, Coding::Deflate] {
        let mut stream = Stream::open(coding, 0);
        stream.take(&Step::Publish { channel: 0, seed: 1, rows: 30 });
        let Stream { out, key, .. } = &mut stream;
        out.send(*key, b"a reply that is never sent");
        out.close_and_drop_queue(*key, 3008, "slow", CloseCause::Other);
        stream.receive(b"data: 3008 slow\n\n");
        assert_eq!(stream.zlib.total_in(), stream.bytes, "nothing follows the message");
        assert_ne!(stream.status, Status::StreamEnd);
    }
}

#[test]
fn a_stream_with_nothing_to_drop_ends_with_its_trailer() {
    let mut stream = Stream::open(Coding::Gzip, 0);
    stream.out.close_and_drop_queue(stream.key, 3008, "slow", CloseCause::Other);
    stream.receive(b"data: 3008 slow\n\n");
    assert_eq!(stream.status, Status::StreamEnd);
}

#[test]
fn a_body_without_a_coding_is_plain() {
    let (mut out, socket, mut peer) = connected();
    let key = out.open_body_for_test(socket, Transport::EventStream, false, None, HEAD);
    out.send(key, b"{}\n{}");
    out.close(key, 3000, "end");
    out.flush();
    drop(out);
    let mut received = String::new();
    peer.read_to_string(&mut received).expect("an orderly end");
    let body = received.strip_prefix("HTTP/1.1 200 OK\r\n\r\n").expect("the head");
    assert_eq!(body, "\ndata: {}\n\ndata: {}\n\ndata: 3000 end\n\n");
}

#[derive(Clone, Debug)]
enum Step {
    Publish {
        channel: usize,
        seed: u32,
        rows: usize,
    },
    /// A publication that is in no history, in a frame that streams share.
    Shared {
        rows: usize,
        may_compress: bool,
    },
    /// The last of these messages holds the newest publication of the channel.
    Replies {
        count: usize,
        rows: usize,
        channel: usize,
    },
    /// The last subscription moves to this index.
    Moved {
        to: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..CHANNELS, any::<u32>(), 0..60usize)
            .prop_map(|(channel, seed, rows)| Step::Publish { channel, seed, rows }),
        2 => (0..700usize, any::<bool>())
            .prop_map(|(rows, may_compress)| Step::Shared { rows, may_compress }),
        3 => (0..4usize, 0..20usize, 0..CHANNELS)
            .prop_map(|(count, rows, channel)| Step::Replies { count, rows, channel }),
        1 => (0..CHANNELS).prop_map(|to| Step::Moved { to }),
    ]
}

/// A response, and its peer.
struct Stream {
    out: ConnectionWriter,
    key: SlotKey,
    transport: Transport,
    is_binary: bool,
    histories: Vec<History>,
    peer: TcpStream,
    zlib: Decompress,
    status: Status,
    /// Of the body, as received.
    bytes: u64,
}

impl Stream {
    fn open(coding: Coding, kind: usize) -> Self {
        let kinds = [
            (Transport::EventStream, false),
            (Transport::HttpStream, false),
            (Transport::HttpStream, true),
        ];
        let (transport, is_binary) = kinds[kind];
        let (mut out, socket, mut peer) = connected();
        let key = out.open_body_for_test(socket, transport, is_binary, Some(coding), HEAD);
        out.flush();
        let mut head = vec![0; HEAD.len()];
        peer.read_exact(&mut head).expect("the head");
        assert_eq!(head, HEAD);
        let mut stream = Self {
            out,
            key,
            transport,
            is_binary,
            histories: (0..CHANNELS).map(|_| History::new(1 << 15, 4, 6)).collect(),
            peer,
            zlib: match coding {
                Coding::Gzip => Decompress::new_gzip(15),
                Coding::Deflate => Decompress::new(true),
            },
            status: Status::Ok,
            bytes: 0,
        };
        stream.receive(transport.framing().first_bytes());
        stream
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Publish { channel, seed, rows } => self.publish(channel, &state(seed, rows)),
            Step::Shared { rows, may_compress } => self.shared(&state(9, rows), may_compress),
            Step::Replies { count, rows, channel } => self.reply(count, rows, channel),
            Step::Moved { to } => {
                // Numbers of publications differ by channel, so the window of another one fits none of them.
                self.out
                    .connection_mut(self.key.index)
                    .expect("it is open")
                    .moved(WindowIndex(CHANNELS as u32 - 1), WindowIndex(to as u32));
            }
        }
    }

    fn publish(&mut self, channel: usize, message: &[u8]) {
        let window = WindowIndex(channel as u32);
        let (index, is_binary) = (self.key.index, self.is_binary);
        let Some(publication) = self.histories[channel].publish(message) else {
            return self.shared(message, true);
        };
        let envelope = self.transport.framing().envelope(is_binary);
        let reference =
            self.out.connection(index).expect("it is open").reference(window, &publication, 15);
        let parse = self.histories[channel].parse(&publication, reference.depth());
        let mut frame = Vec::new();
        if !parse.expect("the newest one").emit_in_stream(envelope, &reference, &mut frame) {
            frame = self
                .out
                .framers()
                .shared()
                .in_stream(self.transport, is_binary, true, message)
                .to_vec();
        }
        let shared = StreamMessage::new(self.transport.framing(), is_binary, message);
        let frame = Frame::from(frame);
        self.out.push_publication(index, window, &frame, message, &publication, Some(&shared));
        self.receive_message(message);
        let is_known = reference.depth() != Depth::Alone;
        assert!(!is_known || frame.len() < message.len() / 2 + 60, "in context");
    }

    fn shared(&mut self, message: &[u8], may_compress: bool) {
        let Self { out, key, transport, is_binary, .. } = self;
        let shared = StreamMessage::new(transport.framing(), *is_binary, message);
        let framer = out.framers().shared();
        let frame = framer.in_stream(*transport, *is_binary, may_compress, message).into();
        let format = out.connection(key.index).map(Connection::format).expect("it is open");
        // With the verification of frames this is never the short way.
        assert!(!out.push_if_same_format(key.index, format, &frame, message.len(), Some(&shared)));
        out.push(key.index, &frame, message, Some(&shared));
        self.receive_message(message);
    }

    fn reply(&mut self, count: usize, rows: usize, channel: usize) {
        let mut replies = vec![state(3, rows); count];
        let history = &mut self.histories[channel];
        let Some(newest) = history.newest() else { return };
        let part = newest.len() / 4..newest.len();
        let reply = [b"reply: [", &newest[part.clone()], b"]"].concat();
        let embedded_part = history.embed(part).expect("always the same part");
        replies.push(reply);
        let at = replies[..count].iter().map(|reply| reply.len() + 1).sum::<usize>() + 8;
        let message = replies.join(&b'\n');
        let window = WindowIndex(channel as u32);
        let embedded = [crate::EmbeddedPublication { window, at, embedded_part }];
        self.out.send_embedding(self.key, &message, &embedded);
        self.receive_message(&message);
    }

    fn receive_message(&mut self, message: &[u8]) {
        let mut expected = Vec::new();
        self.transport.encode(self.is_binary, message, &mut expected);
        self.receive(&expected);
    }

    /// Reads until `expected` has arrived; no byte of it comes with a later frame.
    fn receive(&mut self, expected: &[u8]) {
        self.out.flush();
        let mut received = vec![0; 64 << 10];
        let mut out = Vec::with_capacity(expected.len() + 64);
        while out.len() < expected.len() || self.out.is_busy_for_test() || self.is_ended() {
            self.out.writable_for_test(self.key);
            let count = self.peer.read(&mut received).expect("more bytes");
            if count == 0 {
                break;
            }
            self.bytes += count as u64;
            let flush = FlushDecompress::Sync;
            let status = self.zlib.decompress_vec(&received[..count], &mut out, flush);
            self.status = status.expect("a valid stream");
        }
        assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(expected));
    }

    /// The end of the stream is read to its last byte.
    fn is_ended(&self) -> bool {
        !is_open(&self.out.connections, self.key)
    }

    fn end(&mut self) {
        self.out.close(self.key, 3000, "end");
        self.receive_message(b"3000 end");
        assert_eq!(self.status, Status::StreamEnd, "the trailer is right");
        assert_eq!(self.zlib.total_in(), self.bytes);
        assert_eq!(self.out.counters.verify_failures.value(), 0);
    }
}

fn connected() -> (ConnectionWriter, TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    peer.set_read_timeout(Some(Duration::from_secs(10))).expect("not zero");
    let (socket, _) = listener.accept().expect("it has come");
    let settings = ShardSettings { compression_verify: true, ..ShardSettings::default() };
    (ConnectionWriter::for_test(settings), socket, peer)
}

fn state(seed: u32, rows: usize) -> Vec<u8> {
    let rows = (0..rows as u32).map(|row| {
        let score = if row % 7 == seed % 7 { seed % 100 } else { row };
        format!(r#"{{"player":"player {row}","score":{score},"team":"blue"}}"#)
    });
    format!(r#"{{"seq":{seed},"state":[{}]}}"#, rows.collect::<Vec<_>>().join(",")).into_bytes()
}
