//! The settings of a Redis as operators write them (`engine.redis.*`, consumers, events), converted into options.
//! In: addresses and keys that complete them → out: `RedisOptions`, or the address that is invalid.
//! Uses the addresses of this crate. Never: connects, certificates.
//! Changed here: how keys and addresses complete each other. The keys are rows of the crate `config`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fanwire_auth::Secret;
use fanwire_telemetry::duration;

use crate::address::{Address, Sentinels};
use crate::error::RedisError;
use crate::options::{RedisOptions, Wait};

/// `engine.redis.*`. `Tls` is the form of its sections with TLS, whose certificates this crate does not read.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EngineRedisOptions<Tls = ()> {
    /// `host:port` or `redis://…`; of several each channel belongs to one.
    pub address: Vec<String>,
    /// Instead of it: some nodes of a Cluster; of several Clusters each channel belongs to one.
    pub cluster_address: Vec<String>,
    /// `host:port`; empty = no Sentinels.
    pub sentinel_address: Vec<String>,
    /// Name of the master at the Sentinels. Several names have commas between them; each channel belongs to one of them.
    pub sentinel_master_name: String,
    pub sentinel_user: String,
    pub sentinel_password: Secret,
    pub sentinel_client_name: String,
    /// TLS of connections to the Sentinels.
    pub sentinel_tls: Tls,
    /// TLS of connections to the Redis.
    pub tls: Tls,
    /// "" = as the address says.
    pub user: String,
    /// "" = as the address says.
    pub password: Secret,
    /// 0 = as the address says.
    pub db: u32,
    pub prefix: String,
    pub client_name: String,
    pub connect_timeout: Duration,
    pub io_timeout: Duration,
    /// Replicas that must have a write.
    pub wait: Wait,
    pub command_connections: usize,
    pub pubsub_connections: usize,
}

/// Without secrets.
impl<Tls> fmt::Debug for EngineRedisOptions<Tls> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineRedisOptions").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl<Tls: Clone> EngineRedisOptions<Tls> {
    /// Returns the options of the Redis. A value that has a key of its own applies to every address, and so does a section with
    /// TLS that is enabled.
    ///
    /// # Errors
    /// [`RedisError::Address`] for the first one that cannot be read.
    pub fn options(&self, is_enabled: fn(&Tls) -> bool) -> Result<RedisOptions, RedisError> {
        let mut options = self.without_timeouts()?.options_of_addresses()?;
        if is_enabled(&self.tls) {
            options.require_tls();
        }
        if is_enabled(&self.sentinel_tls) {
            options.require_sentinel_tls();
        }
        Ok(options)
    }

    /// The same with the options `connect_timeout` and `io_timeout` of addresses as keys.
    fn without_timeouts(&self) -> Result<Self, RedisError> {
        let mut redis = self.clone();
        let connect = &mut redis.connect_timeout;
        let io = &mut redis.io_timeout;
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
            wait: self.wait,
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
                let master = name.to_owned();
                let addresses = addresses.clone();
                let sentinels = Sentinels { master, addresses, client_name: String::new() };
                let host = String::new();
                let sentinels = Some(Arc::new(sentinels));
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
            }
        }
        address
    }
}

#[cfg(test)]
mod tests;
