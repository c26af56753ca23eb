//! Sizes: files stop at 600 lines and functions at 90.
//! In: the Rust files → out: a finding per file or function that is too long, and per exception no longer needed.
//! May use the lexer; never counts a table of equal rows that `TABLES` names.
//! An exception is a row here with its reason; the list only shrinks, because a row without need fails.

use super::lexer::{functions, lex};
use super::{Finding, Source};

/// Finds what is too long.
pub(crate) fn check(rust: &[Source]) -> Vec<Finding> {
    check_with(rust, TABLES, LONG_FUNCTIONS)
}

fn check_with(rust: &[Source], tables: &[Table], long: &[LongFunction]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut needed_tables = vec![false; tables.len()];
    let mut needed_functions = vec![false; long.len()];
    for source in rust {
        let lines = source.text.lines().count();
        if lines > FILE_LINES_MAX {
            match tables.iter().position(|table| table.path == source.path) {
                Some(row) => needed_tables[row] = true,
                None => findings.push(Finding::new(
                    &source.path,
                    lines,
                    format!("{lines} lines; files stop at {FILE_LINES_MAX}"),
                )),
            }
        }
        for function in functions(&lex(&source.text).code) {
            if function.lines <= FUNCTION_LINES_MAX {
                continue;
            }
            let is_row = |row: &LongFunction| row.path == source.path && row.name == function.name;
            match long.iter().position(is_row) {
                Some(row) => needed_functions[row] = true,
                None => findings.push(Finding::new(
                    &source.path,
                    function.line,
                    format!(
                        "`{}` has {} lines; functions stop at {FUNCTION_LINES_MAX}",
                        function.name, function.lines
                    ),
                )),
            }
        }
    }
    let idle_tables = tables.iter().zip(needed_tables).filter(|(_, needed)| !needed);
    findings.extend(idle_tables.map(|(row, _)| unneeded(row.path, row.why)));
    let idle_functions = long.iter().zip(needed_functions).filter(|(_, needed)| !needed);
    findings.extend(idle_functions.map(|(row, _)| unneeded(row.path, row.name)));
    findings
}

fn unneeded(path: &str, which: &str) -> Finding {
    Finding::new(
        path,
        0,
        format!("the exception in sizes.rs is no longer needed ({which}): remove it"),
    )
}

/// A file that may be longer because it is a table of equal rows.
struct Table {
    path: &'static str,
    why: &'static str,
}

/// A function that is still too long.
struct LongFunction {
    path: &'static str,
    name: &'static str,
}

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 90;
const TABLES: &[Table] = &[];
const LONG_FUNCTIONS: &[LongFunction] = &[];

#[cfg(test)]
mod tests;
