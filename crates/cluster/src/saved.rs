//! The knowledge of a node about the others, for the program that goes on as this node.
//! In: the table of nodes → out: a record; a record → the same table.
//! Uses: prost. Never: commands that wait for nodes; who gave them gets no answer any more.
//! Changed here: what a record has. A tag is never used for another meaning.

use std::time::Instant;

use prost::Message as _;

use crate::unacknowledged::ReceivedCommands;
use crate::{Cluster, CommandSender, NodeState, NodeTable, Peer};

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
}

/// The commands of another node that this one has executed, and which may come again.
#[derive(Clone, PartialEq, prost::Message)]
struct SenderRecord {
    #[prost(string, tag = "1")]
    uid: String,
    #[prost(uint64, repeated, tag = "2")]
    executed: Vec<u64>,
}

impl Cluster {
    /// The other nodes for another program.
    pub fn save(&self) -> Vec<u8> {
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
        };
        record.encode_to_vec()
    }

    /// Goes on with the nodes that another program saved. Returns `false`, and changes nothing, if they are not understood.
    pub fn take_over(&self, saved: &[u8], now: Instant) -> bool {
        let Ok(record) = ClusterRecord::decode(saved) else { return false };
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
        true
    }
}

#[cfg(test)]
mod tests;
