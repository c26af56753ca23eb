//! The clerk: one thread beside the shards that does what their hubs hand out, because it takes too long for a turn.
//! In: errands of all shards, in their order → out: nothing here; their results find the inboxes by themselves.
//! Uses one thread and its queue; never a socket or a session.
//! Changed here: who does errands. What becomes one is decided in `node::errand`.

use std::{
    io,
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc::{SendError, Sender, channel},
    },
    thread,
    time::Instant,
};

use fanwire_node::Errand;
use fanwire_telemetry::Seldom;

/// Where errands are left. The default has no thread and does them at once.
///
/// One thread for all shards: errands are rare and large, and two at once would take two cores from the shards. Those that
/// nobody waits for any more take no time, and there are at most [`QUEUE_BYTES_MAX`].
#[derive(Clone, Debug, Default)]
pub struct Clerk(Option<Queue>);

#[derive(Clone, Debug)]
struct Queue {
    errands: Sender<Errand>,
    /// Memory of those that are not done.
    bytes: Arc<AtomicUsize>,
    told: Arc<Seldom>,
}

impl Clerk {
    /// Starts the thread, which ends with the last copy of this.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start() -> io::Result<Self> {
        let (errands, work) = channel::<Errand>();
        let bytes = Arc::<AtomicUsize>::default();
        let queue = Queue { errands, bytes: bytes.clone(), told: Arc::default() };
        thread::Builder::new().name("clerk".to_owned()).spawn(move || {
            for errand in work {
                let freed = errand.bytes();
                run(errand);
                bytes.fetch_sub(freed, Relaxed);
            }
        })?;
        Ok(Self(Some(queue)))
    }

    pub(super) fn hand(&self, errand: Errand) {
        let left = match &self.0 {
            Some(queue) => queue.put(errand),
            None => Err(errand),
        };
        if let Err(errand) = left {
            errand.run(); // without a clerk it takes the shard's time, as small answers do
        }
    }
}

impl Queue {
    /// Takes an errand, unless the clerk is gone. One for which there is no room is dropped, which answers its session with
    /// error 100: it asks again later, and finds fewer before it.
    fn put(&self, errand: Errand) -> Result<(), Errand> {
        let bytes = errand.bytes();
        if self.bytes.fetch_add(bytes, Relaxed) + bytes > QUEUE_BYTES_MAX {
            self.bytes.fetch_sub(bytes, Relaxed);
            if let Some(cases) = self.told.happens("full", Instant::now()) {
                tracing::warn!(
                    "refusing large presences, histories and recoveries with error 100: {} MiB of them wait to be encoded{cases}",
                    QUEUE_BYTES_MAX >> 20
                );
            }
            return Ok(());
        }
        self.errands.send(errand).map_err(|SendError(errand)| {
            self.bytes.fetch_sub(bytes, Relaxed);
            errand
        })
    }
}

/// One that panics answers its session with error 100 as it falls, and the next one is done.
fn run(errand: Errand) {
    if panic::catch_unwind(AssertUnwindSafe(|| errand.run())).is_err() {
        tracing::error!("an errand panicked: a bug, its message is on stderr");
    }
}

/// Of errands that wait, beside payloads. Presence of 10,000 members takes 80 KB and 7 ms: these are 3,000, and 20 s.
const QUEUE_BYTES_MAX: usize = 256 << 20;
