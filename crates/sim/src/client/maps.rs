//! A client's copy of a map channel: pages of entries, pages of changes, then changes as they happen (protocol §27).
//! In: results of subscribes, publications → out: the next request, the entries.
//! Pure. Never: whether a copy is right; that is the checkers' question.
//! Changed here: what an SDK does about a map.

use fanwire_protocol::{Publication, SubscribeRequest, SubscribeResult};

use super::frames::Claim;
use crate::truth::{MapEntries, number_of};

/// The copy, and how far a subscribe has read.
#[derive(Clone, Debug, Default)]
pub struct MapCopy {
    pub entries: MapEntries,
    next: MapPage,
}

/// What the next request asks for.
#[derive(Clone, Debug, Default)]
enum MapPage {
    /// Where the subscription was before, or the first page of entries.
    #[default]
    Begin,
    Entries(String, Claim),
    Changes(Claim),
}

impl MapCopy {
    /// Adds to a request what the client asks for next; `claim` is where it was before.
    pub(super) fn ask(&self, request: &mut SubscribeRequest, claim: Option<&Claim>) {
        let first = Claim::default();
        let (phase, at) = match (&self.next, claim) {
            (MapPage::Begin, Some(claim)) => (STREAM, claim),
            (MapPage::Begin, None) => (STATE, &first),
            (MapPage::Entries(cursor, first), _) => {
                request.cursor = cursor.clone();
                (STATE, first)
            }
            (MapPage::Changes(at), _) => (STREAM, at),
        };
        request.r#type = MAP;
        request.phase = phase;
        request.offset = at.offset;
        request.epoch = at.epoch.clone();
    }

    /// Applies a page or the last result. Returns whether the subscription is live.
    pub(super) fn read(&mut self, result: &SubscribeResult) -> bool {
        result.state.iter().chain(&result.publications).for_each(|it| self.apply(it));
        let at = Claim { offset: result.offset, epoch: result.epoch.clone() };
        self.next = match result.phase {
            STATE if !result.cursor.is_empty() => MapPage::Entries(result.cursor.clone(), at),
            STATE | STREAM => MapPage::Changes(at),
            _ => MapPage::Begin,
        };
        matches!(self.next, MapPage::Begin)
    }

    /// A publication sets its key or removes it.
    pub(super) fn apply(&mut self, publication: &Publication) {
        if publication.removed {
            self.entries.remove(&publication.key);
        } else {
            let number = number_of(publication).unwrap_or_default();
            self.entries.insert(publication.key.clone(), number);
        }
    }

    /// The subscription ended. Returns whether its copy can be continued: one that was being read begins again.
    pub(super) fn end(&mut self) -> bool {
        let is_whole = matches!(self.next, MapPage::Begin);
        if !is_whole {
            *self = Self::default();
        }
        is_whole
    }
}

/// Type of subscribes and publishes.
pub(super) const MAP: i32 = 1;
const STREAM: i32 = 1;
const STATE: i32 = 2;
