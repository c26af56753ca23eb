//! The encode_worker: one thread beside the shards that does what their hubs hand out, because it takes too long for a turn.
//! In: encode_jobs of all shards, in their order → out: nothing here; their results find the inboxes by themselves.
//! Uses one thread and its queue; never a socket or a session.
//! Changed here: who does encode_jobs. What becomes one is decided in `node::encode_job`.

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

use fanwire_node::EncodeJob;
use fanwire_telemetry::LogThrottle;

/// Where encode_jobs are left. The default has no thread and does them at once.
///
/// One thread for all shards: encode_jobs are rare and large, and two at once would take two cores from the shards. Those that
/// nobody waits for any more take no time, and there are at most [`QUEUE_BYTES_MAX`].
#[derive(Clone, Debug, Default)]
pub struct EncodeWorker(Option<Queue>);

#[derive(Clone, Debug)]
struct Queue {
    encode_jobs: Sender<EncodeJob>,
    /// Memory of those that are not done.
    bytes: Arc<AtomicUsize>,
    log_throttle: Arc<LogThrottle>,
}

impl EncodeWorker {
    /// Starts the thread, which ends with the last copy of this.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start() -> io::Result<Self> {
        let (encode_jobs, work) = channel::<EncodeJob>();
        let bytes = Arc::<AtomicUsize>::default();
        let queue = Queue { encode_jobs, bytes: bytes.clone(), log_throttle: Arc::default() };
        thread::Builder::new().name("encode_worker".to_owned()).spawn(move || {
            for encode_job in work {
                let freed = encode_job.bytes();
                run(encode_job);
                bytes.fetch_sub(freed, Relaxed);
            }
        })?;
        Ok(Self(Some(queue)))
    }

    pub(super) fn hand(&self, encode_job: EncodeJob) {
        let left = match &self.0 {
            Some(queue) => queue.put(encode_job),
            None => Err(encode_job),
        };
        if let Err(encode_job) = left {
            encode_job.run(); // without a encode_worker it takes the shard's time, as small answers do
        }
    }
}

impl Queue {
    /// Takes an encode_job, unless the encode_worker is gone. One for which there is no room is dropped, which answers its session with
    /// error 100: it asks again later, and finds fewer before it.
    fn put(&self, encode_job: EncodeJob) -> Result<(), EncodeJob> {
        let bytes = encode_job.bytes();
        if self.bytes.fetch_add(bytes, Relaxed) + bytes > QUEUE_BYTES_MAX {
            self.bytes.fetch_sub(bytes, Relaxed);
            if let Some(cases) = self.log_throttle.record("full", Instant::now()) {
                tracing::warn!(
                    "refusing large presences, histories and recoveries with error 100: {} MiB of them wait to be encoded{cases}",
                    QUEUE_BYTES_MAX >> 20
                );
            }
            return Ok(());
        }
        self.encode_jobs.send(encode_job).map_err(|SendError(encode_job)| {
            self.bytes.fetch_sub(bytes, Relaxed);
            encode_job
        })
    }
}

/// One that panics answers its session with error 100 as it falls, and the next one is done.
fn run(encode_job: EncodeJob) {
    if panic::catch_unwind(AssertUnwindSafe(|| encode_job.run())).is_err() {
        tracing::error!("an encode job panicked: a bug, its message is on stderr");
    }
}

/// Of encode_jobs that wait, beside payloads. Presence of 10,000 members takes 80 KB and 7 ms: these are 3,000, and 20 s.
const QUEUE_BYTES_MAX: usize = 256 << 20;
