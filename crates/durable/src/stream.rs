//! The state of a stream: what a PUT and a POST may do, and what they change.
//! In: configurations, appends, Unix time → out: decisions or refusals; changes after the content was stored.
//! Pure. Never: content, HTTP, the clock.
//! Changed here: the rules of producers, sequences and closing. Offsets are those of the channel.

use std::sync::Arc;

use fanwire_broker::{Epoch, Position};
use hashbrown::HashMap;

use crate::content::{ContentKind, essence};
use crate::lifetime::StreamLifetime;

/// A PUT request.
#[derive(Clone, Debug)]
pub(crate) struct StreamConfig {
    /// As the client wrote it.
    pub(crate) content_type: String,
    pub(crate) lifetime: StreamLifetime,
    pub(crate) is_closed: bool,
}

/// One stream.
#[derive(Debug)]
pub(crate) struct StreamState {
    pub(crate) config: StreamConfig,
    /// The position before its first content.
    pub(crate) start: Position,
    pub(crate) used_ms: u64,
    /// The request that closed it, if a producer sent that.
    pub(crate) closed_by: Option<ProducerTriple>,
    /// The last `Stream-Seq`.
    pub(crate) last_seq: Option<Box<str>>,
    pub(crate) producers: HashMap<Arc<str>, ProducerState>,
    /// The stream was made for a channel with a history, without a PUT. It ends with that history.
    pub(crate) is_adopted: bool,
    /// Deleted, or expired.
    pub(crate) is_removed: bool,
}

/// The last accepted request of a producer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProducerState {
    pub(crate) epoch: u64,
    pub(crate) seq: u64,
    pub(crate) used_ms: u64,
}

/// The three headers of a producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProducerTriple {
    pub(crate) id: Arc<str>,
    pub(crate) epoch: u64,
    pub(crate) seq: u64,
}

/// A POST request.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamAppend {
    /// `None` for a request without content, which only closes.
    pub(crate) content_type: Option<String>,
    pub(crate) closes: bool,
    pub(crate) seq: Option<String>,
    pub(crate) producer: Option<ProducerTriple>,
}

/// The decision about a POST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AppendDecision {
    /// Its content is new.
    Store,
    /// The producer sent it before; the highest accepted sequence number, if it is one of a producer.
    Duplicate(Option<u64>),
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StreamError {
    /// The stream is closed.
    Closed,
    /// Content of another type, which is this one.
    ContentType(String),
    /// The producer's epoch is below this one.
    StaleEpoch(u64),
    /// A new epoch begins with another number than 0.
    EpochBegins,
    /// A sequence number after a gap.
    Gap { expected: u64, received: u64 },
    /// `Stream-Seq` is not above this one.
    Sequence(Box<str>),
    /// More producers than the limit.
    Producers,
}

impl StreamState {
    pub(crate) fn new(config: StreamConfig, start: Position, now_ms: u64) -> Self {
        Self {
            config,
            start,
            used_ms: now_ms,
            closed_by: None,
            last_seq: None,
            producers: HashMap::new(),
            is_adopted: false,
            is_removed: false,
        }
    }

    /// The difference between what a PUT asks for and the stream; `None` for the stream as it is.
    pub(crate) fn difference(&self, asked: &StreamConfig) -> Option<String> {
        let own = &self.config;
        if essence(&own.content_type) != essence(&asked.content_type) {
            Some(format!("Content-Type {}", own.content_type))
        } else if !own.lifetime.is_same(&asked.lifetime) {
            Some("another Stream-TTL or Stream-Expires-At".to_owned())
        } else {
            (own.is_closed != asked.is_closed).then(|| format!("Stream-Closed {}", own.is_closed))
        }
    }

    pub(crate) fn config(&self) -> &StreamConfig {
        &self.config
    }

    pub(crate) fn kind(&self) -> ContentKind {
        ContentKind::of(&self.config.content_type)
    }

    /// The position before the first content, in the stream of the channel that has `epoch` now. When the channel lost its
    /// position, the stream begins again.
    pub(crate) fn start(&mut self, epoch: Epoch) -> Position {
        if self.start.epoch != epoch {
            self.start = Position { offset: 0, epoch };
        }
        self.start
    }

    pub(crate) fn expires_at_ms(&self) -> Option<u64> {
        self.config.lifetime.expires_at_ms(self.used_ms)
    }

    pub(crate) fn has_expired(&self, now_ms: u64) -> bool {
        self.expires_at_ms().is_some_and(|at| at <= now_ms)
    }

    /// Restarts the window of the lifetime.
    pub(crate) fn touch(&mut self, now_ms: u64) {
        self.used_ms = self.used_ms.max(now_ms);
    }

    /// Decides about a POST. Nothing changes.
    ///
    /// # Errors
    /// See [`StreamError`].
    pub(crate) fn decide(
        &self,
        append: &StreamAppend,
        producers_max: usize,
        now_ms: u64,
    ) -> Result<AppendDecision, StreamError> {
        if self.config.is_closed {
            let is_repeated = match &append.producer {
                None => append.closes && append.content_type.is_none(),
                producer => *producer == self.closed_by,
            };
            let seq = append.producer.as_ref().map(|producer| producer.seq);
            return if is_repeated {
                Ok(AppendDecision::Duplicate(seq))
            } else {
                Err(StreamError::Closed)
            };
        }
        if let Some(given) = &append.content_type
            && essence(given) != essence(&self.config.content_type)
        {
            return Err(StreamError::ContentType(self.config.content_type.clone()));
        }
        if let Some(producer) = &append.producer
            && let Some(highest) = self.check_producer(producer, producers_max, now_ms)?
        {
            return Ok(AppendDecision::Duplicate(Some(highest)));
        }
        match (&append.seq, &self.last_seq) {
            (Some(seq), Some(last)) if seq.as_bytes() <= last.as_bytes() => {
                Err(StreamError::Sequence(last.clone()))
            }
            _ => Ok(AppendDecision::Store),
        }
    }

    /// The highest accepted number of a producer that repeats a request; `None` for a new one.
    fn check_producer(
        &self,
        ProducerTriple { id, epoch, seq }: &ProducerTriple,
        producers_max: usize,
        now_ms: u64,
    ) -> Result<Option<u64>, StreamError> {
        let known = self.producers.get(id).filter(|known| !known.has_expired(now_ms));
        let Some(known) = known else {
            let remembered =
                || self.producers.values().filter(|one| !one.has_expired(now_ms)).count();
            if self.producers.len() >= producers_max && remembered() >= producers_max {
                return Err(StreamError::Producers);
            }
            return first(*seq);
        };
        if *epoch < known.epoch {
            return Err(StreamError::StaleEpoch(known.epoch));
        }
        if *epoch > known.epoch {
            return if *seq == 0 { Ok(None) } else { Err(StreamError::EpochBegins) };
        }
        match seq.cmp(&(known.seq + 1)) {
            std::cmp::Ordering::Less => Ok(Some(known.seq)),
            std::cmp::Ordering::Equal => Ok(None),
            std::cmp::Ordering::Greater => {
                Err(StreamError::Gap { expected: known.seq + 1, received: *seq })
            }
        }
    }

    /// Records a POST whose content was stored.
    pub(crate) fn commit(&mut self, append: StreamAppend, producers_max: usize, now_ms: u64) {
        self.touch(now_ms);
        if let Some(seq) = append.seq {
            self.last_seq = Some(seq.into());
        }
        if let Some(ProducerTriple { id, epoch, seq }) = &append.producer {
            if self.producers.len() >= producers_max && !self.producers.contains_key(id) {
                self.producers.retain(|_, one| !one.has_expired(now_ms));
            }
            self.producers
                .insert(id.clone(), ProducerState { epoch: *epoch, seq: *seq, used_ms: now_ms });
        }
        if append.closes {
            self.config.is_closed = true;
            self.closed_by = append.producer;
        }
    }
}

impl ProducerState {
    fn has_expired(&self, now_ms: u64) -> bool {
        self.used_ms.saturating_add(PRODUCER_LIFETIME_MS) <= now_ms
    }
}

/// Checks the first number of a producer, in any epoch.
fn first(seq: u64) -> Result<Option<u64>, StreamError> {
    match seq {
        0 => Ok(None),
        received => Err(StreamError::Gap { expected: 0, received }),
    }
}

/// Seven days, as the protocol advises.
const PRODUCER_LIFETIME_MS: u64 = 7 * 24 * 3600 * 1000;

#[cfg(test)]
mod tests;
