//! The command_source of HTTP streams and event streams: commands in requests of their own, on any node (protocol §24).
//! In: a session id, a node and commands → out: 204; the replies come on the stream of the session.
//! Uses the node, which passes commands to its shards or to another node; never reads a command.
//! Changed here: statuses and limits of the endpoint.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, request},
    response::Response,
};
use fanwire_node::Node;
use fanwire_protocol::{EmulationRequest, Encoding};
use tokio::time::timeout;

use super::{
    cors,
    endpoint::{ErrorResponse, RealtimeEndpoint, is_octet_stream, read, refuse},
};
use crate::{
    accept::{
        forwarded::address_of,
        plain_request::{PlainEndpoint, PlainOutcome, keeps_connection},
    },
    back_pressure::{REQUEST_TIMEOUT, wait_for_shards},
};
use fanwire_shard::INBOX_BYTES_MAX;

pub(crate) struct EmulationEndpoint {
    pub(crate) realtime: Arc<RealtimeEndpoint>,
    pub(crate) node: Arc<Node>,
    pub(crate) body_bytes_max: usize,
}

pub(crate) async fn serve(
    State(endpoint): State<Arc<EmulationEndpoint>>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let response = match endpoint.pass_on(request).await {
        Ok(()) => accepted(),
        Err(response) => *response,
    };
    cors::allow(response, &headers).map(Body::from)
}

impl PlainEndpoint for EmulationEndpoint {
    fn answer(&self, head: &request::Parts, body: &[u8], peer: SocketAddr) -> Option<PlainOutcome> {
        let endpoint = &self.realtime.endpoint;
        let is_busy = endpoint.shards.backlog_bytes() > INBOX_BYTES_MAX;
        let is_long = body.len() > self.body_bytes_max;
        if is_busy || is_long || head.method != Method::POST || !keeps_connection(&head.headers) {
            return None;
        }
        let request = parse(&head.headers, body);
        if request.as_ref().is_ok_and(|request| request.node != self.node.uid()) {
            return None;
        }
        let origin = endpoint.check_origin(&head.headers, Some(peer));
        Some(match origin.and(request) {
            Ok(EmulationRequest { session, data, .. }) => {
                self.node.connections().receive_emulated(&session, data);
                PlainOutcome::Answer(cors::allow(accepted(), &head.headers))
            }
            Err(response) => PlainOutcome::Refuse(cors::allow(*response, &head.headers)),
        })
    }
}

impl EmulationEndpoint {
    async fn pass_on(&self, request: Request) -> Result<(), ErrorResponse> {
        let endpoint = &self.realtime.endpoint;
        let (head, body) = request.into_parts();
        let address = address_of(&head.extensions);
        match head.method {
            Method::POST => {}
            Method::OPTIONS => return Err(endpoint.preflight(&head.headers, address)),
            _ => return Err(Box::new(cors::refuse_method("POST, OPTIONS"))),
        }
        endpoint.check_origin(&head.headers, address)?;
        let body = read(body, self.body_bytes_max).await?;
        let EmulationRequest { node, session, data } = parse(&head.headers, &body)?;
        let passed_on = timeout(REQUEST_TIMEOUT, async {
            wait_for_shards(&endpoint.shards).await;
            self.node.connections().emulate(&node, &session, data).await
        });
        let Ok(passed_on) = passed_on.await else {
            return Err(refuse(StatusCode::SERVICE_UNAVAILABLE, "this node is behind"));
        };
        match passed_on {
            Ok(true) => Ok(()),
            Ok(false) => Err(refuse(StatusCode::NOT_FOUND, "there is no such node")),
            Err(_) => Err(refuse(StatusCode::INTERNAL_SERVER_ERROR, "the node was not reached")),
        }
    }
}

fn parse(headers: &HeaderMap, body: &[u8]) -> Result<EmulationRequest, ErrorResponse> {
    let encoding = if is_octet_stream(headers) { Encoding::Protobuf } else { Encoding::Json };
    EmulationRequest::read(encoding, body)
        .map_err(|_| refuse(StatusCode::BAD_REQUEST, "expected session, node and data"))
}

fn accepted() -> Response<String> {
    let mut response = Response::new(String::new());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}
