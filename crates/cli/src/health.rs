//! `fanwire health`: asks a running server whether it is ready, for containers without a shell and for probes.
//! In: a configuration, or an address → out: the answer on stdout; an error when it is not 200.
//! Uses the HTTP client of `tls`. Never: the API, its key.
//! Which address a server has is in `local`; what makes it unready is decided in the library.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use bytes::Bytes;
use fanwire_tls::{HttpsClient, RequestLimits};
use http::{Request, StatusCode};
use http_body_util::Empty;
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::time::timeout;

use crate::arguments::{Health, Probe};
use crate::document::print;
use crate::local::{LocalServer, with_remedy};

pub(crate) fn run(arguments: &Health) -> Result<()> {
    let local = LocalServer::load(arguments.config.as_deref())?;
    let is_live = matches!(arguments.probe, Some(Probe::Live));
    if is_live && arguments.url.is_none() && local.has_unreachable_health() {
        return accepts_connections(&local.internal_address());
    }
    let mut url = match &arguments.url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => local.health_url()?,
    };
    url.push_str(match arguments.probe {
        None => "",
        Some(Probe::Ready) => "/ready",
        Some(Probe::Live) => "/live",
    });
    let tls = local.tls(&arguments.trust, arguments.url.as_ref(), true)?;
    let client =
        HttpsClient::new(tls, RequestLimits { timeout: TIMEOUT, body_bytes_max: BODY_BYTES_MAX });
    let request = Request::get(&url)
        .body(Empty::<Bytes>::new())
        .map_err(|error| anyhow!("--url is {url:?}: {error}"))?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime
        .block_on(client.send(request))
        .map_err(|error| with_remedy(anyhow!("{url}: {error}")))?;
    let text = String::from_utf8_lossy(answer.body());
    match answer.status() {
        StatusCode::OK => print(&format!("{}\n", text.trim_end())),
        status => bail!("{url} answers {status}: {}", text.trim_end()),
    }
}

/// All that `live` can find out where no program of this machine gets an answer of the health endpoint.
fn accepts_connections(address: &str) -> Result<()> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let connect = async { timeout(TIMEOUT, TcpStream::connect(address)).await };
    runtime.block_on(connect)?.with_context(|| format!("{address} accepts no connection"))?;
    print(&format!("{address} accepts connections\n"))
}

/// Probes of containers give up after a second or some.
const TIMEOUT: Duration = Duration::from_secs(5);
const BODY_BYTES_MAX: usize = 64 << 10;
