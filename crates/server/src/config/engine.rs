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
        let clusters = self.clusters()?;
        let singles = if clusters.is_empty() { &self.address[..] } else { &[] };
        let addresses: Result<Vec<_>, _> =
            singles.iter().map(|text| Ok(self.keyed(Address::parse(text)?))).collect();
        Ok(RedisOptions {
            addresses: addresses?,
            clusters,
            prefix: self.prefix.clone(),
            client_name: self.client_name.clone(),
            connect_timeout: self.connect_timeout,
            io_timeout: self.io_timeout,
            command_connections: self.command_connections,
            feed_connections: self.feed_connections,
        })
    }

    /// Clusters have a key of their own; without it their URLs may be the addresses.
    fn clusters(&self) -> Result<Vec<Vec<Address>>, RedisError> {
        let texts = match &self.cluster_address[..] {
            [] if self.address.iter().any(|text| Address::is_of_cluster(text)) => &self.address,
            texts => texts,
        };
        let wrong = |text: &String| RedisError::Address {
            text: text.rsplit('@').next().unwrap_or_default().to_owned(),
            wrong: "a Cluster has database 0 only: leave out engine.redis.db",
        };
        let cluster = |text: &String| {
            let seeds = Address::parse_cluster(text)?;
            let seeds: Vec<_> = seeds.into_iter().map(|seed| self.keyed(seed)).collect();
            if seeds.iter().all(|seed| seed.db == 0) { Ok(seeds) } else { Err(wrong(text)) }
        };
        texts.iter().map(cluster).collect()
    }

    fn keyed(&self, mut address: Address) -> Address {
        if !self.user.is_empty() {
            address.user = self.user.clone();
        }
        if !self.password.is_empty() {
            address.password = self.password.clone();
        }
        if self.db != 0 {
            address.db = self.db;
        }
        address
    }
}

#[cfg(test)]
mod tests;
