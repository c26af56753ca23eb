//! Which defaults of development mode a configuration does not have.
//! In: a `Config` → out: names of keys.
//! Uses `settings`, which has the defaults of that mode. Never: changes a value.
//! A key that gets a default there is compared here.

use super::settings::{DEVELOPMENT, Settings};
use super::{Config, apply};

impl Config {
    /// The keys whose values in development mode are others than here; none in development mode without flags.
    pub fn without_development_defaults(&self) -> Vec<&'static str> {
        let mut settings = Settings::default();
        settings.assume_development(&[]);
        let development = apply::apply(&settings, &mut Vec::new());
        // In the order of the rows.
        let is_same = [
            self.http_server.address == development.http_server.address,
            self.node.client.insecure == development.node.client.insecure,
            self.client.allowed_origins == development.client.allowed_origins,
            self.demo.enabled == development.demo.enabled,
            self.health.enabled == development.health.enabled,
            self.prometheus.enabled == development.prometheus.enabled,
        ];
        let keys = DEVELOPMENT.iter().map(|(key, _)| *key).zip(is_same);
        keys.filter(|(_, is_same)| !is_same).map(|(key, _)| key).collect()
    }
}
