//! Log lines of refused API requests and failed API calls, with method, channel, user, address and cause.
//! In: a refusal → out: a line at level info or debug.
//! Uses the node's throttle. Never: keys, payloads, texts from outside that are not cut.
//! Change here: the fields of these lines. Causes are texts where a call is refused.

use std::net::SocketAddr;
use std::time::Instant;

use fanwire_telemetry::{RefusalEvent, excerpt};
use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use tracing::field::display;

use crate::http::HttpApi;
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

impl HttpApi {
    /// Logs a request that was refused before a method was called. `method` may be any text.
    pub fn log_refused(&self, status: StatusCode, method: &str, cause: &str, peer: SocketAddr) {
        let status = status.as_u16();
        let node = &self.api().node;
        let (method, cause) = (excerpt(method), excerpt(cause));
        let kind = format!("api {status}");
        let address = Some(peer.ip());
        let event = RefusalEvent { kind: &kind, cause: &cause, address, ..RefusalEvent::default() };
        let Some(level) = node.log_level(event, Instant::now()) else { return };
        at_level!(level.count(), method, status, cause, address = %peer, "refused an API request");
    }
}

impl Api {
    /// Logs an error of a method. `parameters` is the JSON text in which to look for channel and user.
    pub(crate) fn log_error(
        &self,
        method: &'static str,
        error: &ApiError,
        parameters: &str,
        peer: Option<SocketAddr>,
    ) {
        let ApiError { code, message: error, cause, .. } = *error;
        let kind = format!("api {method} {code}");
        let address = peer.map(|peer| peer.ip());
        let event = RefusalEvent { kind: &kind, cause, address, ..RefusalEvent::default() };
        let Some(level) = self.node.log_level(event, Instant::now()) else { return };
        let Named { channel, user } = serde_json::from_str(parameters).unwrap_or_default();
        let [channel, user] = [channel, user].map(|value| value.and_then(text));
        let address = peer.map(display);
        at_level!(
            level.count(),
            method,
            code,
            error,
            cause,
            channel,
            user,
            address,
            "an API call failed"
        );
    }
}

/// The parameters that a line contains.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Named<'a> {
    #[serde(borrow)]
    channel: Option<&'a RawValue>,
    #[serde(borrow)]
    user: Option<&'a RawValue>,
}

/// The beginning of a text that is not empty.
fn text(value: &RawValue) -> Option<String> {
    let text: String = serde_json::from_str(value.get()).ok()?;
    if text.is_empty() { None } else { Some(excerpt(&text)) }
}
