//! The old single path: `POST /api` with `{"method":…,"params":{…}}`, one or several after another.
//! In: a body of concatenated JSON commands. Out: one reply per command, separated by newlines.
//! Uses the same commands as the method paths; errors always stand in the body.
//! The numbers of methods are rows of `Method`'s table.

use http::StatusCode;
use serde::de::{Deserializer, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::door::Refusal;
use super::reply::{Bare, Envelope, Reply};
use super::{Api, Command, Method, decode, fault};
use crate::json::{Object, or_default};
use crate::{ApiError, BATCH_COMMANDS_MAX, Outcome};

/// Runs all commands of the body, once all of it was understood.
pub(super) async fn run(api: &Api, body: &str) -> Result<Reply, Refusal> {
    Ok(Reply { status: StatusCode::OK, json: run_all(api, commands(body)?).await })
}

fn commands(body: &str) -> Result<Vec<LegacyCommand>, Refusal> {
    let stream = serde_json::Deserializer::from_str(body).into_iter::<Object<LegacyCommand>>();
    let mut commands = Vec::new();
    for read in stream {
        if commands.len() == BATCH_COMMANDS_MAX {
            let why = format!("there are more than {BATCH_COMMANDS_MAX} commands in the body");
            return Err(Refusal::Malformed(why));
        }
        let Object(command) =
            read.map_err(|error| Refusal::Malformed(fault::told(body, &error)))?;
        commands.push(command);
    }
    match commands.is_empty() {
        true => Err(Refusal::Malformed("there is no command in the body".to_owned())),
        false => Ok(commands),
    }
}

async fn run_all(api: &Api, commands: Vec<LegacyCommand>) -> Vec<u8> {
    let mut out = Vec::new();
    for command in commands {
        if !out.is_empty() {
            out.push(b'\n');
        }
        let outcome = match command.decoded() {
            Ok(known) => api.run(known).await,
            Err(error) => Err(error),
        };
        write_reply(command.id, &outcome, &mut out);
    }
    out
}

fn write_reply(id: u32, outcome: &Result<Outcome, ApiError>, out: &mut Vec<u8>) {
    let answer = match outcome {
        Ok(outcome) => Envelope::Result(Bare(outcome)),
        Err(error) => Envelope::Error(*error),
    };
    let reply = LegacyReply { id, answer };
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
        let method = self.method.ok_or(ApiError::NOT_FOUND)?;
        let params = match self.params.as_ref().map_or("", |raw| raw.get()) {
            // An empty map of PHP, which its libraries send where there are no parameters.
            "[]" if method.takes_empty_body() => "",
            params => params,
        };
        decode(method, params).map_err(|_| ApiError::BAD_REQUEST)
    }
}

#[derive(Serialize)]
struct LegacyReply<'a> {
    #[serde(skip_serializing_if = "is_zero")]
    id: u32,
    #[serde(flatten)]
    answer: Envelope<'a>,
}

/// A name in any case, or a number; batch was never part of this path.
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

fn is_zero(id: &u32) -> bool {
    *id == 0
}
