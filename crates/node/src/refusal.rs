//! Refusals of client commands: an error reply or the end of the connection, and the cause in words.
//! In: a code, and a cause where the code alone has several → out: a command error, and the refusal that the log records.
//! Uses: codes. Never: decides, logs.
//! Changed here: causes that follow from the code. Other causes are texts where a command is refused.

use std::borrow::Cow;
use std::sync::Arc;

use fanwire_policy::hooks::Rejection;
use fanwire_policy::options::REASON_BYTES_MAX;
use fanwire_protocol::{Disconnect, ErrorCode, ProtocolError, Request};
use fanwire_telemetry::excerpt;

use crate::counters::CommandKind;

/// The error of a command: its consequence for the client and its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandError {
    pub(crate) consequence: Consequence,
    /// Advice on what to change; "" if it follows from the code.
    cause: Cow<'static, str>,
}

/// Consequence for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Consequence {
    /// An error reply.
    Error(ErrorCode),
    /// An error reply with a code of the application.
    Application(Box<ProtocolError>),
    /// The connection must end.
    Disconnect(Disconnect),
}

/// The refusal of a command, as the log records it.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// The command by its name on the wire.
    pub(crate) command: &'static str,
    pub(crate) channel: Option<Arc<str>>,
    pub(crate) code: u32,
    /// The text of the code.
    pub(crate) error: Cow<'static, str>,
    pub(crate) cause: Cow<'static, str>,
    /// The user that the token of a refused connect names; "" if it names none.
    pub(crate) claimed_user: String,
}

impl CommandError {
    pub(crate) fn error(code: ErrorCode, cause: impl Into<Cow<'static, str>>) -> Self {
        Self { consequence: Consequence::Error(code), cause: cause.into() }
    }

    pub(crate) fn disconnect(disconnect: Disconnect, cause: impl Into<Cow<'static, str>>) -> Self {
        Self { consequence: Consequence::Disconnect(disconnect), cause: cause.into() }
    }

    /// The same refusal with a cause.
    pub(crate) fn because(self, cause: impl Into<Cow<'static, str>>) -> Self {
        Self { cause: cause.into(), ..self }
    }

    pub(crate) fn code(&self) -> u32 {
        match &self.consequence {
            Consequence::Error(error) => error.code,
            Consequence::Application(error) => error.code,
            Consequence::Disconnect(disconnect) => disconnect.code.into(),
        }
    }

    /// A refusal of this command, for the log.
    pub(crate) fn refused(&self, command: Option<CommandKind>) -> Refusal {
        let error = match &self.consequence {
            Consequence::Error(error) => error.message.into(),
            Consequence::Application(error) => error.message.clone().into(),
            Consequence::Disconnect(disconnect) => disconnect.reason.clone(),
        };
        let cause = if self.cause.is_empty() {
            usual_cause(command, self.code()).into()
        } else {
            self.cause.clone()
        };
        let command = command.map_or(BY_SERVER, CommandKind::name);
        let code = self.code();
        Refusal { command, channel: None, code, error, cause, claimed_user: String::new() }
    }

    /// Returns the consequence for the client. If asked for, as much of the cause as fits is part of a close frame's reason; clients read
    /// the code only.
    pub(crate) fn into_consequence(self, says_cause: bool) -> Consequence {
        let Consequence::Disconnect(disconnect) = self.consequence else { return self.consequence };
        if !says_cause || self.cause.is_empty() {
            return Consequence::Disconnect(disconnect);
        }
        let mut reason = format!("{}: {}", disconnect.reason, excerpt(&self.cause));
        if reason.len() > REASON_BYTES_MAX {
            reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX - CUT.len()));
            reason.push_str(CUT);
        }
        let reason = reason.into();
        Consequence::Disconnect(Disconnect { reason, ..disconnect })
    }
}

impl From<ErrorCode> for CommandError {
    fn from(code: ErrorCode) -> Self {
        Self::error(code, "")
    }
}

impl From<Rejection> for CommandError {
    fn from(rejection: Rejection) -> Self {
        let cause = match rejection {
            Rejection::Error(error) if error.code == 0 => HOOK_ERROR_CODE.into(),
            Rejection::Error(error) => {
                let consequence = Consequence::Application(Box::new(error));
                return Self { consequence, cause: HOOK.into() };
            }
            Rejection::Disconnect(disconnect) if !disconnect.is_close_code() => {
                HOOK_CLOSE_CODE.into()
            }
            Rejection::Disconnect(disconnect) => return disconnect.into(),
            Rejection::Failed(cause) => cause,
            Rejection::Unavailable(cause) => return Self::error(ErrorCode::INTERNAL, cause),
        };
        Self::disconnect(Disconnect::SERVER_ERROR, cause)
    }
}

impl From<Disconnect> for CommandError {
    fn from(disconnect: Disconnect) -> Self {
        Self::disconnect(disconnect, "")
    }
}

/// The channel that a request names.
pub(crate) fn channel_of(request: &Request) -> Option<&str> {
    let channel = match request {
        Request::Subscribe(request) => &request.channel,
        Request::Unsubscribe(request) => &request.channel,
        Request::Publish(request) => &request.channel,
        Request::Presence(request) => &request.channel,
        Request::PresenceStats(request) => &request.channel,
        Request::History(request) => &request.channel,
        Request::SubRefresh(request) => &request.channel,
        Request::Connect(_) | Request::Rpc(_) | Request::Send(_) | Request::Refresh(_) => {
            return None;
        }
        Request::Pong | Request::Unknown => return None,
    };
    if channel.is_empty() { None } else { Some(channel) }
}

/// The cause of a code that has one cause for a command.
fn usual_cause(command: Option<CommandKind>, code: u32) -> &'static str {
    const TYPE: &str = "its engine has no maps";
    match (command, code) {
        (_, 100) => {
            "the broker, presence or the key of a token was not available; the client tries again"
        }
        (_, 102) => "channel.namespaces has no namespace with the name before the boundary",
        (Some(CommandKind::History), 108) => "the namespace has no history_size and history_ttl",
        (Some(CommandKind::Presence | CommandKind::PresenceStats), 108) => {
            "the namespace has no presence"
        }
        (Some(CommandKind::Rpc), 104) => {
            "rpc.namespaces has no namespace with the name before the boundary"
        }
        (Some(CommandKind::Rpc), 108) => {
            "no proxy is enabled for the method: rpc.without_namespace, rpc.namespaces"
        }
        (_, 108) => TYPE,
        (Some(CommandKind::History), 103) => {
            "allow_history_for_client, _for_subscriber and _for_anonymous of the namespace do not allow it"
        }
        (Some(CommandKind::Presence | CommandKind::PresenceStats), 103) => {
            "allow_presence_for_client, _for_subscriber and _for_anonymous of the namespace do not allow it"
        }
        (Some(CommandKind::Publish), 103) => {
            "allow_publish_for_client, _for_subscriber and _for_anonymous of the namespace do not allow it"
        }
        (Some(CommandKind::SubRefresh), 103) => "the client is not subscribed to the channel",
        (_, 105) => "the client is subscribed to the channel already",
        (_, 106) => "the client has as many subscriptions as client.channel_limit allows",
        (_, 107) => {
            "the channel name is longer than channel.max_length, not ASCII, or does not match channel_regex"
        }
        (_, 110) => "the token expired before the command was executed",
        (_, 111) => {
            "more commands than client.rate_limit, publish_rate_limit, subscribe_rate_limit or limits of the namespace allow"
        }
        (_, 112) => "the publications after the client's position are no longer stored",
        (_, 4000..=4999) => "the backend, or a hook of the program, ended the connection",
        (_, 3505) => "more subscriptions than client.channel_limit allows",
        (_, 3506) => "a payload is not JSON, which clients with the JSON protocol need",
        (_, 3509) => "the client ignored too many errors 111 (client.rate_limit.refusal)",
        _ => "",
    }
}

/// The cause of a close code without a command.
pub(crate) fn cause_of_disconnect(code: u16) -> &'static str {
    match code {
        3001 => "the server stops",
        3005 => "the connection token expired, and the client sent no new one, or it was revoked",
        3006 => "the token of a server-side subscription expired",
        3008 => "more than client.queue_max_size bytes waited for a client that reads too slowly",
        3009 => "the socket took no bytes for websocket.write_timeout",
        3010 => "a server-side subscription lost its position in the stream",
        3012 => "the client did not answer a ping within client.pong_timeout",
        3013 => "the client sent too many bytes while a command waited for the engine",
        3502 => "the client sent no connect command within client.stale_close_delay",
        3503 => "the server API disconnected the user",
        3504 => "a newer connection of the user replaced this one (single_connection)",
        3506 => "a payload is not JSON, which clients with the JSON protocol need",
        3507 => "the server API blocked the user",
        _ => "",
    }
}

const HOOK: &str = "the backend, or a hook of the program, refused it";
const HOOK_ERROR_CODE: &str = "a hook returned an error with code 0";
const HOOK_CLOSE_CODE: &str = "a hook returned a code that no close frame may have";

/// The end of a cause that is longer.
const CUT: &str = "…";

/// A subscription by the server API or a token, without a command.
const BY_SERVER: &str = "server_subscribe";

#[cfg(test)]
mod tests;
