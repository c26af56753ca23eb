//! `fanwire sample-config`, `config-doc`, `api-doc` and `version`: text that comes from the program itself.
//! In: a format → out: text on stdout.
//! Uses `fanwire::config::document`. Never: files.
//! What the texts say lives in the rows of keys and of API methods.

use std::io::{ErrorKind, Write};

use anyhow::{Context, Result};
use fanwire::config::document;

use crate::arguments::SampleConfig;

pub(crate) fn sample(arguments: &SampleConfig) -> Result<()> {
    print(&document::sample(arguments.format.into()))
}

pub(crate) fn page() -> Result<()> {
    print(&document::markdown())
}

pub(crate) fn api_page() -> Result<()> {
    print(&fanwire::api::ApiOptions::default().openapi())
}

pub(crate) fn version() -> Result<()> {
    print(concat!("fanwire ", env!("CARGO_PKG_VERSION"), "\n"))
}

/// Prints; a reader that has seen enough (`| head`) is no error.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("standard output cannot be written to")
        }
        _ => Ok(()),
    }
}
