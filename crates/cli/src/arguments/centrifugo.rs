//! Command lines of Centrifugo: its name as the program or as the first word, and flags from before v6.
//! In: the words of the process → out: parsed arguments, and whether Centrifugo was called.
//! Uses clap and the names of keys. Never: runs a command, reads a file.
//! Changed here: what is read otherwise under that name. docs/migration.md lists the commands.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ErrorKind};
use clap::{CommandFactory as _, Parser as _};
use fanwire_config::renamed;

use super::Arguments;

/// A parsed command line.
#[derive(Debug)]
pub(super) struct CommandLine {
    pub(super) arguments: Arguments,
    pub(super) is_centrifugo: bool,
    /// Lines for the log.
    pub(super) remarks: Vec<String>,
}

impl CommandLine {
    /// # Errors
    /// Those of clap; a flag from before v6 has its new name in the text.
    pub(super) fn parse(mut words: Vec<OsString>) -> Result<Self, clap::Error> {
        let is_program = words.first().is_some_and(is_name);
        let is_first_word = words.get(1).is_some_and(is_name);
        if is_first_word {
            words.remove(1);
        }
        let is_centrifugo = is_program || is_first_word;
        let mut remarks = Vec::new();
        loop {
            let error = match Arguments::try_parse_from(&words) {
                Ok(arguments) => return Ok(Self { arguments, is_centrifugo, remarks }),
                Err(error) => error,
            };
            let Some((flag, key)) = former_flag(&error) else { return Err(error) };
            if !is_centrifugo || !replace(&mut words, &flag, key) {
                let text = format!(
                    "unexpected argument '{flag}' found: since Centrifugo v6 it is --{key}"
                );
                return Err(Arguments::command().error(ErrorKind::UnknownArgument, text));
            }
            remarks.push(format!("{flag} is a flag of Centrifugo before v6, read as --{key}"));
        }
    }
}

/// The flag that clap does not know, and its key of today: clap would only suggest a similar name.
fn former_flag(error: &clap::Error) -> Option<(String, &'static str)> {
    let flag = error.get(ContextKind::InvalidArg)?.to_string();
    let key = renamed(flag.strip_prefix("--")?)?;
    (error.kind() == ErrorKind::UnknownArgument).then_some((flag, key))
}

/// Puts the flag of a key in the place of its former one. Returns whether there is one.
fn replace(words: &mut [OsString], flag: &str, key: &str) -> bool {
    for word in words {
        let rest = word.to_str().and_then(|word| word.strip_prefix(flag));
        if let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with('=')) {
            *word = format!("--{key}{rest}").into();
            return true;
        }
    }
    false
}

fn is_name(word: &OsString) -> bool {
    Path::new(word).file_name().is_some_and(|name| name == "centrifugo")
}

#[cfg(test)]
mod tests;
