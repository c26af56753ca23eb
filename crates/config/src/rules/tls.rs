//! TLS of the listeners: sections without what they need, and keys without an effect.
//! In: a filled `Config` → out: a remark for each.
//! Uses the values as they are written. Never: reads a file; `fanwire` finds wrong certificates.
//! Changed here: which sections `tls` are complete.

use fanwire_tls::{ServerTlsOptions, ServerTlsSection};

use super::{Config, Remark, Severity};

pub(super) fn listeners(config: &Config) -> Vec<Remark> {
    let http = &config.http_server;
    let mut remarks = Vec::new();
    let is_automatic = http.tls_autocert.enabled;
    if is_automatic && http.tls.enabled {
        let reason = "http_server.tls.enabled is true, but has no effect, because http_server.tls_autocert.enabled is true, \
                      too; switch one of them off";
        remarks.push((Severity::Warning, "http_server.tls.enabled", reason.to_owned()));
    } else {
        remarks.extend(missing(CERTIFICATE, &http.tls, |tls| &tls.cert_pem));
        remarks.extend(missing(KEY, &http.tls, |tls| &tls.key_pem));
    }
    remarks.extend(missing(INTERNAL_CERTIFICATE, &http.internal_tls, |tls| &tls.cert_pem));
    remarks.extend(missing(INTERNAL_KEY, &http.internal_tls, |tls| &tls.key_pem));
    for (section, [certificate, key]) in config.grpc_tls().into_iter().zip(GRPC) {
        let Some(ServerTlsSection { options: tls, .. }) = section else { continue };
        let certificate = RequiredKey { key: certificate, what: "the certificate of that port" };
        let key = RequiredKey { key, what: KEY.what };
        remarks.extend(missing(certificate, tls, |tls| &tls.cert_pem));
        remarks.extend(missing(key, tls, |tls| &tls.key_pem));
    }
    if http.internal_tls.enabled && !http.is_split() {
        let reason = "http_server.internal_tls.enabled is true, but there is no internal listener; set \
                      http_server.internal_port, or http_server.tls instead";
        let severity =
            if http.tls.enabled || is_automatic { Severity::Warning } else { Severity::Error };
        remarks.push((severity, "http_server.internal_tls.enabled", reason.to_owned()));
    }
    if http.tls_external && !http.tls.enabled && !is_automatic {
        let reason = "http_server.tls_external is true, but http_server.tls.enabled is not";
        remarks.push((Severity::Warning, "http_server.tls_external", reason.to_owned()));
    }
    remarks
}

fn missing(
    required: RequiredKey,
    tls: &ServerTlsOptions,
    value: impl Fn(&ServerTlsOptions) -> &str,
) -> Option<Remark> {
    let RequiredKey { key, what } = required;
    (tls.enabled && value(tls).is_empty()).then(|| {
        let reason = format!(
            "{key} is empty, expected {what} as PEM, base64 of PEM, or the name of a file with it"
        );
        (Severity::Error, key, reason)
    })
}

/// The keys of the sections of [`Config::grpc_tls`].
const GRPC: [[&str; 2]; 2] = [
    ["grpc_api.tls.cert_pem", "grpc_api.tls.key_pem"],
    ["uni_grpc.tls.cert_pem", "uni_grpc.tls.key_pem"],
];

/// A key that a section needs.
#[derive(Clone, Copy)]
struct RequiredKey {
    key: &'static str,
    what: &'static str,
}

const CERTIFICATE: RequiredKey =
    RequiredKey { key: "http_server.tls.cert_pem", what: "the server's certificate" };

const KEY: RequiredKey =
    RequiredKey { key: "http_server.tls.key_pem", what: "the private key of the certificate" };

const INTERNAL_CERTIFICATE: RequiredKey = RequiredKey {
    key: "http_server.internal_tls.cert_pem",
    what: "the certificate of the internal port",
};

const INTERNAL_KEY: RequiredKey = RequiredKey {
    key: "http_server.internal_tls.key_pem",
    what: "the private key of the certificate",
};
