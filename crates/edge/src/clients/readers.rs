//! Readers over HTTP, which have no connection on a shard: what is known of them, and where a response that lasts counts.
//! In: heads of requests → out: clients as hooks know them; places among the clients.
//! Uses `admission` and `exchange`. Never: a channel, a response.
//! Changed here: what a reader counts as. Who may read is decided by the node.

use std::{any::Any, sync::Arc, time::Instant};

use axum::http::{Extensions, HeaderMap};
use fanwire_node::ConnectionInfo;
use fanwire_protocol::Encoding;
use fanwire_shard::Transport;

use super::endpoint::RealtimeEndpoint;
use crate::accept::{exchange::Exchange, forwarded::address_of};

/// The readers of a server.
pub struct HttpReaders(pub(crate) Arc<RealtimeEndpoint>);

impl HttpReaders {
    /// The client of a request, with a transport of this name.
    ///
    /// # Errors
    /// A text for the client.
    pub fn client(
        &self,
        headers: &HeaderMap,
        transport: &'static str,
    ) -> Result<ConnectionInfo, String> {
        let info = self
            .0
            .connection_info(headers, Encoding::Json, Transport::UniHttpStream)
            .map_err(|refusal| refusal.into_body())?;
        Ok(ConnectionInfo { transport, ..info })
    }

    /// Begins a response that lasts, to a request with these extensions: until the result is dropped it counts as a client. In
    /// HTTP/1.1 the end of its peer ends it; a stream of HTTP/2 ends by itself. `None` beyond the limit of connections.
    pub fn begin_long_response(
        &self,
        extensions: &Extensions,
    ) -> Option<Box<dyn Any + Send + Sync>> {
        let endpoint = &self.0.endpoint;
        let permit = |max| endpoint.shards.permit(max);
        let address = address_of(extensions);
        let counted = endpoint.admission.count(address, Instant::now(), permit).ok()?;
        let exchange = extensions.get::<Arc<Exchange>>().map(Exchange::begin_long);
        Some(Box::new((counted, exchange)))
    }
}
