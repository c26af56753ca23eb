//! batch: several commands in one request.
//! In: commands, each one object with exactly one method key. Out: one reply each, in the order of the request.
//! Uses `Api::run` for every item; an item's error never fails the others.
//! What an item does is changed in the file of its method.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::{Command, Method, Outcome};
use crate::json::or_default;
use crate::{Api, ApiError};

/// Commands to run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct BatchRequest {
    /// An item that made no command carries the error it will be answered with: 107 for null or for several
    /// methods in one object, 104 for a method that does not exist.
    #[serde(deserialize_with = "items")]
    pub commands: Vec<Result<Command, ApiError>>,
    /// Leaves the order of execution to the server. With the memory broker nothing ever waits, so commands run one
    /// after another here as well.
    #[serde(deserialize_with = "or_default")]
    pub parallel: bool,
}

/// One reply per command. On HTTP this stands alone, without `result` around it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BatchReply {
    /// In the order of the commands.
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
    pub async fn batch(&self, request: BatchRequest) -> BatchReply {
        let replied = self.measure_later(Method::Batch, async |_| {
            let mut replies = Vec::with_capacity(request.commands.len());
            for command in request.commands {
                replies.push(match self.run_item(command).await {
                    Ok(outcome) => Reply::Outcome(outcome),
                    Err(error) => Reply::Error { error },
                });
            }
            Ok(BatchReply { replies })
        });
        replied.await.expect("a batch itself has nothing that fails")
    }

    /// A batch within a batch is no command: 104.
    async fn run_item(&self, command: Result<Command, ApiError>) -> Result<Outcome, ApiError> {
        match command? {
            Command::Batch(_) => Err(ApiError::NOT_FOUND),
            command => self.run(command).await,
        }
    }
}

fn items<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Result<Command, ApiError>>, D::Error> {
    let items: Vec<Option<Item>> = or_default(deserializer)?;
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
