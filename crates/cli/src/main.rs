//! The one binary, `fanwire`: serves, checks configurations, makes samples, tokens, and tunes compression.
//! In: the command line, the environment, signals → out: a running server, text on stdout, exit codes 0, 1 and 2.
//! Uses the library `fanwire`, and `fanwire_tune` for `tune`. Never: server behaviour, keys of the configuration.
//! A command is one file beside this one; its options are in `arguments`.
#![forbid(unsafe_code)]

use std::io::Write as _;
use std::process::ExitCode;

use arguments::{Arguments, Command};

mod arguments;
mod check;
mod check_token;
mod document;
mod environment;
mod logs;
mod serve;
mod token;
mod tune;

/// Keeps resident memory steadier than the system's allocator.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::of_process();
    let command = arguments.command.unwrap_or(Command::Serve(arguments.serve));
    let done = match command {
        Command::Serve(serve) => serve::run(&serve),
        Command::CheckConfig(check) => check::run(&check),
        Command::SampleConfig(sample) => document::sample(&sample),
        Command::ConfigDoc => document::page(),
        Command::ApiDoc => document::api_page(),
        Command::Token(token) => token::run(&token),
        Command::CheckToken(check) => check_token::run(&check),
        Command::Tune(tune) => tune::run(&tune),
        Command::Version => document::version(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A stderr that cannot be written to is no reason to panic.
            let _ = writeln!(std::io::stderr(), "fanwire: {error:#}");
            ExitCode::FAILURE
        }
    }
}
