//! The knowledge of a node about the others, for the program that goes on as this node.
//! In: the table of nodes → out: a record; a record → the same table, if both programs know the same list of blocks.
//! Uses: prost. Never: commands that wait for nodes; who gave them gets no answer any more.
//! Changed here: what a record has. A tag is never used for another meaning.

use std::time::Instant;

use fanwire_protocol::StreamPosition;
use prost::Message as _;

use crate::unacknowledged::ReceivedCommands;
use crate::{Cluster, CommandSender, NodeState, NodeTable, Peer, RebalanceRecord};

#[derive(Clone, PartialEq, prost::Message)]
struct ClusterRecord {
    #[prost(message, repeated, tag = "1")]
    peers: Vec<NodeState>,
    #[prost(bool, tag = "2")]
    knows_others: bool,
    /// The number of the last command, after which other nodes expect the next one.
    #[prost(uint64, tag = "3")]
    last_command: u64,
    /// The number of the last survey, whose answers may still come.
    #[prost(uint64, tag = "4")]
    last_survey: u64,
    #[prost(message, repeated, tag = "5")]
    senders: Vec<SenderRecord>,
    /// The position up to which the old program has the list of blocks and revocations.
    #[prost(message, optional, tag = "6")]
    revocations: Option<StreamPosition>,
    #[prost(message, optional, tag = "7")]
    rebalance: Option<RebalanceRecord>,
}

/// The commands of another node that this one has executed, and which may come again.
#[derive(Clone, PartialEq, prost::Message)]
struct SenderRecord {
    #[prost(string, tag = "1")]
    uid: String,
    #[prost(uint64, repeated, tag = "2")]
    executed: Vec<u64>,
}

/// Why a program does not go on with what another one knew of other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeersError {
    #[error("what the old program knows of other nodes is not understood")]
    NotUnderstood,
    /// The list of blocks and revocations is another one than that of the old program, which knows what it lacks.
    #[error(
        "Redis has lost blocks and revocations, which this server stores again: upgrade in some seconds"
    )]
    OtherRevocations,
}

impl Cluster {
    /// Returns the other nodes for another program, with the rebalance of this one and the position up to which it has the list of
    /// blocks and revocations.
    pub fn save(&self, revocations: Option<StreamPosition>, rebalance: RebalanceRecord) -> Vec<u8> {
        let table = self.table.lock();
        let executed = table.senders.iter().map(|(uid, sender)| SenderRecord {
            uid: uid.clone(),
            executed: sender.executed.numbers().collect(),
        });
        let record = ClusterRecord {
            peers: table.peers.values().map(|peer| peer.state.clone()).collect(),
            knows_others: table.knows_others,
            last_command: table.commands.last(),
            last_survey: table.last_survey,
            senders: executed.collect(),
            revocations,
            rebalance: Some(rebalance),
        };
        record.encode_to_vec()
    }

    /// Goes on with the nodes that another program saved. This one has the list of blocks and revocations up to `own`. Returns the
    /// rebalance of the other one.
    ///
    /// # Errors
    /// Those of a record that does not fit. Then nothing has changed.
    pub fn take_over(
        &self,
        saved: &[u8],
        own: Option<&StreamPosition>,
        now: Instant,
    ) -> Result<RebalanceRecord, PeersError> {
        let record = ClusterRecord::decode(saved).map_err(|_| PeersError::NotUnderstood)?;
        // An empty list has no epoch yet, and nothing that could be lost.
        let known = record.revocations.filter(|known| !known.epoch.is_empty());
        if known.is_some_and(|known| own.is_none_or(|own| own.epoch != known.epoch)) {
            return Err(PeersError::OtherRevocations);
        }
        let mut table = self.table.lock();
        let NodeTable { peers, senders, commands, .. } = &mut *table;
        for state in record.peers {
            peers.insert(state.uid.clone(), Peer { state, received_at: now });
        }
        commands.go_on_after(record.last_command);
        for SenderRecord { uid, executed } in record.senders {
            let executed = ReceivedCommands::of(executed);
            senders.insert(uid, CommandSender { received_at: now, executed });
        }
        table.knows_others = record.knows_others;
        table.last_survey = record.last_survey;
        Ok(record.rebalance.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
