//! Automatic certificates: names, addresses and URLs that no certificate can come of.
//! In: a filled `Config` → out: a remark for each.
//! Uses the options of the section. Never: asks an authority, opens a folder.
//! A relation of these keys is added here; the form of a name is checked in `autocert`.

use fanwire_tls::{AutocertOptions, is_host_name};

use super::{Config, Remark, Severity};

pub(super) fn is_complete(config: &Config) -> Vec<Remark> {
    let options = &config.http_server.tls_autocert;
    if !options.enabled {
        return Vec::new();
    }
    let mut remarks = names(options);
    remarks.extend(server_name(options));
    remarks.extend(directory(options));
    remarks.extend(ports(config));
    if options.cache_dir.is_empty() {
        let reason = format!(
            "{CACHE_DIR} is empty, so each start orders every certificate, and Let's Encrypt issues the same one five times a \
             week at most; name a folder that outlives the process"
        );
        remarks.push((Severity::Warning, CACHE_DIR, reason));
    }
    remarks
}

fn names(options: &AutocertOptions) -> Vec<Remark> {
    let error = |reason: String| (Severity::Error, HOST_WHITELIST, reason);
    if options.host_whitelist.is_empty() {
        let reason = format!(
            "{HOST_WHITELIST} is empty, but certificates are ordered for its names alone, so that clients cannot cause orders \
             for any name; list the names of this server"
        );
        return vec![error(reason)];
    }
    let wrong = options.host_whitelist.iter().filter(|name| !is_host_name(name));
    let reason = |name: &String| {
        let hint = if name.contains('*') {
            "; a certificate for all names of a domain needs the challenge dns-01, so get it with another program and set \
             http_server.tls"
        } else {
            ", not an address, a port or a URL"
        };
        format!(
            "{HOST_WHITELIST} has {name:?}, expected the name of a host such as \"chat.example.com\"{hint}"
        )
    };
    wrong.map(|name| error(reason(name))).collect()
}

fn server_name(options: &AutocertOptions) -> Option<Remark> {
    let name = options.server_name.to_ascii_lowercase();
    let is_known = name.is_empty() || options.names().contains(&name);
    (!is_known).then(|| {
        let reason =
            format!("{SERVER_NAME} is {name:?}, expected one of the names of {HOST_WHITELIST}");
        (Severity::Error, SERVER_NAME, reason)
    })
}

/// RFC 8555 §6.1: HTTPS alone.
fn directory(options: &AutocertOptions) -> Option<Remark> {
    let url = &options.directory_url;
    let host = url.strip_prefix("https://").map(|rest| rest.split('/').next().unwrap_or_default());
    let is_url = host.is_some_and(|host| !host.is_empty()) && !url.contains(char::is_whitespace);
    (!is_url).then(|| {
        let reason = format!(
            "{DIRECTORY_URL} is {url:?}, expected an https URL such as \"https://acme-v02.api.letsencrypt.org/directory\""
        );
        (Severity::Error, DIRECTORY_URL, reason)
    })
}

/// Checks the ports that the authority connects to.
fn ports(config: &Config) -> Option<Remark> {
    let options = &config.http_server.tls_autocert;
    if options.http && options.http_address().is_none() {
        let reason = format!(
            "{HTTP_ADDR} is {:?}, expected host:port or :port, such as \":80\"",
            options.http_addr
        );
        return Some((Severity::Error, HTTP_ADDR, reason));
    }
    let port = config.http_server.port;
    (port != 443 && !options.http).then(|| {
        let reason = format!(
            "http_server.port is {port}, and the authority connects to port 443 of each name; forward that port to this one \
             without another TLS in between, or set http_server.tls_autocert.http"
        );
        (Severity::Note, "http_server.port", reason)
    })
}

const CACHE_DIR: &str = "http_server.tls_autocert.cache_dir";
const HOST_WHITELIST: &str = "http_server.tls_autocert.host_whitelist";
const SERVER_NAME: &str = "http_server.tls_autocert.server_name";
const DIRECTORY_URL: &str = "http_server.tls_autocert.directory_url";
const HTTP_ADDR: &str = "http_server.tls_autocert.http_addr";

#[cfg(test)]
mod tests;
