//! The answer to one command: its result or its error, under a name each.
//! In: the outcome of a command. Out: a value that serialises, as JSON over HTTP and as a response message over gRPC.
//! Uses serde only; never a status.
//! Statuses of errors are rows of `ApiError`; the answers to a batch live in `method/batch.rs`.

use serde::Serialize;

use crate::{ApiError, Outcome};

/// An `Outcome` without the name of its method.
pub(crate) struct Bare<'a>(&'a Outcome);

impl Serialize for Bare<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize_bare(to)
    }
}

/// `{"result":{…}}` or `{"error":{…}}`.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Envelope<'a> {
    Result(Bare<'a>),
    Error(ApiError),
}

impl<'a> Envelope<'a> {
    pub(crate) fn of(outcome: &'a Result<Outcome, ApiError>) -> Self {
        match outcome {
            Ok(outcome) => Self::Result(Bare(outcome)),
            Err(error) => Self::Error(*error),
        }
    }
}
