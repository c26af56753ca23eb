//! `fanwire subscribe`: prints the publications of channels, each with its time, its offset and its bytes on the wire.
//! In: channels, an address, a token → out: a line for each publication on stdout; what happens to the connection on stderr.
//! Uses the client for programs. Never: the server API.
//! Options are changed in `arguments/subscribe`; docs/operation.md shows the output.

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, anyhow, bail};
use fanwire_client::{
    Client, ClientConfig, ClientError, ClientEvent, CompressionConfig, Publication, StreamPosition,
    SubscribedContext, SubscriptionConfig, SubscriptionEvent,
};
use futures_util::stream::{StreamExt as _, select_all};
use serde_json::{Value, json, value::RawValue};
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::Subscribe;
use crate::local::{LocalServer, with_remedy};
use crate::top::{ScreenSize, printable};

#[cfg(test)]
mod tests;

pub(crate) fn run(arguments: &Subscribe) -> Result<()> {
    let local = LocalServer::load(arguments.config.as_deref())?;
    let url = arguments.url.as_deref().map_or_else(|| local.websocket_url(), with_path);
    let tls = local.tls(&arguments.trust, arguments.url.as_ref(), false)?;
    let config = ClientConfig::default()
        .token(arguments.token.clone().unwrap_or_default())
        .compression(Some(CompressionConfig::default()))
        .tls(Some(Arc::clone(tls.config())))
        .tls_server_name(tls.server_name())
        .name("fanwire subscribe");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(print_publications(arguments, &url, config)).map_err(with_remedy)
}

/// The address with the usual path, if it has none.
fn with_path(url: &str) -> String {
    let has_path = url.split_once("://").is_some_and(|(_, rest)| rest.contains(['/', '?']));
    if has_path { url.to_owned() } else { format!("{url}{WEBSOCKET_PATH}") }
}

async fn print_publications(arguments: &Subscribe, url: &str, config: ClientConfig) -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let client = Client::new(url, config).context("--url")?;
    let mut connection = client.events();
    let mut streams = Vec::new();
    for channel in &arguments.channels {
        let subscription = client.new_subscription(channel, subscription_config(arguments))?;
        let name = channel.clone();
        streams.push(subscription.events().map(move |event| (name.clone(), event)));
        subscription.subscribe();
    }
    let mut events = select_all(streams);
    client.connect();
    let printer = Printer::new(arguments);
    let mut is_known = false;
    loop {
        tokio::select! {
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
            event = connection.next() => {
                let event = event.context("the client ended")?;
                is_known |= matches!(event, ClientEvent::Connected { .. });
                on_connection(event, url, is_known)?;
            }
            Some((channel, event)) = events.next() => match event {
                SubscriptionEvent::Publication { publication, wire_bytes } => {
                    let is_read = printer.print(&channel, &publication, wire_bytes)?;
                    if !is_read {
                        break;
                    }
                }
                SubscriptionEvent::Subscribed(subscribed) => {
                    note(&subscribed_note(&channel, &subscribed, arguments.recover));
                }
                SubscriptionEvent::Unsubscribed { code, reason } => {
                    bail!("the server refuses the channel {channel}: {reason} ({code})");
                }
                SubscriptionEvent::Error(error) => {
                    note(&format!("{channel}: {error}; the client tries again"));
                }
                _ => {}
            },
        }
    }
    client.close().await;
    Ok(())
}

fn subscription_config(arguments: &Subscribe) -> SubscriptionConfig {
    let config = SubscriptionConfig::default().recoverable(arguments.recover);
    // The beginning of a stream, whose epoch is not known here.
    config.since(arguments.recover.then(StreamPosition::default))
}

/// Says what happened to the connection.
///
/// # Errors
/// The server refuses the client, or was never there.
fn on_connection(event: ClientEvent, url: &str, is_known: bool) -> Result<()> {
    match event {
        ClientEvent::Disconnected { code, reason } => {
            let remedy = if code == INVALID_TOKEN || code == TOKEN_EXPIRED {
                "; `fanwire token` prints one for --token"
            } else {
                ""
            };
            bail!("the server refuses the connection: {reason} ({code}){remedy}");
        }
        ClientEvent::Connecting { code, reason } if is_known => {
            note(&format!("connection lost: {reason} ({code}); the client connects again"));
            Ok(())
        }
        ClientEvent::Error(_) if is_known => Ok(()), // the client goes on, as it said
        ClientEvent::Error(ClientError::Status { status }) => {
            bail!(
                "{url} is no WebSocket of a server: it answers with HTTP status {status}; check --url"
            )
        }
        ClientEvent::Error(ClientError::Timeout) => bail!("no server answers at {url} in time"),
        ClientEvent::Error(error @ ClientError::Transport(_)) => {
            Err(anyhow!("no server answers at {url}: {error}"))
        }
        _ => Ok(()),
    }
}

fn subscribed_note(channel: &str, subscribed: &SubscribedContext, recover: bool) -> String {
    let position = subscribed.position.as_ref();
    let at = position.map_or(String::new(), |position| format!(" at offset {}", position.offset));
    let missing = if recover && !subscribed.recoverable {
        "; it has no recovery (allow_recovery of its namespace)"
    } else if subscribed.was_recovering && !subscribed.recovered {
        "; the history does not have all of what is before"
    } else {
        ""
    };
    format!("subscribed to {channel}{at}{missing}")
}

/// A line on stderr, whose error must not end the command.
fn note(text: &str) {
    let text = printable(text, usize::MAX);
    let _ = writeln!(std::io::stderr(), "fanwire: {text}");
}

/// The form of a line.
struct Printer {
    is_json: bool,
    /// More than one channel is subscribed, so lines name theirs.
    names_channel: bool,
    columns: usize,
}

impl Printer {
    fn new(arguments: &Subscribe) -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        let columns = if is_terminal {
            ScreenSize::of_terminal().columns
        } else {
            ScreenSize::UNLIMITED.columns
        };
        let names_channel = arguments.channels.len() > 1;
        Self { is_json: arguments.json, names_channel, columns }
    }

    /// Prints a publication; `false` when the reader of stdout is gone.
    fn print(&self, channel: &str, publication: &Publication, wire_bytes: usize) -> Result<bool> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let line = if self.is_json {
            json_line(now, channel, publication, wire_bytes)
        } else {
            self.text_line(now, channel, publication, wire_bytes)
        };
        let mut out = std::io::stdout().lock();
        match writeln!(out, "{line}").and_then(|()| out.flush()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(error).context("standard output cannot be written to"),
        }
    }

    fn text_line(
        &self,
        now: Duration,
        channel: &str,
        publication: &Publication,
        wire_bytes: usize,
    ) -> String {
        let seconds = now.as_secs();
        let hours = seconds / 3600 % 24;
        let minutes = seconds / 60 % 60;
        let time =
            format!("{hours:02}:{minutes:02}:{:02}.{:03}", seconds % 60, now.subsec_millis());
        let channel = if self.names_channel { format!("{channel}  ") } else { String::new() };
        let data = String::from_utf8_lossy(&publication.data);
        let offset = publication.offset;
        let line = format!("{time} {offset:>8} {wire_bytes:>6} B  {channel}{data}");
        printable(&line, self.columns)
    }
}

fn json_line(now: Duration, channel: &str, publication: &Publication, wire_bytes: usize) -> String {
    let mut fields = json!({
        "time": u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        "channel": channel,
        "offset": publication.offset,
        "wire_bytes": wire_bytes,
    });
    if !publication.tags.is_empty() {
        fields["tags"] = json!(publication.tags);
    }
    if let Some(info) = &publication.info {
        fields["user"] = Value::String(info.user.clone());
    }
    let text = String::from_utf8_lossy(&publication.data);
    // The message stays as it is: the order of its keys, and its numbers. A JSON connection gets nothing that is not JSON.
    let data = match serde_json::from_str::<&RawValue>(&text) {
        Ok(raw) => raw.get().to_owned(),
        Err(_) => json!(text).to_string(),
    };
    let object = fields.to_string();
    let members = object.strip_suffix('}').unwrap_or(&object);
    format!("{members},\"data\":{data}}}")
}

/// Path of WebSockets by default.
const WEBSOCKET_PATH: &str = "/connection/websocket";

/// Close code for a token that is wrong.
const INVALID_TOKEN: u32 = 3500;

/// Error of a token that has expired.
const TOKEN_EXPIRED: u32 = 109;
