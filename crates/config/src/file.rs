//! Configuration files: JSON, YAML or TOML by their extension, read into one tree.
//! In: a path → out: an object of sections and values, or the position of the error.
//! Uses the parsers and the file system (this one read). Never: the meaning of keys.
//! A format is added here; `settings` interprets the tree.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;

#[cfg(test)]
mod tests;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    Yaml,
    Toml,
}

/// Why a file gives no configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    #[error("{}: cannot be read: {reason}", .path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("{}: longer than {FILE_BYTES_MAX} bytes", .path.display())]
    TooLarge { path: PathBuf },
    #[error("{}: unknown format, expected a name that ends in .json, .yaml, .yml or .toml", .path.display())]
    UnknownFormat { path: PathBuf },
    #[error("{}: not valid {format}: {reason}", .path.display())]
    Syntax { path: PathBuf, format: Format, reason: String },
    #[error("{}: expected sections such as `client` at the top", .path.display())]
    NotSections { path: PathBuf },
    /// A file that had keys when it was read before.
    #[error("{}: there is no key in the file any more; was it written completely? To go back to the defaults, restart", .path.display())]
    Emptied { path: PathBuf },
}

impl Format {
    /// Returns the format for a file extension: `.json`, `.yaml` or `.yml`, `.toml`.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "json" => Some(Self::Json),
            "yaml" | "yml" => Some(Self::Yaml),
            "toml" => Some(Self::Toml),
            _ => None,
        }
    }
}

/// A file's path and content.
pub(crate) type FileTree<'a> = (&'a Path, serde_json::Map<String, Json>);

/// Reads the file, if there is one.
///
/// # Errors
/// As [`read`].
pub(crate) fn tree(path: Option<&Path>) -> Result<Option<FileTree<'_>>, FileError> {
    path.map(|path| read(path).map(|tree| (path, tree))).transpose()
}

/// Reads and parses a file; the result is an object.
///
/// # Errors
/// `FileError`, which names the path and what would be right.
pub(crate) fn read(path: &Path) -> Result<serde_json::Map<String, Json>, FileError> {
    let path_buf = || path.to_owned();
    let format = Format::of(path).ok_or_else(|| FileError::UnknownFormat { path: path_buf() })?;
    let unreadable = |error: std::io::Error| FileError::Unreadable {
        path: path_buf(),
        reason: error.to_string(),
    };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(FileError::TooLarge { path: path_buf() });
    }
    match parse(format, &text) {
        Ok(Json::Object(sections)) => Ok(sections),
        Ok(Json::Null) => Ok(serde_json::Map::new()),
        Ok(_) => Err(FileError::NotSections { path: path_buf() }),
        Err(reason) => Err(FileError::Syntax { path: path_buf(), format, reason }),
    }
}

/// Parses a text; the error is the parser's, with line and column.
pub(crate) fn parse(format: Format, text: &str) -> Result<Json, String> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let empty = text.trim().is_empty();
    let tree = match format {
        _ if empty => Ok(Tree(Json::Null)),
        Format::Json => serde_json::from_str(text).map_err(|error| error.to_string()),
        Format::Yaml => yaml(text).map_err(|error| in_our_words(&error.to_string())),
        Format::Toml => toml::from_str(text).map_err(|error| error.to_string()),
    };
    tree.map(|Tree(json)| json).map_err(|reason| reason.trim().to_owned())
}

/// YAML 1.2: only `true` and `false` are switches, `no` and `on` are texts.
fn yaml(text: &str) -> Result<Tree, serde_saphyr::Error> {
    serde_saphyr::from_str_with_options(text, serde_saphyr::options! { strict_booleans: true })
}

/// Leaves out of the parser's text what speaks to its callers: options and functions of theirs, and a name for a file it
/// does not know.
fn in_our_words(reason: &str) -> String {
    let reason = reason.strip_prefix("error: ").unwrap_or(reason).to_owned();
    FOR_CALLERS.iter().fold(reason, |reason, (theirs, ours)| reason.replace(theirs, ours))
}

/// A JSON tree whose objects name each key once, whatever the format allows.
struct Tree(Json);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor).map(Tree)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a configuration value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(value.into())
    }

    /// JSON has no number for an infinity: it would be read as nothing, and the key as left out.
    fn visit_f64<E: Error>(self, value: f64) -> Result<Json, E> {
        let number = serde_json::Number::from_f64(value);
        number.map(Json::Number).ok_or_else(|| E::custom(format_args!("{value} is no number")))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_none<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(Tree(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut object = serde_json::Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if key == TOML_DATE {
                return entries.next_value::<String>().map(Json::String);
            }
            let Tree(value) = entries.next_value()?;
            if object.contains_key(&key) {
                return Err(A::Error::custom(format_args!("the key {key:?} stands here twice")));
            }
            object.insert(key, value);
        }
        Ok(Json::Object(object))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Json => "JSON",
            Format::Yaml => "YAML",
            Format::Toml => "TOML",
        })
    }
}

/// Mark that some editors put in front of a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// How the TOML parser hands out a date: as a map with this key alone.
const TOML_DATE: &str = "$__toml_private_datetime";

/// Texts of the YAML parser, and the words for the writer of a file that replace them.
const FOR_CALLERS: [(&str, &str); 6] = [
    (", set DuplicateKeyPolicy in Options if acceptable", ""),
    ("; use from_str_multiple or from_str_multiple_with_options", ""),
    ("; use Option<String>", ""),
    ("recursive references require weak recursion types", "an alias inside of what it stands for"),
    ("budget breached: ", "more than a configuration may hold: "),
    ("--> <input>:", "--> "),
];

/// Far above any configuration that a person wrote.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
