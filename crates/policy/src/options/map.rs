//! Options of map channels (Centrifugo v6 `channel.namespaces[NAME].map.*`), and how their namespace keeps them.
//! In: values from the configuration table → out: the same data, and the retention of a channel.
//! May use: the retention of the broker. Never checks anything: that is `channel/maps.rs`.
//! Changed here: defaults that depend on the mode, limits of entries.

use std::time::Duration;

use fanwire_broker::Retention;
use fanwire_broker::map::MapRetention;

use super::ProxyChoice;

/// The entries and changes that a map channel keeps (`map.*`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapOptions {
    pub mode: MapMode,
    /// Lifetime of an entry; zero where entries are permanent.
    pub key_ttl: Duration,
    /// Changes kept per channel; 0 = 100, or none where there is no stream.
    pub stream_size: usize,
    /// How long changes are kept after the last one; zero = 1 min, or none.
    pub stream_ttl: Duration,
    /// How long offset and epoch are kept after the last use; zero = the larger of 10 × `stream_ttl` and `key_ttl`, or for ever.
    pub meta_ttl: Duration,
    pub entries_max: usize,
    /// Approximate bytes of a channel.
    pub bytes_max: usize,
    /// Entries or changes of a page of a subscriber, where the client names no number; 0 = 100.
    pub default_page_size: usize,
    /// Smaller pages are read with this size; 0 = 100.
    pub min_page_size: usize,
    /// Larger pages are read with this size; 0 = 1000.
    pub max_page_size: usize,
    /// Most changes between the last page and the live phase; 0 = `max_page_size`.
    pub live_transition_max_publication_limit: usize,
    /// Time from the first request of a subscriber to its live phase; zero = no limit.
    pub subscribe_catch_up_timeout: Duration,
    pub client_key: ClientKey,
    /// The entry whose key is a client id is removed when the subscription of that client ends.
    pub remove_client_on_unsubscribe: bool,
    /// Every authenticated client may set keys.
    pub allow_publish_for_client: bool,
    /// Every authenticated client that is subscribed may set keys.
    pub allow_publish_for_subscriber: bool,
    /// Extends the two above to user "".
    pub allow_publish_for_anonymous: bool,
    /// Every authenticated client may remove keys.
    pub allow_remove_for_client: bool,
    /// Every authenticated client that is subscribed may remove keys.
    pub allow_remove_for_subscriber: bool,
    /// Extends the two above to user "".
    pub allow_remove_for_anonymous: bool,
    /// Decides whether a client sets a key, instead of the permissions.
    pub publish_proxy: ProxyChoice,
    /// The same for removals.
    pub remove_proxy: ProxyChoice,
}

impl Default for MapOptions {
    fn default() -> Self {
        Self {
            mode: MapMode::Unset,
            key_ttl: Duration::ZERO,
            stream_size: 0,
            stream_ttl: Duration::ZERO,
            meta_ttl: Duration::ZERO,
            entries_max: 100_000,
            bytes_max: 64 << 20,
            default_page_size: PAGE_SIZE,
            min_page_size: PAGE_SIZE,
            max_page_size: PAGE_SIZE_MAX,
            live_transition_max_publication_limit: 0,
            subscribe_catch_up_timeout: Duration::from_secs(5),
            client_key: ClientKey::OfClient,
            remove_client_on_unsubscribe: false,
            allow_publish_for_client: false,
            allow_publish_for_subscriber: false,
            allow_publish_for_anonymous: false,
            allow_remove_for_client: false,
            allow_remove_for_subscriber: false,
            allow_remove_for_anonymous: false,
            publish_proxy: ProxyChoice::default(),
            remove_proxy: ProxyChoice::default(),
        }
    }
}

/// Which key a client sets and removes (`map.client_key`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClientKey {
    /// "": the key in its command.
    #[default]
    OfClient,
    ClientId,
    UserId,
}

impl ClientKey {
    /// The values of the configuration key, as [`parse`](Self::parse) reads them.
    pub const NAMES: [&'static str; 3] = ["", "client_id", "user_id"];

    /// Reads the value of the configuration key; `None` for anything not in [`NAMES`](Self::NAMES).
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "" => Some(Self::OfClient),
            "client_id" => Some(Self::ClientId),
            "user_id" => Some(Self::UserId),
            _ => None,
        }
    }
}

/// How durable the entries of a map are (`map.mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MapMode {
    /// Not configured, which is an error in a namespace of maps.
    #[default]
    Unset,
    /// Entries expire, and there is no stream of changes.
    Ephemeral,
    /// Entries expire.
    Recoverable,
    /// Entries, offset and epoch are permanent.
    Persistent,
}

impl MapMode {
    /// The values of the configuration key, as [`parse`](Self::parse) reads them.
    pub const NAMES: [&'static str; 4] = ["", "ephemeral", "recoverable", "persistent"];

    /// Reads the value of the configuration key; `None` for anything not in [`NAMES`](Self::NAMES).
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "" => Some(Self::Unset),
            "ephemeral" => Some(Self::Ephemeral),
            "recoverable" => Some(Self::Recoverable),
            "persistent" => Some(Self::Persistent),
            _ => None,
        }
    }
}

impl MapOptions {
    /// How a channel is kept, with the defaults of the mode.
    pub(super) fn retention(&self) -> MapRetention {
        let Self { mode, key_ttl, entries_max, bytes_max, .. } = *self;
        MapRetention { key_ttl, stream: self.stream(mode), entries_max, bytes_max }
    }

    fn stream(&self, mode: MapMode) -> Retention {
        if mode == MapMode::Ephemeral {
            return Retention::default();
        }
        let size = or_default(self.stream_size, STREAM_SIZE);
        let ttl = if self.stream_ttl.is_zero() { STREAM_TTL } else { self.stream_ttl };
        let meta_ttl = match mode {
            MapMode::Persistent => Duration::ZERO,
            _ if self.meta_ttl.is_zero() => ttl.saturating_mul(10).max(self.key_ttl),
            _ => self.meta_ttl,
        };
        Retention { size, ttl, meta_ttl }
    }

    /// The size of a page for which a client asks with `requested`; a number below 1 is none.
    pub fn page_size(&self, requested: i32) -> usize {
        let requested = usize::try_from(requested).unwrap_or(0);
        let size =
            if requested == 0 { or_default(self.default_page_size, PAGE_SIZE) } else { requested };
        size.max(self.page_size_min()).min(self.page_size_max())
    }

    /// The size of the smallest page, with its default.
    pub fn page_size_min(&self) -> usize {
        or_default(self.min_page_size, PAGE_SIZE)
    }

    /// The size of the largest page, with its default.
    pub fn page_size_max(&self) -> usize {
        or_default(self.max_page_size, PAGE_SIZE_MAX)
    }

    /// Most changes between the last page and the live phase.
    pub fn live_changes_max(&self) -> usize {
        or_default(self.live_transition_max_publication_limit, self.page_size_max())
    }

    /// The lifetime of changes, with its default.
    pub fn stream_ttl(&self) -> Duration {
        self.stream(self.mode).ttl
    }
}

/// An option of 0 has its default.
fn or_default(option: usize, default: usize) -> usize {
    if option == 0 { default } else { option }
}

const PAGE_SIZE: usize = 100;
const PAGE_SIZE_MAX: usize = 1000;
const STREAM_SIZE: usize = 100;
const STREAM_TTL: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
