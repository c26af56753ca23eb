//! The paths of clients: which endpoints the configuration switches on.
//! In: the configuration, the shards, the node → out: a router, and the endpoints whose plain requests shards read.
//! Uses axum and the endpoints; contains no behaviour of its own.
//! Changed here: paths. What an endpoint does is in its module, its limits are in `settings`.

use std::{collections::BTreeSet, sync::Arc};

use axum::{
    Router,
    http::HeaderName,
    routing::{MethodRouter, any},
};
use fanwire_config::{Config, Proxies};
use fanwire_fanout::Realtime;
use fanwire_node::Node;
use fanwire_shard::Transport;

use super::{
    emulation::{self, EmulationEndpoint},
    endpoint::RealtimeEndpoint,
    readers::HttpReaders,
    response_stream::{self, StreamEndpoint},
    uni_grpc::UniGrpcService,
    unidirectional::{self, UniWebSocketEndpoint},
    upgrade::Endpoint,
    websocket,
};
use crate::accept::plain_request::PlainEndpoint;

/// What the endpoints of clients use.
pub struct ClientParts {
    /// Those of [`websockets`](super::settings::websockets).
    pub endpoints: [Endpoint<Realtime>; 2],
    pub node: Arc<Node>,
}

/// The routes of clients.
pub struct ClientRoutes {
    pub router: Router,
    /// The endpoints whose plain requests shards read, with their paths.
    pub plain: Vec<(String, Arc<dyn PlainEndpoint>)>,
    /// The service of the listener for unidirectional gRPC.
    pub uni_grpc: Option<UniGrpcService>,
    /// Of requests to other endpoints.
    pub readers: HttpReaders,
}

impl ClientRoutes {
    /// The routes that the configuration switches on.
    pub fn new(config: &Config, parts: ClientParts) -> Self {
        let ClientParts { endpoints, node } = parts;
        let [realtime, uni_websocket] = endpoints.map(|endpoint| {
            let user_id_header = config.client.user_id_http_header.clone();
            let proxied_headers = proxied_headers(&config.proxies);
            Arc::new(RealtimeEndpoint { endpoint, user_id_header, proxied_headers })
        });
        let uni_grpc = config.uni_grpc.enabled.then(|| UniGrpcService {
            realtime: Arc::clone(&realtime),
            message_bytes_max: config.uni_grpc.message_bytes_max(),
        });
        let readers = HttpReaders(Arc::clone(&realtime));
        let (router, plain) = Default::default();
        let mut routes = Self { router, plain, uni_grpc, readers };
        add_unidirectional(&mut routes, config, &realtime, uni_websocket);
        if !config.websocket.disabled {
            let websocket = any(websocket::serve).with_state(Arc::clone(&realtime));
            routes.add(&config.websocket.handler_prefix, websocket, Arc::clone(&realtime) as _);
        }
        add_streams(&mut routes, config, realtime, node);
        routes
    }

    fn add(&mut self, path: &str, route: MethodRouter, endpoint: Arc<dyn PlainEndpoint>) {
        self.router = std::mem::take(&mut self.router).route(path, route);
        self.plain.push((path.to_owned(), endpoint));
    }
}

/// HTTP streams and event streams, and the path of their commands.
fn add_streams(
    routes: &mut ClientRoutes,
    config: &Config,
    realtime: Arc<RealtimeEndpoint>,
    node: Arc<Node>,
) {
    let kinds =
        [(Transport::HttpStream, &config.http_stream), (Transport::EventStream, &config.sse)];
    for (transport, options) in kinds.into_iter().filter(|(_, options)| options.enabled) {
        let endpoint = Arc::new(StreamEndpoint {
            realtime: Arc::clone(&realtime),
            transport,
            body_bytes_max: options.max_request_body_size,
            connect_responses: None,
            compression: options.compression,
        });
        let serve = any(response_stream::serve).with_state(Arc::clone(&endpoint));
        routes.add(&options.handler_prefix, serve, endpoint);
    }
    if config.http_stream.enabled || config.sse.enabled {
        let body_bytes_max = config.emulation.max_request_body_size;
        let endpoint = Arc::new(EmulationEndpoint { realtime, node, body_bytes_max });
        let serve = any(emulation::serve).with_state(Arc::clone(&endpoint));
        routes.add(&config.emulation.handler_prefix, serve, endpoint);
    }
}

/// The endpoints of clients without commands. `websocket` differs from `realtime` in the settings of its handshakes.
fn add_unidirectional(
    routes: &mut ClientRoutes,
    config: &Config,
    realtime: &Arc<RealtimeEndpoint>,
    websocket: Arc<RealtimeEndpoint>,
) {
    if config.uni_websocket.enabled {
        let endpoint = Arc::new(UniWebSocketEndpoint { realtime: websocket });
        let serve = any(unidirectional::serve_websocket).with_state(Arc::clone(&endpoint));
        routes.add(&config.uni_websocket.handler_prefix, serve, endpoint);
    }
    let streams = [
        (Transport::UniEventStream, &config.uni_sse),
        (Transport::UniHttpStream, &config.uni_http_stream),
    ];
    for (transport, options) in streams.into_iter().filter(|(_, options)| options.enabled) {
        let responses = &options.connect_code_to_http_response;
        let endpoint = Arc::new(StreamEndpoint {
            realtime: Arc::clone(realtime),
            transport,
            body_bytes_max: options.max_request_body_size,
            compression: options.compression,
            connect_responses: responses.enabled.then(|| responses.transforms.as_slice().into()),
        });
        let serve = any(response_stream::serve).with_state(Arc::clone(&endpoint));
        routes.add(&options.handler_prefix, serve, endpoint);
    }
}

/// The headers that some event proxy passes on. The rules of the configuration have refused what is no name.
fn proxied_headers(proxies: &Proxies) -> Vec<HeaderName> {
    let names = proxies.iter().flat_map(|(_, proxy)| &proxy.http_headers);
    let names: BTreeSet<_> = names.map(|name| name.to_ascii_lowercase()).collect();
    names.into_iter().filter_map(|name| name.parse().ok()).collect()
}
