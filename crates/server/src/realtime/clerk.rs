//! The clerk: one thread beside the shards that does what their hubs hand out, because it takes too long for a turn.
//! In: errands of all shards, in their order → out: nothing here; their results find the inboxes by themselves.
//! Uses one thread and its queue; never a socket or a session.
//! Changed here: who does errands. What becomes one is decided in `node::errand`.

use std::{
    io,
    panic::{self, AssertUnwindSafe},
    sync::mpsc::{SendError, Sender, channel},
    thread,
};

use fanwire_node::Errand;

/// Where errands are left. The default has no thread and does them at once.
///
/// One thread for all shards: errands are rare and large, and two at once would take two cores from the shards. A session has
/// one under way at most, so there are never more than connections.
#[derive(Clone, Debug, Default)]
pub struct Clerk(Option<Sender<Errand>>);

impl Clerk {
    /// Starts the thread, which ends with the last copy of this.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start() -> io::Result<Self> {
        let (errands, work) = channel::<Errand>();
        thread::Builder::new()
            .name("clerk".to_owned())
            .spawn(move || work.into_iter().for_each(run))?;
        Ok(Self(Some(errands)))
    }

    pub(super) fn hand(&self, errand: Errand) {
        let left = match &self.0 {
            Some(errands) => errands.send(errand).map_err(|SendError(errand)| errand),
            None => Err(errand),
        };
        if let Err(errand) = left {
            errand.run(); // without a clerk it takes the shard's time, as small answers do
        }
    }
}

/// One that panics answers its session with error 100 as it falls, and the next one is done.
fn run(errand: Errand) {
    if panic::catch_unwind(AssertUnwindSafe(|| errand.run())).is_err() {
        tracing::error!("an errand panicked: a bug, its message is on stderr");
    }
}
