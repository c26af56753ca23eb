//! Questions of one node to the others: what a question is, and how questions and answers travel.
//! In: a question or an answer → out: its message; and back, `None` for garbage.
//! Uses: prost. Never: knows a question; `node/questions/` has them, one file each.
//! Changed here: the form of all questions. `survey.rs` waits for the answers.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use prost::Message as _;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::message::NodeMessage;

/// A question to all nodes, or to one. A node that does not know it sends no answer.
///
/// Questions and answers are Protobuf messages without a field 1: on the way between nodes that field holds the number of the
/// survey.
pub trait Question: prost::Message + Clone + Default + 'static {
    /// The answer of one node, and of several ones after [`merge`](Self::merge).
    type Answer: prost::Message + Default + 'static;
    /// Number of the field that holds the question in a message between nodes. It stays for ever.
    const TAG: u32;
    /// The label of metrics.
    const KIND: SurveyKind;

    /// Whether a message with the tag is this question. Some older questions share a tag and differ in their fields.
    fn is_asked(&self) -> bool {
        true
    }

    /// Adds the answer of another node, which came after `round_trip`.
    fn merge(&self, all: &mut Self::Answer, one: Self::Answer, round_trip: Duration);
}

/// The subject of a question, as a label of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurveyKind {
    Channels,
    Users,
    Connections,
    Diagnostics,
}

impl SurveyKind {
    /// Every kind, in the order of the enum.
    pub const ALL: [Self; 4] = [Self::Channels, Self::Users, Self::Connections, Self::Diagnostics];

    /// The label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Channels => "channels",
            Self::Users => "users",
            Self::Connections => "connections",
            Self::Diagnostics => "diagnostics",
        }
    }
}

/// A question that another node asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedQuestion {
    /// Uid of the node that asks.
    pub(crate) from: String,
    tag: u32,
    pub(crate) survey: u64,
    question: Bytes,
}

impl ReceivedQuestion {
    /// The question in a message without a command: its first field after the sender.
    pub(crate) fn in_message(from: String, message: &[u8]) -> Option<Self> {
        let mut rest = message.get(1..)?;
        while !rest.is_empty() {
            let (tag, wire_type) = decode_key(&mut rest).ok()?;
            if tag > 1 && wire_type == WireType::LengthDelimited {
                let length = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
                let question = Bytes::copy_from_slice(rest.get(..length)?);
                let survey = survey_number(&question)?;
                return Some(Self { from, tag, survey, question });
            }
            skip_field(wire_type, tag, &mut rest, DecodeContext::default()).ok()?;
        }
        None
    }

    /// The question, if it is of this type.
    pub fn decoded<Q: Question>(&self) -> Option<Q> {
        if self.tag != Q::TAG {
            return None;
        }
        let question = Q::decode(self.question.clone()).ok()?;
        question.is_asked().then_some(question)
    }
}

/// The message with a question of this node.
pub(crate) fn encoded<Q: Question>(from: &str, survey: u64, question: &Q) -> Bytes {
    let sender = NodeMessage { from: from.to_owned(), command: None, number: 0 }.encoded();
    let mut message = BytesMut::from(sender);
    prost::encoding::bytes::encode(Q::TAG, &numbered(survey, question), &mut message);
    message.freeze()
}

/// A question or an answer with the number of its survey.
pub(crate) fn numbered(survey: u64, message: &impl prost::Message) -> Bytes {
    let mut bytes = BytesMut::new();
    prost::encoding::uint64::encode(1, &survey, &mut bytes);
    message.encode(&mut bytes).expect("a buffer grows");
    bytes.freeze()
}

/// The number of the survey of a question or an answer.
pub(crate) fn survey_number(message: &[u8]) -> Option<u64> {
    Numbered::decode(message).ok().map(|numbered| numbered.survey)
}

/// The field that every question and every answer has on the way.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
struct Numbered {
    #[prost(uint64, tag = "1")]
    survey: u64,
}
