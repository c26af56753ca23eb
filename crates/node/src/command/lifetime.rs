//! Lifetimes of credentials (protocol §7, §21): the same rule for connections and subscriptions, first and refreshed.
//! In: `expire_at` of a token, if any → out: the stored lifetime and the `expires`/`ttl` of a result.
//! Uses: the command's time. Never: timers; enforcement lives in `hub/timers.rs`.
//! Changed here: the longest ttl, and the effect of insecure mode on expiry.

use fanwire_protocol::ErrorCode;

use super::CommandContext;
use crate::session::Lifetime;

impl Lifetime {
    /// Insecure mode does not enforce expiry (protocol §5).
    ///
    /// # Errors
    /// 110 when it has passed.
    pub(super) fn of(
        context: &CommandContext<'_>,
        expire_at: Option<u64>,
    ) -> Result<Self, ErrorCode> {
        let Some(expire_at) = expire_at.filter(|_| !context.insecure()) else {
            return Ok(Self { expire_at: None });
        };
        if expire_at <= context.unix() {
            return Err(ErrorCode::EXPIRED);
        }
        Ok(Self { expire_at: Some(expire_at) })
    }

    /// The lifetime for the client: none where a hook refreshes the connection.
    pub(super) fn refreshed_by_client(self, context: &CommandContext<'_>) -> Self {
        if context.node.hooks().refresh.is_some() { Self { expire_at: None } } else { self }
    }

    /// Seconds until expiry for the client, from the moment of the reply; at least 1, also when it has passed, because
    /// 0 = never.
    pub(super) fn ttl(self, context: &CommandContext<'_>) -> u32 {
        self.expire_at.map_or(0, |expire_at| {
            expire_at.saturating_sub(context.unix()).clamp(1, TTL_SECONDS_MAX) as u32
        })
    }

    /// Whether the client has to refresh.
    pub(super) fn expires(self) -> bool {
        self.expire_at.is_some()
    }
}

/// Longer times overflow the timers of SDKs: 365 days (protocol §7).
const TTL_SECONDS_MAX: u64 = 365 * 24 * 60 * 60;
