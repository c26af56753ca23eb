//! Labels of a connection that come from other claims of its token (Centrifugo v6 `client.token.labels_from_claim`).
//! In: names and paths from the configuration, the payload of a verified token → out: texts by name.
//! May use: serde_json. Pure; never checks signatures.
//! Changed here: the form of paths; the claim `labels` is read in `claims.rs`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::OptionsError;

/// A label, and the claim that has its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimLabel {
    /// Name of the label.
    pub key: String,
    /// Path in the claims: names of fields and indices of lists with dots between them, `\.` for a dot in a name.
    pub path: String,
}

/// Adds the labels that a token has. Numbers and booleans become texts, lists and objects their JSON. A path that leads
/// nowhere, or to null, adds nothing.
pub(super) fn add(sources: &[ClaimLabel], json: &[u8], labels: &mut BTreeMap<String, String>) {
    if sources.is_empty() {
        return;
    }
    let Ok(claims) = serde_json::from_slice::<Value>(json) else { return };
    for ClaimLabel { key, path } in sources {
        let text = match find(&claims, path) {
            None | Some(Value::Null) => continue,
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        labels.insert(key.clone(), text);
    }
}

/// Checks names and paths; `prefix_key` is where the options stand (`client.token`).
pub(super) fn mistakes(sources: &[ClaimLabel], prefix_key: &str) -> Vec<OptionsError> {
    let mistake = |(index, source): (usize, &ClaimLabel)| {
        let key = |field| format!("{prefix_key}.labels_from_claim[{index}].{field}");
        let is_path = parts(&source.path).all(|part| {
            !part.is_empty() && !part.contains(['*', '?', '#', '|', '@', '!', '(', '{'])
        });
        if source.key.is_empty() {
            return Some(OptionsError::value(key("key"), "", "the name of a label"));
        }
        let expected = "names of claims and indices with dots between them, as in roles.0";
        (!is_path).then(|| OptionsError::value(key("value"), &source.path, expected))
    };
    sources.iter().enumerate().filter_map(mistake).collect()
}

fn find<'a>(claims: &'a Value, path: &str) -> Option<&'a Value> {
    parts(path).try_fold(claims, |value, part| match value {
        Value::Object(fields) => fields.get(&part),
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}

/// The parts of a path without their escapes.
fn parts(path: &str) -> impl Iterator<Item = String> {
    let mut rest = Some(path.chars());
    std::iter::from_fn(move || {
        let chars = rest.as_mut()?;
        let mut part = String::new();
        loop {
            match chars.next() {
                Some('.') => return Some(part),
                Some('\\') => part.extend(chars.next()),
                Some(other) => part.push(other),
                None => {
                    rest = None;
                    return Some(part);
                }
            }
        }
    })
}

#[cfg(test)]
mod tests;
