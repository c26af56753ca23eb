//! Options of the admin page: who may log in, and where it is served (docs/admin.md).
//! In: nothing → out: plain data.
//! Uses values only. Never: checks a password.
//! An option is a field here and a row in `keys/server.rs`; its effect lives in `fanwire::http::admin`.

use fanwire_auth::Secret;

/// `admin.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdminOptions {
    pub enabled: bool,
    /// Path above the page; "" = the root.
    pub handler_prefix: String,
    /// "" = nothing can be changed.
    pub password: Secret,
    /// Lets read only; "" = none.
    pub read_only_password: Secret,
    /// Signs tokens of logins; "" = no login.
    pub secret: Secret,
    /// Everybody may do everything.
    pub insecure: bool,
    /// The page is on the port of clients.
    pub external: bool,
    /// Folder of another page; "" = the one of Fanwire.
    pub web_path: String,
}
