//! Methods of the node about users: their connections on all nodes, and their status.
//! In: user ids, a text → out: records of connections, statuses, answers to surveys of other nodes.
//! Uses: the cluster, the registry, the router, the table of statuses. Never: sessions; `hub/connections.rs` describes them.
//! Change here: what all nodes tell of a user.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use fanwire_broker::Answer;
use fanwire_cluster::{ConnectionSelector, Connections, ControlCommand, UserStatusChange};
use fanwire_protocol::ErrorCode;

use super::Node;
use crate::connection_list::ConnectionList;
use crate::notice::Notice;
use crate::user_statuses::UserStatus;

impl Node {
    /// The connections of `target` on all nodes, by client id; more than [`CONNECTIONS_MAX`](crate::CONNECTIONS_MAX) of them
    /// are incomplete.
    ///
    /// # Errors
    /// Those of [`channels`](Self::channels), except 107.
    pub fn connections(
        &self,
        target: ConnectionSelector,
        now: Instant,
    ) -> Answer<Connections, ErrorCode> {
        let others = self.cluster.connections(&target, now);
        let own = self.own_connections(target);
        let (promise, answer) = Answer::later();
        own.then(move |own| match own {
            Ok(own) => others.then(move |others| {
                promise.keep(others.map(|mut all| {
                    all.extend(own);
                    all
                }));
            }),
            Err(error) => promise.keep(Err(error)),
        });
        answer
    }

    fn own_connections(&self, target: ConnectionSelector) -> Answer<Connections, ErrorCode> {
        let (promise, answer) = Answer::later();
        let list = Arc::new(ConnectionList::new(promise));
        self.router.send_to_all_shards(&Notice::ListConnections { target, list });
        answer
    }

    /// Answers a survey of another node.
    pub(super) fn answer_connections(&self, to: String, survey: u64, target: ConnectionSelector) {
        let cluster = Arc::clone(&self.cluster);
        self.own_connections(target).then(move |own| {
            if let Ok(own) = own {
                cluster.answer_connections(&to, survey, own);
            }
        });
    }

    /// Those of the users that have connections to this node, with their numbers.
    pub(super) fn own_users(&self, users: &[String]) -> BTreeMap<String, u32> {
        let counted = users.iter().map(|user| (user.clone(), self.registry.connections_of(user)));
        counted.filter(|(_, connections)| *connections > 0).collect()
    }

    /// Sets the status of users on all nodes; they were active now.
    ///
    /// # Errors
    /// 106 when the table has no room; 100 when the change did not reach all nodes.
    pub fn update_user_status(
        &self,
        users: Vec<String>,
        state: String,
        now: Instant,
    ) -> Answer<(), ErrorCode> {
        if !self.user_statuses.has_room(users.len()) {
            return Answer::now(Err(ErrorCode::LIMIT_EXCEEDED));
        }
        self.send_status(UserStatusChange { users, state, active: self.clock.unix(now) })
    }

    /// Removes the status of users on all nodes.
    ///
    /// # Errors
    /// 100 when the change did not reach all nodes.
    pub fn delete_user_status(&self, users: Vec<String>) -> Answer<(), ErrorCode> {
        self.send_status(UserStatusChange { users, ..UserStatusChange::default() })
    }

    fn send_status(&self, change: UserStatusChange) -> Answer<(), ErrorCode> {
        self.apply_status(&change);
        self.cluster.command(ControlCommand::UserStatus(change))
    }

    /// Makes a change on this node.
    pub(super) fn apply_status(&self, change: &UserStatusChange) {
        for user in &change.users {
            match change.active {
                0 => self.user_statuses.remove(user),
                active if self.user_statuses.has_room(1) => {
                    self.user_statuses.set(user, active, &change.state);
                }
                _ => {}
            }
        }
    }

    /// The status of each user, in the order of `users`.
    ///
    /// # Errors
    /// Those of [`channels`](Self::channels), except 107.
    pub fn user_statuses(
        &self,
        users: Vec<String>,
        now: Instant,
    ) -> Answer<Vec<UserStatus>, ErrorCode> {
        let unix = self.clock.unix(now);
        let known: Vec<_> = users.iter().map(|user| self.user_statuses.get(user, unix)).collect();
        let online = self.cluster.count_users(users.clone(), self.own_users(&users), now);
        online.map(move |online| {
            let online = online?;
            let status = |(user, status): (String, UserStatus)| UserStatus {
                is_online: online.contains_key(&user),
                ..status
            };
            Ok(users.into_iter().zip(known).map(status).collect())
        })
    }
}
