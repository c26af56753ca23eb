//! Descriptors: how many this process may have, and how many of them clients and HTTP may take.
//! In: nothing → out: the limit, raised as far as the system lets us; the parts of it for clients and for HTTP.
//! Uses `setrlimit`. Never: counts what is open.
//! Changed here: what is kept for the server itself. Who is refused then lives in `http::admission`, who waits in `http::listener`.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the soft limit to the hard one, as every connection is a descriptor, and returns it.
pub(crate) fn raise() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// How many of them WebSocket connections may take. With the rest the server goes on to accept, to answer the API, health
/// and metrics, and to open connections to Redis when it has lost those it had, unless HTTP takes them, too.
pub(crate) fn for_clients(limit: usize) -> usize {
    let kept = (limit / 8).clamp(KEPT_MIN, KEPT_MAX).min(limit / 2);
    limit - kept
}

/// How many of them may be connections that speak HTTP, at each of so many listeners: half of all, so that these alone do
/// not take the rest.
pub(crate) fn for_http(limit: usize, listeners: usize) -> usize {
    (limit / 2 / listeners).max(1)
}

/// What a server with a few shards and one Redis has open, and some to answer with.
const KEPT_MIN: usize = 64;

/// A pool of every backend, and a wave of handshakes.
const KEPT_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eighth_is_kept_within_bounds() {
        let check = |limit, clients| assert_eq!(for_clients(limit), clients, "{limit}");
        check(1 << 20, (1 << 20) - 512);
        check(1024, 1024 - 128);
        check(200, 200 - 64);
        check(100, 50);
        check(1, 1);
        check(usize::MAX, usize::MAX - 512);
    }

    #[test]
    fn all_listeners_together_take_half() {
        let check =
            |limit, listeners, each| assert_eq!(for_http(limit, listeners), each, "{limit}");
        check(4096, 1, 2048);
        check(4096, 2, 1024);
        check(1, 2, 1);
        check(usize::MAX, 1, usize::MAX / 2);
    }
}
