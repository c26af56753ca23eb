//! Options of `fanwire subscribe`.
//! In: arguments → out: parsed options with their defaults.
//! Uses clap. Never: reads files.
//! Changed here: an option; what it does is in `subscribe`.

use std::path::PathBuf;

use clap::Args;

use super::ServerTrust;

#[derive(Debug, Args)]
#[command(
    after_help = "Each line has the time (UTC), the offset, the bytes on the wire and the message; on a terminal it is cut to its width. \
                  Exit codes: 0 after Ctrl-C, 1 when the server refuses or is not there."
)]
pub(crate) struct Subscribe {
    #[arg(value_name = "CHANNEL", required = true)]
    pub(crate) channels: Vec<String>,
    /// Address of the WebSocket, ws://HOST:PORT[/PATH] or wss://…; without it, as the configuration says
    #[arg(short, long)]
    pub(crate) url: Option<String>,
    /// Connection token, as `fanwire token` prints one
    #[arg(short, long)]
    pub(crate) token: Option<String>,
    /// Print what the history has first, and what was published while the connection was lost
    #[arg(short, long)]
    pub(crate) recover: bool,
    /// Print one JSON object for each publication
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) trust: ServerTrust,
    /// The server's configuration file, of which the address is used
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}
