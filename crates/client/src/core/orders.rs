//! What a client has decided: orders to the shell, commands to the server, and the chance and the time that it needs for them.
//! Decisions of `core` and of subscriptions → outputs, commands, numbers of requests, random delays.
//! Pure; the time is that of the input that is handled.
//! Changed here: a kind of order. When it is given is decided in `core` and `subscriptions`.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use fanwire_protocol::{Command, NotJson, Reply};

use super::backoff::Jitter;
use super::commands::{OutgoingCommands, Purpose};
use crate::{ClientConfig, ClientError, ClientEvent, SubscriptionEvent};

/// An order to the shell.
#[derive(Debug, PartialEq)]
pub(crate) enum Output {
    /// Open a transport, and say `opened` or `failed`.
    Open,
    /// Send one message.
    Send(Vec<u8>),
    /// Close the transport, if there is one, and say nothing more about it.
    Close,
    /// Ask the application for a token, of a channel or of the connection, and answer with `token` under this number.
    GetToken {
        request: u64,
        channel: Option<String>,
    },
    Event(ClientEvent),
    SubscriptionEvent {
        channel: String,
        event: SubscriptionEvent,
    },
    /// A call has its result.
    Finished {
        call: u64,
        result: Result<Box<Reply>, ClientError>,
    },
}

/// The orders of one client that were not taken yet.
pub(super) struct Orders {
    /// Time of the input that is handled.
    pub(super) now: Instant,
    pub(super) commands: OutgoingCommands,
    outputs: VecDeque<Output>,
    jitter: Jitter,
    /// Number of the last request for a token, or of the last subscribe.
    last_number: u64,
}

impl Orders {
    pub(super) fn new(config: &ClientConfig, seed: u64, now: Instant) -> Self {
        Self {
            now,
            commands: OutgoingCommands::new(config.encoding, config.timeout),
            outputs: VecDeque::new(),
            jitter: Jitter::new(seed),
            last_number: 0,
        }
    }

    /// The next order. Commands of all inputs since the last `None` go in one message.
    pub(super) fn take(&mut self) -> Option<Output> {
        self.outputs.pop_front().or_else(|| self.commands.take_message().map(Output::Send))
    }

    pub(super) fn push(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    /// Sends a command whose reply is `purpose`'s.
    ///
    /// # Errors
    /// A payload is not JSON.
    pub(super) fn send(&mut self, command: Command, purpose: Purpose) -> Result<(), NotJson> {
        self.commands.push(command, purpose, self.now)
    }

    /// A number that no request and no subscribe had before.
    pub(super) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub(super) fn ask_for_token(&mut self, channel: Option<String>) -> u64 {
        let request = self.next_number();
        self.push(Output::GetToken { request, channel });
        request
    }

    /// The time of the next attempt after failed ones.
    pub(super) fn next_attempt(&mut self, attempts: u32, min: Duration, max: Duration) -> Instant {
        let delay = self.jitter.delay(attempts, min, max);
        self.after(delay)
    }

    /// The time after a delay, which an application may have set to any number.
    pub(super) fn after(&self, delay: Duration) -> Instant {
        self.now + delay.min(DELAY_MAX)
    }

    pub(super) fn finish(&mut self, call: u64, result: Result<Box<Reply>, ClientError>) {
        self.push(Output::Finished { call, result });
    }

    pub(super) fn event(&mut self, event: ClientEvent) {
        self.push(Output::Event(event));
    }

    pub(super) fn subscription_event(&mut self, channel: &str, event: SubscriptionEvent) {
        self.push(Output::SubscriptionEvent { channel: channel.to_owned(), event });
    }

    pub(super) fn subscribing(&mut self, channel: &str, code: u32, reason: &str) {
        let reason = reason.to_owned();
        self.subscription_event(channel, SubscriptionEvent::Subscribing { code, reason });
    }
}

/// The renewal of a token that expires.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Refresh {
    #[default]
    None,
    At(Instant),
    /// The application was asked for a token.
    Token {
        request: u64,
    },
    Sent,
}

impl Refresh {
    /// The renewal of a token that expires in `ttl` seconds. 0 would renew in a loop.
    pub(super) fn before(ttl: u32, now: Instant) -> Self {
        Self::At(now + Duration::from_secs(ttl.max(1).into()))
    }

    /// The renewal after one that failed; servers wait 25 s for it.
    pub(super) fn again(now: Instant) -> Self {
        Self::At(now + REFRESH_RETRY)
    }
}

/// Time after which a renewal that failed is tried again.
pub(super) const REFRESH_RETRY: Duration = Duration::from_secs(10);

/// Longer than any process.
const DELAY_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
