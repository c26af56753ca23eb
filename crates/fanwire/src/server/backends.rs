//! The programs and backends that decide about clients or hear of them: hooks, event proxies, events, rooms, servers with keys.
//! In: the configuration, hooks and rooms of the program → out: hooks of the node, which these parts reach later.
//! Uses `proxy`, `events`, `tls`. Never: a decision.
//! Changed here: which of these parts there are, and how each gets its node.

use std::sync::Arc;

use fanwire_config::{Config, TokenSection};
use fanwire_events::{Events, EventsError};
use fanwire_node::{Node, hooks::Hooks as NodeHooks};
use fanwire_proxy::EventProxies;
use fanwire_tls::KeyFetcher;

use crate::{Hooks, Rooms, error::StartError, hooks::all_hooks};

/// The parts outside the node that decide about clients or hear of them.
pub(super) struct Backends {
    /// Fetchers of JWKS documents, for both kinds of tokens.
    fetchers: Option<[Arc<KeyFetcher>; 2]>,
    pub(super) proxies: Option<EventProxies>,
    pub(super) events: Option<Events>,
    pub(super) rooms: Option<Rooms>,
}

impl Backends {
    /// Makes them; none has a node yet.
    pub(super) fn new(config: &Config, rooms: Option<Rooms>) -> Result<Self, StartError> {
        Ok(Self {
            fetchers: fetchers(config)?,
            proxies: proxies(config)?,
            events: events(config)?,
            rooms,
        })
    }

    /// The errors that can be found without a socket.
    pub(super) fn check(config: &Config) -> impl Iterator<Item = StartError> {
        let of_proxies = EventProxies::check(&config.event_proxies()).map(StartError::Proxy);
        fetchers(config).err().into_iter().chain(of_proxies).chain(events(config).err())
    }

    /// The hooks of the node: those of the program first.
    pub(super) fn hooks(&self, of_program: Hooks) -> NodeHooks {
        all_hooks(of_program, self.rooms.as_ref(), self.proxies.as_ref(), self.events.as_ref())
    }

    /// Gives each part its node.
    pub(super) fn attach(&self, node: &Arc<Node>) {
        if let Some([of_token, of_subscription]) = self.fetchers.clone() {
            node.fetch_keys_with(of_token, of_subscription);
        }
        if let Some(proxies) = &self.proxies {
            proxies.attach(node);
        }
        if let Some(events) = &self.events {
            tokio::spawn(events.clone().run(Arc::downgrade(node)));
        }
        if let Some(rooms) = &self.rooms {
            rooms.attach(node);
        }
    }
}

fn proxies(config: &Config) -> Result<Option<EventProxies>, StartError> {
    let runtime = tokio::runtime::Handle::current();
    EventProxies::new(&config.event_proxies(), runtime).map_err(StartError::Proxy)
}

fn events(config: &Config) -> Result<Option<Events>, StartError> {
    Events::new(&config.events).map_err(|error| match error {
        EventsError::HttpTls(source) => StartError::Tls { key: "events.http.tls", source },
        EventsError::RedisTls(source) => StartError::Tls { key: "events.redis_stream.tls", source },
        EventsError::Redis(error) => StartError::Engine(error.into()),
    })
}

/// The fetchers of JWKS documents for both kinds of tokens; `None` if no endpoint is configured.
fn fetchers(config: &Config) -> Result<Option<[Arc<KeyFetcher>; 2]>, StartError> {
    let client = &config.client;
    let subscription = &client.subscription_token;
    let has_endpoint = |token: &TokenSection| !token.jwks_public_endpoint.is_empty();
    let is_used = has_endpoint(&client.token) || subscription.enabled && has_endpoint(subscription);
    if !is_used {
        return Ok(None);
    }
    let fetcher = |token: &TokenSection, key| {
        let fetcher = KeyFetcher::new(&token.jwks.tls).map(Arc::new);
        fetcher.map_err(|source| StartError::Tls { key, source })
    };
    Ok(Some([
        fetcher(&client.token, "client.token.jwks.tls")?,
        fetcher(subscription, "client.subscription_token.jwks.tls")?,
    ]))
}
