//! A progress bar on stderr, if it is a terminal.
//! In: steps → out: one line that is overwritten at each step and cleared at the end.
//! Uses a terminal's carriage return. Never: writes to anything but a terminal.
//! Changed here: the form of the bar; the steps are defined in `tune` and `publish`.

use std::io::{IsTerminal as _, Write as _};

#[cfg(test)]
mod tests;

/// The progress of the work.
pub(crate) struct Progress {
    is_shown: bool,
    steps: usize,
    started: usize,
}

impl Progress {
    /// A bar for `steps` steps.
    pub(crate) fn of_stderr(steps: usize) -> Self {
        Self { is_shown: std::io::stderr().is_terminal(), steps, started: 0 }
    }

    /// Shows that the next step begins.
    pub(crate) fn step(&mut self, name: &str) {
        if self.is_shown {
            // An error of the terminal must not stop the work.
            let _ = write!(std::io::stderr(), "\r\x1b[K{}", line(self.started, self.steps, name));
        }
        self.started += 1;
    }

    /// Clears the line for other output.
    pub(crate) fn clear(&self) {
        if self.is_shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// A line of at most 79 characters.
fn line(done: usize, steps: usize, name: &str) -> String {
    let filled = done * WIDTH / steps.max(1);
    let bar = "█".repeat(filled);
    let rest = "░".repeat(WIDTH.saturating_sub(filled));
    let name: String = name.chars().filter(|one| !one.is_control()).take(NAME_MAX).collect();
    format!("{bar}{rest} {:>3} %  {name}", done * 100 / steps.max(1))
}

const WIDTH: usize = 24;
const NAME_MAX: usize = 46;
