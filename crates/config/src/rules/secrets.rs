//! Secrets that are short enough to be guessed.
//! In: a filled `Config` → out: a remark for each.
//! Uses their lengths alone. Never: shows a secret.
//! Changed here: which secrets are checked; a secret that is a placeholder is found in `apply`.

use super::{Config, Remark, Severity};

pub(super) fn are_long(config: &Config) -> Vec<Remark> {
    let client = &config.client;
    let api = &config.http_api;
    let grpc = &config.grpc_api;
    let subscription = &client.subscription_token;
    let secrets = [
        ("client.token.hmac_secret_key", &*client.token.hmac_secret_key, SIGNS),
        (
            "client.subscription_token.hmac_secret_key",
            if subscription.enabled { &*subscription.hmac_secret_key } else { "" },
            SIGNS,
        ),
        (
            "admin.secret",
            if config.admin.enabled { &*config.admin.secret } else { "" },
            "can log in",
        ),
        ("http_api.key", if api.disabled { "" } else { &*api.key }, PUBLISHES),
        ("grpc_api.key", if grpc.enabled { &*grpc.key } else { "" }, PUBLISHES),
    ];
    let short = secrets.into_iter().filter(|(_, secret, _)| (1..BYTES_MIN).contains(&secret.len()));
    short.map(|(key, secret, power)| (Severity::Warning, key, reason(key, secret, power))).collect()
}

fn reason(key: &str, secret: &str, power: &str) -> String {
    let bytes = match secret.len() {
        1 => "1 byte".to_owned(),
        bytes => format!("{bytes} bytes"),
    };
    format!(
        "{key} has {bytes}, and a program that guesses it {power}; expected at least {BYTES_MIN} random bytes, \
         as `openssl rand -hex {BYTES_MIN}` prints them"
    )
}

const PUBLISHES: &str = "may publish";
const SIGNS: &str = "can sign tokens for any user";

/// RFC 7518 §3.2: a key for HS256 has at least the size of the hash.
pub(super) const BYTES_MIN: usize = 32;
