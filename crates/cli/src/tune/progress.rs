//! A progress bar on stderr, when somebody looks at it.
//! In: steps → out: one line that is written over and over, and gone at the end.
//! Uses a terminal's carriage return. Never: writes to anything but a terminal.
//! Change here how progress looks; what the steps are is decided in `tune`.

use std::io::{IsTerminal as _, Write as _};

#[cfg(test)]
mod tests;

/// How far the work is.
pub(crate) struct Progress {
    is_shown: bool,
    steps: usize,
    begun: usize,
}

impl Progress {
    /// For so many steps.
    pub(crate) fn of_stderr(steps: usize) -> Self {
        Self { is_shown: std::io::stderr().is_terminal(), steps, begun: 0 }
    }

    /// Another step begins.
    pub(crate) fn step(&mut self, name: &str) {
        if self.is_shown {
            // A terminal that went away stops no work.
            let _ = write!(std::io::stderr(), "\r\x1b[K{}", line(self.begun, self.steps, name));
        }
        self.begun += 1;
    }

    /// Takes the line away, so that other text can stand there.
    pub(crate) fn clear(&self) {
        if self.is_shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// Short enough for any terminal.
fn line(done: usize, steps: usize, name: &str) -> String {
    let filled = done * WIDTH / steps.max(1);
    let (bar, rest) = ("█".repeat(filled), "░".repeat(WIDTH.saturating_sub(filled)));
    let name: String = name.chars().filter(|one| !one.is_control()).take(NAME_MAX).collect();
    format!("{bar}{rest} {:>3} %  {name}", done * 100 / steps.max(1))
}

const WIDTH: usize = 24;
const NAME_MAX: usize = 46;
