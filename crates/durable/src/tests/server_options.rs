//! The options of a server with streams, for the tests of the endpoint.
//! In: nothing → out: options of node, API and streams; clients that a header names.
//! Uses the defaults of the crates. Never: a server.
//! Changed here: what every test of the endpoint begins with.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use fanwire_api::ApiOptions;
use fanwire_node::options::{Namespace, Options};
use fanwire_node::protocol::Encoding;
use fanwire_node::{CommandSource, ConnectionInfo};
use http::{Extensions, HeaderMap};

use crate::{DurableOptions, HttpConnections};

/// The options of a server with streams.
#[derive(Default)]
pub(super) struct Settings {
    pub(super) node: Options,
    pub(super) api: ApiOptions,
    pub(super) streams: DurableOptions,
}

impl Settings {
    /// Streams in the namespace `log`, for everybody.
    pub(super) fn open() -> Self {
        let mut settings = Self {
            streams: DurableOptions {
                enabled: true,
                insecure: true,
                namespace: "log".to_owned(),
                ..DurableOptions::default()
            },
            ..Self::default()
        };
        let ttl = Duration::from_secs(3600);
        let log = Namespace {
            name: "log".into(),
            history_size: 100,
            history_ttl: ttl,
            ..Namespace::default()
        };
        settings.node.channel.namespaces.push(log);
        settings.node.client.token.hmac_secret_key = "secret".into();
        settings.api.key = "key".into();
        settings
    }
}

/// The client that a header names. Without a connection, long responses are counted until `is_full`.
pub(super) fn connections(is_full: &Arc<AtomicBool>) -> HttpConnections {
    let is_full = Arc::clone(is_full);
    let client = |headers: &HeaderMap| {
        let user = headers.get("x-user").map(|user| user.to_str().map(str::to_owned));
        Ok(ConnectionInfo {
            encoding: Encoding::Json,
            frame_ping: false,
            transport: "durable_streams",
            command_source: CommandSource::None,
            user: user.transpose().map_err(|error| error.to_string())?,
            last_event_id: None,
            headers: Vec::new(),
        })
    };
    let begin = move |_: &Extensions| {
        (!is_full.load(Relaxed)).then(|| Box::new(()) as Box<dyn std::any::Any + Send + Sync>)
    };
    HttpConnections {
        scheme: "http",
        client: Box::new(client),
        begin_long_response: Box::new(begin),
    }
}
