//! How publications of one namespace wait: for connections that take no bytes (`delivery`, `delivery_key_tag`), and for others
//! that are delivered with them (`batch_max_size`, `batch_max_delay`).
//! In: values from the configuration table → out: the same data, shared by all broadcasts of the namespace.
//! May use: nothing. Never checks anything: that is `channel/build.rs`.
//! Changed here: defaults; the queue of a connection is in `fanout`, batches are in `hub/batches.rs`.

use std::time::Duration;

use fanwire_broker::DeliveryClass;

/// The delivery options of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryOptions {
    /// The class of publications that name none.
    pub class: DeliveryClass,
    /// The newest publication for each value of this tag waits; "" = the newest of the channel.
    pub key_tag: String,
    /// Values that wait for one connection in one channel, at least 1.
    pub keys_max: usize,
    pub batch: BatchOptions,
}

/// Conditions under which publications of a channel are delivered together.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct BatchOptions {
    /// Publications that complete a batch; 0 = only `max_delay` does.
    pub max_size: usize,
    /// Time that the first publication waits at most; zero = publications do not wait.
    pub max_delay: Duration,
    /// Deliver only the newest of them.
    pub flush_latest: bool,
}

impl BatchOptions {
    /// Whether publications wait at all.
    pub fn is_on(&self) -> bool {
        !self.max_delay.is_zero()
    }
}

impl Default for DeliveryOptions {
    fn default() -> Self {
        Self {
            class: DeliveryClass::Reliable,
            key_tag: String::new(),
            keys_max: 4096,
            batch: BatchOptions::default(),
        }
    }
}
