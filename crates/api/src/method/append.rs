//! append: one more piece of a message that grows, published as a whole (server API §3 append).
//! In: `AppendRequest`. Out: the length of the text so far, and the position of its newest publication.
//! Uses the node's append, and a task of tokio that publishes text which waits. Never: the text itself.
//! Rules of fragments live in `fanwire_broker`; the forms of `data` are here.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_broker::{AppendError, Appended, Fragment};
use fanwire_node::Node;
use fanwire_node::protocol::json_string;
use schemars::JsonSchema;
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::runtime::Handle;

use crate::error::check_key;
use crate::json::{is_zero, or_default, raw};
use crate::{Api, ApiError, Method};

/// A piece of a message that grows.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["channel", "key", "data"]))]
pub struct AppendRequest {
    /// Required. Its namespace must keep a history.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1))]
    pub channel: String,
    /// Required: names the message in its channel, in at most 255 bytes. Publications have it as the tag `key`.
    #[serde(deserialize_with = "or_default")]
    #[schemars(length(min = 1, max = 255))]
    pub key: String,
    /// Text to append, as a JSON string; with `append_field` an object.
    #[serde(deserialize_with = "raw")]
    #[schemars(with = "serde_json::Value")]
    pub data: Bytes,
    /// Makes the message an object in which this field grows. The other fields of `data`, if there are any, replace all those
    /// of before.
    #[serde(deserialize_with = "or_default")]
    pub append_field: String,
    /// Length of the text before this piece, in bytes of UTF-8, as the result of the call before says. Text that the message
    /// has there already is not appended again. Without it the piece is appended wherever the text ends.
    pub at: Option<u64>,
    /// Ends the message: it is published at once, with the tag `final`, and nothing can be appended any more.
    #[serde(rename = "final", deserialize_with = "or_default")]
    pub is_final: bool,
}

/// The message after the call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AppendResult {
    /// The offset of its newest publication, which may not have all text yet.
    #[serde(skip_serializing_if = "is_zero")]
    pub offset: u64,
    /// The epoch of the stream.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub epoch: String,
    /// Length of the text, in bytes of UTF-8: `at` of the next call.
    pub length: u64,
    /// The message had all of the piece already.
    #[serde(skip_serializing_if = "is_zero")]
    pub duplicate: bool,
}

impl Api {
    /// Appends to a message of a channel. Text that waits for the interval of the namespace is published by a task of the
    /// tokio runtime of the caller; without a runtime it waits for the next call.
    ///
    /// # Errors
    /// 107 without a channel or key, for data of another form, or a message beyond its limit; 113 for a final message, or an
    /// `at` that is not its length; 111 for one message too many; 108 without history; 102 for an unknown namespace.
    pub async fn append(&self, request: AppendRequest) -> Result<AppendResult, ApiError> {
        self.measure_async(Method::Append, async |now| {
            let fragment = request.fragment()?;
            let AppendRequest { channel, key, .. } = request;
            let answer = self.node.channels().append(&channel, &key, Some(fragment), now);
            let appended = answer.await.map_err(ApiError::from)??;
            if let Some(wait) = appended.publish_after {
                publish_later(Arc::clone(&self.node), channel, key, wait);
            }
            let Appended { position, length, is_duplicate: duplicate, .. } = appended;
            let offset = position.offset;
            let epoch = position.epoch.to_string();
            Ok(AppendResult { offset, epoch, length, duplicate })
        })
        .await
    }
}

/// Publishes the text of a message that waits, after `wait`. There is at most one such task for each message.
fn publish_later(node: Arc<Node>, channel: String, key: String, wait: Duration) {
    let Ok(runtime) = Handle::try_current() else { return };
    runtime.spawn(async move {
        tokio::time::sleep(wait).await;
        // After a failure the text waits for the next call.
        let _ = node.channels().append(&channel, &key, None, Instant::now()).await;
    });
}

impl AppendRequest {
    fn fragment(&self) -> Result<Fragment, ApiError> {
        let Self { channel, key, data, append_field, at, is_final } = self;
        check_key(channel, key)?;
        let mut fragment = if append_field.is_empty() {
            let text = serde_json::from_slice(data)
                .map_err(|_| ApiError::BAD_REQUEST.because(NO_STRING))?;
            Fragment { text, head: "\"".to_owned(), ..Fragment::default() }
        } else {
            let mut json = serde_json::Deserializer::from_slice(data);
            let fields = json
                .deserialize_map(FieldsVisitor(append_field))
                .and_then(|fragment| json.end().map(|()| fragment));
            fields.map_err(|_| ApiError::BAD_REQUEST.because(NO_FIELD))?
        };
        (fragment.at, fragment.is_final) = (*at, *is_final);
        Ok(fragment)
    }
}

/// Splits an object into the text of one field, and all others.
struct FieldsVisitor<'a>(&'a str);

impl<'de> Visitor<'de> for FieldsVisitor<'_> {
    type Value = Fragment;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fragment, A::Error> {
        let mut fragment = Fragment { field: self.0.to_owned(), ..Fragment::default() };
        let put_name = |name: &str, head: &mut String| {
            head.push(if head.is_empty() { '{' } else { ',' });
            head.push_str(&String::from_utf8_lossy(&json_string(name)));
            head.push(':');
        };
        while let Some(name) = map.next_key::<String>()? {
            if name == self.0 {
                fragment.text = map.next_value()?;
            } else {
                put_name(&name, &mut fragment.head);
                fragment.head.push_str(map.next_value::<Box<RawValue>>()?.get());
                fragment.replaces_head = true;
            }
        }
        put_name(self.0, &mut fragment.head);
        fragment.head.push('"');
        Ok(fragment)
    }
}

impl From<AppendError> for ApiError {
    fn from(refusal: AppendError) -> Self {
        match refusal {
            AppendError::Final(length) => {
                Self::CONFLICT.because("the message is final, use another key; its length is").with_length(length)
            }
            AppendError::At(length) => Self::CONFLICT
                .because("at is not the length of the text, or the text differs from there; expected at").with_length(length),
            AppendError::OtherField => Self::BAD_REQUEST
                .because("append_field is not that of the message, expected the one of its first append"),
            AppendError::TooLong => Self::BAD_REQUEST
                .because("the message would be larger than append_message_size_max: end it by final, and go on with another key"),
            AppendError::TooMany => Self::TOO_MANY_REQUESTS
                .because("the channel has append_messages_max messages that are not final: end some by final"),
        }
    }
}

const NO_STRING: &str =
    "data is not a JSON string of whole characters, as it must be without append_field";
const NO_FIELD: &str =
    "data is not an object, or its field of append_field is not a string of whole characters";
