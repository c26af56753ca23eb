//! Users of a node: their connections on all nodes, and their status.
//! In: user ids, a text → out: records of connections, statuses, answers to surveys of other nodes.
//! Uses: the cluster, the registry, the router, the store of statuses. Never: sessions; `hub/connections.rs` describes them.
//! Change here: what all nodes tell of a user.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use fanwire_broker::{
    Answer, BrokerError, MemoryUserStatuses, UserStatus, UserStatusChange, UserStatusStore,
};
use fanwire_cluster::{
    Cluster, ConnectionList, ConnectionPage, ConnectionRange, ConnectionSelector, Connections,
    Surveyed, UserSurvey,
};
use fanwire_policy::CurrentSettings;
use fanwire_protocol::ErrorCode;

use super::channels::temporary;
use crate::deliver::BroadcastRouter;
use crate::notice::Notice;
use crate::registry::{Registry, ShardId};

/// The users of all nodes, as this node knows and asks for them.
pub struct Users {
    pub(super) settings: Arc<CurrentSettings>,
    pub(super) registry: Arc<Registry>,
    pub(super) router: Arc<BroadcastRouter>,
    pub(super) cluster: Arc<Cluster>,
    pub(super) node_name: String,
    pub(super) user_statuses: OnceLock<Arc<dyn UserStatusStore>>,
}

impl Users {
    /// The connections of `target` on all nodes that are in `range`, in the order of client ids. One more than its limit says
    /// that there are more.
    ///
    /// A connection that exists during a whole series of ranges, each after the last one of the range before, is in exactly
    /// one of them.
    ///
    /// # Errors
    /// 111 when too many surveys run.
    pub fn connections(
        &self,
        target: ConnectionSelector,
        range: ConnectionRange,
        now: Instant,
    ) -> Answer<Surveyed<Connections>, ErrorCode> {
        let others = self.cluster.connections(&target, &range, now);
        let own = self.own_connections(target, range.clone());
        let (promise, answer) = Answer::later();
        own.then(move |own| match own {
            Ok(own) => others.then(move |others| {
                promise.keep(others.map(|mut all| {
                    all.found.extend(own.connections);
                    range.cut(&mut all.found);
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
    /// 104 for a node that is not there; 111 when too many surveys run.
    pub fn page(
        &self,
        node: &str,
        start: u64,
        limit: u32,
        now: Instant,
    ) -> Answer<Surveyed<ConnectionPage>, ErrorCode> {
        if node == self.cluster.uid() {
            let own = self.own_page(start, limit);
            return own.map(|own| own.map(|found| Surveyed { found, missing: Vec::new() }));
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
        let all = ConnectionRange { limit: limit as usize, ..ConnectionRange::default() };
        let list = Arc::new(ConnectionList::new(all, promise));
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
        range: ConnectionRange,
    ) -> Answer<ConnectionPage, ErrorCode> {
        let (promise, answer) = Answer::later();
        let list = Arc::new(ConnectionList::new(range, promise));
        self.router.send_to_all_shards(&Notice::ListConnections { target, list });
        let node_name = self.node_name.clone();
        answer.map(move |own: Result<ConnectionPage, ErrorCode>| {
            own.map(|mut page| {
                page.connections.values_mut().for_each(|record| record.node = node_name.clone());
                page
            })
        })
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

    /// Keeps the statuses of users in `store`; before the first connection, and once. Without it they are in memory.
    ///
    /// # Panics
    /// At the second call.
    pub fn keep_statuses_in(&self, store: Arc<dyn UserStatusStore>) {
        assert!(self.user_statuses.set(store).is_ok(), "statuses are in one store");
    }

    fn status_store(&self) -> &dyn UserStatusStore {
        self.user_statuses.get_or_init(|| Arc::new(MemoryUserStatuses::default())).as_ref()
    }

    /// Records that users are active at the Unix second `unix`, with a text of the application; `None` keeps the earlier text.
    ///
    /// # Errors
    /// 106 when the store has no room; 100 when it failed.
    pub fn update_status(
        &self,
        users: &[String],
        state: Option<String>,
        unix: u64,
    ) -> Answer<(), ErrorCode> {
        let active = Some(unix);
        let state = state.map(String::into_boxed_str);
        self.change_status(users, UserStatusChange { active, state, ..Default::default() }, unix)
            .map_err(|error| match error {
                BrokerError::Full => ErrorCode::LIMIT_EXCEEDED,
                other => temporary(other),
            })
    }

    fn change_status(&self, users: &[String], change: UserStatusChange, unix: u64) -> Answer<()> {
        let ttl = self.settings.read().options.user_status.expire_interval;
        let change = UserStatusChange { ttl, ..change };
        self.status_store().update(users, &change, unix)
    }

    /// Removes the status of users.
    ///
    /// # Errors
    /// 100 when the store failed.
    pub fn delete_status(&self, users: &[String]) -> Answer<(), ErrorCode> {
        self.status_store().remove(users).map_err(temporary)
    }

    /// The status of each user at the Unix second `unix`, in the order of `users`. Those with a connection to some node are online now.
    ///
    /// # Errors
    /// 100 when the store failed; 111 when too many surveys run.
    pub fn statuses(
        &self,
        users: Vec<String>,
        (now, unix): (Instant, u64),
    ) -> Answer<Surveyed<Vec<UserStatus>>, ErrorCode> {
        let online = self.cluster.count_users(users.clone(), self.own_users(&users), now);
        let known = self.status_store().read(&users, unix);
        let (promise, answer) = Answer::later();
        known.then(move |known| match known {
            Ok(known) => online.then(move |online| {
                promise.keep(online.map(|online| {
                    online.map(|online| {
                        let status = |(user, status): (String, UserStatus)| match online.get(&user)
                        {
                            Some(_) => UserStatus { online: unix, ..status },
                            None => status,
                        };
                        users.into_iter().zip(known).map(status).collect()
                    })
                }));
            }),
            Err(error) => promise.keep(Err(temporary(error))),
        });
        answer
    }

    /// Once a second: removes expired statuses, and records that some users of this node are online, so that each has its turn
    /// in `client.presence_update_interval`.
    pub(super) fn tick(&self, unix: u64) {
        self.status_store().sweep(unix);
        let settings = self.settings.read();
        if !settings.options.user_status.enabled {
            return;
        }
        let users = self.registry.next_users(settings.options.client.presence_update_interval);
        if users.is_empty() {
            return;
        }
        let online = Some(unix);
        // After a failure the next turn comes soon; the store logs what fails.
        drop(self.change_status(&users, UserStatusChange { online, ..Default::default() }, unix));
    }
}
