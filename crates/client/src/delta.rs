//! The payloads of a subscription with deltas (client protocol §11).
//! Publications as they came → publications with their whole payload, which the next one may refer to.
//! Uses the fossil format of the protocol and JSON strings; never decides what happens after an error.
//! Changed here: how payloads travel when delta was agreed to. The format of a delta is `fossil` of the protocol.

use bytes::Bytes;
use fanwire_protocol::{Encoding, Publication, fossil};

/// The decoder of one subscription whose delta was agreed to; empty at its start.
#[derive(Debug)]
pub(crate) struct DeltaDecoder {
    encoding: Encoding,
    message_size_max: usize,
    /// Payload of the publication before.
    base: Option<Bytes>,
}

impl DeltaDecoder {
    pub(crate) fn new(encoding: Encoding, message_size_max: usize) -> Self {
        Self { encoding, message_size_max, base: None }
    }

    /// Replaces the data of a publication by its whole payload.
    ///
    /// # Errors
    /// A sentence about a payload that is no string, or a delta that does not fit; the next one must be a whole payload then.
    pub(crate) fn decode(&mut self, publication: &mut Publication) -> Result<(), String> {
        let base = self.base.take();
        let payload = self.payload(publication)?;
        let whole = if publication.delta {
            let base = base.ok_or("there is no publication before it")?;
            let mut whole = Vec::new();
            fossil::apply(&base, &payload, self.message_size_max, &mut whole)
                .map_err(|error| error.to_string())?;
            Bytes::from(whole)
        } else {
            payload
        };
        publication.data = whole.clone();
        publication.delta = false;
        self.base = Some(whole);
        Ok(())
    }

    /// The payload or the delta: in JSON it is the content of a string.
    fn payload(&self, publication: &Publication) -> Result<Bytes, String> {
        match self.encoding {
            Encoding::Protobuf => Ok(publication.data.clone()),
            Encoding::Json => serde_json::from_slice::<String>(&publication.data)
                .map(Bytes::from)
                .map_err(|_| "its data is no JSON string".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
