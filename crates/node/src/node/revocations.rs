//! Blocks and revocations of the server API: changes of the table on every node, and their effect on connections.
//! In: users, token ids, times → out: table entries, notices in every inbox, commands for other nodes.
//! Uses: the table, `router`, the cluster, the clock. Never: sessions; `hub/revocations.rs` compares them with the table.
//! Change here: checks before a change, and the order: first the table, then the shards.

use std::time::Instant;

use fanwire_broker::Answer;
use fanwire_cluster::{ConnectionSelector, ControlCommand, RevocationChange, RevocationKind};
use fanwire_protocol::{Disconnect, ErrorCode};

use super::Node;
use crate::notice::Notice;
use crate::revocation::{RevocationTable, Subject, TableFull};

/// A change of blocks and revocations that was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevocationError {
    /// It would end in the past.
    HasEnded,
    /// The table has a million entries.
    TableFull,
}

impl Node {
    /// Makes a change here and on all other nodes. A later change replaces an earlier one of the same subject.
    /// Connections and subscriptions that it forbids end: 3507 for a blocked user, 3005 and 2501 for a token.
    ///
    /// # Errors
    /// A change that was not made; 100 in the answer when it was made here, but did not reach all nodes.
    pub fn revoke(
        &self,
        kind: RevocationKind,
        change: RevocationChange,
        now: Instant,
    ) -> Result<Answer<(), ErrorCode>, RevocationError> {
        let change = RevocationChange { kind: kind.into(), ..change };
        if change.expire_at != 0 && change.expire_at <= self.clock.unix(now) {
            return Err(RevocationError::HasEnded);
        }
        self.apply_revocation(&change).map_err(|TableFull| RevocationError::TableFull)?;
        Ok(self.cluster.command(ControlCommand::Revocation(change)))
    }

    /// Makes a change on this node.
    pub(super) fn apply_revocation(&self, change: &RevocationChange) -> Result<(), TableFull> {
        let RevocationChange { subject, channel, expire_at, issued_before, .. } = change;
        match change.kind() {
            RevocationKind::None => {}
            RevocationKind::BlockUser => {
                self.revocations.insert(Subject::User(subject), 0, *expire_at)?;
                let target =
                    ConnectionSelector { user: subject.clone(), ..ConnectionSelector::default() };
                let disconnect = Disconnect::PERMISSION_DENIED;
                self.router.send_to_all_shards(&Notice::Disconnect { target, disconnect });
            }
            RevocationKind::UnblockUser => self.revocations.remove(Subject::User(subject)),
            RevocationKind::RevokeToken => {
                self.revocations.insert(Subject::Token(subject), 0, *expire_at)?;
                self.router.send_to_all_shards(&Notice::CheckTokens { user: None, from: 0 });
            }
            RevocationKind::InvalidateTokens => {
                let tokens = Subject::TokensOf(subject, channel.as_deref());
                self.revocations.insert(tokens, *issued_before, *expire_at)?;
                let user = Some(subject.as_str().into());
                self.router.send_to_all_shards(&Notice::CheckTokens { user, from: 0 });
            }
        }
        Ok(())
    }

    /// Warns that a change of another node did not fit.
    pub(super) fn log_full_table(&self, now: Instant) {
        if let Some(repeats) = self.log_throttle.record("revocations", now) {
            tracing::warn!(
                "the table of blocks and revocations is full: a change of another node was not made{repeats}"
            );
        }
    }

    /// Blocked users and revoked tokens.
    pub(crate) fn revocations(&self) -> &RevocationTable {
        &self.revocations
    }

    /// Unix time in seconds at an instant.
    pub fn unix(&self, now: Instant) -> u64 {
        self.clock.unix(now)
    }
}
