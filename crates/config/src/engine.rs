//! The settings of the Redis engine, converted into its options.
//! In: `engine.redis.*` → out: its options, or the address that is invalid.
//! Uses the broker crate's addresses. Never: connects.
//! Changed here: how keys and addresses complete each other. Keys are rows in `keys::server`.

use std::sync::Arc;

use fanwire_redis::{Address, RedisError, RedisOptions, Sentinels, Wait};

use super::EngineRedisOptions;
use super::duration;

impl EngineRedisOptions {
    /// Returns the options of the Redis. A value that has a key of its own applies to every address.
    ///
    /// # Errors
    /// [`RedisError::Address`] for the first one that cannot be read.
    pub fn options(&self) -> Result<RedisOptions, RedisError> {
        self.without_timeouts()?.options_of_addresses()
    }

    /// The same with the options `connect_timeout` and `io_timeout` of addresses as keys.
    fn without_timeouts(&self) -> Result<Self, RedisError> {
        let mut redis = self.clone();
        let (connect, io) = (&mut redis.connect_timeout, &mut redis.io_timeout);
        for text in redis.address.iter_mut().chain(&mut redis.cluster_address) {
            let Some((address, options)) = text.split_once('?') else { continue };
            let mut others = Vec::new();
            for option in options.split('&') {
                let timeout = match option.split_once('=') {
                    Some(("connect_timeout", value)) => (&mut *connect, value),
                    Some(("io_timeout", value)) => (&mut *io, value),
                    _ => {
                        others.push(option);
                        continue;
                    }
                };
                *timeout.0 = duration::parse(timeout.1).map_err(|_| RedisError::Address {
                    text: address.rsplit('@').next().unwrap_or_default().to_owned(),
                    wrong: "its options connect_timeout and io_timeout are durations such as 1s",
                })?;
            }
            let mark = if others.is_empty() { "" } else { "?" };
            *text = format!("{address}{mark}{}", others.join("&"));
        }
        Ok(redis)
    }

    fn options_of_addresses(&self) -> Result<RedisOptions, RedisError> {
        let clusters = self.clusters()?;
        let addresses = match (clusters.is_empty(), self.sentinel_address.is_empty()) {
            (false, _) => Ok(Vec::new()),
            (true, true) => self.address.iter().map(|text| Address::parse(text)).collect(),
            (true, false) => self.masters(),
        };
        Ok(RedisOptions {
            addresses: addresses?.into_iter().map(|address| self.completed(address)).collect(),
            clusters,
            prefix: self.prefix.clone(),
            client_name: self.client_name.clone(),
            connect_timeout: self.connect_timeout,
            io_timeout: self.io_timeout,
            wait: Wait { replicas: self.wait_replicas, timeout: self.wait_timeout },
            command_connections: self.command_connections,
            pubsub_connections: self.pubsub_connections,
            ..RedisOptions::default()
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
            let seeds: Vec<_> = seeds.into_iter().map(|seed| self.completed(seed)).collect();
            if seeds.iter().all(|seed| seed.db == 0) { Ok(seeds) } else { Err(wrong(text)) }
        };
        texts.iter().map(cluster).collect()
    }

    /// Each name, at the Sentinels that are listed. When there are several items with commas inside, each item lists the
    /// Sentinels of another Redis, as with Centrifugo.
    fn masters(&self) -> Result<Vec<Address>, RedisError> {
        let items: Vec<&str> = self.sentinel_address.iter().map(String::as_str).collect();
        let are_groups = items.len() > 1 && items.iter().any(|item| item.contains(','));
        let all = items.join(",");
        let groups = if are_groups { items } else { vec![all.as_str()] };
        let mut masters = Vec::new();
        for group in groups {
            let places = group.split(',').map(Address::parse_sentinel);
            let addresses = places.collect::<Result<Vec<_>, _>>()?;
            for name in self.sentinel_master_name.split(',').map(str::trim) {
                if name.is_empty() {
                    let wrong = "engine.redis.sentinel_master_name names no master to ask for";
                    return Err(RedisError::Address { text: group.to_owned(), wrong });
                }
                let (master, addresses) = (name.to_owned(), addresses.clone());
                let sentinels = Sentinels { master, addresses, client_name: String::new() };
                let (host, sentinels) = (String::new(), Some(Arc::new(sentinels)));
                masters.push(Address { host, sentinels, ..Address::default() });
            }
        }
        Ok(masters)
    }

    /// Returns an address with the values that have keys of their own.
    fn completed(&self, mut address: Address) -> Address {
        if !self.user.is_empty() {
            address.user = self.user.clone();
        }
        if !self.password.is_empty() {
            address.password = self.password.to_string();
        }
        if self.db != 0 {
            address.db = self.db;
        }
        address.is_tls |= self.tls.enabled;
        if let Some(sentinels) = address.sentinels.as_mut() {
            let sentinels = Arc::make_mut(sentinels);
            sentinels.client_name = self.sentinel_client_name.clone();
            for sentinel in &mut sentinels.addresses {
                if !self.sentinel_user.is_empty() {
                    sentinel.user = self.sentinel_user.clone();
                }
                if !self.sentinel_password.is_empty() {
                    sentinel.password = self.sentinel_password.to_string();
                }
                sentinel.is_tls |= self.sentinel_tls.enabled;
            }
        }
        address
    }
}

#[cfg(test)]
mod tests;
