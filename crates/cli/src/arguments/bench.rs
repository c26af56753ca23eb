//! Options of `fanwire bench`.
//! In: arguments → out: parsed options with their defaults.
//! Uses clap. Never: reads files.
//! Changed here: an option; what it does is in the crate `load`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::ServerTrust;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(
    after_help = "Exit codes: 0 all was right, 1 something was lost, doubled, reordered, broken or disconnected, \
                        2 nothing could be measured. docs/bench.md explains every figure."
)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) command: Option<BenchCommand>,
    #[command(flatten)]
    pub(crate) server: BenchServer,
    #[command(flatten)]
    pub(crate) load: BenchLoad,
    #[command(flatten)]
    pub(crate) output: BenchOutput,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Sum up histogram files of several runs or generators
    Merge {
        /// Files that --histogram wrote
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// Also write the sum
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct BenchServer {
    /// Address where clients connect, ws://HOST:PORT/connection/websocket or wss://…; without it, as the configuration says
    #[arg(short, long)]
    pub(crate) url: Option<String>,
    /// Token of all connections
    #[arg(short, long)]
    pub(crate) token: Option<String>,
    /// Address of the server API with its prefix, http://HOST:PORT/api or https://…; without it, as the configuration says
    #[arg(long, value_name = "URL")]
    pub(crate) api_url: Option<String>,
    #[command(flatten)]
    pub(crate) trust: ServerTrust,
    /// The API key, instead of http_api.key
    #[arg(short, long)]
    pub(crate) key: Option<String>,
    /// The server's configuration file, of which the addresses and the API key are used; -c is --connections here
    #[arg(short = 'C', long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The server's process on this machine: shows its CPU and memory
    #[arg(long)]
    pub(crate) pid: Option<u32>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct BenchLoad {
    /// Connections that read all the time; -c FILE of other commands is -C here
    #[arg(short, long, value_name = "NUMBER", default_value_t = 100)]
    pub(crate) connections: usize,
    /// Further connections that read slowly
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) slow: usize,
    /// Bytes per second that each slow connection reads
    #[arg(long, value_name = "BYTES", default_value_t = 65_536)]
    pub(crate) slow_rate: usize,
    /// Further connections that read nothing until publishing has ended
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) stopped: usize,
    /// Connections per second that are closed and opened again
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0, allow_negative_numbers = true)]
    pub(crate) churn: f64,
    /// Speak Protobuf instead of JSON
    #[arg(long)]
    pub(crate) protobuf: bool,
    /// Offer permessage-deflate
    #[arg(long)]
    pub(crate) compression: bool,
    /// Name of the channel, or beginning of the names of several
    #[arg(long, value_name = "NAME", default_value = "bench")]
    pub(crate) channel: String,
    /// Number of channels
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) channels: u32,
    /// Channels that each connection subscribes to
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) subscriptions: u32,
    /// Prefers the first channels, for subscriptions and publications: the k-th has a share of 1 / k^EXPONENT
    #[arg(long, value_name = "EXPONENT", num_args = 0..=1, default_missing_value = "1")]
    pub(crate) zipf: Option<f64>,
    /// Publications per second in all channels (open loop)
    #[arg(
        short,
        long,
        value_name = "NUMBER",
        default_value_t = 100.0,
        allow_negative_numbers = true
    )]
    pub(crate) rate: f64,
    /// Closed loop: so many publications wait for their last receiver; hides delays of the server
    #[arg(long, value_name = "NUMBER", conflicts_with = "rate")]
    pub(crate) closed: Option<usize>,
    /// How to publish; by default `api` if there is a key, and `client` otherwise
    #[arg(long, value_name = "METHOD", value_enum)]
    pub(crate) publish: Option<BenchMethod>,
    /// Connections to the server API; all publications of a channel use the same one
    #[arg(long, value_name = "NUMBER", default_value_t = 8)]
    pub(crate) api_connections: usize,
    /// Publish with `delivery: latest`: publications that a newer one replaces are no losses
    #[arg(long)]
    pub(crate) latest: bool,
    /// Size of the payload
    #[arg(short = 's', long, value_name = "BYTES", default_value_t = 200)]
    pub(crate) size: usize,
    /// Share of random characters in the payload, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.3, allow_negative_numbers = true)]
    pub(crate) random: f64,
    /// Messages to publish instead: JSON texts by lines (.jsonl), or records with a length prefix (.bin, needs --protobuf)
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["size", "random"])]
    pub(crate) file: Option<PathBuf>,
    /// Measured time, for example 30s or 2m
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Time before that is not measured
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    pub(crate) warm_up: Duration,
    /// Parts of the measured time whose latencies are shown apart
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    pub(crate) runs: usize,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct BenchOutput {
    /// Also write the report as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Also write the report as one page with plots
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Also write the latencies as a log of HdrHistogram
    #[arg(long, value_name = "FILE")]
    pub(crate) histogram: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum BenchMethod {
    /// POST publish, a request for each
    Api,
    /// POST batch, with all that are due
    Batch,
    /// Fanwire's POST stream
    Stream,
    /// The publish command of a client
    Client,
}

/// A number with the unit ms, s or m; without one, seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let (number, scale) = match text {
        _ if text.ends_with("ms") => (text.trim_end_matches("ms"), 1e-3),
        _ if text.ends_with('s') => (text.trim_end_matches('s'), 1.0),
        _ if text.ends_with('m') => (text.trim_end_matches('m'), 60.0),
        _ => (text, 1.0),
    };
    let seconds = number
        .parse::<f64>()
        .ok()
        .map(|number| number * scale)
        .filter(|seconds| (0.0..=DURATION_MAX).contains(seconds))
        .ok_or("expected a time up to a day, for example 500ms, 10s or 2m")?;
    Ok(Duration::from_secs_f64(seconds))
}

const DURATION_MAX: f64 = 86_400.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit_or_is_in_seconds() {
        for (text, milliseconds) in
            [("500ms", 500), ("10s", 10_000), ("2m", 120_000), ("1.5", 1_500), ("0", 0)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for wrong in ["", "s", "-1s", "10h", "NaN", "inf", "2 days", "86401"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
