//! `fanwire publish`: one message or a file of them, into a channel of a running server; a key of a map.
//! In: a channel, messages, a pace → out: one long request to `POST /api/stream`; how many were published, and what was refused.
//! Uses `api_client`. Never: a server of its own.
//! Options are changed in `arguments`; the form of a line is documented in docs/server-api.md, stream.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use serde_json::{Value, json, value::RawValue};

use crate::api_client::ApiClient;
use crate::arguments::Publish;
use crate::local::with_remedy;
use crate::progress::Progress;
use crate::{document, tune};

#[cfg(test)]
mod tests;

pub(crate) fn run(arguments: &Publish) -> Result<()> {
    let api = ApiClient::new(&arguments.server)?;
    let lines = lines(arguments)?;
    let count = lines.len();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let started = Instant::now();
    let errors = runtime.block_on(publish(&api, lines, arguments.rate)).map_err(with_remedy)?;
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

/// One command for each message; its id is its number, from 1.
fn lines(arguments: &Publish) -> Result<Vec<String>> {
    if let Some(key) = &arguments.map_remove {
        let removal = json!({"id": 1, "map_remove": {"channel": arguments.channel, "key": key}});
        return Ok(vec![format!("{removal}\n")]);
    }
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
    let mut method = "publish";
    if let Some(key) = &arguments.map_key {
        method = "map_publish";
        fields += &format!(",\"key\":{}", json!(key));
    }
    if let Some(delivery) = &arguments.delivery {
        fields += &format!(",\"delivery\":{}", json!(delivery));
    }
    let line = |(number, message): (usize, &Vec<u8>)| {
        let data = if is_binary {
            format!("\"b64data\":\"{}\"", STANDARD.encode(message))
        } else {
            // A line of the stream must not contain line feeds.
            format!("\"data\":{}", String::from_utf8_lossy(message).replace(['\r', '\n'], " "))
        };
        format!("{{\"id\":{number},\"{method}\":{{{fields},{data}}}}}\n")
    };
    Ok((1..).zip(&messages).map(line).collect())
}

/// Returns the errors of messages.
async fn publish(api: &ApiClient, lines: Vec<String>, rate: Option<f64>) -> Result<Vec<String>> {
    let count = lines.len();
    let body = StreamBody::new(Box::pin(paced(lines, rate)));
    answers(api.post("stream", body).await?.into_body(), count).await
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
    let mut rest = Vec::new();
    let mut errors = Vec::new();
    let mut answered = 0;
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

/// The error of an answer, or why it changed no key, with the number of its message.
fn error_of(line: &[u8]) -> Result<Option<String>> {
    let answer: Value = serde_json::from_slice(line).context("an answer that is no JSON")?;
    let error = &answer["error"];
    let text = || {
        let part = |name: &str| error[name].as_str().unwrap_or_default();
        let cause = match part("cause") {
            "" => String::new(),
            cause => format!(": {cause}"),
        };
        format!("message {}: error {}, {}{cause}", answer["id"], error["code"], part("message"))
    };
    if error.is_object() {
        return Ok(Some(text()));
    }
    let changes = ["map_publish", "map_remove"].map(|method| &answer[method]["suppress_reason"]);
    let reason = changes.into_iter().find_map(Value::as_str);
    Ok(reason.map(|reason| format!("message {}: no change, {reason}", answer["id"])))
}

/// Lines of one chunk; the server executes and answers them together.
const CHUNK_LINES: usize = 64;

const ERRORS_SHOWN: usize = 10;
