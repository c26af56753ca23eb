//! A server API over gRPC that has no key.
//! In: a filled `Config` → out: a remark, unless something else guards the port.
//! Uses the address as it is written. Never: resolves a name.
//! Changed here: what guards a port; sections `tls` that lack something are found in `tls`.

use super::{Config, RuleResult, Severity, is_loopback};
use crate::options::GrpcApiOptions;

/// Without a key everybody may call, as with Centrifugo; on loopback those are programs of this machine.
pub(super) fn open_api(config: &Config) -> RuleResult {
    let GrpcApiOptions { enabled, address, tls, .. } = &config.grpc_api;
    let is_local = is_loopback(address);
    let asks_for_certificates = tls.enabled && !tls.client_ca_pem.is_empty();
    (*enabled && config.grpc_api.key.is_empty() && !is_local && !asks_for_certificates).then(|| {
        let reason = "grpc_api.key is empty, so anybody who reaches grpc_api.port may publish; \
                      set a key, or grpc_api.address to 127.0.0.1";
        (Severity::Warning, "grpc_api.key", reason.to_owned())
    })
}

#[cfg(test)]
mod tests;
