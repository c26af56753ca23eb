//! How long credentials last (protocol §7, §21): the same rule for connections and subscriptions, first and refreshed.
//! In: `expire_at` of a token, or its absence → out: what to store and the `expires`/`ttl` of a result.
//! Uses: the turn's time. Never: timers; enforcement lives in `hub/timers.rs`.
//! Change here: the longest ttl, and what insecure mode does to expiry.

use fanwire_protocol::ErrorCode;

use super::CommandContext;
use crate::session::Lifetime;

impl Lifetime {
    /// Insecure mode does not enforce expiry (protocol §5).
    ///
    /// # Errors
    /// 110 when it is over already.
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

    /// Seconds until then for the client, from the moment of the reply; at least 1, also if it is over by then, as 0 = never.
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
