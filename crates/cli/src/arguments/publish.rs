//! Options of `fanwire publish`.
//! In: arguments → out: parsed options with their defaults.
//! Uses clap. Never: reads files.
//! Changed here: an option; what it does is in `publish`.

use std::path::PathBuf;

use clap::Args;

use super::{ApiServer, rate};

#[derive(Debug, Args)]
pub(crate) struct Publish {
    pub(crate) channel: String,
    /// The message: a JSON text
    #[arg(value_name = "JSON", required_unless_present_any = ["file", "map_remove"])]
    pub(crate) data: Option<String>,
    /// Messages: one JSON text per line (.jsonl), or binary records, each preceded by its length in four bytes,
    /// little-endian (.bin)
    #[arg(short, long, value_name = "FILE", conflicts_with = "data")]
    pub(crate) file: Option<PathBuf>,
    /// Messages per second, above 0 and up to 1000000; without it, as fast as the server takes them
    #[arg(short, long, value_name = "NUMBER", value_parser = rate, allow_negative_numbers = true)]
    pub(crate) rate: Option<f64>,
    /// A tag of each message; may be given several times
    #[arg(short, long = "tag", value_name = "NAME=VALUE", value_parser = tag)]
    pub(crate) tags: Vec<(String, String)>,
    /// `reliable` or `latest`, instead of the delivery of the channel's namespace
    #[arg(long, value_name = "CLASS", value_parser = ["reliable", "latest"])]
    pub(crate) delivery: Option<String>,
    /// Set this key of a map channel to the message
    #[arg(long, value_name = "KEY", conflicts_with = "delivery")]
    pub(crate) map_key: Option<String>,
    /// Remove this key of a map channel
    #[arg(long, value_name = "KEY", conflicts_with_all = ["data", "file", "map_key", "tags", "delivery"])]
    pub(crate) map_remove: Option<String>,
    #[command(flatten)]
    pub(crate) server: ApiServer,
}

fn tag(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = parts.ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
