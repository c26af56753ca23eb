//! The HTTP side of a server: its listeners, with TLS and the services of each.
//! In: bound listeners, certificates, services → out: connections that are served until the server stops.
//! Uses `edge::listener`. Never: a route, a configuration beyond the settings of listeners.
//! Changed here: which listener has which TLS and which limits. `bind` has their addresses, `http::routes` the services.

use std::sync::Arc;

use fanwire_config::Config;
use fanwire_edge::{ListenerSettings, Service, TlsAcceptor, TrustedProxies, descriptors, listener};
use fanwire_tls::{HandshakeCounts, ListenersTls, ServerTls};
use tokio::sync::watch;

use super::bind::{Bound, Listeners};
use crate::{grpc::GrpcService, http::routes};

/// The parts that perform the handshakes of the listeners; `None` for one without TLS.
pub(super) struct Acceptors {
    clients: Option<TlsAcceptor>,
    internal: Option<TlsAcceptor>,
    grpc_api: Option<TlsAcceptor>,
    uni_grpc: Option<TlsAcceptor>,
}

impl Acceptors {
    pub(super) fn new(tls: &ListenersTls, counts: &Arc<HandshakeCounts>) -> Self {
        let acceptor = |tls: &Option<Arc<ServerTls>>| {
            tls.clone().map(|tls| TlsAcceptor::new(tls, Arc::clone(counts)))
        };
        let [grpc_api, uni_grpc] = tls.grpc.each_ref().map(acceptor);
        let clients = acceptor(&tls.clients);
        let internal = acceptor(&tls.internal);
        Self { clients, internal, grpc_api, uni_grpc }
    }
}

/// The listeners of a server with their settings.
pub(super) struct HttpSide {
    listeners: Listeners,
    acceptors: Acceptors,
    http2_cleartext: bool,
    trusted_proxies: TrustedProxies,
    /// The limit of open files.
    descriptors: usize,
}

impl HttpSide {
    pub(super) fn new(
        config: &Config,
        listeners: Listeners,
        acceptors: Acceptors,
        descriptors: usize,
    ) -> Self {
        Self {
            listeners,
            acceptors,
            http2_cleartext: config.http_server.h2c_external,
            trusted_proxies: routes::trusted_proxies(config),
            descriptors,
        }
    }

    /// Serves all listeners until `stopped` is true.
    pub(super) async fn serve(
        self,
        services: routes::Services,
        grpc_service: Option<GrpcService>,
        stopped: watch::Receiver<bool>,
    ) {
        let Acceptors { clients, internal: internal_tls, grpc_api, uni_grpc } = self.acceptors;
        let internal = self.listeners.internal.zip(services.internal);
        let grpc = self.listeners.grpc_api.zip(grpc_service);
        let uni = self.listeners.uni_grpc.zip(services.uni_grpc);
        let others = [internal.is_some(), grpc.is_some(), uni.is_some()].map(usize::from);
        let slots = descriptors::for_http(self.descriptors, 1 + others.iter().sum::<usize>());
        let grpc = serve_grpc(grpc, grpc_api, slots, stopped.clone());
        let uni = serve_grpc(uni, uni_grpc, slots, stopped.clone());
        let settings = ListenerSettings {
            tls: clients,
            plain_requests: Some(services.plain_requests),
            http2_cleartext: self.http2_cleartext,
            has_small_messages: false,
            trusted_proxies: self.trusted_proxies.clone(),
            slots,
        };
        let public = self.listeners.public.listener;
        let clients = listener::serve(public, settings, services.public, stopped.clone());
        let trusted_proxies = TrustedProxies { proxy_protocol: false, ..self.trusted_proxies };
        let internal = async {
            let Some((Bound { listener, .. }, root_service)) = internal else { return };
            let plain = ListenerSettings::default();
            let settings = ListenerSettings { tls: internal_tls, trusted_proxies, slots, ..plain };
            listener::serve(listener, settings, root_service, stopped).await;
        };
        tokio::join!(clients, internal, grpc, uni);
    }
}

/// Serves a listener for gRPC, if it is configured: HTTP/2, with TLS or without.
async fn serve_grpc(
    bound: Option<(Bound, impl Service)>,
    tls: Option<TlsAcceptor>,
    slots: usize,
    stopped: watch::Receiver<bool>,
) {
    let Some((Bound { listener, .. }, service)) = bound else { return };
    let settings = ListenerSettings {
        tls,
        http2_cleartext: true,
        has_small_messages: true,
        slots,
        ..ListenerSettings::default()
    };
    listener::serve(listener, settings, service, stopped).await;
}
