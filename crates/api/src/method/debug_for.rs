//! debug_for: logs the events of users, channels and addresses at level debug on all nodes, until an end.
//! In: `DebugForRequest`. Out: what is logged now.
//! Uses the list of the node, a control command for the others. Never: log lines.
//! Lines are changed in the node, in `flight_log.rs`; the limit of the list in `debug_list.rs`.

use std::net::IpAddr;

use fanwire_node::{DebugForCommand, DebugSubject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DiagnosticMethods;
use crate::json::{or_default, up_to};
use crate::{ApiError, Method};

/// Subjects to log. With none of them the method only returns what is logged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DebugForRequest {
    /// User ids.
    #[serde(deserialize_with = "up_to::<NAMES_MAX, _, _>")]
    pub users: Vec<String>,
    /// Channels.
    #[serde(deserialize_with = "up_to::<NAMES_MAX, _, _>")]
    pub channels: Vec<String>,
    /// IP addresses of clients, without ports.
    #[serde(deserialize_with = "up_to::<NAMES_MAX, _, _>")]
    pub addresses: Vec<String>,
    /// How long they are logged, at most a day; absent means ten minutes, 0 ends it now.
    #[serde(deserialize_with = "or_default")]
    #[schemars(with = "u32", range(max = 86400))]
    pub seconds: Option<u32>,
}

/// The subjects whose events are logged, those of `log.debug_for` included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DebugForResult {
    /// Sorted by kind and name.
    pub subjects: Vec<DebuggedSubject>,
    /// Names of the nodes that may not have got the change, because at least one of them could not be reached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// A subject whose events are logged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DebuggedSubject {
    /// `user`, `channel` or `address`.
    pub kind: String,
    /// The user id, the channel, or the address.
    pub name: String,
    /// Unix second at which it ends; absent for one of the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub end: Option<u64>,
}

impl DiagnosticMethods<'_> {
    /// Changes the list on all nodes, and returns that of this node.
    ///
    /// # Errors
    /// 107 for an empty or too long name, something that is no address, more than a day, and when the list is full.
    pub(super) async fn debug_for(
        self,
        request: DebugForRequest,
    ) -> Result<DebugForResult, ApiError> {
        let diagnostics = self.0.node.diagnostics();
        self.0
            .measure_async(Method::DebugFor, async |now| {
                let DebugForRequest { users, channels, addresses, seconds } = request;
                let seconds = seconds.unwrap_or(SECONDS);
                if seconds > SECONDS_MAX {
                    return Err(ApiError::BAD_REQUEST.because("seconds is above 86400, a day"));
                }
                let is_wrong = |name: &String| name.is_empty() || name.len() > NAME_BYTES_MAX;
                if users.iter().chain(&channels).any(is_wrong) {
                    return Err(
                        ApiError::BAD_REQUEST.because("a name is empty or longer than 1024 bytes")
                    );
                }
                if addresses.iter().any(|text| text.parse::<IpAddr>().is_err()) {
                    return Err(
                        ApiError::BAD_REQUEST.because("an address is no IP address without a port")
                    );
                }
                let until =
                    if seconds == 0 { 0 } else { self.0.node.unix(now) + u64::from(seconds) };
                let command = DebugForCommand { users, channels, addresses, until };
                let mut missing = Vec::new();
                if command.len() > 0 {
                    let sent = diagnostics.debug_for(command);
                    missing = sent.ok_or(ApiError::BAD_REQUEST.because(FULL))?.await?;
                }
                let subjects = diagnostics.debug_subjects().into_iter().map(subject);
                Ok(DebugForResult { subjects: subjects.collect(), missing })
            })
            .await
    }
}

fn subject(DebugSubject { kind, name, end }: DebugSubject) -> DebuggedSubject {
    DebuggedSubject { kind: kind.to_owned(), name, end }
}

const SECONDS: u32 = 600;
const SECONDS_MAX: u32 = 86_400;
const NAME_BYTES_MAX: usize = 1024;
/// Names of a kind; the list of a node is as short.
const NAMES_MAX: usize = 100;
const FULL: &str =
    "more than 100 users, channels and addresses would be logged: end others with seconds 0";
