//! The uplink of HTTP streams and event streams: commands in requests of their own, on any node (protocol §24).
//! In: a session id, a node and commands → out: 204; the replies come on the stream of the session.
//! Uses the node, which passes commands to its shards or to another node; never reads a command.
//! Changed here: statuses and limits of the endpoint.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{Method, StatusCode},
    response::{IntoResponse, Response},
};
use fanwire_node::Node;
use fanwire_protocol::{EmulationRequest, Encoding};
use tokio::time::timeout;

use super::{
    api_service::{REQUEST_TIMEOUT, wait_for_shards},
    cors,
    response_stream::{Refusal, is_octet_stream, read, refuse},
    routes::RealtimeEndpoint,
};

pub(super) struct EmulationEndpoint {
    pub(super) realtime: Arc<RealtimeEndpoint>,
    pub(super) node: Arc<Node>,
    pub(super) body_bytes_max: usize,
}

pub(super) async fn serve(
    State(endpoint): State<Arc<EmulationEndpoint>>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let status = match endpoint.pass_on(request).await {
        Ok(status) => status.into_response(),
        Err(refusal) => *refusal,
    };
    cors::allow(status, &headers)
}

impl EmulationEndpoint {
    async fn pass_on(&self, request: Request) -> Result<StatusCode, Refusal> {
        let endpoint = &self.realtime.endpoint;
        match *request.method() {
            Method::POST => {}
            Method::OPTIONS => return Err(endpoint.preflight(&request)),
            _ => return Err(Box::new(cors::refuse_method("POST, OPTIONS"))),
        }
        endpoint.check_origin(&request)?;
        let is_binary = is_octet_stream(request.headers());
        let body = read(request.into_body(), self.body_bytes_max).await?;
        let encoding = if is_binary { Encoding::Protobuf } else { Encoding::Json };
        let request = EmulationRequest::read(encoding, &body);
        let Ok(EmulationRequest { node, session, data }) = request else {
            return Err(refuse(StatusCode::BAD_REQUEST, "expected session, node and data"));
        };
        let passed_on = timeout(REQUEST_TIMEOUT, async {
            wait_for_shards(&endpoint.shards).await;
            self.node.emulate(&node, &session, data).await
        });
        let Ok(passed_on) = passed_on.await else {
            return Err(refuse(StatusCode::SERVICE_UNAVAILABLE, "this node is behind"));
        };
        match passed_on {
            Ok(true) => Ok(StatusCode::NO_CONTENT),
            Ok(false) => Err(refuse(StatusCode::NOT_FOUND, "there is no such node")),
            Err(_) => Err(refuse(StatusCode::INTERNAL_SERVER_ERROR, "the node was not reached")),
        }
    }
}
