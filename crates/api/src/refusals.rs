//! Log lines of refused API requests and failed API calls, with method, channel, user, address and cause.
//! In: a refusal → out: a line at level info or debug.
//! Uses the node's throttle. Never: keys, payloads, texts from outside that are not cut.
//! Changed here: the fields of these lines. Causes are texts where a call is refused.

use std::net::SocketAddr;
use std::time::Instant;

use fanwire_node::protocol::AnyCase;
use fanwire_telemetry::{RefusalEvent, excerpt};
use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use tracing::field::display;

use crate::{Api, ApiError};

/// Writes one event with the same fields at level info, with the count of its kind, or at level debug.
macro_rules! at_level {
    ($count:expr, $($fields:tt)+) => {
        match $count {
            Some(count) => tracing::info!(count, $($fields)+),
            None => tracing::debug!($($fields)+),
        }
    };
}

impl Api {
    /// Logs a call that was refused before a method was called, with the HTTP status of its cause. `method` may be any text.
    pub(crate) fn log_refused(
        &self,
        status: StatusCode,
        method: &str,
        cause: &str,
        peer: SocketAddr,
    ) {
        let status = status.as_u16();
        let method = excerpt(method);
        let cause = excerpt(cause);
        let kind = format!("api {status}");
        let address = Some(peer.ip());
        let event = RefusalEvent { kind: &kind, cause: &cause, address, ..RefusalEvent::default() };
        let Some(level) = self.node.log().level(event, Instant::now()) else { return };
        at_level!(level.count(), method, status, cause, address = %peer, "refused an API request");
    }

    /// Logs an error of a method. `parameters` says what they name, `key` is the name of the caller's key.
    pub(crate) fn log_error(
        &self,
        method: &'static str,
        error: &ApiError,
        parameters: impl FnOnce() -> Named,
        peer: Option<SocketAddr>,
        key: &str,
    ) {
        let cause = &*error.cause_text();
        let ApiError { code, message: error, .. } = *error;
        let kind = format!("api {method} {code}");
        let address = peer.map(|peer| peer.ip());
        let event = RefusalEvent { kind: &kind, cause, address, ..RefusalEvent::default() };
        let Some(level) = self.node.log().level(event, Instant::now()) else { return };
        let Named { channel, user } = parameters();
        let [channel, user] = [channel, user]
            .map(|text| text.filter(|text| !text.is_empty()).map(|text| excerpt(&text)));
        let address = peer.map(display);
        let key = Some(key).filter(|key| !key.is_empty());
        at_level!(
            level.count(),
            method,
            code,
            error,
            cause,
            channel,
            user,
            address,
            key,
            "an API call failed"
        );
    }
}

/// The parameters that a line contains.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Named {
    channel: Option<String>,
    user: Option<String>,
}

impl Named {
    /// Looks for them in JSON parameters; one of another type is absent.
    pub(crate) fn in_json(parameters: &str) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Raw<'a> {
            #[serde(borrow)]
            channel: Option<&'a RawValue>,
            #[serde(borrow)]
            user: Option<&'a RawValue>,
        }
        let raw = serde_json::from_str::<AnyCase<Raw>>(parameters);
        let Raw { channel, user } = raw.map(|AnyCase(raw)| raw).unwrap_or_default();
        let text = |value: &RawValue| serde_json::from_str(value.get()).ok();
        Self { channel: channel.and_then(text), user: user.and_then(text) }
    }
}
