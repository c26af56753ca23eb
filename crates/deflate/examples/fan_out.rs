//! One channel, three peers: each publication is parsed once, and a frame is made for each distinct state of a window.
//! In: nothing → out: a line for each publication: its bytes, the frames that were made, what each peer got.
//! Uses the crate's public items alone. Never: sockets; frames and payloads of WebSocket are the crate `fanwire-ws`.
//! Changed here: what a reader of the crate sees first.
//!
//! `cargo run -p fanwire-deflate --example fan_out`

use std::collections::HashMap;

use fanwire_deflate::gap::{History, Reference, SubscriptionWindow, WindowCounter};
use fanwire_deflate::{Compressor, Inflater, SenderWindow};

/// The record of a peer in the server, 8 bytes and 32 for each subscription, and the decoder of the peer.
struct Peer {
    counter: WindowCounter,
    subscription: SubscriptionWindow,
    decoder: SenderWindow,
}

impl Peer {
    fn new() -> Self {
        let decoder = SenderWindow::new(WINDOW_BITS);
        Self {
            counter: WindowCounter::default(),
            subscription: SubscriptionWindow::default(),
            decoder,
        }
    }

    /// Decodes a payload as a browser does: with all that came before on its connection.
    fn decode(&mut self, inflater: &mut Inflater, payload: &[u8]) -> Vec<u8> {
        let mut message = Vec::new();
        let decoded = inflater.message(payload, &mut self.decoder, &mut message, MESSAGE_BYTES_MAX);
        decoded.expect("the payload refers only to what the peer has");
        message
    }
}

fn main() {
    let mut history = History::new(WINDOW_BYTES, PUBLICATIONS_REFERRED, LEVEL);
    let mut compressor = Compressor::new(LEVEL);
    let mut inflater = Inflater::new();
    let mut peers = [Peer::new(), Peer::new(), Peer::new()];
    for minute in 0..6 {
        let score =
            format!(r#"{{"home":"Rot-Weiß","away":"Blau-Gelb","minute":{minute},"goals":[2,1]}}"#);
        let publication = history.publish(score.as_bytes()).expect("it is short");
        let mut frames: HashMap<Reference, Vec<u8>> = HashMap::new();
        let mut lengths = Vec::new();
        for peer in &mut peers {
            let reference = peer.subscription.reference(&publication, peer.counter, WINDOW_BITS);
            let payload = frames.entry(reference).or_insert_with(|| {
                let parse =
                    history.parse(&publication, reference.depth()).expect("it is the newest");
                let mut payload = Vec::new();
                parse.emit(reference.gaps(), &mut payload);
                payload
            });
            peer.subscription.queued(&publication, &mut peer.counter);
            assert_eq!(peer.decode(&mut inflater, payload), score.as_bytes());
            lengths.push(payload.len());
        }
        println!("{} bytes, frames: {}, the peers got {lengths:?}", score.len(), frames.len());

        // The third peer gets a reply of its own, so that the next publication is further from the last one in its window.
        let reply = format!(r#"{{"id":{minute},"rpc":{{"data":"only for one"}}}}"#);
        let mut payload = Vec::new();
        compressor.standalone(reply.as_bytes(), &mut payload);
        let third = &mut peers[2];
        third.counter.advance(reply.len());
        assert_eq!(third.decode(&mut inflater, &payload), reply.as_bytes());
    }
}

const LEVEL: u8 = 6;
const WINDOW_BITS: u8 = 15;
const WINDOW_BYTES: usize = 1 << WINDOW_BITS;
/// Earlier publications that a frame may refer to.
const PUBLICATIONS_REFERRED: usize = 4;
const MESSAGE_BYTES_MAX: usize = 64 << 10;
