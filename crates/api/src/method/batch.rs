//! batch: several commands in one request.
//! In: commands, each one object with exactly one method key. Out: one reply each, in the order of the request.
//! Uses `Api::run` for every item; an item's error never fails the others.
//! What an item does is changed in the file of its method.

use std::fmt;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};
use schemars::JsonSchema;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::{Command, Method, Outcome};
use crate::json::{or_default, up_to};
use crate::{Api, ApiError, openapi};

/// Most commands of one batch; a longer one is refused whole.
pub const BATCH_COMMANDS_MAX: usize = 10_000;

/// Most commands of a parallel batch that are under way at once.
const PARALLEL_MAX: usize = 1024;

/// Commands to run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BatchRequest {
    /// At most 10,000. An item that makes no command is answered with an error of its own: 107 for null or for several
    /// methods in one object, 104 for a method that does not exist.
    #[serde(deserialize_with = "items")]
    #[schemars(schema_with = "openapi::commands")]
    pub commands: Vec<Result<Command, ApiError>>,
    /// Leaves the order of execution to the server: it begins up to 1024 commands before it awaits the first answer.
    #[serde(deserialize_with = "or_default")]
    pub parallel: bool,
}

/// One reply per command. On HTTP this stands alone, without `result` around it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct BatchReply {
    /// One per command, in their order.
    #[schemars(schema_with = "openapi::replies")]
    pub replies: Vec<Reply>,
}

/// What became of one command: `{"publish":{…}}`, or `{"error":{…}}`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Reply {
    Outcome(Outcome),
    Error { error: ApiError },
}

impl Api {
    /// Runs several commands; each has its own result or error.
    ///
    /// # Errors
    /// 107 for more than [`BATCH_COMMANDS_MAX`] commands, none of which is run.
    pub async fn batch(&self, request: BatchRequest) -> Result<BatchReply, ApiError> {
        self.measure_later(Method::Batch, async |_| {
            if request.commands.len() > BATCH_COMMANDS_MAX {
                return Err(ApiError::BAD_REQUEST);
            }
            let at_once = if request.parallel { PARALLEL_MAX } else { 1 };
            let replies = stream::iter(request.commands).map(|command| self.reply(command));
            Ok(BatchReply { replies: replies.buffered(at_once).collect().await })
        })
        .await
    }

    /// A batch within a batch is no command: 104.
    fn reply(&self, command: Result<Command, ApiError>) -> BoxFuture<'_, Reply> {
        Box::pin(async move {
            let outcome = match command {
                Ok(Command::Batch(_)) => Err(ApiError::NOT_FOUND),
                Ok(command) => self.run(command).await,
                Err(error) => Err(error),
            };
            outcome.map_or_else(|error| Reply::Error { error }, Reply::Outcome)
        })
    }
}

fn items<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Result<Command, ApiError>>, D::Error> {
    let items: Vec<Option<Item>> = up_to::<BATCH_COMMANDS_MAX, _, _>(deserializer)?;
    let command = |item: Option<Item>| item.map_or(Err(ApiError::BAD_REQUEST), |item| item.0);
    Ok(items.into_iter().map(command).collect())
}

struct Item(Result<Command, ApiError>);

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ItemVisitor)
    }
}

struct ItemVisitor;

impl<'de> Visitor<'de> for ItemVisitor {
    type Value = Item;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object with one method")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Item, A::Error> {
        let mut found = Err(ApiError::NOT_FOUND);
        while let Some(name) = map.next_key::<String>()? {
            let method = Method::of_name(&name).filter(|method| *method != Method::Batch);
            let Some(method) = method else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if let Some(command) = map.next_value_seed(method)? {
                let is_first = found == Err(ApiError::NOT_FOUND);
                found = if is_first { Ok(command) } else { Err(ApiError::BAD_REQUEST) };
            }
        }
        Ok(Item(found))
    }
}
