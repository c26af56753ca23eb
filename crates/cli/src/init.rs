//! `fanwire init` and `genconfig`: a first configuration for one job, and how to use it.
//! In: a job, a file name → out: the file with random secrets; a client, a token and a request on stdout.
//! Uses `fanwire_config` to read the file back, `token` to sign. Never: an existing file without `--force`.
//! The namespaces and clients of the jobs are in `init/job.rs`; how to write a file is changed here.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use fanwire_config::{Config, FileError, Format, example, load};
use rand::distr::{Alphanumeric, SampleString};
use serde_json::Value;

use crate::arguments::{Algorithm, Init, Job, Token};
use crate::{config_file, document, environment, token};

mod job;
#[cfg(test)]
mod tests;

/// `default_file` is written when the arguments name none.
pub(crate) fn run(arguments: &Init, default_file: &str) -> Result<()> {
    let path = arguments.path(default_file);
    let secret = |chars| Alphanumeric.sample_string(&mut rand::rng(), chars);
    let token_secret = secret(TOKEN_SECRET_CHARS);
    let api_key = secret(API_KEY_CHARS);
    if path.file_name().is_some_and(|name| name == environment::FILE) {
        write(path, &secrets(&token_secret, &api_key), arguments.force)?;
        let file = quoted(&path.display().to_string());
        return document::print(&format!("{file} is written, {INSTRUCTIONS_FOR_SECRETS}"));
    }
    let given = arguments.snapshot.clone();
    let snapshot = std::path::absolute(given.unwrap_or_else(|| path.with_extension("snapshot")))?;
    let yaml = yaml(arguments.job, &token_secret, &api_key, &snapshot);
    let text = converted(path, yaml)?;
    let variables = environment::variables()?;
    write(path, &text, arguments.force)?;
    let (config, _) = load(Some(path), variables, &[]).with_context(|| {
        format!("{} was written, but the server does not start with it", path.display())
    })?;
    document::print(&instructions(arguments.job, path, &config)?)
}

/// The configuration in YAML, which has comments.
fn yaml(job: Job, token_secret: &str, api_key: &str, snapshot: &Path) -> String {
    let snapshot_path = Value::from(snapshot.to_string_lossy()); // with quotation marks, as YAML knows them, too
    let namespace: String = job.namespace().lines().map(|line| format!("      {line}\n")).collect();
    format!(
        "client:
  # The pages that may connect, here those of this machine; add https://your.site
  allowed_origins: [\"http://localhost:*\", \"http://127.0.0.1:*\"]
  token:
    hmac_secret_key: \"{token_secret}\" # your backend signs the tokens of users with it
# http_server: {{ tls: {{ enabled: true, cert_pem: cert.pem, key_pem: key.pem }} }} # without a proxy in front (docs/tls.md)
http_api:
  key: \"{api_key}\" # your backend publishes with it
engine: {{ memory: {{ snapshot_path: {snapshot_path} }} }} # histories, blocks and revocations outlive a restart
health: {{ enabled: true }}
# prometheus: {{ enabled: true }} # needs no key: give it a port of its own, http_server.internal_port
channel:
  namespaces:
    - name: {}
{namespace}",
        job.name()
    )
}

/// The secrets alone, as variables, for a configuration that has none.
fn secrets(token_secret: &str, api_key: &str) -> String {
    format!(
        "# Your backend signs the tokens of users with it.
FANWIRE_CLIENT_TOKEN_HMAC_SECRET_KEY={token_secret}
# Your backend publishes with it.
FANWIRE_HTTP_API_KEY={api_key}
"
    )
}

/// The YAML in the format that the file's name asks for.
fn converted(path: &Path, yaml: String) -> Result<String> {
    let tree = || serde_saphyr::from_str::<Value>(&yaml);
    match Format::of(path) {
        Some(Format::Yaml) => Ok(yaml),
        Some(Format::Json) => Ok(serde_json::to_string_pretty(&tree()?)? + "\n"),
        Some(Format::Toml) => Ok(toml::to_string_pretty(&tree()?)?),
        None if path.is_dir() => Err(is_a_folder(path)),
        None => Err(FileError::UnknownFormat { path: path.to_owned() }.into()),
    }
}

/// Writes a file that only its owner can read: all of it, or nothing of it.
pub(crate) fn write(path: &Path, text: &str, force: bool) -> Result<()> {
    if path.is_dir() {
        return Err(is_a_folder(path));
    }
    if !force && path.exists() {
        return Err(exists(path));
    }
    let new = path.with_added_extension("new");
    let written = write_new(&new, text).and_then(|()| {
        // A link fails where a file has come in the meantime.
        if force { fs::rename(&new, path) } else { fs::hard_link(&new, path) }
    });
    if !force || written.is_err() {
        let _ = fs::remove_file(&new); // there is nothing better to do with an error
    }
    match written {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.exists() => {
            Err(exists(path))
        }
        written => written.with_context(|| format!("{} cannot be written", path.display())),
    }
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(OWNER_ONLY).open(path)?;
    file.write_all(text.as_bytes())
}

fn exists(path: &Path) -> anyhow::Error {
    anyhow!("{} exists; name another file, or replace it with --force", path.display())
}

fn is_a_folder(path: &Path) -> anyhow::Error {
    let file = path.join(config_file::OURS);
    anyhow!("{} is a folder; name a file, such as {}", path.display(), file.display())
}

/// Returns the next steps of the user, as lines that work as pasted.
fn instructions(job: Job, path: &Path, config: &Config) -> Result<String> {
    let file = quoted(&path.display().to_string());
    let ip = config.http_server.address.parse().unwrap_or(IpAddr::from(Ipv4Addr::LOCALHOST));
    let address = example::reachable(SocketAddr::from((ip, config.http_server.port)));
    let token = Token {
        user: USER.to_owned(),
        channel: None,
        ttl: TTL.to_owned(),
        info: String::new(),
        secret: None,
        config: None,
        alg: Algorithm::Hs256,
        quiet: false,
    };
    let token = token::signed_now(&token, &(&config.client.token).into())?;
    let host = if address.ip().is_loopback() {
        format!("localhost:{}", address.port())
    } else {
        address.to_string()
    };
    let websocket = format!("ws://{host}{}", config.websocket.handler_prefix);
    let client = job.client(&websocket, &token);
    let curl = example::curl(config, address, &job.body());
    Ok(format!(
        "{file} is written, with random secrets.

Start the server:

  fanwire --config {file}

A client, for a page or for Node.js 24 (npm install centrifuge). Its token is for the user `{USER}` and valid for {TTL};
`fanwire token --user {USER} --ttl {TTL} --config {file}` prints another one:

{client}
Publish to it as your backend does:

  {curl}
"
    ))
}

/// The path as one word of a shell.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-._~/".contains(c);
    if path.chars().all(is_plain) {
        return path.to_owned();
    }
    format!("'{}'", path.replace('\'', r"'\''"))
}

const INSTRUCTIONS_FOR_SECRETS: &str = "with random secrets.

Fanwire reads it when it is started in this folder. A backend in Node.js gets the same variables:

  node --env-file=.env backend.mjs
";

/// 256 bits of randomness, as HS256 requires (RFC 7518 §3.2).
const TOKEN_SECRET_CHARS: usize = 43;

/// 190 bits of randomness.
const API_KEY_CHARS: usize = 32;

const OWNER_ONLY: u32 = 0o600;

/// The user of the printed client.
const USER: &str = "alice";

/// How long its token is valid.
const TTL: &str = "24h";
