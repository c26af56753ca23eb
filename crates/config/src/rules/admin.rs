//! The admin page: somebody can log in, and not everybody.
//! In: a filled `Config` → out: remarks.
//! Uses values only. Never: shows a secret.
//! What the page permits lives in `fanwire::http::admin`.

use super::{Config, Remark, Severity, reached};

pub(super) fn is_guarded(config: &Config) -> Vec<Remark> {
    let admin = &config.admin;
    if !admin.enabled {
        return Vec::new();
    }
    let mut remarks = Vec::new();
    if config.demo.enabled && !config.serves_demo() {
        let key = "demo.handler_prefix";
        let reason = format!(
            "{key} is the path of the admin page, so the demo page is not served; set another one, or demo.enabled to false"
        );
        remarks.push((Severity::Warning, key, reason));
    }
    if admin.insecure {
        let place = reached(config, !admin.external);
        let reason = format!(
            "admin.insecure is true, so anybody who reaches {place} may publish, disconnect and block on the admin page; \
             only where something else guards it"
        );
        remarks.push((Severity::Warning, "admin.insecure", reason));
        return remarks;
    }
    if admin.password.is_empty() && admin.read_only_password.is_empty() {
        let reason = "admin.enabled is true without admin.password, so no login works; set it, or admin.read_only_password";
        remarks.push((Severity::Warning, "admin.password", reason.to_owned()));
    }
    if admin.secret.is_empty() {
        let reason = "admin.enabled is true without admin.secret, which signs logins, so no login works; \
                      `openssl rand -hex 32` prints one";
        remarks.push((Severity::Warning, "admin.secret", reason.to_owned()));
    }
    if !admin.password.is_empty() && *admin.password == *admin.read_only_password {
        let reason = "admin.read_only_password is admin.password, so the password for reading permits every change; \
                      expected another one";
        remarks.push((Severity::Error, "admin.read_only_password", reason.to_owned()));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::AdminOptions;

    fn keys(options: AdminOptions) -> Vec<&'static str> {
        let mut config = Config::blank();
        config.admin = AdminOptions { enabled: true, ..options };
        is_guarded(&config).into_iter().map(|(_, key, _)| key).collect()
    }

    #[test]
    fn a_page_needs_a_secret_and_different_passwords() {
        let options = |password: &str, reading: &str, secret: &str| AdminOptions {
            password: password.into(),
            read_only_password: reading.into(),
            secret: secret.into(),
            ..AdminOptions::default()
        };
        assert_eq!(keys(options("", "", "")), ["admin.password", "admin.secret"]);
        assert_eq!(keys(options("a", "", "")), ["admin.secret"]);
        assert!(keys(options("", "look", "secret")).is_empty());
        assert_eq!(keys(options("a", "a", "secret")), ["admin.read_only_password"]);
        assert_eq!(
            keys(AdminOptions { insecure: true, ..options("", "", "") }),
            ["admin.insecure"]
        );
    }
}
