//! The build of all that the suites start: tests, examples, benches and programs of the workspace.
//! In: what cargo says of its artifacts (JSON, a line each) → out: findings of clippy, and errors.
//! May run `cargo test --no-run`; never a test.
//! Changed here: how it is built. `nextest` runs the tests with the same flags, so that they are built once.

use anyhow::Result;
use cargo_metadata::Message;

use crate::Workspace;
use crate::command::{Outcome, linted_cargo, say, watch_messages};

/// Builds every test, example, bench and program of the workspace, in one profile, and shows what clippy says of them.
///
/// Clippy's driver is a compiler, so that its findings take no second compilation: cargo repeats those of what is built already.
///
/// # Errors
/// When cargo cannot be started.
pub(super) fn build(workspace: &Workspace) -> Result<Outcome> {
    let mut outcome = watch_messages(&mut build_command(workspace))?;
    if outcome.success {
        outcome.add(watch_messages(build_command(workspace).arg("--benches"))?);
    }
    let diagnostics = diagnostics(&outcome.output);
    diagnostics.lines().for_each(say);
    Ok(Outcome { success: outcome.success && diagnostics.is_empty(), output: diagnostics })
}

fn build_command(workspace: &Workspace) -> std::process::Command {
    let mut build = linted_cargo(workspace);
    build.args(["test", "--workspace", "--locked", "--no-run", "--message-format=json"]);
    build
}

/// Warnings and errors among what cargo says, each once, and what is no message.
fn diagnostics(messages: &str) -> String {
    let mut said = Vec::new();
    for message in parsed(messages) {
        let text = match message {
            Message::CompilerMessage(message) => message.message.rendered.unwrap_or_default(),
            Message::TextLine(line) if line.starts_with("error") => line,
            _ => continue,
        };
        if !said.contains(&text) {
            said.push(text);
        }
    }
    said.join("\n")
}

fn parsed(messages: &str) -> impl Iterator<Item = Message> {
    Message::parse_stream(messages.as_bytes()).filter_map(Result::ok)
}

#[cfg(test)]
mod tests;
