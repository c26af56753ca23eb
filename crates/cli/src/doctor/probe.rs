//! Probes of `fanwire doctor`: opens the transports of a server as clients do, and measures.
//! In: an address and options → out: observations, or why nothing could be observed.
//! Uses the HTTP client of `tls`. Never: a judgement of what it sees.
//! Changed here: a step of the visit; what a step's result means is in `rules`.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use fanwire_load::generator::handshake;
use fanwire_tls::{Fields, HttpsClient, RequestError, RequestLimits, Tls, TlsOptions};
use http::{HeaderMap, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::observation::{
    Certificate, End, Observations, Opened, Reply, Response, SeenAddress, TransportResult,
};
use super::rules::FORGED;
use super::stream::MessageStream;
use crate::api_client::ApiClient;
use crate::arguments::Doctor;

/// A visit to a server.
struct Probe<'a> {
    options: &'a Doctor,
    /// Scheme, host, port and prefix, without a slash at the end.
    base: String,
    client: HttpsClient,
    api: Option<ApiClient>,
    local: IpAddr,
    of_host: IpAddr,
}

/// Visits the server.
///
/// # Errors
/// No connection, or TLS at one end only.
pub(crate) async fn observe(options: &Doctor) -> Result<Observations> {
    let base = base(&options.address)?;
    let uri: Uri = base.parse().with_context(|| format!("{base} is not an address"))?;
    let host = uri.host().unwrap_or_default();
    let is_https = uri.scheme_str() == Some("https");
    let host = host.trim_matches(['[', ']']);
    let port = uri.port_u16().unwrap_or(if is_https { 443 } else { 80 });
    let socket = connect(host, port).await?;
    let local = socket.local_addr()?.ip();
    let of_host = socket.peer_addr()?.ip();
    let trust = TlsOptions { server_ca_pem: options.ca.clone().unwrap_or_default(), ..enabled() };
    let tls = || Tls::new(&trust).map_err(|error| anyhow!("--ca: {}, expected PEM", error.fault));
    let any = || Tls::new(&TlsOptions { insecure_skip_verify: true, ..enabled() });
    let certificate = if is_https {
        Some(certificate(&tls()?, &any()?, host, port, socket).await?)
    } else {
        drop(socket); // some servers serve one connection at a time
        None
    };
    // A wrong certificate is one fault; the others are looked for all the same.
    let is_refused = certificate.as_ref().is_some_and(|one| !one.fault.is_empty());
    let tls = if is_refused { any()? } else { tls()? };
    let limits = RequestLimits { timeout: PATIENCE, body_bytes_max: BODY_BYTES_MAX };
    let api = options.api_server().map(|server| ApiClient::new(&server)).transpose()?;
    let client = HttpsClient::new(tls, limits);
    let probe = Probe { options, base, client, api, local, of_host };
    let ((websocket, address, ahead), http_stream, sse) =
        tokio::join!(probe.websocket(), probe.http_stream(), probe.sse());
    let is_open = matches!(websocket, TransportResult::Opened(_));
    if !is_open && !is_https && speaks_tls(&any()?, host, port).await {
        bail!("{host}:{port} speaks TLS: use https://");
    }
    let response = probe.upgrade(true, None).await.ok();
    let offered = response.as_ref().map(http::Response::headers);
    let origin = match &options.origin {
        Some(origin) => probe
            .upgrade(false, Some(origin))
            .await
            .ok()
            .map(|answer| (origin.clone(), answer.status().as_u16())),
        None => None,
    };
    Ok(Observations {
        certificate,
        clock_ahead: ahead.or_else(|| clock_ahead(offered?)),
        origin,
        websocket,
        http_stream,
        sse,
        deflate: response.as_ref().filter(|answer| is_upgraded(answer)).map(|answer| {
            let extensions = text(answer.headers(), header::SEC_WEBSOCKET_EXTENSIONS.as_str());
            extensions.contains("permessage-deflate")
        }),
        address,
    })
}

/// Whether a WebSocket was opened; the error page of a busy proxy says nothing about extensions.
fn is_upgraded(answer: &http::Response<Incoming>) -> bool {
    answer.status() == StatusCode::SWITCHING_PROTOCOLS
}

impl Probe<'_> {
    /// A request for a WebSocket; it carries an address that the server must not believe.
    async fn upgrade(
        &self,
        compression: bool,
        origin: Option<&str>,
    ) -> Result<http::Response<Incoming>, String> {
        let request = Request::get(format!("{}/connection/websocket", self.base))
            .header(header::CONNECTION, "Upgrade")
            .header(header::UPGRADE, "websocket")
            .header(header::SEC_WEBSOCKET_VERSION, "13")
            .header(header::SEC_WEBSOCKET_KEY, handshake::KEY)
            .header("X-Forwarded-For", FORGED.to_string());
        let request = match origin {
            Some(origin) => request.header(header::ORIGIN, origin),
            None => request,
        };
        let request = if compression {
            request.header(header::SEC_WEBSOCKET_EXTENSIONS, "permessage-deflate")
        } else {
            request
        };
        self.send(request, String::new()).await
    }

    /// The WebSocket, the address that the server sees, and the clock of the response.
    async fn websocket(&self) -> (TransportResult, Option<SeenAddress>, Option<i64>) {
        let began = Instant::now();
        let response = match self.upgrade(false, None).await {
            Ok(response) => response,
            Err(why) => return (TransportResult::Failed(why), None, None),
        };
        let ahead = clock_ahead(response.headers());
        let is_right = text(response.headers(), "sec-websocket-accept") == handshake::ACCEPT;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS || !is_right {
            return (TransportResult::Refused(refusal(response).await), None, ahead);
        }
        let mut stream = match hyper::upgrade::on(response).await {
            Ok(upgraded) => MessageStream::of_websocket(upgraded),
            Err(error) => return (TransportResult::Failed(error.to_string()), None, ahead),
        };
        stream.send(&self.connect()).await;
        let (opened, address) = self.watch(stream, began).await;
        (TransportResult::Opened(opened), address, ahead)
    }

    async fn http_stream(&self) -> TransportResult {
        let request = Request::post(format!("{}/connection/http_stream", self.base));
        self.stream(request, self.connect()).await
    }

    async fn sse(&self) -> TransportResult {
        let encoded: String = self.connect().bytes().map(|byte| format!("%{byte:02X}")).collect();
        let url = format!("{}/connection/sse?cf_connect={encoded}", self.base);
        let request = Request::get(url).header(header::ACCEPT, "text/event-stream");
        self.stream(request, String::new()).await
    }

    async fn stream(&self, request: http::request::Builder, body: String) -> TransportResult {
        let began = Instant::now();
        match self.send(request, body).await {
            Ok(response) if response.status() == StatusCode::OK => {
                let stream = MessageStream::of_body(response.into_body());
                TransportResult::Opened(self.watch(stream, began).await.0)
            }
            Ok(response) => TransportResult::Refused(refusal(response).await),
            // A proxy that keeps the body may keep the head, too.
            Err(why) if why == NO_ANSWER => TransportResult::Opened(Opened::default()),
            Err(why) => TransportResult::Failed(why),
        }
    }

    async fn send(
        &self,
        request: http::request::Builder,
        body: String,
    ) -> Result<http::Response<Incoming>, String> {
        let request =
            request.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())?;
        match timeout(PATIENCE, self.client.request(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(RequestError::Timeout)) | Err(_) => Err(NO_ANSWER.to_owned()),
            Ok(Err(error)) => Err(error.to_string()),
        }
    }

    /// The connect command.
    fn connect(&self) -> String {
        let mut request = json!({ "name": "fanwire-doctor" });
        if let Some(token) = &self.options.token {
            request["token"] = token.trim().into();
        }
        json!({ "id": 1, "connect": request }).to_string()
    }

    /// Waits for the reply of connect, then leaves the stream idle.
    async fn watch(
        &self,
        mut stream: MessageStream,
        began: Instant,
    ) -> (Opened, Option<SeenAddress>) {
        let mut opened = Opened::default();
        let reply = match timeout(PATIENCE, stream.next()).await {
            Err(_) => return (opened, None),
            Ok(Ok(text)) => text,
            Ok(Err(Some((code, text)))) => {
                opened.reply_after = Some(began.elapsed());
                opened.reply = Reply::Refused { code, text };
                return (opened, None);
            }
            Ok(Err(None)) => {
                opened.end = Some(End { after: began.elapsed(), code: None });
                return (opened, None);
            }
        };
        opened.reply_after = Some(began.elapsed());
        let reply: Value = serde_json::from_str(&reply).unwrap_or(Value::String(reply));
        opened.reply = kind(&reply);
        let mut address = None;
        if matches!(opened.reply, Reply::Connected) {
            if stream.is_websocket() {
                address = self.seen_address(&reply["connect"]).await
            } else {
                // A session that is unknown gets no command, and the same answer.
                let node = &reply["connect"]["node"];
                opened.emulation = self.emulate(&json!({ "session": "", "node": node })).await;
            }
            let limit = reply["connect"]["ping"].as_u64().filter(|seconds| *seconds > 1);
            let idle = self.options.idle.min(limit.unwrap_or(u64::MAX) - 1);
            opened.idle = Duration::from_secs(idle);
            opened.end = self.leave_idle(&mut stream, opened.idle, &reply["connect"]).await;
        }
        (opened, address)
    }

    /// Answers pings, and returns the end if there is one within `idle`.
    async fn leave_idle(
        &self,
        stream: &mut MessageStream,
        idle: Duration,
        session: &Value,
    ) -> Option<End> {
        let until = Instant::now() + idle;
        loop {
            let since = Instant::now();
            match timeout(until.saturating_duration_since(since), stream.next()).await {
                Err(_) => return None,
                Ok(Ok(_)) if stream.is_websocket() => stream.send("{}").await,
                Ok(Ok(_)) => drop(self.emulate(session).await),
                Ok(Err(end)) => {
                    let code = end.map(|(code, _)| code);
                    return Some(End { after: since.elapsed(), code });
                }
            }
        }
    }

    /// Sends a pong to a session in a request of its own. Returns the status.
    async fn emulate(&self, session: &Value) -> Option<u16> {
        let request = Request::post(format!("{}/emulation", self.base));
        let [session, node] = [&session["session"], &session["node"]];
        let body = json!({ "session": session, "node": node, "data": "{}" }).to_string();
        self.send(request, body).await.ok().map(|response| response.status().as_u16())
    }

    /// Asks the server API for the address of this client; `None` without an API, or when it does not say.
    async fn seen_address(&self, connect: &Value) -> Option<SeenAddress> {
        let api = self.api.as_ref()?;
        let user = user(self.options.token.as_deref()?)?;
        let reply = api.call("connections", &json!({ "user": user })).await.ok()?;
        let address = reply["connections"][connect["client"].as_str()?]["address"].as_str()?;
        let by_server =
            address.parse().or_else(|_| address.parse().map(|one: SocketAddr| one.ip()));
        let local = self.local;
        let of_host = self.of_host;
        Some(SeenAddress { by_server: by_server.ok()?, local, of_host })
    }
}

/// The address without the path of a transport and with the scheme of HTTP.
fn base(address: &str) -> Result<String> {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let scheme = match scheme {
        "http" | "ws" => "http",
        "https" | "wss" => "https",
        _ => bail!("{address} is not an address, expected https://HOST[:PORT][/PREFIX]"),
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let transport = ["websocket", "http_stream", "sse"]
        .iter()
        .find_map(|name| rest.strip_suffix(&format!("/connection/{name}")));
    Ok(format!("{scheme}://{}", transport.unwrap_or(rest)))
}

async fn connect(host: &str, port: u16) -> Result<TcpStream> {
    let connected = timeout(PATIENCE, TcpStream::connect((host, port)))
        .await
        .with_context(|| format!("{host}:{port} does not answer"))?;
    connected.with_context(|| format!("no server listens at {host}:{port}"))
}

/// Verifies the certificate; what is refused is read over a second connection that accepts any.
async fn certificate(
    tls: &Tls,
    any: &Tls,
    host: &str,
    port: u16,
    socket: TcpStream,
) -> Result<Certificate> {
    let mut fault = String::new();
    let shaken = timeout(PATIENCE, tls.connect(host, socket)).await;
    let stream = match shaken.context("no answer to the TLS handshake")? {
        Ok(stream) => stream,
        Err(error) if error.to_string().contains("InvalidContentType") => {
            bail!("{host}:{port} speaks no TLS: use http://")
        }
        Err(error) => {
            fault = error.to_string();
            let again = any.connect(host, connect(host, port).await?);
            let again = timeout(PATIENCE, again).await.context("no answer to the TLS handshake")?;
            again.with_context(|| format!("no TLS with {host}:{port}"))?
        }
    };
    let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let end = shown.and_then(|shown| Fields::of(shown)).map(|fields| fields.end.seconds as i64);
    Ok(Certificate { fault, days_left: end.map(|end| (end - now()).div_euclid(86_400)) })
}

async fn speaks_tls(any: &Tls, host: &str, port: u16) -> bool {
    let Ok(socket) = connect(host, port).await else { return false };
    matches!(timeout(PATIENCE, any.connect(host, socket)).await, Ok(Ok(_)))
}

fn enabled() -> TlsOptions {
    TlsOptions { enabled: true, ..TlsOptions::default() }
}

fn kind(reply: &Value) -> Reply {
    match (&reply["connect"], reply["error"]["code"].as_u64()) {
        (_, Some(code)) => {
            let text = reply["error"]["message"].as_str().unwrap_or_default().to_owned();
            Reply::Refused { code, text }
        }
        (Value::Object(_), None) => Reply::Connected,
        _ => Reply::Foreign(reply.to_string().chars().take(TEXT_CHARS_MAX).collect()),
    }
}

async fn refusal(response: http::Response<Incoming>) -> Response {
    let status = response.status().as_u16();
    let [server, location] = ["server", "location"].map(|name| text(response.headers(), name));
    let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect();
    let body = timeout(PATIENCE, body)
        .await
        .ok()
        .and_then(Result::ok)
        .map(|body| body.to_bytes())
        .unwrap_or_default();
    let body = String::from_utf8_lossy(&body);
    let line = body.trim().lines().next().unwrap_or_default();
    let printable = line.chars().filter(|one| !one.is_control()).take(TEXT_CHARS_MAX);
    Response { status, server, location, text: printable.collect() }
}

fn text(headers: &HeaderMap, name: &str) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.chars().take(TEXT_CHARS_MAX).collect()
}

fn clock_ahead(headers: &HeaderMap) -> Option<i64> {
    let date = httpdate::parse_http_date(&text(headers, "date")).ok()?;
    Some(date.duration_since(UNIX_EPOCH).ok()?.as_secs() as i64 - now())
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

/// The user of a token, without a look at its signature.
fn user(token: &str) -> Option<String> {
    let claims = URL_SAFE_NO_PAD.decode(token.trim().split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    claims["sub"].as_str().filter(|user| !user.is_empty()).map(str::to_owned)
}

/// Time limit of each step. A stream whose first message takes longer is of no use to a client.
const PATIENCE: Duration = Duration::from_secs(5);
const NO_ANSWER: &str = "no response in time";
const BODY_BYTES_MAX: usize = 64 << 10;
const TEXT_CHARS_MAX: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_that_of_the_site_or_of_a_transport() {
        for (given, expected) in [
            ("https://example.com", "https://example.com"),
            ("http://example.com:8000/", "http://example.com:8000"),
            ("wss://example.com/rt/connection/websocket?format=json", "https://example.com/rt"),
            ("ws://[::1]:8000/connection/sse", "http://[::1]:8000"),
        ] {
            assert_eq!(base(given).expect("an address"), expected);
        }
        assert!(base("example.com").is_err() && base("ftp://example.com").is_err());
    }

    #[test]
    fn a_token_names_its_user() {
        let token = |claims: &str| format!("e30.{}.sig", URL_SAFE_NO_PAD.encode(claims));
        assert_eq!(user(&token(r#"{"sub":"42"}"#)).as_deref(), Some("42"));
        assert_eq!(user(&token(r#"{"sub":""}"#)), None);
        assert_eq!(user("no token"), None);
    }
}
