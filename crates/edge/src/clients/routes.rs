//! The paths of clients: which endpoints the options switch on.
//! In: options of endpoints, the shards, the node → out: a router, and the endpoints whose plain requests shards read.
//! Uses axum and the endpoints; contains no behaviour of its own.
//! Changed here: paths. What an endpoint does is in its module, its limits are in `settings`.

use std::sync::Arc;

use axum::{
    Router,
    http::HeaderName,
    routing::{MethodRouter, any},
};
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
use crate::options::ClientEndpoints;

/// The parts that the endpoints of clients use.
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
    /// Readers of requests to other endpoints.
    pub readers: HttpReaders,
}

impl ClientRoutes {
    /// The routes that the options switch on.
    pub fn new(options: &ClientEndpoints, parts: ClientParts) -> Self {
        let ClientParts { endpoints, node } = parts;
        let [realtime, uni_websocket] = endpoints.map(|endpoint| {
            let user_id_header = options.user_id_http_header.clone();
            let proxied_headers = proxied_headers(options);
            Arc::new(RealtimeEndpoint { endpoint, user_id_header, proxied_headers })
        });
        let uni_grpc = options.uni_grpc.enabled.then(|| UniGrpcService {
            realtime: Arc::clone(&realtime),
            message_bytes_max: options.uni_grpc.message_bytes_max(),
        });
        let readers = HttpReaders(Arc::clone(&realtime));
        let (router, plain) = Default::default();
        let mut routes = Self { router, plain, uni_grpc, readers };
        add_unidirectional(&mut routes, options, &realtime, uni_websocket);
        if !options.websocket.disabled {
            let websocket = any(websocket::serve).with_state(Arc::clone(&realtime));
            routes.add(&options.websocket.handler_prefix, websocket, Arc::clone(&realtime) as _);
        }
        add_streams(&mut routes, options, realtime, node);
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
    options: &ClientEndpoints,
    realtime: Arc<RealtimeEndpoint>,
    node: Arc<Node>,
) {
    let kinds =
        [(Transport::HttpStream, &options.http_stream), (Transport::EventStream, &options.sse)];
    for (transport, stream) in kinds.into_iter().filter(|(_, stream)| stream.enabled) {
        let endpoint = Arc::new(StreamEndpoint {
            realtime: Arc::clone(&realtime),
            transport,
            body_bytes_max: stream.max_request_body_size,
            connect_responses: None,
            compression: stream.compression,
        });
        let serve = any(response_stream::serve).with_state(Arc::clone(&endpoint));
        routes.add(&stream.handler_prefix, serve, endpoint);
    }
    if options.http_stream.enabled || options.sse.enabled {
        let body_bytes_max = options.emulation.max_request_body_size;
        let endpoint = Arc::new(EmulationEndpoint { realtime, node, body_bytes_max });
        let serve = any(emulation::serve).with_state(Arc::clone(&endpoint));
        routes.add(&options.emulation.handler_prefix, serve, endpoint);
    }
}

/// The endpoints of clients without commands. `websocket` differs from `realtime` in the settings of its handshakes.
fn add_unidirectional(
    routes: &mut ClientRoutes,
    options: &ClientEndpoints,
    realtime: &Arc<RealtimeEndpoint>,
    websocket: Arc<RealtimeEndpoint>,
) {
    if options.uni_websocket.enabled {
        let endpoint = Arc::new(UniWebSocketEndpoint { realtime: websocket });
        let serve = any(unidirectional::serve_websocket).with_state(Arc::clone(&endpoint));
        routes.add(&options.uni_websocket.handler_prefix, serve, endpoint);
    }
    let streams = [
        (Transport::UniEventStream, &options.uni_sse),
        (Transport::UniHttpStream, &options.uni_http_stream),
    ];
    for (transport, stream) in streams.into_iter().filter(|(_, stream)| stream.enabled) {
        let responses = &stream.connect_code_to_http_response;
        let endpoint = Arc::new(StreamEndpoint {
            realtime: Arc::clone(realtime),
            transport,
            body_bytes_max: stream.max_request_body_size,
            compression: stream.compression,
            connect_responses: responses.enabled.then(|| responses.transforms.as_slice().into()),
        });
        let serve = any(response_stream::serve).with_state(Arc::clone(&endpoint));
        routes.add(&stream.handler_prefix, serve, endpoint);
    }
}

/// The headers that some event proxy passes on. The rules of the configuration have refused what is no name.
fn proxied_headers(options: &ClientEndpoints) -> Vec<HeaderName> {
    options.proxied_headers.iter().filter_map(|name| name.parse().ok()).collect()
}
