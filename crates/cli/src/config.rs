//! `fanwire config`: the values with which a server would start here, and where each comes from.
//! In: a file, the environment, `.env` → out: a line for each key that is set, or for all; secrets are masked.
//! Uses `fanwire_config`. Never: a server, a check of the values, which `check-config` does.
//! The form of a line is changed here; what is masked is decided in `fanwire_config`.

use anyhow::Result;
use fanwire_config::{LoadedConfig, Source};

use crate::arguments::ShowConfig;
use crate::{document, environment};

pub(crate) fn run(arguments: &ShowConfig) -> Result<()> {
    let path = arguments.config.as_deref();
    let (loaded, _) = LoadedConfig::load(path, environment::variables()?, &[])?;
    let rows = loaded.values_in_force().into_iter();
    let rows = rows.filter(|row| arguments.all || row.source != Source::Default);
    let lines: String =
        rows.map(|row| format!("{}: {}  # {}\n", row.key, row.value, row.source)).collect();
    document::print(&lines)
}
