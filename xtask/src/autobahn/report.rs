//! The reports of the Autobahn TestSuite, counted.
//! In: `index.json` of a run → out: cases by behaviour and a line per failed case.
//! May rely on the suite's layout of one key per line; never needs a JSON library.
//! What counts as failed is changed here: a FAILED behaviour, or a close that is neither OK nor informational.

use std::collections::BTreeMap;
use std::fmt;

/// One case of the suite as its report judges it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Case {
    behaviour: String,
    close: String,
    close_code: String,
}

/// Repeats by their number, such as `[6, 4, 1]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    cases: BTreeMap<Vec<u32>, Case>,
}

impl Report {
    /// Adds the cases of one `index.json`.
    pub(crate) fn add(&mut self, index: &str) {
        let mut current = None;
        for line in index.lines() {
            let Some((key, value)) = line.trim().split_once(": ") else { continue };
            let key = key.trim_matches('"');
            let value = value.trim_end_matches(',').trim_matches('"');
            if let Some(number) = case_number(key) {
                current = Some(self.cases.entry(number).or_default());
            } else if let Some(case) = current.as_mut() {
                match key {
                    "behavior" => case.behaviour = value.to_owned(),
                    "behaviorClose" => case.close = value.to_owned(),
                    "remoteCloseCode" => case.close_code = value.to_owned(),
                    _ => {}
                }
            }
        }
    }

    /// How many cases failed; a report without cases has failed once.
    pub(crate) fn failed(&self) -> usize {
        let failed = self.cases.values().filter(|case| case.is_failed()).count();
        failed + usize::from(self.cases.is_empty())
    }

    /// How many cases did not fail.
    pub(crate) fn passed(&self) -> usize {
        self.cases.values().filter(|case| !case.is_failed()).count()
    }
}

impl Case {
    fn is_failed(&self) -> bool {
        let behaves = GOOD.contains(&self.behaviour.as_str()) || self.behaviour == "NON-STRICT";
        !behaves || !GOOD.contains(&self.close.as_str())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut by_behaviour: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (number, case) in &self.cases {
            by_behaviour.entry(&case.behaviour).or_default().push(dotted(number));
        }
        write!(f, "{} cases", self.cases.len())?;
        for (behaviour, cases) in &by_behaviour {
            write!(f, ", {} {}", cases.len(), behaviour.to_lowercase())?;
        }
        for behaviour in ["NON-STRICT", "UNIMPLEMENTED"] {
            if let Some(cases) = by_behaviour.get(behaviour) {
                write!(f, "\n{}: {}", behaviour.to_lowercase(), cases.join(" "))?;
            }
        }
        for (number, case) in self.cases.iter().filter(|(_, case)| case.is_failed()) {
            let Case { behaviour, close, close_code } = case;
            let number = dotted(number);
            write!(
                f,
                "\nfailed {number}: behaviour {behaviour}, close {close}, code {close_code}"
            )?;
        }
        Ok(())
    }
}

/// `"1.1.1"` as numbers, `None` for any other key.
fn case_number(key: &str) -> Option<Vec<u32>> {
    key.contains('.').then(|| key.split('.').map(|part| part.parse().ok()).collect())?
}

fn dotted(number: &[u32]) -> String {
    number.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
}

const GOOD: &[&str] = &["OK", "INFORMATIONAL", "UNIMPLEMENTED"];

#[cfg(test)]
mod tests;
