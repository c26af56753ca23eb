//! The environment of the process, merged with the file `.env` of the working directory.
//! In: variables, a file of `NAME=value` lines → out: pairs; a variable of the process has priority.
//! Uses the file system to read that file. Never: the meaning of a variable.
//! The syntax of `.env` is in `dot_env`; the variables of keys are defined in `fanwire_config`.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};

mod dot_env;

/// All variables, in the form that `fanwire_config::load` accepts.
pub(crate) fn variables() -> Result<impl Iterator<Item = (String, String)>> {
    match std::fs::read_to_string(FILE) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(with_process(BTreeMap::new())),
        read => {
            let text = read.with_context(|| format!("the file {FILE} cannot be read"))?;
            let variables = dot_env::parse(&text).with_context(|| format!("the file {FILE}"))?;
            Ok(with_process(variables))
        }
    }
}

/// The same with another file than `.env`, which must exist.
pub(crate) fn variables_of(file: &Path) -> Result<impl Iterator<Item = (String, String)>> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("the file {} cannot be read", file.display()))?;
    let variables =
        dot_env::parse(&text).with_context(|| format!("the file {}", file.display()))?;
    Ok(with_process(variables))
}

/// Adds the variables of the process, which have priority.
fn with_process(mut variables: BTreeMap<String, String>) -> impl Iterator<Item = (String, String)> {
    for (name, value) in std::env::vars_os() {
        if let Ok(name) = name.into_string() {
            variables.insert(name, value.to_string_lossy().into_owned());
        }
    }
    variables.into_iter()
}

/// Variables of the working directory.
pub(crate) const FILE: &str = ".env";
