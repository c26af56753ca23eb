//! Users of a node: their connections on all nodes, and their status.
//! In: user ids, a text → out: records of connections, statuses, answers to surveys of other nodes.
//! Uses: the cluster, the registry, the router, the table of statuses. Never: sessions; `hub/connections.rs` describes them.
//! Change here: what all nodes tell of a user.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use fanwire_broker::Answer;
use fanwire_cluster::{
    Cluster, ConnectionPage, ConnectionSelector, Connections, ControlCommand, UserStatusChange,
    UserSurvey,
};
use fanwire_protocol::ErrorCode;

use crate::connection_list::ConnectionList;
use crate::deliver::BroadcastRouter;
use crate::notice::Notice;
use crate::registry::{Registry, ShardId};
use crate::user_statuses::{UserStatus, UserStatuses};

/// The users of all nodes, as this node knows and asks for them.
pub struct Users {
    pub(super) registry: Arc<Registry>,
    pub(super) router: Arc<BroadcastRouter>,
    pub(super) cluster: Arc<Cluster>,
    pub(super) user_statuses: UserStatuses,
}

impl Users {
    /// The connections of `target` on all nodes, by client id; more than [`CONNECTIONS_MAX`](crate::CONNECTIONS_MAX) of them
    /// are incomplete.
    ///
    /// # Errors
    /// Those of [`Channels::list`](super::Channels::list), except 107.
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
                    all.extend(own.connections);
                    all
                }));
            }),
            Err(error) => promise.keep(Err(error)),
        });
        answer
    }

    /// A page of the connections of a node, of all users, from `start` on: 0 or [`ConnectionPage::next`].
    ///
    /// # Errors
    /// 104 for a node that is not there; those of [`Channels::list`](super::Channels::list), except 107.
    pub fn page(
        &self,
        node: &str,
        start: u64,
        limit: u32,
        now: Instant,
    ) -> Answer<ConnectionPage, ErrorCode> {
        if node == self.cluster.uid() {
            return self.own_page(start, limit);
        }
        self.cluster.page(node, start, limit, now)
    }

    /// A page from one shard. Its number is in the upper half of the start, the connection index in the lower one.
    fn own_page(&self, start: u64, limit: u32) -> Answer<ConnectionPage, ErrorCode> {
        let (shard, from) = (start >> 32, start as u32);
        let shards = self.router.shard_count() as u64;
        if shard >= shards {
            return Answer::now(Ok(ConnectionPage::default()));
        }
        let (promise, answer) = Answer::later();
        let list = Arc::new(ConnectionList::new(promise));
        self.router.inbox(ShardId(shard as u16)).push(Notice::ListPage { from, limit, list });
        answer.map(move |page: Result<ConnectionPage, ErrorCode>| {
            page.map(|page| ConnectionPage {
                next: match page.next {
                    0 if shard + 1 < shards => (shard + 1) << 32,
                    0 => 0,
                    index => shard << 32 | index,
                },
                ..page
            })
        })
    }

    pub(super) fn own_connections(
        &self,
        target: ConnectionSelector,
    ) -> Answer<ConnectionPage, ErrorCode> {
        let (promise, answer) = Answer::later();
        let list = Arc::new(ConnectionList::new(promise));
        self.router.send_to_all_shards(&Notice::ListConnections { target, list });
        answer
    }

    /// Answers a survey of another node.
    pub(super) fn answer_users(&self, to: String, survey: UserSurvey) {
        let UserSurvey { number, users, page_limit, page_start } = survey;
        match page_limit {
            0 => self.cluster.answer(&to, number, self.own_users(&users)),
            limit => self.answer_connections(to, number, self.own_page(page_start, limit)),
        }
    }

    /// Answers a survey of another node, when all shards have listed their connections.
    pub(super) fn answer_connections(
        &self,
        to: String,
        survey: u64,
        own: Answer<ConnectionPage, ErrorCode>,
    ) {
        let cluster = Arc::clone(&self.cluster);
        own.then(move |own| {
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

    /// Sets the status of users on all nodes; they were active at the Unix second `unix`.
    ///
    /// # Errors
    /// 106 when the table has no room; 100 when the change did not reach all nodes.
    pub fn update_status(
        &self,
        users: Vec<String>,
        state: String,
        unix: u64,
    ) -> Answer<(), ErrorCode> {
        if !self.user_statuses.has_room(users.len()) {
            return Answer::now(Err(ErrorCode::LIMIT_EXCEEDED));
        }
        self.send_status(UserStatusChange { users, state, active: unix })
    }

    /// Removes the status of users on all nodes.
    ///
    /// # Errors
    /// 100 when the change did not reach all nodes.
    pub fn delete_status(&self, users: Vec<String>) -> Answer<(), ErrorCode> {
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

    /// The status of each user at the Unix second `unix`, in the order of `users`.
    ///
    /// # Errors
    /// Those of [`Channels::list`](super::Channels::list), except 107.
    pub fn statuses(
        &self,
        users: Vec<String>,
        (now, unix): (Instant, u64),
    ) -> Answer<Vec<UserStatus>, ErrorCode> {
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
