//! The command line: commands, their options, and one flag per key of the configuration.
//! In: arguments → out: parsed commands; usage errors end the process with code 2.
//! Uses clap and the catalog of keys. Never: runs a command.
//! Changed here: a command's options; flags of keys come from the keys' rows.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use fanwire_config::{Entry, Format, Kind, entries};

pub(crate) use bench::{Bench, BenchCommand, BenchLoad, BenchMethod, BenchOutput, BenchServer};
pub(crate) use doctor::Doctor;
pub(crate) use publish::Publish;
pub(crate) use subscribe::Subscribe;
pub(crate) use upgrade::Upgrade;

use crate::config_file::ConfigOrigin;

mod bench;
mod centrifugo;
mod doctor;
mod publish;
mod subscribe;
mod upgrade;

#[cfg(test)]
mod tests;

/// A real-time messaging server for the clients and backends of Centrifugo.
///
/// Without a command it serves; without a configuration it serves in development mode.
#[derive(Debug, Parser)]
#[command(name = "fanwire", version = VERSION, args_conflicts_with_subcommands = true)]
#[command(
    after_help = "`fanwire --help` lists every key of the configuration, `sample-config` prints a file with them; \
                        `completions SHELL`, `man`, `config-doc` and `api-doc` print what shells, man(1), \
                        pages and OpenAPI tools read."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
    #[command(flatten)]
    pub(crate) serve: Serve,
}

/// The version with the commit of the build.
pub(crate) const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("BUILD_COMMIT"), ")");

impl Arguments {
    /// Parses the arguments of this process; a usage error ends it. A command that names no configuration file has that of
    /// the working directory.
    pub(crate) fn of_process() -> Self {
        let line = centrifugo::CommandLine::parse(std::env::args_os().collect())
            .unwrap_or_else(|error| error.exit());
        let mut arguments = line.arguments;
        let mut origin = ConfigOrigin { is_centrifugo: line.is_centrifugo, remarks: line.remarks };
        if let Some(config) = arguments.config() {
            origin.complete(config);
        }
        match &mut arguments.command {
            None => arguments.serve.origin = origin,
            Some(CliCommand::Serve(serve)) => serve.origin = origin,
            Some(CliCommand::Config(show)) => show.is_centrifugo = line.is_centrifugo,
            Some(CliCommand::CheckSubToken(check)) => check.is_subscription = true,
            Some(CliCommand::SampleEnv(sample)) => sample.is_centrifugo = line.is_centrifugo,
            Some(_) => {}
        }
        arguments
    }

    /// The configuration file that the command reads.
    fn config(&mut self) -> Option<&mut Option<PathBuf>> {
        match &mut self.command {
            None => Some(&mut self.serve.config),
            Some(CliCommand::Serve(serve)) => Some(&mut serve.config),
            Some(CliCommand::CheckConfig(check)) if check.file.is_none() => Some(&mut check.config),
            Some(CliCommand::Config(show)) => Some(&mut show.config),
            Some(CliCommand::Token(token)) => Some(&mut token.config),
            Some(CliCommand::CheckToken(check)) => Some(&mut check.config),
            Some(CliCommand::CheckSubToken(check)) => Some(&mut check.config),
            Some(CliCommand::Upgrade(upgrade)) => Some(&mut upgrade.config),
            Some(CliCommand::Publish(publish)) => Some(&mut publish.server.config),
            Some(CliCommand::Subscribe(subscribe)) => Some(&mut subscribe.config),
            Some(CliCommand::Top(top)) => Some(&mut top.server.config),
            Some(CliCommand::Log(search)) => Some(&mut search.config),
            Some(CliCommand::Health(health)) => Some(&mut health.config),
            _ => None,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Run the server (the default command)
    Serve(Serve),
    /// Write a first configuration with random secrets, and print a client, a token and a request for it
    Init(Init),
    /// The same under Centrifugo's name; the default file is config.json
    #[command(hide = true)]
    Genconfig(Init),
    /// Check a configuration file, with the environment, for errors and for keys that are not supported yet
    #[command(visible_alias = "checkconfig")]
    CheckConfig(CheckConfig),
    /// Print the values in force, of the file and the environment, with their sources and without secrets
    Config(ShowConfig),
    /// Print a configuration file with every key at its default
    #[command(hide = true)]
    SampleConfig(SampleConfig),
    /// Print a variable for every key, with its default or the value of a file
    #[command(alias = "defaultenv", hide = true)]
    SampleEnv(SampleEnv),
    /// Write a configuration file with every key, as Centrifugo does
    #[command(hide = true)]
    Defaultconfig(DefaultConfig),
    /// Print the documentation of every key, as Markdown
    #[command(alias = "configdoc", hide = true)]
    ConfigDoc,
    /// Print the OpenAPI 3.1 document of the server API, in JSON
    #[command(hide = true)]
    ApiDoc,
    /// Print a token for development, signed with an HMAC secret
    #[command(visible_alias = "gentoken", alias = "gensubtoken")]
    Token(Token),
    /// Check a token as the server does, and print why it is refused
    #[command(visible_alias = "checktoken")]
    CheckToken(CheckToken),
    /// The same for a subscription token, under Centrifugo's name; of any channel when none is given
    #[command(hide = true, name = "checksubtoken")]
    CheckSubToken(CheckToken),
    /// Let the program that is installed now go on with the connections of a running server
    Upgrade(Upgrade),
    /// Publish a message, or a file of messages, into a channel of a running server
    Publish(Publish),
    /// Print the publications of channels of a running server, as a client gets them
    Subscribe(Subscribe),
    /// Show nodes, their load and the largest channels of running servers, again and again
    Top(Top),
    /// Print what happened to connections that ended, also long ago, from the files of recorder.path
    Log(LogSearch),
    /// Connect to a server through the proxies before it, and say what breaks and how to mend it
    Doctor(Doctor),
    /// Load a server that speaks the Centrifugo protocol, and check what arrives
    Bench(Box<Bench>),
    /// Measure how typical messages compress, and recommend settings
    Tune(Tune),
    /// Ask a running server whether it is ready: exit code 0 when it is, else 1
    Health(Health),
    /// Print the version
    Version(Version),
    /// Print the completions of a shell, for its own configuration or a package
    #[command(hide = true)]
    Completions(Completions),
    /// Print the manual page, for man(1)
    #[command(hide = true)]
    Man,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Configuration file; its name ends in .json, .yaml, .yml or .toml
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keys: KeyFlags,
    #[arg(skip)]
    pub(crate) origin: ConfigOrigin,
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// File to write; its name ends in .json, .yaml, .yml or .toml; without one, fanwire.yaml. In `.env` go the secrets alone
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The same, with the flag of `serve`
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,
    /// File for histories, blocks and revocations over a restart; without it one next to the configuration
    #[arg(long, value_name = "FILE")]
    pub(crate) snapshot: Option<PathBuf>,
    /// Purpose of the namespace in the file
    #[arg(long = "for", value_name = "JOB", value_enum, default_value_t = Job::Chat)]
    pub(crate) job: Job,
    /// Replace a file that exists
    #[arg(long)]
    pub(crate) force: bool,
}

impl Init {
    pub(crate) fn path<'a>(&'a self, default: &'a str) -> &'a Path {
        let given = self.file.as_deref().or(self.config.as_deref());
        given.unwrap_or(Path::new(default))
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Job {
    /// Rooms whose members write, scroll back, and see each other
    Chat,
    /// Publications of a backend; a client that comes late gets the newest one
    Scores,
    /// Snapshots many times a second; a slow client skips some
    Game,
    /// Values of which only the newest one counts
    Dashboard,
    /// Answers of a model that grow word by word, on every screen of their reader
    Answers,
    /// Messages of a backend for one user each, kept while the user is away
    Notifications,
}

#[derive(Debug, Args)]
pub(crate) struct CheckConfig {
    /// Configuration file; its name ends in .json, .yaml, .yml or .toml; without one, that of the working directory
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The same, with the flag of `serve`
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,
    /// Fail on unknown keys and variables, too
    #[arg(short, long)]
    pub(crate) strict: bool,
    /// File of variables, as a unit or a container gets it, instead of .env; a variable of the environment wins
    #[arg(long, value_name = "FILE")]
    pub(crate) env_file: Option<PathBuf>,
}

impl CheckConfig {
    pub(crate) fn path(&self) -> Option<&PathBuf> {
        self.file.as_ref().or(self.config.as_ref())
    }
}

#[derive(Debug, Args)]
pub(crate) struct ShowConfig {
    /// Configuration file; its name ends in .json, .yaml, .yml or .toml
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print keys at their defaults, too
    #[arg(long)]
    pub(crate) all: bool,
    /// Print the values of the running server whose API is at this address, http://HOST:PORT/api or https://…, and whether
    /// its file says something else by now
    #[arg(long, value_name = "URL")]
    pub(crate) api: Option<String>,
    #[command(flatten)]
    pub(crate) trust: ServerTrust,
    /// The API key, instead of http_api.key of the configuration file
    #[arg(short, long, requires = "api")]
    pub(crate) key: Option<String>,
    #[arg(skip)]
    pub(crate) is_centrifugo: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SampleConfig {
    #[arg(short, long, value_enum, default_value_t = FileFormat::Yaml)]
    pub(crate) format: FileFormat,
}

#[derive(Debug, Args)]
pub(crate) struct SampleEnv {
    /// Configuration file whose values the variables have; without one, the defaults
    #[arg(short, long, value_name = "FILE")]
    pub(crate) base: Option<PathBuf>,
    /// Print only what that file sets
    #[arg(long, requires = "base")]
    pub(crate) base_non_zero_only: bool,
    #[arg(skip)]
    pub(crate) is_centrifugo: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DefaultConfig {
    /// File to write; its name ends in .json, .yaml, .yml or .toml
    #[arg(short, long, value_name = "FILE", default_value = "config.json")]
    pub(crate) config: PathBuf,
    /// Configuration file whose values stand over the defaults
    #[arg(short, long, value_name = "FILE")]
    pub(crate) base: Option<PathBuf>,
    /// Print the text and write no file
    #[arg(short, long)]
    pub(crate) dry_run: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FileFormat {
    Json,
    Yaml,
    Toml,
}

impl From<FileFormat> for Format {
    fn from(format: FileFormat) -> Self {
        match format {
            FileFormat::Json => Format::Json,
            FileFormat::Yaml => Format::Yaml,
            FileFormat::Toml => Format::Toml,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Token {
    /// User id (sub); "" for an anonymous user
    #[arg(short, long, value_name = "ID", default_value = "")]
    pub(crate) user: String,
    /// Channel: makes a subscription token instead of a connection token
    #[arg(short = 's', long)]
    pub(crate) channel: Option<String>,
    /// How long the token is valid: 90s, 24h, or a number of seconds; 0 and -1 = without limit
    #[arg(short, long, value_name = "DURATION", default_value = "1h", allow_hyphen_values = true)]
    pub(crate) ttl: String,
    /// Information about the user for other subscribers
    #[arg(long, value_name = "JSON", default_value = "")]
    pub(crate) info: String,
    /// Secret for the signature, instead of client.token.hmac_secret_key
    #[arg(long)]
    pub(crate) secret: Option<String>,
    /// Configuration file with the secret
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[arg(long, value_enum, default_value_t = Algorithm::Hs256)]
    pub(crate) alg: Algorithm,
    /// Print no line end behind the token
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckToken {
    /// The token as a client sends it
    #[arg(value_name = "TOKEN", allow_hyphen_values = true)]
    pub(crate) token: String,
    /// Channel: checks a subscription token instead of a connection token
    #[arg(short = 's', long)]
    pub(crate) channel: Option<String>,
    /// Configuration file with the keys
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// It is a subscription token, of any channel when none is given.
    #[arg(skip)]
    pub(crate) is_subscription: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Algorithm {
    #[value(name = "HS256", alias = "hs256")]
    Hs256,
    #[value(name = "HS384", alias = "hs384")]
    Hs384,
    #[value(name = "HS512", alias = "hs512")]
    Hs512,
}

/// Where the server API is.
#[derive(Debug, Args)]
pub(crate) struct ApiServer {
    /// Address of the server API with its prefix, http://HOST:PORT/api or https://…; without it, as the configuration
    /// says
    #[arg(short, long)]
    pub(crate) url: Option<String>,
    #[command(flatten)]
    pub(crate) trust: ServerTrust,
    /// The API key, instead of http_api.key
    #[arg(short, long)]
    pub(crate) key: Option<String>,
    /// The server's configuration file, of which the address and the key of the server API are used
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Health {
    /// Question of a probe; without one, the answer of the health endpoint itself
    #[arg(value_enum)]
    pub(crate) probe: Option<Probe>,
    /// The server's configuration file, which has the address of the health endpoint
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Address of the health endpoint, http://HOST:PORT/health or https://…; without it, as the configuration says
    #[arg(short, long)]
    pub(crate) url: Option<String>,
    #[command(flatten)]
    pub(crate) trust: ServerTrust,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Probe {
    /// Whether new clients may come
    Ready,
    /// Whether anything but a restart helps
    Live,
}

#[derive(Debug, Args)]
pub(crate) struct Version {
    /// Print the commit, the compiler, the target and the features of this build, too
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct LogSearch {
    /// User id; "" for anonymous users
    #[arg(value_name = "USER", required_unless_present = "client")]
    pub(crate) user: Option<String>,
    /// Client id
    #[arg(long, value_name = "ID")]
    pub(crate) client: Option<String>,
    /// Only connections that were open within 5 minutes of this time: 03:12 (the last one), 2030-01-31T03:12, or RFC 3339; without
    /// an offset such as +01:00 it is UTC, as in log lines
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// Folder with the files, instead of recorder.path of the configuration
    #[arg(long, value_name = "FOLDER")]
    pub(crate) path: Option<PathBuf>,
    /// The server's configuration file, which has recorder.path
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Seconds between two readings, from 1 to 3600
    #[arg(short, long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) interval: u64,
    /// Pattern of the channels to list, such as news:*; without it, all of them
    #[arg(short, long, default_value = "")]
    pub(crate) pattern: String,
    /// Print one reading and end
    #[arg(long)]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) server: ApiServer,
}

/// Which certificate is accepted of a server with TLS.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServerTrust {
    /// Authorities that sign the certificate of a server with TLS (PEM), instead of the system's; without --ca and --url,
    /// the certificate must be that of the configuration
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<String>,
    /// Accept any certificate: an attacker on the network can then read and change everything, also the API key
    #[arg(long, conflicts_with = "ca")]
    pub(crate) insecure: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Tune {
    /// Messages of one channel: one JSON text per line (.jsonl), or binary records, each preceded by its length in four
    /// bytes, little-endian (.bin)
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Also write one page with plots
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Price of outgoing traffic in dollars per GB, 0 to 1000
    #[arg(long, value_name = "DOLLARS", default_value_t = 0.09, value_parser = price, allow_negative_numbers = true)]
    pub(crate) price: f64,
    /// Publications per second, above 0 and up to 1000000
    #[arg(long, value_name = "NUMBER", default_value_t = 10.0, value_parser = rate, allow_negative_numbers = true)]
    pub(crate) rate: f64,
    /// Receivers of each publication, 1 to 1000000000
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000, value_parser = fan_out, allow_negative_numbers = true)]
    pub(crate) fan_out: u64,
    /// Channels per client, for the rows where channels are interleaved, 1 to 128
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = channels, allow_negative_numbers = true)]
    pub(crate) channels: usize,
    /// websocket.compression_level of contexts and deltas, 1 to 9
    #[arg(long, value_name = "LEVEL", default_value_t = 6, value_parser = level, allow_negative_numbers = true)]
    pub(crate) level: u8,
    /// Maximum number of messages read from each file
    #[arg(long, value_name = "NUMBER", default_value_t = 20_000, value_parser = messages, allow_negative_numbers = true)]
    pub(crate) messages_max: usize,
}

fn price(text: &str) -> Result<f64, String> {
    within(text, |price| (0.0..=1_000.0).contains(&price), "a number from 0 to 1000")
}

fn rate(text: &str) -> Result<f64, String> {
    let expected = "a number above 0 and up to 1000000";
    within(text, |rate| rate > 0.0 && rate <= 1e6, expected)
}

fn fan_out(text: &str) -> Result<u64, String> {
    let expected = "a whole number from 1 to 1000000000";
    within(text, |receivers| (1..=1_000_000_000).contains(&receivers), expected)
}

fn level(text: &str) -> Result<u8, String> {
    within(text, |level| (1..=9).contains(&level), "a whole number from 1 to 9")
}

fn channels(text: &str) -> Result<usize, String> {
    within(text, |channels| (1..=128).contains(&channels), "a whole number from 1 to 128")
}

fn messages(text: &str) -> Result<usize, String> {
    within(text, |messages| (2..=1_000_000).contains(&messages), "a whole number from 2 to 1000000")
}

fn within<T: FromStr + Copy>(
    text: &str,
    is_valid: impl Fn(T) -> bool,
    expected: &str,
) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| is_valid(*number));
    number.ok_or_else(|| format!("expected {expected}"))
}

/// The given flags of keys, in the form that `fanwire_config::load` accepts.
#[derive(Debug, Default)]
pub(crate) struct KeyFlags(pub(crate) Vec<(String, String)>);

impl Args for KeyFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(entries().iter().map(flag))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for KeyFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |entry: &Entry| {
            let value = matches.try_get_one::<String>(&entry.name).ok()??;
            Some((entry.name.clone(), value.clone()))
        };
        Ok(Self(entries().iter().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The flag of a key. Flags of unsupported keys are accepted, so that their findings can be reported, but not listed.
fn flag(entry: &'static Entry) -> Arg {
    let key = entry.key;
    let default = match key.default {
        "" => String::new(),
        default => format!(" [default: {default}]"),
    };
    let heading = entry.name.split_once('.').map_or("server", |(section, _)| section);
    let flag = Arg::new(entry.name.as_str())
        .long(entry.name.as_str())
        .help(format!("{}{default}", key.doc))
        .help_heading(heading)
        .action(ArgAction::Set)
        .hide(!entry.works())
        .hide_short_help(true)
        .value_name(value_name(&key.kind))
        .allow_hyphen_values(true);
    let flag = match key.kind {
        Kind::Switch => flag.num_args(0..=1).require_equals(true).default_missing_value("true"),
        _ => flag,
    };
    match entry.name.as_str() {
        "http_server.address" => flag.short('a'),
        "http_server.port" => flag.short('p'),
        _ => flag,
    }
}

fn value_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Switch => "BOOL",
        Kind::Integer { .. } => "NUMBER",
        Kind::Duration { .. } => "DURATION",
        Kind::Text | Kind::Secret | Kind::Choice(_) => "TEXT",
        Kind::Path => "PATH",
        Kind::PortText => "PORT",
        Kind::List => "LIST",
        Kind::Block | Kind::Objects | Kind::Texts | Kind::Transforms(_) => "JSON",
    }
}
