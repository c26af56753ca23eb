//! The errors of brokers, presence stores and buses.
//! In: a failed call of a port → out: a value that the node turns into an error code.
//! Uses: nothing. Never: texts; an engine logs the details itself.
//! Changed here: the kinds of failure. What a client receives is decided in `node`.

/// Why a call of a port failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BrokerError {
    /// The backend is not reachable now; nothing was published (→ error 100, temporary).
    Unavailable,
    /// A store in memory has no room; nothing was changed.
    Full,
}
