//! What each subscriber has received, against what was published.
//! In: every message of every subscriber → out: an error at the first one that is missing, repeated, out of order or damaged.
//! Pure bookkeeping over `messages`; the first arrival of a publication is read fully, all others must equal it.
//! Changed here: what counts as right; who subscribes to what lives in `corpus`.

use anyhow::{Context, Result, bail};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::files::Source;
use fanwire_load::generator::PublicationHandler;
use fanwire_load::generator::messages::Encoding;

pub struct Ledger<'a> {
    sources: &'a [Source],
    json_subscribers: usize,
    subscribers: usize,
    /// The publications of each source so far.
    publications: Vec<Vec<Publication>>,
    /// Numbers of publications that each subscriber received from each source.
    received: Vec<usize>,
    open: usize,
    deliveries: u64,
    message_bytes: u64,
}

struct Publication {
    /// Subscribers that do not have it yet.
    missing: usize,
    /// Hash of the whole message in each encoding, known from its first, fully read arrival.
    hashes: [Option<u64>; 2],
}

impl<'a> Ledger<'a> {
    /// The first subscribers speak JSON, the rest Protobuf.
    pub fn new(
        sources: &'a [Source],
        json_subscribers: usize,
        protobuf_subscribers: usize,
    ) -> Self {
        let subscribers = json_subscribers + protobuf_subscribers;
        Self {
            sources,
            json_subscribers,
            subscribers,
            publications: sources.iter().map(|_| Vec::new()).collect(),
            received: vec![0; subscribers * sources.len()],
            open: 0,
            deliveries: 0,
            message_bytes: 0,
        }
    }

    /// The next message of a source is on its way.
    pub fn published(&mut self, source: usize) {
        let missing = if self.sources[source].binary {
            self.subscribers - self.json_subscribers
        } else {
            self.subscribers
        };
        self.publications[source].push(Publication { missing, hashes: [None; 2] });
        self.open += usize::from(missing > 0);
    }

    /// Publications that somebody has not received yet.
    pub fn open(&self) -> usize {
        self.open
    }

    pub fn deliveries(&self) -> u64 {
        self.deliveries
    }

    /// Bytes of all messages received, after inflating.
    pub fn message_bytes(&self) -> u64 {
        self.message_bytes
    }

    /// The oldest publication of each channel that is not complete.
    pub fn missing(&self) -> String {
        let first_missing = |(source, publications): (&Source, &Vec<Publication>)| {
            let place = publications.iter().position(|publication| publication.missing > 0)?;
            let missing = publications[place].missing;
            Some(format!(
                "publication {} of {} lacks {missing} subscribers",
                place + 1,
                source.channel
            ))
        };
        let oldest: Vec<String> =
            self.sources.iter().zip(&self.publications).filter_map(first_missing).collect();
        if oldest.is_empty() {
            "an answer to a publication is missing".to_owned()
        } else {
            oldest.join(", ")
        }
    }

    fn encoding(&self, subscriber: usize) -> Encoding {
        if subscriber < self.json_subscribers { Encoding::Json } else { Encoding::Protobuf }
    }

    /// Reads a message fully and says what it is instead of the one expected; `Ok` if it is right.
    fn read(&self, source: usize, place: usize, encoding: Encoding, message: &[u8]) -> Result<()> {
        let source = &self.sources[source];
        let publication = encoding.publication(message)?;
        if publication.data == source.messages[place] {
            return Ok(());
        }
        match source.messages.iter().position(|message| publication.data == message) {
            Some(other) => bail!("publication {} came where {} was due", other + 1, place + 1),
            None => bail!("publication {} is damaged: {}", place + 1, message.escape_ascii()),
        }
    }
}

impl PublicationHandler for Ledger<'_> {
    fn publication(&mut self, subscriber: usize, message: &[u8]) -> Result<()> {
        let encoding = self.encoding(subscriber);
        let channel = encoding.channel(message).unwrap_or_default();
        let number = self.sources.iter().position(|source| source.channel.as_bytes() == channel);
        let source =
            number.with_context(|| format!("not a publication: {}", message.escape_ascii()))?;
        let place = self.received[subscriber * self.sources.len() + source];
        let name = || {
            format!(
                "{encoding:?} subscriber {subscriber}, channel {}",
                self.sources[source].channel
            )
        };

        let Some(publication) = self.publications[source].get(place) else {
            return Err(self.surplus(source, encoding, message)).with_context(name);
        };
        let hash = hash(message);
        match publication.hashes[encoding as usize] {
            Some(first) if first == hash => {}
            Some(_) => {
                self.read(source, place, encoding, message).with_context(name)?;
                bail!("publication {} differs from what others got; {}", place + 1, name());
            }
            None => self.read(source, place, encoding, message).with_context(name)?,
        }

        let publication = &mut self.publications[source][place];
        publication.hashes[encoding as usize] = Some(hash);
        publication.missing -= 1;
        self.open -= usize::from(publication.missing == 0);
        self.received[subscriber * self.sources.len() + source] += 1;
        self.deliveries += 1;
        self.message_bytes += message.len() as u64;
        Ok(())
    }
}

impl Ledger<'_> {
    fn surplus(&self, source: usize, encoding: Encoding, message: &[u8]) -> anyhow::Error {
        let messages = &self.sources[source].messages;
        let repeated = encoding.publication(message).ok().and_then(|publication| {
            messages.iter().position(|message| publication.data == message)
        });
        match repeated {
            Some(place) => anyhow::anyhow!("publication {} came once more", place + 1),
            None => anyhow::anyhow!("a message that was not published: {}", message.escape_ascii()),
        }
    }
}

fn hash(message: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
