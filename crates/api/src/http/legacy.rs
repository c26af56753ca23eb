//! The old single path: `POST /api` with `{"method":…,"params":{…}}`, one or several after another.
//! In: a body of concatenated JSON commands. Out: one reply per command, separated by newlines.
//! Uses the same commands as the method paths; errors are always in the body.
//! The numbers of methods are in the rows of `names.rs`.

use std::time::Instant;

use fanwire_node::protocol::AnyCase;
use http::StatusCode;
use serde::de::{Deserializer, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::reply::Reply;
use super::request::RequestError;
use super::{Api, Command, KeyHolder, Method, body_error};
use crate::envelope::Envelope;
use crate::json::{is_zero, or_default};
use crate::refusals::Named;
use crate::reply_budget::ReplyBudget;
use crate::{ApiError, BATCH_COMMANDS_MAX, Outcome};

/// Runs all commands of the body after the whole body was decoded. Those that `permits` refuses get 108.
pub(super) async fn run(
    api: &Api,
    body: &str,
    permits: fn(Method) -> bool,
    caller: &KeyHolder,
) -> Result<Reply, RequestError> {
    Ok(Reply { status: StatusCode::OK, json: run_all(api, commands(body)?, permits, caller).await })
}

fn commands(body: &str) -> Result<Vec<LegacyCommand>, RequestError> {
    let stream = serde_json::Deserializer::from_str(body).into_iter::<AnyCase<LegacyCommand>>();
    let mut commands = Vec::new();
    for read in stream {
        if commands.len() == BATCH_COMMANDS_MAX {
            let why = format!("there are more than {BATCH_COMMANDS_MAX} commands in the body");
            return Err(RequestError::Malformed(why));
        }
        let AnyCase(command) =
            read.map_err(|error| RequestError::Malformed(body_error::describe(body, &error)))?;
        commands.push(command);
    }
    if commands.is_empty() {
        return Err(RequestError::Malformed("there is no command in the body".to_owned()));
    }
    Ok(commands)
}

async fn run_all(
    api: &Api,
    commands: Vec<LegacyCommand>,
    permits: fn(Method) -> bool,
    caller: &KeyHolder,
) -> Vec<u8> {
    let mut out = Vec::new();
    let budget = ReplyBudget::default();
    for command in commands {
        budget.pause().await;
        if !out.is_empty() {
            out.push(b'\n');
        }
        let before = out.len();
        let decoded = if command.method.is_none_or(permits) {
            command.decoded()
        } else {
            Err(ApiError::NOT_AVAILABLE.because("the password lets read only"))
        };
        let decoded = decoded.and_then(|command| caller.admit(&api.node, command, Instant::now()));
        let admitted = decoded.and_then(|known| {
            if known.is_read() { budget.admit_read().map(|()| known) } else { Ok(known) }
        });
        let outcome = match admitted {
            Ok(known) => api.run(known).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &outcome {
            let params = command.params.as_ref().map_or("", |raw| raw.get());
            api.log_error("legacy", error, || Named::in_json(params), None, &caller.name);
        }
        write_reply(command.id, &outcome, &mut out);
        budget.hold(out.len() - before);
    }
    out
}

fn write_reply(id: u32, outcome: &Result<Outcome, ApiError>, out: &mut Vec<u8>) {
    let reply = LegacyReply { id, answer: Envelope::of(outcome) };
    serde_json::to_writer(out, &reply).expect("replies have string keys and no failing values");
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LegacyCommand {
    #[serde(deserialize_with = "or_default")]
    id: u32,
    #[serde(deserialize_with = "method")]
    method: Option<Method>,
    params: Option<Box<RawValue>>,
}

impl LegacyCommand {
    /// 104 for an unknown method, 107 for bad parameters.
    fn decoded(&self) -> Result<Command, ApiError> {
        let method =
            self.method.ok_or(ApiError::NOT_FOUND.because("method is no method of the API"))?;
        let params = match self.params.as_ref().map_or("", |raw| raw.get()) {
            // The empty array that PHP libraries send for an empty map.
            "[]" if method.takes_empty_body() => "",
            params => params,
        };
        method
            .decode(params)
            .map_err(|_| ApiError::BAD_REQUEST.because("params is not JSON of the method's types"))
    }
}

#[derive(Serialize)]
struct LegacyReply<'a> {
    #[serde(skip_serializing_if = "is_zero")]
    id: u32,
    #[serde(flatten)]
    answer: Envelope<'a>,
}

/// A name in any letter case, or a number; batch does not exist on this path.
fn method<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Method>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        Name(String),
        Number(u64),
        Other(IgnoredAny),
    }
    Ok(match Given::deserialize(from)? {
        Given::Name(name) => Method::of_name(&name.to_ascii_lowercase()),
        Given::Number(number) => Method::of_legacy_number(number),
        Given::Other(_) => None,
    }
    .filter(|method| *method != Method::Batch))
}
