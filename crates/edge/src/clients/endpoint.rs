//! Functions of all endpoints of clients: they read the user, the query and the body of a request, and refuse it.
//! In: heads and bodies of requests → out: their parts, or an HTTP error.
//! Uses axum's types; never opens a connection.
//! Changed here: limits of a body, where the commands of a query are. The checks of a transport are in its module.

use std::{fmt, net::SocketAddr, time::Instant};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::Query,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header, request},
    response::Response,
};
use fanwire_fanout::Realtime;
use fanwire_node::{CommandSource, ConnectionInfo, LastEventId};
use fanwire_protocol::Encoding;
use fanwire_shard::{Application, Transport};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::{cors, refusals::retry_later, upgrade::Endpoint};

/// A response instead of the stream.
pub(crate) type ErrorResponse = Box<Response<String>>;

/// An endpoint of clients of the protocol.
pub(crate) struct RealtimeEndpoint {
    pub(crate) endpoint: Endpoint<Realtime>,
    /// Header in which a trusted proxy passes the user; "" = none.
    pub(crate) user_id_header: String,
    /// Headers of requests that event proxies pass on.
    pub(crate) proxied_headers: Vec<HeaderName>,
}

impl RealtimeEndpoint {
    /// Attributes of the connection that a request with these headers opens.
    ///
    /// # Errors
    /// 400 for a user that is no UTF-8.
    pub(crate) fn connection_info(
        &self,
        headers: &HeaderMap,
        encoding: Encoding,
        transport: Transport,
    ) -> Result<ConnectionInfo, ErrorResponse> {
        let mut listed = Vec::new();
        for name in &self.proxied_headers {
            let value = |value: &HeaderValue| Bytes::copy_from_slice(value.as_bytes());
            let named = headers.get_all(name).iter().map(value);
            listed.extend(named.map(|value| (name.as_str().to_owned(), value)));
        }
        Ok(ConnectionInfo {
            encoding,
            frame_ping: false,
            transport: transport.name(),
            command_source: match transport {
                Transport::WebSocket => CommandSource::Connection,
                transport if transport.is_unidirectional() => CommandSource::None,
                _ => CommandSource::Requests,
            },
            user: user_of(headers, &self.user_id_header)?,
            last_event_id: None,
            headers: listed,
        })
    }
}

impl<A: Application> Endpoint<A> {
    /// # Errors
    /// 403.
    pub(crate) fn check_origin(
        &self,
        headers: &HeaderMap,
        address: Option<SocketAddr>,
    ) -> Result<(), ErrorResponse> {
        let checked = self.admission.check_origin(headers, address, Instant::now());
        checked.map_err(|(status, text)| refuse(status, text))
    }

    pub(crate) fn preflight(
        &self,
        headers: &HeaderMap,
        address: Option<SocketAddr>,
    ) -> ErrorResponse {
        let refused = self.check_origin(headers, address).err();
        refused.unwrap_or_else(|| Box::new(cors::preflight()))
    }
}

/// The user in the trusted header, in UTF-8. `None` if it is empty or repeated, because then a client may have sent one of
/// them.
///
/// # Errors
/// 400 for a value that is no UTF-8: the client would be anonymous.
fn user_of(headers: &HeaderMap, header: &str) -> Result<Option<String>, ErrorResponse> {
    if header.is_empty() {
        return Ok(None);
    }
    let mut values = headers.get_all(header).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return Ok(None) };
    match str::from_utf8(value.as_bytes()) {
        Ok(user) => Ok(Some(user.to_owned()).filter(|user| !user.is_empty())),
        Err(_) => {
            Err(refuse(StatusCode::BAD_REQUEST, format!("the header {header} is not in UTF-8")))
        }
    }
}

/// The commands in the query of an event stream, as `EventSource` sends them, or a connect request.
pub(crate) fn connect_parameter(uri: &Uri) -> Option<String> {
    parameter(uri, |name| name == "cf_connect")
}

/// The last event of a client that comes back (WHATWG HTML §9.2.4), by the header, which an `EventSource` keeps up to date, or by
/// the parameter `lastEventId`, whose case differs between programs.
pub(crate) fn last_event_id(head: &request::Parts) -> Option<LastEventId> {
    match head.headers.get("last-event-id").filter(|id| !id.is_empty()) {
        Some(id) => Some(LastEventId::parse(str::from_utf8(id.as_bytes()).unwrap_or_default())),
        None => parameter(&head.uri, |name| name.eq_ignore_ascii_case("lastEventId"))
            .map(|id| LastEventId::parse(&id)),
    }
}

/// The first of these parameters, unless it is empty.
fn parameter(uri: &Uri, is_it: impl Fn(&str) -> bool) -> Option<String> {
    let query = Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map(|Query(options)| options)
        .unwrap_or_default();
    let value = query.into_iter().find(|(name, _)| is_it(name)).map(|(_, value)| value);
    value.filter(|value| !value.is_empty())
}

/// Reads the body of a request.
pub(crate) async fn read(body: Body, bytes_max: usize) -> Result<Bytes, ErrorResponse> {
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(body_too_long()); // its Content-Length says so
    }
    match Limited::new(body, bytes_max).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(body_too_long()),
        Err(_) => Err(refuse(StatusCode::BAD_REQUEST, "the body ends early")),
    }
}

/// Whether a request has a body in Protobuf.
pub(crate) fn is_octet_stream(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/octet-stream")
}

/// Refuses and closes the connection, whose body may not be read.
pub(crate) fn refuse(status: StatusCode, text: impl fmt::Display) -> ErrorResponse {
    let mut response = Response::new(format!("{text}\n"));
    *response.status_mut() = status;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")),
        (header::CONNECTION, HeaderValue::from_static("close")),
    ];
    response.headers_mut().extend(headers);
    retry_later(&mut response);
    Box::new(response)
}

fn body_too_long() -> ErrorResponse {
    refuse(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long")
}
