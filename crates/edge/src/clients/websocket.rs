//! The endpoint of bidirectional WebSockets: what its query and its subprotocol say about the session (protocol §1).
//! In: the head of a handshake → out: how the session begins.
//! Uses `upgrade`, which checks and answers the handshake.
//! Changed here: options of the query. Limits of the endpoint are in `settings`.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    extract::{Query, Request, State},
    http::{Uri, request},
    response::Response,
};
use fanwire_fanout::NewSession;
use fanwire_node::ConnectionInfo;
use fanwire_protocol::Encoding;
use fanwire_shard::Transport;

use super::{
    endpoint::{ErrorResponse, RealtimeEndpoint},
    upgrade::ConnectionSetup,
};
use crate::accept::plain_request::{PlainEndpoint, PlainOutcome};

/// Supported subprotocols (client protocol §1).
pub(crate) const SUBPROTOCOLS: &[&str] = &[PROTOBUF, Encoding::Json.subprotocol()];
const PROTOBUF: &str = Encoding::Protobuf.subprotocol();

/// Query options of the real-time endpoint (client protocol §1). Unknown ones are ignored; of a repeated one the first counts.
struct ConnectQuery(Vec<(String, String)>);

impl ConnectQuery {
    fn of(uri: &Uri) -> Self {
        Self(Query::try_from_uri(uri).map(|Query(options)| options).unwrap_or_default())
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.0.iter().find(|(given, _)| given == name).is_some_and(|(_, given)| given == value)
    }
}

pub(crate) async fn serve(
    State(realtime): State<Arc<RealtimeEndpoint>>,
    request: Request,
) -> Response {
    realtime.endpoint.upgrade(request, |head, subprotocol| realtime.websocket(head, subprotocol))
}

impl PlainEndpoint for RealtimeEndpoint {
    fn answer(
        &self,
        head: &request::Parts,
        _body: &[u8],
        peer: SocketAddr,
    ) -> Option<PlainOutcome> {
        let setup = |head: &request::Parts, subprotocol| self.websocket(head, subprotocol);
        self.endpoint.answer(head, peer, setup)
    }
}

impl RealtimeEndpoint {
    /// How the session of a WebSocket begins.
    fn websocket(
        &self,
        head: &request::Parts,
        subprotocol: Option<&'static str>,
    ) -> Result<ConnectionSetup<NewSession>, ErrorResponse> {
        let query = ConnectQuery::of(&head.uri);
        let is_binary = match subprotocol {
            Some(chosen) => chosen == PROTOBUF,
            None => query.is("format", "protobuf") || query.is("cf_protocol", "protobuf"),
        };
        let encoding = if is_binary { Encoding::Protobuf } else { Encoding::Json };
        let opening = self.connection_info(&head.headers, encoding, Transport::WebSocket)?;
        let frame_ping = query.is("cf_ws_frame_ping_pong", "true");
        let opening = ConnectionInfo { frame_ping, ..opening };
        Ok(ConnectionSetup { opening: opening.into(), is_binary, message: Vec::new() })
    }
}
