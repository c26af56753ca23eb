//! The HTTP side of a server: its listeners, with TLS and the services of each.
//! In: bound listeners, certificates, services → out: connections that are served until the server stops.
//! Uses `edge::listener`, which a takeover that fails may begin again. Never: a route, a configuration beyond the settings of listeners.
//! Changed here: which listener has which TLS and which limits. `bind` has their addresses, `http::routes` the services.

use std::io;
use std::sync::Arc;

use fanwire_config::Config;
use fanwire_edge::{
    ListenerSettings, PlainRequests, Service, TlsAcceptor, TrustedProxies, UniGrpcService,
    descriptors, listener,
};
use fanwire_tls::{HandshakeCounts, ListenersTls, ServerTls};
use tokio::{sync::watch, task::JoinHandle};

use super::bind::{Bound, Listeners};
use crate::{
    grpc::GrpcService,
    http::{root_service::RootService, routes},
};

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

/// The listeners of a server with their settings and services.
pub(super) struct HttpSide {
    listeners: Listeners,
    acceptors: Acceptors,
    services: HttpServices,
    http2_cleartext: bool,
    trusted_proxies: TrustedProxies,
    /// The limit of open files.
    descriptors: usize,
}

/// The services of the listeners.
pub(super) struct HttpServices {
    public: Arc<RootService>,
    plain_requests: Arc<PlainRequests>,
    internal: Option<Arc<RootService>>,
    grpc_api: Option<Arc<GrpcService>>,
    uni_grpc: Option<Arc<UniGrpcService>>,
}

/// The time in which the listeners are served. Dropping it ends it.
pub(super) struct Serving {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl HttpServices {
    pub(super) fn new(services: routes::Services, grpc_api: Option<GrpcService>) -> Self {
        let routes::Services { public, plain_requests, internal, uni_grpc, .. } = services;
        Self {
            public: Arc::new(public),
            plain_requests,
            internal: internal.map(Arc::new),
            grpc_api: grpc_api.map(Arc::new),
            uni_grpc: uni_grpc.map(Arc::new),
        }
    }
}

impl Serving {
    /// Accepts no more, and waits for requests in flight.
    pub(super) async fn end(&mut self) {
        let _ended = self.stop.send(true);
        let _ = (&mut self.task).await;
    }
}

impl HttpSide {
    pub(super) fn new(
        config: &Config,
        listeners: Listeners,
        acceptors: Acceptors,
        services: HttpServices,
        descriptors: usize,
    ) -> Self {
        Self {
            listeners,
            acceptors,
            services,
            http2_cleartext: config.http_server.h2c_external,
            trusted_proxies: routes::trusted_proxies(config),
            descriptors,
        }
    }

    pub(super) fn listeners(&self) -> &Listeners {
        &self.listeners
    }

    /// Serves all listeners.
    pub(super) fn begin(self: &Arc<Self>) -> Serving {
        let (stop, stopped) = watch::channel(false);
        let side = Arc::clone(self);
        let task = tokio::spawn(async move {
            if let Err(error) = side.serve(stopped).await {
                tracing::error!(%error, "cannot accept connections");
            }
        });
        Serving { stop, task }
    }

    async fn serve(&self, stopped: watch::Receiver<bool>) -> io::Result<()> {
        let Acceptors { clients, internal: internal_tls, grpc_api, uni_grpc } = &self.acceptors;
        let services = &self.services;
        let internal = self.listeners.internal.as_ref().zip(services.internal.clone());
        let grpc = self.listeners.grpc_api.as_ref().zip(services.grpc_api.clone());
        let uni = self.listeners.uni_grpc.as_ref().zip(services.uni_grpc.clone());
        let others = [internal.is_some(), grpc.is_some(), uni.is_some()].map(usize::from);
        let slots = descriptors::for_http(self.descriptors, 1 + others.iter().sum::<usize>());
        let without_proxy_protocol =
            TrustedProxies { proxy_protocol: false, ..self.trusted_proxies.clone() };
        let of_grpc = |tls: &Option<TlsAcceptor>| ListenerSettings {
            tls: tls.clone(),
            http2_cleartext: true,
            has_small_messages: true,
            trusted_proxies: without_proxy_protocol.clone(),
            slots,
            ..ListenerSettings::default()
        };
        let grpc = serve_if_configured(grpc, of_grpc(grpc_api), stopped.clone());
        let uni = serve_if_configured(uni, of_grpc(uni_grpc), stopped.clone());
        let settings = ListenerSettings {
            tls: clients.clone(),
            plain_requests: Some(services.plain_requests.clone()),
            http2_cleartext: self.http2_cleartext,
            has_small_messages: false,
            trusted_proxies: self.trusted_proxies.clone(),
            slots,
        };
        let public = self.listeners.public.listener()?;
        let to_clients = services.public.clone();
        let clients = async {
            listener::serve(public, settings, to_clients, stopped.clone()).await;
            Ok(())
        };
        let of_internal = ListenerSettings {
            tls: internal_tls.clone(),
            trusted_proxies: without_proxy_protocol,
            slots,
            ..ListenerSettings::default()
        };
        let internal = serve_if_configured(internal, of_internal, stopped.clone());
        tokio::try_join!(clients, internal, grpc, uni).map(drop)
    }
}

async fn serve_if_configured(
    bound: Option<(&Bound, impl Service)>,
    settings: ListenerSettings,
    stopped: watch::Receiver<bool>,
) -> io::Result<()> {
    let Some((bound, service)) = bound else { return Ok(()) };
    listener::serve(bound.listener()?, settings, service, stopped).await;
    Ok(())
}
