//! The one binary, `fanwire`: serves, makes and checks configurations, makes tokens, publishes, subscribes, shows, examines, measures.
//! In: the command line, the environment, signals → out: a running server, text on stdout, exit codes 0, 1 and 2.
//! Uses the library `fanwire`, `fanwire_client` for `subscribe`, `fanwire_tune` for `tune`, `fanwire_load` for `bench`. Never: server behaviour, keys of the configuration.
//! Each command is one file of this folder; its options are in `arguments`.
#![forbid(unsafe_code)]

use std::io::Write as _;
use std::process::ExitCode;

use arguments::{Arguments, CliCommand};

mod api_client;
mod arguments;
mod bench;
mod check;
mod check_token;
mod config;
mod config_file;
mod default_config;
mod doctor;
mod document;
mod environment;
mod health;
mod init;
mod local;
mod log;
mod logs;
mod progress;
mod publish;
mod serve;
#[cfg(target_os = "linux")]
mod service_manager;
mod subscribe;
mod token;
mod top;
mod tune;
mod upgrade;

/// Resident memory varies less than with the system's allocator.
#[cfg(all(feature = "mimalloc", not(feature = "heap-profile")))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(all(feature = "mimalloc", feature = "heap-profile"))]
#[global_allocator]
static ALLOCATOR: fanwire_profile::SamplingAllocator<mimalloc::MiMalloc> =
    fanwire_profile::SamplingAllocator(mimalloc::MiMalloc);

#[cfg(all(not(feature = "mimalloc"), feature = "heap-profile"))]
#[global_allocator]
static ALLOCATOR: fanwire_profile::SamplingAllocator<std::alloc::System> =
    fanwire_profile::SamplingAllocator(std::alloc::System);

fn main() -> ExitCode {
    let arguments = Arguments::of_process();
    let command = arguments.command.unwrap_or(CliCommand::Serve(arguments.serve));
    let result = match command {
        CliCommand::Serve(serve) => serve::run(&serve),
        CliCommand::Init(init) => init::run(&init, config_file::OURS),
        CliCommand::Genconfig(init) => init::run(&init, config_file::OF_CENTRIFUGO),
        CliCommand::CheckConfig(check) => check::run(&check),
        CliCommand::Config(show) => config::run(&show),
        CliCommand::SampleConfig(sample) => document::sample(&sample),
        CliCommand::SampleEnv(sample) => document::sample_env(&sample),
        CliCommand::Defaultconfig(default) => default_config::run(&default),
        CliCommand::ConfigDoc => document::page(),
        CliCommand::ApiDoc => document::api_page(),
        CliCommand::Token(token) => token::run(&token),
        CliCommand::CheckToken(check) | CliCommand::CheckSubToken(check) => {
            check_token::run(&check)
        }
        CliCommand::Upgrade(upgrade) => upgrade::run(&upgrade),
        CliCommand::Publish(publish) => publish::run(&publish),
        CliCommand::Subscribe(subscribe) => subscribe::run(&subscribe),
        CliCommand::Top(top) => top::run(&top),
        CliCommand::Log(search) => log::run(&search),
        CliCommand::Bench(bench) => return bench::run(&bench),
        CliCommand::Doctor(doctor) => return doctor::run(&doctor),
        CliCommand::Tune(tune) => tune::run(&tune),
        CliCommand::Health(health) => health::run(&health),
        CliCommand::Version(version) => document::version(&version),
        CliCommand::Completions(completions) => document::completions(&completions),
        CliCommand::Man => document::manual(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // An error of stderr must not cause a panic.
            let _ = writeln!(std::io::stderr(), "fanwire: {error:#}");
            ExitCode::FAILURE
        }
    }
}
