//! Options of shared poll channels (Centrifugo v6 `shared_poll.*`, and that of a namespace), and how a channel is polled by them.
//! In: values from the configuration table → out: the same data, and the options of a channel.
//! May use: the core of shared poll. Never checks anything: that is `channel/shared_poll.rs`.
//! Changed here: defaults, which stand for zeros in Centrifugo's file.

use std::sync::Arc;
use std::time::Duration;

use fanwire_auth::{Secret, TrackSecrets};

use super::ProxyChoice;
use crate::shared_poll::{PollMode, PollOptions};

/// `shared_poll.*`: what all shared poll channels of a node have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPollOptions {
    /// Secret of the signatures with which clients track keys.
    pub hmac_secret_key: Secret,
    /// The secret before this one; "" = none.
    pub hmac_previous_secret_key: Secret,
    /// Unix seconds. The previous secret is refused in signatures that were issued later; 0 = no limit.
    pub hmac_previous_secret_key_valid_until: u64,
    /// Calls of backends at a time; 0 = 64.
    pub concurrency_limit: usize,
    /// Bytes of memory for the values of all channels.
    pub values_memory_max: usize,
}

/// `channel.namespaces[NAME].shared_poll.*`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespacePollOptions {
    /// The proxy that is polled; "" = [`ProxyChoice::DEFAULT`].
    pub proxy_name: Arc<str>,
    pub mode: PollMode,
    /// Time between the beginnings of two cycles; zero = 10 s.
    pub refresh_interval: Duration,
    /// Most keys of a call; 0 = 1000.
    pub refresh_batch_size: usize,
    /// Most keys that a connection tracks in a channel; 0 = 5000.
    pub max_keys_per_connection: usize,
    /// A channel is forgotten this long after its last key was untracked; zero = 1 s.
    pub channel_shutdown_delay: Duration,
    /// A key is untracked this long after its signature expired; zero = 25 s.
    pub track_expired_extra_delay: Duration,
    /// The server API may publish values.
    pub publish_enabled: bool,
}

impl Default for SharedPollOptions {
    fn default() -> Self {
        Self {
            hmac_secret_key: Secret::default(),
            hmac_previous_secret_key: Secret::default(),
            hmac_previous_secret_key_valid_until: 0,
            concurrency_limit: CALLS_MAX,
            values_memory_max: 256 << 20,
        }
    }
}

impl Default for NamespacePollOptions {
    fn default() -> Self {
        let channel = PollOptions::default();
        Self {
            proxy_name: "".into(),
            mode: channel.mode,
            refresh_interval: channel.refresh_interval,
            refresh_batch_size: channel.refresh_batch_size,
            max_keys_per_connection: KEYS_MAX,
            channel_shutdown_delay: channel.shutdown_delay,
            track_expired_extra_delay: EXTRA_DELAY,
            publish_enabled: false,
        }
    }
}

impl SharedPollOptions {
    /// The secrets of signatures.
    pub fn secrets(&self) -> TrackSecrets {
        TrackSecrets {
            hmac_secret_key: self.hmac_secret_key.clone(),
            hmac_previous_secret_key: self.hmac_previous_secret_key.clone(),
            hmac_previous_secret_key_valid_until: self.hmac_previous_secret_key_valid_until,
        }
    }

    /// Most calls of backends at a time.
    pub fn calls_max(&self) -> usize {
        if self.concurrency_limit == 0 { CALLS_MAX } else { self.concurrency_limit }
    }
}

impl NamespacePollOptions {
    /// The name of the proxy that is polled.
    pub fn proxy(&self) -> &str {
        if self.proxy_name.is_empty() { ProxyChoice::DEFAULT } else { &self.proxy_name }
    }

    /// Most keys that a connection tracks in a channel.
    pub fn keys_max(&self) -> usize {
        if self.max_keys_per_connection == 0 { KEYS_MAX } else { self.max_keys_per_connection }
    }

    /// Seconds after which a key whose signature expired is untracked.
    pub fn extra_delay_s(&self) -> u64 {
        let delay = self.track_expired_extra_delay;
        if delay.is_zero() { EXTRA_DELAY.as_secs() } else { delay.as_secs() }
    }

    /// How a channel is polled.
    pub fn of_channel(&self) -> PollOptions {
        let defaults = PollOptions::default();
        let or = |delay: Duration, default| if delay.is_zero() { default } else { delay };
        let batch_size = self.refresh_batch_size;
        PollOptions {
            mode: self.mode,
            refresh_interval: or(self.refresh_interval, defaults.refresh_interval),
            refresh_batch_size: if batch_size == 0 {
                defaults.refresh_batch_size
            } else {
                batch_size
            },
            shutdown_delay: or(self.channel_shutdown_delay, defaults.shutdown_delay),
            ..defaults
        }
    }
}

const CALLS_MAX: usize = 64;
const KEYS_MAX: usize = 5000;
const EXTRA_DELAY: Duration = Duration::from_secs(25);
