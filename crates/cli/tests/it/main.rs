//! Tests of the binary as users run it: exit codes, stdout, start and stop.
//! In: command lines, files, signals → out: text and codes.
//! Uses the built `fanwire` on ports that the system chooses. Never: the environment of the developer.
//! The promises of one command are one file here.
#![forbid(unsafe_code)]

mod bench;
mod centrifugo;
mod commands;
mod defaults;
mod deploy;
mod doctor;
mod log;
mod mistakes;
mod publish;
mod reload;
mod serve;
mod shared_poll;
mod snapshots;
mod started;
mod subscribe;
mod takeover;
mod tenants;
mod tls;
mod tune;

use std::path::PathBuf;
use std::process::{Command, Output};

/// The binary without variables of the developer, in a folder of its own.
fn fanwire() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fanwire"));
    command.env_clear().current_dir(env!("CARGO_TARGET_TMPDIR"));
    command
}

fn run(arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } =
        fanwire().args(arguments).output().expect("the binary runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status.code().expect("an exit code"), text(stdout), text(stderr))
}

/// Writes a file for one test; each test uses its own name.
fn file(name: &str, text: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("the folder for tests is writable");
    path.into_os_string().into_string().expect("a path in UTF-8")
}
