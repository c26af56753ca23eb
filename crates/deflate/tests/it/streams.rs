//! A simulation of compressed streams: each decoder returns every message as soon as its bytes have arrived.
//! Random publications, replies, joins, losses → stock zlib's plaintext, and its check of the trailer.
//! Uses the gap coder and the standalone compressor as a shard does.
//! Changed here: what can happen on a stream. WebSocket messages are `clients`.

use std::collections::HashMap;

use fanwire_deflate::gap::{
    Depth, History, Publication, Reference, SubscriptionWindow, WindowCounter,
};
use fanwire_deflate::{
    Checksum, Coding, Compressor, Envelope, FLUSH_TAIL, Segment, end_stream, write_uncompressed,
};
use flate2::{Decompress, FlushDecompress, Status};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::channel::part;

const CHANNELS: usize = 3;

const EVENT: Envelope = Envelope { prefix: b"data: ", suffix: b"\n\n" };
const LINE: Envelope = Envelope { prefix: b"", suffix: b"\n" };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn every_message_arrives_with_its_frame_and_the_trailer_is_right(
        streams in vec((any::<bool>(), 0..3usize), 1..5),
        bytes_max in prop_oneof![Just(600usize), Just(8_192), Just(32_768)],
        depth in 1..=8usize,
        steps in vec(step(), 1..80),
    ) {
        let mut simulation = Simulation::new(&streams, bytes_max, depth);
        for step in &steps {
            simulation.take(step);
        }
        simulation.end();
    }
}

#[test]
fn a_publication_is_referred_to_until_it_leaves_the_window_of_the_stream() {
    for gap in [32_768 - 3_000, 32_768 - 300, 32_768 - 2, 32_768, 40_000] {
        let mut simulation = Simulation::new(&[(true, 0)], 32_768, 4);
        simulation.publish(0, &state(1, 40));
        let filler = vec![b'x'; gap - state(1, 40).len() - EVENT.bytes()];
        simulation.streams[0].other(&filler, &mut simulation.compressor);
        simulation.publish(0, &state(2, 40));
        simulation.end();
    }
}

#[test]
fn an_envelope_takes_five_bytes_in_context() {
    let sizes = |envelope| {
        let mut simulation = Simulation::new(&[(true, envelope)], 32_768, 1);
        for seed in 0..20 {
            simulation.publish(0, &state(seed, 4));
        }
        simulation.streams[0].last_bytes
    };
    // The newest publication alone, as in a stream without an envelope of one of several channels.
    let [event, line, none] = [0, 1, 2].map(sizes);
    assert!(event <= none + 5 && line <= none + 2, "{event}, {line}, {none}");
}

#[derive(Clone, Debug)]
enum Step {
    Publish {
        channel: usize,
        seed: u32,
        rows: usize,
    },
    Bytes {
        channel: usize,
        bytes: Vec<u8>,
    },
    Reply {
        stream: usize,
        rows: usize,
        is_compressed: bool,
    },
    Join {
        stream: usize,
        channel: usize,
    },
    /// The stream subscribes again, and the reply holds a part of the newest publication.
    Recover {
        stream: usize,
        channel: usize,
    },
    /// A publication that the stream does not get.
    Miss {
        stream: usize,
        channel: usize,
        seed: u32,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let channel = 0..CHANNELS;
    let both = || (0..5usize, 0..CHANNELS);
    prop_oneof![
        12 => (channel.clone(), any::<u32>(), 0..60usize)
            .prop_map(|(channel, seed, rows)| Step::Publish { channel, seed, rows }),
        2 => (channel, vec(any::<u8>(), 1..700))
            .prop_map(|(channel, bytes)| Step::Bytes { channel, bytes }),
        2 => (0..5usize, 0..400usize, any::<bool>())
            .prop_map(|(stream, rows, is_compressed)| Step::Reply { stream, rows, is_compressed }),
        1 => both().prop_map(|(stream, channel)| Step::Join { stream, channel }),
        2 => both().prop_map(|(stream, channel)| Step::Recover { stream, channel }),
        1 => (both(), any::<u32>())
            .prop_map(|((stream, channel), seed)| Step::Miss { stream, channel, seed }),
    ]
}

struct Simulation {
    histories: Vec<History>,
    streams: Vec<Stream>,
    compressor: Compressor,
}

impl Simulation {
    fn new(streams: &[(bool, usize)], bytes_max: usize, depth: usize) -> Self {
        let stream = |(is_gzip, envelope): &(bool, usize)| {
            let coding = if *is_gzip { Coding::Gzip } else { Coding::Deflate };
            Stream::new(coding, [EVENT, LINE, Envelope::NONE][*envelope])
        };
        Self {
            histories: (0..CHANNELS).map(|_| History::new(bytes_max, depth, 6)).collect(),
            streams: streams.iter().map(stream).collect(),
            compressor: Compressor::new(6),
        }
    }

    fn take(&mut self, step: &Step) {
        let count = self.streams.len();
        match *step {
            Step::Publish { channel, seed, rows } => self.publish(channel, &state(seed, rows)),
            Step::Bytes { channel, ref bytes } => self.publish(channel, bytes),
            Step::Reply { stream, rows, is_compressed } => {
                let stream = &mut self.streams[stream % count];
                if is_compressed {
                    stream.other(&state(7, rows), &mut self.compressor);
                } else {
                    stream.uncompressed(&state(7, rows));
                }
            }
            Step::Join { stream, channel } => {
                self.streams[stream % count].subscriptions.insert(channel, Default::default());
            }
            Step::Recover { stream, channel } => self.recover(stream % count, channel),
            Step::Miss { stream, channel, seed } => {
                let stream = stream % count;
                let kept = self.streams[stream].subscriptions.remove(&channel);
                self.publish(channel, &state(seed, 5));
                if let Some(kept) = kept {
                    self.streams[stream].subscriptions.insert(channel, kept);
                }
            }
        }
    }

    fn publish(&mut self, channel: usize, message: &[u8]) {
        let history = &mut self.histories[channel];
        let Some(publication) = history.publish(message) else {
            for stream in &mut self.streams {
                stream.other(message, &mut self.compressor);
            }
            return;
        };
        for stream in &mut self.streams {
            stream.publication(channel, &publication, history, message, &mut self.compressor);
        }
    }

    fn recover(&mut self, stream: usize, channel: usize) {
        let history = &mut self.histories[channel];
        let Some(newest) = history.newest() else { return };
        let part = part(newest.len());
        let reply = [b"a reply: [", &newest[part.clone()], b"], done"].concat();
        let embedded = history.embed(part).expect("always the same part");
        let stream = &mut self.streams[stream];
        let at = stream.envelope.prefix.len() + 10;
        let subscription = stream.subscriptions.entry(channel).or_default();
        subscription.embedded(embedded, at, stream.counter);
        stream.other(&reply, &mut self.compressor);
    }

    fn end(&mut self) {
        self.streams.iter_mut().for_each(Stream::end);
    }
}

/// A stream, as the server records it and as its client decodes it.
struct Stream {
    envelope: Envelope,
    counter: WindowCounter,
    checksum: Checksum,
    subscriptions: HashMap<usize, SubscriptionWindow>,
    zlib: Decompress,
    last_bytes: usize,
}

impl Stream {
    fn new(coding: Coding, envelope: Envelope) -> Self {
        let mut stream = Self {
            envelope,
            counter: WindowCounter::default(),
            checksum: coding.checksum(),
            subscriptions: (0..CHANNELS).map(|at| (at, Default::default())).collect(),
            zlib: match coding {
                Coding::Gzip => Decompress::new_gzip(15),
                Coding::Deflate => Decompress::new(true),
            },
            last_bytes: 0,
        };
        stream.receive(coding.header(), b"");
        stream
    }

    fn publication(
        &mut self,
        channel: usize,
        publication: &Publication,
        history: &History,
        message: &[u8],
        compressor: &mut Compressor,
    ) {
        let Some(window) = self.subscriptions.get(&channel).copied() else { return };
        let Envelope { prefix, suffix } = self.envelope;
        let event = [prefix, message, suffix].concat();
        let mut start = self.counter;
        start.advance(prefix.len());
        let reference = window.reference(publication, start, 15);
        let frame = self.frame(publication, history, &reference, &event, compressor);
        let window = self.subscriptions.get_mut(&channel).expect("just seen");
        self.counter = start;
        window.queued(publication, &mut self.counter);
        self.counter.advance(suffix.len());
        // The segment is shared by streams with the same envelope.
        let segment = Segment::new(&[prefix, message, suffix]);
        self.checksum = self.checksum.with_segment(&segment);
        self.receive(&frame, &event);
    }

    fn frame(
        &self,
        publication: &Publication,
        history: &History,
        reference: &Reference,
        event: &[u8],
        compressor: &mut Compressor,
    ) -> Vec<u8> {
        let parse = publication
            .parse(reference.depth(), || history.parse(publication, reference.depth()))
            .expect("the newest one");
        let mut frame = b"others".to_vec();
        let is_done = parse.emit_in_stream(self.envelope, reference, &mut frame);
        let stands_alone = reference.depth() == Depth::Alone;
        assert!(is_done || stands_alone || frame == b"others");
        if !is_done {
            assert_ne!(self.envelope, Envelope::NONE);
            compressor.standalone(event, &mut frame);
            frame.extend_from_slice(&FLUSH_TAIL);
        }
        frame.split_off(6)
    }

    fn other(&mut self, message: &[u8], compressor: &mut Compressor) {
        let mut frame = Vec::new();
        let event = [self.envelope.prefix, message, self.envelope.suffix].concat();
        compressor.standalone(&event, &mut frame);
        frame.extend_from_slice(&FLUSH_TAIL);
        self.counter.advance(event.len());
        self.checksum = self.checksum.with(&event);
        self.receive(&frame, &event);
    }

    fn uncompressed(&mut self, message: &[u8]) {
        let mut frame = Vec::new();
        write_uncompressed(message, &mut frame);
        self.counter.advance(message.len());
        self.checksum = self.checksum.with(message);
        self.receive(&frame, message);
    }

    fn end(&mut self) {
        let mut end = Vec::new();
        end_stream(self.checksum, self.counter.bytes(), &mut end);
        assert_eq!(self.receive(&end, b""), Status::StreamEnd, "the trailer is right");
    }

    /// Decodes the next bytes of the stream, which must give `expected` and no more.
    fn receive(&mut self, frame: &[u8], expected: &[u8]) -> Status {
        let mut out = vec![0; expected.len() + 1];
        let (read, written) = (self.zlib.total_in(), self.zlib.total_out());
        let status = self.zlib.decompress(frame, &mut out, FlushDecompress::Sync);
        out.truncate((self.zlib.total_out() - written) as usize);
        assert_eq!(out, expected);
        assert_eq!(self.zlib.total_in() - read, frame.len() as u64);
        self.last_bytes = frame.len();
        status.expect("a valid stream")
    }
}

fn state(seed: u32, rows: usize) -> Vec<u8> {
    let rows = (0..rows as u32).map(|row| {
        let score = if row % 7 == seed % 7 { seed % 100 } else { row };
        format!(r#"{{"player":"player {row}","score":{score},"team":"blue"}}"#)
    });
    format!(r#"{{"seq":{seed},"state":[{}]}}"#, rows.collect::<Vec<_>>().join(",")).into_bytes()
}
