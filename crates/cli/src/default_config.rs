//! `fanwire defaultconfig`: a file with every key, written as Centrifugo's command does.
//! In: the name of a file, and perhaps of another one with values → out: the file, or its text on stdout.
//! Uses `fanwire_config::document`, and `init` to write. Never: an existing file.
//! Changed here: how the text of another file is merged. `sample-config` prints the same keys with their sentences.

use std::path::Path;

use anyhow::{Result, anyhow};
use fanwire_config::{FileError, Format, document, load};

use crate::arguments::DefaultConfig;
use crate::{document::print, init};

pub(crate) fn run(arguments: &DefaultConfig) -> Result<()> {
    let path = &arguments.config;
    let format = Format::of(path).ok_or_else(|| FileError::UnknownFormat { path: path.clone() })?;
    let text = match &arguments.base {
        None => document::sample(format),
        Some(base) => merged(base, format)?,
    };
    if arguments.dry_run {
        return print(&text);
    }
    init::write(path, &text, false)
}

/// The defaults below the values of a file, which must be right.
fn merged(base: &Path, format: Format) -> Result<String> {
    load(Some(base), std::iter::empty(), &[])?;
    let tree = document::sample_over(base)?;
    match format {
        Format::Json => Ok(serde_json::to_string_pretty(&tree)? + "\n"),
        Format::Toml => Ok(toml::to_string_pretty(&tree)?),
        Format::Yaml => serde_saphyr::to_string(&tree).map_err(|error| anyhow!("{error}")),
    }
}
