//! File descriptors: the limit of this process, and the shares of clients and of HTTP.
//! In: nothing → out: the limit, raised as far as the system allows; the shares of clients and HTTP.
//! Uses `setrlimit`. Never: counts descriptors of the process, except those of streams of HTTP/2.
//! Changed here: the reserve of the server itself. `edge::clients::admission` refuses clients above their share; `edge::accept::listener` lets connections wait.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard limit, because every connection takes a descriptor. Returns the new limit.
pub fn raise() -> usize {
    let limit = raised(getrlimit(Resource::Nofile));
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// The hard limit, if there is one. macOS has none, and refuses an infinite soft limit (setrlimit(2) there).
fn raised(limit: Rlimit) -> Rlimit {
    let unlimited = limit.current.map(|current| current.max(OPEN_MAX));
    Rlimit { current: limit.maximum.or(unlimited), ..limit }
}

/// The share of WebSocket connections. The rest is for accepting, for the API, health and metrics, and for new connections
/// to Redis.
pub fn for_clients(limit: usize) -> usize {
    let reserve = (limit / 8).clamp(RESERVE_MIN, RESERVE_MAX).min(limit / 2);
    limit - reserve
}

/// The descriptors that a connection in a stream of HTTP/2 takes more than another one, until this is dropped: its second socket of a pair, and the
/// socket that streams share.
pub(crate) struct StreamDescriptors(());

impl StreamDescriptors {
    pub(crate) fn take() -> Self {
        OF_STREAMS.fetch_add(PER_STREAM, Relaxed);
        Self(())
    }
}

impl Drop for StreamDescriptors {
    fn drop(&mut self) {
        OF_STREAMS.fetch_sub(PER_STREAM, Relaxed);
    }
}

/// The part of `share`, one of clients, that is left for clients without those of [`StreamDescriptors`]; at least 1.
pub(crate) fn without_streams(share: usize) -> usize {
    share.saturating_sub(OF_STREAMS.load(Relaxed)).max(1)
}

/// Descriptors of the streams of all servers of this process.
static OF_STREAMS: AtomicUsize = AtomicUsize::new(0);

const PER_STREAM: usize = 2;

/// The share of HTTP connections per listener: half of all descriptors together, so HTTP alone cannot use up the rest.
pub fn for_http(limit: usize, listeners: usize) -> usize {
    (limit / 2 / listeners).max(1)
}

/// The open descriptors of a server with a few shards and one Redis, and some for requests.
const RESERVE_MIN: usize = 64;

/// The soft limit that macOS permits where the hard limit is infinite: OPEN_MAX of its sys/syslimits.h.
const OPEN_MAX: u64 = 10_240;

/// Enough for a connection pool of every backend and a burst of handshakes.
const RESERVE_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eighth_is_reserved_within_bounds() {
        let check = |limit, clients| assert_eq!(for_clients(limit), clients, "{limit}");
        check(1 << 20, (1 << 20) - 512);
        check(1024, 1024 - 128);
        check(200, 200 - 64);
        check(100, 50);
        check(1, 1);
        check(usize::MAX, usize::MAX - 512);
    }

    #[test]
    fn the_soft_limit_becomes_the_hard_one_or_what_macos_permits() {
        for (current, maximum, raised_to) in [
            (Some(1024), Some(4096), Some(4096)),
            (Some(4096), Some(4096), Some(4096)),
            (Some(256), None, Some(10_240)),
            (Some(65_536), None, Some(65_536)),
            (None, None, None),
        ] {
            let limit = raised(Rlimit { current, maximum });
            assert_eq!(limit, Rlimit { current: raised_to, maximum }, "{current:?} {maximum:?}");
        }
    }

    #[test]
    fn all_listeners_together_get_half() {
        let check =
            |limit, listeners, each| assert_eq!(for_http(limit, listeners), each, "{limit}");
        check(4096, 1, 2048);
        check(4096, 2, 1024);
        check(1, 2, 1);
        check(usize::MAX, 1, usize::MAX / 2);
    }
}
