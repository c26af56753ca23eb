//! The address of a PostgreSQL as Go's pgx reads it, with parameters that tokio-postgres does not know.
//! In: a DSN → out: the rest of it, those parameters, and settings of the session.
//! Uses texts, and tokio-postgres for escapes. Never: connects, shows a password.
//! Changed here: which parameters are understood.

use std::error::Error as _;

use tokio_postgres::Config;

/// A DSN without the parameters that pgx alone knows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Dsn {
    pub(super) rest: String,
    /// `pool_max_conns`
    pub(super) connections_max: Option<usize>,
    /// `sslmode` and the files of certificates and keys, "" = not set.
    pub(super) sslmode: String,
    pub(super) sslrootcert: String,
    pub(super) sslcert: String,
    pub(super) sslkey: String,
    /// Parameters of the server, such as `search_path`, as options of its command line.
    pub(super) settings: String,
}

impl Dsn {
    /// Splits `postgres://…?name=value&…` or `name=value …`.
    pub(super) fn split(text: &str) -> Self {
        let is_url = text.starts_with("postgres://") || text.starts_with("postgresql://");
        let (head, parameters) = match text.split_once('?') {
            Some((head, parameters)) if is_url => (head, parameters.split('&').collect()),
            None if is_url => (text, Vec::new()),
            _ => ("", words(text)),
        };
        let mut dsn = Self::default();
        let mut rest = Vec::new();
        for parameter in parameters {
            let Some((name, value)) = parameter.split_once('=') else {
                rest.push(parameter.to_owned());
                continue;
            };
            match name {
                "pool_max_conns" => dsn.connections_max = value.parse().ok(),
                "sslmode" => dsn.sslmode = decoded(value, is_url),
                "sslrootcert" => dsn.sslrootcert = decoded(value, is_url),
                "sslcert" => dsn.sslcert = decoded(value, is_url),
                "sslkey" => dsn.sslkey = decoded(value, is_url),
                "database" => rest.push(format!("dbname={value}")),
                "fallback_application_name" => rest.insert(0, format!("application_name={value}")),
                "keepalives_count" => rest.push(format!("keepalives_retries={value}")),
                name if WITHOUT_EFFECT.contains(&name) || name.starts_with("pool_") => {}
                name if is_setting(name) => dsn.set(name, &decoded(value, is_url)),
                _ => rest.push(parameter.to_owned()),
            }
        }
        let rest = rest.join(if is_url { "&" } else { " " });
        dsn.rest = match (is_url, rest.is_empty()) {
            (true, true) => head.to_owned(),
            (true, false) => format!("{head}?{rest}"),
            (false, _) => rest,
        };
        dsn
    }

    /// Adds an option `-c name=value`; the server ends a value at a blank that has no backslash.
    fn set(&mut self, name: &str, value: &str) {
        let blank = |character: char| character.is_whitespace() || character == '\\';
        self.settings.push_str(&format!(" -c {name}="));
        for character in value.chars() {
            self.settings.extend(blank(character).then_some('\\'));
            self.settings.push(character);
        }
    }
}

/// The parts of `name=value …`; a value in quotes may have blanks.
fn words(text: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    let is_end = |character: char| {
        let was_escaped = is_escaped;
        is_escaped = character == '\\' && !was_escaped;
        is_quoted ^= character == '\'' && !was_escaped;
        character.is_whitespace() && !is_quoted && !was_escaped
    };
    text.split(is_end).collect()
}

/// A value without quotes and escapes, as the library reads that of a parameter which it knows.
fn decoded(value: &str, is_url: bool) -> String {
    let head = if is_url { "postgres://host/?" } else { "" };
    let config = format!("{head}application_name={value}").parse::<Config>();
    let name = config.ok().and_then(|config| config.get_application_name().map(str::to_owned));
    name.unwrap_or_default()
}

/// Whether a parameter is for the server: pgx sends it those that it does not know.
fn is_setting(name: &str) -> bool {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "_.".contains(character);
    let refusal = format!("{name}=1").parse::<Config>().err();
    let why = refusal.and_then(|error| error.source().map(ToString::to_string));
    let is_unknown = why.is_some_and(|why| why.starts_with("unknown option"));
    is_unknown && !name.is_empty() && name.chars().all(is_part) && !REFUSED.contains(&name)
}

/// Parameters of libpq without an effect here: text is always UTF-8, and there is no GSSAPI.
const WITHOUT_EFFECT: [&str; 9] = [
    "client_encoding",
    "default_query_exec_mode",
    "description_cache_capacity",
    "gssencmode",
    "krbsrvname",
    "min_read_buffer_size",
    "sslcompression",
    "sslsni",
    "statement_cache_capacity",
];

/// Parameters of libpq without which a connection would be less safe, or another one.
const REFUSED: [&str; 6] =
    ["passfile", "require_auth", "requirepeer", "service", "sslcrl", "sslpassword"];
