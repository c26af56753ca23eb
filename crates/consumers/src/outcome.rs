//! The outcome of a message: done, refused for good, or to be tried again; and the pause before that.
//! In: the result of a command, the number of failures → out: a verdict, a pause.
//! Uses the results of `api`. Never: queues, clocks.
//! Changed here: which errors are tried again, and how long after.

use std::time::Duration;

use fanwire_api::{ApiError, Outcome, PublishResponse};

/// The fate of a message after its command: acknowledged, or tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageOutcome {
    /// Acknowledged.
    Done,
    /// Acknowledged, because a retry would get the same error.
    Refused(ApiError),
    /// Given back to its queue.
    Retry,
}

impl MessageOutcome {
    /// A broadcast is tried again as a whole when one of its channels must be: idempotency keys make that harmless.
    pub(crate) fn of(result: &Result<Outcome, ApiError>) -> Self {
        let errors: Vec<ApiError> = match result {
            Ok(Outcome::Broadcast(broadcast)) => {
                let error = |response: &PublishResponse| match response {
                    PublishResponse::Error(error) => Some(*error),
                    PublishResponse::Result(_) => None,
                };
                broadcast.responses.iter().filter_map(error).collect()
            }
            Ok(_) => return Self::Done,
            Err(error) => vec![*error],
        };
        if errors.contains(&ApiError::INTERNAL) {
            return Self::Retry;
        }
        errors.first().map_or(Self::Done, |error| Self::Refused(*error))
    }
}

/// The pause after so many failures in a row, from 1: `(10 ms + jitter) × 2^failures`, with 0 to 9 ms of jitter.
pub(crate) fn pause(failures: u32, jitter_ms: u64) -> Duration {
    let factor = 1u64.checked_shl(failures).filter(|_| failures < 20).unwrap_or(1 << 20);
    Duration::from_millis((PAUSE_MS + jitter_ms % PAUSE_MS) * factor).min(PAUSE_MAX)
}

const PAUSE_MS: u64 = 10;
const PAUSE_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
