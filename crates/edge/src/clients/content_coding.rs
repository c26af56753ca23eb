//! The coding of a response (RFC 9110 §12.5.3): what a client accepts, and what it prefers.
//! In: the headers of a request → out: gzip, zlib, or nothing.
//! Uses nothing; never reads a body.
//! Changed here: how `Accept-Encoding` is read. What is compressed is decided in `response_stream`.

use axum::http::{HeaderMap, header};

use fanwire_shard::Coding;

/// The coding with the highest weight; of equal ones the first of gzip, `deflate` and none. Without `Accept-Encoding` there
/// is none, although all would be allowed: programs that send no such header seldom decode.
pub(crate) fn accepted(headers: &HeaderMap) -> Option<Coding> {
    let lines = headers.get_all(header::ACCEPT_ENCODING).into_iter();
    let weights = Weights::of(lines.filter_map(|line| line.to_str().ok()));
    let weight = |name: &str| weights.named(name).unwrap_or(0);
    let best = [Coding::Gzip, Coding::Deflate]
        .into_iter()
        .rev() // of equal ones `max_by_key` returns the last
        .max_by_key(|coding| weight(coding.name()))?;
    let best_weight = weight(best.name());
    (best_weight > 0 && best_weight >= weight("identity")).then_some(best)
}

/// The listed codings with their weights in thousandths.
struct Weights<'a>(Vec<(&'a str, u16)>);

impl<'a> Weights<'a> {
    fn of(lines: impl Iterator<Item = &'a str>) -> Self {
        let elements = lines.flat_map(|line| line.split(','));
        Self(elements.map(str::trim).filter(|one| !one.is_empty()).map(element).collect())
    }

    /// The weight of a coding, listed by its name or by `*`.
    fn named(&self, name: &str) -> Option<u16> {
        let find = |wanted: &str| {
            let listed = self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(wanted));
            listed.map(|(_, weight)| *weight)
        };
        let alias = if name == "gzip" { find("x-gzip") } else { None }; // RFC 9110 §8.4.1.3
        find(name).or(alias).or_else(|| find("*"))
    }
}

/// A coding and its weight; 0, which means not acceptable, if the weight is not one.
fn element(text: &str) -> (&str, u16) {
    let Some((coding, parameter)) = text.split_once(';') else { return (text, WEIGHT_MAX) };
    let (name, value) = parameter.split_once('=').unwrap_or_default();
    let is_weight = name.trim().eq_ignore_ascii_case("q");
    let weight = if is_weight { weight(value.trim()) } else { None };
    (coding.trim(), weight.unwrap_or(0))
}

/// A weight of RFC 9110 §12.4.2 in thousandths.
fn weight(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction = format!("{fraction:0<3}").parse().ok()?;
    match (whole, fraction) {
        ("0", thousandths) => Some(thousandths),
        ("1", 0) => Some(WEIGHT_MAX),
        _ => None,
    }
}

const WEIGHT_MAX: u16 = 1000;

#[cfg(test)]
mod tests;
