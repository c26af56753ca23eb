//! batch: several commands in one request.
//! In: commands, each an object with exactly one method key. Out: one reply each, in the order of the request.
//! Uses `Api::run` for every item; an item's error never fails the others.
//! What an item does is changed in the file of its method.

use std::fmt;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Command, DESCRIPTIONS, Description, Outcome};
use crate::error::NO_METHOD;
use crate::json::{UpTo, in_place, or_default};
use crate::names::COMMAND_KEYS;
use crate::refusals::Named;
use crate::reply_budget::{ReplyBudget, json_bytes};
use crate::{Api, ApiError, Method};

/// Maximum number of commands in a batch; a longer batch is refused as a whole.
pub const BATCH_COMMANDS_MAX: usize = 10_000;

/// Maximum number of commands of a parallel batch in flight.
const PARALLEL_MAX: usize = 1024;

/// The same of a batch with commands that read, whose replies may be large.
const PARALLEL_READS_MAX: usize = 8;

/// Commands to run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["commands"]))]
pub struct BatchRequest {
    /// Required; at most 10,000. An invalid item gets an error of its own: 107 for null or for several methods in one object, 104 for
    /// an unknown method.
    #[serde(deserialize_with = "items")]
    #[schemars(schema_with = "commands_schema")]
    pub commands: Option<Vec<Result<Command, ApiError>>>,
    /// The server may execute commands in any order, and starts up to 1024 before it waits for the first result; 8 when
    /// some of them read (history, presence, channels, connections, info).
    #[serde(deserialize_with = "or_default")]
    pub parallel: bool,
    /// The form in which large replies wait until all are ready.
    #[serde(skip)]
    pub form: ReplyForm,
}

/// The writer of large replies: a value takes several times the bytes of its text. `None` keeps values.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplyForm(pub Option<fn(&Reply) -> Vec<u8>>);

/// It is no part of what the request asks for.
impl PartialEq for ReplyForm {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// One reply per command. Over HTTP this is the whole body, without `result` around it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct BatchReply {
    /// One per command, in their order.
    #[schemars(schema_with = "replies_schema")]
    pub replies: Vec<Reply>,
}

/// The reply to one command: `{"publish":{…}}`, or `{"error":{…}}`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Reply {
    Outcome(Outcome),
    Error {
        error: ApiError,
    },
    /// Either of them in the form of the request.
    #[serde(serialize_with = "in_place")]
    Written(Bytes),
}

impl Api {
    /// Runs several commands; each has its own result or error.
    ///
    /// # Errors
    /// 107 without commands, or with more than [`BATCH_COMMANDS_MAX`], none of which is run.
    pub async fn batch(&self, request: BatchRequest) -> Result<BatchReply, ApiError> {
        self.measure_async(Method::Batch, async |_| {
            let missing = ApiError::BAD_REQUEST.because("commands is missing, expected a list");
            let commands = request.commands.ok_or(missing)?;
            if commands.len() > BATCH_COMMANDS_MAX {
                return Err(ApiError::BAD_REQUEST.because("commands has too many items"));
            }
            let mut replies = Vec::with_capacity(commands.len());
            let at_once = match request.parallel {
                false => 1,
                true if commands.iter().flatten().any(Command::is_read) => PARALLEL_READS_MAX,
                true => PARALLEL_MAX,
            };
            let budget = ReplyBudget::default();
            let form = request.form;
            let reply = |command| reply(self, command, &budget, form);
            let mut started = stream::iter(commands).map(reply).buffered(at_once);
            while let Some(reply) = started.next().await {
                replies.push(reply);
                budget.pause().await;
            }
            Ok(BatchReply { replies })
        })
        .await
    }
}

/// Runs one command; 104 for a batch inside a batch, 111 when the replies before it are too large.
async fn reply(
    api: &Api,
    command: Result<Command, ApiError>,
    budget: &ReplyBudget,
    form: ReplyForm,
) -> Reply {
    let reads = command.as_ref().is_ok_and(Command::is_read);
    let admitted = if reads { budget.admit_read() } else { Ok(()) };
    let outcome = match admitted.and(command) {
        Ok(Command::Batch(_)) => Err(ApiError::NOT_FOUND.because("a batch cannot contain a batch")),
        Ok(command) => api.run(command).await,
        Err(error) => Err(error),
    };
    if let Err(error) = &outcome {
        api.log_error("batch", error, Named::default, None, "");
    }
    let reply = outcome.map_or_else(|error| Reply::Error { error }, Reply::Outcome);
    if !reads {
        budget.hold(0);
        return reply;
    }
    let reply = reply.written(form);
    budget.hold(reply.bytes());
    reply
}

impl Reply {
    fn written(self, ReplyForm(form): ReplyForm) -> Self {
        match form {
            Some(write) => Self::Written(write(&self).into_boxed_slice().into()),
            None => self,
        }
    }

    fn bytes(&self) -> usize {
        if let Self::Written(bytes) = self { bytes.len() } else { json_bytes(self) }
    }
}

impl Command {
    /// Chooses the form of large replies, if it is a batch.
    pub(crate) fn write_replies_by(&mut self, write: fn(&Reply) -> Vec<u8>) {
        if let Self::Batch(batch) = self {
            batch.form = ReplyForm(Some(write));
        }
    }
}

fn items<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<Result<Command, ApiError>>>, D::Error> {
    let items = Option::<UpTo<BATCH_COMMANDS_MAX, Option<Item>>>::deserialize(deserializer)?;
    let command = |item: Option<Item>| item.map_or(Err(NO_OBJECT), |item| item.0);
    Ok(items.map(|UpTo(items)| items.into_iter().map(command).collect()))
}

/// The schema of the commands of a batch: each an object with exactly one method.
fn commands_schema(generator: &mut SchemaGenerator) -> Schema {
    let commands = by_method(generator, |method| method.request);
    json_schema!({
        "type": "array",
        "maxItems": BATCH_COMMANDS_MAX,
        "items": {
            "type": "object",
            "properties": commands,
            "minProperties": 1,
            "maxProperties": 1,
        },
    })
}

/// The schema of the replies of a batch: each an object with the method of its command, or with `error`.
fn replies_schema(generator: &mut SchemaGenerator) -> Schema {
    let mut replies = by_method(generator, |method| method.result);
    replies.insert("error".to_owned(), generator.subschema_for::<ApiError>().to_value());
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": replies,
            "minProperties": 1,
            "maxProperties": 1,
        },
    })
}

fn by_method(
    generator: &mut SchemaGenerator,
    part: impl Fn(&Description) -> fn(&mut SchemaGenerator) -> Schema,
) -> Map<String, Value> {
    let in_batches = DESCRIPTIONS.iter().filter(|row| row.method != Method::Batch);
    in_batches.map(|row| (row.method.name().to_owned(), part(row)(generator).to_value())).collect()
}

/// One command of a batch.
pub(crate) struct Item(pub(crate) Result<Command, ApiError>);

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("Command", &COMMAND_KEYS[1..], ItemVisitor)
    }
}

struct ItemVisitor;

impl<'de> Visitor<'de> for ItemVisitor {
    type Value = Item;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object with one method")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Item, A::Error> {
        let mut command = Err(NO_METHOD);
        while let Some(name) = map.next_key::<String>()? {
            take_method(&name, &mut map, &mut command)?;
        }
        Ok(Item(command))
    }
}

/// Decodes the value of the key `name`, which is a method or ignored. `command` is [`ApiError::NOT_FOUND`] before the first
/// method, and [`ApiError::BAD_REQUEST`] from the second one on.
pub(crate) fn take_method<'de, A: MapAccess<'de>>(
    name: &str,
    map: &mut A,
    command: &mut Result<Command, ApiError>,
) -> Result<(), A::Error> {
    let Some(method) = Method::of_name(name).filter(|method| *method != Method::Batch) else {
        return map.next_value::<IgnoredAny>().map(drop);
    };
    if let Some(decoded) = map.next_value_seed(method)? {
        let is_first = *command == Err(ApiError::NOT_FOUND);
        *command = if is_first { Ok(decoded) } else { Err(TWO_METHODS) };
    }
    Ok(())
}

const TWO_METHODS: ApiError = ApiError::BAD_REQUEST.because("the command names two methods");
const NO_OBJECT: ApiError = ApiError::BAD_REQUEST.because("null is no command");
