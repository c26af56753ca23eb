//! Tables as Markdown, and a page that has one between each pair of markers.
//! In: titles, heads, rows; the text of a page → out: Markdown; the page with new tables.
//! Pure.
//! Changed here: how a table looks. What is in one is the module of its claim.

use std::fmt;

use anyhow::{Context, Result};

/// The figures of one claim.
pub struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Conditions that a reader of the figures has to know.
    note: String,
}

impl Table {
    pub fn new(heads: &[&str], note: impl Into<String>) -> Self {
        let heads = heads.iter().map(ToString::to_string).collect();
        Self { heads, rows: Vec::new(), note: note.into() }
    }

    /// Adds a row, which has a cell for each head.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.heads.len());
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| {} |", self.heads.join(" | "))?;
        writeln!(f, "|{}", "---|".repeat(self.heads.len()))?;
        for row in &self.rows {
            writeln!(f, "| {} |", row.join(" | "))?;
        }
        if !self.note.is_empty() {
            writeln!(f, "\n{}", wrapped(&self.note))?;
        }
        Ok(())
    }
}

/// Breaks a paragraph into lines of at most `LINE_CHARS_MAX` characters.
pub fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if lines[last].is_empty() {
            lines[last] += word;
        } else if lines[last].chars().count() + 1 + word.chars().count() > LINE_CHARS_MAX {
            lines.push(word.to_owned());
        } else {
            lines[last] += " ";
            lines[last] += word;
        }
    }
    lines.join("\n")
}

/// Returns the page with `text` between the markers of this name.
///
/// # Errors
/// The page has no such markers.
pub fn with_part(page: &str, name: &str, text: &str) -> Result<String> {
    let begin = format!("<!-- proof: {name} -->\n");
    let end = format!("<!-- end: {name} -->");
    let (before, rest) =
        page.split_once(&begin).with_context(|| format!("the page has no line {begin}"))?;
    let (_, after) = rest.split_once(&end).with_context(|| format!("the page has no {end}"))?;
    Ok(format!("{before}{begin}{}\n{end}{after}", text.trim_end()))
}

/// A figure with as many digits as a reader compares: three, or all in front of the point.
pub fn figure(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => "–".to_owned(),
        size if size >= 100.0 => fanwire_load::grouped(value),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

const LINE_CHARS_MAX: usize = 135;

#[cfg(test)]
mod tests;
