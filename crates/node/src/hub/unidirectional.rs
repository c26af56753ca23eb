//! The end of unidirectional clients whose connect was refused, which have no command that an error could answer (protocol §25).
//! In: the outcome of a connect → out: a refusal with its code, and the disconnect of that code.
//! Uses: the session, the codes of `client.connect_code_to_unidirectional_disconnect`. Never: decides whether a connect is
//! refused.
//! Changed here: which error becomes which disconnect.

use fanwire_policy::options::ConnectCodeTransform;
use fanwire_protocol::{Disconnect, ErrorCode, Reply};

use crate::session::{CommandSource, Session};

/// The code, text and disconnect for a unidirectional session whose connect was refused; `None` if it was not.
pub(super) fn refused_connect<'a>(
    session: &Session,
    outcome: &'a Result<Option<Reply>, Disconnect>,
    transforms: &[ConnectCodeTransform],
) -> Option<(u32, &'a str, Disconnect)> {
    if session.command_source != CommandSource::None || session.is_connected() {
        return None;
    }
    match outcome {
        Err(disconnect) => Some((disconnect.code.into(), &disconnect.reason, disconnect.clone())),
        Ok(Some(Reply { error: Some(error), .. })) => {
            Some((error.code, &error.message, disconnect_of(error.code, transforms)))
        }
        Ok(_) => None,
    }
}

/// The disconnect for an error of connect.
fn disconnect_of(code: u32, transforms: &[ConnectCodeTransform]) -> Disconnect {
    if let Some(transform) = transforms.iter().find(|transform| transform.code == code) {
        return transform.to.clone();
    }
    let is = |error: ErrorCode| error.code == code;
    match code {
        _ if is(ErrorCode::TOKEN_EXPIRED) || is(ErrorCode::EXPIRED) => Disconnect::EXPIRED,
        _ if is(ErrorCode::TOO_MANY_REQUESTS) => Disconnect::TOO_MANY_REQUESTS,
        _ if is(ErrorCode::PERMISSION_DENIED) => Disconnect::PERMISSION_DENIED,
        _ => Disconnect::SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests;
