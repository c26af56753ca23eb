//! The account at the authority (RFC 8555 §7.3): made once, then found by its key.
//! In: the cache, the contact → out: an account that can order.
//! Uses instant-acme and the cache. Never: names, orders.
//! Changed here: what is stored of an account, when another one is made.

use std::io;

use instant_acme::{Account, AccountCredentials, Error, NewAccount};
use serde::{Deserialize, Serialize};

use super::{cache::Cache, client::AuthorityClient};

/// The content of the account's file.
#[derive(Deserialize, Serialize)]
struct StoredAccount {
    /// The contact that the authority knows; "" = none.
    email: String,
    credentials: AccountCredentials,
}

/// The account of the cache, or a new one, which is stored.
///
/// # Errors
/// The authority refuses the account, or cannot be reached.
pub(super) async fn open(
    cache: &Cache,
    client: &AuthorityClient,
    directory_url: &str,
    email: &str,
) -> Result<Account, Error> {
    if let Some(StoredAccount { email: known, credentials }) = load(cache) {
        let key = serde_json::to_value(&credentials)?;
        let account = Account::builder_with_http(Box::new(client.clone()))
            .from_credentials(credentials)
            .await?;
        if known != email {
            account
                .update_contacts(&contacts(email).iter().map(String::as_str).collect::<Vec<_>>())
                .await?;
            store(
                cache,
                &StoredAccount {
                    email: email.to_owned(),
                    credentials: serde_json::from_value(key)?,
                },
            );
        }
        return Ok(account);
    }
    let contacts = contacts(email);
    let contact: Vec<&str> = contacts.iter().map(String::as_str).collect();
    let new = NewAccount {
        contact: &contact,
        terms_of_service_agreed: true,
        only_return_existing: false,
    };
    let builder = Account::builder_with_http(Box::new(client.clone()));
    let (account, credentials) = builder.create(&new, directory_url.to_owned(), None).await?;
    tracing::info!(
        account = account.id(),
        "made an account at the certificate authority and accepted its terms"
    );
    store(cache, &StoredAccount { email: email.to_owned(), credentials });
    Ok(account)
}

/// A file that cannot be read is replaced: an account can be made at any time.
fn load(cache: &Cache) -> Option<StoredAccount> {
    let read = || {
        Ok::<_, io::Error>(cache.account()?.map(|text| serde_json::from_str(&text)).transpose()?)
    };
    read().unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot read the account in http_server.tls_autocert.cache_dir, making another one");
        None
    })
}

fn store(cache: &Cache, account: &StoredAccount) {
    let text = serde_json::to_string_pretty(account).expect("texts become JSON");
    if let Err(error) = cache.store_account(&text) {
        tracing::warn!(%error, "cannot store the account in http_server.tls_autocert.cache_dir: the next start makes another one");
    }
}

fn contacts(email: &str) -> Vec<String> {
    if email.is_empty() { Vec::new() } else { vec![format!("mailto:{email}")] }
}
