//! Unsafe code only where it is named: every crate root forbids it, every other use is a row here.
//! In: the Rust files → out: a finding per root without `#![forbid(unsafe_code)]` and per unnamed `unsafe`.
//! May use the lexer; the compiler enforces the rest.
//! A file that needs unsafe code is a row of `UNSAFE_FILES` with its reason; a row without need fails.

use super::lexer::{has_word, lex};
use super::{Finding, Source};

/// Finds unsafe code in files that are not named.
pub(crate) fn check(rust: &[Source]) -> Vec<Finding> {
    check_with(rust, UNSAFE_FILES)
}

fn check_with(rust: &[Source], allowed: &[UnsafeFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut needed = vec![false; allowed.len()];
    for source in rust {
        let code = lex(&source.text).code;
        let holds_named = allowed.iter().any(|row| row.root == source.path);
        if is_root(&source.path) && !holds_named && !code.contains(FORBID) {
            findings.push(Finding::new(&source.path, 1, format!("a crate root without {FORBID}")));
        }
        for (line, text) in code.lines().enumerate().filter(|(_, text)| has_word(text, "unsafe")) {
            match allowed.iter().position(|row| row.path == source.path) {
                Some(row) => needed[row] = true,
                None => {
                    let what =
                        format!("unsafe code in a file that is not named: `{}`", text.trim());
                    findings.push(Finding::new(&source.path, line + 1, what));
                }
            }
        }
    }
    let idle = allowed.iter().zip(needed).filter(|(_, needed)| !needed);
    findings.extend(idle.map(|(row, _)| {
        let what =
            format!("no unsafe code here any more ({}): remove its row in unsafety.rs", row.why);
        Finding::new(row.path, 0, what)
    }));
    findings
}

/// Whether the file is the root of a library, binary, example, bench or integration test.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(
        parts.as_slice(),
        [.., "src", "lib.rs" | "main.rs"]
            | [.., "tests", "it", "main.rs"]
            | [.., "examples" | "benches" | "bin" | "fuzz_targets", _]
    )
}

/// A file with unsafe code, the crate root that therefore cannot forbid it, and what the unsafe code buys.
struct UnsafeFile {
    path: &'static str,
    root: &'static str,
    why: &'static str,
}

const FORBID: &str = "#![forbid(unsafe_code)]";
const UNSAFE_FILES: &[UnsafeFile] = &[
    UnsafeFile {
        path: "crates/profile/src/allocator.rs",
        root: "crates/profile/src/lib.rs",
        why: "heap profiles: `GlobalAlloc` is an unsafe trait",
    },
    UnsafeFile {
        path: "crates/profile/src/cpu/sampler.rs",
        root: "crates/profile/src/lib.rs",
        why: "CPU profiles: a signal handler, and the stack of the thread that it interrupts",
    },
];

#[cfg(test)]
mod tests;
