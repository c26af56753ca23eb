//! The address of a PostgreSQL as Go's pgx reads it, with parameters that tokio-postgres does not know.
//! In: a DSN → out: the rest of it, and those parameters.
//! Uses texts only. Never: connects, shows a password.
//! Changed here: which parameters are understood.

/// A DSN without the parameters that pgx alone knows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Dsn {
    pub(super) rest: String,
    /// `pool_max_conns`
    pub(super) connections_max: Option<usize>,
    /// `sslmode` and `sslrootcert`, "" = not set.
    pub(super) sslmode: String,
    pub(super) sslrootcert: String,
}

impl Dsn {
    /// Splits `postgres://…?name=value&…` or `name=value …`.
    pub(super) fn split(text: &str) -> Self {
        let is_url = text.starts_with("postgres://") || text.starts_with("postgresql://");
        let (head, parameters, separator) = match text.split_once('?') {
            Some((head, parameters)) if is_url => (head, parameters, '&'),
            None if is_url => (text, "", '&'),
            _ => ("", text, ' '),
        };
        let mut dsn = Self::default();
        let mut rest = Vec::new();
        for parameter in parameters.split(separator) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match name {
                "pool_max_conns" => dsn.connections_max = value.parse().ok(),
                "sslmode" => dsn.sslmode = value.to_owned(),
                "sslrootcert" => dsn.sslrootcert = value.to_owned(),
                name if OF_PGX.contains(&name) || name.starts_with("pool_") => {}
                _ => rest.push(parameter),
            }
        }
        let rest = rest.join(&separator.to_string());
        dsn.rest = match (is_url, rest.is_empty()) {
            (true, true) => head.to_owned(),
            (true, false) => format!("{head}?{rest}"),
            (false, _) => rest,
        };
        dsn
    }
}

/// Parameters of pgx without an effect here.
const OF_PGX: [&str; 5] = [
    "default_query_exec_mode",
    "statement_cache_capacity",
    "description_cache_capacity",
    "min_read_buffer_size",
    "timezone",
];
