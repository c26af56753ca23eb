//! The end of unidirectional clients whose connect was refused, which have no command that an error could answer (protocol §25).
//! In: the outcome of a connect → out: a refusal with its code, and the disconnect of that code.
//! Uses: the session table, the codes of `client.connect_code_to_unidirectional_disconnect`. Never: decides whether a connect is
//! refused.
//! Change here: which error becomes which disconnect.

use fanwire_protocol::{Disconnect, ErrorCode, Reply};

use super::Hub;
use crate::options::ConnectCodeTransform;
use crate::outbox::Outbox;
use crate::session::{CommandSource, ConnectionKey, Session};

impl Hub {
    /// Ends a unidirectional session whose connect was refused. Returns whether it was.
    pub(super) fn end_refused_connect(
        &mut self,
        key: ConnectionKey,
        outcome: &Result<Option<Reply>, Disconnect>,
        out: &mut impl Outbox,
    ) -> bool {
        let connects = |session: &Session| {
            session.command_source == CommandSource::None && !session.is_connected()
        };
        if !self.session_table.session(key).is_some_and(connects) {
            return false;
        }
        let (code, text, disconnect) = match outcome {
            Err(disconnect) => (disconnect.code.into(), &*disconnect.reason, disconnect.clone()),
            Ok(Some(Reply { error: Some(error), .. })) => {
                let transforms =
                    &self.settings.options.client.connect_code_to_unidirectional_disconnect;
                (error.code, error.message.as_str(), disconnect_of(error.code, transforms))
            }
            Ok(_) => return false,
        };
        if self.remove(key, &disconnect) {
            out.refuse(key, code, text, &disconnect);
        }
        true
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
