//! How publications of one namespace wait for connections that take no bytes (`delivery`, `delivery_key_tag`).
//! In: values from the configuration table → out: the same data, shared by all broadcasts of the namespace.
//! May use: nothing. Never checks anything: that is `channel/build.rs`.
//! Defaults are changed here; the queue of waiting publications is in `fanout`.

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
}

impl Default for DeliveryOptions {
    fn default() -> Self {
        Self { class: DeliveryClass::Reliable, key_tag: String::new(), keys_max: 4096 }
    }
}
