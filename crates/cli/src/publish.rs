//! `fanwire publish`: one message or a file of them, into a channel of a running server.
//! In: a channel, messages, a pace → out: one long request to `POST /api/stream`; how many were published, and what was refused.
//! Uses the HTTP client of `tls`, and the configuration for address and key. Never: a server of its own.
//! Options are changed in `arguments`; the form of a line is documented in docs/server-api.md, stream.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fanwire_config::TlsOptions;
use fanwire_tls::{HttpsClient, RequestError, RequestLimits, Tls};
use futures_util::stream::{self, Stream};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use serde_json::{Value, json, value::RawValue};

use crate::arguments::Publish;
use crate::local::{LocalServer, with_remedy};
use crate::progress::Progress;
use crate::{document, tune};

#[cfg(test)]
mod tests;

/// Address of the server API, and its key.
#[derive(Debug)]
struct ApiAddress {
    /// The stream.
    url: Uri,
    /// Host and port.
    authority: String,
    key: String,
    client: HttpsClient,
}

pub(crate) fn run(arguments: &Publish) -> Result<()> {
    let target = target(arguments)?;
    let lines = lines(arguments)?;
    let count = lines.len();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let started = Instant::now();
    let errors = runtime.block_on(publish(&target, lines, arguments.rate)).map_err(with_remedy)?;
    let published = count - errors.len();
    let seconds = started.elapsed().as_secs_f64();
    document::print(&format!("published {published} of {count} in {seconds:.1} s\n"))?;
    if errors.is_empty() {
        return Ok(());
    }
    let shown: Vec<&str> = errors.iter().take(ERRORS_SHOWN).map(String::as_str).collect();
    let more = match errors.len() - shown.len() {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    bail!("{}{more}", shown.join("; "))
}

/// Returns the address and the key from `--url` and `--key`, or else from the configuration.
fn target(arguments: &Publish) -> Result<ApiAddress> {
    let local = LocalServer::load(arguments.config.as_deref())?;
    let url = arguments.url.clone().unwrap_or_else(|| local.api_url());
    let uri: Uri = url.parse().with_context(|| format!("--url is {url:?}, expected an address"))?;
    let (tls, scheme, default_port) = match uri.scheme_str() {
        Some("http") => (Tls::new(&TlsOptions::default())?, "http", 80),
        Some("https") => (local.tls(&arguments.trust, arguments.url.as_ref(), true)?, "https", 443),
        _ => bail!("--url is {url:?}, expected http:// or https://HOST:PORT/PREFIX"),
    };
    let authority = uri.authority().with_context(|| format!("--url is {url:?}, without a host"))?;
    let port = authority.port_u16().unwrap_or(default_port);
    let authority = format!("{}:{port}", authority.host());
    let prefix = uri.path().trim_end_matches('/');
    let limits = RequestLimits { timeout: CONNECT_TIMEOUT, body_bytes_max: 0 };
    Ok(ApiAddress {
        url: format!("{scheme}://{authority}{prefix}/stream").parse()?,
        authority,
        key: arguments.key.clone().unwrap_or_else(|| local.api_key()),
        client: HttpsClient::new(tls, limits),
    })
}

/// One command for each message; its id is its number, from 1.
fn lines(arguments: &Publish) -> Result<Vec<String>> {
    let (messages, is_binary) = match (&arguments.file, &arguments.data) {
        (Some(file), _) => {
            let sample = tune::read(file, usize::MAX)?;
            (sample.messages().to_vec(), sample.is_binary())
        }
        (None, data) => {
            let data = data.clone().unwrap_or_default();
            if let Err(error) = serde_json::from_str::<&RawValue>(&data) {
                bail!("the message is no JSON: {error}; a text needs quotes: '\"hello\"'");
            }
            (vec![data.into_bytes()], false)
        }
    };
    let mut fields = format!("\"channel\":{}", json!(arguments.channel));
    if !arguments.tags.is_empty() {
        let tags: serde_json::Map<_, _> =
            arguments.tags.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        fields += &format!(",\"tags\":{}", Value::Object(tags));
    }
    if let Some(delivery) = &arguments.delivery {
        fields += &format!(",\"delivery\":{}", json!(delivery));
    }
    let line = |(number, message): (usize, &Vec<u8>)| {
        let data = match is_binary {
            true => format!("\"b64data\":\"{}\"", STANDARD.encode(message)),
            // A line of the stream must not contain line feeds.
            false => {
                format!("\"data\":{}", String::from_utf8_lossy(message).replace(['\r', '\n'], " "))
            }
        };
        format!("{{\"id\":{number},\"publish\":{{{fields},{data}}}}}\n")
    };
    Ok((1..).zip(&messages).map(line).collect())
}

/// Returns the errors of messages.
async fn publish(
    target: &ApiAddress,
    lines: Vec<String>,
    rate: Option<f64>,
) -> Result<Vec<String>> {
    let ApiAddress { url, authority, key, client } = target;
    let count = lines.len();
    let request = Request::post(url)
        .header("X-API-Key", key)
        .body(StreamBody::new(Box::pin(paced(lines, rate))))?;
    let response = client.request(request).await.map_err(|error| match error {
        RequestError::Io(error) => anyhow!("no server answers at {authority}: {error}"),
        RequestError::Http(_) => anyhow!("the server ended the connection: {error}"),
        error => anyhow!("no connection to the server at {authority}: {error}"),
    })?;
    match response.status() {
        StatusCode::OK => answers(response.into_body(), count).await,
        StatusCode::UNAUTHORIZED => bail!(
            "the server at {authority} refuses the API key: give --key, or --config with a file that sets http_api.key"
        ),
        StatusCode::NOT_FOUND => {
            bail!(
                "the server at {authority} has no {}: check --url, or http_api.handler_prefix",
                url.path()
            )
        }
        status => {
            let text = response.into_body().collect().await?.to_bytes();
            bail!("the server at {authority} answers {status}: {}", String::from_utf8_lossy(&text))
        }
    }
}

/// The lines in chunks. With a rate, each chunk has the lines that are due.
fn paced(
    lines: Vec<String>,
    rate: Option<f64>,
) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> {
    let started = tokio::time::Instant::now();
    stream::unfold((lines, 0), move |(lines, sent)| async move {
        if sent == lines.len() {
            return None;
        }
        let mut end = lines.len().min(sent + CHUNK_LINES);
        if let Some(rate) = rate {
            let due_at = |number: usize| started + Duration::from_secs_f64(number as f64 / rate);
            tokio::time::sleep_until(due_at(sent)).await;
            let due = (started.elapsed().as_secs_f64() * rate) as usize + 1;
            end = end.min(due.max(sent + 1));
        }
        let chunk = Bytes::from(lines[sent..end].concat());
        Some((Ok(Frame::data(chunk)), (lines, end)))
    })
}

/// Reads an answer for each of `count` lines. Returns the errors.
async fn answers(mut body: Incoming, count: usize) -> Result<Vec<String>> {
    let mut progress = Progress::of_stderr(count);
    let (mut rest, mut errors, mut answered) = (Vec::new(), Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.with_context(|| lost(answered, count))?;
        rest.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            errors.extend(error_of(&line)?);
            answered += 1;
            progress.step("published");
        }
    }
    progress.clear();
    if answered < count { Err(anyhow!(lost(answered, count))) } else { Ok(errors) }
}

fn lost(answered: usize, count: usize) -> String {
    format!(
        "the connection ended after {answered} of {count} answers; the messages of answered lines were published"
    )
}

/// The error of an answer, with the number of its message.
fn error_of(line: &[u8]) -> Result<Option<String>> {
    let answer: Value = serde_json::from_slice(line).context("an answer that is no JSON")?;
    let error = &answer["error"];
    let text = || {
        let (code, message) = (&error["code"], error["message"].as_str().unwrap_or_default());
        format!("message {}: error {code}, {message}", answer["id"])
    };
    Ok(error.is_object().then(text))
}

/// Lines of one chunk; the server executes and answers them together.
const CHUNK_LINES: usize = 64;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

const ERRORS_SHOWN: usize = 10;
