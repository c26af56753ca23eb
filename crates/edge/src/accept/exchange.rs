//! The state of the request on one HTTP connection, shared between hyper's service and the socket wrapper (RFC 9112 §9.3).
//! In: requests, what became of their bodies, statuses → out: whether a request is in flight, late, or not read completely; a refused
//! upgrade; what takes the socket over.
//! Uses atomics, and a lock that only the task of the connection takes; never a socket, never time.
//! Changed here: when a request counts as read. `timeout_stream` and `listener` act on it.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use axum::{
    body::HttpBody,
    http::{Request, StatusCode},
};
use hyper::upgrade::OnUpgrade;
use parking_lot::Mutex;

use super::{slots::ConnectionSlot, socket::ReleasedSocket};

/// The state of the request on one HTTP connection.
#[derive(Default)]
pub(crate) struct Exchange {
    is_in_flight: AtomicBool,
    is_unread: AtomicBool,
    is_in_head: AtomicBool,
    is_late: AtomicBool,
    is_long: AtomicBool,
    /// That of the connection.
    slot: OnceLock<Arc<ConnectionSlot>>,
    refused: Mutex<Option<OnUpgrade>>,
    handover: Mutex<Option<SocketHandover>>,
}

/// Takes the socket of a connection out of HTTP, in the middle of a request whose response it sends itself.
pub(crate) type SocketHandover = Box<dyn FnOnce(ReleasedSocket) + Send>;

/// Marks a response as one that lasts, until it is dropped: its connection has no slot, and ends when its peer has closed its
/// sending side.
pub(crate) struct LongExchange(Arc<Exchange>);

/// Marks a request as in flight until it is dropped, at the end of its response. Then no time limit of the connection applies to
/// reads; the body has its own.
pub(crate) struct InFlightRequest {
    exchange: Arc<Exchange>,
    upgrade: Option<OnUpgrade>,
}

impl Exchange {
    /// That of a connection with this slot.
    pub(crate) fn with_slot(slot: Arc<ConnectionSlot>) -> Arc<Self> {
        Arc::new(Self { slot: slot.into(), ..Self::default() })
    }

    /// The response to the request in flight lasts.
    pub(crate) fn begin_long(self: &Arc<Self>) -> LongExchange {
        self.is_long.store(true, Relaxed);
        if let Some(slot) = self.slot.get() {
            slot.give_back();
        }
        LongExchange(Arc::clone(self))
    }

    /// Whether the end of the peer ends the connection.
    pub(crate) fn is_long(&self) -> bool {
        self.is_long.load(Relaxed)
    }

    /// Must be called when bytes arrive and no request is in flight. They begin a head, unless the previous request was
    /// not read completely.
    pub(crate) fn begin_head(&self) {
        // After an early response the bytes are the rest of its request.
        if !self.is_unread.swap(true, Relaxed) {
            self.is_in_head.store(true, Relaxed);
        }
    }

    /// Must be called with each request: its head was read, its body was not.
    pub(crate) fn begin_request<B: HttpBody>(
        self: &Arc<Self>,
        request: &mut Request<B>,
    ) -> InFlightRequest {
        self.is_in_flight.store(true, Relaxed);
        self.is_in_head.store(false, Relaxed);
        self.is_unread.store(!request.body().is_end_stream(), Relaxed);
        let upgrade = request.extensions().get::<OnUpgrade>().cloned();
        request.extensions_mut().insert(Arc::clone(self));
        InFlightRequest { exchange: Arc::clone(self), upgrade }
    }

    /// The upgrade future of the last upgrade request that got another status than 101.
    pub(crate) fn refused_upgrade(&self) -> Option<OnUpgrade> {
        self.refused.lock().take()
    }

    /// The body of the request was read to its end.
    pub(crate) fn end_body(&self) {
        self.is_unread.store(false, Relaxed);
    }

    /// The body of the request did not arrive in time. The connection closes after the response and does not wait for the rest.
    pub(crate) fn be_late(&self) {
        self.is_late.store(true, Relaxed);
        self.end_body();
    }

    pub(crate) fn is_late(&self) -> bool {
        self.is_late.load(Relaxed)
    }

    /// Gives the socket of this connection to `handover` as soon as the service waits.
    pub(crate) fn hand_over(&self, handover: SocketHandover) {
        *self.handover.lock() = Some(handover);
    }

    pub(crate) fn has_taker(&self) -> bool {
        self.handover.lock().is_some()
    }

    pub(crate) fn take_handover(&self) -> Option<SocketHandover> {
        self.handover.lock().take()
    }

    /// Whether a head has begun and is not complete.
    pub(crate) fn is_in_head(&self) -> bool {
        self.is_in_head.load(Relaxed)
    }

    pub(crate) fn is_in_flight(&self) -> bool {
        self.is_in_flight.load(Relaxed)
    }

    /// Whether a part of the last request was not read; the peer may still be sending it.
    pub(crate) fn is_unread(&self) -> bool {
        self.is_unread.load(Relaxed)
    }
}

impl InFlightRequest {
    /// Must be called with the status of the response.
    pub(crate) fn respond(&mut self, status: StatusCode) {
        if let Some(upgrade) = self.upgrade.take_if(|_| status != StatusCode::SWITCHING_PROTOCOLS) {
            *self.exchange.refused.lock() = Some(upgrade);
        }
    }
}

impl Drop for LongExchange {
    fn drop(&mut self) {
        self.0.is_long.store(false, Relaxed);
        if let Some(slot) = self.0.slot.get() {
            slot.take_again();
        }
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.exchange.is_in_flight.store(false, Relaxed);
    }
}
