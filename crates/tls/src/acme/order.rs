//! One order (RFC 8555 §7.4): from the names to the certificate.
//! In: an account, a name, a challenge → out: PEM of a new key and the chain, or who failed and why.
//! Uses instant-acme. Never: files; never decides when to order.
//! Changed here: the steps of an order and their time limits.

use std::time::Duration;

use instant_acme::{
    Account, AuthorizationStatus, ChallengeType, Error, Identifier, NewOrder, Order, OrderStatus,
    Problem, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use tokio::time::timeout;

use super::{
    certificate::CertificateError,
    challenge::{Challenge, Published},
    schedule::{ChallengeKind, DueOrder, FailureKind},
};

/// Why an order did not end with a certificate.
#[derive(Debug, thiserror::Error)]
pub(super) enum OrderError {
    /// The authority refused a request, or did not answer.
    #[error("{0}")]
    Acme(#[from] Error),
    /// The authority could not validate the challenge.
    #[error("{0} was not accepted: {1}")]
    Challenge(ChallengeKind, String),
    /// The authority does not offer the challenge for this name.
    #[error("the authority does not offer {0} for this name")]
    NotOffered(ChallengeKind),
    /// The key, the signing request or the certificate of the challenge could not be made.
    #[error("{0}")]
    Key(#[from] rcgen::Error),
    /// The authority issued something else than a certificate for this key.
    #[error("the certificate cannot be used: {0}")]
    Certificate(CertificateError),
    #[error("the order did not end in time")]
    Timeout,
}

/// Orders one certificate. The answer to the challenge stays published until the authority has decided.
pub(super) async fn issue(
    account: &Account,
    due: &DueOrder,
    challenge: &Challenge,
) -> Result<String, OrderError> {
    timeout(ORDER_TIME, steps(account, due, challenge)).await.unwrap_or(Err(OrderError::Timeout))
}

async fn steps(
    account: &Account,
    due: &DueOrder,
    challenge: &Challenge,
) -> Result<String, OrderError> {
    let identifiers = [Identifier::Dns(due.name.to_string())];
    let mut order = account.new_order(&NewOrder::new(&identifiers)).await?;
    if let Err(error) = prove(&mut order, due, challenge).await {
        return Err(refusal(&mut order, due.challenge, error).await);
    }
    let pair = KeyPair::generate()?;
    let mut params = CertificateParams::new([due.name.to_string()])?;
    params.distinguished_name = DistinguishedName::new();
    order.finalize_csr(params.serialize_request(&pair)?.der()).await?;
    let chain = order.poll_certificate(&POLL).await?;
    Ok(format!("{}{chain}", pair.serialize_pem()))
}

/// Answers the challenge until the authority has decided.
async fn prove(order: &mut Order, due: &DueOrder, challenge: &Challenge) -> Result<(), OrderError> {
    let _published = answer(order, due, challenge).await?;
    match order.poll_ready(&POLL).await? {
        OrderStatus::Invalid => {
            Err(OrderError::Challenge(due.challenge, "the order is invalid".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Publishes the answer and asks the authority to look for it. An authorization of an earlier order may still be valid; then
/// there is nothing to answer.
async fn answer<'a>(
    order: &mut Order,
    due: &DueOrder,
    challenge: &'a Challenge,
) -> Result<Option<Published<'a>>, OrderError> {
    let kind = due.challenge;
    // One name has one authorization.
    let mut authorizations = order.authorizations();
    let Some(authorization) = authorizations.next().await else { return Ok(None) };
    let mut authorization = authorization?;
    if authorization.status == AuthorizationStatus::Valid {
        return Ok(None);
    }
    let mut offered = authorization.challenge(type_of(kind)).ok_or(OrderError::NotOffered(kind))?;
    let authorization = offered.key_authorization();
    let published = challenge.publish(kind, &due.name, &offered.token, &authorization)?;
    offered.set_ready().await?;
    Ok(Some(published))
}

/// Returns the authority's decision about the challenge, if it has decided; else the error as it is. An authority may have decided
/// before it answers the request that asks it to look.
async fn refusal(order: &mut Order, kind: ChallengeKind, error: OrderError) -> OrderError {
    if !matches!(error, OrderError::Acme(Error::Api(_)) | OrderError::Challenge(..)) {
        return error;
    }
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        let Ok(state) = authorization.refresh().await else { break };
        let mut challenges = state.challenges.iter();
        if let Some(problem) = challenges.find_map(|challenge| challenge.error.as_ref()) {
            return OrderError::Challenge(kind, detail(problem));
        }
    }
    error
}

fn type_of(kind: ChallengeKind) -> ChallengeType {
    match kind {
        ChallengeKind::TlsAlpn => ChallengeType::TlsAlpn01,
        ChallengeKind::Http => ChallengeType::Http01,
    }
}

fn detail(problem: &Problem) -> String {
    problem.detail.clone().or_else(|| problem.r#type.clone()).unwrap_or_else(|| problem.to_string())
}

/// Not an error of the authority itself, and not a nonce that it refused three times in a row.
fn is_final(problem: &Problem) -> bool {
    let is_nonce = problem.r#type.as_deref().is_some_and(|name| name.ends_with(":badNonce"));
    problem.status.is_none_or(|status| status < 500) && !is_nonce
}

impl OrderError {
    /// Who failed, which decides when the next attempt is made.
    pub(super) fn kind(&self) -> FailureKind {
        match self {
            Self::Challenge(..) | Self::NotOffered(_) => FailureKind::Challenge,
            Self::Acme(Error::Api(problem)) if is_final(problem) => FailureKind::Refused,
            Self::Acme(Error::Timeout(_)) | Self::Key(_) | Self::Certificate(_) | Self::Timeout => {
                FailureKind::Refused
            }
            // No answer, or one that is not the protocol's, as from a proxy in front of an authority that is down.
            Self::Acme(_) => FailureKind::Authority,
        }
    }

    /// Whether the authority does not know our account, for example because it lost its data (RFC 8555 §6.7).
    pub(super) fn is_unknown_account(&self) -> bool {
        let Self::Acme(Error::Api(Problem { r#type: Some(name), .. })) = self else { return false };
        name.ends_with(":accountDoesNotExist")
    }

    /// Returns the remedy for an operator.
    pub(super) fn remedy(&self) -> &'static str {
        match self {
            Self::Challenge(ChallengeKind::TlsAlpn, _) => {
                "the name must resolve to this server, and its port 443 must reach http_server.port without another TLS in between"
            }
            Self::Challenge(ChallengeKind::Http, _) => {
                "the name must resolve to this server, and its port 80 must reach http_server.tls_autocert.http_addr"
            }
            Self::NotOffered(_) => {
                "use an authority that offers tls-alpn-01, or set http_server.tls_autocert.http for http-01"
            }
            Self::Acme(Error::Api(problem)) => {
                match problem.r#type.as_deref().and_then(|name| name.rsplit(':').next()) {
                    Some("rateLimited") => {
                        "wait for the rate limit of the authority, and keep http_server.tls_autocert.cache_dir"
                    }
                    Some("invalidContact" | "unsupportedContact") => {
                        "check http_server.tls_autocert.email"
                    }
                    Some("caa" | "rejectedIdentifier") => {
                        "check http_server.tls_autocert.host_whitelist and the CAA records of the name"
                    }
                    _ => "the authority says what is wrong",
                }
            }
            Self::Acme(_) | Self::Timeout => {
                "check http_server.tls_autocert.directory_url and directory_ca_pem, and that this server can reach that address"
            }
            Self::Key(_) | Self::Certificate(_) => "the authority issued no usable certificate",
        }
    }
}

/// From the first request to the chain.
const ORDER_TIME: Duration = Duration::from_secs(300);

/// For validating and for issuing. An authority may ask for other times (`Retry-After`).
const POLL: RetryPolicy = RetryPolicy::new()
    .initial_delay(Duration::from_millis(250))
    .backoff(1.5)
    .timeout(Duration::from_secs(120));

#[cfg(test)]
mod tests;
