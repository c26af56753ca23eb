//! The encode worker: one thread next to the shards that runs encode jobs, which would take too long for a turn.
//! In: encode jobs of all shards, in their order → out: nothing here; each job sends its result to an inbox.
//! Uses one thread and its queue; never a socket or a session.
//! Changed here: which thread runs encode jobs. What becomes a job is decided in `node::encode_job`.

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

/// The queue of encode jobs. The default has no thread and runs each job at once.
///
/// One thread for all shards: encode jobs are rare and large, and two at once would take two cores from the shards.
/// Jobs whose session has ended take no time, and the jobs that wait hold at most `QUEUE_BYTES_MAX`.
#[derive(Clone, Debug, Default)]
pub struct EncodeWorker(Option<Queue>);

#[derive(Clone, Debug)]
struct Queue {
    encode_jobs: Sender<EncodeJob>,
    /// Memory of the jobs that are not done.
    bytes: Arc<AtomicUsize>,
    log_throttle: Arc<LogThrottle>,
}

impl EncodeWorker {
    /// Starts the thread, which ends when the last clone of this is dropped.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn start() -> io::Result<Self> {
        let (encode_jobs, jobs) = channel::<EncodeJob>();
        let bytes = Arc::<AtomicUsize>::default();
        let queue = Queue { encode_jobs, bytes: bytes.clone(), log_throttle: Arc::default() };
        thread::Builder::new().name("encode_worker".to_owned()).spawn(move || {
            for encode_job in jobs {
                let freed = encode_job.bytes();
                run(encode_job);
                bytes.fetch_sub(freed, Relaxed);
            }
        })?;
        Ok(Self(Some(queue)))
    }

    pub(super) fn offload(&self, encode_job: EncodeJob) {
        let refused = match &self.0 {
            Some(queue) => queue.put(encode_job),
            None => Err(encode_job),
        };
        if let Err(encode_job) = refused {
            encode_job.run(); // without a worker it takes the shard's time, as small answers do
        }
    }
}

impl Queue {
    /// Queues a job, or returns it if the worker's thread has ended. Above the limit the job is dropped, which answers
    /// its session with error 100; the client may try again later.
    fn put(&self, encode_job: EncodeJob) -> Result<(), EncodeJob> {
        let bytes = encode_job.bytes();
        if self.bytes.fetch_add(bytes, Relaxed) + bytes > QUEUE_BYTES_MAX {
            self.bytes.fetch_sub(bytes, Relaxed);
            if let Some(repeats) = self.log_throttle.record("full", Instant::now()) {
                tracing::warn!(
                    "refusing large presences, histories and recoveries with error 100: {} MiB of them wait to be encoded{repeats}",
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

/// A job that panics answers its session with error 100 while it unwinds; the worker continues with the next job.
fn run(encode_job: EncodeJob) {
    if panic::catch_unwind(AssertUnwindSafe(|| encode_job.run())).is_err() {
        tracing::error!("an encode job panicked: a bug, its message is on stderr");
    }
}

/// Memory of waiting jobs, without payloads. A presence of 10,000 members takes 80 KB and 7 ms, so this is 3,000 of
/// them and 20 s.
const QUEUE_BYTES_MAX: usize = 256 << 20;
