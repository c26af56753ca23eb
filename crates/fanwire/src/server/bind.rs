//! The listeners of a server, bound.
//! In: addresses and ports of the configuration, or a listener of the program → out: bound listeners with their addresses.
//! Uses `edge::listener`. Never: accepts a connection.
//! Changed here: which address a listener has. What it serves is decided in `server`.

use std::{
    io,
    net::{SocketAddr, TcpListener as StdListener},
};

use fanwire_config::Config;
use fanwire_edge::{GrpcListenerOptions, listener};
use fanwire_tls::{AcmeError, AutocertOptions};
use tokio::net::TcpListener;

use crate::error::StartError;
use crate::takeover::InheritedListeners;

/// A nonblocking listener with its address.
pub(super) struct Bound {
    pub(super) listener: StdListener,
    pub(super) address: SocketAddr,
}

/// The listeners of a server.
pub(super) struct Listeners {
    pub(super) public: Bound,
    /// Where it is not the one for clients.
    pub(super) internal: Option<Bound>,
    pub(super) grpc_api: Option<Bound>,
    pub(super) uni_grpc: Option<Bound>,
}

impl Listeners {
    /// Binds those that are configured, except those that another program has bound.
    pub(super) async fn bind(
        config: &Config,
        listener: Option<StdListener>,
        mut inherited: InheritedListeners,
    ) -> Result<Self, StartError> {
        let inherited = &mut inherited;
        let (public, internal) = bind_http(config, listener, inherited).await?;
        let grpc_api =
            bind_grpc(GRPC_API, "grpc_api.address", &config.grpc_api.listener(), inherited).await?;
        let uni_grpc = bind_grpc(UNI_GRPC, "uni_grpc.address", &config.uni_grpc, inherited).await?;
        Ok(Self { public, internal, grpc_api, uni_grpc })
    }

    /// Those that are bound, by the names under which another program inherits them.
    pub(super) fn named(&self) -> Vec<(&'static str, &StdListener)> {
        let Self { public, internal, grpc_api, uni_grpc } = self;
        let optional = [(INTERNAL, internal), (GRPC_API, grpc_api), (UNI_GRPC, uni_grpc)];
        let others = optional.into_iter().filter_map(|(name, bound)| Some((name, bound.as_ref()?)));
        let all = std::iter::once((PUBLIC, public)).chain(others);
        all.map(|(name, bound)| (name, &bound.listener)).collect()
    }
}

async fn bind_grpc(
    keys: &'static str,
    key: &'static str,
    options: &GrpcListenerOptions,
    inherited: &mut InheritedListeners,
) -> Result<Option<Bound>, StartError> {
    if !options.enabled {
        return Ok(None);
    }
    let address = resolve(key, &options.address, options.port).await?;
    Bound::at(keys, address, inherited).map(Some)
}

async fn bind_http(
    config: &Config,
    listener: Option<StdListener>,
    inherited: &mut InheritedListeners,
) -> Result<(Bound, Option<Bound>), StartError> {
    let options = &config.http_server;
    let public = match listener {
        Some(listener) => Bound::of(listener).map_err(StartError::Listener)?,
        None => {
            let address = resolve("http_server.address", &options.address, options.port).await?;
            Bound::at(PUBLIC, address, inherited)?
        }
    };
    if !options.is_split() {
        return Ok((public, None));
    }
    let (key, value) = match options.internal_address.as_str() {
        "" => ("http_server.address", &options.address),
        _ => ("http_server.internal_address", &options.internal_address),
    };
    let port = options.internal_port.parse().unwrap_or(public.address.port());
    let internal = Bound::at(INTERNAL, resolve(key, value, port).await?, inherited)?;
    Ok((public, Some(internal)))
}

impl Bound {
    /// The listener whose keys begin with `keys`, which is also its name for another program.
    fn at(
        keys: &'static str,
        address: SocketAddr,
        inherited: &mut InheritedListeners,
    ) -> Result<Self, StartError> {
        let failed = |source| StartError::Bind { keys, address, source };
        let listener = match inherited.take(keys, address) {
            Some(listener) => listener,
            None => listener::bind(address).and_then(TcpListener::into_std).map_err(failed)?,
        };
        Self::of(listener).map_err(failed)
    }

    /// The listener for one time of serving.
    pub(super) fn listener(&self) -> io::Result<TcpListener> {
        TcpListener::from_std(self.listener.try_clone()?)
    }

    fn of(listener: StdListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, address })
    }
}

const PUBLIC: &str = "http_server.";
const INTERNAL: &str = "http_server.internal_";
const GRPC_API: &str = "grpc_api.";
const UNI_GRPC: &str = "uni_grpc.";

/// The listener for challenges http-01, if it is configured.
pub(super) async fn for_challenges(
    options: &AutocertOptions,
) -> Result<Option<TcpListener>, AcmeError> {
    if !options.http {
        return Ok(None);
    }
    let failed = |error: io::Error| {
        let address = &options.http_addr;
        let remedy = "use an address of this machine and a port you may bind";
        AcmeError {
            key: "http_addr",
            fault: format!("cannot listen on {address:?} ({error}): {remedy}"),
        }
    };
    let invalid = || failed(io::ErrorKind::InvalidInput.into());
    let (host, port) = options.http_address().ok_or_else(invalid)?;
    let address = match host {
        "" => Some(SocketAddr::new(listener::any_address(), port)),
        host => tokio::net::lookup_host((host, port)).await.map_err(failed)?.next(),
    };
    listener::bind(address.ok_or_else(invalid)?).map(Some).map_err(failed)
}

async fn resolve(key: &'static str, value: &str, port: u16) -> Result<SocketAddr, StartError> {
    if value.is_empty() {
        return Ok(SocketAddr::new(listener::any_address(), port));
    }
    let failed = |source| StartError::Address { key, value: value.to_owned(), source };
    let mut addresses = tokio::net::lookup_host((value, port)).await.map_err(failed)?;
    addresses.next().ok_or_else(|| failed(io::ErrorKind::NotFound.into()))
}
