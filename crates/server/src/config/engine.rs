//! The settings of the Redis engine as the engine wants them.
//! In: `engine.redis.*` → out: its options, or which address cannot be read.
//! Uses the broker crate's addresses. Never: connects.
//! Changed here: how keys and addresses complete each other. Keys are rows in `keys::server`.

use fanwire_brokers::redis::{Address, RedisError, RedisOptions};

use super::EngineRedisOptions;

impl EngineRedisOptions {
    /// What is said by a key of its own holds for every address.
    ///
    /// # Errors
    /// [`RedisError::Address`] for the first one that cannot be read.
    pub fn options(&self) -> Result<RedisOptions, RedisError> {
        let addresses: Result<Vec<_>, _> =
            self.address.iter().map(|text| self.address(text)).collect();
        Ok(RedisOptions {
            addresses: addresses?,
            prefix: self.prefix.clone(),
            client_name: self.client_name.clone(),
            connect_timeout: self.connect_timeout,
            io_timeout: self.io_timeout,
            command_connections: self.command_connections,
            feed_connections: self.feed_connections,
        })
    }

    fn address(&self, text: &str) -> Result<Address, RedisError> {
        let mut address = Address::parse(text)?;
        if !self.user.is_empty() {
            address.user = self.user.clone();
        }
        if !self.password.is_empty() {
            address.password = self.password.clone();
        }
        if self.db != 0 {
            address.db = self.db;
        }
        Ok(address)
    }
}

#[cfg(test)]
mod tests;
