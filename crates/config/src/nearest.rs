//! The known name nearest to a mistyped one.
//! In: a name and candidates → out: the candidate with the fewest edits, when it is near enough.
//! Uses `strsim`. Never: the tables themselves.
//! Changed here: the largest distance; `finding` uses the result.

use strsim::osa_distance;

#[cfg(test)]
mod tests;

/// The candidate that `name` was probably meant to be.
///
/// Near is: the same last part elsewhere (`ping_interval` for `client.ping_interval`), the same without a level of sections
/// (`client.hmac_secret_key`) or all (`token_hmac_secret_key`), or at most one edit in four letters. Two neighbours that changed places are one edit.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    let length = name.chars().count();
    let edits_max = (length / 4).max(1);
    let close = candidates
        .clone()
        // Lengths that differ by more cannot be near, and comparing them is what takes time.
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= edits_max)
        .map(|candidate| (osa_distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= edits_max)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate);
    let misplaced = close.or_else(|| misplaced(name, candidates.clone()));
    let sunk = misplaced.or_else(|| outdented(name, candidates.clone()));
    sunk.or_else(|| flat(name, candidates))
}

/// The shortest candidate that ends in this with dots for some of its `_`: how keys were called when they had no sections.
pub(crate) fn flat<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let end = format!("_{name}");
    let is_same = |candidate: &&str| candidate.replace('.', "_").ends_with(&end);
    let mut same: Vec<&str> = candidates.filter(is_same).collect();
    same.sort_by_key(|candidate| candidate.len());
    match same[..] {
        [shortest] => Some(shortest),
        [shortest, next, ..] if shortest.len() < next.len() => Some(shortest),
        _ => None,
    }
    .filter(|_| name.contains('_'))
}

/// The only candidate that ends in the same part.
fn misplaced<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let last = last_part(name);
    let mut same = candidates.filter(|candidate| last_part(candidate) == last);
    let first = same.next()?;
    same.next().is_none().then_some(first)
}

/// The shortest candidate with further levels between: `client.token.hmac_secret_key`, whose line has lost its indentation,
/// for `client.hmac_secret_key`.
fn outdented<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let is_around = |candidate: &&str| {
        let mut parts = candidate.split('.');
        let has_all = name.split('.').all(|part| parts.any(|one| one == part));
        has_all && parts.next().is_none()
    };
    let around = candidates.filter(|_| name.contains('.')).filter(is_around);
    around.min_by_key(|candidate| candidate.len())
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
