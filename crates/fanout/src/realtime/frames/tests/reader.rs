//! The decoder of a client that agreed to deltas (client protocol §11).
//! In: messages in their order → out: the same messages as a client without deltas reads them.
//! Uses serde_json and prost to decode pushes and `protocol::fossil` to apply deltas; never the server's own.
//! Changed here: how a delta is decoded. Which clients agree to deltas is decided in `world`.

use std::collections::HashMap;

use fanwire_protocol::{Encoding, Publication, Push, Reply, encode_publication, fossil};
use prost::Message as _;

/// The data of the last publication of each channel.
#[derive(Default)]
pub(super) struct Reader(HashMap<String, Vec<u8>>);

impl Reader {
    /// Returns the plain message, and whether it was a delta. Messages that are no publications are returned
    /// unchanged.
    pub(super) fn read(&mut self, encoding: Encoding, message: Vec<u8>) -> (Vec<u8>, bool) {
        let reply: Option<Reply> = match encoding {
            Encoding::Json => serde_json::from_slice(&message).ok(),
            Encoding::Protobuf => Reply::decode_length_delimited(&message[..]).ok(),
        };
        let push = reply.and_then(|one| one.push);
        let agreed = push.filter(|push| !push.channel.contains(PLAIN));
        let Some(Push { channel, r#pub: Some(publication), .. }) = agreed else {
            return (message, false);
        };
        let mut data = match encoding {
            Encoding::Json => serde_json::from_slice::<String>(&publication.data)
                .expect("a JSON string for clients with deltas")
                .into_bytes(),
            Encoding::Protobuf => publication.data.to_vec(),
        };
        let is_delta = publication.delta;
        if is_delta {
            let (base, mut made) = (&self.0[&channel], Vec::new());
            fossil::apply(base, &data, 1 << 20, &mut made).expect("a delta of the one before");
            data = made;
        }
        self.0.insert(channel.clone(), data.clone());
        let plain = Publication { data: data.into(), delta: false, ..publication };
        let message = encode_publication(encoding, &channel, &plain).expect("JSON");
        (message.to_vec(), is_delta)
    }
}

/// Marks names of channels where no client agrees to deltas.
const PLAIN: char = ':';
