//! Parses the addresses of a Cluster: some of its nodes, each of which knows the others.
//! In: `host:port,host:port` or a URL → out: addresses, or an error.
//! Uses: the addresses of a Redis. Never: connections.
//! Changed here: the syntax. Configuration keys are in the crate `config`.

use super::super::address::Address;
use super::super::error::RedisError;

impl Address {
    /// Parses some nodes of one Cluster: `host:port,host:port`, or as Centrifugo writes it
    /// `redis+cluster://[[user]:password@]host:port[?addr=host:port&…]`. Credentials apply to all nodes.
    ///
    /// # Errors
    /// [`RedisError::Address`] with the reason.
    pub fn parse_cluster(text: &str) -> Result<Vec<Self>, RedisError> {
        let wrong = |wrong| {
            let text = text.rsplit_once('@').map_or(text, |(_, endpoints)| endpoints).to_owned();
            RedisError::Address { text, wrong }
        };
        let (scheme, rest) = match text.split_once("://") {
            None => ("redis", text),
            Some((scheme, rest)) => match scheme.strip_suffix("+cluster") {
                Some(scheme) => (scheme, rest),
                None => return Err(wrong("the scheme of a Cluster is redis+cluster")),
            },
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (credentials, endpoints) = match rest.rsplit_once('@') {
            Some((_, endpoints)) => (&rest[..rest.len() - endpoints.len()], endpoints),
            None => ("", rest),
        };
        let mut all: Vec<&str> = endpoints.split(',').map(str::trim).collect();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("addr", endpoint)) => all.push(endpoint),
                _ => return Err(wrong("only addr=host:port may follow its question mark")),
            }
        }
        let address = |endpoint: &str| {
            let address = Self::parse(&format!("{scheme}://{credentials}{endpoint}"))?;
            match address.db {
                0 => Ok(address),
                _ => Err(wrong("a Cluster has database 0 only")),
            }
        };
        all.into_iter().map(address).collect()
    }

    /// Whether a text is the URL of a Cluster.
    pub fn is_of_cluster(text: &str) -> bool {
        text.split_once("://").is_some_and(|(scheme, _)| scheme.ends_with("+cluster"))
    }
}

#[cfg(test)]
mod tests;
