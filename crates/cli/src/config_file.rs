//! The configuration file of a command that names none: the one of the working directory.
//! In: the name of the program → out: the absolute path of a file, and remarks for the log.
//! Uses `fanwire_config` to recognise a file. Never: its values.
//! Changed here: which names are looked for. A file that a command names is read as it is.

use std::path::{Path, PathBuf};

use fanwire_config::is_configuration;

/// How the configuration file of the server was found.
#[derive(Debug, Default)]
pub(crate) struct ConfigOrigin {
    /// The program or its first word is `centrifugo`.
    pub(crate) is_centrifugo: bool,
    /// Lines for the log.
    pub(crate) remarks: Vec<String>,
}

impl ConfigOrigin {
    /// Makes the path absolute; without one, looks for a file: as Centrifugo for `config.json` alone, else for `fanwire.yaml`
    /// first, and a `config.json` of another program does not count.
    pub(crate) fn complete(&mut self, config: &mut Option<PathBuf>) {
        if config.is_none() {
            *config = self.first();
        }
        if let Some(absolute) = config.as_deref().and_then(|path| std::path::absolute(path).ok()) {
            *config = Some(absolute);
        }
    }

    /// The file that is read; the others that are there get a remark.
    fn first(&mut self) -> Option<PathBuf> {
        let mut read = None;
        for file in NAMES.into_iter().filter(|file| Path::new(file).is_file()) {
            match self.refusal(file, read.is_none()) {
                None => read = Some(PathBuf::from(file)),
                Some(why) => {
                    self.remarks.push(format!("{file} of this folder is not read: {why}"));
                }
            }
        }
        read
    }

    /// Why a file is not read.
    fn refusal(&self, file: &str, is_first: bool) -> Option<String> {
        let is_ours = file == OURS && !self.is_centrifugo;
        let is_of_centrifugo = file == OF_CENTRIFUGO;
        if !is_first || !(is_ours || is_of_centrifugo) {
            return Some(format!("use --config {file} to read it"));
        }
        if is_ours || self.is_centrifugo {
            return None;
        }
        match is_configuration(Path::new(file)) {
            Ok(true) => None,
            Ok(false) => Some("it has no section of the configuration".to_owned()),
            Err(error) => Some(error.to_string()),
        }
    }
}

/// The file that `init` writes, and that our documentation names.
pub(crate) const OURS: &str = "fanwire.yaml";

/// The only file that Centrifugo reads without a flag that names it.
pub(crate) const OF_CENTRIFUGO: &str = "config.json";

/// Names under which a configuration is expected, the first choice first.
const NAMES: [&str; 5] = [OURS, OF_CENTRIFUGO, "config.toml", "config.yaml", "fanwire.yml"];
