//! Unidirectional transports: clients that send one connect request, in the query, the body or the first message (protocol §25).
//! In: requests → out: sockets with that request for a shard; 400 for another one; statuses for refused connects where configured.
//! Uses `upgrade` and `response_stream`, which check everything else. Never: decides about a connect.
//! Changed here: where a connect request is read, and the response to a refused one. What a client receives is made by `fanout`.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, StatusCode},
    response::Response,
    routing::any,
};
use fanwire_fanout::{ConnectRefusal, PendingResponse};
use fanwire_node::{Hello, Uplink};
use fanwire_protocol::{ConnectRequest, Encoding};

use super::{
    cors,
    response_stream::{self, Refusal, StreamEndpoint, connect_parameter, refuse},
    routes::{RealtimeEndpoint, user_of},
    upgrade::ConnectionSetup,
};
use crate::config::{Config, ConnectCodeResponse};
use crate::shard::Transport;

/// The routes that are switched on. `websocket` differs from `realtime` in the settings of its handshakes.
pub(super) fn routes(
    config: &Config,
    realtime: &Arc<RealtimeEndpoint>,
    websocket: Arc<RealtimeEndpoint>,
) -> Router {
    let mut router = Router::new();
    if config.uni_websocket.enabled {
        let serve = any(serve_websocket).with_state(websocket);
        router = router.route(&config.uni_websocket.handler_prefix, serve);
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
            compression: false,
            connect_responses: responses.enabled.then(|| responses.transforms.as_slice().into()),
        });
        let serve = any(response_stream::serve).with_state(endpoint);
        router = router.route(&options.handler_prefix, serve);
    }
    router
}

async fn serve_websocket(
    State(realtime): State<Arc<RealtimeEndpoint>>,
    request: Request,
) -> Response {
    let message = match connect_parameter(&request).map(|text| connect_request(text.into())) {
        None => Vec::new(), // it is the first message of the connection
        Some(Ok(message)) => message,
        Some(Err(refusal)) => return *refusal,
    };
    realtime.endpoint.upgrade(request, |head, _| {
        let hello = Hello {
            encoding: Encoding::Json,
            frame_ping: true,
            transport: Transport::UniWebSocket.name(),
            uplink: Uplink::None,
            user: user_of(&head.headers, &realtime.user_id_header),
        };
        ConnectionSetup { hello: hello.into(), is_binary: false, message }
    })
}

/// Checks the connect request of an HTTP request, which the session reads again.
///
/// # Errors
/// 400.
pub(super) fn connect_request(text: Vec<u8>) -> Result<Vec<u8>, Refusal> {
    match ConnectRequest::read(Encoding::Json, &text) {
        Ok(_) => Ok(text),
        Err(_) => Err(refuse(StatusCode::BAD_REQUEST, "invalid connect request")),
    }
}

/// The response to a request with these `headers` when its connect is decided: this `head`, or a status.
pub(super) fn pending_response(
    head: Vec<u8>,
    headers: &HeaderMap,
    transforms: Arc<[ConnectCodeResponse]>,
) -> PendingResponse {
    let cors = cors::lines(headers);
    Box::new(move |refusal| match refusal {
        None => head,
        Some(refusal) => refused(refusal, &transforms, &cors),
    })
}

fn refused(refusal: ConnectRefusal<'_>, rows: &[ConnectCodeResponse], cors: &str) -> Vec<u8> {
    let ConnectRefusal { code, text } = refusal;
    let (status, body) = match rows.iter().find(|row| row.code == code) {
        None => (StatusCode::INTERNAL_SERVER_ERROR.as_u16(), "Internal Server Error"),
        Some(row) if row.to.body.is_empty() => (row.to.status_code, text),
        Some(row) => (row.to.status_code, row.to.body.as_str()),
    };
    let known = StatusCode::from_u16(status).ok();
    let reason = known.and_then(|status| status.canonical_reason()).unwrap_or_default();
    let start = format!("HTTP/1.1 {status} {reason}\r\nConnection: close\r\n{cors}");
    if matches!(status, 204 | 304) {
        return format!("{start}\r\n").into_bytes(); // these have no body (RFC 9110 §15.3.5, §15.4.5)
    }
    let length = body.len();
    let kind = "Content-Type: text/plain; charset=utf-8";
    format!("{start}{kind}\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}
