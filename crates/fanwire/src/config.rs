//! The configuration of a server, and how a program loads it.
//! In: a file, variables of the environment, flags → out: a [`Config`] and findings, or why there is none.
//! Uses `fanwire_config`. Never: keys and their defaults, which live there.
//! Changed here: what a program may name. Sections without a name here are fields of [`Config`], set one by one.
//!
//! Fields have the names of the [configuration keys](https://github.com/fanwire/fanwire/blob/main/docs/configuration.md).
//! [`Config::default`] equals an empty file; [`load`] reads the file, variables and flags of an operator:
//!
//! ```
//! use fanwire::config::{Config, Namespace, RecoveryMode, Severity, load};
//!
//! let flags = [("client.allowed_origins".to_owned(), "https://example.org".to_owned())];
//! let (config, findings): (Config, _) = load(None, std::env::vars(), &flags)?;
//! for finding in findings.iter().filter(|finding| finding.severity == Severity::Warning) {
//!     eprintln!("{finding}");
//! }
//! assert_eq!(config.client.allowed_origins, ["https://example.org"]);
//!
//! let mut config = Config::default();
//! config.http_server.port = 8001;
//! config.client.token.hmac_secret_key = "a secret of the backend".into();
//! let mut scores = Namespace { name: "scores".to_owned(), ..Namespace::default() };
//! scores.force_recovery_mode = RecoveryMode::Cache;
//! config.channel.namespaces.push(scores);
//! # Ok::<(), fanwire::config::ConfigError>(())
//! ```

/// ([example](self))
#[doc(inline)]
pub use fanwire_config::{Config, ConfigError, EngineKind, Finding, Severity, load};
/// ([example](self))
#[doc(inline)]
pub use fanwire_policy::options::{CompressionPolicy, Namespace, RecoveryMode};
