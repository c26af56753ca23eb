//! Paths of the API that do not exist, and HTTP methods other than POST.
//! In: a path below the prefix of the API, the HTTP method → out: a text with the nearest methods.
//! Uses `strsim`. Never: a response, the log.
//! Changed here: the texts; which paths exist is in `http`.

use fanwire_telemetry::excerpt;
use strsim::osa_distance;

use super::HttpApi;
use crate::Method;

impl HttpApi {
    /// Describes the error in a path that has no page and begins like a path of the API; `None` for other paths.
    pub fn unknown_path(&self, path: &str) -> Option<String> {
        let name = path.strip_prefix(self.prefix.as_str())?.strip_prefix('/')?;
        let nearest = nearest(name);
        let name = excerpt(name);
        Some(format!(
            "the server API has no method {name:?}, the nearest are {}",
            nearest.join(", ")
        ))
    }
}

/// The methods that `name` was probably meant to be, the nearest first.
fn nearest(name: &str) -> [&'static str; NEAREST] {
    let name: String = name.chars().take(NAME_CHARS_MAX).flat_map(char::to_lowercase).collect();
    let mut methods = Method::ALL.map(|method| (osa_distance(&name, method.name()), method.name()));
    methods.sort_by_key(|(distance, _)| *distance);
    std::array::from_fn(|index| methods[index].1)
}

const NEAREST: usize = 3;

/// More than any method has; comparing takes time in proportion.
const NAME_CHARS_MAX: usize = 32;

#[cfg(test)]
mod tests;
