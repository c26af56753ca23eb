//! Users who are online: those with a connection to some node.
//! In: user ids → out: how many connections each has; the statuses of users with it.
//! Uses: the registry, the store of statuses. Never: shards, sessions.
//! Changed here: what makes a user online. `node/users.rs` keeps statuses.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fanwire_broker::{Answer, UserStatus};
use fanwire_cluster::{Question, SurveyKind, Surveyed};
use fanwire_protocol::ErrorCode;

use super::Ask;
use crate::node::Node;
use crate::node::channels::temporary;

/// Asks how many connections users have, at least one.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct UserQuestion {
    #[prost(string, repeated, tag = "2")]
    pub users: Vec<String>,
}

/// Those of the users that have connections, with their number.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct UserCounts {
    #[prost(btree_map = "string, uint32", tag = "2")]
    pub connections: BTreeMap<String, u32>,
}

impl Question for UserQuestion {
    type Answer = UserCounts;
    /// A [`PageQuestion`](super::PageQuestion) has the same tag and no users.
    const TAG: u32 = 14;
    const KIND: SurveyKind = SurveyKind::Users;

    fn is_asked(&self) -> bool {
        !self.users.is_empty()
    }

    fn merge(&self, all: &mut UserCounts, one: UserCounts, _: Duration) {
        for (user, connections) in one.connections {
            *all.connections.entry(user).or_default() += connections;
        }
    }
}

impl Ask for UserQuestion {
    const IS_FOR_SHARDS: bool = false;

    fn begin(&self, node: &Node, _: Instant) -> Result<UserCounts, ErrorCode> {
        let registry = node.registry();
        let counted = self.users.iter().map(|user| (user.clone(), registry.connections_of(user)));
        let connections = counted.filter(|(_, connections)| *connections > 0).collect();
        Ok(UserCounts { connections })
    }
}

impl Node {
    /// The status of each user, in the order of `users`. Those with a connection to some node are online now.
    ///
    /// # Errors
    /// 100 when the store failed; those of [`ask`](Self::ask).
    pub fn user_statuses(
        &self,
        users: Vec<String>,
        now: Instant,
    ) -> Answer<Surveyed<Vec<UserStatus>>, ErrorCode> {
        let unix = self.unix(now);
        let online = self.ask(UserQuestion { users: users.clone() }, now);
        let known = self.users.known_statuses(&users, unix).map_err(temporary);
        let (promise, answer) = Answer::later();
        known.then(move |known| match known {
            Ok(known) => online.then(move |online| {
                promise.keep(online.map(|online| {
                    online.map(|UserCounts { connections }| {
                        let users = users.iter().zip(known);
                        let status = |(user, status): (&String, UserStatus)| {
                            let is_online = connections.contains_key(user);
                            if is_online { UserStatus { online: unix, ..status } } else { status }
                        };
                        users.map(status).collect()
                    })
                }));
            }),
            Err(error) => promise.keep(Err(error)),
        });
        answer
    }
}
