//! The commands of a long request: of `POST /api/stream` one JSON object a line, over gRPC messages, answered by one each, in their order.
//! In: pieces of a body → out: its lines; lines → their answers as JSON text.
//! Uses the commands of `batch` with an `id`; never a socket, never waits for input.
//! Changed here: the form of a line and of its answer. When a body is read is decided by the shell.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use fanwire_node::protocol::{AnyCase, without_halves};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::NO_METHOD;
use crate::method::batch::{Reply, take_method};
use crate::names::COMMAND_KEYS;
use crate::refusals::Named;
use crate::reply_budget::ReplyBudget;
use crate::{Api, ApiError, Command, KeyHolder, Outcome, protobuf, traced};

/// Splits a body into lines.
pub struct Lines {
    /// The beginning of a line whose end has not arrived.
    rest: BytesMut,
    /// Longest line in bytes.
    bytes_max: usize,
    /// The line is too long: everything up to its end is discarded.
    is_too_long: bool,
}

/// A line without its end, or a message of a gRPC stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Text(Bytes),
    /// The line is longer than allowed.
    TooLong,
    /// A `Command` in Protobuf, whose answer is a `Reply` behind the prefix of a gRPC message.
    Message(Bytes),
}

/// The form of an answer.
enum AnswerForm {
    /// A JSON object with the `id` of the command, and a line feed.
    Line(Option<Box<RawValue>>),
    Message,
}

impl Lines {
    /// Splits a body into lines of at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self { rest: BytesMut::new(), bytes_max, is_too_long: false }
    }

    /// Takes the next piece of the body. Returns the lines that it completes, without those that are blank. A line within
    /// the piece is not copied.
    pub fn push(&mut self, mut piece: Bytes) -> VecDeque<Line> {
        let mut lines = VecDeque::new();
        while let Some(end) = piece.iter().position(|byte| *byte == b'\n') {
            let part = piece.split_to(end + 1).slice(..end);
            lines.extend(self.complete(part));
        }
        if self.rest.len() + piece.len() > self.bytes_max {
            self.is_too_long = true;
        }
        if self.is_too_long {
            self.rest.clear();
        } else {
            self.rest.extend_from_slice(&piece);
        }
        lines
    }

    /// The end of the body. Returns the last line, if it has no line feed.
    pub fn end(&mut self) -> Option<Line> {
        self.complete(Bytes::new())
    }

    fn complete(&mut self, part: Bytes) -> Option<Line> {
        let bytes = self.rest.len() + part.len();
        if std::mem::take(&mut self.is_too_long) || bytes > self.bytes_max {
            self.rest.clear();
            return Some(Line::TooLong);
        }
        let line = if self.rest.is_empty() {
            part
        } else {
            self.rest.extend_from_slice(&part);
            self.rest.split().freeze()
        };
        (!line.trim_ascii().is_empty()).then_some(Line::Text(line))
    }
}

/// The command of a line.
pub(crate) struct StreamCommand {
    /// A JSON number or text, which the answer repeats.
    pub(crate) id: Option<Box<RawValue>>,
    pub(crate) command: Result<Command, ApiError>,
}

/// A command whose effects have begun.
enum Started<'a> {
    Done(Result<Outcome, ApiError>),
    Pending(Pin<Box<dyn Future<Output = Result<Outcome, ApiError>> + Send + 'a>>),
}

impl Api {
    /// Runs the commands of the first lines and returns their answers, in the order of the lines, each with a line feed, and
    /// the lines that are left when the answers have more than [`ANSWERS_BYTES_MAX`].
    ///
    /// A command is started after the one before it; at most [`IN_FLIGHT_MAX`] wait for a broker at the same time, and one
    /// that reads waits alone, because its answer may be large. A line that cannot be executed is answered with its error.
    /// Dropped when the peer has left, it starts no further command.
    pub async fn answer_lines(
        &self,
        lines: VecDeque<Line>,
        caller: &KeyHolder,
    ) -> (Vec<u8>, VecDeque<Line>) {
        self.answer_while(lines, caller, |_| true).await
    }

    /// As [`answer_lines`](Self::answer_lines), up to the first command that may take long, for a thread that must not be
    /// busy for long. That one is not begun.
    pub async fn answer_short_lines(
        &self,
        lines: VecDeque<Line>,
        caller: &KeyHolder,
    ) -> (Vec<u8>, VecDeque<Line>) {
        self.answer_while(lines, caller, Command::is_short).await
    }

    async fn answer_while(
        &self,
        mut lines: VecDeque<Line>,
        caller: &KeyHolder,
        is_wanted: impl Fn(&Command) -> bool,
    ) -> (Vec<u8>, VecDeque<Line>) {
        let mut answers = Vec::new();
        let mut in_flight = VecDeque::new();
        let budget = ReplyBudget::default();
        while answers.len() <= ANSWERS_BYTES_MAX
            && let Some(line) = lines.pop_front()
        {
            budget.pause().await;
            let before = answers.len();
            let (form, command) = decode(&line);
            if command.as_ref().is_ok_and(|command| !is_wanted(command)) {
                lines.push_front(line);
                break;
            }
            let command =
                command.and_then(|command| caller.admit(&self.node, command, Instant::now()));
            let reads = command.as_ref().is_ok_and(Command::is_read);
            let others_max = if reads { 0 } else { IN_FLIGHT_MAX - 1 };
            while in_flight.len() > others_max {
                answer_first(self, &mut in_flight, &mut answers, &caller.name).await;
            }
            let started = match command {
                Ok(command) => {
                    let name = |method: &str| format!("/api/stream {method}");
                    let span = traced::begin(self, &command, None, name);
                    let mut run = self.run(command);
                    if let Some(span) = span {
                        run = Box::pin(traced::record(span, run));
                    }
                    match poll_fn(|context| Poll::Ready(run.as_mut().poll(context))).await {
                        Poll::Ready(outcome) => Started::Done(outcome),
                        Poll::Pending => Started::Pending(run),
                    }
                }
                Err(error) => Started::Done(Err(error)),
            };
            in_flight.push_back((form, started));
            while matches!(in_flight.front(), Some((_, Started::Done(_))))
                || reads && !in_flight.is_empty()
            {
                answer_first(self, &mut in_flight, &mut answers, &caller.name).await;
            }
            budget.hold(answers.len() - before);
        }
        while !in_flight.is_empty() {
            answer_first(self, &mut in_flight, &mut answers, &caller.name).await;
        }
        (answers, lines)
    }
}

/// Waits for the first command and writes its answer.
async fn answer_first(
    api: &Api,
    in_flight: &mut VecDeque<(AnswerForm, Started<'_>)>,
    answers: &mut Vec<u8>,
    key: &str,
) {
    let Some((form, started)) = in_flight.pop_front() else { return };
    let outcome = match started {
        Started::Done(outcome) => outcome,
        Started::Pending(run) => run.await,
    };
    if let Err(error) = &outcome {
        api.log_error("stream", error, Named::default, None, key);
    }
    let reply = outcome.map_or_else(|error| Reply::Error { error }, Reply::Outcome);
    let begin = match form {
        AnswerForm::Message => return protobuf::framed_reply(&reply, answers),
        AnswerForm::Line(Some(id)) => {
            answers.extend_from_slice(b"{\"id\":");
            answers.extend_from_slice(id.get().as_bytes());
            answers.push(b',');
            Some(answers.len())
        }
        AnswerForm::Line(None) => None,
    };
    serde_json::to_writer(&mut *answers, &reply).expect("replies have string keys");
    if let Some(begin) = begin {
        answers.remove(begin); // the opening brace of the reply
    }
    answers.push(b'\n');
}

/// Decodes a line. An error of a parameter is 107, like other bad lines; its answer has the `id` if the line is JSON.
fn decode(line: &Line) -> (AnswerForm, Result<Command, ApiError>) {
    let StreamCommand { id, command } = match line {
        Line::Text(line) => decode_text(str::from_utf8(line).unwrap_or_default()),
        Line::TooLong => StreamCommand { id: None, command: Err(TOO_LONG) },
        Line::Message(bytes) => {
            let invalid = ApiError::BAD_REQUEST.because("the message is not a valid Command");
            return (AnswerForm::Message, protobuf::command(bytes).unwrap_or(Err(invalid)));
        }
    };
    (AnswerForm::Line(id), command)
}

/// Decodes the text of a line, as [`decode`] does.
pub(crate) fn decode_text(text: &str) -> StreamCommand {
    let invalid = ApiError::BAD_REQUEST.because("the line is not a JSON object with one method");
    let refused = |id| StreamCommand { id, command: Err(invalid) };
    let read = |text: &str| serde_json::from_str::<AnyCase<StreamCommand>>(text);
    // Backends that cut a text inside a character send half a surrogate pair, which serde_json refuses.
    let decoded =
        read(text).or_else(|error| without_halves(text).map_or(Err(error), |whole| read(&whole)));
    decoded.map(|AnyCase(command)| command).unwrap_or_else(|_| {
        let only_id = serde_json::from_str::<AnyCase<OnlyId>>(text);
        refused(only_id.ok().and_then(|AnyCase(OnlyId(id))| id))
    })
}

/// Whether an `id` is a number or a text.
fn is_id(value: &RawValue) -> bool {
    matches!(value.get().as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'))
}

impl<'de> Deserialize<'de> for StreamCommand {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("Command", &COMMAND_KEYS, StreamCommandVisitor)
    }
}

struct StreamCommandVisitor;

impl<'de> Visitor<'de> for StreamCommandVisitor {
    type Value = StreamCommand;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object with one method")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StreamCommand, A::Error> {
        let mut id = None;
        let mut command = Err(NO_METHOD);
        let mut has_wrong_id = false;
        while let Some(name) = map.next_key::<String>()? {
            if name == "id" {
                let value: Box<RawValue> = map.next_value()?;
                has_wrong_id |= !is_id(&value) || id.is_some();
                id = Some(value).filter(|_| !has_wrong_id);
            } else {
                take_method(&name, &mut map, &mut command)?;
            }
        }
        if has_wrong_id {
            command = Err(ApiError::BAD_REQUEST.because("id is not one number or text"));
        }
        Ok(StreamCommand { id, command })
    }
}

/// The `id` of a line whose command is wrong.
struct OnlyId(Option<Box<RawValue>>);

impl<'de> Deserialize<'de> for OnlyId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("OnlyId", &["id"], OnlyIdVisitor)
    }
}

struct OnlyIdVisitor;

impl<'de> Visitor<'de> for OnlyIdVisitor {
    type Value = OnlyId;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OnlyId, A::Error> {
        let mut id = None;
        while let Some(name) = map.next_key::<String>()? {
            if name == "id" {
                id = Some(map.next_value::<Box<RawValue>>()?).filter(|value| is_id(value));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(OnlyId(id))
    }
}

const TOO_LONG: ApiError =
    ApiError::BAD_REQUEST.because("the line is longer than http_api.max_request_body_size");

/// Bytes of answers above which they are sent before further commands run: 1 MiB.
pub(crate) const ANSWERS_BYTES_MAX: usize = 1 << 20;

/// Commands of one stream that wait for a broker at the same time.
const IN_FLIGHT_MAX: usize = 1024;

#[cfg(test)]
mod tests;
