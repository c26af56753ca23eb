//! Options of `fanwire doctor`.
//! In: arguments → out: parsed options with their defaults.
//! Uses clap. Never: reads files.
//! Changed here: an option; what it does is in `doctor`.

use clap::Args;

use super::{ApiServer, ServerTrust};

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 nothing was found, 1 something was, 2 nothing could be checked. docs/doctor.md explains every finding."
)]
pub(crate) struct Doctor {
    /// Address as clients use it: https://HOST[:PORT][/PREFIX], or that of the WebSocket, wss://HOST/connection/websocket
    #[arg(value_name = "URL")]
    pub(crate) address: String,
    /// Token of a client; the server's address check needs one with a user
    #[arg(short, long)]
    pub(crate) token: Option<String>,
    /// Origin of the page that connects, such as https://app.example.com
    #[arg(long)]
    pub(crate) origin: Option<String>,
    /// Seconds without data after which connections must still be open, 0 to 600; at most the ping interval of the server is used
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=600))]
    pub(crate) idle: u64,
    /// Address of the server API, to learn which address of this machine the server sees: http://HOST:PORT/api
    #[arg(long, value_name = "URL")]
    pub(crate) api: Option<String>,
    /// The API key
    #[arg(short, long)]
    pub(crate) key: Option<String>,
    /// Authorities that sign the certificate of the server (PEM), instead of the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

impl Doctor {
    /// Options of the API client; `None` without `--api`.
    pub(crate) fn api_server(&self) -> Option<ApiServer> {
        let url = Some(self.api.clone()?);
        let trust = ServerTrust { ca: self.ca.clone(), insecure: false };
        Some(ApiServer { url, trust, key: self.key.clone(), config: None })
    }
}
