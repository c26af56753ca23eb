//! The effects of a command: what the hub does after the command has run.
//! In: what the steps of the command add → out: three groups, which `hub/resume.rs` carries out.
//! Uses: values only. Never: sends, logs.
//! Changed here: which effects a command can have.

use std::sync::Arc;

use bytes::Bytes;
use fanwire_broker::Position;
use fanwire_policy::recovery::Unrecovered;
use fanwire_protocol::Reply;

use crate::broadcast::Broadcast;
use crate::encode_job::EncodeJob;
use crate::index::{MovedSubscription, SubscriptionIndex};
use crate::last_event_id::Unresumed;
use crate::refusal::Refusal;
use crate::subscribers::CatchUp;

/// The effects of a command besides its reply.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub(crate) reply: ReplyEffects,
    pub(crate) connection: ConnectionEffects,
    pub(crate) log: LogEffects,
}

/// How the reply is sent, and what is sent with it.
#[derive(Debug, Default)]
pub(crate) struct ReplyEffects {
    /// The reply and the messages after it, when a worker encoded them.
    pub(crate) messages: Vec<Bytes>,
    /// The reply must be encoded by a worker.
    pub(crate) encode_job: Option<EncodeJob>,
    /// Pushes of this connection alone, before the others.
    pub(crate) pushes: Vec<Reply>,
    /// Positions of the reply and of the messages after it, where an event stream names them.
    pub(crate) positions: Vec<Position>,
    /// The publisher receives its publication, which is in the inbox of its shard, before the reply.
    pub(crate) follows_own_publication: bool,
    /// The client did not continue after its last event.
    pub(crate) unresumed: Option<Unresumed>,
    /// Bytes of payloads that were searched for patches.
    pub(crate) compared: usize,
}

/// Changes of the subscriptions of the connection, after the reply.
#[derive(Debug, Default)]
pub(crate) struct ConnectionEffects {
    /// Publications that were buffered while the session subscribed, by its subscriptions.
    pub(crate) deliveries: Vec<(SubscriptionIndex, Arc<Broadcast>)>,
    /// Subscriptions that lost their position during the wait.
    pub(crate) lost: Vec<SubscriptionIndex>,
    /// Subscriptions that ended, one after the other.
    pub(crate) ended: Vec<MovedSubscription>,
    /// Publications after the position in the request are missing.
    pub(crate) unrecovered: Option<Unrecovered>,
}

/// The part of a command that the logs record.
#[derive(Debug, Default)]
pub(crate) struct LogEffects {
    /// The flight log of the session began, and has no address yet.
    pub(crate) begins: bool,
    /// The command was refused, and the refusal is logged with the address of the client.
    pub(crate) refused: Option<Box<Refusal>>,
    /// The user that the token of a connect names, if it is refused.
    pub(crate) claimed_user: String,
}

impl ConnectionEffects {
    /// Adds the publications that a new subscription has to catch up with.
    pub(super) fn catch_up(&mut self, subscription: SubscriptionIndex, caught_up: CatchUp) {
        let CatchUp { broadcasts, has_lost, .. } = caught_up;
        self.deliveries.extend(broadcasts.into_iter().map(|broadcast| (subscription, broadcast)));
        if has_lost {
            self.lost.push(subscription);
        }
    }
}
