//! `http_server.tls_autocert`: the section, the form of its names and of its address.
//! In: values as they are written → out: lower-case names, host and port.
//! Uses text only. Never: sockets or certificates.
//! Changed here: which names an authority can be asked for. The keys are rows of the crate `config`; `acme` orders the certificates.

/// Certificates from an authority that speaks ACME (RFC 8555).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AutocertOptions {
    pub enabled: bool,
    /// The names to have certificates for; at least one.
    pub host_whitelist: Vec<String>,
    /// Folder of the account's key and of the certificates; "" = nothing is kept.
    pub cache_dir: String,
    /// Mail address that the authority writes to; "" = none.
    pub email: String,
    /// Name assumed for clients that send none; "" = they get no certificate.
    pub server_name: String,
    /// Listen on `http_addr` for challenges http-01.
    pub http: bool,
    /// `host:port`, or `:port` for all addresses.
    pub http_addr: String,
    /// An https URL.
    pub directory_url: String,
    /// Authorities to believe at `directory_url` instead of the system's; "" = those.
    pub directory_ca_pem: String,
}

impl AutocertOptions {
    /// `host_whitelist` in lower case, each name once, in the order of the list.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for name in self.host_whitelist.iter().map(|name| name.to_ascii_lowercase()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Host ("" = all addresses) and port of `http_addr`; `None` if it is neither `host:port` nor `:port`.
    pub fn http_address(&self) -> Option<(&str, u16)> {
        let (host, port) = self.http_addr.rsplit_once(':')?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_ambiguous = bare.is_none() && host.contains(':');
        let port = port.parse().ok().filter(|_| !is_ambiguous)?;
        Some((bare.unwrap_or(host), port))
    }
}

/// Whether a certificate can be ordered for this name with tls-alpn-01 or http-01: the name of a host (RFC 1123 §2.1), which is
/// no address and has no wildcard.
pub fn is_host_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let has_right_chars =
            label.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
        (1..=63).contains(&label.len())
            && has_right_chars
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_address = last.bytes().all(|b| b.is_ascii_digit());
    name.len() <= 253 && !is_address && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests;
