//! The way in: a socket becomes a request, and a request becomes a connection of a shard.
//! In: listeners, options of endpoints, the shards → out: sockets on the shards; other requests for the service of the listener.
//! Uses hyper, axum, the shards and the node. Never: a method of the server API, a metric, a channel.
//! Changed here: the interface of the crate. `accept` has what happens before a request, `clients` the endpoints of clients.
#![forbid(unsafe_code)]

mod accept;
mod back_pressure;
mod clients;
pub mod descriptors;
mod options;

pub use accept::{
    bodies::TrackedBody,
    forwarded::TrustedProxies,
    host,
    listener::{self, ListenerSettings, Service},
    networks::Networks,
    plain_request::{PlainEndpoint, PlainOutcome, PlainRequests, keeps_connection},
    tls_accept::TlsAcceptor,
};
pub use back_pressure::{REQUEST_TIMEOUT, wait_for_shards};
pub use clients::{
    admission::{Admission, AdmissionLimits, SharedLimits, is_own_origin},
    origin::AllowedOrigins,
    overload::{LoadLimit, Overload},
    rate::ConnectionRate,
    readers::HttpReaders,
    refusals::Refusals,
    routes::{ClientParts, ClientRoutes},
    settings,
    uni_grpc::{UniGrpcService, is_grpc},
    upgrade::{ConnectionSetup, Endpoint, Setup},
};
pub use options::{
    ClientEndpoints, ConnectCodeResponse, ConnectResponseOptions, EmulationOptions,
    GrpcListenerOptions, ShedOptions, StatusAndBody, StreamOptions, UniStreamOptions,
    UniWebsocketOptions, WebsocketEndpointOptions,
};
