//! Unidirectional transports: clients that send one connect request, in the query, the body or the first message (protocol §25).
//! In: requests → out: sockets with that request for a shard; 400 for another one; statuses for refused connects where configured.
//! Uses `upgrade` and `response_stream`, which check everything else. Never: decides about a connect.
//! Changed here: where a connect request is read, and the response to a refused one. What a client receives is made by `fanout`.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, Uri, request},
    response::Response,
};
use fanwire_fanout::{ConnectError, MakeResponse, NewSession, PendingResponse};
use fanwire_node::ConnectionInfo;
use fanwire_protocol::{ConnectRequest, Encoding};

use super::{
    cors,
    endpoint::{ErrorResponse, RealtimeEndpoint, connect_parameter, last_event_id, refuse},
    upgrade::ConnectionSetup,
};
use crate::accept::{
    date,
    plain_request::{PlainEndpoint, PlainOutcome},
};
use crate::options::ConnectCodeResponse;
use fanwire_shard::{Coding, Transport};

/// The endpoint of unidirectional WebSockets.
pub(crate) struct UniWebSocketEndpoint {
    pub(crate) realtime: Arc<RealtimeEndpoint>,
}

pub(crate) async fn serve_websocket(
    State(endpoint): State<Arc<UniWebSocketEndpoint>>,
    request: Request,
) -> Response {
    match first_message(request.uri()) {
        Ok(message) => {
            let upgrade = &endpoint.realtime.endpoint;
            upgrade.upgrade(request, |head, _| endpoint.setup(head, message))
        }
        Err(response) => response.map(Body::from),
    }
}

impl PlainEndpoint for UniWebSocketEndpoint {
    fn answer(
        &self,
        head: &request::Parts,
        _body: &[u8],
        peer: SocketAddr,
    ) -> Option<PlainOutcome> {
        match first_message(&head.uri) {
            Ok(message) => {
                let setup = |head: &request::Parts, _| self.setup(head, message);
                self.realtime.endpoint.answer(head, peer, setup)
            }
            Err(response) => Some(PlainOutcome::Refuse(*response)),
        }
    }
}

impl UniWebSocketEndpoint {
    fn setup(
        &self,
        head: &request::Parts,
        message: Vec<u8>,
    ) -> Result<ConnectionSetup<NewSession>, ErrorResponse> {
        let transport = Transport::UniWebSocket;
        let opening = self.realtime.connection_info(&head.headers, Encoding::Json, transport)?;
        let last_event_id = last_event_id(head);
        let opening = ConnectionInfo { frame_ping: true, last_event_id, ..opening };
        Ok(ConnectionSetup { opening: opening.into(), is_binary: false, message })
    }
}

/// The connect request in a query, empty if it is the first message of the connection.
fn first_message(uri: &Uri) -> Result<Vec<u8>, ErrorResponse> {
    connect_parameter(uri).map_or_else(|| Ok(Vec::new()), |text| connect_request(text.into()))
}

/// Checks the connect request of an HTTP request, which the session reads again.
///
/// # Errors
/// 400.
pub(crate) fn connect_request(text: Vec<u8>) -> Result<Vec<u8>, ErrorResponse> {
    match ConnectRequest::read(Encoding::Json, &text) {
        Ok(_) => Ok(text),
        Err(_) => Err(refuse(StatusCode::BAD_REQUEST, "invalid connect request")),
    }
}

/// The response to a request with these `headers` when its connect is decided: this `head`, or a status.
pub(crate) fn pending_response(
    head: Vec<u8>,
    coding: Option<Coding>,
    headers: &HeaderMap,
    transforms: Arc<[ConnectCodeResponse]>,
) -> PendingResponse {
    let cors = cors::lines(headers);
    let make: MakeResponse = Box::new(move |error| match error {
        None => head,
        Some(error) => refused(error, &transforms, &cors),
    });
    PendingResponse { coding, make }
}

fn refused(error: ConnectError<'_>, rows: &[ConnectCodeResponse], cors: &str) -> Vec<u8> {
    let ConnectError { code, text } = error;
    let (status, body) = match rows.iter().find(|row| row.code == code) {
        None => (StatusCode::INTERNAL_SERVER_ERROR.as_u16(), "Internal Server Error"),
        Some(row) if row.to.body.is_empty() => (row.to.status_code, text),
        Some(row) => (row.to.status_code, row.to.body.as_str()),
    };
    let known = StatusCode::from_u16(status).ok();
    let reason = known.and_then(|status| status.canonical_reason()).unwrap_or_default();
    let date = date::line();
    let start = format!("HTTP/1.1 {status} {reason}\r\n{date}Connection: close\r\n{cors}");
    if matches!(status, 204 | 304) {
        return format!("{start}\r\n").into_bytes(); // these have no body (RFC 9110 §15.3.5, §15.4.5)
    }
    let length = body.len();
    let kind = "Content-Type: text/plain; charset=utf-8";
    format!("{start}{kind}\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}
