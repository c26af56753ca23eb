//! The known name nearest to a mistyped one.
//! In: a name and candidates → out: the candidate with the fewest edits, when it is near enough to be meant.
//! Uses nothing. Never: the tables themselves.
//! What counts as near is changed here; what is done with it in `finding`.

#[cfg(test)]
mod tests;

/// The candidate that `name` was probably meant to be.
///
/// Near is: the same last part elsewhere (`ping_interval` for `client.ping_interval`), the same without sections
/// (`token_hmac_secret_key`), or at most one edit in four letters.
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
        .map(|candidate| (edits(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= edits_max)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate);
    close.or_else(|| misplaced(name, candidates.clone())).or_else(|| flat(name, candidates))
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

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Levenshtein distance in characters, neighbouring letters swapped counting as one edit.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let replaced = above[j] + usize::from(a[i] != b[j]);
            let mut best = replaced.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}
